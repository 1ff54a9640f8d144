"""Writes who allocates, for other programs and for people: HTML, pprof, folded stacks, JSON."""

import json
import pathlib
from collections.abc import Callable
from dataclasses import asdict

import numpy as np

from reheap_lab import export
from reheap_lab.sites import findings, pprof
from reheap_lab.sites.functions import short
from reheap_lab.sites.groups import Group, by_module, by_site
from reheap_lab.sites.kinds import KINDS
from reheap_lab.sites.profile import Profile

DEFAULT = "peak"  # what a file with one weight has, unless --by says otherwise


def as_pprof(profile: Profile) -> bytes:
    basis = "each allocation" if profile.exact else f"an allocation for each {profile.every_bytes} bytes"
    source = "profile" if profile.live else "trace sites"
    return pprof.encode(profile, [f"reheap {source} {profile.title}", f"a call stack of {basis}", *profile.notes])


def as_folded(profile: Profile, by: str) -> str:
    """Brendan Gregg's: the outermost function first, then the weight."""
    kind, sums = KINDS[by], dict[str, int]()
    for stack, weight in zip(profile.stacks, profile.values[:, KINDS[by].place]):
        line = ";".join(short(place.function).replace(";", ":") for place in reversed(stack.places))
        sums[line] = sums.get(line, 0) + round(weight)
    return "".join(f"{line} {weight}\n" for line, weight in sorted(sums.items()) if weight)


def as_json(profile: Profile) -> str:
    places = list(dict.fromkeys(place for stack in profile.stacks for place in stack.places))
    numbers = {place: number for number, place in enumerate(places)}
    return json.dumps({
        "title": profile.title, "every_bytes": profile.every_bytes, "totals": profile.totals, "notes": profile.notes,
        "findings": findings.sentences(profile), "modules": [asdict(module) for module in profile.modules],
        "places": [asdict(place) for place in places],
        "sites": [{"place": numbers[site.key], **_figures(site)} for site in by_site(profile)],
        "by_module": [{"module": group.key, **_figures(group)} for group in by_module(profile)],
        "stacks": [{"places": [numbers[place] for place in stack.places], "site": stack.site,
                    "sampled": int(sampled), **profile.figures(number),
                    **({} if np.isnan(lived) else {"lifetime_us": lived})}
                   for number, (stack, sampled, lived) in enumerate(
                       zip(profile.stacks, profile.sampled, profile.lifetime_us))]}) + "\n"


def _figures(group: Group) -> dict:
    return {"sampled": int(group.sampled), **{name: round(value) for name, value in group.figures.items()},
            "relative_errors": {name: round(error, 4) for name, error in group.errors.items() if error}}


def writers(by: str | None) -> dict[str, Callable[[Profile, pathlib.Path], None]]:
    """By ending. `by` is what a file has that holds one weight, and what a page shows first."""
    def write_html(profile: Profile, path: pathlib.Path) -> None:
        from reheap_lab.report import sites_page  # loads what draws: only who wants it pays
        sites_page.write_html(profile, path, by or DEFAULT)

    return {".html": write_html,
            ".pb.gz": lambda profile, path: path.write_bytes(as_pprof(profile)) and None,
            ".folded": export.writer(lambda profile: as_folded(profile, by or DEFAULT)),
            ".json": export.writer(as_json)}
