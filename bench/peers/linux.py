"""Fetches peer allocators from package registries and builds them as preloadable libraries.

Each is built for release with the definitions its authors recommend, and proven: a process under it
must really be served by it. A peer that cannot be had is reported by name and left out.
"""

import argparse
import json
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from common import tables
from common.errors import ERRORS
from common.names import select
from common.paths import PEERS
from common.subjects import PEERS_FILE, prove
from registries import fetch_crate, fetch_debian, need_tool, run_step
from reheap_lab.allocators import Allocator
from reheap_lab.errors import LabError

SOURCES = PEERS / "sources"


@dataclass(frozen=True)
class Built:
    version: str
    libraries: list[Path]


def mimalloc_source(generation: str) -> Path:
    return fetch_crate("libmimalloc-sys", "0.1.49", SOURCES) / "c_src" / "mimalloc" / generation


def mimalloc_version(source: Path) -> str:
    digits = _find_text(source / "include" / "mimalloc.h", r"MI_MALLOC_VERSION\s+(\d+)")
    return f"{int(digits[:-4])}.{int(digits[-4:-2])}.{int(digits[-2:])}"


def mimalloc(generation: str) -> Built:
    source = mimalloc_source(generation)
    # The crate leaves out files that its CMake project includes, so the compiler is called directly.
    definitions = ["MI_BUILD_RELEASE", "MI_MALLOC_OVERRIDE", "MI_SHARED_LIB", "MI_SHARED_LIB_EXPORT"]
    flags = ["-fvisibility=hidden", f"-I{source / 'include'}"]
    library = PEERS / f"mimalloc-{generation}" / "libmimalloc.so"
    return Built(mimalloc_version(source), [_compile(library, source / "src" / "static.c", definitions, flags)])


def snmalloc_source() -> Path:
    return fetch_crate("snmalloc-sys", "0.7.6", SOURCES)


def snmalloc_version(crate: Path) -> str:
    return crate.name.removeprefix("snmalloc-sys-")


def snmalloc() -> Built:
    crate = snmalloc_source()
    folder = _cmake(crate / "upstream", "snmalloc", "snmallocshim", ["-DSNMALLOC_BUILD_TESTING=OFF"])
    return Built(snmalloc_version(crate), [_one(folder, "libsnmallocshim.so")])


def rpmalloc_source() -> Path:
    return fetch_crate("rpmalloc-sys", "0.2.3", SOURCES)


def rpmalloc_version(crate: Path) -> str:
    return "1.4 (" + crate.name.rpartition("+")[2] + ")"


def rpmalloc() -> Built:
    crate = rpmalloc_source()
    source = crate / "rpmalloc" / "rpmalloc"
    library = PEERS / "rpmalloc" / "librpmalloc.so"
    definitions = ["ENABLE_OVERRIDE=1", "ENABLE_PRELOAD=1", "_GNU_SOURCE=1"]
    # rpmalloc.c includes malloc.c, the part that overrides.
    _compile(library, source / "rpmalloc.c", definitions, [])
    return Built(rpmalloc_version(crate), [library])


def hardened_malloc() -> Built:
    crate = fetch_crate("hardened-malloc-sys", "16.0.2026071503", SOURCES)
    source = crate / "vendor" / "hardened-malloc"
    settings = re.findall(r"^(\w+=\w+)$", (crate / "config-default.conf").read_text(), re.MULTILINE)
    library = PEERS / "hardened-malloc" / "libhardened_malloc.so"
    library.parent.mkdir(parents=True, exist_ok=True)
    flags = ["-O3", "-fPIC", "-fvisibility=hidden", "-D_GNU_SOURCE", f"-I{source / 'include'}",
             *(f"-D{setting}" for setting in settings)]
    objects = []
    for part in sorted([*source.glob("*.c"), source / "new.cc"]):
        compiler, standard = ("clang++-19", "-std=c++20") if part.suffix == ".cc" else ("clang-19", "-std=c2x")
        objects.append(library.with_name(part.stem + ".o"))
        run_step([need_tool(compiler, "clang-19"), standard, *flags, "-c", part, "-o", objects[-1]])
    run_step([need_tool("clang++-19", "clang-19"), "-shared", "-Wl,-z,now", "-o", library, *objects, "-lpthread"])
    return Built(crate.name.rpartition("-")[2], [library])


