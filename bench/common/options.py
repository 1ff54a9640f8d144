"""The options every benchmark understands."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from .allocators import Choice, choose


@dataclass(frozen=True)
class Options:
    names: list[str]
    rounds: int
    export: Path | None
    reheap: bool
    rest: argparse.Namespace

    def allocators(self) -> Choice:
        return choose(self.names, reheap=self.reheap)


def bare_parser(name: str, description: str, rounds: int) -> argparse.ArgumentParser:
    """For a benchmark with allocators of its own."""
    made = argparse.ArgumentParser(prog=f"./dev bench {name}", description=description)
    made.add_argument("--rounds", type=positive, default=rounds, help=f"measured rounds (default {rounds})")
    made.add_argument("--export", type=Path, metavar="FILE", help="write every measured value as JSON")
    return made


def parser(name: str, description: str, rounds: int) -> argparse.ArgumentParser:
    made = bare_parser(name, description, rounds)
    made.add_argument(
        "--with",
        dest="names",
        default="",
        metavar="NAME,...",
        help="more allocators: names of peers, `peers` for all of them, or NAME=/path/to/library.so",
    )
    made.add_argument("--without-reheap", action="store_true", help="leave reheap out (to look at peers only)")
    return made


def read(made: argparse.ArgumentParser, arguments: list[str] | None) -> Options:
    given = made.parse_args(arguments)
    names = [name for name in given.names.split(",") if name]
    return Options(names, given.rounds, given.export, not given.without_reheap, given)


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return value
