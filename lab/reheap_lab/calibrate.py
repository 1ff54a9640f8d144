"""`reheap calibrate`: rounds, statistics and verdicts on made-up runs whose truth is known."""

import collections
import json
import pathlib
from dataclasses import asdict, dataclass

import click
import numpy
import rich.table

from reheap_lab import figures, synthetic, verdicts
from reheap_lab.cli import console
from reheap_lab.errors import LabError
from reheap_lab.results import Comparison, Run, Subject, Verdict
from reheap_lab.rounds import Book, Fixed, Precise, Quiet, Stop, run_rounds, stop_of
from reheap_lab.settings import Settings
from reheap_lab.synthetic import BUSY, MEMORY, QUIET, WILD, Truth

TRIALS, ROUNDS, SEED = 100, 30, 1
SETTINGS = Settings(most_time=float("inf"))
SUBJECTS = ["base", "other"]

FALSE_CLAIMS = 0.05  # at most
FOUND = 0.95  # at least
COVERED = 0.95  # at least: of 100 intervals of 99 %, fewer hold the truth in one calibration of two hundred

EQUALS = [Truth("the same twice", noise) for noise in (QUIET, BUSY, WILD)] + [
    Truth("the same twice", MEMORY, "peak_rss_kib", typical=100_000)]
PLANTED = [Truth("3 % slower", QUIET, ratio=1.03), Truth("3 % slower", BUSY, ratio=1.03),
           Truth("10 % more memory", MEMORY, "peak_rss_kib", 1.10, typical=100_000)]
TO_THE_END = [Truth("the same twice", QUIET), Truth("the same twice", BUSY), Truth("3 % slower", BUSY, ratio=1.03),
              Truth("the same twice", MEMORY, "peak_rss_kib", typical=100_000)]


@dataclass(frozen=True)
class Score:
    """What was said of many comparisons with the same truth."""

    truth: Truth
    rounds: str  # how many there were
    words: dict[str, int]
    covered: int  # intervals that hold the true ratio
    width: float  # the median interval's, as a share of its ratio
    strict: bool = False  # to be called equal, not only not different

    @property
    def trials(self) -> int:
        return sum(self.words.values())

    @property
    def right(self) -> int:
        figure, ratio = figures.ALL[self.truth.figure], self.truth.ratio
        if ratio != 1:
            return self.words.get(figure.more if ratio > 1 else figure.less, 0)
        if self.strict:
            return self.words.get(figures.SAME, 0)
        return self.trials - self.words.get(figure.less, 0) - self.words.get(figure.more, 0)

    @property
    def good(self) -> bool:
        least = 1 - FALSE_CLAIMS if self.truth.ratio == 1 else FOUND
        return self.right >= least * self.trials and self.covered >= COVERED * self.trials


def score(truth: Truth, stop: Stop, trials: int = TRIALS, seed: int = SEED) -> Score:
    random = numpy.random.default_rng(seed)
    found = [said(truth, stop, random) for _ in range(trials)]
    words = collections.Counter(verdict.word for verdict in found)
    covered = sum(verdict.low <= truth.ratio <= verdict.high for verdict in found)
    width = float(numpy.median([verdict.high / verdict.low - 1 for verdict in found]))
    return Score(truth, rounds_of(stop), dict(words), covered, width, strict=isinstance(stop, Precise))


def said(truth: Truth, stop: Stop, random: numpy.random.Generator) -> Verdict:
    """One comparison as `reheap compare` makes it, but that no program runs."""
    values = synthetic.pairs(truth, SETTINGS.most_runs, random)

    def measure(subject: str, number: int, place: int, warmup: bool) -> Run:
        figure = float(values[number, SUBJECTS.index(subject)])
        return Run(subject, number, place, warmup, {truth.figure: figure})

    book = Book(SUBJECTS, stop)
    run_rounds(book, measure, 0, SETTINGS.seed, Quiet())
    comparison = Comparison(["made up"], settings=SETTINGS.as_data(), subjects=[Subject(name) for name in SUBJECTS],
                            runs=book.runs)
    verdicts.judge(comparison)
    return comparison.verdict(truth.figure, SUBJECTS[1])


def rounds_of(stop: Stop) -> str:
    return figures.plural(stop.runs, "round") if isinstance(stop, Fixed) else "until precise"


def scores(trials: int = TRIALS, rounds: int = ROUNDS, seed: int = SEED) -> list[Score]:
    once = [score(truth, Fixed(rounds), trials, seed) for truth in EQUALS + PLANTED]
    return once + [score(truth, stop_of(SETTINGS), trials, seed) for truth in TO_THE_END]


@click.command()
@click.option("--trials", default=TRIALS, show_default=True, type=click.IntRange(1), help="Comparisons of each kind.")
@click.option("--runs", default=ROUNDS, show_default=True, type=click.IntRange(5, SETTINGS.most_runs),
              help="Rounds of a comparison.")
@click.option("--seed", default=SEED, show_default=True, type=click.IntRange(0), help="Of the made-up runs.")
@click.option("--export", type=click.Path(dir_okay=False, path_type=pathlib.Path), help="Write the scores as JSON.")
def command(trials: int, runs: int, seed: int, export: pathlib.Path | None) -> None:
    """Try the statistics on made-up runs whose truth is known.

    Equals must not be called different in more than 5 of 100 comparisons, and must be called equal in 95 of those that
    go on until they are precise; planted differences must be found in 95; the intervals must hold the truth. Exit
    status 1 when they do not.
    """
    found = scores(trials, runs, seed)
    console().print(_table(found))
    if export:
        rows = [asdict(s) | {"trials": s.trials, "right": s.right, "good": s.good} for s in found]
        export.write_text(json.dumps({"seed": seed, "scores": rows}, indent=1) + "\n", encoding="utf-8")
    if not all(s.good for s in found):
        raise LabError("where it says BAD, the lab did not see what was there; more runs may help, else trust it less")


def _table(found: list[Score]) -> rich.table.Table:
    table = rich.table.Table("truth", "noise", "rounds", "right", "said", "interval holds it", "its width", "")
    for s in found:
        said = ", ".join(f"{said} {count}" for said, count in sorted(s.words.items(), key=lambda item: -item[1]))
        table.add_row(s.truth.title, s.truth.noise.name, s.rounds, f"{s.right}/{s.trials}", said,
                      f"{s.covered}/{s.trials}", f"{s.width:.1%}", "good" if s.good else "BAD")
    return table
