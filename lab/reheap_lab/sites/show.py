"""Who allocates, on a terminal."""

import textwrap

from rich.console import Console
from rich.text import Text

from reheap_lab.sites import findings
from reheap_lab.sites.groups import Group, by_site, largest_stack, leading
from reheap_lab.sites.kinds import Kind
from reheap_lab.sites.profile import Profile
from reheap_lab.trace import size

COLUMN = 26  # where names begin
MOST_CALLERS = 5


def show(profile: Profile, to: Console, by: str | None, top: int) -> None:
    head = [_clipped(profile.title, to.width), *summary(profile)]
    parts = ["\n".join(head), _list(findings.sentences(profile), to.width, "• ")]
    sites = by_site(profile)
    kinds = [profile.kinds[by]] if by else profile.kinds.values()
    parts += [_section(profile, sites, kind, top, to.width) for kind in kinds]
    parts.append(_list(profile.notes, to.width, "careful: "))
    to.print(Text("\n\n".join(filter(None, parts))), overflow="ellipsis", no_wrap=True, crop=True)


def summary(profile: Profile) -> list[str]:
    """As heaptrack begins. It is exact, but for a live profile."""
    totals = profile.totals
    temporary = [] if profile.live else [("temporary", f"{totals['temporary']:,}",
                                          f"{temporary_share(totals)} of them: freed as the thread's next call")]
    rows = [("allocations", f"{totals['allocations']:,}", f"{size(totals['bytes'])} in all"), *temporary,
            ("peak", size(totals["at_peak_bytes"]), f"in {findings.blocks(totals['at_peak'])}"),
            (left(profile), size(totals["never_freed_bytes"]), f"in {findings.blocks(totals['never_freed'])}")]
    return [*(f"{name:<12}{figure:>14}  {note}" for name, figure, note in rows), "", *basis(profile)]


def left(profile: Profile) -> str:
    """What that is called which was not freed."""
    return "live at end" if profile.live else "never freed"


def temporary_share(totals: dict[str, int]) -> str:
    return f"{100 * totals['temporary'] / max(totals['allocations'], 1):.1f} %"


def basis(profile: Profile) -> list[str]:
    """What the figures of sites rest on."""
    if profile.live:
        if not profile.stacks:
            return ["No allocation was sampled: take a smaller --rate."]
        return [f"All of it are estimates from {profile.sampled.sum():,.0f} samples, one for each "
                f"{size(profile.every_bytes)} allocated;", "± is their relative standard error."]
    if not profile.totals["allocations"]:
        return ["There is no allocation in it."]
    if not profile.stacks:
        return ["That is exact. No call stack was recorded beside it: no allocation was sampled. Record again with",
                "--stacks all."]
    if profile.exact:
        return [f"Each allocation has its call stack; {len(profile.stacks):,} are different."]
    return [f"That is exact. What follows are estimates from {profile.sampled.sum():,.0f} samples, one for",
            f"each {size(profile.every_bytes)} allocated; ± is their relative standard error."]


def _list(texts: list[str], width: int, mark: str) -> str:
    return "\n".join(textwrap.fill(text, width, initial_indent=mark, subsequent_indent=" " * len(mark),
                                   break_long_words=False, break_on_hyphens=False) for text in texts)


def _section(profile: Profile, sites: list[Group], kind: Kind, top: int, width: int) -> str:
    shown = leading(sites, kind, top)
    if not shown:
        return f"{kind.label.upper()}: none"
    there = sum(1 for site in sites if site.figures[kind.figure] > 0)
    heading = kind.label.upper() + (f": the first {len(shown)} of {there:,} sites" if there > len(shown) else "")
    return "\n".join([heading, *(line for site in shown for line in _site(profile, site, kind, width))])


def _site(profile: Profile, site: Group, kind: Kind, width: int) -> list[str]:
    head = f"{findings.percent(site.share(profile, kind.figure)):>6} {amount(site, kind):>11} {error(site, kind):<6}"
    largest = largest_stack(profile, site, kind)
    of_site = profile.values[largest, kind.place] / site.figures[kind.figure]
    stack = profile.stacks[largest]
    told = [f"by {stack.places[stack.site - 1].said}"] if stack.site else []
    callers = [place.said for place in stack.places[stack.site + 1:] if place not in profile.library]
    if callers:
        share = "" if len(site.stacks) == 1 else f" ({findings.percent(of_site)} of it)"
        more = ["…"] if len(callers) > MOST_CALLERS else []
        told.append(f"from{share} " + " ← ".join([*callers[:MOST_CALLERS], *more]))
    return [head.ljust(COLUMN) + _clipped(site.key.said, width - COLUMN),
            *(line for text in told for line in _hanging(text, width))]


def amount(site: Group, kind: Kind) -> str:
    return size(site.figures[kind.figure]) if kind.in_bytes else f"{site.figures[kind.figure]:,.0f}"


def error(site: Group, kind: Kind) -> str:
    """Nothing where it would be written as 0."""
    return f"±{findings.percent(site.errors[kind.figure])}" if site.errors[kind.figure] >= 0.0005 else ""


def _clipped(text: str, room: int) -> str:
    """Without its middle: both the class and the line are at an end."""
    room = max(room, 20)
    return text if len(text) <= room else text[:room // 2] + "…" + text[len(text) + 1 - (room - room // 2):]


def _hanging(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, COLUMN + 20), initial_indent=" " * COLUMN,
                         subsequent_indent=" " * (COLUMN + 2), break_on_hyphens=False)
