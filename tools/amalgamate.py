#!/usr/bin/env python3
"""Writes the allocator as one pair of files, reheap.cpp and reheap.h, for those who keep it in their own source.

Which files belong to which system and kind of library is asked of CMake (cmake/Sources.cmake), in all combinations;
what only some of them have stands in #if. The same source gives the same two files, byte for byte.
"""

import argparse
import dataclasses
import functools
import itertools
import pathlib
import re
import shutil
import subprocess
import sys

import project

SOURCE = project.ROOT / "src"
PUBLIC_HEADER = "reheap/reheap.h"
PREAMBLE = pathlib.Path(__file__).with_suffix(".h")

# What files depend on: a fact of the compiler or a wish of the user, and how the preprocessor asks for it.
FACTS = {
    "windows": "defined(_WIN32)",
    "msvc": "defined(_MSC_VER)",
    "wide": "RH_64_BIT",
    "x86_64": "RH_X86_64",
    "hardened": "defined(REHEAP_HARDENED)",
    "override": "defined(REHEAP_OVERRIDE)",
}

# In the order in which they are compiled, each with what it is part of; CMake's names.
PARTS = {
    "PORTABLE_SOURCES": {},
    "PLATFORM_SOURCES": {},
    "HARDENED_SOURCES": {"hardened": True},
    "FOREIGN_SYSTEM": {"override": False},
    "ALONE_SOURCES": {},
    "CRT_SOURCES": {"override": True},
    "OVERRIDE_SOURCES": {"override": True},
    "RUNTIME": {"override": True},
    "LIFETIME": {},
}

INCLUDE = re.compile(r'#include (?:<(?P<system>[^>]+)>|"(?P<own>[^"]+)")')
DIRECTIVE = re.compile(r"\s*#\s*(?P<name>\w+)\s*(?P<rest>\w*)")
# As clang-format writes it: without a word at its end when it is one line long.
NAMESPACE = re.compile(r"^namespace rh\b[^\n;{]*\{\n(?:[^\n]*\n\}|.*?\n\}  // namespace rh\b[^\n]*)$",
                       re.MULTILINE | re.DOTALL)


class Unclear(Exception):
    """What cannot be put into one file; says which file, and why."""


# ---- which builds have a file -------------------------------------------------------------------

def builds() -> list[dict[str, bool]]:
    """All combinations of facts that there are."""
    return [build for values in itertools.product((False, True), repeat=len(FACTS))
            if possible(build := dict(zip(FACTS, values)))]


def possible(build: dict[str, bool]) -> bool:
    return not (build["msvc"] and not build["windows"]) and not (build["x86_64"] and not build["wide"])


BUILDS = builds()


def matching(wanted: dict[str, bool]) -> frozenset[int]:
    return frozenset(number for number, build in enumerate(BUILDS)
                     if all(build[fact] == value for fact, value in wanted.items()))


ALL = matching({})


@functools.cache
def hull(found: frozenset[int]) -> dict[str, bool]:
    """The fewest facts that all of these builds have in common, and as few others as can be."""
    common = {fact: values.pop() for fact in FACTS if len(values := {BUILDS[number][fact] for number in found}) == 1}
    least = matching(common)
    for count in range(len(common) + 1):
        for facts in itertools.combinations(common, count):
            wanted = {fact: common[fact] for fact in facts}
            if matching(wanted) == least:
                return wanted
    raise AssertionError("the facts in common match themselves")


def condition(wanted: dict[str, bool]) -> str:
    return " && ".join(("" if value else "!") + FACTS[fact] for fact, value in wanted.items())


