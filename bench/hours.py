"""How much memory a server holds beside what it uses, over days whose sizes shift.

Two threads make calls of malloc and free (see bench/workloads/server_mix.c): in ten days the load rises and falls, and
each day has sizes of its own; what is cached outlives its day. Shown: the most that was live and the most that was
resident, the one over the other, and the mean of resident memory on each day. Who holds no more than it needs goes up
and down with the load; a curve that only rises is memory that other sizes cannot use.
"""

from common import question, tables
from common.numbers import positive
from common.programs import build_program
from common.work import telling
from reheap_lab.results import Comparison

DAYS = 10
MILLIONS, QUICK_MILLIONS = 1000, 50
THREADS = 2
KIB = ["live_peak", "resident_peak", *(f"resident_{day}" for day in range(1, DAYS + 1))]
OVER = "peak_over_live"


def figures_of(printed: str) -> dict[str, float]:
    """Of the program's lines "NAME KIB"."""
    kib = {name: float(number) for name, number in (line.split() for line in printed.splitlines())}
    return {**{name: kib[name] for name in KIB}, OVER: kib["resident_peak"] / kib["live_peak"]}


def show(made: Comparison) -> None:
    def row(name: str, figures: list[str], digits: int, scale: float) -> list[str]:
        return [tables.cells(tables.of(made, figure, name), digits, scale)[0] for figure in figures]
    names = [one.name for one in made.subjects]
    tables.show(["", "peak live, MiB", "peak resident, MiB", "resident / live", "CPU time, s"],
                [[name, *row(name, KIB[:2], 1, 1 / 1024), *row(name, [OVER], 3, 1), *row(name, ["cpu_s"], 1, 1)]
                 for name in names])
    print()
    tables.show(["resident, MiB, on day", *map(str, range(1, DAYS + 1))],
                [[name, *row(name, KIB[2:], 1, 1 / 1024)] for name in names])


def main(arguments: list[str]) -> int:
    parser = question.parser("hours", __doc__, rounds=3)
    parser.add_argument("--millions", type=positive,
                        help=f"of calls (default {MILLIONS}, quick {QUICK_MILLIONS})")
    asked = question.ask(parser, arguments)
    millions = asked.given.millions or (QUICK_MILLIONS if asked.quick else MILLIONS)
    made = asked.compare("server mix", [build_program("server_mix.c"), THREADS, millions], telling(figures_of),
                         warmups=0)
    show(made)
    tables.say(f"\nMedians; {millions} million calls on {THREADS} threads; rounds: {asked.rounds}, interleaved.")
    return asked.end()
