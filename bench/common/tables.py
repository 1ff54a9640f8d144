"""A comparison as tables: each figure's median and the ratio to the first allocator, both with the lab's intervals."""

from reheap_lab import statistics, verdicts
from reheap_lab.cli import console
from reheap_lab.results import Comparison
from reheap_lab.rounds import pairs
from reheap_lab.statistics import Interval
from reheap_lab.terminal import table

from . import record

ABSENT = "-"


def show(header: list[str], rows: list[list[str]]) -> None:
    record.note_table(header, rows)
    console().print(table(header, rows))


def say(text: str) -> None:
    """A sentence between the tables."""
    record.note_text(text)
    print(text, flush=True)


def show_figure(made: Comparison, figure: str, title: str, digits: int, scale: float = 1) -> None:
    level = f"{100 * made.settings['confidence']:g} % interval"
    base = made.subjects[0].name
    show([title, "median", level, f"x {base}", level],
         [[one.name, *cells(of(made, figure, one.name), digits, scale),
           *(cells(verdicts.ratio(made, figure, one.name, base), 3) if one.name != base else ["", ""])]
          for one in made.subjects])


def of(made: Comparison, figure: str, subject: str) -> Interval | None:
    found = made.summaries.get(figure, {}).get(subject)
    return found and Interval(found.median, found.low, found.high, found.n)


def added(made: Comparison, figure: str, subject: str, base: str) -> Interval | None:
    """Subject less base, round by round."""
    both = pairs(made.runs, figure, subject, base)
    return statistics.median([one - other for one, other in zip(*both)], made.settings["confidence"])


def cells(found: Interval | None, digits: int, scale: float = 1) -> list[str]:
    if found is None:
        return [ABSENT, ABSENT]
    return [number(found.middle * scale, digits),
            f"{number(found.low * scale, digits)} .. {number(found.high * scale, digits)}"]


def number(value: float | None, digits: int = 2) -> str:
    """With thousands separated; what was not measured is a dash, never 0."""
    return ABSENT if value is None else f"{value:,.{digits}f}"


def render_markdown(header: list[str], rows: list[list[str]], names: int = 2) -> str:
    """For a document: figures to the right, after so many columns of names."""
    rule = ["---" if column < names else "--:" for column in range(len(header))]
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, rule, *rows])
