"""What a case takes from package registries: wheels by pip, Debian packages by apt-get, without root, into a cache.

Each set of packages has one folder, which is complete or not there: it is filled beside its place and then renamed. The
wheels of a set lie in the folder itself, what Debian packages hold below it as it would below /.
"""

import contextlib
import hashlib
import importlib.util
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reheap_lab.errors import LabError
from reheap_lab.suite.cases import Needs

RECORD = "fetched.json"  # versions by name of all that lies in the folder, written last
TAIL = 300
NO_ROOT = ("-o", "APT::Sandbox::User=", "-o", "Debug::NoLocking=1")


class Missing(LabError):
    """Why something is not there."""


@dataclass(frozen=True)
class Fetched:
    folder: pathlib.Path
    versions: dict[str, str]

    def environment(self) -> dict[str, str]:
        """So that its programs and their libraries are found."""
        bins = [self.folder / "bin", self.folder / "usr/bin", self.folder / "usr/sbin", self.folder / "usr/games"]
        found = {"PATH": os.pathsep.join([*(str(path) for path in bins if path.is_dir()), os.environ.get("PATH", "")])}
        libraries = [path for path in (self.folder / "usr/lib", self.folder / "lib") for path in
                     (path / triplet(), path) if path.is_dir()]
        if libraries:
            before = os.environ.get("LD_LIBRARY_PATH")
            found["LD_LIBRARY_PATH"] = ":".join([*map(str, libraries), *([before] if before else [])])
        return found


NOTHING = Fetched(pathlib.Path(os.devnull), {})


def triplet() -> str:
    """Debian's name of this machine's kind."""
    return sysconfig.get_config_var("MULTIARCH") or f"{platform.machine()}-linux-gnu"


def cache() -> pathlib.Path:
    home = os.environ.get("XDG_CACHE_HOME") or ""
    return (pathlib.Path(home) if os.path.isabs(home) else pathlib.Path.home() / ".cache") / "reheap-lab" / "packages"


def folder_of(needs: Needs) -> pathlib.Path:
    """Named for a person, and by all that is in it."""
    wanted = [*needs.wheels, *needs.debian, triplet(), sys.implementation.cache_tag or ""]
    first = re.split(r"[^\w.-]", [*needs.wheels, *needs.debian][0])[0]
    return cache() / f"{first}-{hashlib.sha256(chr(10).join(wanted).encode()).hexdigest()[:12]}"


def present(needs: Needs) -> Fetched | None:
    """Without asking anybody. What was installed when the rest was fetched must still be."""
    if not needs:
        return NOTHING
    folder = folder_of(needs)
    try:
        versions = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    installed = dict(_installed(name for name in needs.debian if name not in versions))
    whole = all(name in versions or name in installed for name in needs.debian)
    return Fetched(folder, versions | installed) if whole else None


def fetch(needs: Needs) -> Fetched:
    """What is in the cache, or else from the registries."""
    found = present(needs)
    if found:
        return found
    folder = folder_of(needs)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder.parent) as place:
            into = pathlib.Path(place) / "set"
            into.mkdir()
            versions = _wheels(needs.wheels, into) | _debian(needs.debian, into, pathlib.Path(place))
            (into / RECORD).write_text(json.dumps(versions, indent=1) + "\n", encoding="utf-8")
            with contextlib.suppress(OSError):  # another process has just put it there
                shutil.rmtree(folder, ignore_errors=True)
                into.rename(folder)
    except OSError as error:
        raise Missing(f"{folder.parent} cannot be written: {error.strerror}. Let XDG_CACHE_HOME name a folder that can"
                      ) from None
    return present(needs) or _lost(folder)


def _lost(folder: pathlib.Path):
    raise Missing(f"{folder} was made and is gone again. Is something clearing the cache?")


def _run(what: str, line: list[str], cwd: pathlib.Path | None = None) -> str:
    """What it prints; the reason, short, when it fails."""
    try:
        done = subprocess.run(line, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              env=os.environ | {"LC_ALL": "C.UTF-8"})
    except FileNotFoundError:
        raise Missing(f"{what}: there is no {line[0]}") from None
    if done.returncode:
        said = [text for text in (done.stderr + done.stdout).splitlines() if re.match(r"(ERROR|E)\b", text)]
        reason = (said or done.stderr.splitlines() or [f"{line[0]} ended with status {done.returncode}"])[-1]
        raise Missing(f"{what} could not be fetched: {reason.strip()[-TAIL:]}")
    return done.stdout


# ---- wheels -------------------------------------------------------------------------------------

def _wheels(wanted: tuple[str, ...], into: pathlib.Path) -> dict[str, str]:
    """Binaries alone, no dependency that is not named, and no byte that has not the hash it should have."""
    if not wanted:
        return {}
    names = ", ".join(line.split()[0] for line in wanted)
    if importlib.util.find_spec("pip") is None:
        raise Missing(f"{names}: {sys.executable} has no pip. Install it: {sys.executable} -m ensurepip")
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as list_:
        list_.write("\n".join(wanted) + "\n")
        list_.flush()
        _run(names, [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input",
                     "--no-deps", "--only-binary", ":all:", "--require-hashes", "--no-compile", "--target", str(into),
                     "--requirement", list_.name])
    return {name: version for line in wanted for name, _, version in [line.split()[0].partition("==")]}


# ---- Debian packages ----------------------------------------------------------------------------

def _debian(wanted: tuple[str, ...], into: pathlib.Path, place: pathlib.Path) -> dict[str, str]:
    """The packages, and what they depend on, that are not installed here; those that are serve as they are."""
    if not wanted:
        return {}
    names = ", ".join(wanted)
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise Missing(f"{names}: Debian packages, and there is no apt-get here. Install the program: it is taken from "
                      "PATH")
    versions = {}
    archives = place / "archives"
    archives.mkdir()
    for name, version in _to_fetch(names, wanted):
        _run(name, ["apt-get", *NO_ROOT, "-qq", "download", f"{name}={version}"], cwd=archives)
        versions[name] = version
    for archive in sorted(archives.glob("*.deb")):
        _run(archive.name, ["dpkg-deb", "--extract", str(archive), str(into)])
    return versions


def _installed(wanted: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in wanted if shutil.which("dpkg-query") else ():
        asked = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", name], capture_output=True,
                               text=True)
        status, _, version = asked.stdout.partition(" ")
        if status == "installed":
            yield name, version


def _to_fetch(names: str, wanted: tuple[str, ...]) -> list[tuple[str, str]]:
    """By apt-get's own plan for installing them, of which nothing is done."""
    plan = _run(names, ["apt-get", *NO_ROOT, "--simulate", "--no-install-recommends", "--no-upgrade", "install",
                        *wanted])
    return re.findall(r"^Inst (\S+) (?:\[\S+\] )?\((\S+)", plan, re.MULTILINE)
