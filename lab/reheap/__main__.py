"""The `reheap` command as Python has it: `python3 -m reheap`, and the script `reheap` on Windows.

On Linux pip installs the native command itself under that name, and it starts `reheap-lab` for what is the lab's.
"""

import importlib.util
import os
import signal
import sys

import reheap
from reheap import process

LAB_COMMANDS = ("allocators", "calibrate", "compare", "gate", "profile", "record", "replay", "report", "suite", "trace")
LAB_PYTHON = (3, 11)
LAB_NEEDS = ("click", "elftools", "jinja2", "matplotlib", "numpy", "rich")  # the extra `lab`
NOT_INSTALLED = 127  # the status the native command has for it


def main() -> int:
    """Does what the words of the command line say; gives the exit status, where the process did not become another."""
    words = sys.argv[1:]
    if words and _is_lab_command(words):
        return lab()
    try:
        return process.become([reheap.command()] + words)
    except OSError as error:
        print("reheap: {}".format(error), file=sys.stderr)
        return NOT_INSTALLED


def lab() -> int:
    """`reheap-lab`: as `main` for the lab's own commands."""
    obstacle = _obstacle()
    if obstacle:
        what = sys.argv[1] if sys.argv[1:2] and sys.argv[1] in LAB_COMMANDS else "reheap-lab"
        print("reheap: {} {}".format(what, obstacle), file=sys.stderr)
        return NOT_INSTALLED
    if os.path.basename(sys.argv[0]) == "__main__.py":
        sys.argv[0] = "reheap"
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing is begun yet, and the lab heeds it once it has loaded
    from reheap_lab import cli
    return cli.main()


def _is_lab_command(words: list) -> bool:
    # A process on Windows is profiled by the native command; what it wrote is read by the lab.
    if words[0] == "profile" and os.name == "nt":
        return "--read" in words
    return words[0] in LAB_COMMANDS


def _obstacle() -> str:
    if sys.version_info < LAB_PYTHON:
        return "needs Python {}.{} or later, and this is {}.{}: {}".format(*LAB_PYTHON, *sys.version_info[:2],
                                                                           sys.executable)
    missing = [name for name in LAB_NEEDS if importlib.util.find_spec(name) is None]
    if missing:
        return "needs {}: pip install 'reheap[lab]'".format(", ".join(missing))
    return ""


if __name__ == "__main__":
    sys.exit(main())
