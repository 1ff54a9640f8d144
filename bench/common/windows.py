"""Windows programs and the allocators they can be given: built here by mingw-w64, run and measured under Wine.

An allocator comes to a program in one of three ways: it is the C runtime that is loaded (Wine's, or Microsoft's, which
lies beside the program then), a DLL brought in by `reheap.exe run` (reheap.dll, or a peer's in its place), or linked into
a program of ours.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from . import windows_peers
from .errors import BenchError, need_tool
from .measuring import LONGEST_RUN_S, Sample, run_group
from .paths import BUILD, PEERS, PROGRAMS, PROGRAMS_BUILT, ROOT
from .programs import build_program
from .registries import fetch_crate
from .rounds import SampleFailed
from .shell import run_step

sys.path.insert(0, str(ROOT / "tools"))
import fetch_windows  # noqa: E402
import wine  # noqa: E402

PRESET = BUILD / "windows-x86_64"
BUILT = PROGRAMS_BUILT / "windows"
MICROSOFT = "ucrt-10.0.26100"
START_LINE = re.compile(r"^reheap: (\{.*\}) *$")
REPLACED_LINE = re.compile(r"^reheap: (\S+) at 0x[0-9a-f]+: replaced ")
PEER_LINE = re.compile(r"^peer: (\{.*\}) *$")
FAMILY = ("malloc", "calloc", "realloc", "free")


@dataclass(frozen=True)
class Subject:
    """An allocator, and the way it comes to the program."""

    name: str
    about: str
    version: str = ""
    microsoft: bool = False  # the C runtime beside it
    layers: str = ""  # what is replaced in the process: "crt", "heap", "both"
    peer: str = ""  # whose DLL replaces it; reheap's if none is named
    private_heaps: bool = True  # it can serve heaps that programs make
    linked: str = ""  # "reheap", or mimalloc's generation

    def __str__(self) -> str:
        return self.name

    @property
    def needs_mimalloc(self) -> bool:
        return self.linked not in ("", "reheap")

    @property
    def reheap(self) -> bool:
        return self.linked == "reheap" or bool(self.layers and not self.peer)

    @property
    def library(self) -> Path | None:
        """The DLL that is brought in."""
        if not self.layers:
            return None
        return windows_peers.build(self.peer) if self.peer else PRESET / "bin" / "reheap.dll"


def injected(name: str, what: str, version: str = "", **more) -> list[Subject]:
    """Both layers by the plain name, and each alone."""
    return [Subject(name if layers == "both" else f"{name}-{layers}", f"{what}, {about}", version, layers=layers, **more)
            for layers, about in (("both", "under C runtimes and HeapAlloc"), ("crt", "under C runtimes"),
                                  ("heap", "under HeapAlloc"))]


SUBJECTS = {
    subject.name: subject
    for subject in [
        *injected("reheap", "reheap.exe run"),
        *injected("mimalloc", "mimalloc brought in likewise", "3.3.2", peer="mimalloc"),
        *injected("rpmalloc", "rpmalloc brought in likewise", "1.4", peer="rpmalloc", private_heaps=False),
        Subject("wine", "the plain program: Wine's C runtime and heap"),
        Subject("microsoft", "the plain program on Microsoft's ucrtbase, whose heap is Wine's", "10.0.26100", microsoft=True),
        Subject("reheap-microsoft", "reheap.exe run, on Microsoft's ucrtbase", microsoft=True, layers="both"),
        Subject("reheap-linked", "libreheap.a linked in", linked="reheap"),
        Subject("mimalloc-linked", "mimalloc's DLL, with malloc bound to it by the linker", "3.3.2", linked="v3"),
    ]
}


@dataclass(frozen=True)
class WindowsSample(Sample):
    commit_kib: int | None = None
    system_s: float | None = None  # the system's share of cpu_s: Linux', below Wine


# ---- building ---------------------------------------------------------------------------------

def check_built() -> None:
    for path in (PRESET / "bin" / "reheap.exe", PRESET / "bin" / "reheap.dll", PRESET / "lib" / "libreheap.a"):
        if not path.exists():
            raise BenchError(f"{path} is not built; run: ./dev build windows-x86_64")


def compiler(language: str) -> list[str]:
    """On the UCRT, by the specs that the preset made."""
    tool = need_tool(f"x86_64-w64-mingw32-{language}-posix", "g++-mingw-w64-x86-64-posix")
    standard = "-std=c++20" if language == "g++" else "-std=gnu11"
    return [tool, f"-specs={PRESET / 'ucrt.specs'}", "-D_UCRT", standard, "-g", "-fno-builtin", "-pthread"]


def build(source: str, linked: str = "") -> Path:
    """A program of bench/programs, with the C runtime as a DLL and all else in it, and an allocator if one is named."""
    path = PROGRAMS / source
    output = BUILT / linked / f"{path.stem}.exe"
    objects = linked_objects(linked)
    newest = max(one.stat().st_mtime for one in (path, *PROGRAMS.glob("*.h"), Path(__file__), *filter(Path.exists, objects)))
    if not output.exists() or output.stat().st_mtime < newest:
        output.parent.mkdir(parents=True, exist_ok=True)
        scratch = output.with_suffix(".new")
        command = [*compiler("g++" if path.suffix == ".cpp" else "gcc"), "-O2", "-static", "-Wall", "-Wextra", "-Werror"]
        unicode = ["-municode"] if path.parent.name == "windows" else []
        run_step([*command, *unicode, "-o", scratch, path, *objects, *names(linked), "-lntdll", "-lpsapi", "-ladvapi32"])
        prove_linked(scratch, linked)
        os.replace(scratch, output)
    return output


def linked_objects(linked: str) -> list[Path]:
    if not linked:
        return []
    return [PRESET / "lib" / "libreheap.a"] if linked == "reheap" else [build_mimalloc(linked) / "mimalloc.dll.a"]


def names(linked: str) -> list[str]:
    """mimalloc has names of its own, which the linker is told to take for malloc and its family."""
    if linked in ("", "reheap"):
        return []
    return [f"-Wl,--undefined=mi_{name},--defsym={name}=mi_{name}" for name in FAMILY]


def prove_linked(program: Path, linked: str) -> None:
    """That malloc is the allocator's, by the addresses; reheap says it itself, in each run."""
    if linked in ("", "reheap"):
        return
    listing = run_step([need_tool("x86_64-w64-mingw32-nm", "binutils-mingw-w64-x86-64"), program])
    places = {line.split()[-1]: line.split()[0] for line in listing.splitlines() if len(line.split()) == 3}
    for name in FAMILY:
        if places.get(name) is None or places[name] != places.get(f"mi_{name}"):
            raise BenchError(f"{program.name}: {name} is not mimalloc's")


