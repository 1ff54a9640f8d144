"""Who allocates, as a page: a summary, a flame graph, and tables. Like the report, one file that loads nothing."""

import pathlib

from .. import export
from ..sites import findings, show, tree
from ..sites.functions import base, short
from ..sites.groups import Group, by_function, by_module, by_site, largest_stack, leading
from ..sites.kinds import Kind
from ..sites.profile import Profile
from ..sites.symbols import Place
from ..trace import size, time
from . import page, svg, trace_plots

MOST_NODES = 12_000
MOST_ROWS = 25  # of each kind, in each table
COLOURS = 9  # of the palette; its first, grey, is for the other modules
MOST_CALLERS = 5


def write_html(profile: Profile, path: pathlib.Path, by: str) -> None:
    export.write_text(path, html(profile, by))


def html(profile: Profile, by: str) -> str:
    nodes = tree.grow(profile, MOST_NODES)
    modules = _modules(profile)
    with svg.styled():
        curve = trace_plots.live({"series": {"t_us": [1000 * ms for ms, _ in profile.curve],
                                             "live_bytes": [live for _, live in profile.curve]}},
                                 "live_bytes", "Live memory", "bytes")
    return page.render(
        "sites.html.j2", title=profile.title, facts=_facts(profile), basis=" ".join(show.basis(profile)),
        findings=findings.sentences(profile), notes=profile.notes, by=by, curve=curve,
        kinds=[(name, kind.label[:1].upper() + kind.label[1:]) for name, kind in profile.kinds.items()],
        folded=sum(node.folded for node in nodes), flame=_flame(profile, nodes, modules),
        modules=[(name, number) for name, number in modules.items() if number],
        tables=[_sites(profile, by), _functions(profile, by), _by_module(profile, by)])


def _facts(profile: Profile) -> list[tuple[str, str, str]]:
    totals = profile.totals
    temporary = [] if profile.live else [("temporary", show.temporary_share(totals),
                                          f"{totals['temporary']:,} were freed as the thread's next call")]
    return [("allocations", f"{totals['allocations']:,}", f"{size(totals['bytes'])} in all"), *temporary,
            ("peak", size(totals["at_peak_bytes"]), f"in {findings.blocks(totals['at_peak'])}"),
            (show.left(profile), size(totals["never_freed_bytes"]), f"in {findings.blocks(totals['never_freed'])}")]


def _modules(profile: Profile) -> dict[str, int]:
    """The colour of each module: 0 where there are more than colours."""
    ordered = sorted(by_module(profile), key=lambda group: -group.figures["bytes"])
    named = [group.key for group in ordered]
    places = {place for stack in profile.stacks for place in stack.places}
    named += sorted({_module(place) for place in places} - set(named))
    return {name: number if number <= COLOURS else 0 for number, name in enumerate(named, 1)}


def _module(place: Place) -> str:
    return base(place.module) or "no file"


# ---- the flame graph --------------------------------------------------------------------------

def _flame(profile: Profile, nodes: list[tree.Node], modules: dict[str, int]) -> dict:
    """What flame.js draws."""
    names: dict[tuple, int] = {}
    rows = [[_name(node, profile, names, modules), node.parent, *map(round, node.weights.tolist())] for node in nodes]
    kinds = [{"name": name, "label": kind.label, "bytes": kind.in_bytes} for name, kind in profile.kinds.items()]
    return {"kinds": kinds,
            "exact": profile.exact, "names": list(names), "nodes": rows}


def _name(node: tree.Node, profile: Profile, names: dict[tuple, int], modules: dict[str, int]) -> int:
    place = node.place
    if place is not None:
        name = (short(place.function), place.function, place.file, _module(place), modules[_module(place)])
    elif node.parent < 0:
        name = ("all", f"everything {profile.title} recorded", "", "", 0)
    else:
        name = (f"({node.folded:,} smaller)", f"{node.folded:,} smaller ones together", "", "", 0)
    return names.setdefault(name, len(names))


# ---- tables -----------------------------------------------------------------------------------

def _sites(profile: Profile, by: str) -> dict:
    def described(site: Group) -> tuple[str, str, str]:
        stack = profile.stacks[largest_stack(profile, site, profile.kinds[by])]
        through = [f"by {stack.places[stack.site - 1].said}"] if stack.site else []
        callers = [place.said if place.line else short(place.function)
                   for place in stack.places[stack.site + 1:] if place not in profile.library]
        more = ["…"] if len(callers) > MOST_CALLERS else []
        return site.key.said, site.key.function, " ← ".join([*through, *callers[:MOST_CALLERS], *more])
    return _table(profile, by, "Sites", "Where the program asks for memory, and the calls that lead most of it there.",
                  by_site(profile), described)


def _functions(profile: Profile, by: str) -> dict:
    return _table(profile, by, "Functions", "What each allocates, together with what it calls; so the shares overlap.",
                  by_function(profile), lambda group: (short(group.key[0]), group.key[0], base(group.key[1])))


def _by_module(profile: Profile, by: str) -> dict:
    return _table(profile, by, "Modules", "The files of the program: by those in which the sites are.",
                  by_module(profile), lambda group: (group.key, group.key, ""))


def _table(profile: Profile, by: str, title: str, note: str, groups: list[Group], described) -> dict:
    shown = {id(group): group for kind in profile.kinds.values() for group in leading(groups, kind, MOST_ROWS)}
    rows = []
    for group in sorted(shown.values(), key=lambda group: -group.figures[profile.kinds[by].figure]):
        name, whole_name, note_below = described(group)
        lived = findings.lifetime_us(profile, group)
        rows.append({"name": name, "title": whole_name, "note": note_below,
                     "cells": [_cell(profile, group, kind) for kind in profile.kinds.values()],
                     "weights": [group.figures[kind.figure] for kind in profile.kinds.values()],
                     "lived": "" if lived is None else time(lived * 1000)})
    return {"title": title, "note": note, "rows": rows, "of": len(groups), "first": MOST_ROWS}


def _cell(profile: Profile, group: Group, kind: Kind) -> dict | None:
    if not group.figures[kind.figure]:
        return None
    return {"share": findings.percent(group.share(profile, kind.figure)), "amount": show.amount(group, kind),
            "error": show.error(group, kind)}
