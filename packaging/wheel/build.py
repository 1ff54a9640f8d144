#!/usr/bin/env python3
"""Makes the wheels of `pip install reheap` from finished builds: packaging/wheel/build.py --builds build --out DIR

One for each system whose builds are there; what is missing for the others is said. The same builds give the same bytes,
and SOURCE_DATE_EPOCH is the date of the files in them. What it takes is listed in requirements.txt."""

import argparse
import os
import pathlib
import re
import sys
import tomllib
import zipfile
from dataclasses import dataclass

try:
    import deflate
    import pyproject_metadata
    from elftools.elf.elffile import ELFFile
    from elftools.elf.gnuversions import GNUVerNeedSection
    from packaging.version import Version
    from wheel.wheelfile import WheelFile
except ModuleNotFoundError as missing:
    sys.exit(f"build.py: {missing.name} is not installed: pip install -r packaging/wheel/requirements.txt")

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ROOT / "lab"
PACKAGES = ("reheap", "reheap_lab")
FIRST_DATE = "315532800"  # 1980, where zip files begin

sys.path.insert(0, str(ROOT / "packaging"))
import release  # noqa: E402
from release import PackagingError, stripped  # noqa: E402


@dataclass(frozen=True)
class Group:
    """Files that one build leaves: `files` maps each to its path in the wheel, where `{}` is the .data folder. Of the
    builds named the first that has all of them counts. Where the group is optional, all may be missing."""
    builds: tuple[str, ...]
    files: dict[str, str]
    optional: bool = False


@dataclass(frozen=True)
class Target:
    """One wheel."""
    name: str
    groups: tuple[Group, ...]

    @property
    def windows(self) -> bool:
        return self.name.startswith("win")

    @property
    def musl(self) -> bool:
        return self.name.endswith("musl")


def into_package(folder: str, *names: str) -> dict[str, str]:
    return {f"{folder}/{name}": f"reheap/{folder}/{name}" for name in names}


COMMAND = {"bin/reheap": "{}/scripts/reheap"}  # starts without Python, and finds the package (python_package.cpp)
LIBRARIES = into_package("lib", "libreheap.so", "libreheap-hardened.so")
LAB = (into_package("bin", "reheap-runner", "reheap-trace", "reheap-replay") |
       into_package("lib", "libreheap-record.so", "libreheap-witness.so"))
WINDOWS = into_package("bin", "reheap.exe", "reheap.dll", "reheap-hardened.dll", "reheap-record.dll",
                       "reheap-runner.exe", "reheap-trace.exe", "reheap-replay.exe")
# A DLL finds its like for the other architecture by these names (redirect/process/places.cpp). 32-bit programs are
# started by the 64-bit command.
WINDOWS_32 = {f"bin/{name}": f"reheap/bin/{name.replace('reheap', 'reheap32')}"
              for name in ("reheap.dll", "reheap-hardened.dll")}

TARGETS = (
    Target("linux-x86_64", (Group(("linux-x86_64", "release"), COMMAND | LIBRARIES | LAB),)),
    # The same: the command is linked statically, the libraries serve either C library. The lab is for glibc alone.
    Target("linux-musl", (Group(("linux-x86_64",), COMMAND | LIBRARIES),)),
    Target("linux-arm64", (Group(("linux-arm64",), COMMAND | LIBRARIES), Group(("linux-arm64",), LAB, optional=True))),
    Target("linux-arm64-musl", (Group(("linux-arm64",), COMMAND | LIBRARIES),)),
    Target("win_amd64", (Group(("windows-x86_64",), WINDOWS), Group(("windows-i686",), WINDOWS_32))),
)


# ---- what goes into it ----------------------------------------------------------------------------------------------

def found_parts(target: Target, builds: pathlib.Path) -> dict[str, pathlib.Path]:
    """Path in the wheel -> the file that goes there. PackagingError says what is not built."""
    found = {}
    for group in target.groups:
        missing = {name: [path for path in group.files if not (builds / name / path).is_file()]
                   for name in group.builds}
        whole = next((name for name in group.builds if not missing[name]), None)
        if whole:
            found |= {goes_to: builds / whole / path for path, goes_to in group.files.items()}
        elif not group.optional:
            name = group.builds[0]
            raise PackagingError(f"{builds / name / missing[name][0]} is not there: ./dev build {name}")
    return found


def sources() -> dict[str, bytes]:
    """Path in the wheel -> content, of the packages in Python."""
    files = (path for path in release.files(ROOT) if path.parts[0] == SOURCES.name and path.parts[1] in PACKAGES)
    return {str(path.relative_to(SOURCES.name)): (ROOT / path).read_bytes() for path in files}


# ---- what it is for -------------------------------------------------------------------------------------------------

def platforms(target: Target, parts: dict[str, pathlib.Path]) -> list[str]:
    """The tags of the systems it works on, as its files tell."""
    if target.windows:
        return ["win_amd64"]
    needs = [needed(path) for path in parts.values()]
    architecture, *others = sorted({one.architecture for one in needs})
    if others:
        raise PackagingError(f"its files are for {architecture} and for {', '.join(others)}: build one of them anew")
    if target.musl:
        return [f"musllinux_1_2_{architecture}"]
    glibc = max((one.glibc for one in needs), key=Version)
    # pip before 20.3 knows the older name alone.
    older = [f"manylinux2014_{architecture}"] if Version(glibc) <= Version("2.17") else []
    return older + [f"manylinux_{max('2.17', glibc, key=Version).replace('.', '_')}_{architecture}"]


