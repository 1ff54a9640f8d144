#!/usr/bin/env python3
"""./dev package: the packages of a release out of finished builds, with their sums and what they are made of."""

import argparse
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import venv

import archives
import deb
import sbom
from release import ROOT, PackagingError, empty, run, version

WHEEL = ROOT / "packaging/wheel"
RUST = ROOT / "packaging/rust"
NPM = ROOT / "packaging/npm"
AMALGAMATE = ROOT / "tools/amalgamate.py"


def make_deb(options, work):
    return deb.make(options.out, work, options.builds / "release")


def make_tar(options, work):
    return [archives.linux(options.out, work, archives.linux_build(options.builds))]


def make_zip(options, work):
    return [archives.windows(options.out, work, options.builds)]


def make_wheel(options, work):
    """By its own script, in an environment with what that wants."""
    environment, made = empty(work) / "environment", work / "made"
    venv.create(environment, with_pip=True)
    python = environment / "bin/python3"
    run(python, "-m", "pip", "install", "-r", WHEEL / "requirements.txt", log=work / "log")
    run(python, WHEEL / "build.py", "--builds", options.builds, "--out", made, log=work / "log", cwd=ROOT)
    return [pathlib.Path(shutil.copy(wheel, options.out)) for wheel in sorted(made.glob("*.whl"))]


def make_crate(options, work):
    """The crate with the allocator's source in it, as one file."""
    crate = empty(work) / "rust"
    shutil.copytree(RUST, crate, ignore=shutil.ignore_patterns("native", "target"))
    run(sys.executable, AMALGAMATE, crate / "native", log=work / "log")
    run("cargo", "package", "--allow-dirty", "--no-verify", log=work / "log", cwd=crate,
        env=os.environ | {"CARGO_TARGET_DIR": str(work / "target")})
    return [pathlib.Path(shutil.copy(made, options.out)) for made in (work / "target/package").glob("*.crate")]


def make_npm(options, work):
    made = empty(work) / "made"
    run(sys.executable, NPM / "build.py", "--builds", options.builds, "--out", made, log=work / "log", cwd=ROOT)
    return [pathlib.Path(shutil.copy(package, options.out)) for package in sorted(made.glob("*.tgz"))]


MAKERS = {"deb": make_deb, "tar": make_tar, "zip": make_zip, "wheel": make_wheel, "crate": make_crate, "npm": make_npm}
# Which of them are made when none is named: those for which everything is there.
READY = {"zip": lambda options: (options.builds / "windows-x86_64/bin/reheap.exe").is_file(),
         "crate": lambda _: shutil.which("cargo"),
         "npm": lambda options: shutil.which("npm") and all((options.builds / build / "bin").is_dir() for build in (
             "linux-x86_64", "linux-arm64", "windows-x86_64", "windows-i686"))}


def parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev package", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND",
                        help=f"of {', '.join(MAKERS)}; without one, all that can be made")
    parser.add_argument("--builds", type=pathlib.Path, default=ROOT / "build", metavar="FOLDER",
                        help="where the builds are, by the names of presets (build)")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/packages", metavar="FOLDER",
                        help="where the packages go, in place of earlier ones (build/packages)")
    options = parser.parse_args(words)
    if unknown := [kind for kind in options.kinds if kind not in MAKERS]:
        parser.error(f"unknown kind {', '.join(unknown)}; there are: {', '.join(MAKERS)}")
    options.builds, options.out = options.builds.resolve(), options.out.resolve()
    return options


def write_sums(folder: pathlib.Path, files: list[pathlib.Path]) -> None:
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(files)]
    (folder / "SHA256SUMS").write_text("".join(lines))


def main() -> int:
    options = parse(sys.argv[1:])
    kinds = options.kinds or [kind for kind in MAKERS if READY.get(kind, lambda _: True)(options)]
    made = []
    try:
        forget_packages(options.out)
        for kind in kinds:
            made += MAKERS[kind](options, options.out / "work" / kind)
        made.append(sbom.make(made, options.builds, options.out / f"reheap-{version()}.spdx.json"))
        write_sums(options.out, made)
    except (PackagingError, OSError, subprocess.CalledProcessError) as error:
        print(f"package: {error}", file=sys.stderr)
        return 1
    print("\n".join(file.name for file in [*made, options.out / "SHA256SUMS"]))
    return 0


def forget_packages(folder: pathlib.Path) -> None:
    """Those of an earlier call, by its sums: what else lies there is not ours."""
    folder.mkdir(parents=True, exist_ok=True)
    sums = folder / "SHA256SUMS"
    if sums.is_file():
        for line in sums.read_text().splitlines():
            (folder / line.split()[-1]).unlink(missing_ok=True)
        sums.unlink()
    empty(folder / "work")


if __name__ == "__main__":
    sys.exit(main())
