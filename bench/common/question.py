"""One question: its options, the comparisons that the lab makes for it, and what could not be measured."""

import argparse
import re
from dataclasses import dataclass, field
from pathlib import Path

from reheap_lab import compare, export, terminal
from reheap_lab.errors import LabError
from reheap_lab.results import Comparison
from reheap_lab.settings import Settings
from rich.console import Console

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

    def compare(self, title: str, command: list, kind: type[Work] = Work, allocators: list | None = None,
                **settings) -> Comparison:
        wanted = Settings(**{"runs": self.rounds, "extras": False, "sample_ms": 0, "timeout": LONGEST_RUN_S,
                             **settings})
        with terminal.ProgressLine(Console(stderr=True)) as watch:
            made = compare.compare([str(part) for part in command], allocators or self.allocators, wanted, watch, kind)
        if any(text.endswith(compare.UNCHECKED) for text in made.warnings):
            raise LabError(f"{title}: its outputs differ from run to run")
        self.missing |= {f"{one.name} in {title}": one.failed for one in made.subjects if one.failed}
        if self.export:
            self.export.mkdir(parents=True, exist_ok=True)
            export.write(made, self.export / f"{self.name}-{re.sub(r'[^a-z0-9]+', '-', title.lower())}.json")
        return made

    def end(self) -> int:
        """Names what was not measured. The exit status."""
        for name, reason in self.missing.items():
            print(f"{name} was not measured: {reason}")
        return 1 if any(name.split()[0].startswith(REHEAP) for name in self.missing) else 0


def basic_parser(name: str, description: str, rounds: int) -> argparse.ArgumentParser:
    """For a benchmark with allocators of its own."""
    made = argparse.ArgumentParser(prog=f"./dev bench {name}", description=description)
    made.add_argument("--rounds", type=positive, default=rounds, help=f"measured rounds (default {rounds})")
    made.add_argument("--export", type=Path, metavar="FOLDER",
                      help="write each comparison as JSON, as reheap compare does (reheap report shows it)")
    return made


def parser(name: str, description: str, rounds: int) -> argparse.ArgumentParser:
    made = basic_parser(name, description, rounds)
    made.add_argument("--with", dest="names", default="", metavar="NAME,...",
                      help="more allocators: names of peers, `peers` for all of them, or NAME=/path/to/library.so")
    made.add_argument("--without-reheap", action="store_true", help="leave reheap out (to look at peers only)")
    return made


def ask(made: argparse.ArgumentParser, arguments: list[str]) -> Question:
    given = made.parse_args(arguments)
    choice = choose([name for name in given.names.split(",") if name], reheap=not given.without_reheap)
    return Question(made.prog.split()[-1], given.rounds, given.export, given, choice.allocators, choice.missing)
