"""What is run under each allocator: a command, once from start to end. server.py and the replay have their own."""

import hashlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import typing
from dataclasses import dataclass

from reheap_lab import host, runner
from reheap_lab.allocators import Allocator
from reheap_lab.errors import LabError, UsageError
from reheap_lab.evidence import Proof, Testimony
from reheap_lab.runner import Ask, Measured
from reheap_lab.settings import Settings

TAIL = 400  # characters of what a failed command said
TAIL_READ = 64 << 10  # bytes that they are looked for in, among what only steers a terminal
# A terminal's sequences (ECMA-48), and what other control characters there are but tabs and line ends.
STEERING = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass
class Outcome:
    measured: Measured
    proof: Proof | None = None  # when it was asked for
    failed: str | None = None
    printed: str | None = None  # a digest of its standard output


@dataclass
class Extra:
    """What one further run is for; None of it in a timed one."""

    profile_hz: int | None = None
    count_calls: bool = False
    prove: bool = False  # by the witness
    account: bool = False


class CommandWorkload:
    kind = "command"

    def __init__(self, command: list[str], settings: Settings, folder: pathlib.Path):
        self.command = command
        self.settings = settings
        self.folder = folder  # for what is only needed during a run
        self._place = folder / "run"

    def run(self, allocator: Allocator, extra: Extra | None = None) -> Outcome:
        self._begin()
        self.prepare()
        return self.run_prepared(allocator, extra)

    def prepare(self) -> None:
        self.shell(self.settings.prepare, "--prepare")

    def run_beside(self, allocator: Allocator) -> Outcome:
        """What is common to both has been prepared."""
        self._begin()
        return self.run_prepared(allocator)

    def shell(self, command: str | None, option: str, out: str | pathlib.Path = os.devnull,
              timeout: float | None = None) -> None:
        """Where the command runs too."""
        shell(command, option, out, self.cwd(), self.settings.env, timeout)

    def cwd(self) -> str | None:
        return str(self.path("work")) if self.settings.own_folder else self.settings.cwd

    def run_prepared(self, allocator: Allocator, extra: Extra | None = None) -> Outcome:
        extra = extra or Extra()
        prove = extra.prove or allocator.proves_each_run
        launch = allocator.launch(self.argv(allocator), self.path("evidence") if prove else None)
        launch.env = self.settings.env | launch.env
        measured = self.drive(launch, self._ask(extra))
        outcome = Outcome(measured, failed=self._cut_short() or self._failure(measured))
        if prove:
            outcome.proof = Proof(Testimony.read(self.path("evidence")), measured.programs)
        if self.settings.output != "discard":
            outcome.printed = digest(self.path("stdout"))
        self._add_own(outcome)
        self.complete(outcome)
        return outcome

    # What other kinds of work do differently.

    def argv(self, allocator: Allocator) -> list[str]:
        return self.command

    def drive(self, launch, ask: Ask) -> Measured:
        try:
            return runner.measure(launch, ask, self.path("record"))
        except LabError as error:
            raise LabError(self.with_what_it_said(str(error))) from None

    def complete(self, outcome: Outcome) -> None:
        """May add figures that the workload itself knows."""

    # The rest is common.

    def path(self, name: str) -> pathlib.Path:
        return self._place / name

    def printed(self) -> pathlib.Path:
        """What the figures of its own stand in."""
        return self.path("stdout")

    def _add_own(self, outcome: Outcome) -> None:
        text = read_text(self.printed()) if self.settings.own else ""
        for own in self.settings.own:
            try:
                outcome.measured.figures[own.name] = own.find(text)
            except LabError as why:
                outcome.failed = outcome.failed or str(why)

    def _begin(self) -> None:
        """In a folder of its own: what outlives one run cannot write into the next one's."""
        shutil.rmtree(self._place, ignore_errors=True)
        self._place = pathlib.Path(tempfile.mkdtemp(prefix="run-", dir=self.folder))
        open_to_others(self.folder, self._place)
        self.path("evidence").touch()
        self.path("evidence").chmod(0o666 if host.is_root() else 0o600)
        if self.settings.own_folder:
            self.path("work").mkdir()

    def _ask(self, extra: Extra) -> Ask:
        settings = self.settings
        unread = settings.output == "discard" and not settings.own
        stdout = os.devnull if unread else str(self.path("stdout"))
        return Ask(cwd=self.cwd(), stdin=settings.input or os.devnull, stdout=stdout, stderr=str(self.path("stderr")),
                   timeout=settings.timeout, sample_ms=settings.sample_ms, profile_hz=extra.profile_hz,
                   count_calls=extra.count_calls, account=extra.account)

    def _failure(self, measured: Measured) -> str | None:
        if self.settings.ignore_status:
            measured.status = 0
        reason = measured.failure(self.settings.timeout)
        return reason and self.with_what_it_said(reason)

    def _cut_short(self) -> str | None:
        """It could not go on printing: what was measured is something else."""
        printed, errors = (path.stat().st_size if path.exists() else 0
                           for path in (self.path("stdout"), self.path("stderr")))
        if not printed + errors or not host.is_full(self._place):
            return None
        what, way = (("prints", " leave it out by --output discard,") if printed >= errors else
                     ("says on standard error", ""))
        return (f"what it {what} has filled the disk of {self.folder.parent}. Let it print less,{way} or name a folder "
                "with more room by TMPDIR")

    def with_what_it_said(self, reason: str) -> str:
        said = tail(self.path("stderr"))
        return f"{reason}; it said: {said}" if said else reason


