#!/usr/bin/env python3
"""Holds the static library for the MSVC ABI to what linking it with /MT asks of it: contract.py LIBRARY

libucrt.json says what the objects of Microsoft's static C runtime hold, and where each fact comes from. Each rule is
one function below.
"""

import json
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

import coff

HERE = pathlib.Path(__file__).resolve().parent
OURS = re.compile(r"^_*rh_|@rh@@|^\.weak\.|^___?alloc_token_")  # the last are Clang's, and in no C runtime
IMPORTS = ["kernel32", "ntdll"]
CRT_LIBRARIES = re.compile(r"^(lib(cmt|cpmt|ucrt|vcruntime)|msvcp?rt|ucrt|vcruntime|oldnames)d?(\.lib)?$", re.I)


class Crt:
    """What libucrt.json says."""

    def __init__(self, path: pathlib.Path = HERE / "libucrt.json"):
        self.facts = facts = json.loads(path.read_text(encoding="utf-8"))
        self.objects: list[dict] = facts["objects"]
        self.families: dict[str, list[str]] = facts["families"]
        self.provided = {name for names in facts["provided"].values() for name in names}

    def groups(self) -> Iterator[tuple[str, list[str]]]:
        """(what it is called, names that a library defines all together or not at all)."""
        for each in self.objects:
            if "always" not in each and len(each["defines"]) > 1:
                yield each["object"], each["defines"]
        yield from self.families.items()

    def untouchable(self) -> Iterator[tuple[str, list[str]]]:
        """(object, names) that are in every program already."""
        for each in self.objects:
            if "always" in each:
                yield each["object"], each["defines"]

    def replaceable(self) -> set[str]:
        """Every name that belongs to the heap and may be ours."""
        single = {name for each in self.objects if "always" not in each for name in each["defines"]}
        return single | {name for names in self.families.values() for name in names}


def import_libraries() -> list[pathlib.Path]:
    """mingw's, which are the same for every linker."""
    commands = [["x86_64-w64-mingw32-gcc-posix", f"-print-file-name=lib{name}.a"] for name in IMPORTS]
    return [pathlib.Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
            for command in commands]


def import_names() -> set[str]:
    """What kernel32 and ntdll export."""
    return {name for library in import_libraries() for each in coff.library(library)
            for name in each.defines | each.shares}


# ---- the rules --------------------------------------------------------------------------------

def whole_groups(crt: Crt, objects: list[coff.Object]) -> Iterator[str]:
    """Names that libucrt keeps in one object, and those that must share a heap, are defined all in one object of
    ours."""
    for title, names in crt.groups():
        homes = {each.name: sorted(each.defines & set(names)) for each in objects if each.defines & set(names)}
        absent = set(names) - {name for found in homes.values() for name in found}
        if homes and absent:
            yield f"of {title}'s names it defines only some; missing: {' '.join(sorted(absent))}"
        elif len(homes) > 1:
            yield f"{title}'s names lie in several objects: {' '.join(sorted(homes))}"


def serves_malloc(crt: Crt, objects: list[coff.Object]) -> Iterator[str]:
    if not any("malloc" in each.defines for each in objects):
        yield "it does not define malloc"


def nothing_twice(crt: Crt, objects: list[coff.Object]) -> Iterator[str]:
    homes: dict[str, list[str]] = {}
    for each in objects:
        for name in each.defines:
            homes.setdefault(name, []).append(each.name)
    for name, found in sorted(homes.items()):
        if len(found) > 1:
            yield f"{name} is defined {len(found)} times: {' '.join(found)}"


def nothing_that_is_there(crt: Crt, objects: list[coff.Object]) -> Iterator[str]:
    for title, names in crt.untouchable():
        for each in objects:
            for name in sorted((each.defines | each.shares | each.weak) & set(names)):
                yield f"{each.name} defines {name}, but {title} is in every program"


def nothing_else(crt: Crt, objects: list[coff.Object]) -> Iterator[str]:
    """Any other name could be the program's, or lie in an object of the CRT with names that are needed."""
    allowed = crt.replaceable() | {name for _, names in crt.untouchable() for name in names}
    for each in objects:
        for name in sorted(each.defines | {shared for shared in each.shares | each.weak if not shared.startswith("?")}):
            if name not in allowed and not OURS.search(name) and not name.startswith(("__real@", "__xmm@", "__ymm@")):
                yield f"{each.name} defines {name}, which is not ours to define"


def all_from_malloc(crt: Crt, objects: list[coff.Object]) -> Iterator[str]:
    """Whoever takes malloc takes all: link.exe looks for what an object of libucrt needs in libucrt first."""
    homes = {name: each for each in objects for name in each.defines | each.weak}
    waiting, taken = ["malloc"], set()
    while waiting:
        each = homes.get(waiting.pop())
        if each is not None and each.name not in taken:
            taken.add(each.name)
            waiting += each.needs | set(each.asked("include"))
    for name in sorted(crt.replaceable() & set(homes)):
        if homes[name].name not in taken and name not in crt.families["new and delete"]:
            yield f"{name} in {homes[name].name} does not come with malloc"


# Defined by every linker: where the image begins that the code is part of.
BY_THE_LINKER = {"__ImageBase"}


def only_known_needs(crt: Crt, objects: list[coff.Object], imports: set[str]) -> Iterator[str]:
    """It needs nothing but kernel32, ntdll, and what a program's own CRT always has."""
    inside = {name for each in objects for name in each.defines | each.shares | each.weak}
    for each in objects:
        for name in sorted(each.needs - inside - crt.provided - imports - BY_THE_LINKER):
            yield f"{each.name} needs {name}, which neither it nor kernel32, ntdll or the C runtime has"


def names_no_crt(crt: Crt, objects: list[coff.Object]) -> Iterator[str]:
    """Which CRT a program has is the program's choice."""
    for each in objects:
        for name in each.asked("defaultlib"):
            if CRT_LIBRARIES.match(name):
                yield f"{each.name} asks for {name}"
        for value in each.asked("failifmismatch"):
            if value.startswith("RuntimeLibrary="):
                yield f"{each.name} insists on {value}"


RULES = [serves_malloc, whole_groups, nothing_twice, nothing_that_is_there, nothing_else, all_from_malloc, names_no_crt]


def problems(crt: Crt, objects: list[coff.Object], imports: set[str]) -> list[str]:
    found = [problem for rule in RULES for problem in rule(crt, objects)]
    return found + list(only_known_needs(crt, objects, imports))


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: contract.py LIBRARY", file=sys.stderr)
        return 2
    try:
        objects = coff.library(pathlib.Path(sys.argv[1]))
        found = problems(Crt(), objects, import_names())
    except (OSError, coff.Unreadable, subprocess.CalledProcessError) as error:
        print(f"contract.py: {error}", file=sys.stderr)
        return 2
    print("\n".join(found) if found else f"{len(objects)} objects, as linking with /MT asks")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
