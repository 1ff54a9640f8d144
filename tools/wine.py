#!/usr/bin/env -S python3 -S
"""Runs a Windows program under Wine: tools/wine.py [--timeout SECONDS | --become] PROGRAM [ARGUMENTS]

What the test builds for Windows use as their emulator, made to be used by many at once and by nobody's hand:
  - the prefix (Wine's C: drive and registry) is its own, made once, Windows 10, and asks nothing;
  - the server outlives the program, so that only the first one pays for a cold start, and leaves after some idle
    minutes;
  - the program's streams are ours and its exit status is handed on (Unix keeps its low eight bits);
  - whatever the program started is ended with it, after a timeout too (status 124).

With --become it turns into Wine's loader instead: who started it then sees Wine's processes itself, and has to end
them.

A 32-bit program finds a prefix of its own and the 32-bit half of Wine, which tools/fetch_windows.py brings.

Environment: WINEDLLOVERRIDES and WINEDEBUG reach Wine as they are; REHEAP_WINE_TIMEOUT is --timeout's default;
REHEAP_CACHE is where the prefixes lie (cache.py).

The tests start it well over a thousand times, mostly for programs that end at once: so it imports little, not even
site. What is seldom needed is in wine_prefix.py."""

import _signal as signal  # signal.py makes enumerations, which takes longer than all else here
import ctypes
import fcntl
import os
import struct
import sys
import time

from cache import cache_folder

SOCKETS = "/tmp"  # where servers have their folders: as TMPDIR says, so that it has to say the same each time
TIMED_OUT = 124
CANNOT_RUN = 125

X86, X86_64 = 0x14C, 0x8664

# What a prefix is told once, as (key, value, data). No debugger: a crash is an exit status, not a dialogue.
REGISTRY = [
    (r"HKCU\Software\Wine", "Version", "win10"),
    (r"HKCU\Software\Wine\DllOverrides", "winedbg.exe", ""),
    (r"HKCU\Software\Wine\DllOverrides", "winemenubuilder.exe", ""),
    (r"HKCU\Software\Wine\WineDbg", "ShowCrashDialog", "0"),
]
SHIM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bcryptprimitives.c")


# ---- the prefix -------------------------------------------------------------------------------

