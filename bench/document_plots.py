"""The plots of a document of figures, from the record alone: time against memory, each workload against its best peer,
and single figures as bars."""

import re
from collections.abc import Callable

from common import means
from common.subjects import REHEAP
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator
from reheap_lab.report import palette, plots, svg
from reheap_lab.report.palette import Look, role

TIME, MEMORY = "wall_s", "peak_rss_kib"
TITLES = {TIME: "wall time", MEMORY: "peak resident memory"}
# Where neither time nor peak is the question, the figure that is: its name, what it is, its scale.
SINGLE = {
    "idle": ("after_2000_ms", "resident 2 s after all was freed, % of what it was", 1),
    "survivors": ("after_10000_ms", "resident after 10 s, MiB", 1 / 1024),
    "hours": ("peak_over_live", "the most that was resident, × the most that was live", 1),
    "latency": ("malloc_all_p99.99_s", "1 malloc in 10,000 takes longer than so many µs, median of the rounds", 1e6),
}
TIMELESS = {"startup", "threads", "controls", "heaps", "fast-path", *SINGLE}
WIDTH, HEIGHT, LANE, NAMES, GAP, FOOT = 620, 340, 15, 130, 28, 44
LIGHT = {"panel": "#ffffff", "ink": "#171b22", "muted": "#5b6472", "line": "#dfe3e9", "band": "#eef0f4",
         "alarm": "#c2410c"} | dict(word[2:].split(":") for word in palette.variables("light").split(";"))
DOUBLINGS = 4.0  # a ratio so large that the axis goes by doublings: half as much is as far as twice as much
Picture = tuple[str, str]  # the stem of its file's name, and the SVG


def pictures(name: str, section: dict) -> dict[str, Picture]:
    """By title. Only of what was measured: a plot without its figures is left out."""
    comparisons = section["comparisons"]
    with svg.styled():
        if name in SINGLE:
            drawn = {SINGLE[name][1]: ("bars", single(comparisons, *SINGLE[name]))}
        elif name in TIMELESS:
            drawn = {}
        else:
            drawn = {"Time and memory": ("means", time_and_memory(comparisons)),
                     f"{REHEAP} against the best peer": ("best", against_best(comparisons))}
    return {title: (stem, picture) for title, (stem, picture) in drawn.items() if picture}


def ratios(comparisons: dict, figure: str, allocator: str, of: Callable[[dict], float | None]) -> means.Ratios:
    return {title: of(by_figure.get(figure, {}).get(allocator, {})) for title, by_figure in comparisons.items()}


def to_base(cell: dict) -> float | None:
    return cell["ratio"][0] if "ratio" in cell else None


def to_best(cell: dict) -> float | None:
    return cell.get("to_best_peer")


def names_of(comparisons: dict, figure: str) -> list[str]:
    return list(dict.fromkeys(name for by_figure in comparisons.values() for name in by_figure.get(figure, {})))


def time_and_memory(comparisons: dict) -> str | None:
    """Each allocator at its geometric means, of the system heap's."""
    names = names_of(comparisons, TIME)
    points = {name: tuple(means.geometric(ratios(comparisons, figure, name, to_base)) for figure in (TIME, MEMORY))
              for name in names}
    points = {name: point for name, point in points.items() if None not in point}
    if len(points) < 2:
        return None
    looks, made = palette.looks(points), svg.figure(WIDTH, HEIGHT)
    axes = made.add_axes((0.11, FOOT / HEIGHT, 0.64, 1 - (FOOT + 16) / HEIGHT))
    for name, (x, y) in points.items():
        size = 11 if name == REHEAP else 8
        axes.plot([x], [y], looks[name].marker, color=looks[name].colour, markersize=size, markeredgewidth=0)
    axes.margins(0.1)
    axes.grid()
    for axis, figure in ((axes.xaxis, TIME), (axes.yaxis, MEMORY)):
        axis.set_major_locator(MaxNLocator(6))
        axis.set_label_text(f"{TITLES[figure]}, × {names[0]} (less is better)")
    plots.name_beside(axes, points, looks)
    spoken = "; ".join(f"{name} {x:.3f}, {y:.3f}" for name, (x, y) in points.items())
    return standalone(svg.render(made, f"Geometric means of time and memory: {spoken}"))


