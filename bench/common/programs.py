"""Builds the small C and C++ programs of bench/programs into build/bench, when they changed."""

import os
import shutil
from pathlib import Path

from .errors import BenchError
from .paths import PROGRAMS, PROGRAMS_BUILT
from .shell import run_step

# Without -fno-builtin the compiler removes a malloc whose block is only freed.
_COMMON = ["-O2", "-g", "-fno-builtin", "-pthread", "-Wall", "-Wextra", "-Werror"]


def build_program(name: str, *flags: str, suffix: str = "") -> Path:
    """The program built from bench/programs/`name`; `flags` are given to the compiler last."""
    source = PROGRAMS / name
    output = PROGRAMS_BUILT / (source.stem + suffix)
    headers = PROGRAMS.glob("*.h")
    newest = max(path.stat().st_mtime for path in (source, *headers, Path(__file__)))
    if not output.exists() or output.stat().st_mtime < newest:
        PROGRAMS_BUILT.mkdir(parents=True, exist_ok=True)
        compiler, standard = _compiler(source)
        scratch = output.with_suffix(".new")
        run_step([compiler, standard, *_COMMON, "-o", scratch, source, *flags])
        os.replace(scratch, output)
    return output


def _compiler(source: Path) -> tuple[str, str]:
    candidates = ("cc", "gcc", "clang-19", "clang")
    standard = "-std=gnu11"
    if source.suffix == ".cpp":
        candidates = ("c++", "g++", "clang++-19", "clang++")
        standard = "-std=c++20"
    for candidate in candidates:
        path = shutil.which(candidate)
        if path:
            return path, standard
    raise BenchError("no C and C++ compiler found; install one: apt-get install gcc g++")
