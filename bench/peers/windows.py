"""Other allocators in the place of reheap.dll: a DLL of each, built here and never shipped, that the same launcher
brings into a program and that replaces the same functions with the same patcher. What stands in bench/peers/dll."""

import os
from pathlib import Path

from common.paths import BENCH, BUILD, PEERS, ROOT, WORKLOADS_BUILT
from registries import fetch_crate, need_tool, run_step
from reheap_lab.errors import LabError

LAYERS = BENCH / "peers" / "dll"
FOLDER = WORKLOADS_BUILT / "windows" / "peers"
REDIRECT = BUILD / "windows-x86_64" / "redirect"
ARCHIVES = tuple(f"lib{name}.a"
                 for name in ("reheap_redirect", "reheap_process", "reheap_patcher", "reheap_pe", "calls"))
OWN = (*(LAYERS / name for name in ("runtimes.cpp", "heaps.cpp", "main.cpp")), ROOT / "src" / "base" / "text.cpp")

# Clang, for its thread-local variables are Windows' own: GCC's are calls that allocate. Optimised as one, so that an
# allocator's fast path becomes part of the function that replaces malloc, as it is in reheap.dll.
TARGET = ("--target=x86_64-w64-windows-gnu", "-O3", "-DNDEBUG", "-w", *(
    f"-fno-builtin-{name}" for name in ("malloc", "calloc", "realloc", "free")))
CPP = ("-std=c++20", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-DUNICODE", "-D_UNICODE",
       "-DWIN32_LEAN_AND_MEAN", "-DNOMINMAX", f"-I{ROOT}", f"-I{ROOT / 'src'}", f"-I{ROOT / 'include'}")
AS_ONE = "-flto"


def mimalloc_flags() -> list[str]:
    source = fetch_crate("libmimalloc-sys", "0.1.49", PEERS / "sources") / "c_src" / "mimalloc" / "v3"
    definitions = ("MI_BUILD_RELEASE", "MI_WIN_INIT_USE_TLS_DLLMAIN=1", "MI_USE_RTLGENRANDOM=1")
    return [*(f"-D{one}" for one in definitions), f"-I{source / 'include'}", f"-I{source / 'src'}"]


def rpmalloc_flags() -> list[str]:
    source = fetch_crate("rpmalloc-sys", "0.2.3", PEERS / "sources") / "rpmalloc" / "rpmalloc"
    return ["-DBUILD_DYNAMIC_LINK=1", f"-I{source}"]


RECIPES = {"mimalloc": mimalloc_flags, "rpmalloc": rpmalloc_flags}


def build(name: str) -> Path:
    """The DLL, made anew when one of its sources is newer."""
    output = FOLDER / f"peer_{name}.dll"
    archives = [REDIRECT / archive for archive in ARCHIVES]
    missing = [path for path in archives if not path.exists()]
    if missing:
        raise LabError(f"{missing[0]} is not built; run: ./dev build windows-x86_64")
    sources = [LAYERS / f"{name}.c", *OWN]
    watched = [*sources, *LAYERS.iterdir(), *archives, Path(__file__)]
    if output.exists() and output.stat().st_mtime >= max(path.stat().st_mtime for path in watched):
        return output
    FOLDER.mkdir(parents=True, exist_ok=True)
    objects = [compile_one(source, name) for source in sources]
    # Not as one with the rest: it holds what the compiler itself refers to.
    objects.append(compile_one(LAYERS / "system.c", name, as_one=False))
    scratch = output.with_suffix(".new")
    run_step([clang("clang"), TARGET[0], "-fuse-ld=lld", "-O3", AS_ONE, "-shared", "-nostdlib", "-Wl,-e,DllMain",
              "-Wl,--image-base,0x5E0000000", "-Wl,--dynamicbase", "-o", scratch, *objects, *archives, "-lntdll",
              "-lkernel32"])
    os.replace(scratch, output)
    return output


def compile_one(source: Path, name: str, as_one: bool = True) -> Path:
    output = FOLDER / name / f"{source.parent.name}-{source.stem}.o"
    output.parent.mkdir(exist_ok=True)
    plus = source.suffix == ".cpp"
    own = RECIPES[name]() if source.stem == name else []
    run_step([clang("clang++" if plus else "clang"), *TARGET, *([AS_ONE] if as_one else []),
              *(CPP if plus else ["-std=gnu11"]), *own, "-c", source, "-o", output])
    return output


def clang(name: str) -> str:
    return need_tool(f"{name}-19", "clang-19")