def against_best(comparisons: dict) -> str | None:
    """A lane for each workload: how much reheap takes of what the best peer takes there."""
    found = {figure: ratios(comparisons, figure, REHEAP, to_best) for figure in (TIME, MEMORY)}
    titles = [title for title in comparisons if any(by_title[title] for by_title in found.values())]
    if not titles:
        return None
    height, scale = LANE * len(titles) + FOOT + 8, plots.ratio_axis([DOUBLINGS])
    made = svg.figure(WIDTH, height)
    for panel, (figure, by_title) in enumerate(found.items()):
        share = (1 - (NAMES + GAP + 16) / WIDTH) / 2
        axes = made.add_axes((NAMES / WIDTH + panel * (share + GAP / WIDTH), FOOT / height, share,
                              LANE * len(titles) / height))
        _lanes(axes, titles if panel == 0 else [""] * len(titles))
        axes.axvline(scale.at(1), color=role("muted"), linewidth=1)
        for lane, title in enumerate(titles):
            if value := by_title[title]:
                colour = role("alarm") if value > 1 else palette.looks([REHEAP])[REHEAP].colour
                axes.barh(lane, scale.at(value), height=0.7, color=colour, linewidth=0)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.xaxis.set_major_formatter(FuncFormatter(scale.tick))
        axes.set_xlabel(f"{TITLES[figure]}, × the best peer")
    spoken = "; ".join(f"{title} " + " and ".join(f"{by[title]:.2f}" if by[title] else "not measured"
                                                  for by in found.values()) for title in titles)
    return standalone(svg.render(made, f"Time and memory of reheap, of the best peer's: {spoken}"))


def single(comparisons: dict, figure: str, label: str, scale: float) -> str | None:
    """A block of bars for each comparison, one for each allocator."""
    names = names_of(comparisons, figure)
    bars = [(title, name, by_figure[figure][name]["median"][0] * scale)
            for title, by_figure in comparisons.items() for name in names if name in by_figure.get(figure, {})]
    if not bars:
        return None
    looks, height = palette.looks(names), LANE * len(bars) + FOOT + 8
    made = svg.figure(WIDTH, height)
    axes = made.add_axes((1.8 * NAMES / WIDTH, FOOT / height, 0.9 - 1.8 * NAMES / WIDTH, LANE * len(bars) / height))
    _lanes(axes, [f"{title}: {name}" for title, name, _ in bars])
    for lane, (_, name, value) in enumerate(bars):
        _bar(axes, lane, value, looks[name])
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set_xlabel(f"{label} (less is better)")
    spoken = "; ".join(f"{title}, {name} {value:.4g}" for title, name, value in bars)
    return standalone(svg.render(made, f"{label}: {spoken}"))


def _bar(axes: Axes, lane: int, value: float, look: Look) -> None:
    axes.barh(lane, value, height=0.7, color=look.colour, linewidth=0)
    axes.annotate(f"{value:,.4g}", (value, lane), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9)


def _lanes(axes: Axes, names: list[str]) -> None:
    """The first on top."""
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), [svg.label(name, 40) for name in names], fontsize=9)
    axes.tick_params(axis="y", labelcolor=role("ink"))
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")


def standalone(picture: str) -> str:
    """A file of its own, with a size and, for viewers that know no variables, with the light page's colours."""
    coloured = re.sub(r"var\(--([\w-]+)\)", lambda variable: LIGHT[variable[1]], picture)
    opening, rest = coloured.split(">", 1)
    width, height = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', opening).groups()
    whole = (f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="{width}" '
             f'height="{height}" font-family="system-ui, sans-serif" ')
    return (opening.replace("<svg ", whole, 1) + f'><rect width="100%" height="100%" fill="{LIGHT["panel"]}"/>'
            + rest.replace(' href="#', ' xlink:href="#') + "\n")
