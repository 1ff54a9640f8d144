"""Side by side: two allocators at the same time, each on a processor of its own, and then with the processors
exchanged.

What slows the machine slows both alike, so that their ratio moves by hundredths where that of one run after the other
moves by tenths. It is the ratio on a busy machine: they share caches and memory, and a command's threads share one
processor.
"""

import dataclasses
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from reheap_lab import host
from reheap_lab.errors import UsageError
from reheap_lab.results import Run

Half = Callable[[str, int], Run]  # one run of a subject at one of the two places


def processors() -> list[int]:
    if host.WINDOWS:
        raise UsageError("--side-by-side binds threads to processors, which the lab does on Linux alone: leave it out")
    two = sorted(os.sched_getaffinity(0))[:2]
    if len(two) < 2:
        raise UsageError("--side-by-side needs two processors, and there is one: leave it out")
    return two


def exchanged(pair: list[str], run: Half, prepare: Callable[[], None]) -> list[Run]:
    """Of each the one run that its two make."""
    halves = []
    for order in (pair, pair[::-1]):
        prepare()
        halves.append({made.subject: made for made in at_once(order, run)})
    return [both(*(half[name] for half in halves)) for name in pair]


def at_once(order: list[str], run: Half) -> list[Run]:
    def pinned(subject: str, place: int, processor: int) -> Run:
        os.sched_setaffinity(0, {processor})  # of this thread, and so of all that it starts
        return run(subject, place)

    with ThreadPoolExecutor(len(order)) as pool:
        return list(pool.map(pinned, order, range(len(order)), processors()))


def both(first: Run, second: Run) -> Run:
    """The mean of each figure that both have, and the first one's course. When one failed, so has the round."""
    figures = {name: (value + second.figures[name]) / 2 for name, value in first.figures.items()
               if name in second.figures}
    return dataclasses.replace(first, figures=figures, failed=first.failed or second.failed)
