"""What an allocator adds to a thread's birth and death, and what many threads take that live at once.

First threads one after another that do a few operations and end; one without any operation shows what the allocator
does for threads that never use it. Then as many that all live, hold 32 blocks each, half of them another thread's
(bench/workloads/living_threads.c).
"""

from common import question, tables
from common.numbers import positive
from common.programs import build_program
from common.work import telling
from reheap_lab.results import Comparison

THREADS, QUICK_THREADS = 10_000, 1_000
OPERATIONS = [0, 1, 8, 100]


def churn_figures(printed: str) -> dict[str, float]:
    return {"thread_s": int(printed) / 1e9}


def living_figures(printed: str) -> dict[str, float]:
    come, go = map(int, printed.split())
    return {"come_s": come / 1e9, "go_s": go / 1e9}


def show(made: Comparison, threads: int, times: dict[str, str]) -> None:
    for figure, title in times.items():
        tables.show_figure(made, figure, title.ljust(28), 2, 1e6)
    tables.show_figure(made, "cpu_s", "CPU us a thread".ljust(28), 2, 1e6 / threads)
    tables.show_figure(made, "peak_rss_kib", "peak resident memory, MiB".ljust(28), 1, 1 / 1024)
    print()


def main(arguments: list[str]) -> int:
    parser = question.parser("threads", __doc__, rounds=5)
    parser.add_argument("--threads", type=positive, metavar="N", help=f"(default {THREADS:,})")
    asked = question.ask(parser, arguments)
    threads = asked.given.threads or (QUICK_THREADS if asked.quick else THREADS)
    for operations in OPERATIONS:
        command = [build_program("thread_churn.c"), threads, operations]
        made = asked.compare(f"{operations} operations", command, telling(churn_figures))
        tables.say(f"{threads:,} threads one after another, malloc + free in each: {operations}\n")
        show(made, threads, {"thread_s": "us a thread"})
    made = asked.compare("living", [build_program("living_threads.c"), threads], telling(living_figures))
    tables.say(f"{threads:,} threads that live at once\n")
    show(made, threads, {"come_s": "us a thread, to come", "go_s": "us a thread, to go"})
    return asked.end()
