"""The plot of ./dev bench latency: of each allocator, which share of its calls took longer than a time."""

from pathlib import Path

import matplotlib
from common.histograms import Histogram
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from reheap_lab.report import palette
from reheap_lab.report.palette import SERIES, Look

_STYLE = {"svg.fonttype": "none", "svg.hashsalt": "reheap", "font.size": 10, "axes.spines.top": False,
          "axes.spines.right": False, "text.parse_math": False}
SIZE = (11, 8)  # inches, for four panels
SHORTEST_NS, LEAST_SHARE = 8, 3e-9
FRAME_NS = 100_000  # what a game would see


def draw(panels: dict[str, dict[str, Histogram]], names: list[str], path: Path) -> None:
    """One panel a title; both axes by powers of ten."""
    looks = palette.looks(names)
    with matplotlib.rc_context(_STYLE):
        made = Figure(figsize=SIZE, layout="constrained")
        FigureCanvasSVG(made)
        axes = made.subplots(2, 2, sharex=True, sharey=True).flat
        for one, (title, found) in zip(axes, panels.items(), strict=True):
            _panel(one, title, found, looks)
        handles, labels = axes[0].get_legend_handles_labels()
        made.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
        made.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def _panel(axes: Axes, title: str, found: dict[str, Histogram], looks: dict[str, Look]) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.axvline(FRAME_NS, color="#999999", linewidth=0.8, linestyle=":")
    for name, look in looks.items():
        if name in found:
            _curve(axes, name, found[name], look)
    axes.set_xlim(left=SHORTEST_NS)
    axes.set_ylim(LEAST_SHARE, 1.5)
    axes.grid(alpha=0.3)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda ns, _: time_label(ns)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: share_label(share)))
    axes.set_xlabel("time of a call")
    axes.set_ylabel("calls as long or longer")


def _curve(axes: Axes, name: str, histogram: Histogram, look: Look) -> None:
    times, shares = histogram.share_above()
    width = 2.2 if name == "reheap" else 1.2
    axes.step(times, shares, where="post", label=name, color=SERIES[look.index % len(SERIES)][0], linestyle=look.dash,
              linewidth=width)


def time_label(ns: float) -> str:
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= size:
            return f"{ns / size:g} {unit}"
    return f"{ns:g} ns"


def share_label(share: float) -> str:
    return "all" if share >= 1 else f"1 in {1 / share:,.0f}"
