#!/usr/bin/env python3
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
REHEAP_CACHE is where the prefixes lie (fetch_windows.cache())."""

import argparse
import contextlib
import ctypes
import fcntl
import hashlib
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import time

import fetch_windows

IDLE_SECONDS = 900
SOCKETS = "/tmp"  # where servers have their folders: as TMPDIR says, so that it has to say the same each time
SETUP_SECONDS = 300
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
SHIM = pathlib.Path(__file__).with_name("bcryptprimitives.c")


class Failure(Exception):
    pass


# ---- the prefix -------------------------------------------------------------------------------

class Prefix:
    """Wine's world for one processor."""

    def __init__(self, machine: int):
        self.machine = machine
        self.folder = fetch_windows.cache() / "wine" / ("i686" if machine == X86 else "x86_64")
        self.loader = first_of("/usr/lib/wine/wine64", "wine64", "wine")
        self.server = first_of("/usr/lib/wine/wineserver64", "wineserver64", "wineserver")

    def environment(self) -> dict[str, str]:
        """Of every program in it. Without a desktop: the first window of a program would start one, which was seen to
        take ten seconds each time."""
        overrides = ["explorer.exe=", *filter(None, [os.environ.get("WINEDLLOVERRIDES")])]
        environment = {"WINEDEBUG": "-all", "HOME": str(self.folder.parent), **os.environ,
                       "WINEDLLOVERRIDES": ";".join(overrides),
                       "WINEPREFIX": str(self.folder), "WINELOADER": self.loader, "WINESERVER": self.server,
                       "TMPDIR": SOCKETS}
        if self.machine == X86:
            environment["WINEDLLPATH"] = str(fetch_windows.fetch("wine-i386"))
        return environment

    def stamp(self) -> str:
        """Changes when a prefix would be made in another way."""
        made_of = [repr(REGISTRY).encode(), SHIM.read_bytes(), pathlib.Path(self.loader).read_bytes()]
        return hashlib.sha256(b"".join(made_of)).hexdigest()

    def make_ready(self) -> None:
        """There is a prefix, and a server runs in it."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(self.folder.with_suffix(".lock")):
            stamp = self.folder / "reheap.stamp"
            if not stamp.exists() or stamp.read_text() != self.stamp():
                self.make()
                stamp.write_text(self.stamp())
            elif not self.is_served():
                self.serve()

    def make(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.serve()
        for key, value, data in REGISTRY:
            self.run_quiet("reg", "add", key, "/v", value, "/t", "REG_SZ", "/d", data, "/f")
        windows = self.folder / "drive_c" / "windows"
        build_shim("x86_64", windows / "system32")
        if self.machine == X86:
            build_shim("i686", windows / "syswow64")

    def serve(self) -> None:
        """Starts the server, and the services with it: they would keep a program's pipes open for ever."""
        environment = self.environment()
        subprocess.run([self.server, f"-p{IDLE_SECONDS}"], env=environment, timeout=SETUP_SECONDS,
                       start_new_session=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.run_quiet("wineboot", "--init")

    def run_quiet(self, *command: str) -> None:
        overrides = {"WINEDLLOVERRIDES": "mscoree,mshtml,winemenubuilder.exe="}
        try:
            status = subprocess.run([self.loader, *command], env={**self.environment(), **overrides},
                                    timeout=SETUP_SECONDS, start_new_session=True, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
        except subprocess.TimeoutExpired:
            self.stop()
            raise Failure(f"{' '.join(command)} did not end within {SETUP_SECONDS} s") from None
        if status != 0:
            raise Failure(f"{' '.join(command)} ended with status {status}")

    def stop(self) -> None:
        if self.folder.exists():
            subprocess.run([self.server, "-k"], env=self.environment(), stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)

    def is_served(self) -> bool:
        """A server holds a lock on a file of its own folder. Debian's notes that folder's name in the prefix."""
        there, note = self.folder.stat(), self.folder / "wineserver"
        parent = note.read_text().strip() if note.exists() else f".wine-{os.getuid()}"
        lock = pathlib.Path(SOCKETS, parent, f"server-{there.st_dev:x}-{there.st_ino:x}", "lock")
        layout = "hhqqi4x"  # struct flock
        try:
            with lock.open("r+b") as file:
                answer = fcntl.fcntl(file, fcntl.F_GETLK, struct.pack(layout, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
                return struct.unpack(layout, answer)[0] != fcntl.F_UNLCK
        except OSError:
            return False


def first_of(*names: str) -> str:
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    raise Failure(f"no {names[-1]} is installed (Debian package wine64)")


def build_shim(processor: str, folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    entry = "DllMain" if processor == "x86_64" else "_DllMain@12"
    subprocess.run([f"{processor}-w64-mingw32-gcc", "-O2", "-shared", "-nostdlib", f"-Wl,-e,{entry}",
                    "-Wl,--kill-at", SHIM, "-o", folder / "bcryptprimitives.dll", "-ladvapi32"], check=True)


@contextlib.contextmanager
def locked(path: pathlib.Path):
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


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
    start = struct.unpack_from("<I", head, 0x3C)[0]
    return struct.unpack_from("<H", head, start + 4)[0]


PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
libc = ctypes.CDLL(None, use_errno=True)


def run(command: list[str], environment: dict[str, str], timeout: float | None) -> int:
    # Wine's children leave their parent at once; so they come to us, and can be found and ended.
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: stop_everything(128 + number))
    program = subprocess.Popen(command, env=environment,
                               preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
    try:
        status = end_of(program.pid, timeout)
    except TimeoutError:
        print(f"wine.py: {command[1]} did not end within {timeout:g} s", file=sys.stderr, flush=True)
        status = TIMED_OUT
    end_descendants()
    return 128 - status if status < 0 else status


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
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        time.sleep(0.01)


def children_of(parent: int) -> list[int]:
    found = []
    for task in pathlib.Path(f"/proc/{parent}/task").iterdir():
        with contextlib.suppress(OSError):
            found += [int(word) for word in (task / "children").read_text().split()]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/wine.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--timeout", type=float, default=os.environ.get("REHEAP_WINE_TIMEOUT"), metavar="SECONDS")
    parser.add_argument("--become", action="store_true", help="leave what it starts to the caller")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    try:
        machine = machine_of(arguments.program)
        if machine is None:  # CMake puts its emulator before Python too, when a test names it as a target
            os.execv(arguments.program, [arguments.program, *arguments.arguments])
        prefix = Prefix(machine)
        prefix.make_ready()
        command = [prefix.loader, arguments.program, *arguments.arguments]
        environment = prefix.environment()
        if arguments.become:
            os.execve(command[0], command, environment)
    except (Failure, fetch_windows.Failure, subprocess.SubprocessError, struct.error, OSError) as failure:
        print(f"wine.py: {failure}", file=sys.stderr)
        return CANNOT_RUN
    return run(command, environment, arguments.timeout)


if __name__ == "__main__":
    sys.exit(main())
