"""Histograms of times, as the programs print them: pairs of a bucket's least nanoseconds and its count."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

_ROUNDING = 1e-6  # of a call: a product like 0.9999 x 10,000 may come out above the whole number it is

@dataclass(frozen=True)
class Histogram:
    starts_ns: np.ndarray  # rising
    counts: np.ndarray
    longest_ns: float | None  # exact; None if there was no call

    @classmethod
    def read(cls, printed: dict) -> "Histogram":
        pairs = sorted((start, count) for start, count in printed["buckets"] if count)
        starts, counts = zip(*pairs) if pairs else ((), ())
        return cls(np.array(starts, dtype=float), np.array(counts, dtype=np.int64),
                   printed["longest_ns"] if pairs else None)

    @property
    def calls(self) -> int:
        return int(self.counts.sum())

    def quantile(self, share: float) -> float | None:
        """The least time that this share of the calls did not exceed, to the width of a bucket (3 %)."""
        if not self.calls:
            return None
        return float(self.starts_ns[np.searchsorted(np.cumsum(self.counts), share * self.calls - _ROUNDING)])

    def share_above(self) -> tuple[np.ndarray, np.ndarray]:
        """For a plot: times, and the share of the calls that took as long or longer."""
        slower = self.calls - np.cumsum(self.counts) + self.counts
        return self.starts_ns, slower / max(self.calls, 1)

    def as_json(self) -> dict:
        return {"calls": self.calls, "longest_ns": self.longest_ns,
                "buckets": [[float(start), int(count)] for start, count in zip(self.starts_ns, self.counts)]}


def added(several: list[Histogram]) -> Histogram:
    """Runs calibrate their clocks anew, so their buckets begin at slightly different times: all are kept."""
    counts: Counter[float] = Counter()
    for one in several:
        counts.update(dict(zip(one.starts_ns.tolist(), one.counts.tolist())))
    longest = [one.longest_ns for one in several if one.longest_ns is not None]
    return Histogram.read({"buckets": list(counts.items()), "longest_ns": max(longest, default=None)})