def sources() -> dict[str, frozenset[int]]:
    """Each source file, in the order of compilation, with the builds that have it."""
    cmake = shutil.which("cmake")
    if cmake is None:
        raise Unclear("cmake, which knows the list of files, is not installed (Debian package cmake)")
    script = PREAMBLE.with_suffix(".cmake")
    said = subprocess.run([cmake, "-P", str(script)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if said.returncode != 0:
        raise Unclear(f"cmake -P {script} failed:\n{said.stdout}")
    parts: dict[str, dict[str, frozenset[int]]] = {part: {} for part in PARTS}
    for line in said.stdout.splitlines():
        facts, part, path = line.split(" ", 2)
        name = pathlib.Path(path).relative_to(SOURCE).as_posix()
        parts[part][name] = parts[part].get(name, frozenset()) | matching(read_facts(facts) | PARTS[part])
    merged = {name: found for part in parts.values() for name, found in part.items()}
    for name, found in merged.items():
        if matching(hull(found)) != found:
            raise Unclear(f"src/{name}: which builds have it is more than one #if with && can say")
    return merged


def read_facts(text: str) -> dict[str, bool]:
    said = dict(one.split("=") for one in text.split(","))
    return {"windows": said["WINDOWS"] == "ON", "msvc": said["MSVC"] == "ON", "wide": said["BYTES"] == "8",
            "x86_64": said["BYTES"] == "8" and said["PROCESSOR"] == "x86_64"}


# ---- files --------------------------------------------------------------------------------------

@dataclasses.dataclass
class File:
    """A file without its includes."""
    own: list[str]  # of the project
    system: list[str]  # that can stand before it
    defines: list[str]  # that would be left behind by it
    body: str


@functools.cache
def read(name: str) -> File:
    """Takes a file of src/ apart. System headers that depend on a macro, or on an #if, stay where they are."""
    file = File([], [], [], "")
    depth, plain, lines = 0, True, []
    for line in (SOURCE / name).read_text(encoding="utf-8").splitlines():
        directive = DIRECTIVE.match(line)
        if included := INCLUDE.match(line):
            if included["own"]:
                file.own += [included["own"]] if included["own"] != PUBLIC_HEADER else []
                continue
            if depth == 0 and plain:
                file.system.append(included["system"])
                continue
        elif line == "#pragma once":
            continue
        elif directive:
            plain = False
            depth += directive["name"].startswith("if")
            depth -= directive["name"] == "endif"
            if directive["name"] == "define" and directive["rest"] not in file.defines:
                file.defines.append(directive["rest"])
            if directive["name"] == "undef" and directive["rest"] in file.defines:
                file.defines.remove(directive["rest"])
        lines.append(line)
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
    # What lies in our namespace is no other library's, whatever the flags: exported, two copies would be mixed up.
    file.body = NAMESPACE.sub(r"RH_HIDE_BEGIN\n\g<0>\nRH_HIDE_END", text)
    return file


def headers(found: dict[str, frozenset[int]]) -> dict[str, frozenset[int]]:
    """For each file, sources and headers, the builds that have it or need it for another."""
    reached = dict(found)
    waiting = list(found)
    while waiting:
        name = waiting.pop()
        for header in read(name).own:
            before = reached.get(header, frozenset())
            after = matching(hull(before | reached[name]))
            if after != before:
                reached[header] = after
                waiting.append(header)
    return reached


class Writer:
    """Puts files one behind the other, each behind those that it includes."""

    def __init__(self, reached: dict[str, frozenset[int]]):
        self.reached = reached
        self.text: list[str] = []
        self.done: set[str] = set()
        self.system: dict[str, frozenset[int]] = {}

    def add(self, name: str) -> None:
        if name in self.done:
            return
        self.done.add(name)
        file = read(name)
        for header in file.own:
            self.add(header)
        wanted = hull(self.reached[name])
        self.text.append(f"\n// ---- {name} ----")
        if wanted:
            self.text.append(f"#if {condition(wanted)}")
        self.text += [f"#include <{header}>" for header in file.system if self.is_new(header, self.reached[name])]
        self.text.append(file.body)
        if name.endswith(".cpp"):
            self.text += [f"#undef {macro}" for macro in file.defines]
        if wanted:
            self.text.append("#endif")

    def is_new(self, header: str, found: frozenset[int]) -> bool:
        before = self.system.get(header, frozenset())
        self.system[header] = before | found
        return not found <= before


# ---- output -------------------------------------------------------------------------------------

def amalgamate() -> dict[str, str]:
    """The text of each file, by its name."""
    public = (project.ROOT / "include" / PUBLIC_HEADER).read_text(encoding="utf-8")
    version = ".".join(re.findall(r"#define RH_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", public))
    licence = (project.ROOT / "LICENSE").read_text(encoding="utf-8").strip()
    found = sources()
    writer = Writer(headers(found))
    for name in found:
        writer.add(name)
    head = PREAMBLE.read_text(encoding="utf-8").replace("@VERSION@", version)
    source = [f"// reheap {version}, made by tools/amalgamate.py: edit the project, not this file.", "//",
              *(f"// {line}".rstrip() for line in licence.splitlines()), "//", head.rstrip(), *writer.text]
    notice = f"/* SPDX-License-Identifier: MIT\n * {licence.splitlines()[2]}; the licence is in reheap.cpp. */\n"
    return {"reheap.cpp": "\n".join(source) + "\n", "reheap.h": notice + public}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="OUT", type=pathlib.Path, help="where they go; made if it is not there")
    arguments = parser.parse_args()
    try:
        files = amalgamate()
        arguments.folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (arguments.folder / name).write_text(text, encoding="utf-8", newline="\n")
    except (Unclear, OSError) as error:
        print(f"amalgamate: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
