"""What an allocator adds to a program that hardly uses it: peak resident memory and time.

Programs: `true`; one that takes 200 small blocks, alone and on 16 threads. With reheap also `reheap run -- true`, the
command's own cost included. Many short runs, interleaved; differences are taken round by round.
"""

from dataclasses import dataclass
from pathlib import Path

import reheap
from common import question, tables
from common.programs import build_program
from common.subjects import REHEAP
from reheap_lab.allocators import Allocator
from reheap_lab.evidence import Proof
from reheap_lab.launch import Launch
from reheap_lab.results import Comparison

FIGURES = [("peak_rss_kib", "peak KiB", 0, 1), ("wall_s", "wall ms", 2, 1e3), ("cpu_s", "CPU ms", 2, 1e3)]


@dataclass(frozen=True)
class Starter(Allocator):
    """One way of starting a program. Each allocator has been proven already."""

    examined = True
    traced = False
    proves_each_run = True
    prefix: tuple[str, ...] = ()

    def launch(self, command: list[str], evidence: Path) -> Launch:
        preload = ":".join(map(str, self.libraries))
        return Launch([*self.prefix, *command], {"LD_PRELOAD": preload} if preload else {}, [] if preload
                      else ["LD_PRELOAD"])

    def objection(self, proof: dict[str, str]) -> str | None:
        return None

    def warnings(self, proof: Proof) -> list[str]:
        return []


def starters(allocators: list[Allocator]) -> list[Starter]:
    starts = [Starter(one.name, one.libraries, one.version) for one in allocators]
    if any(one.name == REHEAP for one in allocators):
        starts.insert(2, Starter("reheap run --", prefix=(reheap.command(), "run", "--")))
    return starts


def commands() -> dict[str, list[str]]:
    blocks = str(build_program("small_blocks.c"))
    return {"true": ["true"], "200 blocks": [blocks, "0"], "16 threads x 200 blocks": [blocks, "16"]}


def rows(made: Comparison) -> list[list[str]]:
    base, found = made.subjects[0].name, []
    for one in made.subjects:
        row = [one.name]
        for figure, _, digits, scale in FIGURES:
            row.append(tables.cells(tables.of(made, figure, one.name), digits, scale)[0])
            row += ["", ""] if one.name == base else tables.cells(tables.added(made, figure, one.name, base), digits,
                                                                  scale)
        found.append(row)
    return found


def main(arguments: list[str]) -> int:
    asked = question.ask(question.parser("startup", __doc__, rounds=60), arguments)
    starts = starters(asked.allocators)
    for title, command in commands().items():
        made = asked.compare(title, command, allocators=starts, warmups=3)
        header = [title]
        for _, label, _, _ in FIGURES:
            header += [label, "added", f"{100 * made.settings['confidence']:g} % interval"]
        tables.show(header, rows(made))
        print()
    tables.say(f"rounds: {asked.rounds}, interleaved; `added` is against the system heap in the same round.")
    return asked.end()
