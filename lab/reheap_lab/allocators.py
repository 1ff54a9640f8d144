"""Which allocators there are, how a command is put on one, and the proof that it was served by it."""

import dataclasses
import glob
import os
import pathlib
import platform
import re
import subprocess
import sys
import typing
from dataclasses import dataclass

from reheap_lab import elf, native
from reheap_lab.errors import UsageError
from reheap_lab.evidence import Proof
from reheap_lab.launch import Launch

SYSTEM = "system"
OWN = {"reheap": "libreheap.so"}

# How others are installed. The first that exists counts.
KNOWN = {
    "mimalloc": ("libmimalloc.so*",),
    "mimalloc-secure": ("libmimalloc-secure.so*",),
    "jemalloc": ("libjemalloc.so*",),
    "tcmalloc": ("libtcmalloc_minimal.so*", "libtcmalloc.so*"),
    "snmalloc": ("libsnmallocshim.so*",),
    "rpmalloc": ("librpmalloc.so*", "librpmallocwrap.so*"),
    "tbbmalloc": ("libtbbmalloc_proxy.so*",),
    "scudo": ("libscudo.so*", "libclang_rt.scudo_standalone*.so"),
    "hoard": ("libhoard.so*",),
}
CLANG_FOLDERS = ("/usr/lib/llvm-*/lib/clang/*/lib/linux", "/usr/lib/clang/*/lib/linux")

# The variables by which allocators, the loader that brings them, and programs' own heaps are told what to do.
SETTINGS = re.compile(r"LD_(PRELOAD|LIBRARY_PATH|BIND_NOW)$|GLIBC_TUNABLES$|REHEAP_(?!LAB|RECORD|WITNESS)|"
                      r"SCUDO_OPTIONS$|GWP_ASAN_|(_RJEM_|JE_)MALLOC_CONF$|((MI|TC|SN|RP|TBB_)?MALLOC|HOARD)_|"
                      r"PYTHONMALLOC$|NODE_OPTIONS$|(_JAVA|JDK_JAVA|JAVA_TOOL)_OPTIONS$|GOGC$|GOMEMLIMIT$")

VARIABLE = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]*$|_RJEM_MALLOC_CONF$")  # or what any program is told by

RUNTIMES = re.compile(r"(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libc\+\+|libc\+\+abi|ld-linux\S*)\.so")

FUNCTIONS = ("malloc", "free", "calloc", "realloc")


@dataclass(frozen=True)
class Allocator:
    """One allocator on Linux: libraries that the loader puts before all others."""

    name: str
    libraries: tuple[pathlib.Path, ...] = ()
    version: str | None = None
    variables: tuple[tuple[str, str], ...] = ()  # what it is told by the environment

    examined: typing.ClassVar[bool] = False  # no small program has to show that it serves malloc
    traced: typing.ClassVar[bool] = True  # the runner can account for its processes, and count their calls
    proves_each_run: typing.ClassVar[bool] = False  # the evidence costs the command nothing

    def launch(self, command: list[str], evidence: pathlib.Path | None) -> Launch:
        """`command` under this allocator; to prove it, with the witness, which writes to `evidence`. That costs each
        process a little memory, so no figure comes from such a run. The witness stands before the allocator, which may
        have an mmap of its own: it defines nothing of malloc's family."""
        preload = [*([str(native.library("libreheap-witness.so"))] if evidence else []), *map(str, self.libraries)]
        theirs = os.environ.get("LD_PRELOAD")  # stays, behind
        env = dict(self.variables)
        if preload:
            env["LD_PRELOAD"] = ":".join(preload + [theirs] * bool(theirs))
        if evidence:
            env["REHEAP_WITNESS"] = str(evidence)
        return Launch(command, env)

    def parts(self) -> list[str]:
        """Its own files: what is preloaded, and what that brings along beside the C and C++ runtimes."""
        brought = [path for library in self.libraries for path in elf.brought_by(library)
                   if not RUNTIMES.match(path.name)]
        return list(map(str, [*self.libraries, *brought]))

    def objection(self, proof: dict[str, str]) -> str | None:
        """Why `proof` does not show that this allocator served the process; None when it does."""
        if not proof:
            return ("nothing in it was seen to allocate: it is statically linked, runs with other rights (setuid, "
                    "capabilities), or clears LD_PRELOAD")
        if not self.libraries:
            return None
        for function in FUNCTIONS:
            server = proof.get(function)
            if server and not self._is_ours(server):
                return f"its {function} was served by {server}, not by {self.libraries[0]}"
        return None

    def is_part(self, path: str) -> bool:
        """Whether memory that this file maps is the allocator's, or the C library's own."""
        real = os.path.realpath(path)
        return RUNTIMES.match(os.path.basename(path)) is not None or real in map(os.path.realpath, self.parts())

    def _is_ours(self, path: str) -> bool:
        real = os.path.realpath(path)
        return any(real == os.path.realpath(library) for library in self.libraries)

    def warnings(self, proof: Proof) -> list[str]:
        found = proof.reach(self.objection).warnings()
        server = proof.first().get("malloc")
        if not self.libraries and server and "/libc" not in server and "ld-musl" not in server:
            found.append(f"the command brings its own malloc ({server})")
        return found


