"""A trace as a page: what `reheap-trace info` found, drawn. Like the report, one file that loads nothing."""

import pathlib
import shlex

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

from .. import export, figures
from . import page, svg, units
from .palette import role
from .plots import WIDE, WIDTH, Picture

BLOCKS, BYTES = "c1", "c2"  # the colours of the two ways to weigh a block
MOST_THREADS = 24
MOST_PROCESSES = 12


def write_html(info: dict, path: pathlib.Path) -> None:
    """Writes the page of what `reheap-trace info` printed."""
    export.write_text(path, html(info))


def html(info: dict) -> str:
    with svg.styled():
        drawn = [picture for picture in (live(info, "live_bytes", "Live memory", "bytes"),
                                         live(info, "live_blocks", "Live blocks", "")) if picture]
        sizes, lifetimes = _sizes(info), _lifetimes(info)
    files = info.get("files", [])
    return page.render("trace.html.j2", title=_command(files), facts=_facts(info), live=drawn, sizes=sizes,
                       lifetimes=lifetimes, size_rows=_size_rows(info), lifetime_rows=_lifetime_rows(info),
                       hot=_hot(info), threads=_threads(info), kinds=_kinds(info), files=_files(files),
                       damage=info.get("damage", {}))


def _command(files: list[dict]) -> str:
    return shlex.join(files[0].get("command", [])) if files else "a trace without files"


# ---- figures ----------------------------------------------------------------------------------

def amount(size: float) -> str:
    return units.of_unit("bytes", [size]).text(size)


def count(number: float) -> str:
    return f"{number:,.0f}"


def duration(seconds: float) -> str:
    return units.of_unit("s", [seconds]).text(seconds)


def _facts(info: dict) -> list[tuple[str, str, str]]:
    """(name, figure, what it means), of what is known."""
    peak, allocated, never = info.get("peak"), info.get("allocated"), info.get("never_freed")
    crossed, fragments = info.get("cross_thread"), info.get("fragmentation")
    fragments = fragments if fragments and fragments.get("held_peak_bytes", 1) else None
    found = [("events", info.get("events"), count, "recorded"),
             ("duration", info.get("duration_us"), lambda us: duration(us / 1e6), "from the first event to the last"),
             ("threads", info.get("thread_count"), count, "that allocated or freed"),
             ("peak live", peak, lambda p: amount(p["live_bytes"]),
              f"after {duration(peak['t_us'] / 1e6)}" if peak else ""),
             ("allocated", allocated, lambda a: amount(a["bytes"]),
              f"in {figures.plural(allocated['blocks'], 'block')}" if allocated else ""),
             ("cross-thread", crossed, lambda c: f"{c['share']:.1%}", "of the frees, by another thread"),
             ("never freed", never, lambda n: amount(n["bytes"]),
              f"in {figures.plural(never['blocks'], 'block')}" if never else ""),
             ("fragmentation potential", fragments, lambda f: f"{f['potential']:.1%}",
              "of the peak that the simplest allocator would hold beside live memory")]
    return [(name, write(value), note) for name, value, write, note in found if value is not None]


def _kinds(info: dict) -> list[tuple[str, str, str]]:
    kinds = {name.replace("_", " "): number for name, number in info.get("kinds", {}).items() if number}
    whole = sum(kinds.values())
    return [(name, count(number), f"{number / whole:.1%}") for name, number in
            sorted(kinds.items(), key=lambda item: -item[1])]


def _weighed(rows: list[dict]) -> list[tuple[dict, float, float]]:
    """Each row with its share of all blocks and of all bytes."""
    blocks, size = sum(r["blocks"] for r in rows) or 1, sum(r["bytes"] for r in rows) or 1
    return [(row, row["blocks"] / blocks, row["bytes"] / size) for row in rows]


def _size_name(row: dict) -> str:
    return f"{row['from']:,} – {row['to']:,}"


def _hot(info: dict) -> list[dict]:
    whole = info.get("allocated", {}).get("blocks") or sum(r["blocks"] for r in info.get("sizes", [])) or 1
    rows = info.get("hot_classes", [])[:16]
    most = max((row["blocks"] for row in rows), default=1)
    size, peak = (units.of_unit("bytes", [row.get(key, 0) for row in rows]) for key in ("bytes", "peak_live_bytes"))
    return [{"name": _size_name(row), "blocks": count(row["blocks"]), "share": f"{row['blocks'] / whole:.1%}",
             "bytes": size.text(row["bytes"]),
             "peak": peak.text(row["peak_live_bytes"]) if "peak_live_bytes" in row else "–",
             "bar": f"{row['blocks'] / most * 100:.1f}"} for row in rows]


def _size_rows(info: dict) -> list[tuple[str, str, str, str]]:
    """By doublings: the plot has eight classes in each."""
    grouped: dict[int, dict] = {}
    for row in info.get("sizes", []):
        power = max(4, (row["to"] - 1).bit_length())
        into = grouped.setdefault(power, {"blocks": 0, "bytes": 0})
        into["blocks"] += row["blocks"]
        into["bytes"] += row["bytes"]
    return [(f"up to {amount(2 ** power)}", count(row["blocks"]), f"{a:.1%}", f"{b:.1%}")
            for (power, _), (row, a, b) in zip(grouped.items(), _weighed(list(grouped.values())))]


