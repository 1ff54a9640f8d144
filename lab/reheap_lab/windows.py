"""Programs for Windows, measured from Linux under Wine: how one is started on an allocator, and what proves who served
it.

Three programs stand around the measured one: Linux's runner, which sees its memory and its processor time from outside
(Wine counts neither); for reheap its launcher, `reheap.exe run`; and Windows' runner, which has the time that passed
without Wine's and the launcher's start, and the whole exit code.

Every run is asked for reheap's statistics, with a file for each process: reheap writes one as the program ends, and
without it nobody does. So each run tells from inside whether reheap served it, and that is handed on as the witness of
Linux does it. What it replaced there is told once, by `reheap.exe doctor`.
"""

import dataclasses
import json
import os
import pathlib
import re
import shlex
import shutil
import struct
import subprocess
import typing
from dataclasses import dataclass

from reheap_lab import host, native
from reheap_lab.allocators import FUNCTIONS, variants
from reheap_lab.errors import LabError, UsageError
from reheap_lab.evidence import Proof
from reheap_lab.launch import Launch

X86, X86_64, ARM64 = 0x14C, 0x8664, 0xAA64
PROCESSORS = {X86: "x86 (32 bits)", ARM64: "ARM64"}
SYSTEM, REHEAP = "system", "reheap"
PARTS = ("reheap.exe", "reheap.dll", "reheap-runner.exe")
RECORDER, REPLAYER = "reheap-record.dll", "reheap-replay.exe"
EXAMINATION_SECONDS = 120
OUT_OF_REACH = "out of the launcher's reach (reheap.exe doctor -- PROGRAM says why), or calls none of --layers"
MOST_HZ = 200  # Wine tells the time that a thread has used to a hundredth of a second


# ---- what is what -----------------------------------------------------------------------------

def find(name: str) -> pathlib.Path | None:
    """The file that a command's first word means."""
    found = name if os.sep in name or os.path.isfile(name) else shutil.which(name)
    return pathlib.Path(found).resolve() if found and os.path.isfile(found) else None


def machine_of(path: pathlib.Path) -> int | None:
    """The processor that a PE file is for; None for any other file."""
    try:
        with path.open("rb") as file:
            head = file.read(4096)
        start, = struct.unpack_from("<I", head, 0x3C)
        if head[:2] != b"MZ" or head[start:start + 4] != b"PE\0\0":
            return None
        return struct.unpack_from("<H", head, start + 4)[0]
    except (OSError, struct.error):
        return None


def is_program(name: str) -> bool:
    """Whether a command is one for Windows."""
    path = find(name)
    return path is not None and machine_of(path) is not None


def windows_path(path: pathlib.Path | str) -> str:
    """Wine shows the whole of Linux as its drive Z."""
    if host.WINDOWS:
        return str(path)
    return "Z:" + str(pathlib.Path(path).absolute()).replace("/", "\\")


