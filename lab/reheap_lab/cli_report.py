"""`reheap report`: from a comparison kept as JSON to everything else."""

import pathlib

import click

from reheap_lab import export, results, terminal
from reheap_lab.cli import console
from reheap_lab.errors import UsageError


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=pathlib.Path))
@click.argument("into", nargs=-1, type=click.Path(dir_okay=False, path_type=pathlib.Path))
def command(file: pathlib.Path, into: tuple[pathlib.Path, ...]) -> None:
    """Show the comparison in FILE (JSON), or write it as INTO: .html, .md, .csv."""
    for path in into:
        export.check_path(path)
    try:
        comparison = results.load_file(file)
    except results.Damaged as error:
        raise UsageError(f"{error}. It must be a file that --export wrote as .json") from None
    if not into:
        terminal.show(comparison, console())
    for path in into:
        export.write(comparison, path)