def _lifetime_rows(info: dict) -> list[tuple[str, str, str, str]]:
    return [(f"up to {duration(row['to_ns'] / 1e9)}", count(row["blocks"]), f"{a:.1%}", f"{b:.1%}")
            for row, a, b in _weighed(info.get("lifetimes", []))]


def _threads(info: dict) -> dict:
    rows = info.get("threads", [])
    end = max((row.get("last_us", 0) for row in rows), default=0) or 1
    size = units.of_unit("bytes", [row["bytes"] for row in rows])
    several = len({row.get("process") for row in rows}) > 1
    made = [{"name": f"{row['process']}/{row['thread']}" if several else f"{row['thread']}",
             "events": count(row["events"]), "blocks": count(row["blocks"]), "bytes": size.text(row["bytes"]),
             "frees": count(row["frees"]), "left": f"{row['first_us'] / end * 100:.2f}",
             "width": f"{max(0.5, (row['last_us'] - row['first_us']) / end * 100):.2f}"} for row in rows[:MOST_THREADS]]
    return {"rows": made, "more": max(0, info.get("thread_count", len(rows)) - len(made)), "several": several}


def _files(files: list[dict]) -> list[dict]:
    return [{"path": f.get("path", ""), "process": f.get("process"), "command": shlex.join(f.get("command", [])),
             "bytes": amount(f["bytes"]) if "bytes" in f else "–", "lost": f.get("lost", 0), "forked": f.get("forked"),
             "ended": f.get("ended")} for f in files[:MOST_PROCESSES]]


# ---- pictures ---------------------------------------------------------------------------------

def live(info: dict, key: str, caption: str, unit: str) -> Picture | None:
    series = info.get("series", {})
    time, values = series.get("t_us", []), series.get(key, [])
    if len(time) < 2 or len(values) != len(time):
        return None
    clock, scale = units.of_unit("s", [time[-1] / 1e6]), units.of_unit(unit, [max(values)])
    made = svg.figure(WIDE, 230)
    axes = made.add_axes((0.085, 0.2, 0.9, 0.76))
    x, y = np.asarray(time) / 1e6 / clock.size, np.asarray(values) / scale.size
    colour = role(BYTES if unit else BLOCKS)
    axes.fill_between(x, y, step="post", color=colour, alpha=0.16, linewidth=0)
    axes.plot(x, y, color=colour, linewidth=1.4, drawstyle="steps-post")
    axes.set_xlim(0, x[-1] or 1)
    axes.set_ylim(0, float(y.max()) * 1.06 or 1)
    _frame(axes)
    axes.xaxis.set_major_locator(MaxNLocator(10))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.10g}"))
    axes.set_xlabel(f"time since the first event, {clock.unit}")
    alt = f"{caption} over {clock.text(time[-1] / 1e6)}, at most {scale.text(max(values))}"
    return Picture(svg.render(made, alt), f"{caption}, {scale.unit or 'number'}")


def _frame(axes: Axes) -> None:
    axes.grid(axis="y")
    axes.spines["left"].set_visible(False)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.10g}"))


def _sizes(info: dict) -> list[Picture]:
    rows = info.get("sizes", [])
    edges = [(max(row["from"] - 1, 8), max(row["to"], 16)) for row in rows]
    return _histograms(rows, edges, 2, _short_size, "size of the block", "Sizes")


def _lifetimes(info: dict) -> list[Picture]:
    rows = info.get("lifetimes", [])
    edges = [(max(row["from_ns"], 0.5) / 1e9, row["to_ns"] / 1e9) for row in rows]
    return _histograms(rows, edges, 10, _short_duration, "time from allocation to free", "Lifetimes")


def _short_size(size: float) -> str:
    for unit, step in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= step:
            return f"{size / step:,.4g} {unit}"
    return f"{size:,.4g} B"


def _short_duration(seconds: float) -> str:
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size * 0.999:
            return f"{seconds / size:,.4g} {unit}"
    return f"{seconds * 1e9:,.4g} ns"


def _histograms(rows, edges, base: int, write, label: str, title: str) -> list[Picture]:
    """The same rows by blocks and by bytes: many small blocks may be little memory."""
    if not rows:
        return []
    weighed = _weighed(rows)
    return [_histogram([w[which] for w in weighed], edges, base, write, label, f"{title} by {what}", colour)
            for which, what, colour in ((1, "blocks", BLOCKS), (2, "bytes", BYTES))]


def _histogram(heights, edges, base: int, write, label: str, caption: str, colour: str) -> Picture:
    made = svg.figure(WIDTH, 215)
    axes = made.add_axes((0.1, 0.21, 0.87, 0.75))
    lefts, rights = np.array(edges).T
    axes.set_xscale("log", base=base)
    axes.bar(lefts, np.array(heights) * 100, width=rights - lefts, align="edge", color=role(colour),
             edgecolor=role("panel"), linewidth=0.6)
    axes.set_xlim(lefts.min() * 0.9, rights.max() * 1.1)
    _frame(axes)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g} %"))
    axes.xaxis.set_major_locator(LogLocator(base=base, numticks=7))
    axes.xaxis.set_minor_locator(LogLocator(base=base, subs=(), numticks=7))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: write(v)))
    axes.set_xlabel(label)
    top = int(np.argmax(heights))
    alt = f"{caption}: most, {heights[top]:.1%}, between {write(edges[top][0])} and {write(edges[top][1])}"
    return Picture(svg.render(made, alt), caption)
