"""Reads the runs of a comparison and says what they show: summaries, verdicts in words, and what to be wary of."""

import itertools

from reheap_lab import figures, statistics
from reheap_lab.figures import SAME, UNDECIDED, Figure
from reheap_lab.results import Comparison, Summary, Verdict
from reheap_lab.rounds import pairs
from reheap_lab.statistics import Interval

TOO_SHORT = 0.005  # seconds; below, the start of a process is most of what is measured
MANY_OUTLIERS = 0.1
MANY_RUNS = 1000
HARDLY = 0.005  # of the time: a command that spends less inside an allocator hardly calls it
FEWEST_SAMPLES = 500  # of a profile, to say so
DRIFT_P = 0.001
DRIFT_CHANGE = 0.02


def judge(comparison: Comparison) -> None:
    """Fills outliers, summaries, verdicts and the warnings that follow from figures."""
    confidence = comparison.settings.get("confidence", 0.99)
    _mark_outliers(comparison)
    comparison.summaries = _summaries(comparison, confidence)
    comparison.verdicts, comparison.between_others = _verdicts(comparison, confidence)
    comparison.warnings += _wary(comparison)


def base_of(comparison: Comparison) -> str | None:
    """The first subject that has figures."""
    return next((s.name for s in comparison.subjects if s.failed is None and comparison.measured(s.name)), None)


def _names(comparison: Comparison) -> list[str]:
    return [subject.name for subject in comparison.subjects if subject.failed is None]


def _values(comparison: Comparison, subject: str, figure: str) -> list[float]:
    """None of a figure that some of its runs lack: those that have it are not like the others (the slow ones, say)."""
    runs = comparison.measured(subject)
    return [run.figures[figure] for run in runs] if all(figure in run.figures for run in runs) else []


def _mark_outliers(comparison: Comparison) -> None:
    for subject in _names(comparison):
        runs = [run for run in comparison.measured(subject) if "wall_s" in run.figures]
        for run, far in zip(runs, statistics.outliers([run.figures["wall_s"] for run in runs])):
            run.outlier = far


def figure_names(comparison: Comparison) -> list[str]:
    """In the order of the table; what it does not know comes last."""
    met = {name for run in comparison.runs for name in run.figures}
    return [name for name in figures.ALL if name in met] + sorted(met - figures.ALL.keys())


def _summaries(comparison: Comparison, confidence: float) -> dict[str, dict[str, Summary]]:
    found: dict[str, dict[str, Summary]] = {}
    for figure in figure_names(comparison):
        for subject in _names(comparison):
            middle = statistics.median(_values(comparison, subject, figure), confidence)
            if middle:
                found.setdefault(figure, {})[subject] = Summary(middle.middle, middle.low, middle.high, middle.n)
    return found


# ---- verdicts -----------------------------------------------------------------------------------

def _verdicts(comparison: Comparison, confidence: float) -> tuple[list[Verdict], list[Verdict]]:
    """Against the base, and between the others."""
    measured = [name for name in _names(comparison) if comparison.measured(name)]
    judged = [figure for figure in figures.ALL.values() if figure.judged and figure.name in comparison.summaries]
    margin = comparison.settings.get("margin", 0.01)
    each = statistics.for_all_pairs(confidence, len(measured))
    found: tuple[list[Verdict], list[Verdict]] = [], []
    for figure in judged:
        for base, subject in itertools.combinations(measured, 2):
            if not comparable(comparison, figure, subject, base):
                continue
            between = ratio(comparison, figure.name, subject, base, each)
            if between:
                same = figure.margin(comparison.summaries[figure.name][base].median, margin)
                found[base != measured[0]].append(verdict(figure, subject, base, between, same, confidence))
    return found


def comparable(comparison: Comparison, figure: Figure, *names: str) -> bool:
    both = [comparison.summaries.get(figure.name, {}).get(name) for name in names]
    return all(both) and max(one.median for one in both) >= figure.least


def logs_of(comparison: Comparison, figure: str, subject: str, base: str) -> statistics.Estimate | None:
    """The logarithm of subject over base, where both may be compared in this figure."""
    if not comparable(comparison, figures.ALL[figure], subject, base):
        return None
    logs = statistics.paired_logs(*pairs(comparison.runs, figure, subject, base))
    return None if logs is None else statistics.estimate(logs)


def ratio(comparison: Comparison, figure: str, subject: str, base: str, confidence: float | None = None
          ) -> Interval | None:
    confidence = confidence or comparison.settings.get("confidence", 0.99)
    return statistics.paired_ratio(*pairs(comparison.runs, figure, subject, base), confidence)


SIGNS = {"better": "▼", "worse": "▲", "same": "=", "open": "?"}


def sense(verdict: Verdict) -> str:
    """better, worse, same or open: what the sign beside a verdict says."""
    known = figures.ALL.get(verdict.figure)
    if known and verdict.word in (known.less, known.more):
        return "better" if verdict.word == known.good else "worse"
    return "same" if verdict.word == SAME else "open"


