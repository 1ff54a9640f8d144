"""`reheap record`: runs a command with the recorder before its allocator, and says what was written."""

import contextlib
import errno
import hashlib
import os
import pathlib
import platform
import re
import shutil
import signal
import socket
import struct
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import click

from reheap import process
from reheap_lab import allocators, elf, host, native, trace, windows
from reheap_lab.errors import LabError, UsageError
from reheap_lab.figures import plural

RECORDER = "libreheap-record.so"
MAGIC = b"REHEAPTR"
SUFFIX = ".rht"
OUT_OF_REACH = "statically linked, run with other rights (setuid), or without LD_PRELOAD"
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
IGNORED_BY_PYTHON = ("SIGPIPE", "SIGXFSZ")

# docs/trace-format.md
CHUNK_HEADER = struct.Struct("<4s7I")
PROGRESS = struct.Struct("<4Q4I2Q")
PROGRESS_OFFSET = 3952

MOST_STACK_BYTES = 1 << 30

MISSED = 0.1  # of the CPU time: so much may go unrecorded without a word
MISSED_S = 0.05  # and so much: what a process does between its last event and its end is not told
STARTED_S = 0.002  # and so much for each: kernel and loader start and end it, before and after it is recorded


def size(text: str) -> int:
    """Bytes: 500M, 2G, 1.5GiB, 1048576."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(?:iB|B)?", text.strip(), re.IGNORECASE)
    count = float(match.group(1)) * UNITS[match.group(2).upper()] if match else 0
    if count < 1:
        raise UsageError(f"'{text}' is no size: write it like 500M or 2G")
    return int(count)


@click.command("record", context_settings={"allow_interspersed_args": False})
@click.option("-o", "--output", type=click.Path(path_type=pathlib.Path, dir_okay=False), default="trace.rht",
              show_default=True, metavar="FILE", help="The trace; other processes' files are named FILE's stem.PID.rht")
@click.option("--with", "with_", metavar="ALLOCATOR", help="Record on this allocator: its name, or a library's path")
@click.option("--children/--no-children", default=True, show_default=True, help="Record child processes too")
@click.option("--layers", type=click.Choice(["both", "crt", "heap"]),
              help="Whose calls, of a program for Windows: the C runtimes', the system heap's, or both, the default")
@click.option("--limit", metavar="SIZE", help="A trace that reaches SIZE (500M, 2G) ends there; the command goes on")
@click.option("--stacks", metavar="SIZE|all", help="Record the call stacks of allocations: of one in SIZE bytes (64K) "
              "on average, or of all. `reheap trace sites` shows them")
@click.argument("cmd", nargs=-1, required=True, type=click.UNPROCESSED)
def command(output: pathlib.Path, with_: str | None, children: bool, layers: str | None, limit: str | None,
            stacks: str | None, cmd: tuple[str, ...]) -> None:
    """Write a trace of every allocation call that CMD makes.

    The exit status is CMD's, also where it is killed by a signal; 125 when there is nothing recorded, 126 and 127 when
    CMD cannot be executed or is not found.
    """
    output = pathlib.Path(os.path.abspath(output))
    every = stack_setting(stacks, cmd[0])
    line, settings = list(cmd), environment(output, children, size(limit) if limit else None, every)
    for_windows = windows.is_program(cmd[0])
    if for_windows and with_:
        raise UsageError("--with is for programs of this system: under Wine the program's own C runtime is recorded")
    if for_windows:  # without the recorder for Linux: Wine's own calls are not the program's
        line, settings = windows.recording(line, output, layers or "both", settings)
    elif layers:
        raise UsageError("--layers is for programs for Windows: here malloc and its relatives are recorded")
    else:
        settings["LD_PRELOAD"] = preload(with_)
    program = shutil.which(line[0])
    if program is None:  # why, is told by the attempt; what was recorded before stays
        sys.exit(run(line, settings)[0])
    elf.check_program(pathlib.Path(program))
    with alone_with(output):
        remove_earlier(output)
        status, cpu_s = run(line, settings)
    files = traces(output)
    if files:
        say(summary(files, output))
        if children and not for_windows and status >= 0:  # who was killed has not told how much it used
            say_missed(survey(files), cpu_s)
    elif status not in (126, 127):
        reach = windows.OUT_OF_REACH if for_windows else OUT_OF_REACH
        say(f"nothing was recorded: if no line above says why, what ran was {reach}")
    if status < 0 and not host.WINDOWS:
        end_by(-status)
    sys.exit(status if files or status else 125)


def say(text: str) -> None:
    click.echo(f"reheap record: {text}", err=True)


def say_missed(recorded: "Written", all_s: float) -> None:
    missed = all_s - recorded.cpu_s
    if missed > max(MISSED * all_s, MISSED_S, STARTED_S * recorded.files):
        say(f"{100 * missed / all_s:.0f} % of the CPU time ({missed:.2f} s) was spent in programs that left no trace: "
            f"they allocate nothing, or were {OUT_OF_REACH}")


# ---- before -------------------------------------------------------------------------------------

@contextlib.contextmanager
def alone_with(output: pathlib.Path) -> Iterator[None]:
    """Two recordings into one file would remove each other's, and mix them. What says that one is under way is a name
    that the system forgets with this process, however it ends; Windows removes no file that is in use."""
    if host.WINDOWS:
        yield
        return
    path = os.path.realpath(output.parent) + "/" + output.name
    with socket.socket(socket.AF_UNIX) as name:
        try:
            name.bind(b"\0reheap record " + hashlib.sha256(os.fsencode(path)).digest())
        except OSError as why:
            if why.errno == errno.EADDRINUSE:
                raise UsageError(f"another `reheap record` writes to {output}: name another file with -o") from why
        yield


def remove_earlier(output: pathlib.Path) -> None:
    """Traces of an earlier recording under this name. What is not a trace is not ours to remove."""
    if output.is_dir():
        raise UsageError(f"{output} is a folder: name a file in it with -o")
    if not output.parent.is_dir():
        raise UsageError(f"{output.parent} is no folder: make it first, or name another file with -o")
    for path in traces(output):
        path.unlink()
    if os.path.lexists(output):
        raise UsageError(f"{output} exists and is no trace: remove it, or name another file with -o")
    if not os.access(output.parent, os.W_OK | os.X_OK):
        raise LabError(f"{output.parent} cannot be written to: name another file with -o")


def traces(output: pathlib.Path) -> list[pathlib.Path]:
    """The files of one recording, the first process's first."""
    stem = output.name.removesuffix(SUFFIX)
    suffix = SUFFIX if output.name.endswith(SUFFIX) else ""
    name = re.compile(re.escape(stem) + r"\.\d+(\.\d+)?" + re.escape(suffix))
    others = sorted(path for path in output.parent.iterdir() if name.fullmatch(path.name))
    return [path for path in [output, *others] if is_trace(path)]


