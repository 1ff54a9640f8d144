"""Runs tests of one contract program under one breakage and demands that each of them fails.

Usage: control.py PROGRAM PRELOADED BREAKAGE TEST...

Each TEST is a GoogleTest name; a program without GoogleTest takes the TEST `exit`: its exit status. A crash or
a hang is a failure too. Two words are no breakages: `nothing` demands that every test passes, and `absent`
preloads nothing under tests that ask for reheap.
"""

import os
import re
import subprocess
import sys


SOUND_SECONDS = 90
BROKEN_SECONDS = 8  # a test that hangs has noticed
TRIES = 20  # breakages that show only when threads meet


def failure(program, shim, breakage, test):
    """What happened to one test: None when it passed, else how it failed."""
    over_reheap = breakage == "absent" or "libreheap" in shim
    environment = dict(os.environ, LD_PRELOAD=shim, CONTRACT_BREAK=breakage,
                       CONTRACT_MODE="preload" if over_reheap else "system")
    if breakage != "nothing":
        environment["CONTRACT_PATIENCE"] = "3"
    command = [program] if test == "exit" else [program, "--gtest_filter=" + test]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace",
                              timeout=SOUND_SECONDS if breakage == "nothing" else BROKEN_SECONDS)
    except subprocess.TimeoutExpired:
        return "hangs"
    if test == "exit":
        return None if done.returncode == 0 else f"exit status {done.returncode}"
    if "[ RUN      ]" not in done.stdout and done.returncode == 0:
        sys.exit(f"{os.path.basename(program)} has no test {test}")
    if re.search(r"\[  SKIPPED \]", done.stdout):
        sys.exit(f"{test} was skipped: it shows nothing here")
    return None if done.returncode == 0 else f"exit status {done.returncode}"


def main(program, shim, breakage, *tests):
    wrong = []
    for test in tests:
        tries = 1 if breakage == "nothing" else TRIES
        outcome = next(filter(None, (failure(program, shim, breakage, test) for _ in range(tries))), None)
        print(f"{breakage}: {test}: {outcome or 'passes'}")
        if breakage == "nothing" and outcome:
            wrong.append(f"{test} fails with nothing broken ({outcome})")
        if breakage != "nothing" and not outcome:
            wrong.append(f"{test} does not notice {breakage}")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
