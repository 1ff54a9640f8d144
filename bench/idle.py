#!/usr/bin/env python3
"""How much memory a process keeps that has freed everything and sleeps.

Four threads take 520 MB in small blocks; all is freed, in one of four ways (see bench/programs/idle.c);
then nobody calls the allocator any more. Shown: resident memory at moments after the last free, as the
share of what the blocks had added.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from common import options, report
from common.allocators import REHEAP, Allocator
from common.errors import run_main
from common.measuring import Sample, measure
from common.programs import build_program
from common.rounds import SampleFailed, end_progress, interleave, show_progress
from common.statistics import summarize
from common.table import number, render

THREADS, MEGABYTES = "4", "520"
MODES = {
    "own": "each thread freed its own blocks",
    "cross": "each thread freed its neighbour's blocks",
    "sleeper": "the main thread freed the blocks of sleeping threads",
    "dead": "the main thread freed the blocks of threads that had ended",
}
MOMENTS = ["after_0_ms", "after_500_ms", "after_1000_ms", "after_2000_ms", "after_3000_ms"]


def resident(sample: Sample) -> dict[str, int]:
    """The program's lines "NAME KIB"."""
    return {name: int(kib) for name, kib in (line.split() for line in sample.output.splitlines())}


def share_left(sample: Sample, moment: str) -> float:
    """Percent of what the blocks had added that is still resident."""
    kib = resident(sample)
    return 100 * (kib[moment] - kib["before"]) / (kib["full"] - kib["before"])


def run(allocator: Allocator, mode: str) -> Sample:
    sample = measure([build_program("idle.c"), mode, THREADS, MEGABYTES], allocator, keep_output=True)
    missing = {"before", "full", *MOMENTS} - resident(sample).keys()
    if missing:
        raise SampleFailed(f"the program did not print {', '.join(sorted(missing))}")
    return sample


def table(allocators: list[Allocator], samples: report.Rows) -> str:
    header = ["resident, % of full", "full MiB", *(moment.removeprefix("after_").replace("_", " ") for moment in MOMENTS)]
    rows = []
    for allocator, own in zip(allocators, samples):
        known = [sample for sample in own if sample is not None]
        full = summarize([resident(sample)["full"] / 1024 for sample in known])
        left = [summarize([share_left(sample, moment) for sample in known]) for moment in MOMENTS]
        cells = [number(one.median if one else None, 1) for one in (full, *left)]
        rows.append([allocator.name, *cells])
    return render(header, rows)


def main(arguments: list[str] | None = None) -> int:
    given = options.read(options.parser("idle", __doc__, rounds=3), arguments)
    choice = given.allocators()
    missing, exported = dict(choice.missing), {}
    for mode, title in MODES.items():
        samples, failed = interleave(
            choice.allocators,
            given.rounds,
            lambda allocator: run(allocator, mode),
            warmups=0,
            progress=lambda text: show_progress(f"{mode}, {text}"),
        )
        end_progress()
        missing |= {f"{choice.allocators[i].name} in {mode}": reason for i, reason in failed.items()}
        print(f"{title}\n\n{table(choice.allocators, samples)}\n")
        exported[mode] = {
            allocator.name: [resident(sample) if sample else None for sample in own]
            for allocator, own in zip(choice.allocators, samples)
        }
    print(f"Medians; rounds: {given.rounds}, interleaved.")
    if missing:
        print(report.not_measured(missing))
    if given.export:
        report.export(given.export, "idle", choice.allocators, missing, exported)
    return 1 if any(name.split()[0] == REHEAP for name in missing) else 0


if __name__ == "__main__":
    run_main(main)
