"""What `reheap compare` says of programs whose difference is known: the same library under two names, 3 % more work,
10 % more memory. Truth is planted by a library made for it (planted.c)."""

from dataclasses import dataclass

from calibration.shared import compare, compile_program, percent
from common.tables import render_markdown as table
from reheap_lab.results import Comparison

MEMORY_WORDS = ("less memory", "more memory")
TIME_WORDS = ("faster", "slower")


@dataclass(frozen=True)
class Trial:
    title: str
    fault: str  # for the compiler; empty for none
    figure: str
    expected: str  # the word, or "" for neither of the two that claim a difference
    arguments: list[str]  # of the program


# Blocks of 1 KiB on average, each with 10000 units of work: 300 more are 3 %. For memory no work, many blocks.
TRIALS = [
    Trial("the same library twice", "", "wall_s", "", ["60000", "20000"]),
    Trial("the same library twice", "", "peak_rss_kib", "", ["60000", "20000"]),
    Trial("3 % more work", "-DWORK=300", "cpu_s", "slower", ["60000", "20000"]),
    Trial("3 % more work", "-DWORK=300", "wall_s", "slower", ["60000", "20000"]),
    Trial("10 % more memory", "-DWASTE=10", "peak_rss_kib", "more memory", ["200000", "100000", "0"]),
]


def add_options(parser) -> None:
    parser.add_argument("--runs", type=int, default=30, help="runs of each (default 30)")


def main(options) -> bool:
    program = compile_program("subject.c", name="subject")
    plain = _library("plain", "")
    rows, right = [], True
    compared: dict[str, Comparison] = {}
    for trial in TRIALS:
        if trial.title not in compared:
            other = _library("other" + trial.fault, trial.fault) if trial.fault else plain
            name = trial.title.replace(" ", "-").replace("%", "percent")
            compared[trial.title] = compare(name, "compare", "--with", f"one={plain},other={other}", "--runs",
                                            options.runs, "--", program, *trial.arguments)
        verdict = compared[trial.title].verdict(trial.figure, "other")
        as_planted = _as_planted(verdict.word, trial)
        right = right and as_planted
        rows.append([trial.title, trial.figure, percent(verdict.ratio),
                     f"{percent(verdict.low)} .. {percent(verdict.high)}", verdict.word,
                     "yes" if as_planted else "NO"])
    print(table(["planted", "figure", "found", "interval", "verdict", "right"], rows))
    return right


def _library(name: str, fault: str):
    return compile_program("planted.c", "-shared", "-fPIC", *([fault] if fault else []), name=f"{name}.so")


def _as_planted(word: str, trial: Trial) -> bool:
    return word == trial.expected if trial.expected else word not in (*TIME_WORDS, *MEMORY_WORDS)
