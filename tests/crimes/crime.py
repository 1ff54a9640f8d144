"""Runs a program that misuses the heap and demands that it is stopped, with the words agreed.

Usage: crime.py [EMULATOR [LAUNCHER ARGUMENTS…]] PROGRAM CRIME MESSAGE

MESSAGE is a regular expression for the whole of what the program leaves on stderr. The program must end by SIGABRT, or
by SIGSEGV where a page refuses it (under Wine: by any failure), and must not reach its end. MESSAGE `innocent` demands
the opposite: the program ends well and says so.
"""

import pathlib
import re
import signal
import subprocess
import sys


def verdict(command, message):
    """What is wrong with how the program ended; None when it ended as it should."""
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=30)
    survived = "survived" in done.stdout
    if message == "innocent":
        return None if done.returncode == 0 and survived and not done.stderr else f"accused: {done}"
    if survived or done.returncode == 0:
        return f"the crime went unnoticed: {done}"
    qemu = pathlib.PurePath(command[0]).name.startswith("qemu-")
    if (qemu or len(command) == 2) and done.returncode not in (-signal.SIGABRT, -signal.SIGSEGV):
        return f"ended by {done.returncode}, not by SIGABRT or SIGSEGV: {done.stderr}"
    said = re.sub(r"^qemu: uncaught target signal .*\n", "", done.stderr, flags=re.M) if qemu else done.stderr
    if not re.fullmatch(message, said.strip()):
        return f"said {said!r}, not {message!r}"
    return None


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(verdict(sys.argv[1:-1], sys.argv[-1]))
