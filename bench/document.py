"""Puts measured figures into a document: tables and plots of what ./dev bench all (or --record) wrote.

In the document, what stands between `<!-- figures: NAME -->` and `<!-- end of figures: NAME -->` is written anew from
the section NAME of the record, if it has one; all else stays as it is. So no figure is typed by hand, and a section
keeps its figures, with the commit and the date that they are of, until it is measured again. Plots go to the folder
images beside the document.
"""

import argparse
import re
import textwrap
from pathlib import Path

import environment
from common import record, tables
from common.paths import ROOT
from common.subjects import REHEAP
from reheap_lab.errors import LabError

DOCUMENT = ROOT / "docs" / "performance.md"
MARK = re.compile(r"^<!-- (figures|end of figures): ([\w-]+) -->$")
FOLDED = 12  # rows; a longer table is folded up
WIDTH = 120


def marks(name: str) -> tuple[str, str]:
    return f"<!-- figures: {name} -->", f"<!-- end of figures: {name} -->"


def places(lines: list[str], document: Path) -> dict[str, tuple[int, int]]:
    """By section, the lines of its two marks."""
    found, opened = {}, None
    for number, line in enumerate(lines):
        mark = MARK.match(line)
        if not mark:
            if "figures: " in line and "<!--" in line:
                raise LabError(f"{document}:{number + 1}: {line.strip()!r} is no mark; a mark is a line of its own: "
                               + marks("NAME")[0])
            continue
        kind, name = mark.groups()
        where = f"{document}:{number + 1}"
        if (kind == "figures") != (opened is None) or (opened is not None and opened[0] != name):
            raise LabError(f"{where}: {line!r} does not match " + (f"the mark in line {opened[1] + 1}; write "
                           f"{marks(opened[0])[1]!r} where the figures of {opened[0]} end" if opened else
                           f"any before it; write {marks(name)[0]!r} where the figures of {name} begin"))
        if kind == "figures":
            if name in found:
                raise LabError(f"{where}: {name} has a place already, in line {found[name][0] + 1}; remove one of them")
            opened = name, number
        else:
            found[name], opened = (opened[1], number), None
    if opened:
        raise LabError(f"{document}:{opened[1] + 1}: the figures of {opened[0]} do not end; write "
                       f"{marks(opened[0])[1]!r} where they do")
    return found


def replaced(text: str, texts: dict[str, str], document: Path) -> str:
    """The document with these sections anew."""
    lines = text.splitlines()
    found = places(lines, document)
    missing = [name for name in texts if name not in found]
    if missing:
        begin, end = marks(missing[0])
        raise LabError(f"{document} has no place for the figures of {', '.join(missing)}; write {begin!r} and {end!r}, "
                       "a line each, where they belong")
    for name, (begin, end) in sorted(found.items(), key=lambda one: -one[1][0]):
        if name in texts:
            lines[begin + 1:end] = ["", *texts[name].splitlines(), ""]
    return "\n".join(lines) + "\n"


def render(section: dict, pictures: dict[str, str]) -> str:
    """Markdown; `pictures` are files by what they show."""
    parts = [_origin(section)]
    if section["quick"]:
        parts.append(f"**{record.QUICK}**")
    parts += [f"![{title}]({file})" for title, file in pictures.items()]
    parts += [_table(one) if "rows" in one else _paragraph(one["text"]) for one in section["shown"]]
    if section["missing"]:
        items = (textwrap.fill(f"- {name}: {reason}", WIDTH, subsequent_indent="  ", break_long_words=False)
                 for name, reason in section["missing"].items())
        parts.append("\n".join(["Not measured:", "", *items]))
    return "\n\n".join(parts)


def _origin(section: dict) -> str:
    machine = section["machine"]
    on = [machine.get("cpu"), f"{machine['cores']} processors" if "cores" in machine else None,
          machine.get("kernel"), machine.get("libc")]
    versions = ", ".join(f"{name} {version}".strip() for name, version in section["allocators"].items())
    return f"`{section['command']}`\n\n" + _paragraph(
        f"{section['started']}, commit {section['commit']}, on {', '.join(filter(None, on))}. Rounds: "
        f"{section['rounds']}. Measured: {versions}.")


def _paragraph(text: str) -> str:
    return textwrap.fill(text.strip().replace("*", "\\*").replace("<", "&lt;"), WIDTH, break_long_words=False,
                         break_on_hyphens=False)


def _table(shown: dict) -> str:
    rows = [[f"**{row[0]}**" if row[0] == REHEAP else row[0], *row[1:]] for row in shown["rows"]]
    text = tables.render_markdown(shown["header"], [[cell.replace("|", "\\|") for cell in row] for row in rows], 1)
    if len(rows) <= FOLDED:
        return text
    return f"<details><summary>{shown['header'][0]}: {len(rows)} rows</summary>\n\n{text}\n\n</details>"


def draw_all(name: str, section: dict, folder: Path) -> dict[str, str]:
    environment.install_reports_own()
    import document_plots
    files = {}
    for title, (stem, picture) in document_plots.pictures(name, section).items():
        folder.mkdir(exist_ok=True)
        file = folder / f"performance-{name}-{stem}.svg"
        file.write_text(picture, encoding="utf-8")
        files[title] = f"{folder.name}/{file.name}"
    return files


def main(arguments: list[str]) -> int:
    made = argparse.ArgumentParser(prog="./dev bench document", description=__doc__)
    made.add_argument("--from", dest="record", type=Path, default=record.FILE, metavar="FILE",
                      help="what was measured (default build/bench/performance.json)")
    made.add_argument("--into", type=Path, default=DOCUMENT, metavar="FILE", help="(default docs/performance.md)")
    given = made.parse_args(arguments)
    sections = record.load(given.record)["sections"]
    if not given.into.is_file():
        raise LabError(f"there is no document {given.into}; name one that has marks: --into docs/performance.md")
    text = given.into.read_text(encoding="utf-8")
    replaced(text, dict.fromkeys(sections, ""), given.into)  # before anything is drawn
    texts = {name: render(section, draw_all(name, section, given.into.resolve().parent / "images"))
             for name, section in sections.items()}
    given.into.write_text(replaced(text, texts, given.into), encoding="utf-8")
    print(f"{given.into}: figures of {', '.join(texts)} from {given.record}")
    return 0
