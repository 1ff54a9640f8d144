"""What an allocator adds to a thread's birth and death: threads that do a few operations and end.

A thread without any operation shows what the allocator does for threads that never use it.
"""

from common import question, tables
from common.programs import build_program
from common.work import telling

THREADS = 10_000
OPERATIONS = [0, 1, 8, 100]


def figures_of(printed: str) -> dict[str, float]:
    return {"thread_s": int(printed) / 1e9}


def main(arguments: list[str]) -> int:
    asked = question.ask(question.parser("threads", __doc__, rounds=5), arguments)
    program = build_program("thread_churn.c")
    for operations in OPERATIONS:
        made = asked.compare(f"{operations} operations", [program, THREADS, operations], telling(figures_of))
        print(f"{THREADS:,} threads one after another, malloc + free in each: {operations}\n")
        tables.show_figure(made, "thread_s", "us a thread".ljust(28), 2, 1e6)
        tables.show_figure(made, "cpu_s", "CPU us a thread".ljust(28), 2, 1e6 / THREADS)
        tables.show_figure(made, "peak_rss_kib", "peak resident memory, MiB".ljust(28), 1, 1 / 1024)
        print()
    return asked.end()
