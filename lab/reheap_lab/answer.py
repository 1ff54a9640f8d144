"""The answer to what a comparison was made for, in one sentence: which allocator to take, or why none stands out.

An allocator is faster, smaller or the same only where a verdict says so. Taken is, of those that none is faster than,
one that none of them is smaller than; the base, where nothing speaks against it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from reheap_lab import figures
from reheap_lab.figures import SAME, UNDECIDED
from reheap_lab.results import Comparison, Verdict

TIME = "wall_s"
PEAK = "peak_kib"  # over many cases, each with its own of the following
MEMORY = ("peak_tree_kib", "peak_rss_kib")  # the first that all have


@dataclass(frozen=True)
class Answer:
    text: str
    take: str | None = None  # the allocator to take, if one stands out


def measured(comparison: Comparison) -> list[str]:
    return [s.name for s in comparison.subjects if s.failed is None and comparison.measured(s.name)]


def memory_figure(comparison: Comparison) -> str:
    names = set(measured(comparison))
    return next((figure for figure in MEMORY if comparison.summaries.get(figure, {}).keys() >= names), MEMORY[-1])


def told(comparison: Comparison) -> tuple[str, ...]:
    """The figures of which every pair has a sentence."""
    return tuple(dict.fromkeys((*figures.DECIDING, memory_figure(comparison))))


class Relations:
    """What the verdicts say of each pair, either way round."""

    def __init__(self, names: list[str], found: Sequence[Verdict], memory: str, paces: dict[str, float],
                 over: str = ""):
        self.names = names
        self.base = self.names[0] if self.names else ""
        self.memory = memory
        self.over = over  # what the verdicts are of, when that is not one command
        self._verdicts = {(v.figure, v.subject, v.base): v for v in found}
        self._paces = paces

    @classmethod
    def within(cls, comparison: Comparison) -> "Relations":
        medians = {name: summary.median for name, summary in comparison.summaries.get(TIME, {}).items()}
        return cls(measured(comparison), comparison.verdicts + comparison.between_others, memory_figure(comparison),
                   medians)

    def of(self, figure: str, one: str, other: str) -> Verdict | None:
        """`one` over `other`."""
        found = self._verdicts.get((figure, one, other))
        turned = self._verdicts.get((figure, other, one))
        return found or (turned and _turned(turned))

    def less(self, figure: str, one: str, other: str) -> bool:
        found = self.of(figure, one, other)
        return found is not None and found.word == figures.ALL[figure].less

    def unbeaten(self, figure: str, among: list[str]) -> list[str]:
        return [one for one in among if not any(self.less(figure, other, one) for other in among)]

    def best(self, among: list[str]) -> str:
        """The base, or else the one with the least time."""
        left = self.unbeaten(self.memory, self.unbeaten(TIME, among))
        return self.base if self.base in left else min(left, key=lambda one: self._paces.get(one, 0))

    def open_against(self, base: str) -> bool:
        """Whether another may yet turn out to be better than it."""
        found = (self.of(figure, name, base) for name in self.names for figure in (TIME, self.memory) if name != base)
        return any(verdict is not None and verdict.word == UNDECIDED for verdict in found)

    def words(self, figure: str) -> set[str]:
        return {v.word for (name, *_), v in self._verdicts.items() if name == figure}


def _turned(found: Verdict) -> Verdict:
    figure = figures.ALL[found.figure]
    word = {figure.less: figure.more, figure.more: figure.less}.get(found.word, found.word)
    return Verdict(found.figure, found.base, found.subject, 1 / found.ratio, 1 / found.high, 1 / found.low, word, "")


def answer(comparison: Comparison) -> Answer:
    return answer_of(Relations.within(comparison))


def answer_of(known: Relations) -> Answer:
    if not known.names:
        return Answer("No allocator could be measured.")
    if len(known.names) == 1:
        return Answer(f"Only {known.base} could be measured: there is nothing to compare.")
    if not known.words(TIME) and not known.words(known.memory):
        return Answer("Too few rounds to tell the allocators apart.")
    take = known.best(known.names)
    if take == known.base:
        return _stay(known)
    rest = [name for name in known.names if name not in (take, known.base)]
    others = [text for text in (_next(known, take, rest), _smaller(known, take)) if text]
    return Answer(" ".join([f"Take {take}: {_against_base(known, take)}.", *others]), take)


def _stay(known: Relations) -> Answer:
    words = known.words(TIME) | known.words(known.memory)
    if words <= {SAME}:
        return Answer(f"Nothing tells them apart{known.over}: they take the same time and the same memory.")
    if words <= {SAME, UNDECIDED}:
        return Answer(f"Nothing tells them apart{known.over} yet: no difference in time or memory is certain.")
    smaller = _smaller(known, known.base)
    nothing = "nothing is shown to be" if known.open_against(known.base) else "nothing is"
    end = f". {smaller}" if smaller else ", or as fast with less memory."
    return Answer(f"Stay with {known.base}: {nothing} faster{known.over}{end}", known.base)


def _next(known: Relations, take: str, rest: list[str]) -> str | None:
    """The second choice: the best of the others that are faster than the base. It may be no worse than the first."""
    faster = [name for name in rest if known.less(TIME, name, known.base)]
    if not faster:
        return None
    second = known.best(faster)
    between = {found.word for figure in (TIME, known.memory) if (found := known.of(figure, second, take))}
    comes = {frozenset({SAME}): f"{second} does as well", frozenset({SAME, UNDECIDED}): f"{second} may do as well",
             frozenset({UNDECIDED}): f"{second} may do as well"}.get(frozenset(between), f"Next is {second}")
    return f"{comes}: {_against_base(known, second)}."


def _smaller(known: Relations, take: str) -> str | None:
    """What the choice costs in memory."""
    smaller = known.unbeaten(known.memory, [name for name in known.names if known.less(known.memory, name, take)])
    if not smaller:
        return None
    return f"{smaller[0]} takes {_memory(known, smaller[0], take)}, and is {_time(known, smaller[0], take)}."


def _against_base(known: Relations, name: str) -> str:
    """What is certain comes first."""
    time, memory = _time(known, name, known.base), _memory(known, name, known.base)
    found = known.of(TIME, name, known.base)
    if found and found.word == UNDECIDED:
        return f"{memory} than {known.base}{known.over}, but not certainly as fast"
    return f"{time}{known.over}, with {memory}"


def _time(known: Relations, one: str, other: str) -> str:
    verdict = known.of(TIME, one, other)
    if verdict is None or verdict.word == UNDECIDED:
        return f"not certainly faster or slower than {other}"
    return f"as fast as {other}" if verdict.word == SAME else f"{_amount(verdict)} {verdict.word} than {other}"


def _memory(known: Relations, one: str, other: str) -> str:
    verdict = known.of(known.memory, one, other)
    if verdict is None:
        return "memory not compared"
    if verdict.word == UNDECIDED:
        return "no certain difference in memory"
    return "the same memory" if verdict.word == SAME else f"{_amount(verdict)} {verdict.word}"


def _amount(verdict: Verdict) -> str:
    """2.3 times slower would be read in two ways: 130 % is not."""
    return f"{100 * abs(verdict.ratio - 1):.{0 if abs(verdict.ratio - 1) >= 0.1 else 1}f} %"
