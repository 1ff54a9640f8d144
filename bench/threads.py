#!/usr/bin/env python3
"""What an allocator adds to a thread's birth and death: threads that do a few operations and end.

A thread without any operation shows what the allocator does for threads that never use it.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from common import options, report
from common.allocators import REHEAP, Allocator
from common.errors import run_main
from common.measuring import Sample, measure
from common.programs import build_program
from common.rounds import end_progress, interleave, show_progress

THREADS = 10_000
OPERATIONS = [0, 1, 8, 100]
EACH = report.Metric("thread_us", "us a thread", lambda sample: int(sample.output) / 1000, 2)
CPU = report.Metric("cpu_us", "CPU us a thread", lambda sample: sample.cpu_s / THREADS * 1e6, 2)
METRICS = [EACH, CPU, report.PEAK]


def run(allocator: Allocator, operations: int) -> Sample:
    program = build_program("thread_churn.c")
    return measure([program, str(THREADS), str(operations)], allocator, keep_output=True)


def main(arguments: list[str] | None = None) -> int:
    given = options.read(options.parser("threads", __doc__, rounds=5), arguments)
    choice = given.allocators()
    missing, exported = dict(choice.missing), {}
    for operations in OPERATIONS:
        samples, failed = interleave(
            choice.allocators,
            given.rounds,
            lambda allocator: run(allocator, operations),
            progress=lambda text: show_progress(f"operations: {operations}, {text}"),
        )
        end_progress()
        title = f"{operations} operations"
        missing |= {f"{choice.allocators[i].name} in {title}": reason for i, reason in failed.items()}
        print(f"{THREADS:,} threads one after another, malloc + free in each: {operations}\n")
        print(report.tables(choice.allocators, samples, METRICS) + "\n")
        exported[title] = report.rows_as_json(choice.allocators, samples, METRICS)
    if missing:
        print(report.not_measured(missing))
    if given.export:
        report.export(given.export, "threads", choice.allocators, missing, exported)
    return 1 if any(name.split()[0] == REHEAP for name in missing) else 0


if __name__ == "__main__":
    run_main(main)
