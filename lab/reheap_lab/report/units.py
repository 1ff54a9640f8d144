"""One unit and as many decimals for all the values of a column or an axis, so that they can be compared by eye."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from .. import figures

_STEPS = {
    "s": (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)),
    "KiB": (("GiB", 1024.0 ** 2), ("MiB", 1024.0), ("KiB", 1.0)),
    "bytes": (("GiB", 1024.0 ** 3), ("MiB", 1024.0 ** 2), ("KiB", 1024.0), ("bytes", 1.0)),
    "events": (("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0)),
}


@dataclass(frozen=True)
class Scale:
    unit: str
    size: float
    decimals: int

    def number(self, value: float) -> str:
        return f"{value / self.size:,.{self.decimals}f}".replace("-", "−")

    def text(self, value: float) -> str:
        return f"{self.number(value)} {self.unit}".rstrip()


def name_of(figure: str) -> str:
    """What a figure is called, also one that this version does not know."""
    return figures.ALL[figure].label if figure in figures.ALL else figure.replace("_", " ")


def of_figure(name: str, values: Iterable[float]) -> Scale:
    values = list(values)
    known = figures.ALL.get(name)
    if known and known.unit == "":  # a count, whose median may lie between two
        middle = sorted(values)[len(values) // 2] if values else 0
        return Scale("", 1.0, 0 if middle >= 100 or all(v == int(v) for v in values) else 1)
    return of_unit(known.unit if known else "", values)


def of_unit(unit: str, values: Iterable[float]) -> Scale:
    """The scale in which the typical value has four digits: enough to see the interval."""
    sizes = sorted(abs(v) for v in values if v)
    largest, middle = (sizes[-1], sizes[len(sizes) // 2]) if sizes else (0.0, 0.0)
    name, size = _step(unit, largest)
    if size == 1.0 and all(v == int(v) for v in sizes):
        return Scale(name, size, 0)
    digits = math.floor(math.log10(middle / size)) if middle else 0
    return Scale(name, size, min(3, max(0, 3 - digits)))


def _step(unit: str, largest: float) -> tuple[str, float]:
    steps = _STEPS.get(unit, ((unit, 1.0),))
    return next((step for step in steps if largest >= step[1] * (1 if unit == "s" else 4)), steps[-1])


def interval(low: float, high: float) -> str:
    """Two ratios as differences, with the sign of per cent said once."""
    first, last = percent(low), percent(high)
    alike = first.endswith("%") and last.endswith("%")
    return f"{first.removesuffix(' %') if alike else first} to {last}"


def percent(ratio: float) -> str:
    """A ratio as a difference: 0.968 is −3.2 %. Far from one it is a multiple, which says more."""
    if ratio >= 2 or ratio <= 0.4:
        return f"×{ratio:.2f}" if ratio < 10 else f"×{ratio:.0f}" if ratio < 1e6 else f"×{ratio:.2g}"
    change = (ratio - 1) * 100
    sign = "−" if round(change, 1) < 0 else "+" if round(change, 1) > 0 else "±"
    return f"{sign}{abs(change):.1f} %"
