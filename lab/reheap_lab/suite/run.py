"""Measures case after case. What goes wrong with one costs no other, and Ctrl-C keeps what is there."""

import contextlib
import datetime
import os
import pathlib
import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

import click

import reheap_lab
from reheap_lab import compare, machine, terminal
from reheap_lab.allocators import Allocator, settings_of_allocators
from reheap_lab.answer import answer
from reheap_lab.errors import LabError
from reheap_lab.options import settings_of
from reheap_lab.results import Case, Collection
from reheap_lab.settings import Settings
from reheap_lab.suite import overall
from reheap_lab.suite.cases import Planned


@dataclass
class Ready:
    """A case with all that it takes, or why there is none of it."""

    planned: Planned
    command: list[str] = field(default_factory=list)
    settings: Settings | None = None
    chosen: list[Allocator] = field(default_factory=list)
    packages: dict[str, str] = field(default_factory=dict)
    folder: pathlib.Path | None = None  # {case}
    reproduce: str = ""
    failed: str | None = None

    @classmethod
    def of(cls, planned: Planned, command: list[str], words: dict, **more) -> "Ready":
        settings = settings_of(words)
        return cls(planned, command, settings, compare.choose(command, words.get("with_"), settings), **more)


def measure(title: str, ready: list[Ready], common: Settings, done: Callable[[Collection], None] | None = None
            ) -> Collection:
    """`done` is called after each case with what there is so far. Raises LabError when nothing could be measured."""
    facts = machine.describe()
    made = Collection(title, lab_version=reheap_lab.__version__, machine=facts, reproduce=repeated(sys.argv[1:]),
                      warnings=machine.warnings(facts),
                      started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
                      settings={"margin": common.margin, "confidence": common.confidence})
    made.cases = [Case(one.planned.name, one.planned.about, one.planned.group, one.planned.parameters, one.packages,
                       failed=one.failed) for one in ready]
    for number, (one, case) in enumerate(zip(ready, made.cases), 1):
        if case.failed is None and not _measure_case(one, case, f"[{number}/{len(ready)}] {case.name}"):
            _note_rest(made.cases[number:])
            made.warnings.append(compare.STOPPED)
        if done and case.comparison:
            overall.judge(made)
            done(made)
        if compare.STOPPED in made.warnings:
            break
    overall.judge(made)
    if not made.measured():
        if compare.STOPPED in made.warnings:
            raise KeyboardInterrupt
        reasons = "\n".join(f"  {case.name}: {case.failed}" for case in made.cases)
        raise LabError(f"nothing could be measured:\n{reasons}")
    return made


def _measure_case(ready: Ready, case: Case, label: str) -> bool:
    """False when the user has had enough."""
    if ready.folder:
        ready.folder.mkdir()
    try:
        with terminal.ProgressLine(terminal.Aside(), f"{label}: ") as watch:
            case.comparison = compare.compare(ready.command, ready.chosen, ready.settings, watch)
            case.comparison.reproduce = ready.reproduce or case.comparison.reproduce
    except KeyboardInterrupt:
        case.failed = compare.STOPPED
        return False
    except LabError as error:
        case.failed = str(error)
    finally:
        if ready.folder:
            shutil.rmtree(ready.folder, ignore_errors=True)
    if case.comparison:  # a machine that has just measured is busy with that; what it was before, the collection says
        _leave_out(case.comparison.warnings, machine.warnings(case.comparison.machine))
    with contextlib.suppress(OSError):  # who read it has left: what is measured is for the files
        click.echo(f"{label}: {answer(case.comparison).text if case.comparison else case.failed}", err=True)
    return case.comparison is None or compare.STOPPED not in case.comparison.warnings


def _leave_out(warnings: list[str], known: list[str]) -> None:
    warnings[:] = [text for text in warnings if text not in known]


def _note_rest(cases: list[Case]) -> None:
    for case in cases:
        case.failed = case.failed or compare.STOPPED


def repeated(words: list[str]) -> str:
    """One line for a shell that asks for all of it again."""
    told = [f"{name}={value}" for name, value in settings_of_allocators(os.environ).items()]
    return f"cd {shlex.quote(os.getcwd())} && " + shlex.join([*(["env"] if told else []), *told, "reheap", *words])