@dataclass(frozen=True)
class Needed:
    architecture: str
    glibc: str  # the oldest that has what it asks for


def needed(path: pathlib.Path) -> Needed:
    with path.open("rb") as file:
        elf = ELFFile(file)
        architecture = {"EM_X86_64": "x86_64", "EM_AARCH64": "aarch64"}.get(elf["e_machine"])
        if architecture is None:
            raise PackagingError(f"{path} is for {elf['e_machine']}, for which there is no wheel")
        versions = [version.name for section in elf.iter_sections() if isinstance(section, GNUVerNeedSection)
                    for _, asked in section.iter_versions() for version in asked]
        glibc = [match[1] for match in (re.fullmatch(r"GLIBC_([\d.]+)", version) for version in versions) if match]
        return Needed(architecture, max(glibc, key=Version, default="2.0"))


# ---- the description ------------------------------------------------------------------------------------------------

def description() -> pyproject_metadata.StandardMetadata:
    table = tomllib.loads((SOURCES / "pyproject.toml").read_text())
    said = pyproject_metadata.StandardMetadata.from_pyproject(table, project_dir=SOURCES)
    if said.version != Version(release.version()):
        raise PackagingError(f"lab/pyproject.toml is of version {said.version}, reheap.h of {release.version()}")
    return said


def scripts(said: pyproject_metadata.StandardMetadata, target: Target) -> str:
    """What pip makes commands of that start Python. On Linux `reheap` is none: it is the native one."""
    lines = [f"{name} = {entry}" for name, entry in sorted(said.scripts.items()) if target.windows or name != "reheap"]
    return "\n".join(["[console_scripts]", *lines, ""])


def wheel_file(tags: list[str]) -> str:
    lines = ["Wheel-Version: 1.0", "Generator: packaging/wheel/build.py", "Root-Is-Purelib: false"]
    return "\n".join([*lines, *(f"Tag: {tag}" for tag in tags), ""])


# ---- the archive ----------------------------------------------------------------------------------------------------

class Deflater:
    """What zipfile takes for an object of zlib's, by libdeflate: a twentieth smaller."""

    def __init__(self):
        self.content = b""

    def compress(self, data: bytes) -> bytes:
        self.content += data
        return b""

    def flush(self) -> bytes:
        return bytes(deflate.deflate_compress(self.content, 12))


class SmallWheel(WheelFile):
    def open(self, name, mode="r", *arguments, **options):
        file = super().open(name, mode, *arguments, **options)
        if mode == "w":
            file._compressor = Deflater()  # zipfile has no public way; without that name the wheel would be larger
        return file


def build(target: Target, builds: pathlib.Path, out: pathlib.Path) -> pathlib.Path:
    """The wheel of `target`, written into `out`."""
    parts = found_parts(target, builds)
    said = description()
    stem = f"reheap-{said.version}"
    kinds = platforms(target, parts)
    programs = {name.format(f"{stem}.data"): stripped(path) for name, path in parts.items()}
    about = {"METADATA": str(said.as_rfc822()), "WHEEL": wheel_file([f"py3-none-{kind}" for kind in kinds]),
             "entry_points.txt": scripts(said, target), "licenses/LICENSE": (ROOT / "LICENSE").read_text()}
    path = out / f"{stem}-py3-none-{'.'.join(kinds)}.whl"
    with SmallWheel(path, "w") as wheel:
        for name, content in sorted((sources() | programs).items()):
            add(wheel, name, content, executable=name in programs)
        for name, text in sorted(about.items()):
            add(wheel, f"{stem}.dist-info/{name}", text.encode(), executable=False)
    return path


def add(wheel: WheelFile, name: str, content: bytes, executable: bool) -> None:
    entry = zipfile.ZipInfo(name, release.zip_moment(release.epoch()))
    entry.external_attr = (0o100755 if executable else 0o100644) << 16
    entry.create_system = 3  # Unix, whose modes these are
    entry.compress_type = zipfile.ZIP_DEFLATED
    wheel.writestr(entry, content)


def main() -> int:
    parser = argparse.ArgumentParser(prog="packaging/wheel/build.py", description=__doc__)
    parser.add_argument("--builds", type=pathlib.Path, default=ROOT / "build", metavar="DIR",
                        help="the folder that holds the builds (build)")
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR", help="where the wheels go")
    parser.add_argument("targets", nargs="*", metavar="TARGET",
                        help=f"only these, which then must succeed: {' '.join(target.name for target in TARGETS)}")
    arguments = parser.parse_args()
    unknown = set(arguments.targets) - {target.name for target in TARGETS}
    if unknown:
        parser.error(f"there is no target {' '.join(sorted(unknown))}")
    os.environ.setdefault("SOURCE_DATE_EPOCH", FIRST_DATE)
    arguments.out.mkdir(parents=True, exist_ok=True)
    made, failed = 0, 0
    for target in TARGETS:
        if arguments.targets and target.name not in arguments.targets:
            continue
        try:
            print(build(target, arguments.builds, arguments.out))
            made += 1
        except PackagingError as failure:
            print(f"no wheel for {target.name}: {failure}", file=sys.stderr)
            failed += 1
    return 0 if made and not (arguments.targets and failed) else 1


if __name__ == "__main__":
    sys.exit(main())
