"""What many cases show together: the geometric mean of each pair's ratios, and which allocator to take over all.

What is judged is the mean over the cases that are there, each counting as much as any other. design/lab.md says which
interval it has, and why.
"""

import dataclasses
import itertools
import math
import os

import numpy

from reheap_lab import answer, figures, statistics, verdicts
from reheap_lab.answer import PEAK, TIME, Answer, Relations
from reheap_lab.results import Case, Collection, Comparison, Overall
from reheap_lab.statistics import Estimate, Interval

FIGURES = (TIME, PEAK)
FEWEST_ALIKE = 4  # programs; below, they say nothing of others


def judge(collection: Collection) -> None:
    """Fills the verdicts over all cases."""
    names = measured(collection)
    each = statistics.for_all_pairs(collection.settings["confidence"], len(names))
    collection.verdicts, collection.between_others = [], []
    for figure in FIGURES:
        for base, subject in itertools.combinations(names, 2):
            found = _estimates(collection, figure, subject, base)
            if found:
                made = _overall(collection, figure, subject, base, found, each)
                (collection.verdicts if base == names[0] else collection.between_others).append(made)


def measured(collection: Collection) -> list[str]:
    """The allocators that have figures of some case, in the order of the collection."""
    found = {name for case in collection.measured() for name in answer.measured(case.comparison)}
    return [name for name in collection.subjects() if name in found]


def figure_in(comparison: Comparison, figure: str) -> str:
    return answer.memory_figure(comparison) if figure == PEAK else figure


def _estimates(collection: Collection, figure: str, subject: str, base: str) -> list[tuple[Case, Estimate]]:
    found = []
    for case in collection.measured():
        if {subject, base} <= set(answer.measured(case.comparison)):
            logs = verdicts.logs_of(case.comparison, figure_in(case.comparison, figure), subject, base)
            found += [(case, logs)] if logs else []
    return found


def _overall(collection: Collection, figure: str, subject: str, base: str, found: list[tuple[Case, Estimate]],
             each: float) -> Overall:
    logs = [one for _, one in found]
    ratio = statistics.exponential(statistics.mean_of(logs, each))
    over = of_cases(collection, len(logs))
    known = dataclasses.replace(figures.ALL[figure], label=f"{figures.ALL[figure].label} over {over}")
    same = _margin(collection, figure, base, [case for case, _ in found])
    made = verdicts.verdict(known, subject, base, ratio, same, collection.settings["confidence"])
    alike = _alike(logs, each) if _programs(collection.cases) else None
    return Overall(**vars(made), cases=len(found), like_low=alike and alike.low, like_high=alike and alike.high)


def _margin(collection: Collection, figure: str, base: str, cases: list[Case]) -> float:
    """Differences that count as none in every case do so in the mean."""
    medians = [case.comparison.summaries[figure_in(case.comparison, figure)][base].median for case in cases]
    logs = [math.log1p(figures.ALL[figure].margin(median, collection.settings["margin"])) for median in medians]
    return math.expm1(sum(logs) / len(logs))


def _alike(found: list[Estimate], confidence: float) -> Interval | None:
    """Of the mean over the programs from which these might have been drawn: the spread between cases, which has each
    case's own uncertainty in it."""
    count = len(found)
    if count < FEWEST_ALIKE:
        return None
    middles = [one.middle for one in found]
    half = float(numpy.std(middles, ddof=1)) / count**0.5 * statistics.student_quantile(confidence, count - 1)
    middle = float(numpy.mean(middles))
    return statistics.exponential(Interval(middle, middle - half, middle + half, count))


# ---- in words -----------------------------------------------------------------------------------

def _programs(cases: list[Case]) -> bool:
    """Whether each case is another program, and not one command with other values."""
    started = [os.path.basename(case.comparison.command[0]) for case in cases if case.comparison]
    return not any(case.parameters for case in cases) and len(set(started)) == len(started)


def of_cases(collection: Collection, count: int) -> str:
    """12 programs; 4 values of threads; 3 of 12 cases."""
    total = len(collection.cases)
    number = f"{count} of {total}" if count < total else f"{count}"
    varied = {name for case in collection.cases for name in case.parameters}
    if len(varied) == 1 and len({case.group for case in collection.cases}) == 1:
        return f"{number} value{'s' * (total != 1)} of {next(iter(varied))}"
    return f"{number} {'program' if _programs(collection.cases) else 'case'}{'s' * (total != 1)}"


def overall_answer(collection: Collection) -> Answer:
    names = measured(collection)
    if not names:
        return Answer("No allocator could be measured.")
    found = collection.verdicts + collection.between_others
    paces = {v.subject: v.ratio for v in collection.verdicts if v.figure == TIME} | {names[0]: 1.0}
    most = max((v.cases for v in found), default=len(collection.measured()))
    made = answer.answer_of(Relations(names, found, PEAK, paces, f" over {of_cases(collection, most)}"))
    absent = _absent(collection, made.take)
    return Answer(f"{made.text} {absent}", made.take) if absent else made


def _absent(collection: Collection, take: str | None) -> str | None:
    """Who is told to take it should know where it does not work."""
    if take is None:
        return None
    without = [case.name for case in collection.measured() if take not in answer.measured(case.comparison)]
    return f"{take} has no figures of {', '.join(without)}." if without else None


def counted(collection: Collection, figure: str, subject: str) -> dict[str, int]:
    """In how many cases it is better, worse, the same, or open, against the base of the whole."""
    base = measured(collection)[0]
    found = [verdict_in(case, figure, subject, base) for case in collection.measured()]
    senses = [verdicts.sense(verdict) for verdict in found if verdict]
    return {sense: senses.count(sense) for sense in verdicts.SIGNS}


def verdict_in(case: Case, figure: str, subject: str, base: str):
    """Of one case; None where it has none against this base."""
    found = case.comparison.verdict(figure_in(case.comparison, figure), subject) if case.comparison else None
    return found if found and found.base == base else None
