#!/usr/bin/env python3
"""Makes the npm packages from finished builds: `reheap`, and one for each system with the programs for it, of which npm
installs the one that fits. They are .tgz as npm packs them, the same bytes each time."""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

sys.path.insert(0, str(ROOT / "packaging"))
from release import PackagingError, built, stripped, version  # noqa: E402

LINUX = {file: file for file in ("bin/reheap", "lib/libreheap.so", "lib/libreheap-hardened.so")}
WINDOWS = {file: file for file in ("bin/reheap.exe", "bin/reheap.dll", "bin/reheap-hardened.dll")}
# A DLL finds its like for the other architecture by these names (redirect/process/places.cpp). 32-bit programs are
# started by the 64-bit command.
WINDOWS_32 = {"bin/reheap.dll": "bin/reheap32.dll", "bin/reheap-hardened.dll": "bin/reheap32-hardened.dll"}

# npm's words for a system (os-cpu) -> the builds that its files come from, and where each file goes. The Linux ones are
# for glibc and musl.
SYSTEMS = {
    "linux-x64": {"linux-x86_64": LINUX},
    "linux-arm64": {"linux-arm64": LINUX},
    "win32-x64": {"windows-x86_64": WINDOWS, "windows-i686": WINDOWS_32},
}


def described(name: str, description: str, **more) -> dict:
    """What all packages say of themselves."""
    return {"name": name, "version": version(), "description": description, "license": "MIT", **more}


def pack(folder: pathlib.Path, package: dict, out: pathlib.Path) -> pathlib.Path:
    shutil.copyfile(ROOT / "LICENSE", folder / "LICENSE")
    (folder / "package.json").write_text(json.dumps(package, indent=2) + "\n")
    packed = subprocess.run(["npm", "pack", "--json", "--pack-destination", out, folder], check=True,
                            stdout=subprocess.PIPE, text=True)
    return out / json.loads(packed.stdout)[0]["filename"]


def pack_system(system: str, builds: pathlib.Path, out: pathlib.Path) -> pathlib.Path:
    with tempfile.TemporaryDirectory() as place:
        for build, files in SYSTEMS[system].items():
            for file, goes_to in files.items():
                to = pathlib.Path(place, goes_to)
                to.parent.mkdir(exist_ok=True)
                to.write_bytes(stripped(built(builds / build, file) / file))
                to.chmod(0o755)
        operating_system, processor = system.split("-")
        package = described(f"@reheap/{system}", f"The programs of reheap for {operating_system}, {processor}",
                            os=[operating_system], cpu=[processor], preferUnplugged=True, files=["bin", "lib"])
        return pack(pathlib.Path(place), package, out)


def pack_choice(out: pathlib.Path) -> pathlib.Path:
    """The package that is asked for, and brings the one that fits."""
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place, "reheap")
        shutil.copytree(HERE / "reheap", folder)
        package = described(
            "reheap", "A memory allocator that scales and gives memory back, put under node or any other program",
            keywords=["malloc", "allocator", "memory", "heap", "leak", "profiler"], main="index.js", types="index.d.ts",
            bin={"reheap": "bin/reheap.js"}, engines={"node": ">=16"}, files=["bin", "index.js", "index.d.ts"],
            optionalDependencies={f"@reheap/{system}": version() for system in SYSTEMS})
        return pack(folder, package, out)


def main() -> int:
    parser = argparse.ArgumentParser(prog="packaging/npm/build.py", description=__doc__)
    parser.add_argument("--builds", type=pathlib.Path, default=ROOT / "build", metavar="DIR",
                        help="where the builds lie (build)")
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR", help="where the packages go")
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", help=f"only these: {' '.join(SYSTEMS)}")
    arguments = parser.parse_args()
    if unknown := [system for system in arguments.systems if system not in SYSTEMS]:
        parser.error(f"there is no system {' '.join(unknown)}; there are: {' '.join(SYSTEMS)}")
    chosen = arguments.systems or list(SYSTEMS)
    try:
        if not shutil.which("npm"):
            raise PackagingError("npm is not installed")
        for system in chosen:  # before anything is made
            for build, files in SYSTEMS[system].items():
                built(arguments.builds / build, *files)
        arguments.out.mkdir(parents=True, exist_ok=True)
        print(pack_choice(arguments.out))
        for system in chosen:
            print(pack_system(system, arguments.builds, arguments.out))
    except (PackagingError, subprocess.CalledProcessError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
