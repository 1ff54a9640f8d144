"""`reheap profile`: runs a command on reheap, or asks a process that runs on it, and says who allocates."""

import contextlib
import os
import pathlib
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Iterator

import click

from reheap_lab import allocators, record, windows
from reheap_lab.cli import console
from reheap_lab.errors import LabError, UsageError
from reheap_lab.sites.kinds import KINDS
from reheap_lab.trace import EXISTING

FILE = click.Path(path_type=pathlib.Path, dir_okay=False)
FOLDER = click.Path(path_type=pathlib.Path, file_okay=False, exists=True)
TARGET, SIGNAL = "REHEAP_PROFILE", "REHEAP_PROFILE_SIGNAL"
USUAL_RATE = "512K"
PATIENCE_S = 10  # with a process that is to write its file


@click.command("profile", context_settings={"allow_interspersed_args": False})
@click.option("--rate", metavar="SIZE", help=f"Sample one byte in SIZE; {USUAL_RATE} unless said otherwise. A smaller "
              "one sees more")
@click.option("--pid", type=int, metavar="PID", help=f"No command: a process that was started with {SIGNAL} set")
@click.option("--seconds", type=click.FloatRange(0), default=10, show_default=True, metavar="S",
              help="How long that is sampled")
@click.option("--read", "given", type=EXISTING, metavar="FILE", help="No command: a profile that was written before")
@click.option("--by", type=click.Choice([kind for kind in KINDS if kind != "temporary"]),
              help="Show the sites that lead in this alone, not in each")
@click.option("--top", type=click.IntRange(1), default=5, show_default=True, metavar="N", help="How many sites to show")
@click.option("--wrapper", "wrappers", multiple=True, metavar="NAME",
              help="A function of the program that only passes calls on to malloc. May hold * and be repeated")
@click.option("--sysroot", type=FOLDER, metavar="DIR", help="Look for the program's files below DIR")
@click.option("--export", "exports", type=FILE, multiple=True, metavar="FILE",
              help="Also write FILE: .html, .pb.gz (pprof, with names), .folded (flame graphs) or .json; may be "
                   "repeated")
@click.argument("cmd", nargs=-1, type=click.UNPROCESSED)
def command(rate: str | None, pid: int | None, seconds: float, given: pathlib.Path | None, by: str | None, top: int,
            wrappers: tuple[str, ...], sysroot: pathlib.Path | None, exports: tuple[pathlib.Path, ...],
            cmd: tuple[str, ...]) -> None:
    """Say who allocates what is live, from a few samples: while CMD runs on reheap, or of a process that does.

    The exit status is CMD's; 125 in place of 0 when there is no profile.
    """
    from reheap_lab import export
    from reheap_lab.sites.export import writers
    if [bool(cmd), pid is not None, given is not None].count(True) != 1:
        raise UsageError("say one thing to profile: a command, --pid or --read")
    for path in exports:
        export.check_path(path, writers(by))
    status = 0
    with tempfile.TemporaryDirectory(prefix="reheap-profile-") as folder:
        title = " ".join(cmd) or (f"process {pid}" if given is None else given.name)
        if cmd:
            status, given = run(cmd, rate, pathlib.Path(folder))
        elif pid is not None:
            given = ask(pid, rate, seconds)
        if given is not None:
            tell(given, title, by, top, wrappers, sysroot, exports)
    if status < 0:
        record.end_by(-status)
    sys.exit(status if given is not None else status or 125)


def say(text: str) -> None:
    click.echo(f"reheap profile: {text}", err=True)


def tell(path: pathlib.Path, title: str, by: str | None, top: int, wrappers: tuple[str, ...],
         sysroot: pathlib.Path | None, exports: tuple[pathlib.Path, ...]) -> None:
    from reheap_lab import export
    from reheap_lab.sites import library, profile, show
    from reheap_lab.sites.export import writers
    found = profile.load(library.read(path), [path], wrappers, sysroot, title)
    lost = export.write_each(found, exports, writers(by))
    show.show(found, console(), by, top)
    export.tell(exports, lost)


# ---- a command ----------------------------------------------------------------------------------

