"""How figures are spread: intervals against the base, every run of a figure, runs in order; and shares."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from .. import answer, figures
from ..results import Comparison, Run, Summary
from . import svg, units
from .palette import KINDS, Look, role

WIDTH = 430  # half a page; the whole of a phone
WIDE = 880
SCATTER = 290  # the height of the one of time against memory, if its names need no more
NAME = 17  # the height of one name beside it
NAME_LETTERS = 17  # so many have room there
LANE = 30  # the height of one allocator in a plot that has a line of each


@dataclass(frozen=True)
class Picture:
    svg: str
    caption: str


def lanes(width: float, names: list[str], lane: float = LANE, below: float = 40) -> tuple[svg.Figure, Axes]:
    """A plot with a horizontal lane for each name, the first on top."""
    height = lane * len(names) + below + 8
    made = svg.figure(width, height)
    left = min(0.32, (14 + 6.6 * max(len(svg.label(n)) for n in names)) / width)
    axes = made.add_axes((left, below / height, 0.965 - left, lane * len(names) / height))
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), [svg.label(n) for n in names])
    axes.tick_params(axis="y", labelcolor=role("ink"), pad=6)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    return made, axes


def forest(comparison: Comparison, figure: str, looks: dict[str, Look]) -> Picture | None:
    """How each allocator differs from the base: the interval of the ratio, and the margin of equality."""
    verdicts = [v for v in comparison.verdicts if v.figure == figure]
    if not verdicts:
        return None
    scale = ratio_axis([x for v in verdicts for x in (v.low, v.high)])
    made, axes = lanes(WIDTH, [v.subject for v in verdicts])
    margin = verdicts[0].margin or comparison.settings.get("margin")
    if margin:
        axes.axvspan(scale.at(1 - margin), scale.at(1 + margin), color=role("band"), linewidth=0)
    axes.axvline(scale.at(1), color=role("muted"), linewidth=1)
    for lane, verdict in enumerate(verdicts):
        look = looks[verdict.subject]
        low, middle, high = (scale.at(x) for x in (verdict.low, verdict.ratio, verdict.high))
        axes.plot([low, high], [lane, lane], color=look.colour, linewidth=3, solid_capstyle="butt", gid=look.group)
        axes.plot([middle], [lane], look.marker, color=look.colour, markersize=8, markeredgewidth=0, gid=look.group)
    axes.margins(x=0.08)
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(scale.tick))
    name = units.name_of(figure)
    base = verdicts[0].base
    axes.set_xlabel(f"{name}, against {svg.label(base)}")
    spoken = "; ".join(f"{v.subject} {units.percent(v.ratio)} ({units.percent(v.low)} to {units.percent(v.high)})"
                       for v in verdicts)
    return Picture(svg.render(made, f"{name} against {base}: {spoken}"), name)


def time_and_memory(comparison: Comparison, looks: dict[str, Look]) -> Picture | None:
    """Each allocator at its time and its memory, with both intervals: what the answer rests on. The names stand in a
    column beside the plot, so that they cannot overlap."""
    names, memory = answer.measured(comparison), answer.memory_figure(comparison)
    both = [comparison.summaries.get(figure, {}) for figure in (answer.TIME, memory)]
    if len(names) < 2 or not all(name in by for by in both for name in names):
        return None
    scales = [units.of_figure(figure, [by[name].median for name in names])
              for figure, by in zip((answer.TIME, memory), both)]
    height = max(SCATTER, 64 + NAME * len(names))
    made = svg.figure(WIDTH, height)
    axes = made.add_axes((0.15, 48 / height, 0.56, 1 - 64 / height))
    points = {name: [_scaled(by[name], scale) for by, scale in zip(both, scales)] for name in names}
    for name, ((x, *across), (y, *along)) in points.items():
        look = looks[name]
        axes.plot(across, [y, y], color=look.colour, linewidth=2, gid=look.group)
        axes.plot([x, x], along, color=look.colour, linewidth=2, gid=look.group)
        axes.plot([x], [y], look.marker, color=look.colour, markersize=9, markeredgewidth=0, gid=look.group)
    axes.margins(0.1)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_locator(MaxNLocator(6))
    axes.grid()
    axes.set_xlabel(f"{units.name_of(answer.TIME)}, {scales[0].unit} (less is better)")
    axes.set_ylabel(f"{units.name_of(memory)}, {scales[1].unit} (less is better)")
    name_beside(axes, {name: (x, y) for name, ((x, *_), (y, *_)) in points.items()}, looks)
    spoken = "; ".join(f"{name} {scales[0].text(both[0][name].median)}, {scales[1].text(both[1][name].median)}"
                       for name in names)
    return Picture(svg.render(made, f"Time and memory: {spoken}"), "time and memory")


def _scaled(summary: Summary, scale: units.Scale) -> tuple[float, float, float]:
    return summary.median / scale.size, summary.low / scale.size, summary.high / scale.size


def name_beside(axes: Axes, points: dict[str, tuple[float, float]], looks: dict[str, Look]) -> None:
    """The highest on top, a line's height apart, each with a thin line to its point."""
    step = NAME / axes.get_window_extent().height
    low, high = axes.get_ylim()
    ranked = sorted(points, key=lambda name: -points[name][1])
    place = 1 + step
    for left, name in zip(range(len(ranked), 0, -1), ranked):
        wanted = (points[name][1] - low) / (high - low)
        place = max(min(place - step, wanted), (left - 1) * step)
        axes.annotate(svg.label(name, NAME_LETTERS), points[name], (1.05, place), textcoords="axes fraction",
                      va="center", color=role("ink"), gid=looks[name].group, annotation_clip=False,
                      arrowprops={"arrowstyle": "-", "color": looks[name].colour, "linewidth": 0.7, "shrinkB": 5})


