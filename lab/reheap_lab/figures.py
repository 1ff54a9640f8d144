"""Every figure a run may have: its name, how it is written, and the words for less and more of it."""

from dataclasses import dataclass

SAME = "no measurable difference"
UNDECIDED = "undecided"


@dataclass(frozen=True)
class Figure:
    name: str
    label: str
    unit: str  # s, KiB, cores, events (millions of them), x for a ratio, or "" for a count
    less: str
    more: str
    judged: bool = True  # gets a verdict
    least: float = 0  # below, it is too coarse to compare
    grain: float = 0  # differences up to this count as none, whatever the margin
    more_is_better: bool = False

    def margin(self, base: float, margin: float) -> float:
        """The share by which a figure may differ from `base` and count as the same."""
        return max(margin, self.grain / base) if base > 0 else margin

    @property
    def good(self) -> str:
        """The word of a verdict that one likes to hear."""
        return self.more if self.more_is_better else self.less


TICKS = 0.1  # seconds: the kernel splits CPU time into these two by ticks of up to a hundredth
RANDOM_PAGES = 128  # KiB: so much more or less is resident by where the system happens to put a program's pieces


def _seconds(name: str, label: str, least: float = 0) -> Figure:
    return Figure(name, label, "s", "faster", "slower", least=least)


def _memory(name: str, label: str) -> Figure:
    return Figure(name, label, "KiB", "less memory", "more memory", grain=RANDOM_PAGES)


def _count(name: str, label: str) -> Figure:
    return Figure(name, label, "", "fewer", "more", judged=False)


def _events(name: str) -> Figure:
    return Figure(name, name, "events", f"fewer {name}", f"more {name}")


ALL = {figure.name: figure for figure in (
    _seconds("wall_s", "wall time"),
    _seconds("cpu_s", "CPU time"),
    _seconds("user_s", "user time", TICKS),
    _seconds("system_s", "system time", TICKS),
    Figure("utilisation", "cores busy", "cores", "fewer cores busy", "more cores busy", judged=False),
    _events("instructions"),
    _events("cycles"),
    _memory("peak_rss_kib", "peak, largest process"),
    _memory("peak_tree_kib", "peak, all processes"),
    _memory("mean_rss_kib", "mean resident"),
    _memory("idle_rss_kib", "resident when idle"),
    _memory("peak_commit_kib", "peak commit"),
    # Of a collection: in each case, the one of the first two that its answer speaks of.
    _memory("peak_kib", "peak memory"),
    # Of a replay.
    Figure("resident_over_live", "resident over live", "x", "less memory", "more memory"),
    Figure("peak_resident_over_live", "peak resident over peak live", "x", "less memory", "more memory",
           judged=False),  # as the peak is: what is live at most is the trace's
    Figure("peak_live_kib", "peak live", "KiB", "less live", "more live", judged=False),
    Figure("handoff_wait_s", "waits for other threads' blocks", "s", "less", "more", judged=False),
    Figure("epoch_wait_s", "waits for slower threads", "s", "less", "more", judged=False),
    _count("ordering_errors", "ordering errors"),
    _count("minor_faults", "minor faults"),
    _count("major_faults", "major faults"),
    _count("voluntary_switches", "voluntary switches"),
    _count("involuntary_switches", "involuntary switches"),
)}

BUILT_IN = frozenset(ALL)

# The words a verdict may have.
WORDS = tuple(sorted({word for f in ALL.values() if f.judged for word in (f.less, f.more)})) + (SAME, UNDECIDED)

# What `until precise` waits for.
DECIDING = ("wall_s", "peak_rss_kib")

# What may not become worse, for `reheap gate`.
GATED = ("wall_s", "cpu_s", "peak_rss_kib", "peak_tree_kib")


def learn(own: list[dict]) -> None:
    """Figures that the command itself prints: each with `name` and `more_is_better` (settings.py)."""
    for one in own:
        more = one["more_is_better"]
        words = ("worse", "better") if more else ("better", "worse")
        ALL[one["name"]] = Figure(one["name"], one["name"], "", *words, more_is_better=more)


def is_memory(name: str) -> bool:
    return name in ALL and ALL[name].unit == "KiB"


def describe(name: str, value: float) -> str:
    """`value` as a person reads it."""
    unit = ALL[name].unit if name in ALL else ""
    if unit == "s":
        return seconds(value)
    if unit == "KiB":
        return memory(value)
    if unit == "events":
        return events(value)
    if unit == "x":
        return f"{value:.3f}"
    if unit == "cores":
        return f"{value:.2f}"
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def plural(count: float, what: str) -> str:
    return f"{count:,.0f} {what}{'' if count == 1 else 's'}"


def seconds(value: float) -> str:
    if value < 1e-3:
        return f"{value * 1e6:.0f} µs"
    if value < 1:
        return f"{value * 1e3:.3g} ms" if value * 1e3 < 100 else f"{value * 1e3:.0f} ms"
    return f"{value:.2f} s" if value < 100 else f"{value:.0f} s"


def events(count: float) -> str:
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}" if count / size < 1000 else f"{count / size:.0f} {unit}"
    return f"{count:.0f}"


def memory(kib: float) -> str:
    for unit, size in (("GiB", 1 << 20), ("MiB", 1 << 10)):
        if kib >= size:
            return f"{kib / size:.3g} {unit}" if kib / size < 1000 else f"{kib / size:.0f} {unit}"
    return f"{kib:.0f} KiB"