def build_mimalloc(generation: str) -> Path:
    """The folder of a DLL and its import library. By DllMain it hears that a thread ended; by its default, TLS callbacks,
    it did not with this compiler, and kept every thread's memory."""
    folder = BUILT / f"mimalloc-{generation}"
    if not (folder / "mimalloc.dll").exists():
        source = fetch_crate("libmimalloc-sys", "0.1.49", PEERS / "sources") / "c_src" / "mimalloc" / generation
        folder.mkdir(parents=True, exist_ok=True)
        definitions = ["NDEBUG", "MI_BUILD_RELEASE", "MI_SHARED_LIB", "MI_SHARED_LIB_EXPORT", "MI_WIN_NOREDIRECT=1",
                       "MI_WIN_INIT_USE_TLS_DLLMAIN=1"]
        flags = ["-O3", *(f"-D{one}" for one in definitions), f"-I{source / 'include'}", "-shared", "-static"]
        libraries = [f"-Wl,--out-implib={folder / 'mimalloc.dll.a'}", "-lpsapi", "-lbcrypt", "-ladvapi32"]
        scratch = folder / "scratch" / "mimalloc.dll"  # by this name the import library calls for it
        scratch.parent.mkdir(exist_ok=True)
        run_step([*compiler("gcc"), *flags, "-o", scratch, source / "src" / "static.c", *libraries])
        os.replace(scratch, folder / "mimalloc.dll")
    return folder