def read_text(path: pathlib.Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


# ---- what it takes ----------------------------------------------------------------------------

def wine_command() -> list[str]:
    """$REHEAP_WINE, a command line, or the installed one; on Windows, nothing."""
    if host.WINDOWS:
        return []
    given = shlex.split(os.environ.get("REHEAP_WINE", ""))
    if given:
        if not shutil.which(given[0]):
            raise LabError(f"REHEAP_WINE names {given[0]}, which cannot be run")
        return given
    found = next(filter(None, map(shutil.which, ("wine64", "wine", "/usr/lib/wine/wine64"))), None)
    if found is None:
        raise LabError("a program for Windows needs Wine here: install it (Debian package wine64), or name it in "
                       "REHEAP_WINE")
    return [found]


def parts() -> pathlib.Path:
    """The folder with reheap.exe, reheap.dll and reheap-runner.exe."""
    given = os.environ.get("REHEAP_LAB_WINDOWS")
    own = native.folder() if host.WINDOWS else native.folder() / "windows"
    folder = pathlib.Path(given) if given else own
    for place in (folder / "bin", folder):
        if all((place / part).is_file() for part in PARTS):
            return place.resolve()
    where = f"not in {given}" if given else "not installed with this package"
    raise LabError(f"{', '.join(PARTS)} are {where}: build them (./dev build windows-x86_64 in reheap's sources) and "
                   "set REHEAP_LAB_WINDOWS to their folder (build/windows-x86_64)")


def part(name: str) -> pathlib.Path:
    """One more, which not every command needs."""
    path = parts() / name
    if not path.is_file():
        raise LabError(f"{path} is not there: build it (./dev build windows-x86_64 in reheap's sources)")
    return path


def library_of(given: str) -> pathlib.Path:
    """The reheap.dll that a path stands for: it, or the one beside a reheap.exe."""
    path = pathlib.Path(given)
    library = path.with_suffix(".dll") if path.suffix.lower() == ".exe" else path
    if not library.is_file():
        raise UsageError(f"{library} is not there: give a path to a reheap.dll")
    if machine_of(library) != X86_64:
        raise UsageError(f"{library} is no library for Windows on x86-64")
    return library.resolve()


# ---- one program, and its allocators ----------------------------------------------------------

class Program:
    """A command's program, and what it takes to run it."""

    def __init__(self, name: str):
        path = find(name)
        if path is None or (machine := machine_of(path)) is None:
            raise LabError(f"{name} is no program for Windows")
        if machine != X86_64:
            raise LabError(f"{name} is for {PROCESSORS.get(machine, 'another processor')}: only programs for x86-64 "
                           "are measured under Wine")
        self.path, self.wine, self.parts = path, wine_command(), parts()

    def launcher(self, library: pathlib.Path, verb: str, option: str) -> list[str]:
        return [str(self.parts / "reheap.exe"), verb, option, "--dll", windows_path(library), "--"]

    def examine(self, library: pathlib.Path) -> dict:
        """What it is, and what the library would replace there. It is ended before its first instruction."""
        doctor = [*self.wine, *self.launcher(library, "doctor", "--json"), windows_path(self.path)]
        try:
            done = subprocess.run(doctor, capture_output=True, stdin=subprocess.DEVNULL, text=True, errors="replace",
                                  timeout=EXAMINATION_SECONDS, env={**os.environ, **quiet_wine()})
            return json.loads(done.stdout)
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            raise LabError(f"{self.path.name} could not be examined by reheap.exe doctor: {error}") from None


def quiet_wine() -> dict[str, str]:
    if host.WINDOWS:
        return {}
    return {"WINEDEBUG": os.environ.get("WINEDEBUG", "-all")}


@dataclass(frozen=True)
class Allocator:
    """One allocator under one program; of the same shape as those for Linux (allocators.py)."""

    name: str
    program: Program
    library: pathlib.Path | None = None  # reheap.dll; none for the system's own
    version: str | None = None
    left: tuple[str, ...] = ()  # what it does not replace, and why
    asked: tuple[str, ...] = ()  # more of Windows' runner
    variables: tuple[tuple[str, str], ...] = ()  # what it is told by the environment

    examined: typing.ClassVar[bool] = True
    traced: typing.ClassVar[bool] = False  # what Linux sees is Wine's
    proves_each_run: typing.ClassVar[bool] = True

    @property
    def libraries(self) -> tuple[pathlib.Path, ...]:
        return (self.library,) if self.library else ()

    def parts(self) -> list[str]:
        return list(map(str, self.libraries))

    def launch(self, command: list[str], evidence: pathlib.Path) -> Launch:
        """How one run is started. Beside `evidence`, which names no file yet, lie those that it is made of."""
        inner = Inner(evidence, self.library or self.program.parts / "reheap.dll")
        inner.clear()
        given = {**quiet_wine(), **dict(self.variables), "REHEAP_STATS": windows_path(inner.statistics("%p"))}
        if host.WINDOWS:
            return Launch([str(self.program.path), *command[1:]], given, before=self.launched(), account=True,
                          amend=inner.amend_native)

        def argv(*options: str) -> list[str]:
            measuring = ["--out", windows_path(inner.record), "--sample-ms", "0", "--account", *self.asked, *options,
                         "--"]
            return [*self.started(), *measuring, windows_path(self.program.path), *command[1:]]

        return Launch(argv(), given, watch=self.program.path.name, account=True, amend=inner.amend,
                      profiled=lambda hz: argv("--profile", str(min(hz, MOST_HZ))))

    def started(self) -> list[str]:
        """Windows' runner, under the allocator, under Wine."""
        runner = self.program.parts / "reheap-runner.exe"
        return [*self.program.wine, *self.launched(), windows_path(runner) if self.library else str(runner)]

    def launched(self) -> list[str]:
        return self.program.launcher(self.library, "run", "--require") if self.library else []

    def objection(self, proof: dict[str, str]) -> str | None:
        """Why `proof` does not show that this allocator served the process; None when it does."""
        server = proof.get("malloc")
        if self.library and server != str(self.library):
            return "nothing proves that reheap served it: it wrote no statistics as the program ended"
        if not self.library and server not in (None, THE_SYSTEMS):
            return f"{server} served it: is reheap linked in, or does the program's file import it?"
        return None

    def warnings(self, proof: Proof) -> list[str]:
        reach = proof.reach(self.objection)
        alone = reach.share is None and len(proof.testimony.told) == 1  # and that one is proven
        found = [] if alone else reach.warnings()
        if not self.library and not host.WINDOWS:
            return [*found, "its heap is Wine's, not Windows': a difference to it says nothing about Windows"]
        return found + list(self.left)


def recording(command: list[str], output: pathlib.Path, layers: str,
              settings: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """What `reheap record` starts for a program for Windows, and with which environment."""
    program = Program(command[0])
    launcher = program.launcher(part(RECORDER), "run", "--require")
    line = [*program.wine, *launcher, windows_path(program.path), *command[1:]]
    return line, {**settings, **quiet_wine(), "REHEAP_RECORD": windows_path(output), "REHEAP_RECORD_LAYERS": layers}


THE_SYSTEMS = "Windows' C runtime and heap" if host.WINDOWS else "Wine's C runtime and heap"


def choose(wanted: str | None, command: list[str]) -> list[Allocator]:
    """`wanted` as in --with; without it, the system's and reheap."""
    program = Program(command[0])
    words = variants(wanted or f"{SYSTEM},{REHEAP}", {SYSTEM, REHEAP})
    chosen = [dataclasses.replace(chosen_of(word, program), variables=variables) for word, variables in words]
    names = [allocator.name for allocator in chosen]
    if not names or len(set(names)) < len(names):
        raise UsageError(f"--with {wanted}: each allocator has a name of its own; for example: --with system,reheap")
    return chosen


def chosen_of(word: str, program: Program) -> Allocator:
    name, _, place = word.partition("=")
    if (place or name) == SYSTEM:
        found = program.examine(program.parts / "reheap.dll").get("program") or {}
        return Allocator(name, program, version=found.get("runtime"))
    if not place and name != REHEAP:
        raise UsageError(f"{name}: under Wine there are {SYSTEM} and {REHEAP}, and NAME=path/to/reheap.dll")
    library = library_of(place) if place else program.parts / "reheap.dll"
    report = program.examine(library).get("report") or {}
    lines = report.get("replaced", [])
    if not report.get("overridden") or not any(": replaced" in line for line in lines):
        raise LabError(f"reheap cannot serve {program.path.name}: reheap.exe doctor -- {program.path.name} says why")
    return Allocator(name, program, library, report.get("version"),
                     tuple(line for line in lines if ": replaced" not in line))


@dataclass(frozen=True)
class Inner:
    """What Windows' runner and reheap wrote about one run."""

    evidence: pathlib.Path
    library: pathlib.Path  # reheap's, whether it was asked for or not

    @property
    def record(self) -> pathlib.Path:
        return self.evidence.with_name(self.evidence.name + "-windows.jsonl")

    def statistics(self, process: int | str) -> pathlib.Path:
        return self.evidence.with_name(f"{self.evidence.name}-{process}.json")

    def clear(self) -> None:
        """Of an earlier run, whose processes may have had the same numbers."""
        for path in (self.record, *self.evidence.parent.glob(self.statistics("*").name)):
            path.unlink(missing_ok=True)

    def amend(self, outer: list[dict]) -> list[dict]:
        """The lines of Linux's runner, told of the program alone: with the inner one's time and exit code, and samples
        that count from the program's first. Leaves the evidence of who served it."""
        lines = [json.loads(line) for line in read_text(self.record).split("\n") if line.endswith("}")]
        inner = {line["type"]: line for line in lines}
        end = next(line for line in outer if line["type"] == "end")
        started = inner.get("programs", {}).get("programs", [])
        programs = account(started, outer, self.served)
        if "start" in inner:
            first = inner["start"]["pid"]
            self.testify([first, *(one["pid"] for one in started if one["pid"] != first)])
        if end.get("timed_out") or end.get("stopped"):
            return outer
        if "end" not in inner:
            raise LabError(f"the program was not started: its launcher ended with {end.get('exit', end.get('signal'))}")
        first = min((line["t_us"] for line in outer if line["type"] == "sample"), default=0)
        told = [amended(line, inner["end"], first) for line in outer if line["type"] != "programs"]
        told += [{"type": "programs", "programs": programs}] * bool(programs)
        return told + [with_linux_paths(line) for line in lines if line["type"] == "profile"]

    def amend_native(self, lines: list[dict]) -> list[dict]:
        """On Windows itself, where its runner has all there is to know; a process whose time is unknown is none of
        the account."""
        told = {line["type"]: line for line in lines}
        started = told.get("programs", {}).get("programs", [])
        self.testify([told["start"]["pid"], *(one["pid"] for one in started if one["pid"] != told["start"]["pid"])])
        programs = [program_of(one, one) for one in started] if all("cpu_us" in one for one in started) else []
        return [{**line, "programs": programs} if line["type"] == "programs" else line for line in lines]

    def testify(self, processes: list[int]) -> None:
        """The first is the one that is measured."""
        servers = {process: str(self.library) if self.served(process) else THE_SYSTEMS for process in processes}
        self.evidence.write_text("".join(f"{process}\t0\t{function}\t{server}\n"
                                         for process, server in servers.items() for function in FUNCTIONS))

    def served(self, process: int) -> bool:
        try:
            return json.loads(read_text(self.statistics(process))).get("pid") == process
        except ValueError:
            return False


def account(started: list[dict], outer: list[dict], served: typing.Callable[[int], bool]) -> list[dict]:
    """The processes that Windows' runner saw begin, each with what Linux counted of it. Nothing but the name and the
    order of those of one name tells which of Linux's it is. Where their numbers differ, one of Windows' has all that
    those of this name used: one that was not served, if there is any."""
    end = next(line for line in outer if line["type"] == "end")
    counted = next((line["programs"] for line in outer if line["type"] == "programs"), [])
    began = next((one["began_ns"] for one in counted if one["pid"] == end.get("watched")), None)
    if began is None:
        return []
    found = []
    for name in {short_name(one) for one in started}:
        known = [one for one in started if short_name(one) == name]
        theirs = [one for one in counted if short_name(one) == name and one["began_ns"] >= began]
        if len(known) != len(theirs):
            known, theirs = sorted(known, key=lambda one: served(one["pid"]))[:1], [together(theirs)] if theirs else []
        found += [program_of(one, used) for one, used in zip(known, theirs)]
    order = [one["pid"] for one in started]
    return sorted(found, key=lambda one: order.index(one["pid"]))


def short_name(program: dict) -> str:
    """As much as Linux keeps of it."""
    return re.split(r"[\\/]", program.get("path", ""))[-1][:15].lower()


def together(programs: list[dict]) -> dict:
    return {"cpu_us": sum(one["cpu_us"] for one in programs), "peak_kib": max(one["peak_kib"] for one in programs)}


def program_of(known: dict, used: dict) -> dict:
    return {"pid": known["pid"], "path": linux_path(known["path"]).replace("\\", "/"), "began_ns": 0, "ended_ns": 0,
            "cpu_us": used["cpu_us"], "peak_kib": used.get("peak_kib")}


def linux_path(name: str) -> str:
    """By the names that the lab knows files by, where they lie on Wine's drive Z."""
    return name[2:].replace("\\", "/") if name[:3].upper() == "Z:\\" else name


def with_linux_paths(profile: dict) -> dict:
    return {**profile, "modules": [{**one, "module": linux_path(one["module"])} for one in profile["modules"]]}


def amended(line: dict, inner_end: dict, first_us: int) -> dict:
    if line["type"] == "sample":
        return {**line, "t_us": line["t_us"] - first_us}
    if line["type"] != "end":
        return line
    # When the program was over before it could be seen, the figures are those of Wine and the launchers.
    kept = {name: value for name, value in line.items() if "watched" in line or not is_figure(name)}
    kept.pop("signal", None)
    return {**kept, "wall_us": inner_end["wall_us"], "exit": inner_end["exit"]}


def is_figure(name: str) -> bool:
    return name.endswith(("_us", "_kib", "_faults", "_switches"))
