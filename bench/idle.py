"""How much memory a process keeps that has freed everything and sleeps.

Four threads take 520 MB in small blocks; all is freed, in one of four ways (see bench/workloads/idle.c); then nobody
calls the allocator any more. Shown: resident memory at moments after the last free, as the share of what the blocks had
added.
"""

from common import question, tables
from common.programs import build_program
from common.work import telling
from reheap_lab.results import Comparison

THREADS, MEGABYTES = "4", "520"
MODES = {
    "own": "each thread freed its own blocks",
    "cross": "each thread freed its neighbour's blocks",
    "sleeper": "the main thread freed the blocks of sleeping threads",
    "dead": "the main thread freed the blocks of threads that had ended",
}
MOMENTS = ["after_0_ms", "after_500_ms", "after_1000_ms", "after_2000_ms", "after_3000_ms"]


def figures_of(printed: str) -> dict[str, float]:
    """Of the program's lines "NAME KIB": the memory when all was taken, and percent of what the blocks had added."""
    kib = {name: int(number) for name, number in (line.split() for line in printed.splitlines())}
    added = kib["full"] - kib["before"]
    return {"full_kib": kib["full"]} | {moment: 100 * (kib[moment] - kib["before"]) / added for moment in MOMENTS}


def show(made: Comparison) -> None:
    figures = [("full_kib", 1 / 1024), *((moment, 1) for moment in MOMENTS)]
    header = ["resident, % of full", "full MiB",
              *(moment.removeprefix("after_").replace("_", " ") for moment in MOMENTS)]
    tables.show(header, [[one.name,
                          *(tables.cells(tables.of(made, figure, one.name), 1, scale)[0] for figure, scale in figures)]
                         for one in made.subjects])


def main(arguments: list[str]) -> int:
    asked = question.ask(question.parser("idle", __doc__, rounds=3), arguments)
    program = build_program("idle.c")
    for mode, title in list(MODES.items())[:1 if asked.quick else None]:
        made = asked.compare(mode, [program, mode, THREADS, MEGABYTES], telling(figures_of), warmups=0)
        tables.say(f"{title}\n")
        show(made)
        print()
    tables.say(f"Medians; rounds: {asked.rounds}, interleaved.")
    return asked.end()
