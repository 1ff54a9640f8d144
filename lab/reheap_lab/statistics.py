"""The statistics of a comparison, on plain numbers. docs/design/lab.md says why these.

Two subjects are compared by the ratios of their paired runs, one pair a round. The ratio is estimated by the 20 %
trimmed mean of the logarithms; the interval reaches as many standard errors to either side as Student's t asks for, so
that few runs are not mistaken for certainty.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy

TRIM = 0.2
FEWEST = 3  # below, an interval would be a guess
CERTAIN = 1.6  # a claimed difference is so many times as large as its interval reaches to either side
WIDEST = 230.0  # the logarithm of what a ratio may reach: nearly 1e100
OUTLYING = 3.5  # Iglewicz and Hoaglin's bound for the modified z-score
NORMAL_MAD = 1.4826  # standard deviation of a normal distribution over its MAD


@dataclass(frozen=True)
class Interval:
    middle: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Estimate:
    """A location and how well it is known."""

    middle: float
    error: float  # the standard error; 0 where most values are equal
    degrees: int
    n: int
    least: float  # of all values
    most: float


@dataclass(frozen=True)
class Drift:
    correlation: float  # Spearman's, of the figure with the order of the runs
    p: float
    change: float  # from the first run to the last, as a share of the first, by the Theil-Sen line


# ---- location and interval ----------------------------------------------------------------------

def location(values: Sequence[float], confidence: float) -> Interval | None:
    """The 20 % trimmed mean of `values`, and its interval by Tukey and McLaughlin (1963); None of too few."""
    found = estimate(values)
    return mean_of([found], confidence) if found else None


def estimate(values: Sequence[float]) -> Estimate | None:
    data = numpy.sort(numpy.asarray(values, dtype=float))
    n = len(data)
    if n < FEWEST:
        return None
    cut = int(TRIM * n)
    middle, kept = float(data[cut:n - cut].mean()), n - 2 * cut
    spread = float(data.clip(data[cut], data[n - cut - 1]).std(ddof=1))  # winsorised: what is cut counts as the ends
    if spread < 1e-12 * max(1.0, abs(middle)):
        spread = 0.0
    return Estimate(middle, spread * math.sqrt((n - 1) / (kept * (kept - 1))), kept - 1, n, float(data[0]),
                    float(data[-1]))


def mean_of(estimates: Sequence[Estimate], confidence: float) -> Interval:
    """The mean of independent estimates: their variances add up, with the degrees of freedom of Welch (1947) and
    Satterthwaite (1946). One whose values are nearly all equal has no variance: it adds the width of all of them."""
    count, middle = len(estimates), float(numpy.mean([one.middle for one in estimates]))
    variances = [one.error**2 for one in estimates]
    half = 0.0
    if any(variances):
        degrees = sum(variances)**2 / sum(v * v / one.degrees for v, one in zip(variances, estimates))
        half = math.sqrt(sum(variances)) * student_quantile(confidence, max(1, int(degrees + 1e-9)))
    below = math.hypot(half, *(one.middle - min(one.middle, one.least) for one in estimates if not one.error))
    above = math.hypot(half, *(max(one.middle, one.most) - one.middle for one in estimates if not one.error))
    return Interval(middle, middle - below / count, middle + above / count, min(one.n for one in estimates))


def student(t: float, degrees: int) -> float:
    """How much of Student's distribution lies within `t` to either side of 0 (Abramowitz and Stegun, 26.7.3 and
    26.7.4)."""
    angle = math.atan2(t, math.sqrt(degrees))
    odd, cosine = degrees % 2, math.cos(angle)
    term, total = cosine if odd else 1.0, 0.0
    for k in range(2 + odd, degrees + 1, 2):
        total += term
        term *= cosine * cosine * (k - 1) / k
    inner = math.sin(angle) * total
    return 2 / math.pi * (angle + inner) if odd else inner


@functools.cache
def student_quantile(share: float, degrees: int) -> float:
    """How far to either side of 0 that share of it lies."""
    low, high = 0.0, 1.0
    while student(high, degrees) < share:
        high *= 2
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if student(middle, degrees) < share else (low, middle)
    return high


def median(values: Sequence[float], confidence: float) -> Interval | None:
    """The median and its interval between two of the values, whatever their distribution (Thompson 1936), for one
    subject's figures as they are. Of few values it is all of them, which holds the median less often than asked for."""
    data = numpy.sort(numpy.asarray(values, dtype=float))
    n = len(data)
    if not n:
        return None
    outside = _left_out(n, confidence)
    return Interval(float(numpy.median(data)), float(data[outside]), float(data[n - 1 - outside]), n)


@functools.cache
def _left_out(n: int, confidence: float) -> int:
    """How many values may be left out at either end, so that the median lies between the others often enough."""
    allowed = Fraction(1 - confidence) / 2 * 2**n  # of the 2**n ways in which n values lie below or above the median
    ways = coefficient = 1  # with none below it
    out = 0
    while ways <= allowed:
        coefficient = coefficient * (n - out) // (out + 1)
        ways += coefficient
        out += 1
    return max(0, out - 1)


def paired_ratio(subject: Sequence[float], base: Sequence[float], confidence: float) -> Interval | None:
    """Subject over base, pair by pair; None when there are too few pairs or a ratio does not exist."""
    logs = paired_logs(subject, base)
    found = None if logs is None else location(logs, confidence)
    return found and exponential(found)


