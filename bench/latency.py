"""How long each single malloc and free takes, under load: the median, the rare slow ones, and the longest.

Threads with growing and shrinking sets of blocks, blocks that other threads free, and short-lived threads beside them
(see bench/workloads/latency.c, which also says how calls that the kernel disturbed are told apart, and what cannot be
told). The histograms of all rounds are added up. Shown: quantiles of malloc and of free, of all calls and of those
without a page fault or an involuntary switch, and the calls above 100 us by what happened in them. The figures and the
plot go to files.
"""

import json
from collections import defaultdict
from pathlib import Path

import environment
from common import histograms, question, tables
from common.histograms import Histogram
from common.numbers import positive
from common.paths import WORKLOADS_BUILT
from common.programs import build_program
from common.work import Work
from reheap_lab.allocators import Allocator
from reheap_lab.workload import Extra, Outcome, read_text

THREADS, MILLIONS, ROUNDS = 4, 34, 3  # together, a hundred million calls
QUICK_MILLIONS = 2
CALLS = ("malloc", "free")
KINDS = {"all": "all calls", "undisturbed": "without a fault or an involuntary switch"}
CAUSES = {"nothing": "nothing seen", "waited": "waited", "switched": "switched away", "faulted": "page fault"}
QUANTILES = {"p50": 0.5, "p99": 0.99, "p99.99": 0.9999}
Told = dict[str, list[dict]]  # by allocator, what the program printed in each run that counts


def recording(told: Told) -> type[Work]:
    """Keeps what each run printed. The run that proves the allocator is disturbed by that, and is left out."""

    class Recording(Work):
        def run_prepared(self, allocator: Allocator, extra: Extra | None = None) -> Outcome:
            outcome = super().run_prepared(allocator, extra)
            outcome.printed = None
            if outcome.failed is None and not (extra and extra.prove):
                try:
                    printed = json.loads(read_text(self.path("stdout")))
                    outcome.measured.figures |= figures_of(printed)
                    told[allocator.name].append(printed)
                except (KeyError, ValueError) as error:
                    outcome.failed = f"what it printed makes no figures: {error}"
            return outcome

    return Recording


def figures_of(printed: dict) -> dict[str, float]:
    """Seconds, for the export of the comparison; a histogram without calls has none."""
    return {f"{call}_{kind}_{name}_s": value / 1e9 for call in CALLS for kind in KINDS
            for name, value in row_of(Histogram.read(printed[call][kind])).items() if value is not None}


def row_of(made: Histogram) -> dict[str, float | None]:
    """Nanoseconds by the names of the columns."""
    return {name: made.quantile(share) for name, share in QUANTILES.items()} | {"longest": made.longest_ns}


def added_up(told: Told, call: str, kind: str) -> dict[str, Histogram]:
    return {name: histograms.added([Histogram.read(run[call][kind]) for run in runs])
            for name, runs in told.items() if runs}


def quantile_rows(names: list[str], found: dict[str, Histogram]) -> list[list[str]]:
    """In microseconds."""
    rows = []
    for name in names:
        values = row_of(found[name]) if name in found else dict.fromkeys((*QUANTILES, "longest"))
        rows.append([name, *(tables.number(value and value / 1e3, 2) for value in values.values())])
    return rows


def long_rows(names: list[str], told: Told, call: str) -> list[list[str]]:
    """How many calls were long, by what happened in them."""
    return [[name, *(tables.number(sum(run[call]["longer"][cause] for run in told[name]) if told.get(name) else None, 0)
                     for cause in CAUSES)] for name in names]


def show(names: list[str], told: Told) -> None:
    for call in CALLS:
        for kind, title in KINDS.items():
            tables.say(f"{call}, {title}\n")
            tables.show(["microseconds", *QUANTILES, "longest"], quantile_rows(names, added_up(told, call, kind)))
            print()
        tables.say(f"{call}, calls above 100 us by what happened in them\n")
        tables.show(["calls", *CAUSES.values()], long_rows(names, told, call))
        print()


def as_json(names: list[str], told: Told) -> dict:
    return {call: {kind: {name: histogram.as_json() | {"quantiles_ns": row_of(histogram)}
                          for name, histogram in added_up(told, call, kind).items()} for kind in KINDS}
            | {"above_100_us": {name: {cause: sum(run[call]["longer"][cause] for run in told[name])
                                       for cause in CAUSES} for name in names if told.get(name)}} for call in CALLS}


def save(names: list[str], told: Told, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "latency.json").write_text(json.dumps(as_json(names, told), indent=1) + "\n")
    environment.install_reports_own()
    import latency_plot
    panels = {f"{call}, {title}": added_up(told, call, kind) for call in CALLS for kind, title in KINDS.items()}
    latency_plot.draw(panels, names, folder / "latency.svg")
    print(f"saved: {folder / 'latency.json'}, {folder / 'latency.svg'}")


def parse(arguments: list[str]) -> question.Question:
    parser = question.parser("latency", __doc__, rounds=ROUNDS)
    parser.add_argument("--threads", type=positive, default=THREADS, help=f"workers (default {THREADS})")
    parser.add_argument("--millions", type=positive,
                        help=f"of calls in each run (default {MILLIONS}, quick {QUICK_MILLIONS})")
    parser.add_argument("--save", type=Path, metavar="FOLDER", default=WORKLOADS_BUILT / "latency-results",
                        help="where the histograms (JSON) and the plot (SVG) go (default %(default)s)")
    asked = question.ask(parser, arguments)
    asked.given.millions = asked.given.millions or (QUICK_MILLIONS if asked.quick else MILLIONS)
    return asked


def main(arguments: list[str]) -> int:
    asked = parse(arguments)
    told: Told = defaultdict(list)
    command = [build_program("latency.c"), asked.given.threads, asked.given.millions * 1_000_000]
    asked.compare(f"{asked.given.threads} threads", command, recording(told), warmups=0)
    names = [one.name for one in asked.allocators]
    show(names, told)
    tables.say(f"{asked.given.threads} threads, {asked.given.millions} million calls a run; rounds: {asked.rounds}, "
               "interleaved and added up.")
    save(names, told, asked.given.save)
    return asked.end()
