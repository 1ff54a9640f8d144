"""Interleaved rounds: in each, every subject runs once, in an order drawn by chance, or that of the round before turned
around. So what changes with time (heat, caches, other programs) meets all alike, and the runs of one round make pairs.
"""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Protocol

from reheap_lab import figures, statistics
from reheap_lab.results import Run
from reheap_lab.settings import Settings

FAILURES = 2  # so many in measured rounds, and a subject is given up


class Stop(Protocol):
    """Says when enough rounds were made, and guesses how many are still to come."""

    def enough(self, book: "Book") -> bool: ...
    def rounds_left(self, book: "Book") -> int | None: ...


class Watch(Protocol):
    """Is told what happens; the terminal's progress line is one."""

    def running(self, subject: str, book: "Book") -> None: ...
    def ran(self, run: Run, book: "Book") -> None: ...


class Quiet:
    def running(self, subject: str, book: "Book") -> None:
        pass

    def ran(self, run: Run, book: "Book") -> None:
        pass


class Book:
    """All runs so far."""

    def __init__(self, subjects: list[str], stop: Stop | None = None, clock: Callable[[], float] = time.monotonic):
        self.subjects = list(subjects)  # those still measured
        self.runs: list[Run] = []
        self.given_up: dict[str, str] = {}
        self.rounds = 0  # finished, not counting warm-up
        self.timing = True  # until the further runs, which no timed figure comes from
        self.stop = stop
        self._clock = clock
        self._began = clock()
        self._measuring: float | None = None

    def note(self, run: Run) -> None:
        self.runs.append(run)
        failed = [r for r in self.runs if r.subject == run.subject and r.failed]
        if run.failed and (run.warmup or len(failed) >= FAILURES):
            self.subjects.remove(run.subject)
            self.given_up[run.subject] = run.failed

    def begin_measuring(self) -> None:
        self._measuring = self._clock()

    def measuring(self) -> bool:
        return self._measuring is not None

    def elapsed(self) -> float:
        return self._clock() - self._began

    def per_round(self) -> float | None:
        if not self.rounds or self._measuring is None:
            return None
        return (self._clock() - self._measuring) / self.rounds

    def seconds_left(self) -> float | None:
        rounds, each = self.stop.rounds_left(self) if self.stop else None, self.per_round()
        return rounds * each if rounds is not None and each is not None else None


def pairs(runs: list[Run], figure: str, subject: str, base: str) -> tuple[list[float], list[float]]:
    """The figures of both, of the rounds in which both have one."""
    def by_round(name: str) -> dict[int, float]:
        return {r.round: r.figures[figure] for r in runs
                if r.subject == name and not r.warmup and r.failed is None and figure in r.figures}
    top, bottom = by_round(subject), by_round(base)
    both = sorted(top.keys() & bottom.keys())
    return [top[i] for i in both], [bottom[i] for i in both]


# ---- when to stop -------------------------------------------------------------------------------

@dataclass
class Fixed:
    runs: int

    def enough(self, book: Book) -> bool:
        return book.rounds >= self.runs

    def rounds_left(self, book: Book) -> int | None:
        return self.runs - book.rounds


@dataclass
class Budget:
    """As many rounds as fit."""

    seconds: float

    def enough(self, book: Book) -> bool:
        each = book.per_round()
        return each is not None and book.elapsed() + each > self.seconds

    def rounds_left(self, book: Book) -> int | None:
        each = book.per_round()
        return max(0, int((self.seconds - book.elapsed()) / each)) if each else None


@dataclass(frozen=True)
class Ratio:
    """Of one figure of one subject to the base's."""

    figure: str
    subject: str
    ratio: statistics.Interval
    margin: float


