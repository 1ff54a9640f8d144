#!/usr/bin/env python3
"""Runs a program and watches it: when it does not end in time the stacks of all threads of all its processes are
printed, all of them are killed, and that is a failure. watch.py [--deadline SECONDS] [--preload LIBRARY]… --
PROGRAM…"""

import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

SIGNALLED = 128  # a program that a signal ended ends this with 128 and its number, as a shell says it
LATE = 124


def processes_of(session: int) -> list[int]:
    """All that came from the program, however far down, and is still there."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] not in "ZX":
            found.append(int(entry.name))
    return sorted(found)


def read(path: pathlib.Path) -> str:
    try:
        return path.read_text().strip()
    except OSError as error:
        return error.strerror or str(error)


def stacks(process: int) -> str:
    """What gdb says; without it what the kernel knows of each thread."""
    gdb = shutil.which("gdb")
    if gdb:
        command = [gdb, "-p", str(process), "-nx", "-batch", "-ex", "set print frame-arguments scalars",
                   "-ex", "thread apply all bt 30"]
        clean = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
                                  env=clean)
        except subprocess.TimeoutExpired:
            done = None
        if done and "#0" in done.stdout:
            lines = [line for line in done.stdout.splitlines() if line.startswith(("Thread", "#"))]
            return "\n".join(lines)
    told = []
    for task in sorted(pathlib.Path(f"/proc/{process}/task").glob("*")):
        told.append(f"thread {task.name} {read(task / 'comm')}: waits in {read(task / 'wchan')}, "
                    f"call {read(task / 'syscall')}")
    return "\n".join(told)


def kill_all(session: int):
    for _ in range(100):
        left = processes_of(session)
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if not left:
            return
        time.sleep(0.02)


def watch(words: list[str], deadline: float, preload: list[str] = (), variables: dict[str, str] | None = None) -> int:
    environment = dict(os.environ) | (variables or {})
    if preload:
        environment["LD_PRELOAD"] = ":".join(preload)
    program = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        status = program.wait(timeout=deadline)
        # A child it left behind may hang too, not only the program itself.
        end = time.monotonic() + deadline
        while processes_of(program.pid) and time.monotonic() < end:
            time.sleep(0.02)
        late = bool(processes_of(program.pid))
    except subprocess.TimeoutExpired:
        late = True
    if late:
        print(f"watch: {' '.join(words)} did not end in {deadline:g} s", file=sys.stderr, flush=True)
        for process in processes_of(program.pid):
            print(f"---- process {process}\n{stacks(process)}", file=sys.stderr, flush=True)
        status = LATE
    kill_all(program.pid)
    program.wait()
    if status < 0:
        print(f"watch: {' '.join(words)} was ended by {signal.Signals(-status).name}", file=sys.stderr, flush=True)
        return SIGNALLED - status
    return status


def main() -> int:
    parser = argparse.ArgumentParser(prog="watch.py", description=__doc__)
    parser.add_argument("--deadline", type=float, default=60, metavar="SECONDS")
    parser.add_argument("--preload", action="append", default=[], metavar="LIBRARY")
    parser.add_argument("program", nargs="+")
    arguments = parser.parse_args()
    return watch(arguments.program, arguments.deadline, arguments.preload)


if __name__ == "__main__":
    sys.exit(main())
