"""How much memory a process keeps when a few blocks of many survive.

`survivors`: phases of one size each, of which one block in every 16 KiB stays alive. `churn_survivors`: 280 MB of
random sizes, of which one block in twenty stays alive (see bench/workloads). Then the process sleeps. Each alone in a
process without threads, and shared by threads that sleep too. Shown: the bytes that are still alive, and resident
memory at once, after two seconds and after ten; and how much of that last figure is memory given back lazily, which
counts as resident until the kernel wants it.
"""

from common import question, tables
from common.programs import build_program
from common.work import telling
from reheap_lab.results import Comparison

PROGRAMS = {
    "survivors.c": "ten phases of one size each; one block in every 16 KiB survived",
    "churn_survivors.c": "280 MB of random sizes; one block in twenty survived",
}
THREADS = {0: "the main thread alone", 2: "two threads, asleep afterwards"}
FIGURES = {"live": "live", "after_0_ms": "at once", "after_2000_ms": "2 s", "after_10000_ms": "10 s",
           "lazy_10000_ms": "of it lazily freed"}


def figures_of(printed: str) -> dict[str, float]:
    """Of the program's lines "NAME KIB"."""
    kib = {name: float(number) for name, number in (line.split() for line in printed.splitlines())}
    return {name: kib[name] for name in FIGURES}


def show(made: Comparison) -> None:
    tables.show(["resident, MiB", *FIGURES.values()],
                [[one.name, *(tables.cells(tables.of(made, figure, one.name), 1, 1 / 1024)[0] for figure in FIGURES)]
                 for one in made.subjects])


def main(arguments: list[str]) -> int:
    asked = question.ask(question.parser("survivors", __doc__, rounds=3), arguments)
    part = slice(1 if asked.quick else None)
    for name, title in list(PROGRAMS.items())[part]:
        program = build_program(name)
        for threads, who in list(THREADS.items())[part]:
            made = asked.compare(f"{program.name} {threads}", [program, threads], telling(figures_of), warmups=0)
            tables.say(f"{title}; {who}\n")
            show(made)
            print()
    tables.say(f"Medians; rounds: {asked.rounds}, interleaved.")
    return asked.end()
