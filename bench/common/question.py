"""One question: its options, the comparisons that the lab makes for it, and what could not be measured."""

import argparse
import datetime
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from reheap_lab import compare, export, machine, terminal
from reheap_lab.errors import LabError
from reheap_lab.results import Comparison
from reheap_lab.settings import Settings
from rich.console import Console

from . import record
from .numbers import positive
from .subjects import REHEAP, choose
from .work import LONGEST_RUN_S, Work


@dataclass
class Question:
    name: str
    rounds: int
    export: Path | None
    given: argparse.Namespace
    allocators: list
    missing: dict[str, str] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)
    comparisons: dict[str, dict] = field(default_factory=dict)  # by title, their figures
    shown: list[dict] = field(default_factory=record.begin)
    commit: str = field(default_factory=record.commit)  # now: the tree may go on while this measures
    started: str = field(default_factory=lambda: f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC")

    @property
    def quick(self) -> bool:
        return getattr(self.given, "quick", False)

    def compare(self, title: str, command: list, kind: type[Work] = Work, allocators: list | None = None,
                **settings) -> Comparison:
        wanted = Settings(**{"runs": self.rounds, "extras": False, "sample_ms": 0, "timeout": LONGEST_RUN_S,
                             **settings})
        with terminal.ProgressLine(Console(stderr=True)) as watch:
            made = compare.compare([str(part) for part in command], allocators or self.allocators, wanted, watch, kind)
        if any(text.endswith(compare.UNCHECKED) for text in made.warnings):
            raise LabError(f"{title}: its outputs differ from run to run")
        self.missing |= {f"{one.name} in {title}": one.failed for one in made.subjects if one.failed}
        self.comparisons[title] = record.figures_of(made)
        if self.export:
            self.export.mkdir(parents=True, exist_ok=True)
            export.write(made, self.export / f"{self.name}-{re.sub(r'[^a-z0-9]+', '-', title.lower())}.json")
        return made

    def end(self) -> int:
        """Names what was not measured, and writes what was where --record says. The exit status."""
        if file := getattr(self.given, "record", None):
            record.add(file, self.name, self.section())
        for name, reason in self.missing.items():
            print(f"{name} was not measured: {reason}")
        return 1 if any(name.split()[0].startswith(REHEAP) for name in self.missing) else 0

    def section(self) -> dict:
        return {"command": shlex.join(["./dev", "bench", self.name, *self.arguments]), "quick": self.quick,
                "rounds": self.rounds, "started": self.started, "commit": self.commit,
                "machine": machine.describe(), "allocators": {one.name: one.version or "" for one in self.allocators},
                "missing": self.missing, "shown": self.shown, "comparisons": self.comparisons}


def basic_parser(name: str, description: str, rounds: int) -> argparse.ArgumentParser:
    """For a benchmark with allocators of its own."""
    made = argparse.ArgumentParser(prog=f"./dev bench {name}", description=description.replace("%", "%%"))
    made.add_argument("--rounds", type=positive, default=rounds, help=f"measured rounds (default {rounds})")
    _add_files(made)
    return made


def _add_files(made: argparse.ArgumentParser) -> None:
    made.add_argument("--export", type=Path, metavar="FOLDER",
                      help="write each comparison as JSON, as reheap compare does (reheap report shows it)")
    made.add_argument("--record", type=Path, metavar="FILE",
                      help="put what is measured into this JSON, from which ./dev bench document draws")


def parser(name: str, description: str, rounds: int, quick_rounds: int = 1) -> argparse.ArgumentParser:
    made = basic_parser(name, description, rounds)
    made.set_defaults(rounds=None, rounds_of={False: rounds, True: quick_rounds})
    made.add_argument("--quick", action="store_true",
                      help=f"less work and fewer rounds ({quick_rounds}), to see that everything works")
    made.add_argument("--with", dest="names", default="", metavar="NAME,...",
                      help="more allocators: names of peers, `peers` for all of them, or NAME=/path/to/library.so")
    made.add_argument("--without-reheap", action="store_true", help="leave reheap out (to look at peers only)")
    return made


def ask(made: argparse.ArgumentParser, arguments: list[str]) -> Question:
    given = made.parse_args(arguments)
    if given.record:
        record.check(given.record)
    files = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    _add_files(files)
    choice = choose([name for name in given.names.split(",") if name], reheap=not given.without_reheap)
    if given.quick:
        print(record.QUICK + "\n", flush=True)
    return Question(made.prog.split()[-1], given.rounds or given.rounds_of[given.quick], given.export, given,
                    choice.allocators, choice.missing, files.parse_known_args(arguments)[1])