# ---- running ----------------------------------------------------------------------------------

@dataclass(frozen=True)
class Program:
    """What is run: a file, or a source of ours of which there is one file for each allocator."""

    name: str
    arguments: tuple[str, ...]
    file: Path | None = None
    source: str = ""
    output: Path | None = None  # the file it makes; else what it prints counts
    runtime: bool = True  # it uses ucrtbase.dll; else its C runtime is part of it
    says_same: bool = True  # prints the same each time, where it makes no file
    variables: tuple[tuple[str, str], ...] = ()

    def takes(self, subject: Subject) -> bool:
        if not self.runtime and (subject.microsoft or subject.layers == "crt"):
            return False
        if self.runtime and subject.layers == "heap" and not subject.private_heaps:
            return False  # Wine's C runtime makes one for itself
        return bool(self.source) or not subject.linked

    def at(self, place: int) -> "Program":
        """The same with an output of its own, so that two can run at a time."""
        if self.output is None or place == 0:
            return self
        output = self.output.with_stem(f"{self.output.stem}-{place}")
        arguments = tuple(str(output) if word == str(self.output) else word for word in self.arguments)
        return replace(self, output=output, arguments=arguments)

    def place(self, subject: Subject) -> Path:
        """The program's file; with Microsoft's C runtime beside it where that is asked for, and alone elsewhere."""
        file = self.file or build(self.source, subject.linked)
        if not (self.source or subject.microsoft):
            return file
        folder = BUILT / ("microsoft" if subject.microsoft else "plain") / (subject.linked or "crt")
        folder.mkdir(parents=True, exist_ok=True)
        copy_newer(file, folder / file.name)
        if subject.needs_mimalloc:
            copy_newer(build_mimalloc(subject.linked) / "mimalloc.dll", folder / "mimalloc.dll")
        if subject.microsoft:
            copy_newer(fetch(MICROSOFT) / "ucrtbase.dll", folder / "ucrtbase.dll")
        return folder / file.name


def windows_path(path: Path) -> str:
    """For programs that take what begins with a slash for an option."""
    return f"Z:{path}"


def fetch(item: str) -> Path:
    try:
        return fetch_windows.fetch(item)
    except fetch_windows.Failure as failure:
        raise BenchError(str(failure)) from None


def copy_newer(source: Path, target: Path) -> None:
    if not target.exists() or target.stat().st_mtime != source.stat().st_mtime:
        shutil.copy2(source, target)


class Wine:
    """The prefix that the tests use too, with its server running."""

    def __init__(self):
        try:
            self.prefix = wine.Prefix(wine.X86_64)
            self.prefix.make_ready()
        except (wine.Failure, subprocess.SubprocessError, OSError) as failure:
            raise BenchError(f"Wine does not start: {failure}") from None

    def run(self, program: Program, subject: Subject) -> WindowsSample:
        file, library = program.place(subject), subject.library
        launcher = [PRESET / "bin" / "reheap.exe", "run", "--require", "--dll", library, "--"] if library else []
        with tempfile.TemporaryDirectory() as folder:
            seen, told = Path(folder, "seen"), Path(folder, "told")
            command = [build_program("watch.c", "-static"), "--out", seen, "--name", file.name, "--"]
            command += [self.prefix.loader, *launcher, build("windows/measure.c"), "--out", told, "--"]
            command += [file, *program.arguments]
            status, output, errors = run_group(list(map(str, command)), True, self.environment(program, subject))
            if status != 0 or not told.exists():
                raise SampleFailed(f"the launcher ended with {status}: {errors.strip()[-300:]}")
            report, costs = json.loads(told.read_text()), json.loads(seen.read_text())
        if report["exit"] != 0:
            raise SampleFailed(f"exit status {report['exit']}: {errors.strip()[-300:]}")
        check_served(program, subject, report, errors)
        return sample(report, costs, output)

    def environment(self, program: Program, subject: Subject) -> dict[str, str]:
        environment = {**self.prefix.environment(), "REHEAP_VERBOSE": "1", **dict(program.variables)}
        if subject.layers:
            environment["REHEAP_LAYERS"] = subject.layers
        if subject.microsoft:
            environment["WINEDLLOVERRIDES"] = "ucrtbase=n,b"
        return environment


