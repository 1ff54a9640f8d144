#!/usr/bin/env python3
"""Counts the instructions of malloc and free on their shortest ways, by callgrind.

Two run lengths are compared, so that what remains is the loop: one call of malloc and one of free, the
calls themselves and the loop's few instructions included. Callgrind leaves malloc alone (memcheck would
put its own in its place); the witness proves it in the very run that is counted. An allocator that will
not run under valgrind is counted by single-stepping the same program, and marked.
"""

import re
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from common import options, report
from common.allocators import Allocator
from common.errors import BenchError, need_tool, run_main
from common.measuring import measure
from common.paths import PROGRAMS_BUILT
from common.programs import build_program
from common.rounds import SampleFailed, end_progress, show_progress
from common.table import number, render


@dataclass(frozen=True)
class Shortest:
    name: str
    title: str
    pairs_per_turn: int
    turns: tuple[int, int]
    turns_stepped: tuple[int, int]  # stepping costs 20 microseconds an instruction, and is exact


@dataclass(frozen=True)
class Counted:
    name: str
    figures: list[float]
    stepped: bool


PATHS = [
    Shortest("pairs", "malloc(64) + free", 1, (20_000, 120_000), (200, 2_200)),
    Shortest("mixed", "100 mixed, then freed", 100, (500, 2_500), (10, 50)),
]


Counter = Callable[[Allocator, list[str]], int]


def by_callgrind(allocator: Allocator, program: list[str]) -> int:
    """All instructions of one run of `program` under `allocator`."""
    log = PROGRAMS_BUILT / "callgrind.log"
    valgrind = [need_tool("valgrind", "valgrind"), "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    measure([*valgrind, f"--log-file={log}", *program], allocator)
    counted = re.search(r"Collected\s*:\s*(\d+)", log.read_text())
    if not counted:
        raise BenchError(f"callgrind reported no instructions; see {log}")
    return int(counted.group(1))


def by_steps(allocator: Allocator, program: list[str]) -> int:
    """The same by single-stepping. The stepper runs under `allocator` too, which does not matter."""
    count = PROGRAMS_BUILT / "steps.count"
    measure([build_program("steps.c"), count, *program], allocator)
    return int(count.read_text())


def per_pair(count: Counter, allocator: Allocator, path: Shortest) -> float:
    program = str(build_program("fast_path.c"))
    few, many = path.turns if count is by_callgrind else path.turns_stepped
    counted = [count(allocator, [program, path.name, str(turns)]) for turns in (few, many)]
    return (counted[1] - counted[0]) / ((many - few) * path.pairs_per_turn)


def count_all(allocators: list[Allocator]) -> tuple[list[Counted], dict[str, str]]:
    """The counts, fewest first, and the allocators that could not be counted either way."""
    counts, missing = [], {}
    for allocator in allocators:
        reasons = []
        for count in (by_callgrind, by_steps):
            show_progress(f"fast-path: {allocator} {count.__name__.replace('_', ' ')}")
            try:
                figures = [per_pair(count, allocator, path) for path in PATHS]
            except SampleFailed as reason:
                reasons.append(f"{count.__name__.replace('_', ' ')}: {reason}")
                continue
            counts.append(Counted(allocator.name, figures, count is by_steps))
            break
        else:
            missing[allocator.name] = "; ".join(reasons)
    end_progress()
    return sorted(counts, key=lambda one: one.figures[0]), missing


def main(arguments: list[str] | None = None) -> int:
    given = options.read(options.parser("fast-path", __doc__, rounds=1), arguments)
    choice = given.allocators()
    counts, failed = count_all(choice.allocators)
    missing = choice.missing | failed
    rows = [[one.name + " *" * one.stepped, *(number(figure, 1) for figure in one.figures)] for one in counts]
    print(render(["instructions a pair", *(path.title for path in PATHS)], rows))
    if any(one.stepped for one in counts):
        print("* does not run under valgrind; counted by single-stepping")
    if missing:
        print(report.not_measured(missing))
    if given.export:
        report.export(given.export, "fast-path", choice.allocators, missing, [asdict(one) for one in counts])
    return 1 if "reheap" in missing else 0


if __name__ == "__main__":
    run_main(main)
