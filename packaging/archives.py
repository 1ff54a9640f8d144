"""A tar.gz for Linux and a zip for Windows: to unpack anywhere and use from there."""

import gzip
import os
import pathlib
import platform
import shutil
import stat
import tarfile
import zipfile

import components
from release import ROOT, built, empty, epoch, output, run, version, zip_moment

LINUX = ("lib/libreheap.so", "lib/libreheap-hardened.so", "bin/reheap")
WINDOWS = ("bin/reheap.dll", "bin/reheap-hardened.dll", "bin/reheap.exe", "lib/libreheap.a", "lib/libreheap-hardened.a")
WINDOWS_32 = ("bin/reheap.dll", "bin/reheap-hardened.dll", "bin/reheap.exe")
MICROSOFTS = ("lib/reheap.lib", "lib/reheap-core.lib", "lib/reheap-hardened.lib")


def linux_build(builds: pathlib.Path) -> pathlib.Path:
    """The one for all Linux of this machine's processor, if it is there; else the one for systems like this one."""
    for_all = builds / f"linux-{platform.machine()}"
    return for_all if all((for_all / product).is_file() for product in LINUX) else builds / "release"


def linux(out: pathlib.Path, work: pathlib.Path, build: pathlib.Path) -> pathlib.Path:
    """Of what is compiled in `build`, for this machine's processor."""
    stage = empty(work) / f"reheap-{version()}-linux-{platform.machine()}"
    log = work / "log"
    run("cmake", "--install", built(build, *LINUX), "--prefix", stage, log=log)
    for file in sorted(stage.rglob("*")):
        if file.is_symlink() or not file.is_file():
            continue
        if file.suffix == ".a":
            run("strip", "--strip-debug", "--enable-deterministic-archives", file, log=log)
        elif file.read_bytes()[:4] == b"\x7fELF" and ".debug_info" in output("readelf", "-SW", file):
            split_debug_information(file, log)
    pages = pathlib.Path(__file__).parent / "man/pages.sh"
    if shutil.which("help2man"):
        run(pages, stage / "bin/reheap", stage / "share/man/man1", log=log,
            env=os.environ | {"SOURCE_DATE_EPOCH": str(epoch())})
    add_notices(stage, components.linux(build / "bin/reheap"))
    return tar(stage, out / f"{stage.name}.tar.gz")


def windows(out: pathlib.Path, work: pathlib.Path, builds: pathlib.Path) -> pathlib.Path:
    """Of the builds windows-x86_64, and of windows-x86_64-msvc and windows-i686 where those are."""
    stage = empty(work) / f"reheap-{version()}-windows"
    log = work / "log"
    main = built(builds / "windows-x86_64", *WINDOWS)
    run("cmake", "--install", main, "--prefix", stage, log=log)
    for name in (f"{file.name}.debug" for file in sorted((stage / "bin").glob("*.dll"))):
        shutil.copy(main / "bin" / name, stage / "bin")
    for archive in sorted((stage / "lib").glob("*.a")):
        run("strip", "--strip-debug", "--enable-deterministic-archives", archive, log=log)
    if (microsofts := builds / "windows-x86_64-msvc").joinpath(MICROSOFTS[0]).is_file():
        run("cmake", "--install", built(microsofts, *MICROSOFTS), "--prefix", stage / "msvc", log=log)
        shutil.rmtree(stage / "msvc/share")
        for archive in sorted((stage / "msvc/lib").glob("*.lib")):
            run("llvm-objcopy-19", "--strip-debug", archive, log=log)
    if (narrow := builds / "windows-i686").joinpath(WINDOWS_32[0]).is_file():
        run("cmake", "--install", built(narrow, *WINDOWS_32), "--component", "programs", "--prefix", stage, log=log)
        (stage / "debug/i686").mkdir(parents=True)
        for name in WINDOWS_32:
            shutil.copy(f"{narrow / name}.debug", stage / "debug/i686")
    add_notices(stage, components.windows())
    return pack_zip(stage, out / f"{stage.name}.zip")


def split_debug_information(file: pathlib.Path, log: pathlib.Path) -> None:
    """Into FILE.debug beside it, where debuggers look."""
    debug = file.with_name(file.name + ".debug")
    run("objcopy", "--only-keep-debug", file, debug, log=log)
    run("objcopy", "--strip-debug", f"--add-gnu-debuglink={debug}", file, log=log)
    debug.chmod(0o644)


def add_notices(stage: pathlib.Path, parts: tuple[components.Component, ...]) -> None:
    """The licence at the top, where people look, and those of what is linked in."""
    shutil.copy(ROOT / "LICENSE", stage)
    folder = stage / "share/doc/reheap/third-party"
    folder.mkdir(parents=True)
    for part in parts:
        shutil.copy(part.notice(), folder / f"{part.name}.txt")


def members(stage: pathlib.Path) -> list[pathlib.Path]:
    return [stage, *sorted(stage.rglob("*"))]


def tar(stage: pathlib.Path, to: pathlib.Path) -> pathlib.Path:
    def of_nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        member.mtime = epoch()
        member.mode = 0o755 if member.mode & stat.S_IXUSR else 0o644
        return member

    with (to.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=epoch()) as packed,
          tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive):
        for path in members(stage):
            archive.add(path, path.relative_to(stage.parent), recursive=False, filter=of_nobody)
    return to


def pack_zip(stage: pathlib.Path, to: pathlib.Path) -> pathlib.Path:
    moment = zip_moment(epoch())
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in members(stage):
            if path.is_file():
                entry = zipfile.ZipInfo(path.relative_to(stage.parent).as_posix(), moment)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o100644 << 16
                archive.writestr(entry, path.read_bytes())
    return to


