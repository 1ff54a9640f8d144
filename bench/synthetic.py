"""Runs small workloads of well-known patterns at 1, 2 and 4 threads, and compares time and peak memory.

Each does the same work whatever the number of threads. What each one does stands at the top of its file in
bench/workloads. At the end, the geometric means over all of them, against the system heap and against the best of the
peers, and the workloads in which an allocator takes more than 1.10 of what the best peer takes. With more than one
number of threads, also how many times the work of the fewest each does.
"""

from pathlib import Path

from common import means, question, tables
from common.names import select
from common.numbers import positives
from common.programs import build_program
from reheap_lab.results import Comparison

SOURCES = ["larson.c", "producer_consumer.c", "cache_scratch.c", "random_sizes.c", "containers.cpp", "growing.c",
           "large_blocks.c", "torture.c", "threadtest.c", "rptest.c", "mstress.c", "glibc_simple.c", "glibc_thread.c",
           "cache_thrash.c", "mleak.c", "sh6.c", "sh8.c", "maltest.cpp"]
WORKLOADS = {Path(source).stem: source for source in SOURCES}
THREADS, QUICK_THREADS = [1, 2, 4], [2]
ROUNDS = 3
FAR = 1.10  # of the best peer's figure
FIGURES = (("wall_s", "wall time, s", 1, 2), ("peak_rss_kib", "peak resident memory, MiB", 1 / 1024, 1))


def ratio_rows(results: dict[str, Comparison], figure: str, scale: float, digits: int) -> list[list[str]]:
    """The first allocator's figure, and each other one's ratio to it."""
    base, *others = means.names_of(results)
    rows = []
    for title, made in results.items():
        ratios = [tables.number(means.ratio(made, figure, name, base)) for name in others]
        rows.append([title, tables.cells(tables.of(made, figure, base), digits, scale)[0], *ratios])
    return rows


def mean_rows(found: list[means.Means]) -> list[list[str]]:
    """Each allocator's mean against the system heap, against the peer whose mean is least, and against the best peer of
    each workload."""
    best = means.best_mean(found)
    return [[one.name, tables.number(one.to_base, 3), tables.number(means.against(one, best), 3),
             tables.number(one.to_best, 3), str(len(one.far))] for one in found]


def far_lines(found: list[means.Means]) -> list[str]:
    """One for each allocator that is far from the best peer somewhere; the farthest workload first."""
    lines = []
    for one in found:
        ranked = sorted(one.far.items(), key=lambda item: -item[1])
        if ranked:
            lines.append(f"{one.name}: " + ", ".join(f"{title} {value:.2f}" for title, value in ranked))
    return lines


def show_means(results: dict[str, Comparison], figure: str, title: str) -> None:
    found = means.means(results, figure, FAR)
    base, best = found[0].name, means.best_mean(found)
    named = f"x {best.name}, the best peer" if best else "x best peer"
    tables.show([f"geometric mean, {title}", f"x {base}", named, "x best peer of each", f"above {FAR:.2f} of it"],
                mean_rows(found))
    lines = far_lines(found)
    if lines:
        print(f"\n{title}, above {FAR:.2f} of the workload's best peer:")
        print("\n".join(f"  {line}" for line in lines))


def gain_rows(measured: dict[tuple[str, int], Comparison]) -> list[list[str]]:
    """How many times the work in the same time, by the medians, that an allocator does with more threads."""
    least, rows = min(threads for _, threads in measured), []
    for (name, threads), made in measured.items():
        if threads != least:
            ratios = (means.ratio_of_medians(measured[name, least], made, "wall_s", one.name) for one in made.subjects)
            rows.append([f"{name} {threads}", *map(tables.number, ratios)])
    return rows


def show_gains(measured: dict[tuple[str, int], Comparison]) -> None:
    rows, subjects = gain_rows(measured), next(iter(measured.values())).subjects
    if rows:
        least = min(threads for _, threads in measured)
        tables.show([f"times the work of {least} thread{'s'[:least > 1]}", *(one.name for one in subjects)], rows)
        print()


def parse(arguments: list[str]) -> tuple[question.Question, list[int]]:
    """What is asked, and at which numbers of threads."""
    parser = question.parser("synthetic", __doc__, rounds=ROUNDS)
    parser.add_argument("--only", default="", metavar="WORKLOAD,...", help="only these: " + ", ".join(WORKLOADS))
    parser.add_argument("--threads", type=positives, metavar="N,...",
                        help=f"at these numbers of threads (default {','.join(map(str, THREADS))}, "
                             f"quick {QUICK_THREADS[0]})")
    asked = question.ask(parser, arguments)
    return asked, asked.given.threads or (QUICK_THREADS if asked.quick else THREADS)


def main(arguments: list[str]) -> int:
    asked, counts = parse(arguments)
    measured = {(name, threads): asked.compare(f"{name} {threads}", [build_program(WORKLOADS[name]), threads])
                for name in select(asked.given.only, WORKLOADS, "workload") for threads in counts}
    results = {f"{name} {threads}": made for (name, threads), made in measured.items()}
    base, *others = means.names_of(results)
    for figure, title, scale, digits in FIGURES:
        tables.show([title, base, *(f"x {name}" for name in others)], ratio_rows(results, figure, scale, digits))
        print()
    show_gains(measured)
    for figure, title, *_ in FIGURES:
        show_means(results, figure, title.split(",")[0])
        print()
    tables.say(f"Ratios to the system heap, taken round by round; rounds: {asked.rounds}, interleaved.")
    return asked.end()