def verdict(figure: Figure, subject: str, base: str, ratio: Interval, margin: float, confidence: float) -> Verdict:
    word = word_of(figure, ratio, margin)
    more = statistics.more_runs(ratio, margin) if word == UNDECIDED else None
    text = _text(figure, subject, base, ratio, word, more, margin, confidence)
    return Verdict(figure.name, subject, base, ratio.middle, ratio.low, ratio.high, word, text, more, margin)


def word_of(figure: Figure, ratio: Interval, margin: float) -> str:
    if statistics.equivalent(ratio, margin):
        return SAME
    if not statistics.differs(ratio, margin):
        return UNDECIDED
    return figure.less if ratio.middle < 1 else figure.more


_VERBS = {"memory": "uses", "instructions": "takes", "cycles": "takes"}


def _text(figure: Figure, subject: str, base: str, ratio: Interval, word: str, more: int | None, margin: float,
          confidence: float) -> str:
    level = f"{100 * confidence:g} % interval"
    around = f"{signed(ratio.low)} to {signed(ratio.high)}"
    if word == SAME:
        return f"{figure.label}: {SAME} between {subject} and {base} ({level} {around}, within ±{100 * margin:.2g} %)"
    if word == UNDECIDED:
        return f"{figure.label}: {UNDECIDED} between {subject} and {base} ({level} {around}){_hint(more)}"
    verb = _VERBS.get(word.split()[-1], "is")
    return f"{figure.label}: {subject} {verb} {word} than {base}, by {amount(ratio)} ({level} {span(ratio)})"


def _hint(more: int | None) -> str:
    if more is None:
        return ""
    if more > MANY_RUNS:
        return f"; more than {MANY_RUNS} further runs would be needed"
    return f"; about {figures.plural(more, 'more run')} would decide it"


def signed(ratio: float) -> str:
    change = 100 * (ratio - 1)
    return f"{change:+.1f} %" if change < 1e6 else f"{change:+.2g} %"


def amount(ratio: Interval) -> str:
    if ratio.middle >= 2:
        return f"a factor of {ratio.middle:.3g}"
    return f"{_percent(abs(ratio.middle - 1))} %"


def span(ratio: Interval) -> str:
    if ratio.middle >= 2:
        return f"{ratio.low:.3g} to {ratio.high:.3g}"
    ends = sorted((abs(ratio.low - 1), abs(ratio.high - 1)))
    return f"{_percent(ends[0])} to {_percent(ends[1])} %"


def _percent(share: float) -> str:
    return f"{100 * share:.2f}" if share < 0.01 else f"{100 * share:.1f}"


# ---- what to be wary of -------------------------------------------------------------------------

def _wary(comparison: Comparison) -> list[str]:
    warnings = _too_few(comparison)
    for subject in _names(comparison):
        walls = _values(comparison, subject, "wall_s")
        warnings += _too_short(comparison, subject) + _drifting(subject, walls) + _outlying(comparison, subject)
    return warnings


def _too_few(comparison: Comparison) -> list[str]:
    rounds = len({run.round for run in comparison.runs if not run.warmup})
    if rounds >= statistics.FEWEST or len(_names(comparison)) < 2:
        return []
    return [f"{figures.plural(rounds, 'round')} {'gives' if rounds == 1 else 'give'} no verdict: it takes at least "
            f"{statistics.FEWEST}, and ten say much more"]


def _too_short(comparison: Comparison, subject: str) -> list[str]:
    summary = comparison.summaries.get("wall_s", {}).get(subject)
    if summary is None or summary.median >= TOO_SHORT or comparison.kind == "server":
        return []
    short = f"{subject}: too short to measure ({figures.seconds(summary.median)})"
    if comparison.kind == "replay":
        return [f"{short}: record a run that does more"]
    return [f"{short}: most of it is the start of the process. Give the command more work, or let it repeat its work"]


def _drifting(subject: str, walls: list[float]) -> list[str]:
    drift = statistics.drift(walls)
    if drift is None or drift.p > DRIFT_P or abs(drift.change) < DRIFT_CHANGE:
        return []
    way = "rose" if drift.change > 0 else "fell"
    return [f"{subject}: wall time {way} by {100 * abs(drift.change):.0f} % from the first round to the last (Spearman "
            f"{drift.correlation:+.2f}): heat, another program, or state that the command keeps. Ratios within a round "
            "bear it; the medians do not"]


def hardly_allocates(comparison: Comparison) -> str | None:
    """By the profiles under libraries of their own: the system's allocator is not told from the rest of libc."""
    shares = [extra.profile.shares.get("allocator", 0) for subject in comparison.subjects if subject.libraries
              for extra in [comparison.extras.get(subject.name)]
              if extra and extra.profile and extra.profile.samples >= FEWEST_SAMPLES]
    if not shares or max(shares) >= HARDLY:
        return None
    return (f"the command spends at most {100 * max(shares):.1f} % of its time inside an allocator: it hardly calls "
            "malloc. What differs in time comes from where its blocks lie, from the kernel, or from chance")


def _outlying(comparison: Comparison, subject: str) -> list[str]:
    runs = comparison.measured(subject)
    count = sum(run.outlier for run in runs)
    if count < 2 or count <= MANY_OUTLIERS * len(runs):
        return []
    return [f"{subject}: {count} of {len(runs)} runs lie far from the others in wall time: is the machine busy?"]