def jemalloc() -> Built:
    return _debian("libjemalloc2", "libjemalloc.so.2")


def tcmalloc() -> Built:
    return _debian("libtcmalloc-minimal4", "libtcmalloc_minimal.so.4")


def tbbmalloc() -> Built:
    # The proxy needs the allocator beside it, which the loader would not find in our folder.
    return _debian("libtbbmalloc2", "libtbbmalloc_proxy.so.2", "libtbbmalloc.so.2")


def scudo() -> Built:
    return _debian("libclang-rt-19-dev", "libclang_rt.scudo_standalone-x86_64.so")


RECIPES: dict[str, Callable[[], Built]] = {
    "mimalloc3": lambda: mimalloc("v3"),
    "mimalloc2": lambda: mimalloc("v2"),
    "snmalloc": snmalloc,
    "rpmalloc": rpmalloc,
    "jemalloc": jemalloc,
    "tcmalloc": tcmalloc,
    "tbbmalloc": tbbmalloc,
    "scudo": scudo,
    "hardened-malloc": hardened_malloc,
}


def _debian(package: str, *names: str) -> Built:
    files, version = fetch_debian(package, SOURCES)
    return Built(version, [_one(files, f"**/{name}") for name in names])


def _compile(library: Path, source: Path, definitions: list[str], flags: list[str]) -> Path:
    library.parent.mkdir(parents=True, exist_ok=True)
    fixed = ["-O3", "-DNDEBUG", "-std=gnu11", "-fPIC", "-shared", "-pthread", "-fno-builtin-malloc"]
    defined = [f"-D{definition}" for definition in definitions]
    compiler = need_tool("cc", "gcc")
    run_step([compiler, *fixed, "-ftls-model=initial-exec", *defined, *flags, "-o", library, source, "-ldl"])
    return library


def _cmake(source: Path, name: str, target: str, options: list[str]) -> Path:
    folder = PEERS / name
    cmake = need_tool("cmake", "cmake")
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    run_step([cmake, *generator, "-S", source, "-B", folder, "-DCMAKE_BUILD_TYPE=Release", *options])
    run_step([cmake, "--build", folder, "--target", target, "--parallel", "2"])
    return folder


def _one(folder: Path, pattern: str) -> Path:
    found = sorted(path.resolve() for path in folder.glob(pattern) if path.exists())
    if not found:
        raise LabError(f"no {pattern} under {folder}")
    return found[0]


def _find_text(path: Path, pattern: str) -> str:
    found = re.search(pattern, path.read_text())
    if not found:
        raise LabError(f"{path} says no version")
    return found.group(1)


def make_peer(name: str) -> dict:
    """The entry of peers.json: the library and its version, or why it is missing."""
    try:
        built = RECIPES[name]()
        prove(Allocator(name, tuple(built.libraries), built.version))
        return {"version": built.version, "preload": list(map(str, built.libraries))}
    except ERRORS as error:
        return {"missing": str(error)}


def make_peers(names: list[str]) -> dict[str, dict]:
    """Builds `names`, keeps what is known of the others, and writes peers.json."""
    PEERS.mkdir(parents=True, exist_ok=True)
    known = json.loads(PEERS_FILE.read_text()) if PEERS_FILE.exists() else {}
    for number, name in enumerate(names, 1):
        print(f"[{number}/{len(names)}] {name} ...", file=sys.stderr, flush=True)
        known[name] = make_peer(name)
        PEERS_FILE.write_text(json.dumps(known, indent=2) + "\n")
    return known


def show(peers: dict[str, dict]) -> None:
    rows = [[n, p["version"]] for n, p in sorted(peers.items()) if "preload" in p]
    tables.show(["peer", "version"], rows)
    for name, peer in sorted(peers.items()):
        if "missing" in peer:
            print(f"\n{name} is missing: {peer['missing']}")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench peers", description=__doc__)
    parser.add_argument("--with", dest="names", metavar="NAME,...", help="only these: " + ", ".join(RECIPES))
    options = parser.parse_args(arguments)
    peers = make_peers(select(options.names, RECIPES, "peer"))
    show(peers)
    return 0 if any("preload" in peer for peer in peers.values()) else 1