def exponential(logs: Interval) -> Interval:
    """Few figures that differ by orders of magnitude know next to nothing: an interval ends where numbers do."""
    low, middle, high = (math.exp(min(max(log, -WIDEST), WIDEST)) for log in (logs.low, logs.middle, logs.high))
    return Interval(middle, low, high, logs.n)


def paired_logs(subject: Sequence[float], base: Sequence[float]) -> numpy.ndarray | None:
    top, bottom = numpy.asarray(subject, dtype=float), numpy.asarray(base, dtype=float)
    if top.shape != bottom.shape:
        raise ValueError(f"{top.size} figures cannot be paired with {bottom.size}")
    if not (numpy.all(top > 0) and numpy.all(bottom > 0)):
        return None
    return numpy.log(top) - numpy.log(bottom)


# ---- decisions ----------------------------------------------------------------------------------

def equivalent(ratio: Interval, margin: float) -> bool:
    """The whole interval lies within the margin to either side of 1."""
    edge = math.log1p(margin)
    return -edge <= math.log(ratio.low) and math.log(ratio.high) <= edge


def differs(ratio: Interval, margin: float) -> bool:
    """Certainly, and by more than counts as none. That the interval leaves out 1 is not enough: of so many verdicts
    some do so by chance."""
    return abs(math.log(ratio.middle)) > max(math.log1p(margin), CERTAIN * _half_width(ratio))


def decided(ratio: Interval, margin: float) -> bool:
    return equivalent(ratio, margin) or differs(ratio, margin)


def for_all_pairs(confidence: float, subjects: int) -> float:
    """What each interval needs so that those of all pairs of so many hold the truth together as often as one should
    (Bonferroni)."""
    return 1 - (1 - confidence) / max(1, math.comb(subjects, 2))


def precise(ratio: Interval, margin: float) -> bool:
    """Narrow enough to stop. It asks for width alone: who stops as soon as a difference shows finds one by patience.

    The width of half the margin lets equals be called equal; a quarter of the effect is far beyond what chance makes.
    """
    return _half_width(ratio) <= _precise_width(ratio, margin)


def _precise_width(ratio: Interval, margin: float) -> float:
    return max(math.log1p(margin) / 2, abs(math.log(ratio.middle)) / 4)


def runs_until_precise(ratio: Interval, margin: float) -> int:
    """How many more pairs that takes: the width shrinks with the root of n."""
    return max(0, math.ceil(ratio.n * (_half_width(ratio) / _precise_width(ratio, margin)) ** 2) - ratio.n)


def more_runs(ratio: Interval, margin: float) -> int | None:
    """How many more pairs would decide it if the figures go on as they did."""
    if decided(ratio, margin):
        return None
    effect, edge = abs(math.log(ratio.middle)), math.log1p(margin)
    wanted = max(effect / CERTAIN if effect > edge else edge - effect, 1e-6)
    needed = math.ceil(ratio.n * (_half_width(ratio) / wanted) ** 2)
    return max(1, needed - ratio.n)


def _half_width(ratio: Interval) -> float:
    return (math.log(ratio.high) - math.log(ratio.low)) / 2


# ---- what spoils a measurement ------------------------------------------------------------------

def outliers(values: Sequence[float]) -> list[bool]:
    """Which values lie far from the others, by the modified z-score (distance from the median in MADs)."""
    data = numpy.asarray(values, dtype=float)
    if data.size < FEWEST:
        return [False] * data.size
    distances = numpy.abs(data - numpy.median(data))
    spread = NORMAL_MAD * float(numpy.median(distances))
    if spread == 0:  # more than half are equal: the mean distance takes the MAD's place
        spread = 1.2533 * float(distances.mean())
    return [bool(far) for far in distances > OUTLYING * spread] if spread else [False] * data.size


def drift(values: Sequence[float]) -> Drift | None:
    """Whether figures rise or fall with time; None when they are too few or all equal. Their logarithms lie along a
    line: what falls cannot fall by more than all there was."""
    data = numpy.asarray(values, dtype=float)
    if data.size < 6 or numpy.ptp(data) == 0 or data.min() <= 0:
        return None
    order = numpy.arange(data.size)
    correlation = spearman(order, data)
    t = abs(correlation) * math.sqrt((data.size - 2) / max(1 - correlation**2, 1e-300))
    first, last = numpy.triu_indices(data.size, 1)
    logs = numpy.log(data)
    slope = float(numpy.median((logs[last] - logs[first]) / (last - first)))  # Theil and Sen's
    return Drift(correlation, 1 - student(t, data.size - 2), math.expm1(min(slope * (data.size - 1), WIDEST)))


def spearman(some: Sequence[float], others: Sequence[float]) -> float:
    return float(numpy.corrcoef(ranks(some), ranks(others))[0, 1])


def ranks(values: Sequence[float]) -> numpy.ndarray:
    """From 1; equal ones share the mean of their places."""
    _, places, counts = numpy.unique(values, return_inverse=True, return_counts=True)
    return (numpy.cumsum(counts) - (counts - 1) / 2)[places]


def time_weighted(times: Sequence[float], values: Sequence[float], end: float) -> float | None:
    """The mean over time: each value holds until the next sample, the last until the end."""
    if not times or len(times) != len(values) or end <= times[0]:
        return None
    edges = numpy.append(numpy.asarray(times, dtype=float), end).clip(max=end)  # one may come after the end
    return float(numpy.average(values, weights=numpy.diff(edges)))
