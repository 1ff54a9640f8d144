"""Puts the report of a collection together: the answer over all cases, each case in a table, and its own section."""

import pathlib
import re

from markupsafe import Markup

from .. import answer, export
from ..answer import PEAK, TIME
from ..results import Case, Collection
from ..suite import documents, overall
from . import page, palette, spans, svg
from .palette import Look

# What one page holds once; what a plot has made unique already begins with g and a number.
_PLACE = re.compile(r'((?:\bid|data-copy|aria-labelledby|aria-controls)="|href="#)(?!g\d+-)')


def write_html(collection: Collection, path: pathlib.Path) -> None:
    """Writes the report: one file, which loads nothing from anywhere."""
    export.write_text(path, html(collection))


def html(collection: Collection) -> str:
    looks = palette.looks(collection.subjects())
    names = overall.measured(collection)
    with svg.styled():
        beside = [picture for figure in overall.FIGURES if (picture := spans.cases(collection, figure, looks))]
        sweeps = spans.sweeps(collection, looks)
    return page.render("collection.html.j2", collection=collection, looks=looks, base=next(iter(names), ""),
                       others=names[1:], answer=overall.overall_answer(collection).text, rows=_rows(collection, names),
                       explained=documents.explained(collection), cells=_cells(collection, names), beside=beside,
                       sweeps=sweeps, warnings=documents.all_warnings(collection),
                       count=overall.of_cases(collection, len(collection.measured())),
                       sections=[_section(number, case, looks) for number, case in enumerate(collection.cases)],
                       facts=page.pairs(collection.machine),
                       runs=sum(not run.warmup for case in collection.measured() for run in case.comparison.runs))


def _rows(collection: Collection, names: list[str]) -> list[tuple]:
    """Each allocator's means, and in how many cases it is better and worse."""
    return [(name, [(collection.verdict(figure, name), overall.counted(collection, figure, name))
                    for figure in overall.FIGURES]) for name in names[1:]]


def _cells(collection: Collection, names: list[str]) -> list[tuple]:
    """Each case: the base's figures, and the others' ratios to them."""
    return [(number, case, documents.base_text(case, names[0]).split(", "),
             [[overall.verdict_in(case, figure, name, names[0]) for figure in (TIME, PEAK)] for name in names[1:]])
            for number, case in enumerate(collection.cases) if case.comparison]


def _section(number: int, case: Case, looks: dict[str, Look]) -> tuple[int, Case, str, Markup | None]:
    if case.comparison is None:
        return number, case, "", None
    inside = page.inside(case.comparison, looks)
    return number, case, answer.answer(case.comparison).text, Markup(_PLACE.sub(rf"\1case{number}-", inside))
