"""`reheap report`: from a comparison kept as JSON to everything else."""

import pathlib

import click

from reheap_lab import export, results, telling


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=pathlib.Path))
@click.argument("into", nargs=-1, type=click.Path(dir_okay=False, path_type=pathlib.Path))
def command(file: pathlib.Path, into: tuple[pathlib.Path, ...]) -> None:
    """Show the comparison or the collection in FILE (JSON), or write it as INTO: .html, .md, .csv."""
    for path in into:
        export.check_path(path)
    made = results.load_export(file)
    if not into:
        telling.show(made)
    for path in into:
        telling.write(made, path)