def open_to_others(*folders: pathlib.Path) -> None:
    """A command that root runs may go on as somebody else, who must reach the file for its evidence."""
    for folder in folders if host.is_root() else ():
        folder.chmod(0o711)


def shell(command: str | None, option: str, out: str | pathlib.Path = os.devnull, cwd: str | None = None,
          env: dict[str, str] | None = None, timeout: float | None = None) -> None:
    """A helper of the user's own, under no allocator of ours. What it prints goes to `out`. It may leave processes
    behind (a database that is to run meanwhile), so that it writes to files alone: they would keep a pipe open."""
    if command is None:
        return
    with open(out, "wb") as printed, tempfile.TemporaryFile() as told:
        try:
            done = subprocess.run(host.shell(command), stdin=subprocess.DEVNULL, stdout=printed, stderr=told, cwd=cwd,
                                  env=os.environ | (env or {}), timeout=timeout)
        except subprocess.TimeoutExpired:
            raise LabError(f"{option} took longer than {timeout:g} s: {command}") from None
        if done.returncode:
            said = tail_of(told)
            raise LabError(f"{option} {_failing(done.returncode)}: {command}" + (f"\n{said}" if said else ""))


def _failing(status: int) -> str:
    return runner.ending(status) if status < 0 else f"failed with status {status}"


def tail(path: pathlib.Path) -> str:
    if not path.exists():
        return ""
    with open(path, "rb") as file:
        return tail_of(file)


def tail_of(file: typing.BinaryIO) -> str:
    """A command may have said gigabytes."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_READ))
    return end_of(file.read().decode(errors="replace"))


def end_of(text: str) -> str:
    """For people, whose terminals must not do what a command's colours, or worse, ask of its own."""
    return STEERING.sub("", re.sub("\r\n?", "\n", text)).strip()[-TAIL:]


def read_text(path: pathlib.Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def digest(path: pathlib.Path) -> str | None:
    if not path.exists():
        return None
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def find_program(command: list[str]) -> pathlib.Path:
    """The file that `command` starts, or why it cannot."""
    if not command:
        raise UsageError("say what to measure: reheap compare -- CMD [ARGS...]")
    found = shutil.which(command[0])
    if found:
        _check_interpreter(pathlib.Path(found))
        return pathlib.Path(found)
    if os.path.isdir(command[0]):
        raise UsageError(f"{command[0]} is a folder, not a program")
    if os.path.exists(command[0]):
        raise UsageError(f"{command[0]} cannot be executed. Allow it: chmod +x {shlex.quote(command[0])}")
    blank = " (one word with blanks: leave out the quotes, or use sh -c)" if " " in command[0] else ""
    raise UsageError(f"there is no program {command[0]}{blank}. Give its path, or add its folder to PATH")


KERNEL_READS = 256  # bytes of a script, for its #! line


def _check_interpreter(script: pathlib.Path) -> None:
    """What the kernel says of a script without one, or of a name that is cut off, does not tell what is wrong."""
    try:
        with open(script, "rb") as file:
            head = file.read(KERNEL_READS)
    except OSError:  # it may be executed, but not read
        return
    line = head.partition(b"\n")[0]
    words = re.split(rb"[ \t\0]", line[2:].lstrip(b" \t"), maxsplit=1)
    if host.WINDOWS or not line.startswith(b"#!") or not words[0]:
        return
    if len(line) == KERNEL_READS and len(words) == 1:
        raise UsageError(f"{script}: its interpreter's name is longer than the kernel reads of a #! line "
                         f"({KERNEL_READS} bytes). Link the interpreter at a shorter path")
    name = os.fsdecode(words[0])
    if os.path.exists(name) or not os.path.isabs(name):  # which depends on the folder the command runs in
        return
    if name.endswith("\r") and os.path.exists(name[:-1]):
        raise UsageError(f"{script}: its #! line ends in a carriage return, which becomes part of the interpreter's "
                         f"name ({name[:-1]}). Save the file with Unix line ends")
    raise UsageError(f"{script}: its interpreter {name} is missing. Install it, or correct the script's first line")
