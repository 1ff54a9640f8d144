"""Windows programs and the allocators they can be given: built here by mingw-w64, run and measured under Wine.

An allocator comes to a program in one of three ways: it is the C runtime that is loaded (Wine's, or Microsoft's, which
lies beside the program then), a DLL brought in by `reheap.exe run` (reheap.dll, or a peer's in its place), or linked
into a program of ours.
"""

import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import fetch_windows
from peers import windows as peers
from registries import fetch_crate, need_tool, run_step
from reheap_lab import windows as lab
from reheap_lab.allocators import FUNCTIONS
from reheap_lab.errors import LabError
from reheap_lab.evidence import Proof, Testimony
from reheap_lab.launch import Launch
from reheap_lab.workload import CommandWorkload, Extra, Outcome

from .paths import BUILD, PEERS, ROOT, WORKLOADS, WORKLOADS_BUILT

PRESET = BUILD / "windows-x86_64"
BUILT = WORKLOADS_BUILT / "windows"
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
        return peers.build(self.peer) if self.peer else PRESET / "bin" / "reheap.dll"


def injected(name: str, what: str, version: str = "", **more) -> list[Subject]:
    """Both layers by the plain name, and each alone."""
    return [Subject(name if layers == "both" else f"{name}-{layers}", f"{what}, {about}", version, layers=layers,
                    **more)
            for layers, about in (("both", "under C runtimes and HeapAlloc"), ("crt", "under C runtimes"),
                                  ("heap", "under HeapAlloc"))]


SUBJECTS = {
    subject.name: subject
    for subject in [
        *injected("reheap", "reheap.exe run"),
        *injected("mimalloc", "mimalloc brought in likewise", "3.3.2", peer="mimalloc"),
        *injected("rpmalloc", "rpmalloc brought in likewise", "1.4", peer="rpmalloc", private_heaps=False),
        Subject("wine", "the plain program: Wine's C runtime and heap"),
        Subject("microsoft", "the plain program on Microsoft's ucrtbase, whose heap is Wine's", "10.0.26100",
                microsoft=True),
        Subject("reheap-microsoft", "reheap.exe run, on Microsoft's ucrtbase", microsoft=True, layers="both"),
        Subject("reheap-linked", "libreheap.a linked in", linked="reheap"),
        Subject("mimalloc-linked", "mimalloc's DLL, with malloc bound to it by the linker", "3.3.2", linked="v3"),
    ]
}


# ---- building ---------------------------------------------------------------------------------

def check_built() -> None:
    for path in (*(PRESET / "bin" / part for part in lab.PARTS), PRESET / "lib" / "libreheap.a"):
        if not path.exists():
            raise LabError(f"{path} is not built; run: ./dev build windows-x86_64")


def compiler(language: str) -> list[str]:
    """On the UCRT, by the specs that the preset made."""
    tool = need_tool(f"x86_64-w64-mingw32-{language}-posix", "g++-mingw-w64-x86-64-posix")
    standard = "-std=c++20" if language == "g++" else "-std=gnu11"
    return [tool, f"-specs={PRESET / 'ucrt.specs'}", "-D_UCRT", standard, "-g", "-fno-builtin", "-pthread"]


def build(source: str, linked: str = "") -> Path:
    """A program of bench/workloads, with the C runtime as a DLL and all else in it, and an allocator if one is
    named."""
    path = WORKLOADS / source
    output = BUILT / linked / f"{path.stem}.exe"
    objects = linked_objects(linked)
    newest = max(one.stat().st_mtime
                 for one in (path, *WORKLOADS.glob("*.h"), Path(__file__), *filter(Path.exists, objects)))
    if not output.exists() or output.stat().st_mtime < newest:
        output.parent.mkdir(parents=True, exist_ok=True)
        scratch = output.with_suffix(".new")
        command = [*compiler("g++" if path.suffix == ".cpp" else "gcc"), "-O2", "-static", "-Wall", "-Wextra",
                   "-Werror"]
        run_step([*command, "-o", scratch, path, *objects, *names(linked), "-lntdll", "-lpsapi", "-ladvapi32"])
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
            raise LabError(f"{program.name}: {name} is not mimalloc's")


