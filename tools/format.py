#!/usr/bin/env python3
"""Formats the project's C and C++ files with clang-format 19, or with --check names those that differ."""

import argparse
import re
import shutil
import subprocess
import sys

import project

SUFFIXES = {".c", ".cc", ".cpp", ".h", ".hpp"}
DIFFERS = re.compile(r"^(?P<name>.+?):\d+:\d+: error: ", re.MULTILINE)


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
    checked = subprocess.run([tool, "--dry-run", "--Werror", *sources], cwd=project.ROOT, stdin=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True)
    differing = sorted({said["name"] for said in DIFFERS.finditer(checked.stderr)})
    if checked.returncode != 0 and not differing:
        print(checked.stderr, file=sys.stderr)
        return 1
    for name in differing:
        print(f"fmt: {name} is not formatted; ./dev fmt formats it")
    print(f"fmt: {len(sources)} files looked at, {len(differing)} not formatted")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
