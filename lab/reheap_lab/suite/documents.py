"""Writes a collection: JSON (all), CSV (one line a run), Markdown (the tables), and the page."""

import pathlib

from reheap_lab import export, figures, results, verdicts
from reheap_lab.answer import PEAK, TIME
from reheap_lab.results import Case, Collection, Verdict
from reheap_lab.suite import overall


def as_csv(collection: Collection) -> str:
    """Every run of every case; before a comparison's columns stand the case and its parameters."""
    varied = list(dict.fromkeys(name for case in collection.cases for name in case.parameters))
    names = sorted({name for case in collection.measured() for name in verdicts.figure_names(case.comparison)},
                   key=lambda name: (list(figures.ALL).index(name) if name in figures.ALL else len(figures.ALL), name))
    rows = [[case.name, *(case.parameters.get(name, "") for name in varied), *row]
            for case in collection.measured() for row in export.run_rows(case.comparison, names)]
    return export.lines([["case", *varied, *export.RUN_COLUMNS, *names], *rows])


def as_markdown(collection: Collection) -> str:
    parts = [_heading(collection), f"**{overall.overall_answer(collection).text}**", _means(collection),
             _cases(collection), _without(collection), export.careful(all_warnings(collection)),
             *(_details(case) for case in collection.measured()), export.closing(collection)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _heading(collection: Collection) -> str:
    return f"# {export.code(collection.title)}\n\n{export.measured_on(collection)}. {explained(collection)}"


def explained(collection: Collection) -> str:
    confidence = 100 * collection.settings["confidence"]
    base = next(iter(overall.measured(collection)), "")
    return (f"Ratios to {base}; over all, the geometric mean of the cases, each counting as much as any other. "
            f"Intervals of {confidence:g} %, which hold together for all pairs of allocators in one figure, over all "
            "or of one case.")


def means(collection: Collection) -> tuple[list[str], list[list[str]]]:
    """A row for each allocator but the base: its means, and in how many cases it is better and worse."""
    header = ["", "wall time", "better / worse / same / undecided", "peak memory", "better / worse / same / undecided"]
    rows = []
    for name in overall.measured(collection)[1:]:
        cells = []
        for figure in overall.FIGURES:
            made = collection.verdict(figure, name)
            count = overall.counted(collection, figure, name)
            cells += [mean_text(made) if made else "–", " / ".join(map(str, count.values()))]
        rows.append([name, *cells])
    return header, rows


def mean_text(made: Verdict) -> str:
    return (f"{verdicts.SIGNS[verdicts.sense(made)]} {verdicts.signed(made.ratio)} "
            f"({verdicts.signed(made.low)} to {verdicts.signed(made.high)})")


def _means(collection: Collection) -> str:
    header, rows = means(collection)
    alike = [text for name in overall.measured(collection)[1:] for text in _alike(collection, name)]
    return "\n\n".join(filter(None, [export.table(header, rows) if rows else "", " ".join(alike)]))


def _alike(collection: Collection, name: str) -> list[str]:
    made = collection.verdict(TIME, name)
    if made is None or made.like_low is None:
        return []
    return [f"Over programs like these, {name} would be between {verdicts.signed(made.like_low)} and "
            f"{verdicts.signed(made.like_high)} in wall time."]


def _cases(collection: Collection) -> str:
    names = overall.measured(collection)
    if not names:
        return ""
    rows = [[case.name, base_text(case, names[0]), *(cell_text(case, name, names[0]) for name in names[1:])]
            for case in collection.measured()]
    return export.table(["case", names[0], *(f"{name}: time, memory" for name in names[1:])], rows)


def base_text(case: Case, base: str) -> str:
    found = [(figure, case.comparison.summaries.get(figure, {}).get(base))
             for figure in (TIME, overall.figure_in(case.comparison, PEAK))]
    return ", ".join(figures.describe(figure, summary.median) if summary else "–" for figure, summary in found)


def cell_text(case: Case, name: str, base: str) -> str:
    return ", ".join(f"{verdicts.SIGNS[verdicts.sense(found)]} {verdicts.signed(found.ratio)}" if found else "–"
                     for found in (overall.verdict_in(case, figure, name, base) for figure in overall.FIGURES))


def _without(collection: Collection) -> str:
    return "\n".join("- " + export.words(f"{case.name} was not measured: {case.failed}")
                     for case in collection.cases if case.failed)


def all_warnings(collection: Collection) -> list[str]:
    """What is true of several cases is said once."""
    where: dict[str, list[str]] = {}
    for case in collection.measured():
        for text in export.all_warnings(case.comparison):
            where.setdefault(text, []).append(case.name)
    count = len(collection.measured())
    return [*collection.warnings,
            *(text if len(names) == count > 1 else f"{', '.join(names)}: {text}" for text, names in where.items())]


def _details(case: Case) -> str:
    body = export.as_markdown(case.comparison).replace("\n# ", "\n### ").removeprefix("# ")
    return f"<details><summary>{_plain(case.name)}</summary>\n\n### {body}\n</details>"


def _plain(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _write_html(collection: Collection, path: pathlib.Path) -> None:
    from reheap_lab.report import collection as page  # matplotlib takes a second to load: only who wants it pays
    page.write_html(collection, path)


WRITERS = {".json": export.writer(results.dump), ".csv": export.writer(as_csv), ".md": export.writer(as_markdown),
           ".html": _write_html}
