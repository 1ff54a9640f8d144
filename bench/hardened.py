"""Counts the instructions of the hardened build beside those of the default build, by callgrind: of one call of each
kind, and of real programs.

A call: malloc and free, new and delete with the size, malloc with a type and free, and a realloc that lengthens a block
by a byte and one that shortens it again. Of each program all processes count; which programs are left out, and why,
`./dev bench watched --help` says.
"""

import statistics
import tempfile
from pathlib import Path

import watched
from common import question, tables
from common.names import select
from common.programs import build_program
from common.subjects import REHEAP, prove
from common.work import run_once
from misuse import HARDENED
from programs import known
from registries import need_tool
from reheap_lab.allocators import Allocator
from reheap_lab.errors import LabError

WAYS = {"malloc": "malloc + free", "new": "new + delete", "typed": "typed malloc + free", "realloc": "realloc, twice"}
SIZES = (16, 64, 256, 1024, 4096)
LENGTHS = (2_000, 12_000)


def one_call(allocator: Allocator, way: str, size: int) -> float:
    """Two run lengths are compared, so that what remains is the loop."""
    few, many = (_instructions(allocator, [str(build_program("calls.cpp")), way, str(size), str(length)])
                 for length in LENGTHS)
    return (many - few) / (LENGTHS[1] - LENGTHS[0])


def _instructions(allocator: Allocator, program: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "callgrind.log")
        valgrind = [need_tool("valgrind", "valgrind"), "--tool=callgrind", "--callgrind-out-file=/dev/null"]
        run_once([*valgrind, f"--log-file={log}", *program], allocator, Path(folder))
        return watched.instructions_in([log.read_text()])


def rows_of(counts: dict[str, tuple[int, int]]) -> list[list[str]]:
    """Of each program both counts, and their ratio; then the geometric mean."""
    rows = [[name, tables.number(plain / 1e6, 0), tables.number(hardened / 1e6, 0),
             tables.number(hardened / plain, 3)] for name, (plain, hardened) in counts.items()]
    mean = statistics.geometric_mean(hardened / plain for plain, hardened in counts.values())
    return [*rows, ["geometric mean", "", "", tables.number(mean, 3)]]


def main(arguments: list[str]) -> int:
    parser = question.parser("hardened", f"{__doc__}\n--quick: the calls alone.\n", rounds=1)
    parser.add_argument("--only", default="", metavar="PROGRAM,...", help="only these: " + ", ".join(known()))
    asked = question.ask(parser, arguments)
    if not HARDENED.is_file():
        raise LabError(f"there is no {HARDENED.name}; run: ./dev build release")
    hardened = Allocator(f"{REHEAP}-hardened", (HARDENED,))
    prove(hardened)
    both = (next(one for one in asked.allocators if one.name == REHEAP), hardened)
    for way, title in WAYS.items():
        tables.show([f"instructions: {title}", *(f"{size} bytes" for size in SIZES)],
                    [[one.name, *(tables.number(one_call(one, way, size), 0) for size in SIZES)] for one in both])
    counts = {}
    for name in () if asked.quick else select(asked.given.only, known(), "program", watched.PROGRAMS):
        print(f"{name}: {known()[name].about}", flush=True)
        try:
            counts[name] = tuple(watched.count(name, one) for one in both)
        except LabError as reason:
            asked.missing[name] = str(reason)
    if counts:
        tables.show(["million instructions", *(one.name for one in both), "ratio"], rows_of(counts))
    return asked.end()