class ratio_axis:
    """Differences in per cent; or doublings, when something differs by more than that shows well."""

    def __init__(self, ratios: list[float]):
        self.logarithmic = max(ratios) > 2.2 or min(ratios) < 0.4

    def at(self, ratio: float) -> float:
        return np.log2(max(ratio, 1e-6)) if self.logarithmic else (ratio - 1) * 100

    def tick(self, value: float, _: int) -> str:
        if not self.logarithmic:
            return "0" if abs(value) < 1e-9 else f"{value:+.4g} %".replace("-", "−")
        return f"×{2.0 ** value:.2g}"


def distribution(comparison: Comparison, figure: str, looks: dict[str, Look]) -> Picture | None:
    """Each run of each allocator, with the quartiles and the median."""
    values = {}
    for subject in looks:
        runs = [run for run in comparison.measured(subject) if figure in run.figures]
        if runs:
            values[subject] = runs
    if not values:
        return None
    name = units.name_of(figure)
    scale = units.of_figure(figure, [run.figures[figure] for runs in values.values() for run in runs])
    made, axes = lanes(WIDTH, list(values))
    for lane, (subject, runs) in enumerate(values.items()):
        _box_and_points(axes, lane, runs, [run.figures[figure] / scale.size for run in runs], looks[subject])
    axes.margins(x=0.04)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.10g}"))
    axes.set_xlabel(f"{name}, {scale.unit}" if scale.unit else name)
    spoken = "; ".join(f"{subject} median {scale.text(np.median([r.figures[figure] for r in runs]))}"
                       for subject, runs in values.items())
    return Picture(svg.render(made, f"{name} of every run: {spoken}"), name)


def _box_and_points(axes: Axes, lane: int, runs: list[Run], values: list[float], look: Look) -> None:
    if len(values) > 3:
        low, middle, high = np.percentile(values, (25, 50, 75))
        axes.barh(lane, high - low, left=low, height=0.56, color=look.colour, alpha=0.22, linewidth=0, gid=look.group)
    else:
        middle = np.median(values)
    axes.plot([middle, middle], [lane - 0.36, lane + 0.36], color=look.colour, linewidth=2.4, gid=look.group)
    offsets = lane + spread(len(values))
    usual = [(x, y) for x, y, run in zip(values, offsets, runs) if not run.outlier]
    apart = [(x, y) for x, y, run in zip(values, offsets, runs) if run.outlier]
    size = 4.4 if len(values) <= 40 else 3
    if usual:
        axes.plot(*zip(*usual), look.marker, color=look.colour, markersize=size, markeredgewidth=0, alpha=0.75,
                  gid=look.group)
    if apart:
        axes.plot(*zip(*apart), look.marker, markerfacecolor="none", color=look.colour, markersize=size + 1.6,
                  markeredgewidth=1.2, gid=look.group)


def spread(count: int) -> np.ndarray:
    """Offsets that keep points of nearly one value apart; the same on every page (a golden-ratio sequence)."""
    return ((np.arange(count) * 0.618034 + 0.5) % 1 - 0.5) * 0.5


