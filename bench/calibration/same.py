"""Every comparison here is of a library with itself: whatever calls the two different is wrong. Says how often that
happened, and how often they were called equal, of programs of several kinds and sizes."""

import collections
import itertools
import sys

from calibration.shared import HERE, compare, compile_program
from common.tables import render_markdown as table
from reheap_lab import figures, native
from reheap_lab.results import Comparison

EQUAL = 0.9  # of the comparisons whose peak memory must be called equal
TOLD = ("wall_s", "cpu_s", "peak_rss_kib")
RESTLESS = "sixteen threads that hand over"  # how they overlap changes its peak by a quarter: it cannot be called equal


def add_options(parser) -> None:
    parser.add_argument("--comparisons", type=int, default=200, help="how many in all (default 200)")
    parser.add_argument("--runs", type=int, default=30, help="runs of each (default 30)")


def main(options) -> bool:
    libraries = itertools.cycle([compile_program("planted.c", "-shared", "-fPIC", name="plain.so"),
                                 native.library("libreheap.so")])
    programs = _programs()
    said: dict[str, dict[str, collections.Counter]] = {
        title: {figure: collections.Counter() for figure in TOLD} for title in programs}
    wrong: list[str] = []
    for number, title in zip(range(options.comparisons), itertools.cycle(programs)):
        library = next(libraries) if number % len(programs) == 0 else library
        made = compare(f"same-{number % len(programs)}", "compare", "--with", f"one={library},other={library}",
                       "--seed", number, "--runs", options.runs, "--no-extras", "--", *programs[title])
        for figure in TOLD:
            if verdict := made.verdict(figure, "other"):
                said[title][figure][verdict.word] += 1
        wrong += [f"{title}, {library.name}: {text}" for text in _claims(made)]
    for title, by_figure in said.items():
        print(f"\n{title}\n")
        print(table(["figure", figures.SAME, figures.UNDECIDED, "called different"],
                    [_row(figure, words) for figure, words in by_figure.items()]), flush=True)
    print(f"\n{len(wrong)} of {options.comparisons} comparisons claimed a difference"
          + "".join(f"\n- {text}" for text in wrong))
    return not wrong and all(_equal(words["peak_rss_kib"]) for title, words in said.items() if title != RESTLESS)


def _programs() -> dict[str, list[str]]:
    subject, mix, sixteen = (str(compile_program(f"{name}.c", name=name)) for name in ("subject", "mix", "sixteen"))
    return {
        "one thread, 20 MB": [subject, "40000", "20000", "0"],
        "one thread, 4 MB": [mix, "100000"],
        "CPython": [sys.executable, "-S", str(HERE / "texts.py"), "1"],
        RESTLESS: [sixteen, "5000"],
    }


def _claims(made: Comparison) -> list[str]:
    return [v.text for v in made.verdicts if v.word not in (figures.SAME, figures.UNDECIDED)]


def _equal(words: collections.Counter) -> bool:
    return words[figures.SAME] >= EQUAL * words.total()


def _row(figure: str, words: collections.Counter) -> list[str]:
    shown = [words[figures.SAME], words[figures.UNDECIDED]]
    return [figures.ALL[figure].label, *map(str, shown), str(words.total() - sum(shown))]