def check_served(program: Program, subject: Subject, report: dict, errors: str) -> None:
    """By what the process had loaded, and by what the allocator said in it."""
    modules = {module["name"]: module for module in report["modules"]}
    check_runtime(program, subject, modules.get("ucrtbase.dll"))
    brought = {"reheap.dll": subject.reheap and not subject.linked, "mimalloc.dll": subject.needs_mimalloc}
    brought |= {f"peer_{name}.dll": name == subject.peer for name in windows_peers.RECIPES}
    if any((name in modules) != wanted for name, wanted in brought.items()):
        raise SampleFailed(f"its modules were {', '.join(modules)}")
    started = started_under_reheap(errors).get(report["pid"])
    if (started is not None and started.overridden) != subject.reheap:
        raise SampleFailed(f"malloc was {'' if started else 'not '}served by reheap")
    replaced = replaced_by_peers(errors, report["pid"]) if subject.peer else started.replaced if started else set()
    if not is_expected(replaced, program, subject):
        raise SampleFailed(f"replaced were functions of {', '.join(sorted(replaced)) or 'nothing'}")


def check_runtime(program: Program, subject: Subject, runtime: dict | None) -> None:
    if not program.runtime:
        return
    if runtime is None:
        raise SampleFailed("it was over before its C runtime could be seen")
    if runtime["wines"] == subject.microsoft:
        raise SampleFailed(f"its C runtime was {runtime['path']}, Wine's: {runtime['wines']}")


def is_expected(replaced: set[str], program: Program, subject: Subject) -> bool:
    """Whether that is what the layers are. A program with a C runtime of its own may have another by its system's DLLs."""
    heap, runtimes = subject.layers in ("heap", "both"), subject.layers in ("crt", "both")
    if ("ntdll.dll" in replaced) != heap:
        return False
    return runtimes and not program.runtime or ("ucrtbase.dll" in replaced) == runtimes


@dataclass
class Started:
    overridden: bool
    replaced: set[str]


def started_under_reheap(errors: str) -> dict[int, Started]:
    """By process. reheap names what it replaced, and then says with the process's number that it has begun."""
    processes, replaced = {}, set()
    for line in errors.splitlines():
        if found := REPLACED_LINE.match(line):
            replaced.add(found[1].lower())
        elif found := START_LINE.match(line):
            told = json.loads(found[1])
            processes[told["pid"]], replaced = Started(told["overridden"], replaced), set()
    return processes


def replaced_by_peers(errors: str, pid: int) -> set[str]:
    told = [json.loads(found[1]) for line in errors.splitlines() if (found := PEER_LINE.match(line))]
    return {line["replaced"].lower() for line in told if line["pid"] == pid and "replaced" in line}


def sample(report: dict, costs: dict, output: str) -> WindowsSample:
    """The time that passed is what Windows' clock said, all else what Linux counted for the process. A figure that is
    not there stays None."""
    user, system = costs.get("user_us"), costs.get("system_us")
    return WindowsSample(
        wall_s=report["wall_ns"] / 1e9,
        cpu_s=None if user is None else (user + system) / 1e6,
        peak_kib=costs.get("peak_kib"),
        faults=costs.get("minor_faults"),
        output=output,
        commit_kib=costs.get("commit_kib"),
        system_s=None if system is None else system / 1e6,
    )