# ---- what is installed --------------------------------------------------------------------------

def loader_folders() -> list[pathlib.Path]:
    """Where the loader looks, its own list first."""
    named = [entry for entry in os.environ.get("LD_LIBRARY_PATH", "").split(":") if entry]
    listed = re.findall(r"=> (.+)/[^/\n]+$", _ldconfig(), re.MULTILINE)
    fixed = ["/usr/local/lib", "/lib", "/usr/lib", "/lib64", "/usr/lib64"]
    clang = [folder for pattern in CLANG_FOLDERS for folder in sorted(glob.glob(pattern), reverse=True)]
    return [pathlib.Path(folder) for folder in dict.fromkeys(named + listed + fixed + clang)]


def _ldconfig() -> str:
    for program in ("/sbin/ldconfig", "/usr/sbin/ldconfig", "ldconfig"):
        try:
            return subprocess.run([program, "-p"], capture_output=True, text=True, timeout=10).stdout
        except (OSError, subprocess.SubprocessError):
            continue
    return ""


def installed(folders: list[pathlib.Path] | None = None, kind: elf.Kind | None = None) -> dict[str, Allocator]:
    """The allocators that can be used without naming a path: ours, and those in the loader's folders."""
    places = loader_folders() if folders is None else folders
    found = {SYSTEM: system()}
    for name, file in OWN.items():
        path = _own_library(name, file, places)
        if path:
            found[name] = Allocator(name, (path,))
    for name, patterns in KNOWN.items():
        path = _first(places, patterns, kind or elf.own())
        if path:
            found[name] = Allocator(name, (path,))
    return found


def with_version(allocator: Allocator) -> Allocator:
    """Asking for it takes time: only those that are used are asked."""
    if allocator.version or not allocator.libraries:
        return allocator
    path = allocator.libraries[0]
    return dataclasses.replace(allocator, version=_own_version(path) if allocator.name in OWN else _version(path))


def system() -> Allocator:
    return Allocator(SYSTEM, (), " ".join(platform.libc_ver()).strip() or None)


def _own_library(name: str, file: str, folders: list[pathlib.Path]) -> pathlib.Path | None:
    named = os.environ.get("REHEAP_LIBRARY") if name == "reheap" else None
    if named:
        elf.check_library("REHEAP_LIBRARY", pathlib.Path(named), None)
        return pathlib.Path(named).absolute()
    return native.find_library(file) or next((f / file for f in folders if (f / file).is_file()), None)


def _first(folders: list[pathlib.Path], patterns: tuple[str, ...], kind: elf.Kind | None) -> pathlib.Path | None:
    for pattern in patterns:
        for folder in folders:
            for path in sorted(folder.glob(pattern)):
                if _loadable(path, kind):
                    return path
    return None


def _loadable(path: pathlib.Path, kind: elf.Kind | None) -> bool:
    try:
        return path.is_file() and elf.kind(path) is not None and kind in (None, elf.kind(path))
    except OSError:
        return False


