"""What runs with the rights of the repository, held against what is known to go wrong there."""

import pathlib
import subprocess
import sys

WORKFLOWS = pathlib.Path(__file__).resolve().parents[2] / ".github/workflows"


def test_nothing_is_found_in_them():
    zizmor = pathlib.Path(sys.executable).with_name("zizmor")
    command = [zizmor, "--offline", "--no-progress", WORKFLOWS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
