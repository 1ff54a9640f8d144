"""Counts the instructions of malloc and free, on their fast paths and where they often leave them, by callgrind.

Two run lengths are compared, so that what remains is the loop: one call of malloc and one of free, the calls themselves
and the loop's few instructions included. Callgrind leaves malloc alone (memcheck would put its own in its place); the
witness proves it in the very run that is counted. An allocator that will not run under valgrind is counted by
single-stepping the same program, and marked.
"""

import json
import re
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from common import question, tables
from common.programs import build_program
from common.work import run_once
from registries import need_tool
from reheap_lab.allocators import Allocator
from reheap_lab.errors import LabError


@dataclass(frozen=True)
class FastPath:
    name: str
    title: str
    pairs_per_iteration: int
    iterations: tuple[int, int]
    iterations_stepped: tuple[int, int]  # stepping costs 20 microseconds an instruction, and is exact


@dataclass(frozen=True)
class Counted:
    name: str
    figures: list[float]
    stepped: bool


PATHS = [
    FastPath("pairs", "malloc(64) + free", 1, (20_000, 120_000), (200, 2_200)),
    FastPath("mixed", "100 mixed, then freed", 100, (500, 2_500), (10, 50)),
    FastPath("kibibytes", "one of 400 of 1 KiB replaced", 1, (20_000, 120_000), (1_000, 3_000)),
    FastPath("pages", "one of 400 of 4 KiB replaced", 1, (20_000, 120_000), (1_000, 3_000)),
]


Counter = Callable[[Allocator, list[str]], int]


def by_callgrind(allocator: Allocator, program: list[str]) -> int:
    """All instructions of one run of `program` under `allocator`."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "callgrind.log")
        valgrind = [need_tool("valgrind", "valgrind"), "--tool=callgrind", "--callgrind-out-file=/dev/null"]
        run_once([*valgrind, f"--log-file={log}", *program], allocator, Path(folder))
        counted = re.search(r"Collected\s*:\s*(\d+)", log.read_text())
    if not counted:
        raise LabError("callgrind reported no instructions")
    return int(counted.group(1))


def by_steps(allocator: Allocator, program: list[str]) -> int:
    """The same by single-stepping. The stepper runs under `allocator` too, which does not matter."""
    with tempfile.TemporaryDirectory() as folder:
        count = Path(folder, "count")
        run_once([build_program("steps.c"), count, *program], allocator, Path(folder))
        return int(count.read_text())


def per_pair(count: Counter, allocator: Allocator, path: FastPath) -> float:
    program = str(build_program("fast_path.c"))
    few, many = path.iterations if count is by_callgrind else path.iterations_stepped
    counted = [count(allocator, [program, path.name, str(iterations)]) for iterations in (few, many)]
    return (counted[1] - counted[0]) / ((many - few) * path.pairs_per_iteration)


def count_all(allocators: list[Allocator]) -> tuple[list[Counted], dict[str, str]]:
    """The counts, fewest first, and the allocators that could not be counted either way."""
    counts, missing = [], {}
    for allocator in allocators:
        reasons = []
        for count in (by_callgrind, by_steps):
            try:
                figures = [per_pair(count, allocator, path) for path in PATHS]
            except LabError as reason:
                reasons.append(f"{count.__name__.replace('_', ' ')}: {reason}")
                continue
            counts.append(Counted(allocator.name, figures, count is by_steps))
            break
        else:
            missing[allocator.name] = "; ".join(reasons)
    return sorted(counts, key=lambda one: one.figures[0]), missing


def main(arguments: list[str]) -> int:
    asked = question.ask(question.parser("fast-path", __doc__, rounds=1), arguments)
    counts, missing = count_all(asked.allocators)
    asked.missing |= missing
    tables.show(["instructions a pair", *(path.title for path in PATHS)],
                [[one.name + " *" * one.stepped, *(tables.number(figure, 1) for figure in one.figures)]
                 for one in counts])
    if any(one.stepped for one in counts):
        tables.say("* does not run under valgrind; counted by single-stepping")
    if asked.export:
        asked.export.mkdir(parents=True, exist_ok=True)
        (asked.export / "fast-path.json").write_text(json.dumps([asdict(one) for one in counts], indent=1) + "\n")
    return asked.end()
