"""Medians, spreads and ratios taken pair by pair.

A ratio compares two runs of the same round, which stood next to each other in time, so that a slow
minute of the machine slows both and cancels out.
"""

import math
from dataclasses import dataclass
from statistics import median, quantiles


MEDIAN_FEWEST = 6


@dataclass(frozen=True)
class Summary:
    median: float
    low: float
    high: float
    count: int


def middle_half(values: list[float | None]) -> Summary | None:
    """As summarize, but the range is that of the middle half: for many short runs, of which some are
    always disturbed."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return summarize(known)
    low, middle, high = quantiles(known, n=4, method="inclusive")
    return Summary(middle, low, high, len(known))


def median_interval(values: list[float | None]) -> Summary | None:
    """As summarize, but the range is where the true median lies with 95 % confidence, whatever the values' distribution:
    from the k-th smallest to the k-th largest (W. J. Conover, Practical Nonparametric Statistics). None for less than
    MEDIAN_FEWEST values, whose whole range says less than that."""
    known = sorted(value for value in values if value is not None)
    if len(known) < MEDIAN_FEWEST:
        return None
    most_outside = 0.05 * 2 ** len(known) / 2
    outside = 0
    while sum(math.comb(len(known), below) for below in range(outside + 1)) <= most_outside:
        outside += 1
    return Summary(median(known), known[outside - 1], known[-outside], len(known))


def summarize(values: list[float | None]) -> Summary | None:
    """Median and range of what was measured; None when nothing was."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return Summary(median(known), min(known), max(known), len(known))


def paired_ratios(values: list[float | None], base: list[float | None]) -> list[float]:
    """value/base of each round in which both were measured."""
    if len(values) != len(base):
        raise ValueError("paired values must come from the same rounds")
    return [
        value / reference
        for value, reference in zip(values, base)
        if value is not None and reference is not None and reference > 0
    ]


def paired_differences(values: list[float | None], base: list[float | None]) -> list[float]:
    """value-base of each round in which both were measured."""
    if len(values) != len(base):
        raise ValueError("paired values must come from the same rounds")
    pairs = zip(values, base)
    return [v - b for v, b in pairs if v is not None and b is not None]


def geometric_mean(values: list[float]) -> float | None:
    """None for an empty list; every value must be positive."""
    if not values:
        return None
    return math.exp(sum(math.log(value) for value in values) / len(values))
