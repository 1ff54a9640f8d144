#!/usr/bin/env python3
"""Checks that what few programs run of libreheap.so stays on disk (src/entry/linux/layout.ld.in): runs a program with
it preloaded that allocates, resizes and frees, and sees which of the library's segments have become resident."""

import argparse
import os
import pathlib
import subprocess
import sys

PROGRAM = """
blocks = [bytearray(size) for size in (*range(1, 40000, 300), 1 << 20)] * 3
for block in blocks:
    block.extend(block)
del blocks
print(open("/proc/self/smaps").read())
"""


def code_segments(smaps: str, library: str) -> list[int]:
    """How many KiB of each are resident, in the order of their addresses."""
    segments, is_code = [], False
    for line in smaps.strip().splitlines():
        words = line.split()
        if not words[0].endswith(":"):
            is_code = words[1].startswith("r-x") and words[-1] == library
        elif is_code and words[0] == "Rss:":
            segments.append(int(words[1]))
    return segments


def problem(library: str) -> str | None:
    path = str(pathlib.Path(library).resolve())
    environment = {**os.environ, "LD_PRELOAD": path, "PYTHONMALLOC": "malloc"}
    smaps = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True, capture_output=True, text=True)
    segments = code_segments(smaps.stdout, path)
    if len(segments) < 2 or segments[0] == 0:
        return f"has no second segment of code in use: {segments}"
    if segments[1] != 0:
        return (f"has {segments[1]} KiB of what few programs run resident; `perf record -e page-faults -d` shows which"
                " function was called, which is to be marked RH_AT_START, or its file to leave the list")
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library")
    library = parser.parse_args().library
    found = problem(library)
    print(f"{library} {found}" if found else f"{library}: what few programs run is not resident")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