def _own_version(path: pathlib.Path) -> str | None:
    """What the library says of itself, in a process that runs on it."""
    asked = ("import ctypes; version = ctypes.CDLL(None).rh_version; version.restype = ctypes.c_char_p; "
             "print(version().decode())")
    try:
        done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, timeout=30,
                              env=os.environ | {"LD_PRELOAD": str(path)})
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def _version(path: pathlib.Path) -> str | None:
    """That of the package it came with, else what the file's name says."""
    version = _package_version(path)
    numbers = re.search(r"\.so\.([\d.]+)$", path.resolve().name)
    return version or (numbers.group(1) if numbers else None)


def _package_version(path: pathlib.Path) -> str | None:
    names = (str(path.resolve()), str(path))
    # Where /lib is a link to /usr/lib, the package may know the file under either name.
    spelt = dict.fromkeys(way for name in names for way in (name, name.removeprefix("/usr"), "/usr" + name))
    try:
        owners = subprocess.run(["dpkg-query", "-S", *spelt], capture_output=True, text=True, timeout=10).stdout
        package = owners.partition(": ")[0].partition(",")[0].strip()
        if not package:
            return None
        shown = ["dpkg-query", "-W", "-f=${Version}", package]
        return subprocess.run(shown, capture_output=True, text=True, timeout=10).stdout or None
    except (OSError, subprocess.SubprocessError):
        return None


def settings_of_allocators(environment: typing.Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in sorted(environment.items()) if SETTINGS.match(name)}


# ---- what was asked for -------------------------------------------------------------------------

def choose(wanted: str | None, kind: elf.Kind | None = None,
           folders: list[pathlib.Path] | None = None) -> list[Allocator]:
    """`wanted` as in --with: names, name=name or name=path, by commas, each followed by the variables it is told;
    without it, everything that is installed."""
    here = installed(folders, kind)
    if not wanted:
        return [with_version(allocator) for allocator in here.values()]
    chosen = [with_version(dataclasses.replace(_chosen(word, here, kind), variables=variables))
              for word, variables in variants(wanted, set(here))]
    names = [allocator.name for allocator in chosen]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise UsageError(f"{twice} is named twice in --with; the same library under another name: --with "
                         f"{twice},b=PATH")
    if not chosen:
        raise UsageError("--with names no allocator; for example: --with system,reheap")
    return chosen


def variants(wanted: str, names: set[str]) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    """Each allocator's word with its variables. A variable's value may have commas: what is no name goes on with it."""
    found: list[tuple[str, list[list[str]]]] = []
    for word in filter(None, map(str.strip, wanted.split(","))):
        name, equals, value = word.partition("=")
        if equals and VARIABLE.match(name):
            if not found:
                raise UsageError(f"--with {word}: a variable stands behind the allocator that it is for: --with "
                                 f"x=jemalloc,{word}")
            found[-1][1].append([name, value])
        elif not equals and found and found[-1][1] and word not in names | OWN.keys() | KNOWN.keys():
            found[-1][1][-1][1] += "," + word
        else:
            found.append((word, []))
    return [(word, tuple((name, value) for name, value in variables)) for word, variables in found]


def _chosen(word: str, here: dict[str, Allocator], kind: elf.Kind | None) -> Allocator:
    name, equals, place = word.partition("=")
    if not equals:
        if word in here:
            return here[word]
        if word in OWN or word in KNOWN:
            raise UsageError(f"{word} is not installed here. Install it, or name its library: --with {word}=PATH "
                             f"(there are: {', '.join(here)})")
        raise UsageError(f"no allocator is called {word}. There are: {', '.join(here)}; any library: --with "
                         f"{word}=PATH")
    if not name or not place:
        raise UsageError(f"--with {word}: a library is named like this: name=/path/to/lib.so")
    if place in here:
        return dataclasses.replace(here[place], name=name)
    path = pathlib.Path(place).expanduser().absolute()
    elf.check_library(name, path, kind)
    if re.search(r"[:\s]", str(path)):
        raise UsageError(f"{name}: the loader cannot preload a path with a colon or a blank ({path}). Link it "
                         f"elsewhere")
    return Allocator(name, (path,))
