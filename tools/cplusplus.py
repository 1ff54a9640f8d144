"""Reading C and C++ as far as the style checks need it: comments, includes, functions."""

import re
from collections.abc import Iterator

SOURCE_SUFFIXES = {".c", ".cpp"}
CODE_SUFFIXES = SOURCE_SUFFIXES | {".h", ".hpp"}

TOKENS = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def without_comments(text: str) -> str:
    """The text with comments blanked, lines kept."""
    def blank(match: re.Match) -> str:
        token = match.group()
        return re.sub(r"[^\n]", " ", token) if token.startswith("/") else token
    return TOKENS.sub(blank, text)


def includes(text: str) -> Iterator[tuple[int, str, bool]]:
    """(line, name, whether in angle brackets) of every #include."""
    for number, line in enumerate(without_comments(text).splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match:
            yield number, match.group(2), match.group(1) == "<"


NO_FUNCTION = re.compile(r" *(namespace|struct|class|enum|union|extern|public|private|static_assert|return)\b")


def functions(text: str) -> Iterator[tuple[int, int]]:
    """(first, last line) of every function, as the formatter lays them out: its head stands at the left or in a class,
    its end is a brace in the column where the head began."""
    lines = blank_strings(without_comments(text)).splitlines()
    begin = None
    for number, line in enumerate(lines, 1):
        if begin is None:
            head = re.match(r"( {0,4})[\w\[~].*", line)
            if not head or NO_FUNCTION.match(line):
                continue
            begin, indent = number, head.group(1)
        if re.search(r"[;}]\s*$", line) and not line.startswith(indent + "}"):
            one_line = number == begin or not opened(lines, begin, number)
            begin = None if one_line else begin
        elif line.startswith(indent + "}"):
            if "(" in "".join(lines[begin - 1:number]).split("{")[0]:
                yield begin, number
            begin = None


def opened(lines: list[str], begin: int, end: int) -> bool:
    part = "".join(lines[begin - 1:end])
    return part.count("{") > part.count("}")


def blank_strings(text: str) -> str:
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)


def comment_above(lines: list[str], number: int) -> str:
    """The comment that ends right above a line."""
    begin = number - 1
    while begin > 0 and lines[begin - 1].lstrip().startswith(("//", "#", "template", "[[")):
        begin -= 1
    return "\n".join(lines[begin:number - 1])
