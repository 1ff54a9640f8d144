#!/usr/bin/env python3
"""Links a program with a static library and a made-up static CRT, and says where the heap came from:
check_link.py LIBRARY

lld-link does it, as LLVM's own link lines ask (-INCLUDE:malloc), for /MT and /MTd; and so does a model of link.exe,
whose search order differs.
"""

import dataclasses
import pathlib
import re
import subprocess
import sys
import tempfile

import coff
import fake_crt
from contract import Crt, import_libraries

IN_MAP = re.compile(r"^ [0-9a-f]{4}:[0-9a-f]{8} +(\S+) .* (\S+?):\S+$")  # … name … library:object


# ---- linking, as link.exe does ----------------------------------------------------------------

@dataclasses.dataclass
class Linked:
    """Who provides each name, what came twice, what nobody has."""
    homes: dict[str, str]
    twice: set[str]
    missing: set[str]


def link(needed: set[str], libraries: list[tuple[str, list[coff.Object]]]) -> Linked:
    """Microsoft's search order: passes over one library until it gives nothing new, then the next, then again."""
    result = Linked({}, set(), set(needed))
    changed = True
    while changed:
        changed = False
        for title, objects in libraries:
            while (wanted := next_object(result, objects)) is not None:
                take(result, title, wanted)
                changed = True
    return result


def next_object(result: Linked, objects: list[coff.Object]) -> coff.Object | None:
    return next((each for each in objects if (each.defines | each.shares | each.weak) & result.missing), None)


def take(result: Linked, title: str, wanted: coff.Object) -> None:
    result.twice |= wanted.defines & set(result.homes)
    for name in wanted.defines | wanted.shares | wanted.weak:
        result.homes.setdefault(name, title)
    needed = wanted.needs | set(wanted.asked("include"))
    result.missing = (result.missing | needed) - set(result.homes)


# ---- linking for real -------------------------------------------------------------------------

def lld(folder: pathlib.Path, inputs: list[pathlib.Path]) -> tuple[dict[str, str], list[str]]:
    """(who provides each name, what the linker complained of)."""
    table = folder / "program.map"
    command = ["lld-link-19", "/nologo", "/nodefaultlib", "/entry:mainCRTStartup", "/subsystem:console",
               f"/out:{folder / 'program.exe'}", f"/map:{table}", "/opt:noref", *inputs, "-INCLUDE:malloc",
               *import_libraries()]
    done = subprocess.run(command, capture_output=True, text=True)
    errors = [line for line in done.stderr.splitlines() if "error:" in line]
    if done.returncode != 0:
        return {}, errors or [done.stderr]
    lines = table.read_text(encoding="utf-8", errors="replace").splitlines()
    return {match[1]: match[2] for match in map(IN_MAP.match, lines) if match}, []


# ---- the check --------------------------------------------------------------------------------

def everything(crt: Crt, debug: bool) -> set[str]:
    hidden = set() if debug else {name for each in crt.objects if "only" in each for name in each["defines"]}
    return crt.replaceable() - hidden


def problems(crt: Crt, library: pathlib.Path, crt_libraries: list[pathlib.Path], debug: bool) -> list[str]:
    """For a program that calls all there is, and for one that calls malloc alone, so that the CRT asks for the rest."""
    ours = coff.library(library)
    names = {name for each in ours for name in each.defines | each.weak} & crt.replaceable()
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for needs in (everything(crt, debug), {"malloc"}):
            program = fake_crt.assemble(folder, "program.obj", ["main"], sorted(needs))
            homes, errors = lld(folder, [program, library, *crt_libraries])
            found += errors or strangers("lld-link takes", homes, names, library)
            if not errors and not needs & names <= set(homes):
                found.append(f"lld-link has no {' '.join(sorted(needs & names - set(homes)))}")
            linked = link(needs | {"malloc", "mainCRTStartup"},
                          [(each.stem, coff.library(each)) for each in (library, *crt_libraries)])
            found += [f"link.exe would have two of {each}" for each in sorted(linked.twice)]
            found += strangers("link.exe would take", linked.homes, names, library)
    return list(dict.fromkeys(found))


def strangers(words: str, homes: dict[str, str], names: set[str], library: pathlib.Path) -> list[str]:
    """Names that the library defines and the program has from elsewhere."""
    return [f"{words} {name} from {homes[name]}" for name in sorted(names & set(homes)) if homes[name] != library.stem]


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: check_link.py LIBRARY", file=sys.stderr)
        return 2
    crt, status = Crt(), 0
    for option, debug in (("/MT", False), ("/MTd", True)):
        try:
            with tempfile.TemporaryDirectory() as name:
                found = problems(crt, pathlib.Path(sys.argv[1]), fake_crt.build(pathlib.Path(name), crt, debug), debug)
        except (OSError, coff.Unreadable, subprocess.CalledProcessError) as error:
            print(f"check_link.py: {error}", file=sys.stderr)
            return 2
        print("\n".join(f"{option}: {each}" for each in found) if found
              else f"{option}: the whole heap is the library's")
        status = status or int(bool(found))
    return status


if __name__ == "__main__":
    sys.exit(main())
