"""Compares musl's own malloc with reheap preloaded, in programs made for musl: time, and peak resident memory.

The workloads of `synthetic` that are written in C, and real programs (SQLite, Lua, QuickJS, Wasmtime), at 1 and 2
threads: each thread does the same work. The lab's witness is glibc's, so a run under reheap proves itself by the
statistics that the library prints as it ends.
"""

import json
import os
import tempfile
from pathlib import Path
from statistics import median

import musl_programs
import synthetic
from common import question, tables
from common.names import select
from common.numbers import positives
from common.paths import WORKLOADS, WORKLOADS_BUILT
from common.programs import build
from registries import need_tool
from reheap_lab import native, runner, statistics
from reheap_lab.errors import LabError
from reheap_lab.launch import Launch

CONFIDENCE = 0.95
SYNTHETIC = [Path(source).stem for source in synthetic.SOURCES if source.endswith(".c")]
NAMES = [*SYNTHETIC, *musl_programs.PROGRAMS]
QUICK = ["glibc_simple", "larson", "lua"]
FIGURES = (*synthetic.FIGURES, ("cpu_s", "CPU time, s", 1, 2), ("minor_faults", "minor page faults", 1, 0))


def run(command: list, library: Path | None) -> dict[str, float]:
    """The figures of one run, on musl's malloc or on the library's."""
    with tempfile.TemporaryDirectory(prefix="reheap-bench-") as place:
        said = Path(place, "said")
        preload = {"LD_PRELOAD": str(library), "REHEAP_STATS": "1"} if library else {}
        ask = runner.Ask(stdout=os.devnull, stderr=str(said), sample_ms=0)
        made = runner.measure(Launch([str(word) for word in command], preload), ask, Path(place, "record"))
        if failure := made.failure(None):
            raise LabError(f"{command[0]}: {failure}: {said.read_text().strip()}")
        if library and not serves(said.read_text()):
            raise LabError(f"{library} did not serve {command[0]}")
        return made.figures


def serves(said: str) -> bool:
    """By the report that a library which served the process wrote last."""
    try:
        return bool(json.loads(said[said.index("{"):]))
    except ValueError:
        return False


def compare(command: list, library: Path, rounds: int) -> tuple[list[dict[str, float]], ...]:
    """Round by round, musl's own and reheap's by turns."""
    own, ours = [], []
    for turn in range(rounds):
        both = [(None, own), (library, ours)]
        for one, runs in both if turn % 2 else reversed(both):
            runs.append(run(command, one))
    return own, ours


def row(title: str, figure: str, own: list, ours: list, scale: float, digits: int) -> list[str]:
    own, ours = ([figures.get(figure) for figures in runs] for runs in (own, ours))
    if None in (*own, *ours):
        return [title, *[tables.ABSENT] * 3]
    return [title, tables.number(median(own) * scale, digits),
            *tables.cells(statistics.paired_ratio(ours, own, CONFIDENCE), 2)]


def prepare(name: str, compiler: str) -> Path:
    if name in musl_programs.PROGRAMS:
        return musl_programs.prepare(name, compiler)
    return build(WORKLOADS / f"{name}.c", WORKLOADS_BUILT / f"{name}-musl", compiler=compiler)


def main(arguments: list[str]) -> int:
    parser = question.basic_parser("musl", __doc__, rounds=7)
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}")
    parser.add_argument("--only", default="", metavar="WORKLOAD,...", help="only these: " + ", ".join(NAMES))
    parser.add_argument("--threads", type=positives, default=[1, 2], metavar="N,...",
                        help="at these numbers of threads (default 1,2)")
    given = parser.parse_args(arguments)
    compiler, library = need_tool("musl-gcc", "musl-tools"), native.library("libreheap.so")
    chosen = select(given.only, NAMES, "workload", QUICK if given.quick else None)
    measured = {}
    for name in chosen:
        program = prepare(name, compiler)
        for threads in given.threads:
            measured[f"{name} {threads}"] = compare([program, threads], library, given.rounds)
    for figure, title, scale, digits in FIGURES:
        tables.show([title, "musl", "reheap, x musl", f"{100 * CONFIDENCE:g} % interval"],
                    [row(name, figure, *both, scale, digits) for name, both in measured.items()])
        print()
    tables.say(f"Medians, and ratios taken round by round; rounds: {given.rounds}, by turns.")
    return 0
