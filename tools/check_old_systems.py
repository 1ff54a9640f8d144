#!/usr/bin/env python3
"""Checks what programs and libraries take of the C library: no symbol newer than a version of glibc's, and of those
named behind --on-musl nothing that musl has not."""

import argparse
import sys

import elf


def number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.removeprefix("GLIBC_").split(".") if part.isdigit())


def too_new(path: str, newest: str) -> list[str]:
    versions = sorted(elf.symbol_versions(path), key=number)
    return [f"{path} needs {version}, newer than {newest}" for version in versions if number(version) > number(newest)]


def missing(path: str, musl: str) -> list[str]:
    return [f"{path} needs {name}, which {musl} does not have"
            for name in sorted(elf.needed_names(path) - set(elf.exported(musl)))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--glibc", required=True, metavar="VERSION", help="the oldest to run on, as 2.17")
    parser.add_argument("--musl", metavar="LOADER", help="musl's loader, which is its C library")
    parser.add_argument("--on-musl", nargs="*", default=[], metavar="FILE", help="those that are loaded there too")
    arguments = parser.parse_args()
    found = [problem for path in [*arguments.files, *arguments.on_musl] for problem in too_new(path, arguments.glibc)]
    found += [problem for path in arguments.on_musl for problem in missing(path, arguments.musl)]
    for problem in found:
        print(problem)
    if not found:
        print(f"all run on glibc {arguments.glibc}" + (", the libraries on musl too" if arguments.on_musl else ""))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
