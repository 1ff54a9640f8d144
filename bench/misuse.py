"""Which misuse of memory an allocator stops: overflows, writes after free, frees of the wrong pointer in the wrong way.

Each is tried in a process of its own, most of them with blocks of three sizes (24, 3,000 and 200,000 bytes); see
tests/hardened/misuse.cpp. Counted is what ended the process or could do nothing. reheap's hardened build is asked with
REHEAP_STRICT=1, and without.
"""

import re
import tempfile
from pathlib import Path

from common import question, tables
from common.paths import BUILD, ROOT
from common.programs import build
from common.subjects import REHEAP, prove
from common.work import run_once
from reheap_lab.allocators import Allocator
from reheap_lab.errors import LabError

HARDENED = BUILD / "release" / "lib" / "libreheap-hardened.so"
SOURCE = ROOT / "tests" / "hardened" / "misuse.cpp"
LINE = re.compile(r"^(\w+)(?:\.(\w+))?\s+(stopped|harmless|unnoticed)$", re.MULTILINE)


def hardened() -> list[Allocator]:
    if not HARDENED.is_file():
        raise LabError(f"there is no {HARDENED.name}; run: ./dev build release")
    return [Allocator(f"{REHEAP}-hardened", (HARDENED,)),
            Allocator(f"{REHEAP}-strict", (HARDENED,), variables=(("REHEAP_STRICT", "1"),))]


def outcomes_in(printed: str) -> dict[str, list[bool]]:
    """Of each crime, for each size, whether it came to nothing."""
    found: dict[str, list[bool]] = {}
    for name, _, outcome in LINE.findall(printed):
        found.setdefault(name, []).append(outcome != "unnoticed")
    return found


def outcomes_of(allocator: Allocator) -> dict[str, list[bool]]:
    program = build(SOURCE, flags=["-fsized-deallocation"])
    with tempfile.TemporaryDirectory() as folder:
        printed, _ = run_once([program], allocator, Path(folder))
    return outcomes_in(printed)


def show(found: dict[str, dict[str, list[bool]]]) -> None:
    crimes = list(next(iter(found.values())))
    rows = [[crime.replace("_", " "), *(f"{sum(of[crime])} of {len(of[crime])}" for of in found.values())]
            for crime in crimes]
    sums = [f"{sum(map(sum, of.values()))} of {sum(map(len, of.values()))}" for of in found.values()]
    tables.show(["stopped or harmless", *found], [*rows, ["all", *sums]])


def main(arguments: list[str]) -> int:
    asked = question.ask(question.parser("misuse", __doc__, rounds=1), arguments)
    if not asked.given.without_reheap:
        for allocator in hardened():
            prove(allocator)
            asked.allocators.append(allocator)
    show({allocator.name: outcomes_of(allocator) for allocator in asked.allocators})
    return asked.end()
