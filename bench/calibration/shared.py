"""What the calibrations share: the lab's command, the programs made for them, where results go."""

import pathlib
import shutil
import subprocess
import sys

from common.paths import BUILD
from registries import need_tool
from reheap_lab import results
from reheap_lab.errors import LabError
from reheap_lab.results import Comparison

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


def call_reheap(*arguments) -> int:
    """Its status; what it prints is for the reader."""
    return subprocess.call([str(part) for part in [*REHEAP, *arguments]])


def compare(name: str, verb: str, *words) -> Comparison:
    """One comparison by the lab's compare or replay; its JSON stays under build/calibration/."""
    file = RESULTS / f"{name}.json"
    run([*REHEAP, verb, "--export", file, *words])
    return results.load_file(file)


def compile_program(source: str, *flags: str, name: str) -> pathlib.Path:
    """The program or library made from a source of this folder."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    output = RESULTS / name
    compiler = shutil.which("cc") or need_tool("gcc", "gcc")
    run([compiler, *FLAGS, "-o", output, HERE / source, *flags])
    return output


def percent(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.2f} %"