def run(cmd: tuple[str, ...], rate: str | None, folder: pathlib.Path) -> tuple[int, pathlib.Path | None]:
    """Its exit status, and the profile of the process that allocated most."""
    if windows.is_program(cmd[0]) or platform.machine() != "x86_64" or sys.platform != "linux":
        raise UsageError("stacks are sampled in programs of Linux on x86-64")
    settings = dict(os.environ, LD_PRELOAD=":".join(
        [*map(str, allocators.choose("reheap")[0].libraries), *filter(None, [os.environ.get("LD_PRELOAD")])]))
    settings.pop(SIGNAL, None)
    settings[TARGET] = str(folder / "%p.pb.gz")
    settings["REHEAP_PROFILE_RATE"] = str(record.size(rate or USUAL_RATE))
    status, _ = record.run(list(cmd), settings, say)
    files = sorted(folder.iterdir())
    if not files:
        if status not in (126, 127):
            say(f"nothing was written: if no line above says why, what ran was {record.OUT_OF_REACH}, or ended by a "
                "signal or _exit")
        return status, None
    if len(files) > 1:
        say(f"{len(files)} processes wrote a profile: this is that of the one that allocated most")
    return status, max(files, key=_allocated)


def _allocated(path: pathlib.Path) -> int:
    from reheap_lab.sites import library
    return library.read(path)["totals"]["bytes"]


# ---- a process ----------------------------------------------------------------------------------

def ask(pid: int, rate: str | None, seconds: float) -> pathlib.Path:
    """Makes a process begin a profile, and end it; gives the file that it wrote."""
    if rate:
        raise UsageError("--rate is for commands: a process has it from REHEAP_PROFILE_RATE, or sets it itself")
    number, path = asked_how(pid)
    if not path.parent.is_dir():
        raise UsageError(f"process {pid} cannot write {path}: there is no folder {path.parent}. Make it first")
    if path.exists() and not path.is_file():
        raise UsageError(f"process {pid} writes its profile to {path}, where nothing can be read: start it with "
                         f"{TARGET}=FILE")
    before = path.stat().st_mtime_ns if path.exists() else None
    with _alone_with(pid):
        _signal(pid, number)
        try:
            time.sleep(seconds)
        except KeyboardInterrupt:
            pass  # who has seen enough is told of that
        finally:
            _signal(pid, number)  # in any case: else it goes on, and takes the next profile's first signal for the end
        return _written(path, before, pid)


@contextlib.contextmanager
def _alone_with(pid: int) -> Iterator[None]:
    """To the process one signal is like the other: two who send them end each other's profiles."""
    import fcntl  # Windows has none
    with contextlib.ExitStack() as open_now:
        try:
            folder = os.open(f"/proc/{pid}", os.O_RDONLY)
            open_now.callback(os.close, folder)
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError as why:
            raise LabError(f"process {pid} has ended") from why
        except BlockingIOError as why:
            raise LabError(f"process {pid} is being profiled by another `reheap profile`: wait for that") from why
        yield


def _written(path: pathlib.Path, before: int | None, pid: int) -> pathlib.Path:
    for _ in range(PATIENCE_S * 20):
        if path.exists() and path.stat().st_mtime_ns != before and _is_whole(path):
            return path
        time.sleep(0.05)
    raise LabError(f"process {pid} has not written {path}: was a profile under way already?")


def asked_how(pid: int) -> tuple[int, pathlib.Path]:
    """By which signal, and where the file will be."""
    proc = pathlib.Path("/proc") / str(pid)
    try:
        entries = (entry.partition("=") for entry in (proc / "environ").read_text(errors="surrogateescape").split("\0"))
        variables = {name: value for name, _, value in entries}
        status = (proc / "status").read_text()
        here = (proc / "cwd").readlink()
    except FileNotFoundError as why:
        raise UsageError(f"there is no process {pid}") from why
    except OSError as why:
        raise LabError(f"process {pid} cannot be looked at: {why.strerror}") from why
    number, target = variables.get(SIGNAL, ""), variables.get(TARGET, "")
    if not number.isdigit() or not target:
        raise UsageError(f"process {pid} does not listen: start it with {TARGET}=FILE {SIGNAL}={signal.SIGUSR2.value}")
    caught = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigCgt:"))
    if not caught >> (int(number) - 1) & 1:
        raise UsageError(f"process {pid} would end by signal {number}: it does not run on reheap, or has given the "
                         "signal up")
    return int(number), here / target.replace("%p", str(pid))


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError as why:
        raise LabError(f"process {pid} has ended") from why
    except PermissionError as why:
        raise LabError(f"process {pid} is somebody else's") from why


def _is_whole(path: pathlib.Path) -> bool:
    from reheap_lab.sites import library
    try:
        library.read(path)
    except UsageError:
        return False
    return True
