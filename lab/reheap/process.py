"""Becoming another program."""

import os
import signal
import subprocess


def become(line: list) -> int:
    """On Linux does not return: the process is the command's from here on. On Windows, its exit status."""
    if os.name == "nt":
        return run_to_its_end(line, dict(os.environ))
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python has done as it started
        signal.signal(ignored, signal.SIG_DFL)
    os.execve(line[0], line, _given_environment())


def run_to_its_end(line: list, environment: dict) -> int:
    """On Windows. The console sends its signals to the command too, which decides what they do."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return as_exit_status(subprocess.call(line, env=environment))
    finally:
        signal.signal(signal.SIGINT, before)


def as_exit_status(code: int) -> int:
    """Windows' are 32 bits without a sign, and Python exits with a C int."""
    return (code + 2**31) % 2**32 - 2**31


def _given_environment() -> dict:
    """What the process was started with: in the C locale, Python has put an LC_CTYPE of its own into os.environ."""
    try:
        with open("/proc/self/environ", "rb") as file:
            entries = file.read().split(b"\0")
    except OSError:
        return dict(os.environ)
    return dict(entry.split(b"=", 1) for entry in entries if b"=" in entry)
