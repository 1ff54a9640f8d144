"""Lists of names as options give them."""

from collections.abc import Iterable

from reheap_lab.errors import LabError


def select(text: str | None, known: Iterable[str], what: str, default: Iterable[str] | None = None) -> list[str]:
    """The names by commas; without any, `default` or all that are known."""
    names = text.split(",") if text else list(known if default is None else default)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise LabError(f"unknown {what} {', '.join(unknown)}; known: {', '.join(known)}")
    return names
