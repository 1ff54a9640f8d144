#!/usr/bin/env python3
"""Formats the project's C and C++ files with clang-format 19, or with --check names those that differ."""

import argparse
import concurrent.futures
import itertools
import os
import shutil
import subprocess
import sys

import project

SUFFIXES = {".c", ".cc", ".cpp", ".h", ".hpp"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev fmt", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail when a file would change")
    arguments = parser.parse_args()
    tool = shutil.which("clang-format-19")
    if tool is None:
        print("fmt: clang-format-19 is not installed (Debian package clang-format-19)", file=sys.stderr)
        return 1
    sources = [str(path) for path in project.files() if path.suffix in SUFFIXES]
    if not arguments.check:
        return subprocess.run([tool, "-i", *sources], cwd=project.ROOT).returncode
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        unlike = list(pool.map(lambda name: differs(tool, name), sources))
    differing = list(itertools.compress(sources, unlike))
    for name in differing:
        print(f"fmt: {name} is not formatted; ./dev fmt formats it")
    print(f"fmt: {len(sources)} files looked at, {len(differing)} not formatted")
    return 1 if differing else 0


def differs(tool: str, name: str) -> bool:
    return subprocess.run([tool, "--dry-run", "--Werror", name], cwd=project.ROOT,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0


if __name__ == "__main__":
    sys.exit(main())
