"""What a person sees of a collection: the answer, the means over all cases, then each case."""

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from reheap_lab import terminal, verdicts
from reheap_lab.results import Case, Collection, Overall, Verdict
from reheap_lab.suite import documents, overall


def show(collection: Collection, console: Console) -> None:
    console.print(Group(*_parts(collection, console.width)))


def _parts(collection: Collection, width: int) -> list:
    answer = overall.overall_answer(collection)
    parts: list = [Text(answer.text + "\n", style="bold"), _means(collection), Text("")]
    for table in _cases(collection, width):
        parts += [table, Text("")]
    parts.append(Text("▼ better, ▲ worse, = the same, ? undecided; time, and below it peak memory", style="dim"))
    parts += [Text(f"• {verdict.text}", style=terminal.style_of(verdict))  # against the base, the table says it
              for verdict in collection.between_others if answer.take in (verdict.subject, verdict.base)]
    parts += [Text(f"{case.name} was not measured: {case.failed}", style="red")
              for case in collection.cases if case.failed]
    return parts + [Text("careful: " + text, style="yellow") for text in documents.all_warnings(collection)]


def _means(collection: Collection) -> Table:
    """In each cell the mean, its interval, and in how many cases it is better and worse."""
    made = terminal.table(["over all", "wall time", "cases", "peak memory", "cases"], [])
    for name in overall.measured(collection)[1:]:
        cells = []
        for figure in overall.FIGURES:
            found, count = collection.verdict(figure, name), overall.counted(collection, figure, name)
            cells += [_mean(found), Text("\n".join([f"▼ {count['better']}  ▲ {count['worse']}",
                                                    f"= {count['same']}  ? {count['open']}"]))]
        made.add_row(name, *cells)
    return made


def _mean(found: Overall | None) -> Text:
    if found is None:
        return Text("–")
    cell = Text(verdicts.signed(found.ratio), style=terminal.style_of(found))
    return cell.append(f"\n{verdicts.signed(found.low)} to {verdicts.signed(found.high)}", style="dim")


def _cases(collection: Collection, width: int) -> list[Table]:
    """Time above memory, of each allocator; as many tables as the width makes necessary."""
    names = overall.measured(collection)
    if not names:
        return []
    cases = collection.measured()
    columns = {name: [_cell(case, name, names[0]) for case in cases] for name in names}
    first = min(max(len(name) for name in ("case", *(case.name for case in cases))), width // 3)
    widths = {name: max(len(name), *(terminal.width_of(cell) for cell in cells)) + terminal.GAP
              for name, cells in columns.items()}
    return [_case_table(cases, {name: columns[name] for name in block}, first)
            for block in terminal.blocks(widths, width - first)]


def _case_table(cases: list[Case], columns: dict[str, list[Text]], first: int) -> Table:
    made = terminal.table(["case", *columns], [])
    made.columns[0].max_width, made.columns[0].overflow = first, "fold"
    for case, *cells in zip(cases, *columns.values()):
        made.add_row(Text(case.name), *cells)
    return made


def _cell(case: Case, name: str, base: str) -> Text:
    if name == base:
        return Text(documents.base_text(case, base).replace(", ", "\n"))
    found = [overall.verdict_in(case, figure, name, base) for figure in overall.FIGURES]
    return Text("\n").join(_sign(verdict) for verdict in found)


def _sign(found: Verdict | None) -> Text:
    if found is None:
        return Text("–")
    return Text(f"{verdicts.SIGNS[verdicts.sense(found)]} {verdicts.signed(found.ratio)}", terminal.style_of(found))
