#!/usr/bin/env python3
"""What an allocator adds to a program that hardly uses it: peak resident memory and time.

Programs: `true`; one that takes 200 small blocks, alone and on 16 threads. With reheap also
`reheap run -- true`, the command's own cost included. Many short runs, interleaved; differences are taken
round by round, and ranges are those of the middle half.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from common import options, report
from common.allocators import REHEAP, Allocator
from common.errors import run_main
from common.measuring import Sample, measure
from common.paths import REHEAP_COMMAND
from common.programs import build_program
from common.report import metric_values
from common.rounds import end_progress, interleave, show_progress
from common.statistics import middle_half, paired_differences
from common.table import number, render, span

PEAK = report.Metric("peak_kib", "peak, KiB", lambda sample: sample.peak_kib, 0)
CPU = report.Metric("cpu_ms", "CPU, ms", lambda sample: sample.cpu_s * 1000, 2)
WALL = report.Metric("wall_ms", "wall, ms", lambda sample: sample.wall_s * 1000, 2)


@dataclass(frozen=True)
class Starter:
    """One way of starting a program. No witness: it would add its own cost to what is measured, and
    each allocator has been proven already."""

    name: str
    allocator: Allocator
    prefix: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name

    def run(self, command: list[str]) -> Sample:
        return measure([*self.prefix, *command], self.allocator, witness=False)


def starters(allocators: list[Allocator]) -> list[Starter]:
    ways = [Starter(allocator.name, allocator) for allocator in allocators]
    if REHEAP_COMMAND.exists() and any(allocator.name == REHEAP for allocator in allocators):
        ways.insert(2, Starter("reheap run --", allocators[0], (str(REHEAP_COMMAND), "run", "--")))
    return ways


def commands() -> dict[str, list[str]]:
    blocks = str(build_program("small_blocks.c"))
    return {"true": ["true"], "200 blocks": [blocks, "0"], "16 threads x 200 blocks": [blocks, "16"]}


def table(title: str, ways: list[Starter], samples: report.Rows) -> str:
    header = [title, "peak KiB", "added", "middle half", "wall ms", "added", "middle half", "CPU ms", "added", "middle half"]
    rows = []
    for place, (way, own) in enumerate(zip(ways, samples)):
        cells = [way.name]
        for metric in (PEAK, WALL, CPU):
            values, base = metric_values(own, metric), metric_values(samples[0], metric)
            cells += _cells(values, base if place else None, metric.digits)
        rows.append(cells)
    return render(header, rows)


def _cells(values: list, base: list | None, digits: int) -> list[str]:
    middle = middle_half(values)
    cells = [number(middle.median if middle else None, digits)]
    if base is None:
        return [*cells, "", ""]
    added = middle_half(paired_differences(values, base))
    if added is None:
        return [*cells, number(None), number(None)]
    return [*cells, number(added.median, digits), span(added.low, added.high, digits)]


def main(arguments: list[str] | None = None) -> int:
    given = options.read(options.parser("startup", __doc__, rounds=60), arguments)
    choice = given.allocators()
    ways, missing, exported = starters(choice.allocators), dict(choice.missing), {}
    for title, command in commands().items():
        samples, failed = interleave(
            ways, given.rounds, lambda way: way.run(command), warmups=3, progress=show_progress
        )
        end_progress()
        missing |= {f"{ways[index].name} in {title}": reason for index, reason in failed.items()}
        print(table(title, ways, samples) + "\n")
        exported[title] = {
            way.name: {metric.key: metric_values(own, metric) for metric in (PEAK, WALL, CPU)}
            for way, own in zip(ways, samples)
        }
    print(f"rounds: {given.rounds}, interleaved; `added` is against the system heap in the same round.")
    if missing:
        print(report.not_measured(missing))
    if given.export:
        report.export(given.export, "startup", choice.allocators, missing, exported)
    return 1 if any(name.split()[0] == REHEAP for name in missing) else 0


if __name__ == "__main__":
    run_main(main)
