"""One run of one command under one allocator: what it cost, and who served it."""

import json
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .allocators import Allocator, clean_environment, serves
from .errors import BenchError
from .programs import build_program
from .rounds import SampleFailed

LONGEST_RUN_S = 600


@dataclass(frozen=True)
class Sample:
    """What one run cost. A figure that could not be measured is None."""

    wall_s: float
    cpu_s: float | None
    peak_kib: int | None
    faults: int | None
    output: str = ""


def measure(
    command: list[str],
    allocator: Allocator,
    *,
    witness: bool = True,
    settings: list[str] = (),
    keep_output: bool = False,
) -> Sample:
    """Runs `command` once. With `witness`, a tiny library is preloaded behind the allocator and the
    run fails unless the process itself saw its malloc served by `allocator`."""
    with tempfile.TemporaryDirectory() as folder:
        cost, testimony = Path(folder, "cost"), Path(folder, "witness")
        libraries = [build_program("witness.c", "-shared", "-fPIC", suffix=".so")] if witness else []
        variables = [*allocator.preload_variable(*libraries), f"BENCH_WITNESS={testimony}", *settings]
        launch = [build_program("measure.c", "-static"), "--out", cost]
        for variable in variables:
            launch += ["--env", variable]
        command = [str(part) for part in [*launch, "--", *command]]
        status, output, errors = run_group(command, keep_output, clean_environment())
        if status != 0:
            raise BenchError(errors.strip() or f"the launcher failed ({status})")
        report = json.loads(cost.read_text())
        _check_exit(report, errors)
        if witness:
            check_testimony(allocator, testimony.read_text() if testimony.exists() else "")
        return _sample(report, output)


def run_group(command: list[str], keep_output: bool, environment: dict[str, str]) -> tuple[int, str, str]:
    """Exit status, output and errors. The command is a process group of its own, so that one that hangs
    ends with all its children."""
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,  # empty; programs under Wine do not take the null device for a stream
        stdout=subprocess.PIPE if keep_output else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        process_group=0,
    ) as process:
        try:
            output, errors = process.communicate(timeout=LONGEST_RUN_S)
        except subprocess.TimeoutExpired:
            raise SampleFailed(f"still running after {LONGEST_RUN_S} s") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, output or "", errors


def _check_exit(report: dict, stderr: str) -> None:
    if report["signal"]:
        raise SampleFailed(f"ended by signal {report['signal']}: {_last_line(stderr)}")
    if report["exit"] != 0:
        raise SampleFailed(f"exit status {report['exit']}: {_last_line(stderr)}")
    if "cannot be preloaded" in stderr:
        raise SampleFailed(_last_line(stderr))


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "nothing on stderr"


def check_testimony(allocator: Allocator, text: str) -> None:
    """Each line is "PID PATH", from the command and from its children."""
    witnesses = [line.split(" ", 1)[1] for line in text.splitlines() if " " in line]
    if not witnesses:
        raise SampleFailed("no process said who served it (a static program?)")
    for path in witnesses:
        if not serves(allocator, path):
            raise SampleFailed(f"malloc was served by {path}")


def _sample(report: dict, output: str) -> Sample:
    """The launcher's own peak is the floor: what does not stand above it says nothing. It is -1 where
    it is unknown, and then so is every peak."""
    peak, floor = report["peak_kib"], report["launcher_peak_kib"]
    return Sample(
        wall_s=report["wall_ns"] / 1e9,
        cpu_s=(report["user_us"] + report["system_us"]) / 1e6,
        peak_kib=peak if 0 < floor < peak else None,
        faults=report["minor_faults"],
        output=output,
    )
