#!/usr/bin/env python3
"""The npm packages: `reheap`, and one for each system that was built, with the programs for it. npm installs the one
that fits. They are .tgz as npm packs them, the same bytes each time."""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

LINUX = ["bin/reheap", "lib/libreheap.so", "lib/libreheap-hardened.so"]
WINDOWS = ["bin/reheap.exe", "bin/reheap.dll", "bin/reheap-hardened.dll"]
WINDOWS_32 = ["bin/reheap32.exe", "bin/reheap32.dll"]

# npm's words for a system (os, cpu, libc) -> the builds that its files come from, and which files.
SYSTEMS = {
    ("linux", "x64", "glibc"): {"linux-x86_64": LINUX},
    ("linux", "x64", "musl"): {"linux-musl": LINUX},
    ("linux", "arm64", "glibc"): {"linux-arm64": LINUX},
    ("win32", "x64"): {"windows-x86_64": WINDOWS, "windows-i686": WINDOWS_32},
}


def version() -> str:
    header = (ROOT / "include" / "reheap" / "reheap.h").read_text()
    return ".".join(re.search(rf"#define RH_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH"))


def name_of(system: tuple[str, ...]) -> str:
    return "@reheap/" + "-".join(system)


def described(name: str, description: str, **more) -> dict:
    """What all packages say of themselves, in npm's order."""
    return {"name": name, "version": version(), "description": description, "license": "MIT", **more}


def take(build: pathlib.Path, files: list[str], into: pathlib.Path) -> None:
    """From a build as it is installed, without symbols."""
    with tempfile.TemporaryDirectory() as prefix:
        subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True,
                       stdout=subprocess.DEVNULL)
        for file in files:
            place = into / file
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(pathlib.Path(prefix, file), place)
            place.chmod(0o755)
            subprocess.run(["strip", "--strip-unneeded", place], check=True)


def pack(folder: pathlib.Path, package: dict, out: pathlib.Path) -> pathlib.Path:
    shutil.copyfile(ROOT / "LICENSE", folder / "LICENSE")
    (folder / "package.json").write_text(json.dumps(package, indent=2) + "\n")
    packed = subprocess.run(["npm", "pack", "--json", "--pack-destination", out, folder], check=True,
                            stdout=subprocess.PIPE, text=True)
    return out / json.loads(packed.stdout)[0]["filename"]


def pack_system(system: tuple[str, ...], builds: pathlib.Path, out: pathlib.Path) -> pathlib.Path:
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        for build, files in SYSTEMS[system].items():
            take(builds / build, files, folder)
        limits = dict(zip(("os", "cpu", "libc"), ([word] for word in system)))
        package = described(name_of(system), "The programs of reheap for " + ", ".join(system), **limits,
                            preferUnplugged=True, files=["bin", "lib"])
        return pack(folder, package, out)


def pack_choice(out: pathlib.Path) -> pathlib.Path:
    """The package that is asked for, and brings the one that fits."""
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place, "reheap")
        shutil.copytree(HERE / "reheap", folder)
        package = described(
            "reheap", "A memory allocator that scales and gives memory back, put under node or any other program",
            keywords=["malloc", "allocator", "memory", "heap", "leak", "profiler"], main="index.js", types="index.d.ts",
            bin={"reheap": "bin/reheap.js"}, engines={"node": ">=16"}, files=["bin", "index.js", "index.d.ts"],
            optionalDependencies={name_of(system): version() for system in SYSTEMS})
        return pack(folder, package, out)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--builds", type=pathlib.Path, default=ROOT / "build", metavar="DIR",
                        help="where the builds lie (default build)")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "packages", metavar="DIR",
                        help="where the packages go (default build/packages)")
    parser.add_argument("--system", action="append", choices=[name_of(system) for system in SYSTEMS], metavar="NAME",
                        help="only this one's programs, more than once for several: "
                        + ", ".join(name_of(system) for system in SYSTEMS))
    arguments = parser.parse_args()
    chosen = [system for system in SYSTEMS if not arguments.system or name_of(system) in arguments.system]
    needed = dict.fromkeys(build for system in chosen for build in SYSTEMS[system])
    absent = [build for build in needed if not (arguments.builds / build / "cmake_install.cmake").exists()]
    if absent:
        print(f"{parser.prog}: not built: {' '.join(absent)}. Run ./dev build {absent[0]} first", file=sys.stderr)
        return 1
    arguments.out.mkdir(parents=True, exist_ok=True)
    print(pack_choice(arguments.out))
    for system in chosen:
        print(pack_system(system, arguments.builds, arguments.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
