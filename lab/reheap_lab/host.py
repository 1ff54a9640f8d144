"""The system that the lab itself runs on, where that makes a difference: Linux, or Windows.

On Windows the lab measures programs by Windows' own runner, which windows.py starts under Wine from Linux. What only
Linux has (witness, ptrace, preloading, /proc) is asked for nowhere there.
"""

import os
import pathlib
import subprocess

WINDOWS = os.name == "nt"
FULL = 16 << 10  # bytes
PATIENCE = 3.0  # seconds that a command gets to end after SIGTERM


def is_root() -> bool:
    """What it starts may go on as another user."""
    return not WINDOWS and os.geteuid() == 0


def is_full(folder: pathlib.Path) -> bool:
    """Its disk, to us: some of it is kept for root."""
    if WINDOWS:
        return False
    room = os.statvfs(folder)
    return room.f_blocks > 0 and (room.f_bfree if is_root() else room.f_bavail) * room.f_frsize < FULL


def executable(name: str) -> str:
    """The file of a program of the lab's own."""
    return name + ".exe" if WINDOWS else name


def shell(command: str) -> str | list[str]:
    """What runs a command of the user's as a shell does. Windows' takes the words as they stand."""
    return f'cmd.exe /d /s /c "{command}"' if WINDOWS else ["/bin/sh", "-c", command]


def end(process: subprocess.Popen) -> None:
    """The runner, and with it what it measures, which may not heed SIGTERM: a runner that nobody listens to any more
    kills all that it started, and its own end ends the command."""
    if WINDOWS:  # what it was started by may have started it
        subprocess.run(["taskkill", "/t", "/f", "/pid", str(process.pid)], capture_output=True)
    else:
        process.terminate()
        if not _ends(process) and process.stderr:
            process.stderr.close()
        if not _ends(process):
            process.kill()
    process.wait()


def _ends(process: subprocess.Popen) -> bool:
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        return False
    return True
