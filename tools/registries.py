"""Sources and binaries from package registries, through the registries' ordinary clients."""

import os
import shutil
import subprocess
import sys
from pathlib import Path


class Failure(Exception):
    """What went wrong, and what fixes it."""


def need_tool(program: str, debian_package: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise Failure(f"{program} is not installed; install it: apt-get install {debian_package}")
    return path


def run_step(command: list[str], cwd: Path | None = None) -> str:
    """Runs `command` at low priority and returns its output; a failure shows the last lines."""
    result = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        preexec_fn=lambda: os.nice(5),
    )
    if result.returncode != 0:
        tail = "\n".join(result.stdout.splitlines()[-15:])
        raise Failure(f"`{' '.join(map(str, command))}` failed ({result.returncode}):\n{tail}")
    return result.stdout


_MANIFEST = """[package]
name = "bench-source"
version = "0.0.0"
edition = "2021"

[dependencies]
{name} = "={version}"
"""


def fetch_crate(name: str, version: str, into: Path) -> Path:
    """The source folder of crate `name`, fetched once. Cargo checks the sum."""
    project = into / f"{name}-{version}"
    vendor = project / "vendor"
    found = _crate_folder(vendor, name)
    if found is None:
        shutil.rmtree(project, ignore_errors=True)
        (project / "src").mkdir(parents=True)
        (project / "src" / "lib.rs").touch()
        (project / "Cargo.toml").write_text(_MANIFEST.format(name=name, version=version))
        run_step([_cargo(), "vendor", "--quiet", "--versioned-dirs", "vendor"], cwd=project)
        found = _crate_folder(vendor, name)
    if found is None:
        raise Failure(f"cargo fetched {name} {version}, but its folder is not under {vendor}")
    return found


# Debian 12's own cargo only knows the registry's old index, a download of gigabytes; `cargo-web` is the
# new one that Debian carries for building browsers. Later releases have a new enough `cargo`.
_CARGO_PACKAGES = ("cargo-web", "cargo")


def _cargo() -> str:
    """Cargo, whoever installed it; from Debian if there is none and we may install it."""
    path = shutil.which("cargo")
    if path or os.geteuid() != 0 or not shutil.which("apt-get"):
        return path or need_tool("cargo", " or ".join(_CARGO_PACKAGES))
    for package in _CARGO_PACKAGES:
        print(f"bench: needs {package} (fetching crates); installing it", file=sys.stderr, flush=True)
        try:
            run_step(["apt-get", "-qq", "install", "-y", "--no-install-recommends", package])
            break
        except Failure:
            continue
    return need_tool("cargo", " or ".join(_CARGO_PACKAGES))


def _crate_folder(vendor: Path, name: str) -> Path | None:
    return next(iter(sorted(vendor.glob(f"{name}-[0-9]*"))), None)


def fetch_wheel(name: str, version: str, platform: str, into: Path) -> Path:
    """The unpacked contents of a wheel for `platform` (not installed), fetched once."""
    folder = into / f"{name}-{version}-{platform}"
    if not folder.exists():
        fetched, unpacked = folder.with_suffix(".fetched"), folder.with_suffix(".new")
        run_step([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
                  "--platform", platform, "--dest", fetched, f"{name}=={version}"])
        wheel = next(fetched.glob("*.whl"))
        shutil.unpack_archive(wheel, unpacked, "zip")
        shutil.rmtree(fetched)
        unpacked.rename(folder)
    return folder


def fetch_debian(package: str, into: Path) -> tuple[Path, str]:
    """The unpacked contents of a Debian package (not installed), and its version."""
    need_tool("apt-get", "apt")
    folder = into / package
    files, version_file = folder / "files", folder / "version"
    if not version_file.exists():
        shutil.rmtree(folder, ignore_errors=True)
        files.mkdir(parents=True)
        archive = _download_debian(package, folder)
        run_step(["dpkg-deb", "--extract", archive, files])
        version = run_step(["dpkg-deb", "--field", archive, "Version"]).strip()
        archive.unlink()
        version_file.write_text(version + "\n")
    return files, version_file.read_text().strip()


def _download_debian(package: str, folder: Path) -> Path:
    command = ["apt-get", "-qq", "-o", "APT::Sandbox::User=", "download", package]
    try:
        run_step(command, cwd=folder)
    except Failure:
        if os.geteuid() != 0:
            raise
        run_step(["apt-get", "-qq", "update"])
        run_step(command, cwd=folder)
    archives = list(folder.glob("*.deb"))
    if not archives:
        raise Failure(f"apt-get downloaded no archive for {package}")
    return archives[0]
