#!/usr/bin/env python3
"""Runs a program under QEMU on a kernel with long pages, and reads QEMU's record of its system calls.

    whole_pages.py KIB EMULATOR... PROGRAM...

QEMU's user mode tells programs that pages are as long as QEMU_PAGESIZE says, and gives address space in multiples of
that; but it refuses no call that such a kernel would refuse, nor does more than what it was asked for, as such a kernel
would. So it fails here if the program makes such a call. It also fails when there is nothing to look at.
"""
import os
import re
import subprocess
import sys
import tempfile

# Their address has to be a multiple of a page; a length that is none is taken for the next longer.
CALL = re.compile(r"\b(mmap|munmap|mprotect|madvise|mremap)\(([^()]*)\)")
# What is done to the rest of the last page then is not meant. (The C library's loader unmaps files by their length.)
CHANGES_PAGES = ("mprotect", "madvise", "mremap")
NEEDED = ("mmap", "mprotect", "madvise")


def number(text):
    """The value of an argument as QEMU writes it; None for names."""
    try:
        return 0 if text == "NULL" else int(text, 0)
    except ValueError:
        return None


def is_whole(call, arguments, page):
    """Whether a kernel with such pages does just what the call says."""
    address, length = number(arguments[0]), number(arguments[1])
    if address is None or length is None:
        return False
    if call == "mmap":
        return "FIXED" not in arguments[3] or address % page == 0
    return address % page == 0 and (call not in CHANGES_PAGES or length % page == 0)


def main():
    kib, command = int(sys.argv[1]), sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        record = os.path.join(folder, "calls")
        environment = {**os.environ, "QEMU_PAGESIZE": str(kib * 1024), "QEMU_STRACE": "1", "QEMU_LOG_FILENAME": record}
        status = subprocess.run(command, env=environment, check=False).returncode
        with open(record, encoding="utf-8", errors="replace") as file:
            text = file.read()
    calls = [(name, arguments.split(",")) for name, arguments in CALL.findall(text)]
    wrong = [f"{name}({','.join(arguments)})" for name, arguments in calls if not is_whole(name, arguments, kib * 1024)]
    missing = [name for name in NEEDED if name not in {call for call, _ in calls}]
    print(f"{len(calls)} calls, {len(wrong)} of them not of whole pages of {kib} KiB")
    for call in wrong[:10]:
        print(f"  {call}")
    for name in missing:
        print(f"  no {name} in the record")
    return 1 if status != 0 or wrong or missing else 0


if __name__ == "__main__":
    sys.exit(main())
