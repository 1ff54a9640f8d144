"""Plain text tables: the first column to the left, figures to the right."""

ABSENT = "-"


def render(header: list[str], rows: list[list[str]]) -> str:
    """A table whose rows may be shorter than the header; missing cells stay empty."""
    width = len(header)
    if any(len(row) > width for row in rows):
        raise ValueError("a row has more cells than the header")
    lines = [header] + [row + [""] * (width - len(row)) for row in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(width)]
    text = [_render_line(line, widths) for line in lines]
    rule = "  ".join("-" * column for column in widths)
    return "\n".join([text[0], rule, *text[1:]])


def render_markdown(header: list[str], rows: list[list[str]]) -> str:
    """The same for a document: figures from the third column on, to the right."""
    rule = ["---" if column < 2 else "--:" for column in range(len(header))]
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, rule, *rows])


def _render_line(cells: list[str], widths: list[int]) -> str:
    first = cells[0].ljust(widths[0])
    rest = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:])]
    return "  ".join([first, *rest]).rstrip()


def number(value: float | None, digits: int = 2) -> str:
    """A figure, with thousands separated; a figure that was not measured is a dash, never 0."""
    if value is None:
        return ABSENT
    return f"{value:,.{digits}f}"


def span(low: float | None, high: float | None, digits: int = 2) -> str:
    if low is None or high is None:
        return ABSENT
    return f"{number(low, digits)} .. {number(high, digits)}"
