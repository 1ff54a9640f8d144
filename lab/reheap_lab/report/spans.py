"""The plots of a collection: the cases beside each other, and figures against the parameter that varies."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from .. import answer
from ..results import Case, Collection
from ..suite import overall, parameters
from . import svg, units
from .palette import Look, role
from .plots import WIDTH, Picture, lanes, ratio_axis

PER_LANE = 13  # the height of one allocator's interval in a case's lane
MOST_VALUES = 12  # that an axis names one by one


def cases(collection: Collection, figure: str, looks: dict[str, Look]) -> Picture | None:
    """Each case's ratios to the base, with their intervals; on top the mean over all."""
    names = overall.measured(collection)
    rows = [("over all", {name: collection.verdict(figure, name) for name in names[1:]})]
    rows += [(case.name, {name: overall.verdict_in(case, figure, name, names[0]) for name in names[1:]})
             for case in collection.measured()]
    rows = [(title, {name: v for name, v in found.items() if v}) for title, found in rows]
    rows = [(title, found) for title, found in rows if found]
    if len(rows) < 2:
        return None
    every = [x for _, found in rows for v in found.values() for x in (v.low, v.ratio, v.high)]
    scale = ratio_axis([v.ratio for _, found in rows for v in found.values()])
    made, axes = lanes(WIDTH, [title for title, _ in rows], lane=max(24, 12 + PER_LANE * (len(names) - 1)))
    axes.axhspan(-0.5, 0.5, color=role("band"), linewidth=0)
    axes.axvline(scale.at(1), color=role("muted"), linewidth=1)
    for lane, (_, found) in enumerate(rows):
        offsets = _offsets(len(names) - 1)
        for name, verdict in found.items():
            _interval(axes, lane + offsets[names.index(name) - 1], [scale.at(x) for x in (verdict.low, verdict.ratio,
                                                                                         verdict.high)], looks[name])
    _reach(axes, [scale.at(v.ratio) for _, found in rows for v in found.values()], list(map(scale.at, every)))
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(scale.tick))
    label = units.name_of(figure)
    axes.set_xlabel(f"{label}, against {svg.label(names[0])}")
    spoken = "; ".join(f"{title}: " + ", ".join(f"{name} {units.percent(v.ratio)}" for name, v in found.items())
                       for title, found in rows)
    return Picture(svg.render(made, f"{label} against {names[0]}. {spoken}"), label)


def _interval(axes: Axes, at: float, span: list[float], look: Look) -> None:
    low, middle, high = span
    axes.plot([low, high], [at, at], color=look.colour, linewidth=2, solid_capstyle="butt", gid=look.group)
    axes.plot([middle], [at], look.marker, color=look.colour, markersize=6, markeredgewidth=0, gid=look.group)


def _offsets(count: int) -> np.ndarray:
    return (np.arange(count) - (count - 1) / 2) * (0.72 / max(count, 1))


def _reach(axes: Axes, middles: list[float], every: list[float]) -> None:
    """All middles, and intervals as far as they do not make everything else small: one that goes on leaves the plot."""
    room = 2.5 * max(abs(x) for x in middles) + 1e-6
    low, high = max(min(every), -room), min(max(every), room)
    gap = 0.06 * (high - low or 1)
    axes.set_xlim(low - gap, high + gap)


# ---- sweeps -------------------------------------------------------------------------------------

def sweeps(collection: Collection, looks: dict[str, Look]) -> list[tuple[str, list[Picture]]]:
    """For each command with parameters: time and memory of each allocator against the one with the most values, once
    for each combination of the others."""
    found: dict[tuple, list[Case]] = {}
    varied: dict[tuple, str] = {}
    for group in dict.fromkeys(case.group for case in collection.cases if case.parameters):
        of_group = [case for case in collection.measured() if case.group == group and case.parameters]
        along = _along(of_group)
        for case in of_group if along else ():
            rest = {name: value for name, value in case.parameters.items() if name != along}
            key = (group, parameters.title(rest))
            varied[key] = along
            found.setdefault(key, []).append(case)
    made = []
    for key, its in found.items():
        pictures = [picture for figure in overall.FIGURES if (picture := _sweep(its, varied[key], figure, looks))]
        made += [(" ".join(filter(None, key)), pictures)] if len(its) > 1 and pictures else []
    return made


def _along(its: list[Case]) -> str | None:
    values: dict[str, dict] = {}
    for case in its:
        for name, value in case.parameters.items():
            values.setdefault(name, {})[value] = None
    return max(values, key=lambda name: (all(map(_is_number, values[name])), len(values[name])), default=None)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _sweep(its: list[Case], along: str, figure: str, looks: dict[str, Look]) -> Picture | None:
    values = [case.parameters[along] for case in its]
    places = _places(values)
    summaries = [case.comparison.summaries.get(overall.figure_in(case.comparison, figure), {}) for case in its]
    medians = [s.median for by in summaries for s in by.values()]
    if not medians:
        return None
    scale = units.of_figure(answer.TIME if figure == answer.TIME else answer.MEMORY[-1], medians)
    made = svg.figure(WIDTH, 270)
    axes = made.add_axes((0.15, 0.19, 0.815, 0.77))
    spoken = []
    for name, look in looks.items():
        points = [(x, by[name]) for x, by in zip(places, summaries) if name in by]
        if points:
            _line(axes, sorted(points, key=lambda point: point[0]), scale.size, look, joined=_all_numbers(values))
            spoken.append(f"{name} " + ", ".join(scale.text(s.median) for _, s in points))
    _value_axis(axes, values, places)
    if max(medians) > 8 * min(medians) > 0:
        axes.set_yscale("log")
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.4g}"))
    axes.grid()
    label = units.name_of(figure)
    axes.set_xlabel(svg.label(along, 40))
    axes.set_ylabel(f"{label}, {scale.unit}")
    alt = f"{label} at {along} {', '.join(values)}: {'; '.join(spoken)}"
    return Picture(svg.render(made, alt), label)


def _line(axes: Axes, points: list, size: float, look: Look, joined: bool) -> None:
    xs = [x for x, _ in points]
    for x, summary in points:
        axes.plot([x, x], [summary.low / size, summary.high / size], color=look.colour, linewidth=1.6, gid=look.group)
    axes.plot(xs, [summary.median / size for _, summary in points], look.marker, color=look.colour, markersize=6,
              markeredgewidth=0, linestyle=look.dash if joined else "none", linewidth=1.6, gid=look.group)


def _all_numbers(values: list[str]) -> bool:
    return all(map(_is_number, values))


def _places(values: list[str]) -> list[float]:
    """Numbers where they belong; other values one after the other."""
    return list(map(float, values)) if _all_numbers(values) else [float(i) for i in range(len(values))]


def _value_axis(axes: Axes, values: list[str], places: list[float]) -> None:
    """Logarithmic where the values grow by factors."""
    if _all_numbers(values) and _grow_by_factors(sorted(set(places))):
        axes.set_xscale("log", base=2)
        axes.xaxis.set_minor_locator(NullLocator())
    step = -(-len(values) // MOST_VALUES)
    axes.xaxis.set_major_locator(FixedLocator(places[::step]))
    axes.xaxis.set_major_formatter(FixedFormatter([svg.label(value, 10) for value in values[::step]]))


def _grow_by_factors(places: list[float]) -> bool:
    if len(places) < 3 or places[0] <= 0:
        return False
    factors, steps = np.diff(np.log(places)), np.diff(places)
    return bool(np.std(factors) / np.mean(factors) < np.std(steps) / np.mean(steps))
