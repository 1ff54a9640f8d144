"""`reheap gate`: whether an allocator has become worse since a comparison that was kept.

What is compared is not the figures but each allocator's ratio to the base, then and now: the machine may be another
one, or slower today, and the base tells by how much. The two comparisons are independent, so the squares of their
intervals add up.
"""

import dataclasses
import math
import pathlib
from dataclasses import dataclass

import click

from reheap_lab import export, figures, options, results, statistics
from reheap_lab.errors import LabError, UsageError
from reheap_lab.results import Collection, Comparison, Verdict
from reheap_lab.statistics import Interval

REGRESSION = 3  # the exit status
EXISTING = click.Path(exists=True, dir_okay=False, path_type=pathlib.Path)


@dataclass(frozen=True)
class Change:
    """One figure of one allocator: its ratio to the base now, over that then."""

    figure: str
    subject: str
    then: Verdict
    now: Verdict
    ratio: Interval
    case: str = ""  # of a collection

    def worse_than(self, margin: float) -> bool:
        """Certainly."""
        return self.ratio.low > 1 + margin

    def word(self, margin: float) -> str:
        if self.worse_than(margin):
            return "**worse**"
        return "no worse" if self.ratio.high <= 1 + margin else "undecided"


def changes_of(then: Comparison | Collection, now: Comparison | Collection) -> list[Change]:
    """Of a collection, each case against the one of the same name."""
    if isinstance(then, Comparison) and isinstance(now, Comparison):
        return changes(then, now)
    if isinstance(then, Comparison) or isinstance(now, Comparison):
        raise UsageError("one is a comparison, the other a collection of several: give two of a kind")
    earlier = {case.name: case.comparison for case in then.measured()}
    both = [case for case in now.measured() if case.name in earlier]
    if not both:
        raise LabError("the two have no case in common: " + "; ".join(
            f"one has {', '.join(case.name for case in one.measured())}" for one in (then, now)))
    return [dataclasses.replace(change, case=case.name) for case in both
            for change in changes(earlier[case.name], case.comparison)]


def changes(then: Comparison, now: Comparison) -> list[Change]:
    """Of what both have judged against the same base, in the figures that `until precise` waits for."""
    earlier = {(v.figure, v.subject, v.base): v for v in then.verdicts}
    return [Change(v.figure, v.subject, earlier[key], v, _over(v, earlier[key])) for v in now.verdicts
            if v.figure in figures.GATED and (key := (v.figure, v.subject, v.base)) in earlier]


def _over(now: Verdict, then: Verdict) -> Interval:
    middle = math.log(now.ratio) - math.log(then.ratio)
    half = math.hypot(*((math.log(one.high) - math.log(one.low)) / 2 for one in (now, then)))
    return statistics.exponential(Interval(middle, middle - half, middle + half, 0))


def _verdicts(made: Comparison | Collection) -> list[list[Verdict]]:
    return [made.verdicts] if isinstance(made, Comparison) else [case.comparison.verdicts for case in made.measured()]


def as_markdown(found: list[Change], margin: float) -> str:
    """For a pull request."""
    in_cases = any(c.case for c in found)
    rows = [[*[c.case] * in_cases, figures.ALL[c.figure].label, c.subject, c.now.base, f"{c.then.ratio:.3f}",
             f"{c.now.ratio:.3f}", f"{c.ratio.middle - 1:+.1%} ({c.ratio.low - 1:+.1%} to {c.ratio.high - 1:+.1%})",
             c.word(margin)] for c in found]
    header = ["figure", "allocator", "against", "then", "now", "change", f"beyond {margin:.3g}"]
    return export.table([*["case"] * in_cases, *header], rows)


@click.command()
@click.argument("then", type=EXISTING)
@click.argument("now", type=EXISTING)
@click.option("--margin", type=options.SHARE, default=0.02,
              help="What became worse by less is let pass  [default: 2%]")
def command(then: pathlib.Path, now: pathlib.Path, margin: float) -> None:
    """Say what became worse from the comparison THEN to the comparison NOW (both JSON), as Markdown; of collections,
    in each case that both have.

    Time and memory of each allocator are taken against the base, so that the machine may have changed. The exit status
    is 3 when something is certainly worse by more than the margin, 1 when the two have nothing in common.
    """
    earlier, later = results.load_export(then), results.load_export(now)
    found = changes_of(earlier, later)
    if not found:
        for path, one in ((then, earlier), (now, later)):
            if not any(_verdicts(one)):
                raise LabError(f"{path} has no verdict that could be held against another: that takes two allocators, "
                               f"and {statistics.FEWEST} rounds or more")
        raise LabError(f"{then} and {now} have judged no allocator against the same base: compare the same allocators, "
                       "the same one first")
    click.echo(as_markdown(found, margin))
    worse = [change for change in found if change.worse_than(margin)]
    if worse:
        named = ", ".join(f"{figures.ALL[change.figure].label} of {change.subject}"
                          + (f" in {change.case}" if change.case else "") for change in worse)
        click.echo(f"reheap: worse by more than {margin:.3g}: {named}", err=True)
        raise click.exceptions.Exit(REGRESSION)
