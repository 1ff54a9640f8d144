"""Runs small workloads of well-known patterns at 1, 2 and 4 threads, and compares time and peak memory.

Each does the same work whatever the number of threads. What each one does stands at the top of its file in
bench/workloads.
"""

import statistics
from pathlib import Path

from common import question, tables
from common.names import select
from common.programs import build_program
from reheap_lab import verdicts
from reheap_lab.results import Comparison

SOURCES = ["larson.c", "producer_consumer.c", "cache_scratch.c", "random_sizes.c", "containers.cpp", "growing.c",
           "large_blocks.c", "torture.c"]
WORKLOADS = {Path(source).stem: source for source in SOURCES}
THREADS = [1, 2, 4]


def ratio_rows(results: dict[str, Comparison], figure: str, scale: float, digits: int) -> list[list[str]]:
    """The first allocator's figure, and each other one's ratio to it."""
    base, *others = [one.name for one in next(iter(results.values())).subjects]
    rows, ratios = [], {name: [] for name in others}
    for title, made in results.items():
        row = [title, tables.cells(tables.of(made, figure, base), digits, scale)[0]]
        for name in others:
            found = verdicts.ratio(made, figure, name, base)
            ratios[name] += [found.middle] if found else []
            row.append(tables.cells(found, 2)[0])
        rows.append(row)
    means = [tables.number(statistics.geometric_mean(ratios[name]) if ratios[name] else None) for name in others]
    return [*rows, ["geometric mean", "", *means]]


def main(arguments: list[str]) -> int:
    parser = question.parser("synthetic", __doc__, rounds=3)
    parser.add_argument("--only", default="", metavar="WORKLOAD,...", help="only these: " + ", ".join(WORKLOADS))
    asked = question.ask(parser, arguments)
    results = {f"{name} {threads}": asked.compare(f"{name} {threads}", [build_program(WORKLOADS[name]), threads])
               for name in select(asked.given.only, WORKLOADS, "workload") for threads in THREADS}
    base, *others = [allocator.name for allocator in asked.allocators]
    for figure, title, scale, digits in (("wall_s", "wall time, s", 1, 2),
                                         ("peak_rss_kib", "peak resident memory, MiB", 1 / 1024, 1)):
        tables.show([title, base, *(f"x {name}" for name in others)], ratio_rows(results, figure, scale, digits))
        print()
    print(f"Ratios to the system heap, taken round by round; rounds: {asked.rounds}, interleaved.")
    return asked.end()
