"""What was measured, as one JSON, a section for each question: what it showed, as it was shown, and the figures of its
comparisons. Tables and sentences are noted where they are shown (tables.py), comparisons where they are made
(question.py): no question tells anything twice."""

import json
import os
import subprocess
from pathlib import Path

from reheap_lab import figures, verdicts
from reheap_lab.errors import LabError
from reheap_lab.results import Comparison

from . import means
from .paths import ROOT, WORKLOADS_BUILT

FILE = WORKLOADS_BUILT / "performance.json"
SCHEMA = "reheap-performance/1"
QUICK = "Measured with --quick, which shows that everything works: these figures say little."
FIGURES = ("wall_s", "cpu_s", "peak_rss_kib")  # of the lab's; those that a program prints itself are all kept

_shown: list[dict] = []


def begin() -> list[dict]:
    """A new list, for what is shown from now on."""
    global _shown
    _shown = []
    return _shown


def note_table(header: list[str], rows: list[list[str]]) -> None:
    _shown.append({"header": [cell.strip() for cell in header], "rows": rows})


def note_text(text: str) -> None:
    _shown.append({"text": text})


def figures_of(made: Comparison) -> dict[str, dict[str, dict]]:
    """By figure and allocator: the median and the ratio to the first one, each with its interval, and the ratio to the
    best peer. What was not measured is absent."""
    base = made.subjects[0].name
    return {figure: {name: _cell(made, figure, name, base) for name in by_name}
            for figure, by_name in made.summaries.items() if figure in FIGURES or figure not in figures.BUILT_IN}


def _cell(made: Comparison, figure: str, name: str, base: str) -> dict:
    median = made.summaries[figure][name]
    paired = verdicts.ratio(made, figure, name, base) if name != base else None
    ratio = means.ratio(made, figure, name, base)
    best = means.to_best_peer({"": made}, figure, name)[""]
    return {"median": _rounded(median.median, median.low, median.high),
            **({"ratio": _rounded(paired.middle, paired.low, paired.high)} if paired else
               {"ratio": _rounded(ratio)} if ratio is not None else {}),
            **({"to_best_peer": _rounded(best)[0]} if best is not None else {})}


def _rounded(*values: float) -> list[float]:
    return [float(f"{value:.4g}") for value in values]


def commit() -> str:
    """Of the tree that was measured; + if it differs from that."""
    done = subprocess.run(["git", "describe", "--always", "--dirty=+"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def load(file: Path) -> dict:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LabError(f"there is no {file}; measure first: ./dev bench all") from None
    except ValueError as error:
        raise LabError(f"{file} is damaged ({error}); remove it and measure again: ./dev bench all") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA or not isinstance(data.get("sections"), dict):
        raise LabError(f"{file} is not what ./dev bench all writes ({SCHEMA}); name another one, or remove it and "
                       "measure again: ./dev bench all")
    return data


def check(file: Path) -> None:
    """Before anything is measured: that its section can be added."""
    if file.exists():
        load(file)


def add(file: Path, name: str, section: dict) -> None:
    """Puts it in the place of the one that was there; the others stay."""
    sections = {**(load(file)["sections"] if file.exists() else {}), name: section}
    note = {"note": QUICK} if any(one["quick"] for one in sections.values()) else {}
    text = _dump({"schema": SCHEMA, **note, "sections": sections}).replace(f"{ROOT}/", "")
    file.parent.mkdir(parents=True, exist_ok=True)
    scratch = file.with_suffix(".new")
    scratch.write_text(text + "\n", encoding="utf-8")
    os.replace(scratch, file)


def _dump(value, indent: str = "") -> str:
    """JSON for people and for diffs: an allocator's cell or a row of a table takes one line."""
    if _depth(value) <= (2 if isinstance(value, dict) else 1):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    inner = indent + " "
    if isinstance(value, dict):
        parts, ends = [f"{json.dumps(key)}: {_dump(part, inner)}" for key, part in value.items()], "{}"
    else:
        parts, ends = [_dump(part, inner) for part in value], "[]"
    return f"{ends[0]}\n{inner}" + f",\n{inner}".join(parts) + f"\n{indent}{ends[1]}"


def _depth(value) -> int:
    if not isinstance(value, (dict, list)):
        return 0
    return 1 + max(map(_depth, value.values() if isinstance(value, dict) else value), default=0)