def in_order(comparison: Comparison, figure: str, looks: dict[str, Look]) -> Picture | None:
    """Every run at its place in time, against the median of its allocator: outliers and drift stand out."""
    order = {id(run): i + 1 for i, run in enumerate(comparison.runs)}
    subjects = [s for s in looks if any(figure in run.figures for run in comparison.measured(s))]
    if not subjects:
        return None
    medians = {s: np.median([r.figures[figure] for r in comparison.measured(s) if figure in r.figures])
               for s in subjects}
    subjects = [s for s in subjects if medians[s] > 0]
    if not subjects:
        return None

    def change(run: Run) -> float:
        return (run.figures[figure] / medians[run.subject] - 1) * 100

    limit = _usual_reach([change(r) for s in subjects for r in comparison.measured(s) if figure in r.figures])
    height = 44 * len(subjects) + 44
    made = svg.figure(WIDE, height)
    for lane, subject in enumerate(subjects):
        bottom = (height - 4 - 44 * (lane + 1)) / height
        axes = made.add_axes((0.16, bottom, 0.78, 38 / height))
        runs = [r for r in comparison.runs if r.subject == subject and r.failed is None and figure in r.figures]
        _order_lane(axes, runs, [order[id(r)] for r in runs], [change(r) for r in runs], limit, looks[subject])
        axes.set_xlim(0.2, len(comparison.runs) + 0.8)
        axes.text(-0.012, 0.5, svg.label(subject), transform=axes.transAxes, ha="right", va="center", color=role("ink"))
        axes.text(1.008, 0.5, f"±{limit:.2g} %", transform=axes.transAxes, va="center", color=role("muted"), fontsize=9)
        if lane < len(subjects) - 1:
            axes.xaxis.set_major_locator(NullLocator())
    axes.xaxis.set_major_locator(MaxNLocator(12, integer=True))
    axes.set_xlabel("run, in the order they were made")
    name = units.name_of(figure)
    runs = figures.plural(len(comparison.runs), "run")
    alt = f"{name} of each run against its allocator's median, in the order of {runs}"
    return Picture(svg.render(made, alt), name)


def _usual_reach(changes: list[float]) -> float:
    """How far most runs lie from their median: a run beyond it is drawn at the edge, with its figure."""
    sizes = np.abs(changes)
    return float(min(sizes.max(), max(1.0, 5 * np.median(sizes), np.percentile(sizes, 90) * 1.2)) or 1.0)


def _order_lane(axes: Axes, runs: list[Run], places: list[int], changes: list[float], limit: float, look: Look) -> None:
    axes.set_ylim(-1.25 * limit, 1.25 * limit)
    axes.axhline(0, color=role("muted"), linewidth=0.8)
    axes.spines["left"].set_visible(False)
    axes.yaxis.set_major_locator(NullLocator())
    axes.set_facecolor(role("band"))
    shown = np.clip(changes, -limit, limit)
    counted = [i for i, run in enumerate(runs) if not run.warmup]
    if len(counted) >= 5:
        steady = [np.median([changes[j] for j in counted[max(0, n - 2):n + 3]]) for n in range(len(counted))]
        axes.plot([places[i] for i in counted], np.clip(steady, -limit, limit), color=look.colour, linewidth=1.2,
                  alpha=0.6, gid=look.group)
    for chosen, hollow, size in (
            ([i for i, r in enumerate(runs) if not r.warmup and not r.outlier], False, 4.4),
            ([i for i, r in enumerate(runs) if not r.warmup and r.outlier], True, 6.5),
            ([i for i, r in enumerate(runs) if r.warmup], True, 3.4)):
        if chosen:
            axes.plot([places[i] for i in chosen], shown[chosen], look.marker, color=look.colour, markersize=size,
                      markerfacecolor="none" if hollow else look.colour, markeredgewidth=1.1 if hollow else 0,
                      gid=look.group)
    for i, run in enumerate(runs):
        if abs(changes[i]) > limit and not run.warmup:
            right = i >= len(runs) - 2
            axes.annotate(f"{changes[i]:+.0f} %".replace("-", "−"), (places[i], shown[i]), fontsize=9, va="center",
                          xytext=(-7 if right else 7, 0), textcoords="offset points", ha="right" if right else "left",
                          color=role("ink"))


def shares(comparison: Comparison) -> Picture | None:
    """Where the time goes: the share of samples in each kind of module."""
    found = {subject: shares for subject, shares in comparison.shares().items() if shares}
    if not found:
        return None
    made, axes = lanes(WIDE, list(found), lane=34)
    for lane, parts in enumerate(found.values()):
        start = 0.0
        for kind in KINDS:
            share = parts.get(kind, 0.0)
            if share <= 0:
                continue
            axes.barh(lane, share, left=start, height=0.68, color=role(f"k-{kind}"), edgecolor=role("panel"),
                      linewidth=1)
            if share >= 0.045:
                axes.text(start + share / 2, lane, f"{share:.0%}", ha="center", va="center", fontsize=10,
                          color=role(f"on-{kind}"))
            start += share
    axes.set_xlim(0, 1.001)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:.0%}"))
    axes.set_xlabel("share of the samples")
    spoken = "; ".join(f"{s}: " + ", ".join(f"{k} {v:.1%}" for k, v in parts.items()) for s, parts in found.items())
    return Picture(svg.render(made, f"Where the time goes. {spoken}"), "Where the time goes")
