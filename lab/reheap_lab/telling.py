"""Shows and writes what was measured: one comparison, or a collection of them."""

import contextlib
import pathlib
import sys
from collections.abc import Callable

from reheap_lab import export, terminal
from reheap_lab.cli import console
from reheap_lab.errors import LabError
from reheap_lab.results import Collection, Comparison
from reheap_lab.suite import documents, screen


def show(made: Comparison | Collection) -> None:
    (screen if isinstance(made, Collection) else terminal).show(made, console())


def write(made: Comparison | Collection, path: pathlib.Path) -> None:
    export.write(made, path, _writers(made))


def tell(made: Comparison | Collection, exports: tuple[pathlib.Path, ...]) -> None:
    lost = export.write_each(made, exports, _writers(made))
    show(made)
    failed = (made.cases if isinstance(made, Collection) else made.subjects)
    names = ", ".join(one.name for one in failed if one.failed)
    if names:
        print(f"reheap: no verdict on {names}", file=sys.stderr)
    export.tell(exports, lost)


def keep(so_far: Collection, exports: tuple[pathlib.Path, ...]) -> None:
    """After each case: who loses power in the tenth has nine."""
    for path in exports:
        if path.suffix.lower() == ".json":
            with contextlib.suppress(LabError):
                write(so_far, path)


def _writers(made: Comparison | Collection) -> dict[str, Callable]:
    return documents.WRITERS if isinstance(made, Collection) else export.WRITERS
