"""`reheap gate`: whether an allocator has become worse since a comparison that was kept.

What is compared is not the figures but each allocator's ratio to the base, then and now: the machine may be another
one, or slower today, and the base tells by how much. The two comparisons are independent, so the squares of their
intervals add up.
"""

import math
import pathlib
from dataclasses import dataclass

import click

from reheap_lab import export, figures, options, results
from reheap_lab.errors import LabError
from reheap_lab.results import Comparison, Verdict
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

    def worse_than(self, margin: float) -> bool:
        """Certainly."""
        return self.ratio.low > 1 + margin

    def word(self, margin: float) -> str:
        if self.worse_than(margin):
            return "**worse**"
        return "no worse" if self.ratio.high <= 1 + margin else "undecided"


def changes(then: Comparison, now: Comparison) -> list[Change]:
    """Of what both have judged against the same base, in the figures that `until precise` waits for."""
    earlier = {(v.figure, v.subject, v.base): v for v in then.verdicts}
    return [Change(v.figure, v.subject, earlier[key], v, _over(v, earlier[key])) for v in now.verdicts
            if v.figure in figures.GATED and (key := (v.figure, v.subject, v.base)) in earlier]


def _over(now: Verdict, then: Verdict) -> Interval:
    middle = math.log(now.ratio / then.ratio)
    half = math.hypot(math.log(now.high / now.low) / 2, math.log(then.high / then.low) / 2)
    return Interval(math.exp(middle), math.exp(middle - half), math.exp(middle + half), 0)


def as_markdown(found: list[Change], margin: float) -> str:
    """For a pull request."""
    rows = [[figures.ALL[c.figure].label, c.subject, c.now.base, f"{c.then.ratio:.3f}", f"{c.now.ratio:.3f}",
             f"{c.ratio.middle - 1:+.1%} ({c.ratio.low - 1:+.1%} to {c.ratio.high - 1:+.1%})", c.word(margin)]
            for c in found]
    return export.table(["figure", "allocator", "against", "then", "now", "change", f"beyond {margin:.3g}"], rows)


@click.command()
@click.argument("then", type=EXISTING)
@click.argument("now", type=EXISTING)
@click.option("--margin", type=options.SHARE, default=0.02,
              help="What became worse by less is let pass  [default: 2%]")
def command(then: pathlib.Path, now: pathlib.Path, margin: float) -> None:
    """Say what became worse from the comparison THEN to the comparison NOW (both JSON), as Markdown.

    Time and memory of each allocator are taken against the base, so that the machine may have changed. The exit status
    is 3 when something is certainly worse by more than the margin, 1 when the two have nothing in common.
    """
    found = changes(results.load_export(then), results.load_export(now))
    if not found:
        raise LabError(f"{then} and {now} have judged no allocator against the same base: compare the same allocators, "
                       "the same one first")
    click.echo(as_markdown(found, margin))
    worse = [change for change in found if change.worse_than(margin)]
    if worse:
        named = ", ".join(f"{figures.ALL[change.figure].label} of {change.subject}" for change in worse)
        click.echo(f"reheap: worse by more than {margin:.3g}: {named}", err=True)
        raise click.exceptions.Exit(REGRESSION)