def build_mimalloc(generation: str) -> Path:
    """The folder of a DLL and its import library. By DllMain it hears that a thread ended; by its default, TLS
    callbacks, it did not with this compiler, and kept every thread's memory."""
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


def fetch(item: str) -> Path:
    try:
        return fetch_windows.fetch(item)
    except fetch_windows.Failure as failure:
        raise LabError(str(failure)) from None


def copy_newer(source: Path, target: Path) -> None:
    if not target.exists() or target.stat().st_mtime != source.stat().st_mtime:
        shutil.copy2(source, target)


def use_this_tree() -> None:
    """The lab takes the prefix that the tests use too, and what was built here."""
    os.environ |= {"REHEAP_WINE": f"'{ROOT / 'tools' / 'wine'}' --become", "REHEAP_LAB_WINDOWS": str(PRESET)}


@dataclass(frozen=True)
class Given(lab.Allocator):
    """A subject under one program."""

    subject: Subject | None = None
    work: Program | None = None

    @property
    def libraries(self) -> tuple[Path, ...]:
        return (self.program.path,) if self.subject.linked else super().libraries

    def launch(self, command: list[str], evidence: Path) -> Launch:
        launch = super().launch(command, evidence)
        launch.env |= {"REHEAP_VERBOSE": "1", **dict(self.work.variables)}
        if self.subject.layers:
            launch.env["REHEAP_LAYERS"] = self.subject.layers
        if self.subject.microsoft:
            launch.env["WINEDLLOVERRIDES"] = "ucrtbase=n,b"
        return launch

    def objection(self, proof: dict[str, str]) -> str | None:
        return None  # what check_served finds is more

    def warnings(self, proof: Proof) -> list[str]:
        return []


def given(program: Program, subject: Subject) -> Given:
    file = lab.Program(str(program.place(subject)))
    return Given(subject.name, file, subject.library, subject.version, asked=("--modules",), subject=subject,
                 work=program)


class Proven(CommandWorkload):
    """A run that tells from inside who served it."""

    def run_prepared(self, allocator: Given, extra: Extra | None = None) -> Outcome:
        outcome = super().run_prepared(allocator, extra)
        if outcome.failed is None:
            record = lab.Inner(self.path("evidence"), Path()).record
            inner = {line["type"]: line for line in map(json.loads, record.read_text().splitlines())}
            check_served(allocator.work, allocator.subject, {**inner["start"], **inner["modules"]},
                         lab.read_text(self.path("stderr")))
            server = str(next(iter(allocator.libraries), lab.WINES))
            outcome.proof = Proof(Testimony({(inner["start"]["pid"], 0): dict.fromkeys(FUNCTIONS, server)}))
        if not allocator.work.says_same:
            outcome.printed = None
        return outcome


def check_served(program: Program, subject: Subject, report: dict, errors: str) -> None:
    """By what the process had loaded, and by what the allocator said in it."""
    modules = {module["path"].rpartition("\\")[2].lower(): module for module in report["modules"]}
    check_runtime(program, subject, modules.get("ucrtbase.dll"))
    brought = {"reheap.dll": subject.reheap and not subject.linked, "mimalloc.dll": subject.needs_mimalloc}
    brought |= {f"peer_{name}.dll": name == subject.peer for name in peers.RECIPES}
    if any((name in modules) != wanted for name, wanted in brought.items()):
        raise LabError(f"its modules were {', '.join(modules)}")
    started = started_under_reheap(errors).get(report["pid"])
    if (started is not None and started.overridden) != subject.reheap:
        raise LabError(f"malloc was {'' if started else 'not '}served by reheap")
    replaced = replaced_by_peers(errors, report["pid"]) if subject.peer else started.replaced if started else set()
    if not is_expected(replaced, program, subject):
        raise LabError(f"replaced were functions of {', '.join(sorted(replaced)) or 'nothing'}")


def check_runtime(program: Program, subject: Subject, runtime: dict | None) -> None:
    if not program.runtime:
        return
    if runtime is None:
        raise LabError("it was over before its C runtime could be seen")
    if runtime["wines"] == subject.microsoft:
        raise LabError(f"its C runtime was {runtime['path']}, Wine's: {runtime['wines']}")


def is_expected(replaced: set[str], program: Program, subject: Subject) -> bool:
    """Whether that is what the layers are. A program with a C runtime of its own may have another by its system's
    DLLs."""
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
