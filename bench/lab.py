#!/usr/bin/env python3
"""Calibrates the lab: what it says of things whose truth is known (docs/lab-calibration.md).

The lab runs from this tree, in a Python environment of its own under build/.
"""

import hashlib
import os
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from common.errors import BenchError, run_main
from common.paths import BUILD, ROOT
from common.shell import run_step

LAB = ROOT / "lab"
ENVIRONMENT = BUILD / "calibration" / "environment"


def environment() -> Path:
    """The Python that has what the lab needs; made anew when that changes."""
    needs = tomllib.loads((LAB / "pyproject.toml").read_text())["project"]["dependencies"]
    key = hashlib.sha256("\n".join(needs).encode()).hexdigest()
    python, stamp = ENVIRONMENT / "bin" / "python", ENVIRONMENT / "stamp"
    if not stamp.exists() or stamp.read_text() != key:
        print("lab: making its Python environment", file=sys.stderr, flush=True)
        ensure_pip()
        venv.create(ENVIRONMENT, clear=True, with_pip=True)
        run_step([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *needs])
        stamp.write_text(key)
    return python


def ensure_pip() -> None:
    try:
        import ensurepip  # noqa: F401
    except ImportError:
        raise BenchError("Python cannot make environments; install it: apt-get install python3-venv") from None


def main(arguments: list[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    settings = {"PYTHONPATH": str(LAB), "REHEAP_LAB_NATIVE": str(BUILD / "release")}
    return subprocess.call([environment(), LAB / "calibration" / "run.py", *given], env=os.environ | settings)


if __name__ == "__main__":
    run_main(main)
