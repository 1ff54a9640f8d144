"""Shows and writes what was measured: one comparison, or a collection of them."""

import pathlib
import sys

import click

from reheap_lab import export, terminal
from reheap_lab.cli import console
from reheap_lab.errors import LabError
from reheap_lab.results import Collection, Comparison
from reheap_lab.suite import documents, screen


def show(made: Comparison | Collection) -> None:
    (screen if isinstance(made, Collection) else terminal).show(made, console())


def write(made: Comparison | Collection, path: pathlib.Path) -> None:
    export.write(made, path, documents.WRITERS if isinstance(made, Collection) else export.WRITERS)


def tell(made: Comparison | Collection, exports: tuple[pathlib.Path, ...]) -> None:
    lost = _write_each(made, exports)  # before what is shown, which may not get through
    show(made)
    for path in exports:
        if path not in lost:
            click.echo(f"wrote {path}", err=True)
    failed = (made.cases if isinstance(made, Collection) else made.subjects)
    names = ", ".join(one.name for one in failed if one.failed)
    if names:
        print(f"reheap: no verdict on {names}", file=sys.stderr)
    if lost:
        raise LabError("\n".join(lost.values()))


def _write_each(made: Comparison | Collection, paths: tuple[pathlib.Path, ...]) -> dict[pathlib.Path, str]:
    """Why by path, of those that cannot be written: one must not cost the others."""
    lost = {}
    for path in paths:
        try:
            write(made, path)
        except LabError as error:
            lost[path] = str(error)
    return lost
