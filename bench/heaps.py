"""First-class heaps: what it costs to make, fill, churn and destroy one, with 1, 1,000 and a million blocks.

Compared are reheap's bound and shared heaps and the thread's own, mimalloc's heaps and the thread's own, and an arena
that cannot free (std::pmr::monotonic_buffer_resource). Times are medians over interleaved rounds; instructions are
callgrind's, of two run lengths, so that what remains is the steps alone.
"""

import json
import re
import statistics
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from common import question, tables
from common.programs import build_program
from common.subjects import REHEAP
from common.work import LONGEST_RUN_S
from registries import need_tool
from reheap_lab.errors import LabError

STEPS = ["create", "fill", "churn", "destroy"]
# Blocks in a heap; repetitions in one run that is timed, and in two that are counted.
CELLS = {1: (2_000, (10, 30)), 1_000: (300, (10, 30)), 1_000_000: (5, (1, 2))}
# A line of callgrind_annotate's about the step itself, not about one who calls it.
FUNCTION = re.compile(rf"^ *([\d,]+) (?!.*=>).*heaps\.cpp:\(anonymous namespace\)::({'|'.join(STEPS)})\(", re.M)
OF_REHEAP, OF_MIMALLOC, ARENA = ["bound", "shared", "thread"], ["heap", "own"], "arena"


@dataclass(frozen=True)
class Kind:
    allocator: str
    name: str
    library: str

    @property
    def title(self) -> str:
        return f"{self.allocator}, {self.name}" if self.allocator else self.name

    def run(self, blocks: int, repetitions: int, before: list[str] | None = None) -> list[float]:
        """The figures of each step, in ns, and how many heaps there were at a time."""
        program = [str(build_program("heaps.cpp")), self.name, self.library, str(blocks), str(repetitions)]
        done = subprocess.run([*(before or []), *program], capture_output=True, text=True, timeout=LONGEST_RUN_S)
        if done.returncode != 0:
            raise LabError(f"{self.title} with {blocks} blocks: {done.stderr.strip()[-300:]}")
        return [float(figure) for figure in done.stdout.split()]


def kinds_of(allocators: list) -> list[Kind]:
    """All that the allocators have heaps of; the arena last."""
    found = []
    for one in allocators:
        names = OF_REHEAP if one.name == REHEAP else OF_MIMALLOC if "mimalloc" in one.name else []
        found += [Kind(one.name, name, str(one.libraries[0])) for name in names]
    return [*found, Kind("", ARENA, "-")]


def timed(kinds: list[Kind], blocks: int, rounds: int) -> dict[Kind, list[float]]:
    runs = {kind: [] for kind in kinds}
    for number in range(rounds):
        for kind in kinds if number % 2 == 0 else reversed(kinds):
            runs[kind].append(kind.run(blocks, CELLS[blocks][0])[:len(STEPS)])
    return {kind: [statistics.median(figures) for figures in zip(*of)] for kind, of in runs.items()}


def instructions(kind: Kind, blocks: int, repetitions: int) -> tuple[list[int], int]:
    """Of each step, of all heaps and repetitions; and the number of heaps."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "out")
        valgrind = [need_tool("valgrind", "valgrind"), "--tool=callgrind", f"--callgrind-out-file={log}"]
        heaps = int(kind.run(blocks, repetitions, valgrind)[-1])
        text = subprocess.run([need_tool("callgrind_annotate", "valgrind"), "--inclusive=yes", "--threshold=100", log],
                              capture_output=True, text=True, check=True).stdout
    found = {step: count for count, step in FUNCTION.findall(text)}
    return [int(found.get(step, "0").replace(",", "")) for step in STEPS], heaps


def counted(kind: Kind, blocks: int) -> list[float]:
    few, many = CELLS[blocks][1]
    less, _ = instructions(kind, blocks, few)
    more, heaps = instructions(kind, blocks, many)
    made = (many - few) * heaps
    return [(b - a) / made / (blocks if step in ("fill", "churn") else 1) for step, a, b in zip(STEPS, less, more)]


def show(title: str, figures: dict[Kind, list[float]], digits: int) -> None:
    tables.show([title, *(f"{step} a {'block' if step in ('fill', 'churn') else 'heap'}" for step in STEPS)],
                [[kind.title, *(tables.number(None if kind.name == ARENA and step == "churn" else figure, digits)
                                for step, figure in zip(STEPS, of))] for kind, of in figures.items()])
    print()


def main(arguments: list[str]) -> int:
    asked = question.ask(question.parser("heaps", __doc__, rounds=5), arguments)
    kinds = kinds_of(asked.allocators)
    told = []
    for blocks in list(CELLS)[:-1 if asked.quick else None]:
        times = timed(kinds, blocks, asked.rounds)
        counts = {kind: counted(kind, blocks) for kind in kinds}
        show(f"{blocks:,} blocks a heap: ns", times, 1)
        show(f"{blocks:,} blocks a heap: instructions", counts, 1)
        told += [{"kind": kind.title, "blocks": blocks, "ns": times[kind], "instructions": counts[kind]}
                 for kind in kinds]
    if asked.export:
        asked.export.mkdir(parents=True, exist_ok=True)
        (asked.export / "heaps.json").write_text(json.dumps(told, indent=1) + "\n")
    return asked.end()
