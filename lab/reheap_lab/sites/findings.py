"""What stands out, in sentences: many short-lived blocks, and blocks that are never freed."""

import numpy as np

from reheap_lab.sites.groups import Group, by_site
from reheap_lab.sites.kinds import FIGURES
from reheap_lab.sites.profile import Profile
from reheap_lab.trace import size, time

MUCH = 0.05  # of the program's allocations
MUCH_KEPT = 0.1  # of what is never freed
MOSTLY, ALL = 0.5, 0.95  # of a site's own blocks
SHORT_US = 100  # the mean time that those live which are freed
SURE = 0.25  # a relative error above which nothing is said
MOST = 3  # sentences of each kind


def sentences(profile: Profile) -> list[str]:
    sites = by_site(profile)
    return _short_lived(profile, sites) + _never_freed(profile, sites)


def _short_lived(profile: Profile, sites: list[Group]) -> list[str]:
    many = [site for site in sites if site.share(profile, "allocations") >= MUCH and site.errors["allocations"] <= SURE]
    many.sort(key=lambda site: -site.figures["allocations"])
    told = ((site, _how_short(profile, site)) for site in many)
    return [f"{site.key.said} makes {percent(site.share(profile, 'allocations'))} of all allocations{how}"
            for site, how in told if how][:MOST]


def _how_short(profile: Profile, site: Group) -> str | None:
    at_once = site.figures["temporary"] / site.figures["allocations"]
    if at_once >= ALL:
        return " and frees each at once: before the thread's next call"
    if at_once >= MOSTLY:
        return f" and frees {percent(at_once)} of them at once: before the thread's next call"
    lived = lifetime_us(profile, site)
    freed = 1 - site.figures["never_freed"] / site.figures["allocations"]
    if lived is not None and lived < SHORT_US and freed >= MOSTLY:
        return f", which live {time(lived * 1000)} on average"
    return None


def lifetime_us(profile: Profile, group: Group) -> float | None:
    """The mean of the blocks that were freed."""
    times = profile.lifetime_us[group.stacks]
    freed = (profile.values[group.stacks, FIGURES.index("allocations")] -
             profile.values[group.stacks, FIGURES.index("never_freed")])
    known = ~np.isnan(times) & (freed > 0)
    return float(np.average(times[known], weights=freed[known])) if known.any() else None


def _never_freed(profile: Profile, sites: list[Group]) -> list[str]:
    kept = [site for site in sites if site.share(profile, "never_freed_bytes") >= MUCH_KEPT
            and site.errors["never_freed_bytes"] <= SURE]
    kept.sort(key=lambda site: -site.figures["never_freed_bytes"])
    what = "live at its end" if profile.live else "never freed"
    return [f"{site.key.said} allocated {percent(site.share(profile, 'never_freed_bytes'))} of what was {what}: "
            f"{'' if profile.exact else 'about '}{size(site.figures['never_freed_bytes'])} in "
            f"{blocks(site.figures['never_freed'])}" for site in kept][:MOST]


def percent(share: float) -> str:
    if 0 < share < 0.0005:
        return "<0.1 %"
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.1f} %"


def blocks(count: float) -> str:
    return f"{count:,.0f} {'block' if round(count) == 1 else 'blocks'}"
