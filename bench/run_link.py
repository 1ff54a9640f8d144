#!/usr/bin/env python3
"""Links a real C++ library with LLD and ThinLTO on the system heap and on reheap, and compares them.

Rounds are interleaved after a warm-up; each run is proven to be served by the allocator it stands for,
and all outputs must be the same bytes.
"""

import hashlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from common import options, report
from common.allocators import Allocator
from common.errors import BenchError, run_main
from common.measuring import Sample, measure
from common.paths import CORPUS
from common.rounds import end_progress, interleave, show_progress
from corpus import link_command, prepare_corpus


class Link:
    """The link, and the outputs seen so far."""

    def __init__(self, objects: list[Path]):
        self.objects = objects
        self.digests: dict[str, set[str]] = {}

    def run(self, allocator: Allocator) -> Sample:
        output = CORPUS / f"linked-{allocator.name}.so"
        output.unlink(missing_ok=True)
        sample = measure(link_command(self.objects, output), allocator)
        self.digests.setdefault(hashlib.sha256(output.read_bytes()).hexdigest(), set()).add(allocator.name)
        output.unlink()
        return sample

    def check_outputs(self) -> str:
        if len(self.digests) != 1:
            groups = "; ".join(", ".join(sorted(names)) for names in self.digests.values())
            raise BenchError(f"the linked libraries differ between allocators: {groups}")
        return next(iter(self.digests))


def main(arguments: list[str] | None = None) -> int:
    given = options.read(options.parser("link", __doc__, rounds=5), arguments)
    choice = given.allocators()
    link = Link(prepare_corpus())
    runs = (given.rounds + 1) * len(choice.allocators)
    names = ", ".join(map(str, choice.allocators))
    print(f"ThinLTO link of {len(link.objects)} files, {runs} runs on: {names}", flush=True)
    samples, failed = interleave(choice.allocators, given.rounds, link.run, progress=show_progress)
    end_progress()
    missing = choice.missing | {choice.allocators[i].name: why for i, why in failed.items()}
    digest = link.check_outputs()
    print(f"\n{report.tables(choice.allocators, samples)}\n")
    print(f"Ratios are taken round by round; rounds: {given.rounds}, interleaved, after a warm-up.")
    print(f"Every run was served by the allocator it is listed under. Same output everywhere: {digest[:16]}.")
    if missing:
        print(report.not_measured(missing))
    if given.export:
        results = report.rows_as_json(choice.allocators, samples)
        report.export(given.export, "link", choice.allocators, missing, results)
    return 1 if "reheap" in missing or 0 in failed else 0


if __name__ == "__main__":
    run_main(main)