def is_trace(path: pathlib.Path) -> bool:
    if not path.is_file() or path.is_symlink():
        return False
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def stack_setting(stacks: str | None, program: str) -> str | None:
    """What the recorder is told of --stacks."""
    if stacks is None:
        return None
    if windows.is_program(program) or platform.machine() != "x86_64":
        raise UsageError("--stacks is for programs of Linux on x86-64: leave it out")
    if stacks == "all":
        return stacks
    every = size(stacks)
    if every > MOST_STACK_BYTES:
        raise UsageError(f"--stacks {stacks} is too much: choose 1G or less, or leave it out to record no stacks")
    return str(every)


def environment(output: pathlib.Path, children: bool, limit: int | None, stacks: str | None = None) -> dict[str, str]:
    settings = dict(os.environ, REHEAP_RECORD=str(output), REHEAP_RECORD_CHILDREN="1" if children else "0")
    for name, value in (("REHEAP_RECORD_LIMIT", limit), ("REHEAP_RECORD_STACKS", stacks)):
        settings.pop(name, None)
        if value:
            settings[name] = str(value)
    return settings


def preload(with_: str | None) -> str:
    """The recorder, the allocator behind it, and what the caller preloads."""
    libraries = [native.library(RECORDER), *(allocators.choose(with_)[0].libraries if with_ else ())]
    return ":".join([*map(str, libraries), *filter(None, [os.environ.get("LD_PRELOAD")])])


# ---- the command --------------------------------------------------------------------------------

def run(cmd: list[str], settings: dict[str, str], say=say) -> tuple[int, float]:
    """Its exit status, or minus the signal that ended it; and its CPU time, with that of those it waited for."""
    try:
        if host.WINDOWS:
            return process.run_to_its_end(cmd, settings), 0
        return run_here(cmd, settings)
    except FileNotFoundError:
        say(f"{cmd[0]}: not found")
        return 127, 0
    except OSError as error:
        say(f"{cmd[0]}: {error.strerror}")
        return 126, 0


