"""Builds the simulation with reheap, by the preset `coherence`, and links other allocators' sources with the same."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from common.paths import BUILD, ROOT
from peers import linux as peers
from registries import Failure, need_tool, run_step

PRESET = BUILD / "coherence"
OWN = PRESET / "bin" / "coherence-reheap"
PLAIN = PRESET / "bin" / "coherence-plain"
PEERS = BUILD / "coherence-peers"

# As for a release, and instrumented. Where the compiler inlines is left to it.
COMMON = ["-fsanitize=thread", "-O2", "-g1", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", "-ftls-model=initial-exec",
          "-fno-builtin-malloc", "-pthread"]
C = ["-std=gnu11", *COMMON]
CXX = ["-std=c++20", *COMMON]


@dataclass(frozen=True)
class Source:
    """What is compiled of an allocator, to be linked with the program."""

    version: str
    files: list[Path]
    flags: list[str]


def mimalloc(generation: str) -> Source:
    folder = peers.mimalloc_source(generation)
    # Its own annotations for ThreadSanitizer change what it does.
    flags = [*C, "-DMI_BUILD_RELEASE", "-DMI_MALLOC_OVERRIDE", "-DMI_TSAN=0", f"-I{folder / 'include'}"]
    return Source(peers.mimalloc_version(folder), [folder / "src" / "static.c"], flags)


def snmalloc() -> Source:
    crate = peers.snmalloc_source()
    source = crate / "upstream" / "src"
    override = source / "snmalloc" / "override"
    flags = [*CXX, "-mcx16", "-DSNMALLOC_USE_WAIT_ON_ADDRESS=1", "-DSNMALLOC_STATIC_LIBRARY_PREFIX=", f"-I{source}"]
    return Source(peers.snmalloc_version(crate), [override / "malloc.cc", override / "new.cc"], flags)


def rpmalloc() -> Source:
    crate = peers.rpmalloc_source()
    flags = [*C, "-DENABLE_OVERRIDE=1", "-DENABLE_PRELOAD=1", "-D_GNU_SOURCE=1"]
    return Source(peers.rpmalloc_version(crate), [crate / "rpmalloc" / "rpmalloc" / "rpmalloc.c"], flags)


def not_from_source() -> Source:
    raise Failure("it comes as a library, and has to be compiled for this from its sources")


RECIPES: dict[str, Callable[[], Source]] = {
    "mimalloc3": lambda: mimalloc("v3"),
    "mimalloc2": lambda: mimalloc("v2"),
    "snmalloc": snmalloc,
    "rpmalloc": rpmalloc,
    **dict.fromkeys(("jemalloc", "tcmalloc", "tbbmalloc", "scudo"), not_from_source),
}


def reheap() -> Path:
    done = subprocess.run([ROOT / "dev", "build", "coherence"], stdout=sys.stderr, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Failure("the preset coherence could not be built")
    return OWN


def peer(name: str) -> tuple[Path, str]:
    """The program with it, and its version. Made anew each time: it takes seconds, and the runtime may be another."""
    source = RECIPES[name]()
    folder = PEERS / name
    folder.mkdir(parents=True, exist_ok=True)
    objects = [_compile(file, source.flags, folder) for file in source.files]
    program = folder / f"coherence-{name}"
    compiler = need_tool("clang++-19", "clang-19")
    run_step([compiler, "-no-pie", "-o", program, PRESET / "lib" / "workloads.o", *objects,
              PRESET / "lib" / "libcoherence_runtime.a", "-pthread", "-ldl"])
    return program, source.version


def _compile(file: Path, flags: list[str], folder: Path) -> Path:
    made = folder / f"{file.stem}.o"
    compiler = "clang-19" if file.suffix == ".c" else "clang++-19"
    run_step([need_tool(compiler, "clang-19"), *flags, "-w", "-c", file, "-o", made])
    return made
