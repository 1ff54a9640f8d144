"""Interleaved rounds: every subject once a round, in an order that changes from round to round.

Measuring one subject ten times and then the next would give each its own minute of the machine.
"""

import random
import sys
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

Subject = TypeVar("Subject")
Sample = TypeVar("Sample")


class SampleFailed(Exception):
    """One run failed: the subject is left out from there on, with this reason."""


def round_orders(count: int, rounds: int, seed: int) -> list[list[int]]:
    """One order of the indices 0..count-1 for each round: shuffled, then rotated, so that over
    `count` rounds each subject stands at each place once."""
    first = list(range(count))
    random.Random(seed).shuffle(first)
    return [first[r % count :] + first[: r % count] for r in range(rounds)] if count else []


def interleave(
    subjects: Sequence[Subject],
    rounds: int,
    measure: Callable[[Subject], Sample],
    *,
    warmups: int = 1,
    seed: int = 1,
    progress: Callable[[str], None] | None = None,
) -> tuple[list[list[Sample | None]], dict[int, str]]:
    """Returns samples[subject][round], and the reasons of the subjects that failed, by index.

    Warm-up rounds are run and thrown away. A subject that failed has None from that round on.
    """
    samples: list[list[Sample | None]] = [[None] * rounds for _ in subjects]
    failed: dict[int, str] = {}
    orders = round_orders(len(subjects), warmups + rounds, seed)
    for number, order in enumerate(orders):
        for index in order:
            if index in failed:
                continue
            if progress:
                kind = "warm-up" if number < warmups else f"round {number - warmups + 1}/{rounds}"
                progress(f"{kind}: {subjects[index]}")
            try:
                sample = measure(subjects[index])
            except SampleFailed as reason:
                failed[index] = str(reason)
                continue
            if number >= warmups:
                samples[index][number - warmups] = sample
    return samples, failed


_QUIET_SECONDS = 10
_last_line = 0.0


def show_progress(text: str) -> None:
    """One line on stderr, rewritten in place on a terminal; elsewhere a line every ten seconds."""
    global _last_line
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
    elif time.monotonic() - _last_line >= _QUIET_SECONDS:
        _last_line = time.monotonic()
        sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def end_progress() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()
