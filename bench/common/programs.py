"""Builds the small C and C++ programs of bench/workloads into build/bench, when they changed."""

import os
import shutil
from pathlib import Path

from registries import run_step
from reheap_lab.errors import LabError

from .paths import WORKLOADS, WORKLOADS_BUILT

# Without -fno-builtin the compiler removes a malloc whose block is only freed.
_COMMON = ["-O2", "-g", "-fno-builtin", "-pthread", "-Wall", "-Wextra", "-Werror"]


def build_program(name: str) -> Path:
    return build(WORKLOADS / name)


def build(source: Path, output: Path | None = None, flags: list[str] | None = None,
          compiler: str | None = None) -> Path:
    output = output or WORKLOADS_BUILT / source.stem
    newest = max(path.stat().st_mtime for path in (source, *WORKLOADS.glob("*.h"), Path(__file__)))
    if not output.exists() or output.stat().st_mtime < newest:
        output.parent.mkdir(parents=True, exist_ok=True)
        found, standard = _compiler(source)
        scratch = output.with_suffix(".new")
        run_step([compiler or found, standard, *_COMMON, *(flags or []), "-o", scratch, source])
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
    raise LabError("no C and C++ compiler found; install one: apt-get install gcc g++")