@dataclass
class Precise:
    """Until every deciding figure of every subject is known precisely, or the bounds are reached."""

    margin: float
    confidence: float
    most_runs: int
    most_time: float
    least: int = 8
    own: tuple[str, ...] = ()  # figures of the command's own, which decide too
    _known: tuple[Book | None, int, list["Ratio"]] = field(default=(None, 0, []), init=False)  # after how many rounds

    def enough(self, book: Book) -> bool:
        if book.rounds < min(self.least, self.most_runs):
            return False
        if book.rounds >= self.most_runs or book.elapsed() >= self.most_time:
            return True
        return not self.imprecise(book)

    def rounds_left(self, book: Book) -> int | None:
        if book.rounds < 3:
            return None
        more = [statistics.runs_until_precise(one.ratio, one.margin) for one in self._ratios(book)]
        wanted = max([self.least - book.rounds, *more])
        each = book.per_round()
        in_time = int((self.most_time - book.elapsed()) / each) if each else wanted
        return max(0, min(wanted, self.most_runs - book.rounds, in_time))

    def imprecise(self, book: Book) -> list["Ratio"]:
        return [one for one in self._ratios(book) if not statistics.precise(one.ratio, one.margin)]

    def _ratios(self, book: Book) -> list["Ratio"]:
        """Asked for at every run, for the time left; they change once a round."""
        known, rounds, ratios = self._known
        if known is not book or rounds != book.rounds:
            ratios = self._ratios_now(book)
            self._known = book, book.rounds, ratios
        return ratios

    def _ratios_now(self, book: Book) -> list["Ratio"]:
        base, *others = book.subjects or [""]
        each = statistics.for_all_pairs(self.confidence, len(book.subjects))
        found = (self._ratio(figure, subject, *pairs(book.runs, figure, subject, base), each)
                 for figure in (*figures.DECIDING, *self.own) for subject in others)
        return [one for one in found if one]

    def _ratio(self, figure: str, subject: str, values: list[float], base: list[float], confidence: float
               ) -> Ratio | None:
        ratio = statistics.paired_ratio(values, base, confidence)
        return ratio and Ratio(figure, subject, ratio, figures.ALL[figure].margin(median(base), self.margin))


def stop_of(settings: Settings) -> Stop:
    if settings.runs is not None:
        return Fixed(settings.runs)
    if settings.time is not None:
        return Budget(settings.time)
    return Precise(settings.margin, settings.confidence, settings.most_runs, settings.most_time,
                   own=tuple(one.name for one in settings.own))


# ---- the rounds ---------------------------------------------------------------------------------

Measure = Callable[[str, int, int, bool], Run]
Whole = Callable[[list[str], int], list[Run]]  # a round's runs, in the order of the subjects given


def orders(book: Book, dice: random.Random) -> Iterator[list[str]]:
    """Of a few orders that are drawn all may be the same. Each is followed by its reverse: over the two, what rises or
    falls steadily favours nobody."""
    while True:
        order = list(book.subjects)
        dice.shuffle(order)
        yield order
        yield [subject for subject in reversed(order) if subject in book.subjects]


def run_rounds(book: Book, measure: Measure, warmups: int, seed: int, watch: Watch, whole: Whole | None = None) -> None:
    """With `whole`, measured rounds are made by it at once; a warm-up never is, for it may make what all need."""
    dice = random.Random(seed)
    order = orders(book, dice)

    def one_by_one(number: int, warmup: bool) -> None:
        for place, subject in enumerate(next(order)):
            watch.running(subject, book)
            note(measure(subject, number, place, warmup))

    def note(run: Run) -> None:
        book.note(run)
        watch.ran(run, book)

    for number in range(warmups):
        one_by_one(number, True)
    order = orders(book, dice)
    book.begin_measuring()
    while book.subjects and not (book.rounds and book.stop.enough(book)):
        if whole and len(book.subjects) > 1:
            watch.running(" beside ".join(book.subjects), book)
            for run in whole(list(book.subjects), book.rounds):
                note(run)
        else:
            one_by_one(book.rounds, False)
        book.rounds += 1
