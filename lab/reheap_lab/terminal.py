"""What a person sees: one line of progress with the time left, then the table and the verdicts."""

import contextlib

from rich.console import Console, Group
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from reheap_lab import figures, verdicts
from reheap_lab.answer import answer, told
from reheap_lab.export import all_warnings, by_kind, percent
from reheap_lab.figures import SAME, UNDECIDED
from reheap_lab.results import Comparison, Run, Verdict
from reheap_lab.rounds import Book

STYLES = {"better": "green", "worse": "red", "same": "dim", "open": "yellow"}
MARKS = {SAME: "= ", UNDECIDED: "? "}  # beside a ratio that would be read as a verdict
GAP = 2  # between columns
IN_TABLE_ONLY = ("user_s", "system_s")  # CPU time has a sentence, its parts have not


class Aside(Console):
    """Standard error. Who read it may leave: what is measured is for the files, and for standard output."""

    def __init__(self) -> None:
        super().__init__(stderr=True)

    def on_broken_pipe(self) -> None:
        self.quiet = True


class ProgressLine:
    """A Watch. Without a terminal it is silent: a log wants the result, not the waiting."""

    def __init__(self, console: Console, label: str = ""):
        self._label = label
        self._progress = Progress(TextColumn("{task.description}", markup=False), BarColumn(bar_width=24),
                                  TextColumn("{task.fields[left]}"),
                                  console=console, transient=True, disable=not console.is_terminal)
        self._task = self._progress.add_task(f"{label}warming up", total=None, left="")

    def __enter__(self) -> "ProgressLine":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def running(self, subject: str, book: Book) -> None:
        self._progress.update(self._task, description=f"{self._label}{phase(book)}: {subject}", left=left(book),
                              **_share(book))

    def ran(self, run: Run, book: Book) -> None:
        if run.failed:
            with contextlib.suppress(OSError):  # who read it has left: what is measured is for the files
                self._progress.console.print(Text(f"{run.subject}: {run.failed}", style="red"))


def phase(book: Book) -> str:
    if not book.timing:
        return "looking closer"
    return f"round {book.rounds + 1}" if book.measuring() else "warming up"


def _share(book: Book) -> dict[str, float]:
    rounds_left = book.stop.rounds_left(book) if book.rounds else None
    return {} if rounds_left is None else {"completed": book.rounds, "total": book.rounds + rounds_left}


def left(book: Book) -> str:
    seconds = book.seconds_left() if book.timing else None
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{seconds:.0f} s left"
    return f"{seconds / 60:.0f} min left" if seconds < 5400 else f"{seconds / 3600:.1f} h left"


def show(comparison: Comparison, console: Console) -> None:
    console.print(Group(*_parts(comparison, console.width)))


def _parts(comparison: Comparison, width: int) -> list:
    """The answer first; then what it rests on."""
    parts: list = [Text(answer(comparison).text + "\n", style="bold"), *_summaries(comparison, width)]
    parts += _legend(comparison)
    for title, (kinds, rows) in (("time spent in", by_kind(comparison.shares(), percent)),
                                 ("memory calls", by_kind(comparison.calls(), "{:,}".format))):
        if rows:
            parts.append(table([f"\n{title}", *(f"\n{kind}" for kind in kinds)], rows))
    parts += [_sentence(verdict) for verdict in comparison.verdicts if verdict.figure not in IN_TABLE_ONLY]
    parts += [_sentence(verdict) for verdict in comparison.between_others if verdict.figure in told(comparison)]
    parts += [Text("careful: " + text, style="yellow") for text in all_warnings(comparison)]
    return parts


def _summaries(comparison: Comparison, width: int) -> list[Table | Text]:
    """A row for each allocator; below each figure its ratio to the base, as the verdict has it. As many tables, one
    below the other, as the width makes necessary."""
    shown = [name for name in figures.ALL if name in comparison.summaries and name != "major_faults"]
    columns = {name: [_cell(comparison, name, subject.name) for subject in comparison.subjects] for name in shown}
    room = width - max(len(text) for text in ("allocator", *(s.name for s in comparison.subjects)))
    widths = {name: max(map(width_of, [_heading(name), *cells])) + GAP for name, cells in columns.items()}
    made = [_summary(comparison, {name: columns[name] for name in block}) for block in blocks(widths, room)]
    return [part for table in made for part in (table, Text(""))][:-1]


def blocks(widths: dict[str, int], room: int) -> list[list[str]]:
    """The names in their order, in as few lines as have room for them."""
    found: list[list[str]] = [[]]
    for name, width in widths.items():
        if found[-1] and sum(widths[one] for one in found[-1]) + width > room:
            found.append([])
        found[-1].append(name)
    return found


def _legend(comparison: Comparison) -> list[Text]:
    words = {verdict.word for verdict in comparison.verdicts}
    shown = [f"{mark}{word}" for word, mark in MARKS.items() if word in words]
    below = f"below: against {comparison.verdicts[0].base}" if comparison.verdicts else ""
    return [Text("\n" + "; ".join([below, *shown]), style="dim")] if below else []


def _summary(comparison: Comparison, columns: dict[str, list[Text]]) -> Table:
    made = Table(box=None, pad_edge=False, header_style="bold")
    made.add_column("allocator")
    for name in columns:
        made.add_column(_heading(name), justify="right", no_wrap=True)
    for subject, *cells in zip(comparison.subjects, *columns.values()):
        made.add_row(subject.name, *cells, style="red" if subject.failed else "")
    return made


def _heading(figure: str) -> Text:
    """On two lines, where it has two words."""
    return Text("\n".join(figures.ALL[figure].label.rsplit(" ", 1)))


def width_of(cell: Text) -> int:
    return max(map(len, cell.plain.split("\n")))


def _cell(comparison: Comparison, figure: str, subject: str) -> Text:
    summary = comparison.summaries.get(figure, {}).get(subject)
    if summary is None:
        return Text("–")
    cell = Text(figures.describe(figure, summary.median))
    verdict = comparison.verdict(figure, subject)
    if verdict:
        cell.append(f"\n{MARKS.get(verdict.word, '')}{verdicts.signed(verdict.ratio)}", style=style_of(verdict))
    return cell


def style_of(verdict: Verdict) -> str:
    return STYLES[verdicts.sense(verdict)]


def table(header: list[str], rows: list[list[str]]) -> Table:
    """Names to the left, figures to the right."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for place, title in enumerate(header):
        made.add_column(title, justify="right" if place else "left")
    for row in rows:
        made.add_row(*row)
    return made


def _sentence(verdict: Verdict) -> Text:
    return Text("• " + verdict.text, style=style_of(verdict))
