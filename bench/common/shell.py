"""Running a build step: quiet when it works, its whole output when it does not."""

import os
import subprocess
from pathlib import Path

from .errors import BenchError


def run_step(command: list[str], cwd: Path | None = None) -> str:
    """Runs `command` at low priority and returns its output; a failure shows the last lines."""
    result = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        preexec_fn=lambda: os.nice(5),
    )
    if result.returncode != 0:
        tail = "\n".join(result.stdout.splitlines()[-15:])
        raise BenchError(f"`{' '.join(map(str, command))}` failed ({result.returncode}):\n{tail}")
    return result.stdout
