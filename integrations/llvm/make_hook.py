#!/usr/bin/env python3
"""Makes the folder that LLVM's build takes for LLVM_INTEGRATED_CRT_ALLOC, and prints how to give it to CMake.

LLVM knows three allocators, by how the path ends. A path that ends in `mimalloc` has to hold a prebuilt library under a
fixed name; reheap's goes there, and LLVM links it into every program and DLL it makes.
"""

import argparse
import pathlib
import re
import shutil
import sys

import coff

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = ROOT / "build" / "windows-x86_64-msvc" / "lib" / "reheap.lib"
ENDING = "mimalloc"
PLACE = pathlib.PurePosixPath("out/msvc-x64/Release/mimalloc-static.lib")
SIGN = "reheap.txt"
WORDS = """This folder has the shape of a build of mimalloc because LLVM's CMake files look for that shape.
The library in it is reheap. It was made by integrations/llvm/make_hook.py of the reheap project.
"""


class Refusal(Exception):
    """Why no hook was made."""


def check_library(path: pathlib.Path) -> str:
    """The machine that the library is for; refuses what would not serve malloc in LLVM."""
    if not path.is_file():
        raise Refusal(f"there is no {path}; ./dev build windows-x86_64-msvc makes it, or name another with --library")
    try:
        objects = coff.library(path)
    except coff.Unreadable as reason:
        raise Refusal(f"{reason}; it takes one made for the MSVC ABI") from reason
    machines = {each.machine for each in objects}
    if len(machines) != 1:
        raise Refusal(f"{path} mixes machines: {' '.join(sorted(machines))}")
    if not any("malloc" in each.defines for each in objects):
        raise Refusal(f"{path} defines no malloc")
    return machines.pop()


def check_folder(target: pathlib.Path, force: bool) -> None:
    if ";" in str(target):
        raise Refusal(f"CMake would split {target} at the semicolon")
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise Refusal(f"{target} is there and is no folder")
    if not target.is_dir() or not any(target.iterdir()):
        return
    if not (target / SIGN).is_file():
        raise Refusal(f"{target} is there and was not made by this command; remove it, or take another DIR")
    if not force:
        raise Refusal(f"{target} is there already; --force makes it anew")


def make(folder: pathlib.Path, library: pathlib.Path, force: bool) -> tuple[pathlib.Path, str]:
    """(what to give to LLVM, the machine it is for)."""
    target = (folder if folder.name == ENDING else folder / ENDING).absolute()
    machine = check_library(library)
    check_folder(target, force)
    place = target / PLACE
    place.parent.mkdir(parents=True, exist_ok=True)
    (target / SIGN).write_text(WORDS, encoding="utf-8")
    shutil.copyfile(library, place)
    return target, machine


def options(target: pathlib.Path) -> list[str]:
    """For CMake; each version of LLVM takes the one of the last two that it knows."""
    return [f"-DLLVM_INTEGRATED_CRT_ALLOC={target.as_posix()}", "-DCMAKE_BUILD_TYPE=Release",
            "-DCMAKE_MSVC_RUNTIME_LIBRARY=MultiThreaded", "-DLLVM_USE_CRT_RELEASE=MT"]


def quoted(word: str) -> str:
    return f'"{word}"' if re.search(r"[\s&()]", word) else word


def main() -> int:
    parser = argparse.ArgumentParser(prog="make_hook.py", description=__doc__.splitlines()[0])
    parser.add_argument("folder", metavar="DIR", type=pathlib.Path, help=f"where to; it gets a folder {ENDING}")
    parser.add_argument("--library", type=pathlib.Path, default=BUILT,
                        help="the library for the MSVC ABI (default %(default)s)")
    parser.add_argument("--force", action="store_true", help="make the hook anew where one is")
    arguments = parser.parse_args()
    try:
        target, machine = make(arguments.folder, arguments.library, arguments.force)
    except (Refusal, OSError) as reason:
        print(f"make_hook.py: {reason}", file=sys.stderr)
        return 1
    print(f"for {machine}; give LLVM's CMake:", file=sys.stderr)
    print(" ".join(quoted(word) for word in options(target)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
