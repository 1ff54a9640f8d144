"""`reheap compare`."""

import os
import pathlib
import shlex

import click

from reheap_lab import compare, export, interrupts, telling, terminal
from reheap_lab.errors import UsageError
from reheap_lab.options import COMMAND, MEASURING, SERVER, options, settings_of
from reheap_lab.settings import Settings
from reheap_lab.suite import parameters, run
from reheap_lab.suite.cases import swept

SWEEP = (
    click.option("--parameter", multiple=True, metavar="NAME=VALUE,...",
                 help="Measure CMD with each value, which stands for {NAME} in it: 1,2,4 or ranges: 1..4, 0..100+20, "
                      "1..64*2. May be given again"),
)


@click.command(context_settings={"allow_interspersed_args": False})
@options(MEASURING, COMMAND, SWEEP, SERVER)
@click.argument("cmd", nargs=-1, required=True, type=click.UNPROCESSED)
def command(cmd: tuple[str, ...], exports: tuple[pathlib.Path, ...], parameter: tuple[str, ...], **words) -> None:
    """Measure CMD under each allocator in interleaved rounds, and judge.

    The exit status is 0 when something could be measured, 1 when nothing could, 2 for a wrong call.
    """
    for path in exports:
        export.check_path(path)
    if parameter:
        _sweep(cmd, parameter, words, exports)
        return
    line, settings = list(cmd), _checked(settings_of(words))
    chosen = compare.choose(line, words["with_"], settings)
    with interrupts.held():
        with terminal.ProgressLine(terminal.Aside()) as watch:
            comparison = compare.compare(line, chosen, settings, watch)
        telling.tell(comparison, exports)


def _checked(settings: Settings) -> Settings:
    if settings.input is not None and not os.path.exists(settings.input):
        raise UsageError(f"--input: {settings.input} does not exist")
    return settings


def _sweep(cmd: tuple[str, ...], texts: tuple[str, ...], words: dict, exports: tuple[pathlib.Path, ...]) -> None:
    given = [parameters.parse(text) for text in texts]
    words = {name: value for name, value in words.items() if value is not None}
    planned = swept("", cmd, words, given)
    ready = [run.Ready.of(case, *case.placed({})) for case in planned]  # what is wrong with one is told before any runs
    for one in ready:
        _checked(one.settings)
    with interrupts.held():
        made = run.measure(shlex.join(cmd), ready, settings_of(words), lambda so_far: telling.keep(so_far, exports))
        telling.tell(made, exports)