def run_here(cmd: list[str], settings: dict[str, str]) -> tuple[int, float]:
    """Who kills only this process means the command. It has not gone while a signal is handed on: its number could be
    another's by then."""
    handed_on = {signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, handed_on | {signal.SIGCHLD})
    try:
        child = start(cmd, settings, before)
        while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            came = signal.sigwaitinfo(handed_on | {signal.SIGCHLD})
            if came.si_signo in handed_on and came.si_code <= 0:  # the terminal sends its own to both
                os.kill(child, came.si_signo)
        _, status, used = os.wait4(child, 0)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime


def start(cmd: list[str], settings: dict[str, str], mask: Iterable[int]) -> int:
    if not cmd[0]:
        raise FileNotFoundError  # Python calls it a mistake of ours
    ignored = [getattr(signal, name) for name in IGNORED_BY_PYTHON]
    try:
        return os.posix_spawnp(cmd[0], cmd, settings, setsigdef=ignored, setsigmask=mask)
    except OSError as error:
        path = shutil.which(cmd[0])
        if error.errno != errno.ENOEXEC or elf.kind(pathlib.Path(path)):
            raise
    # No #! line: a shell's.
    return os.posix_spawn("/bin/sh", ["/bin/sh", path, *cmd[1:]], settings, setsigdef=ignored, setsigmask=mask)


def end_by(number: int) -> None:
    """As the command ended, but without a memory image of this process."""
    import resource  # Windows has none, and no signals that end a command
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


# ---- after --------------------------------------------------------------------------------------

@dataclass
class Written:
    """What all files hold together."""

    files: int = 0
    events: int = 0  # of sealed chunks
    event_bytes: int = 0  # of these
    open_bytes: int = 0  # of the others
    threads: int = 0
    lost: int = 0
    cpu_s: float = 0  # of their programs, as far as they told
    size: int = 0
    stopped: list[str] = None

    @property
    def bytes_per_event(self) -> float | None:
        return self.event_bytes / self.events if self.events else None

    @property
    def all_events(self) -> int:
        """Open chunks are not counted one by one: they are as the others, or as is usual."""
        return self.events + round(self.open_bytes / (self.bytes_per_event or 5))


def survey(files: list[pathlib.Path]) -> Written:
    """Reads headers alone, so that a long trace is surveyed at once."""
    sum_ = Written(stopped=[])
    for path in files:
        survey_file(path, sum_)
    return sum_


def survey_file(path: pathlib.Path, sum_: Written) -> None:
    with open(path, "rb") as file:
        header = file.read(4096)
        if len(header) < 4096:
            return
        header_bytes, chunk_bytes = struct.unpack_from("<2I", header, 12)
        *_, lost, stopped, _, threads, _, cpu_begin, cpu_latest = PROGRESS.unpack_from(header, PROGRESS_OFFSET)
        sum_.files += 1
        sum_.size += path.stat().st_size
        sum_.lost += lost
        sum_.cpu_s += (cpu_latest - cpu_begin) / 1e9
        sum_.threads += threads
        if stopped:
            sum_.stopped.append(f"{path.name} {trace.stopped(stopped)}")
        for offset in range(header_bytes, path.stat().st_size, chunk_bytes):
            file.seek(offset)
            head = file.read(CHUNK_HEADER.size)
            if len(head) == CHUNK_HEADER.size:
                survey_chunk(head, sum_)


def survey_chunk(head: bytes, sum_: Written) -> None:
    magic, state, _, _, _, used, events, _ = CHUNK_HEADER.unpack(head)
    if magic != b"RHCK" or state == 0:
        return
    if state == 2:
        sum_.events += events
        sum_.event_bytes += used
    else:
        sum_.open_bytes += used


def summary(files: list[pathlib.Path], output: pathlib.Path) -> str:
    found = survey(files)
    exact = found.open_bytes == 0
    parts = [f"{'' if exact else 'about '}{plural(found.all_events, 'event')}"]
    if found.bytes_per_event:
        parts.append(f"{found.bytes_per_event:.2f} bytes each")
    parts.append(f"{plural(found.threads, 'thread')}, {plural(found.files, 'file')}, {found.size / 2**20:.1f} MiB: "
                 f"{output}")
    if found.lost:
        parts.append(f"{plural(found.lost, 'event')} could not be written")
    return ", ".join(parts + found.stopped)
