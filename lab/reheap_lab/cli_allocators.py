"""`reheap allocators`."""

import click

from reheap_lab import allocators


@click.command()
def command() -> None:
    """List the allocators found here: what --with may name, and what is compared without it."""
    for allocator in allocators.choose(None):
        library = str(allocator.libraries[0]) if allocator.libraries else "the program's own"
        click.echo(f"{allocator.name:<16} {allocator.version or '':<24} {library}")
