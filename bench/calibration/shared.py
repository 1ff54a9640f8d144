"""What the calibrations share: the lab's command, the programs made for them, tables, where results go."""

import json
import pathlib
import shutil
import statistics
import subprocess
import sys

from common.paths import BUILD
from registries import need_tool
from reheap_lab.errors import LabError

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = BUILD / "calibration"
REHEAP = [sys.executable, "-c", "from reheap_lab.cli import main; main()"]
FLAGS = ["-std=gnu11", "-O2", "-g", "-fno-builtin", "-pthread", "-Wall", "-Wextra", "-Werror"]


def run(command: list, **options) -> subprocess.CompletedProcess:
    """Runs to the end; a failure shows what it said last."""
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, errors="replace", **options)
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise LabError(f"`{' '.join(map(str, command))}` failed ({done.returncode}):\n{tail}")
    return done


def reheap(*arguments, **options) -> subprocess.CompletedProcess:
    return run([*REHEAP, *arguments], **options)


def call_reheap(*arguments) -> int:
    """Its status; what it prints is for the reader."""
    return subprocess.call([str(part) for part in [*REHEAP, *arguments]])


def compare(name: str, arguments: list, command: list) -> dict:
    """One comparison by the lab; its JSON stays under build/calibration/."""
    file = RESULTS / f"{name}.json"
    reheap("compare", *arguments, "--export", file, "--", *command)
    return json.loads(file.read_text())


def medians(comparison: dict, figure: str) -> dict[str, float]:
    """Of each subject, over the runs that count."""
    values: dict[str, list[float]] = {}
    for run in comparison["runs"]:
        if not run["warmup"] and "failed" not in run and figure in run["figures"]:
            values.setdefault(run["subject"], []).append(run["figures"][figure])
    return {name: statistics.median(known) for name, known in values.items()}


def compile_program(source: str, *flags: str, name: str) -> pathlib.Path:
    """The program or library made from a source of this folder."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    output = RESULTS / name
    compiler = shutil.which("cc") or need_tool("gcc", "gcc")
    run([compiler, *FLAGS, "-o", output, HERE / source, *flags])
    return output


def table(header: list[str], rows: list[list[str]]) -> str:
    """Markdown, its columns lined up."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in [header, *rows]]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def percent(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.2f} %"
