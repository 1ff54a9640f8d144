"""Two subjects at the same time, each on a processor of its own, and then with the processors exchanged.

What slows the machine slows both alike, so that their ratio moves by hundredths where that of one run after the other
moves by tenths. It is the ratio on a machine that is busy: they share caches and memory.
"""

import dataclasses
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from .errors import BenchError
from .measuring import Sample
from .rounds import SampleFailed, Subject

Outcomes = list[Sample | SampleFailed]


def processors() -> list[int]:
    two = sorted(os.sched_getaffinity(0))[:2]
    if len(two) < 2:
        raise BenchError("there is one processor only; leave out --side-by-side")
    return two


def attempt(run: Callable[[], Sample]) -> Sample | SampleFailed:
    try:
        return run()
    except SampleFailed as reason:
        return reason


def pinned(processor: int, run: Callable[[], Sample]) -> Sample | SampleFailed:
    os.sched_setaffinity(0, {processor})  # of this thread, and so of all that it starts
    return attempt(run)


def at_once(runs: Sequence[Callable[[], Sample]]) -> Outcomes:
    with ThreadPoolExecutor(len(runs)) as pool:
        return list(pool.map(pinned, processors(), runs))


def in_turn(runs: Sequence[Callable[[], Sample]]) -> Outcomes:
    return [attempt(run) for run in runs]


def mean(one: Sample, other: Sample) -> Sample:
    """Of each figure that both have."""
    figures = {}
    for field in dataclasses.fields(one):
        values = getattr(one, field.name), getattr(other, field.name)
        if field.name != "output":
            figures[field.name] = None if None in values else sum(values) / 2
    return dataclasses.replace(one, **figures)


def exchanged(runs: Sequence[Callable[[int], Sample]]) -> Outcomes:
    """Of each the mean of its two runs, or why it has none."""
    first = at_once([partial(runs[0], 0), partial(runs[1], 1)])
    second = at_once([partial(runs[1], 0), partial(runs[0], 1)])
    outcomes = []
    for both in zip(first, reversed(second)):
        failures = [run for run in both if isinstance(run, SampleFailed)]
        outcomes.append(failures[0] if failures else mean(*both))
    return outcomes


def side_by_side(
    pair: Sequence[Subject],
    rounds: int,
    measure: Callable[[Subject, int], Sample],
    progress: Callable[[str], None],
) -> tuple[list[list[Sample | None]], dict[int, str]]:
    """As rounds.interleave, for two subjects; `measure` is told which of the two places is the run's own.

    The warm-up is one after the other: what both use may have to be made first. When one fails both are over.
    """
    samples: list[list[Sample | None]] = [[None] * rounds for _ in pair]
    runs = [partial(measure, subject) for subject in pair]
    for number in range(-1, rounds):
        progress(f"{pair[0]} beside {pair[1]}: " + (f"round {number + 1}/{rounds}" if number >= 0 else "warm-up"))
        outcomes = exchanged(runs) if number >= 0 else in_turn([partial(run, 0) for run in runs])
        failed = {index: str(one) for index, one in enumerate(outcomes) if isinstance(one, SampleFailed)}
        if failed:
            return samples, failed
        if number >= 0:
            for row, outcome in zip(samples, outcomes):
                row[number] = outcome
    return samples, {}
