"""`reheap calibrate`: the statistics on made-up runs whose truth is known."""

import collections
import json
import pathlib
from collections.abc import Callable
from dataclasses import asdict, dataclass

import click
import numpy
import rich.console
import rich.table

from . import figures, statistics, synthetic
from .statistics import Interval
from .synthetic import BUSY, MEMORY, QUIET, WILD, Truth

TRIALS, ROUNDS, SEED = 100, 20, 1
CONFIDENCE, MARGIN = 0.95, 0.01
FIRST_LOOK, LOOK_EVERY, MOST_ROUNDS = 5, 3, 100  # of a comparison that goes on until it is precise

FALSE_CLAIMS = 0.05  # at most: what a confidence of 95 % promises
FOUND = 0.95  # at least
COVERED = 0.90  # at least: of 100 intervals of 95 %, fewer than 90 hold the truth once in a hundred calibrations

EQUALS = [Truth("the same twice", noise) for noise in (QUIET, BUSY, WILD)] + [
    Truth("the same twice", MEMORY, "peak_rss_kib", typical=100_000)]
PLANTED = [Truth("3 % slower", QUIET, ratio=1.03), Truth("3 % slower", BUSY, ratio=1.03),
           Truth("10 % more memory", MEMORY, "peak_rss_kib", 1.10, typical=100_000)]
TO_THE_END = [Truth("the same twice", BUSY), Truth("the same twice", MEMORY, "peak_rss_kib", typical=100_000),
              Truth("3 % slower", BUSY, ratio=1.03)]


@dataclass(frozen=True)
class Score:
    """What was said of many comparisons with the same truth."""

    truth: Truth
    way: str  # how many rounds there were
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


Run = Callable[[Truth, numpy.random.Generator], Interval]


def fixed(rounds: int) -> Run:
    """So many rounds, then one look."""
    def run(truth: Truth, random: numpy.random.Generator) -> Interval:
        return _ratio(synthetic.pairs(truth, rounds, random), rounds)

    return run


def until_precise(truth: Truth, random: numpy.random.Generator) -> Interval:
    """Looks again and again, and stops when the interval is narrow enough."""
    values = synthetic.pairs(truth, MOST_ROUNDS, random)
    for rounds in range(FIRST_LOOK, MOST_ROUNDS + 1, LOOK_EVERY):
        ratio = _ratio(values, rounds)
        if statistics.precise(ratio, MARGIN):
            break
    return ratio


def _ratio(values: numpy.ndarray, rounds: int) -> Interval:
    return statistics.paired_ratio(values[:rounds, 1], values[:rounds, 0], CONFIDENCE)


def score(truth: Truth, way: str, run: Run, trials: int = TRIALS, seed: int = SEED, strict: bool = False) -> Score:
    random = numpy.random.default_rng(seed)
    intervals = [run(truth, random) for _ in range(trials)]
    words = collections.Counter(word(truth.figure, interval) for interval in intervals)
    covered = sum(interval.low <= truth.ratio <= interval.high for interval in intervals)
    width = float(numpy.median([interval.high / interval.low - 1 for interval in intervals]))
    return Score(truth, way, dict(words), covered, width, strict)


def word(figure: str, ratio: Interval) -> str:
    if statistics.equivalent(ratio, MARGIN):
        return figures.SAME
    if not statistics.differs(ratio):
        return figures.UNDECIDED
    return figures.ALL[figure].more if ratio.middle > 1 else figures.ALL[figure].less


def scores(trials: int = TRIALS, rounds: int = ROUNDS, seed: int = SEED) -> list[Score]:
    once = [score(truth, f"{rounds} rounds", fixed(rounds), trials, seed) for truth in EQUALS + PLANTED]
    return once + [score(truth, "until precise", until_precise, trials, seed, strict=True) for truth in TO_THE_END]


@click.command()
@click.option("--trials", default=TRIALS, show_default=True, type=click.IntRange(1), help="Comparisons of each kind.")
@click.option("--runs", default=ROUNDS, show_default=True, type=click.IntRange(5), help="Rounds of a comparison.")
@click.option("--seed", default=SEED, show_default=True, type=click.IntRange(0), help="Of the made-up runs.")
@click.option("--export", type=click.Path(dir_okay=False, path_type=pathlib.Path), help="Write the scores as JSON.")
def calibrate(trials: int, runs: int, seed: int, export: pathlib.Path | None) -> None:
    """Try the statistics on made-up runs whose truth is known.

    Equals must not be called different in more than 5 of 100 comparisons, and must be called equal in 95 of those that
    go on until they are precise; planted differences must be found in 95; the intervals must hold the truth. Exit
    status 1 when they do not.
    """
    found = scores(trials, runs, seed)
    rich.console.Console().print(_table(found))
    if export:
        rows = [asdict(s) | {"trials": s.trials, "right": s.right, "good": s.good} for s in found]
        export.write_text(json.dumps({"seed": seed, "scores": rows}, indent=1) + "\n", encoding="utf-8")
    if not all(s.good for s in found):
        raise click.exceptions.Exit(1)


def _table(found: list[Score]) -> rich.table.Table:
    table = rich.table.Table("truth", "noise", "rounds", "right", "said", "interval holds it", "its width", "")
    for s in found:
        said = ", ".join(f"{said} {count}" for said, count in sorted(s.words.items(), key=lambda item: -item[1]))
        table.add_row(s.truth.title, s.truth.noise.name, s.way, f"{s.right}/{s.trials}", said,
                      f"{s.covered}/{s.trials}", f"{s.width:.1%}", "good" if s.good else "BAD")
    return table
