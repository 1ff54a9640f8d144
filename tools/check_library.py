#!/usr/bin/env python3
"""Checks what libreheap.so shows to the dynamic linker: the exported names are exactly those of a list, no C++
library is needed, everything is bound at load, and thread-local storage is the static kind."""

import argparse
import pathlib
import sys

import elf


def expected_names(path: str, wide: bool, musl: bool) -> set[str]:
    """The list's names; in it {size} stands for the mangled size_t, {64} before a name says: not on 32-bit, {32}:
    only there, {glibc}: not on musl, and {token} stands for nothing and for each token that is part of a name."""
    lines = (line.split("#")[0].strip() for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines())
    tokens = ["", *(f"{token}_" for token in range(8))]
    names = [line.replace("{size}", "m" if wide else "j").replace("{token}", token) for line in lines if line
             for token in (tokens if "{token}" in line else [""])]
    for mark, fits in {"{64}": wide, "{32}": not wide, "{glibc}": not musl}.items():
        names = [name.removeprefix(mark) for name in names if fits or not name.startswith(mark)]
    return set(names)


def problems(library: str, expected: str) -> list[str]:
    wanted = expected_names(expected, elf.is_64_bit(library), ("NEEDED", "libc.so") in elf.dynamic(library))
    present = set(elf.exported(library))
    found = [f"exports {name}, which {expected} does not list" for name in sorted(present - wanted)]
    found += [f"does not export {name}, which {expected} lists" for name in sorted(wanted - present)]
    entries = elf.dynamic(library)
    found += [f"needs {text}: a preloaded allocator may not bring in a C++ library"
              for tag, text in entries if tag == "NEEDED" and "c++" in text]
    flags = " ".join(text for tag, text in entries if tag.startswith("FLAGS"))
    for flag, reason in {"NOW": "a first call would be resolved lazily, under the loader's lock",
                         "NODELETE": "a dlclose would unmap code that blocks still need",
                         "STATIC_TLS": "thread-local storage would be allocated on first touch"}.items():
        if flag not in flags:
            found.append(f"is not marked {flag}: {reason}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library")
    parser.add_argument("expected", help="file with one exported name a line; # starts a comment")
    arguments = parser.parse_args()
    found = problems(arguments.library, arguments.expected)
    for problem in found:
        print(f"{arguments.library} {problem}")
    if not found:
        print(f"{arguments.library}: {len(elf.exported(arguments.library))} names exported, all expected")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