class Prefix:
    """Wine's world for one processor."""

    def __init__(self, machine: int):
        self.folder = f"{cache_folder()}/prefixes/{'i686' if machine == X86 else 'x86_64'}"
        self.half = f"{cache_folder()}/wine-i386" if machine == X86 else ""  # Wine's for 32-bit programs
        self.loader = first_of("/usr/lib/wine/wine64", "wine64", "wine")
        self.server = first_of("/usr/lib/wine/wineserver64", "wineserver64", "wineserver")

    def environment(self) -> dict[str, str]:
        """Of every program in it. Without a desktop: the first window of a program would start one, which was seen to
        take ten seconds each time."""
        overrides = ["explorer.exe=", *filter(None, [os.environ.get("WINEDLLOVERRIDES")])]
        environment = {"WINEDEBUG": "-all", "HOME": os.path.dirname(self.folder), **os.environ,
                       "WINEDLLOVERRIDES": ";".join(overrides),
                       "WINEPREFIX": self.folder, "WINELOADER": self.loader, "WINESERVER": self.server,
                       "TMPDIR": SOCKETS}
        if self.half:
            environment["WINEDLLPATH"] = self.half
        return environment

    def make_ready(self) -> None:
        """There is a prefix, and a server runs in it."""
        os.makedirs(os.path.dirname(self.folder), exist_ok=True)
        with open(f"{self.folder}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self.is_made():
                import wine_prefix
                wine_prefix.make(self, REGISTRY, SHIM)
                with open(f"{self.folder}/reheap.stamp", "w") as stamp:
                    stamp.write(self.made_of())
            elif not self.is_served():
                import wine_prefix
                wine_prefix.serve(self)

    def is_made(self) -> bool:
        try:
            with open(f"{self.folder}/reheap.stamp") as stamp:
                return stamp.read() == self.made_of() and (not self.half or os.path.isdir(self.half))
        except OSError:
            return False

    def made_of(self) -> str:
        """Changes when a prefix would be made in another way."""
        loader = os.stat(self.loader)
        with open(SHIM) as shim:
            return f"{REGISTRY}\n{loader.st_size} {loader.st_mtime_ns}\n{shim.read()}"

    def is_served(self) -> bool:
        """A server holds a lock on a file of its own folder. Debian's notes that folder's name in the prefix."""
        there, note = os.stat(self.folder), f"{self.folder}/wineserver"
        parent = f".wine-{os.getuid()}"
        layout = "hhqqi4x"  # struct flock
        try:
            if os.path.exists(note):
                with open(note) as file:
                    parent = file.read().strip()
            with open(f"{SOCKETS}/{parent}/server-{there.st_dev:x}-{there.st_ino:x}/lock", "r+b") as file:
                answer = fcntl.fcntl(file, fcntl.F_GETLK, struct.pack(layout, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
                return struct.unpack(layout, answer)[0] != fcntl.F_UNLCK
        except OSError:
            return False


def first_of(*names: str) -> str:
    for name in names:
        for folder in os.environ.get("PATH", os.defpath).split(":"):
            found = os.path.join(folder, name)
            if os.access(found, os.X_OK):
                return found
    raise OSError(f"no {names[-1]} is installed (Debian package wine64)")


# ---- the program ------------------------------------------------------------------------------

def machine_of(program: str) -> int | None:
    """The processor that a PE file is for; None for a program of this system. What is no file is for Wine to look
    up."""
    try:
        with open(program, "rb") as file:
            head = file.read(4096)
    except OSError:
        return X86_64
    if head[:2] != b"MZ":
        return None
    start = int.from_bytes(head[0x3C:0x40], "little")
    return int.from_bytes(head[start + 4:start + 6], "little")


PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
libc = ctypes.CDLL(None)


def run(command: list[str], environment: dict[str, str], timeout: float | None) -> int:
    # Wine's children leave their parent at once; so they come to us, and can be found and ended.
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: stop_everything(128 + number))
    program = os.fork()
    if program == 0:
        become(command, environment)
    try:
        status = end_of(program, timeout)
    except TimeoutError:
        print(f"wine.py: {command[1]} did not end within {timeout:g} s", file=sys.stderr, flush=True)
        status = TIMED_OUT
    end_descendants()
    return 128 - status if status < 0 else status


def become(command: list[str], environment: dict[str, str]):
    """In the child: the program, which ends with its parent, and has no file of its parent's but the streams."""
    try:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
            signal.signal(number, signal.SIG_DFL)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        os.execve(command[0], command, environment)
    except OSError as failure:
        print(f"wine.py: {command[0]}: {failure}", file=sys.stderr, flush=True)
    finally:
        os._exit(CANNOT_RUN)


def end_of(program: int, timeout: float | None) -> int:
    """Its status. Other children are seen off as they end."""
    def too_late(number, frame):
        raise TimeoutError

    signal.signal(signal.SIGALRM, too_late)
    signal.setitimer(signal.ITIMER_REAL, timeout or 0)
    while True:
        child, status = os.waitpid(-1, 0)
        if child == program:
            signal.setitimer(signal.ITIMER_REAL, 0)
            return os.waitstatus_to_exitcode(status)


def stop_everything(status: int) -> None:
    end_descendants()
    os._exit(status)


def end_descendants() -> None:
    """Until there are none: those of an ended process become ours."""
    for _ in range(200):
        children = children_of(os.getpid())
        if not children:
            return
        for child in children:
            try:
                os.kill(child, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        except ChildProcessError:
            pass
        time.sleep(0.01)


def children_of(parent: int) -> list[int]:
    with open(f"/proc/{parent}/task/{parent}/children") as children:
        return [int(word) for word in children.read().split()]


def main() -> int:
    words, timeout, becomes = sys.argv[1:], os.environ.get("REHEAP_WINE_TIMEOUT"), False
    while len(words) > 1 and words[0] in ("--timeout", "--become"):
        if words.pop(0) == "--become":
            becomes = True
        else:
            timeout = words.pop(0)
    if not words or words[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return CANNOT_RUN
    try:
        machine = machine_of(words[0])
        if machine is None:  # CMake puts its emulator before Python too, when a test names it as a target
            os.execv(words[0], words)
        prefix = Prefix(machine)
        prefix.make_ready()
        command, environment = [prefix.loader, *words], prefix.environment()
        if becomes:
            os.execve(command[0], command, environment)
        seconds = float(timeout) if timeout else None
    except (OSError, ValueError) as failure:
        print(f"wine.py: {failure}", file=sys.stderr)
        return CANNOT_RUN
    return run(command, environment, seconds)


if __name__ == "__main__":
    sys.exit(main())
