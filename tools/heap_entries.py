#!/usr/bin/env python3
"""Whether the heap functions of an ntdll.dll that reheap replaces are where its two heaps part: heap_entries.py [NTDLL]

Of 64 bits, and without NTDLL Microsoft's own that tools/fetch_windows.py brings. For each function: at which distance
from its entry it asks whether the handle is a segment heap's (which has a mark in it), and what it goes to that nobody
else enters. Then who enters around them."""

import argparse
import bisect
import collections
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests/support"))
import fetch_windows  # noqa: E402
from pe import Image  # noqa: E402

EXCEPTIONS = 3  # the directory that tells where functions begin and end
MARK = "$0xddeeddee"
IN_BOTH = ("RtlAllocateHeap", "RtlReAllocateHeap", "RtlFreeHeap")  # each heap has its own
INSTRUCTION = re.compile(r"\s*([0-9a-f]+):\s+(\S+)\s*(\S.*)?")
TARGET = re.compile(r"0x([0-9a-f]+)\b(?!\()")


class Code:
    """The functions of an image, from its base: which asks for the mark where, and who enters whom."""

    def __init__(self, file: pathlib.Path, disassembler: str):
        self.image = Image(file.read_bytes())
        self.names = {place: name for name, place in self.image.exported_functions().items()}
        begin, size = self.image.directory(EXCEPTIONS)
        entries = [self.image.read("III", self.image.offset(begin + at)) for at in range(0, size, 12)]
        self.entries = sorted(entries)
        self.asks: dict[int, int] = {}
        self.callers: dict[int, set[int]] = collections.defaultdict(set)
        with subprocess.Popen([disassembler, "-d", "--no-show-raw-insn", file], stdout=subprocess.PIPE,
                              text=True) as process:
            for line in process.stdout:
                if found := INSTRUCTION.match(line):
                    self.take(int(found[1], 16) - self.image.base, found[2], found[3] or "")

    def take(self, place: int, operation: str, operands: str) -> None:
        function = self.function_of(place)
        if MARK in operands:
            self.asks.setdefault(function, place)
        if operation.startswith(("call", "j")) and (target := TARGET.match(operands)):
            entered = int(target[1], 16) - self.image.base
            if self.function_of(entered) != function:
                self.callers[entered].add(function)

    def function_of(self, place: int) -> int:
        """Its entry; code set apart belongs to the function it was taken from. What has no entry stands for itself."""
        found = bisect.bisect_right(self.entries, (place, 2 ** 32, 2 ** 32)) - 1
        if found < 0 or place >= self.entries[found][1]:
            return place
        begin, _, unwinding = self.entries[found]
        while (at := self.image.offset(unwinding)) and self.image.read("B", at) >> 3 & 4:  # chained
            codes = self.image.read("B", at + 2) + 1 & ~1
            begin, _, unwinding = self.image.read("III", at + 4 + 2 * codes)
        return begin


def replaced() -> list[str]:
    return re.findall(r'\{"(Rtl\w+)", ', (ROOT / "redirect/heap/names.cpp").read_text())


def report(code: Code) -> bool:
    """Prints a line for each function. Whether each that both heaps have leads into both, and nobody goes around."""
    places = {name: place for place, name in code.names.items()}
    entries = {places[name] for name in replaced() if name in places}
    inner = {target for target, callers in code.callers.items() if callers & entries and target not in code.names}
    whole = True
    for name in replaced():
        place = places.get(name)
        asks = f"asks at +{code.asks[place] - place:#x}" if place in code.asks else "does not ask itself"
        own = sorted(target for target in inner if place in code.callers[target]
                     and code.callers[target] <= entries | inner)
        print(f"{name:<26}{asks:<22}{' '.join(map(hex, own))}" if place else f"{name:<26}is not there")
        whole = whole and (name not in IN_BOTH or (place in code.asks and len(own) > 1))
    return whole


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/heap_entries.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ntdll", nargs="?", type=pathlib.Path)
    file = parser.parse_args().ntdll or fetch_windows.fetch("llvm") / "ntdll.dll"
    disassembler = shutil.which("llvm-objdump-19") or shutil.which("llvm-objdump")
    if disassembler is None:
        print("heap_entries: llvm-objdump is not installed; install it: apt-get install llvm-19", file=sys.stderr)
        return 2
    whole = report(Code(file, disassembler))
    print("nobody goes around the entries" if whole else "the entries are not where the two heaps part")
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
