"""Writes a comparison for other programs and for people: JSON (all), CSV (one line a run), Markdown (the tables)."""

import csv
import io
import os
import pathlib
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterable
from typing import Any

import click

from reheap_lab import figures, host, results, verdicts
from reheap_lab.answer import answer
from reheap_lab.errors import LabError, UsageError
from reheap_lab.results import Collection, Comparison, Summary

FORMULAS = ("=", "+", "-", "@", "\t", "\n")
RUN_COLUMNS = ("subject", "round", "place", "warmup", "outlier", "failed")


def as_json(comparison: Comparison) -> str:
    return results.dump(comparison)


def as_csv(comparison: Comparison) -> str:
    """Every run with its figures; one that could not be measured is an empty cell."""
    names = verdicts.figure_names(comparison)
    return lines([[*RUN_COLUMNS, *names], *run_rows(comparison, names)])


def lines(rows: Iterable[list]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([_plain(cell) for cell in row] for row in rows)
    return out.getvalue()


def _plain(cell: Any) -> Any:
    """A spreadsheet takes text that begins like a formula for one, and would run what a command is called or printed:
    an apostrophe before it says that it is text. A number is one. Carriage returns, which csv leaves without quotes,
    would begin another line."""
    if not isinstance(cell, str):
        return cell
    cell = cell.replace("\r\n", "\n").replace("\r", "\n")
    if not cell.startswith(FORMULAS):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def run_rows(comparison: Comparison, names: list[str]) -> list[list]:
    return [[run.subject, run.round, run.place, int(run.warmup), int(run.outlier), run.failed or "",
             *(run.figures.get(name, "") for name in names)] for run in comparison.runs]


def as_markdown(comparison: Comparison) -> str:
    parts = [_heading(comparison), f"**{answer(comparison).text}**", _summarytable(comparison),
             _verdict_list(comparison), _extras_tables(comparison), careful(all_warnings(comparison)),
             closing(comparison)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _heading(comparison: Comparison) -> str:
    confidence = comparison.settings.get("confidence", 0.99)
    rounds = len({run.round for run in comparison.runs if not run.warmup})
    beside = " side by side" if comparison.settings.get("side_by_side") else ""
    made = f"{figures.plural(rounds, 'round')}{beside}"
    return (f"# {code(shlex.join(comparison.command))}\n\n{made}, {measured_on(comparison)}. "
            f"Medians with their {100 * confidence:g} % intervals.")


def code(text: str) -> str:
    """On one line, between more backticks than it has in a row."""
    text = re.sub(r"\s+", " ", text)
    fence = _fence(text, 1)
    blank = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{blank}{text}{blank}{fence}"


def words(text: str) -> str:
    """What may hold what a command said: on one line, and shown as it is rather than taken for markup."""
    return re.sub(r"([\\`*<\[\]])", r"\\\1", re.sub(r"\s+", " ", text))


def _fence(text: str, least: int) -> str:
    return "`" * max(least, *(len(found) + 1 for found in re.findall("`+", text)), 0)


def measured_on(made: Comparison | Collection) -> str:
    machine = made.machine
    cores = figures.plural(machine["cores"], "core") if "cores" in machine else None
    words = [made.started, machine.get("cpu"), cores, machine.get("kernel"), machine.get("libc")]
    return ", ".join(str(word) for word in words if word)


def _summarytable(comparison: Comparison) -> str:
    subjects = [s.name for s in comparison.subjects]
    rows = [[_label(figure), *(_cell(figure, by.get(name)) for name in subjects)]
            for figure, by in comparison.summaries.items()]
    return table(["", *subjects], rows) if rows else ""


def _label(figure: str) -> str:
    return figures.ALL[figure].label if figure in figures.ALL else figure


def _cell(figure: str, summary: Summary | None) -> str:
    if summary is None:
        return ""
    middle, low, high = (figures.describe(figure, x) for x in (summary.median, summary.low, summary.high))
    return middle if low == high else f"{middle} ({low} to {high})"


def _verdict_list(comparison: Comparison) -> str:
    return "\n".join(f"- {verdict.text}" for verdict in comparison.verdicts + comparison.between_others)


def _extras_tables(comparison: Comparison) -> str:
    return "\n\n".join(f"{title}:\n\n{table(['', *kinds], rows)}" for title, (kinds, rows) in (
        ("Where the time goes (share of samples)", by_kind(comparison.shares(), percent)),
        ("Memory calls to the OS", by_kind(comparison.calls(), str, ""))) if rows)


def by_kind(found: dict[str, dict], write: Callable, absent: str = "–") -> tuple[list[str], list[list[str]]]:
    """The kinds that anybody has, and a row for each subject."""
    kinds = list(dict.fromkeys(kind for counts in found.values() for kind in counts))
    return kinds, [[name, *(write(counts[kind]) if kind in counts else absent for kind in kinds)]
                   for name, counts in found.items()]


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def careful(warnings: list[str]) -> str:
    return "\n".join(f"- Careful: {words(text)}" for text in warnings)


def all_warnings(comparison: Comparison) -> list[str]:
    """Failures first, then what concerns one allocator, then the whole."""
    failed = [f"{s.name} has no verdict: {s.failed}" for s in comparison.subjects if s.failed]
    lost = [f"{s.name}: {figures.plural(n, 'run')} failed" for s in comparison.subjects if not s.failed
            for n in [sum(1 for r in comparison.runs if r.subject == s.name and r.failed)] if n]
    own = [f"{s.name}: {warning}" for s in comparison.subjects for warning in s.warnings]
    return failed + lost + own + comparison.warnings


def closing(made: Comparison | Collection) -> str:
    fence = _fence(made.reproduce, 3)
    return f"Again:\n\n{fence}sh\n{made.reproduce}\n{fence}" if made.reproduce else ""


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |"
                     for line in lines)


def _write_html(comparison: Comparison, path: pathlib.Path) -> None:
    from reheap_lab import report  # matplotlib takes a second to load: only who wants it pays
    report.write_html(comparison, path)


def write_text(path: pathlib.Path, text: str) -> None:
    """What is not UTF-8 in a command's words or a file's name is written as JSON writes it: \\udcff."""
    data = text.encode("utf-8", errors="backslashreplace")
    place = path.resolve()
    if place.exists() and not place.is_file():  # /dev/stdout and its like
        path.write_bytes(data)
    else:
        _replace(place, data)


def _replace(path: pathlib.Path, data: bytes) -> None:
    """Whole or not at all: where there is no room, what the file held before is not lost."""
    part = path.with_name(f".{os.getpid()}.reheap-part")
    try:
        part.write_bytes(data)
        if path.exists():
            _make_alike(part, path)
        part.replace(path)
    except PermissionError:  # of the folder; the file itself may be open to us
        path.write_bytes(data)
    finally:
        part.unlink(missing_ok=True)


def _make_alike(made: pathlib.Path, model: pathlib.Path) -> None:
    shutil.copymode(model, made)
    owner = model.stat()
    if not host.WINDOWS and (owner.st_uid, owner.st_gid) != (made.stat().st_uid, made.stat().st_gid):
        os.chown(made, owner.st_uid, owner.st_gid)  # who may not is refused, and writes into the file as it is


def writer(make: Callable[[Any], str]) -> Callable[[Any, pathlib.Path], None]:
    return lambda what, path: write_text(path, make(what))


WRITERS = {".json": writer(as_json), ".csv": writer(as_csv), ".md": writer(as_markdown), ".html": _write_html}


def check_path(path: pathlib.Path, writers: dict[str, Callable] = WRITERS) -> None:
    """Before anything is measured: a comparison must not be lost for a wrong file name."""
    if _writer_of(path, writers) is None:
        raise UsageError(f"{path}: the file's ending says what to write; there are: {', '.join(writers)}")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.parent}. Make it first")
    folder = path.resolve().parent
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        if not os.access(path, os.W_OK):
            raise UsageError(f"{path}: nothing can be written in {folder}. Name a file elsewhere") from None


def write(what: Any, path: pathlib.Path, writers: dict[str, Callable] = WRITERS) -> None:
    try:
        _writer_of(path, writers)(what, path)
    except OSError as error:
        raise LabError(f"{path} cannot be written: {error.strerror}") from None


def write_each(what: Any, paths: tuple[pathlib.Path, ...], writers: dict[str, Callable]) -> dict[pathlib.Path, str]:
    """Why by path, of those that cannot be written: one must not cost the others. Call it before anything is shown,
    which may not get through."""
    lost = {}
    for path in paths:
        try:
            write(what, path, writers)
        except LabError as error:
            lost[path] = str(error)
    return lost


def tell(paths: tuple[pathlib.Path, ...], lost: dict[pathlib.Path, str]) -> None:
    for path in paths:
        if path not in lost:
            click.echo(f"wrote {path}", err=True)
    if lost:
        raise LabError("\n".join(lost.values()))


def _writer_of(path: pathlib.Path, writers: dict[str, Callable]) -> Callable | None:
    return next((write for ending, write in writers.items() if path.name.lower().endswith(ending)), None)
