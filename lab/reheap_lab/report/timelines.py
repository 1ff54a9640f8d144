"""The plots over time: memory and busy cores, the median of the runs and single ones."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ..results import Comparison, Run
from . import svg, units
from .palette import Look, role
from .plots import WIDE, Picture

SMALL = (250, 150)
MOST_SINGLES = 12  # runs drawn one by one
MOST_POINTS = 160  # of one run
LITTLE = 0.05  # of the most that lived
GRID = 240  # points of a median
STRETCHES = 60  # that busy cores are averaged over


@dataclass(frozen=True)
class Course:
    """What one allocator's runs did over time, in the plot's unit."""

    subject: str
    look: Look
    singles: list[tuple[np.ndarray, np.ndarray]]
    time: np.ndarray
    median: np.ndarray


@dataclass(frozen=True)
class Timeline:
    together: Picture
    apart: list[Picture]
    rows: list[tuple[str, list[str]]]  # the same as a table: at tenths of the time
    columns: list[str]


def timeline(comparison: Comparison, key: str, title: str, unit: str, looks: dict[str, Look]) -> Timeline | None:
    """The series named `key` of every allocator that has it; `over_live` is resident over live memory."""
    points = {"over_live": _over_live, "busy_cores": _busy}.get(key, lambda run: _points(run, key))
    raw = {s: [points(run) for run in comparison.measured(s)] for s in looks}
    raw = {s: [points for points in runs if points is not None] for s, runs in raw.items()}
    raw = {s: runs for s, runs in raw.items() if runs}
    if not raw:
        return None
    everything = [run for runs in raw.values() for run in runs]
    clock = units.of_unit("s", [t[-1] for t, _ in everything])
    scale = units.of_unit(unit, [float(v.max()) for _, v in everything])
    courses = [_course(s, looks[s], runs, clock.size, scale.size) for s, runs in raw.items()]
    top = max(float(v.max()) for c in courses for _, v in [*c.singles, (c.time, c.median)]) * 1.06 or 1.0
    end = max(float(c.time[-1]) for c in courses)
    y_label = f"{title}, {scale.unit}".rstrip(", ")
    idle = _idle(comparison) / clock.size
    apart = [_small(course, courses, top, end, idle, title, scale.unit, clock.unit) for course in courses]
    columns = [clock.text(end * clock.size * tenth / 10) for tenth in range(1, 11)]
    rows = [(c.subject, [_value_at(c, end * tenth / 10, scale) for tenth in range(1, 11)]) for c in courses]
    return Timeline(_together(courses, end, y_label, clock.unit), apart, rows, columns)


def _points(run: Run, key: str) -> tuple[np.ndarray, np.ndarray] | None:
    time, values = run.series.t_s, getattr(run.series, key)
    if len(time) < 2 or len(values) != len(time):
        return None
    return np.asarray(time, dtype=float), np.asarray(values, dtype=float)


def _over_live(run: Run) -> tuple[np.ndarray, np.ndarray] | None:
    """Where next to nothing lives, the quotient says nothing: it is left out there."""
    resident, live = _points(run, "rss_kib"), _points(run, "live_kib")
    if resident is None or live is None:
        return None
    enough = live[1] > LITTLE * live[1].max()
    if enough.sum() < 2:
        return None
    return resident[0][enough], resident[1][enough] / live[1][enough]


def _busy(run: Run) -> tuple[np.ndarray, np.ndarray] | None:
    """The mean of each stretch: between two samples a core is busy or not, which says little."""
    points = _points(run, "busy_cores")
    if points is None or len(points[0]) <= STRETCHES:
        return points
    time, busy = points
    spent = np.concatenate(([0.0], np.cumsum(busy[1:] * np.diff(time))))
    ends = np.linspace(time[0], time[-1], STRETCHES + 1)
    means = np.diff(np.interp(ends, time, spent)) / np.diff(ends)
    return (ends[1:] + ends[:-1]) / 2, means


def _course(subject: str, look: Look, runs: list, second: float, size: float) -> Course:
    scaled = [(t / second, v / size) for t, v in runs]
    step = max(1, len(scaled) // MOST_SINGLES)
    singles = [thin(t, v, MOST_POINTS) for t, v in scaled[::step][:MOST_SINGLES]]
    time = np.linspace(0, float(np.median([t[-1] for t, _ in scaled])), GRID)
    alive = np.array([np.interp(time, t, v, left=np.nan if t[0] > time[1] * 3 else v[0], right=np.nan)
                      for t, v in scaled])
    enough = np.isfinite(alive).sum(axis=0) * 2 >= len(scaled)
    median = np.full(GRID, np.nan)
    median[enough] = np.nanmedian(alive[:, enough], axis=0)
    return Course(subject, look, singles, time[enough], median[enough])


def thin(time: np.ndarray, values: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """At most `most` points, the lowest and the highest of each stretch: no peak gets lost."""
    if len(time) <= most:
        return time, values
    kept = {0, len(time) - 1}
    for part in np.array_split(np.arange(len(time)), most // 2 - 1):
        kept |= {int(part[values[part].argmin()]), int(part[values[part].argmax()])}
    index = sorted(kept)
    return time[index], values[index]


def _idle(comparison: Comparison) -> float:
    """How many seconds a server was left alone at the end."""
    server = comparison.settings.get("server") if comparison.kind == "server" else None
    return float(server.get("idle") or 0) if isinstance(server, dict) else 0.0


def _value_at(course: Course, time: float, scale: units.Scale) -> str:
    if time > course.time[-1] * 1.0001:
        return ""
    return scale.number(float(np.interp(time, course.time, course.median)) * scale.size)


def _frame(axes: Axes, top: float, end: float, ticks: int) -> None:
    axes.set_xlim(0, end * 1.01)
    axes.set_ylim(0, top)
    axes.grid(axis="y")
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(ticks))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.10g}"))


def _together(courses: list[Course], end: float, y_label: str, clock: str) -> Picture:
    made = svg.figure(WIDE, 300)
    axes = made.add_axes((0.06, 0.16, 0.92, 0.8))
    _frame(axes, max(float(c.median.max()) for c in courses) * 1.06 or 1.0, end, 10)
    for course in courses:
        axes.plot(course.time, course.median, color=course.look.colour, linestyle=course.look.dash, linewidth=2,
                  gid=course.look.group)
        axes.plot(course.time[-1:], course.median[-1:], course.look.marker, color=course.look.colour, markersize=7,
                  markeredgewidth=0, gid=course.look.group, clip_on=False)
        axes.set_xlabel(f"time since the start, {clock}")
    alt = f"{y_label} over time, the median of the runs of " + ", ".join(c.subject for c in courses)
    return Picture(svg.render(made, alt), y_label)


def _small(course: Course, courses: list[Course], top: float, end: float, idle: float, title: str, unit: str,
           clock: str) -> Picture:
    made = svg.figure(*SMALL)
    axes = made.add_axes((0.145, 0.2, 0.82, 0.64))
    _frame(axes, top, end, 5)
    if idle:
        axes.axvspan(max(0.0, float(course.time[-1]) - idle), float(course.time[-1]), color=role("band"), linewidth=0)
    for other in courses:
        if other is not course:
            axes.plot(other.time, other.median, color=role("line"), linewidth=1)
    for time, values in course.singles:
        axes.plot(time, values, color=course.look.colour, linewidth=0.7, alpha=0.35)
    axes.plot(course.time, course.median, color=course.look.colour, linewidth=2)
    axes.set_title(svg.label(course.subject, 26), loc="left", fontweight="bold")
    axes.set_title(f"{unit or 'number'} over {clock}", loc="right", color=role("muted"), fontsize=9)
    peak = float(np.max(course.median))
    alt = f"{title} of {course.subject} over time, at most {peak:,.4g} {unit}".rstrip()
    return Picture(svg.render(made, alt), course.subject)
