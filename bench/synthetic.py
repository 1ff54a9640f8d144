#!/usr/bin/env python3
"""Runs small workloads of well-known patterns at 1, 2 and 4 threads, and compares time and peak memory.

Each does the same work whatever the number of threads. What each one does stands at the top of its file
in bench/programs.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from common import options, report
from common.allocators import Allocator
from common.errors import BenchError, run_main
from common.measuring import Sample, measure
from common.programs import build_program
from common.report import PEAK, WALL, Metric, compare
from common.rounds import end_progress, interleave, show_progress
from common.statistics import geometric_mean
from common.table import number, render

SOURCES = [
    "larson.c",
    "producer_consumer.c",
    "cache_scratch.c",
    "random_sizes.c",
    "containers.cpp",
    "growing.c",
    "large_blocks.c",
    "torture.c",
]
WORKLOADS = {Path(source).stem: source for source in SOURCES}
THREADS = [1, 2, 4]


@dataclass(frozen=True)
class Result:
    workload: str
    threads: int
    samples: list[list[Sample | None]]

    @property
    def title(self) -> str:
        return f"{self.workload} {self.threads}"


def run_workload(workload: str, threads: int, allocators: list[Allocator], rounds: int, missing: dict) -> Result:
    program = build_program(WORKLOADS[workload])
    samples, failed = interleave(
        allocators,
        rounds,
        lambda allocator: measure([program, str(threads)], allocator),
        progress=lambda text: show_progress(f"{workload}, threads: {threads}, {text}"),
    )
    end_progress()
    for index, reason in failed.items():
        missing[f"{allocators[index].name} in {workload} {threads}"] = reason
    return Result(workload, threads, samples)


def ratio_table(results: list[Result], allocators: list[Allocator], metric: Metric) -> str:
    """The system heap's figure, and each other allocator's median ratio to it."""
    others = [allocator.name for allocator in allocators[1:]]
    header = [metric.title, allocators[0].name, *(f"x {name}" for name in others)]
    rows, ratios = [], {name: [] for name in others}
    for result in results:
        system, *rest = compare(allocators, result.samples, metric)
        cells = [number(system.values.median if system.values else None, metric.digits)]
        for row in rest:
            if row.ratio:
                ratios[row.name].append(row.ratio.median)
            cells.append(number(row.ratio.median if row.ratio else None))
        rows.append([result.title, *cells])
    means = [number(geometric_mean(ratios[name])) for name in others]
    return render(header, [*rows, ["geometric mean", "", *means]])


def select(text: str) -> list[str]:
    names = text.split(",") if text else list(WORKLOADS)
    unknown = [name for name in names if name not in WORKLOADS]
    if unknown:
        raise BenchError(f"unknown workload {', '.join(unknown)}; known: {', '.join(WORKLOADS)}")
    return names


def main(arguments: list[str] | None = None) -> int:
    parser = options.parser("synthetic", __doc__, rounds=3)
    parser.add_argument("--only", default="", metavar="WORKLOAD,...", help="only these: " + ", ".join(WORKLOADS))
    given = options.read(parser, arguments)
    workloads = select(given.rest.only)
    choice = given.allocators()
    missing = dict(choice.missing)
    results = [
        run_workload(workload, threads, choice.allocators, given.rounds, missing)
        for workload in workloads
        for threads in THREADS
    ]
    for metric in (WALL, PEAK):
        print(ratio_table(results, choice.allocators, metric) + "\n")
    print(f"Median ratios to the system heap, taken round by round; rounds: {given.rounds}, interleaved.")
    if missing:
        print(report.not_measured(missing))
    if given.export:
        values = {result.title: report.rows_as_json(choice.allocators, result.samples) for result in results}
        report.export(given.export, "synthetic", choice.allocators, missing, values)
    return 1 if any(name.split()[0] == "reheap" for name in missing) else 0


if __name__ == "__main__":
    run_main(main)
