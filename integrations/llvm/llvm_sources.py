#!/usr/bin/env python3
"""The CMake files of LLVM releases, out of Debian's source packages: llvm_sources.py MAJOR…

A tree keeps what CMake reads and has an empty file wherever a source stood, so that LLVM configures as it would whole.
Trees lie in the cache ($REHEAP_CACHE, else ~/.cache/reheap), each fetched once, by apt, from where the system's own
packages come from.
"""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

CACHE = pathlib.Path(os.environ.get("REHEAP_CACHE") or pathlib.Path.home() / ".cache" / "reheap") / "llvm-cmake"

READ_BY_CMAKE = re.compile(r"(^|/)(CMakeLists\.txt|[^/]*\.(cmake|in|def|inc\.in|txt|rc))$")
FOLDERS = re.compile(r"^(cmake|third-party|llvm/(?!test/|unittests/|docs/|benchmarks/|bindings/|examples/))")
KEYRING = "/usr/share/keyrings/{}-archive-keyring.gpg"


class Unavailable(Exception):
    """A source package could not be had."""


def tree(major: int) -> pathlib.Path:
    """The folder that holds llvm/CMakeLists.txt of that release."""
    target = CACHE / str(major)
    if not target.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as name:
            folder = pathlib.Path(name)
            skeleton = folder / "tree"
            unpack(download(major, folder), skeleton)
            with contextlib.suppress(OSError):  # somebody else has been faster
                skeleton.rename(target)
    return target


# ---- fetching ---------------------------------------------------------------------------------

def download(major: int, folder: pathlib.Path) -> pathlib.Path:
    """The upstream archive of Debian's source package."""
    if not shutil.which("apt-get"):
        raise Unavailable("LLVM's sources come by apt-get, which is not here")
    apt = private_apt(folder)
    run(apt + ["update"], folder)
    run(apt + ["source", "--download-only", f"llvm-toolchain-{major}"], folder)
    archives = list(folder.glob("*.orig.tar.*"))
    if len(archives) != 1:
        raise Unavailable(f"the source package of LLVM {major} holds {len(archives)} upstream archives")
    return archives[0]


def private_apt(folder: pathlib.Path) -> list[str]:
    """apt-get with lists and sources of its own: nothing of the system's is changed, and no root is needed."""
    sources = folder / "source.list"
    sources.write_text("\n".join(source_entries()) + "\n", encoding="utf-8")
    lists = folder / "lists"
    (lists / "partial").mkdir(parents=True)
    options = {"Dir::Etc::sourcelist": sources, "Dir::Etc::sourceparts": "-", "Dir::State::lists": lists,
               "Dir::Cache": folder / "cache", "Debug::NoLocking": "1", "APT::Sandbox::User": ""}
    return ["apt-get", "-q"] + [word for name, value in options.items() for word in ("-o", f"{name}={value}")]


def source_entries() -> list[str]:
    """The system's own distribution entries, for sources instead of packages."""
    form = "$(SITE)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)"
    listed = run(["apt-get", "indextargets", "--format", form, "Created-By: Packages"], pathlib.Path.cwd())
    entries = []
    for line in sorted(set(listed.splitlines())):
        site, release, component, origin = line.split("|")
        if origin not in ("Debian", "Ubuntu"):
            continue
        keyring = pathlib.Path(KEYRING.format(origin.lower()))
        signed = f"[signed-by={keyring}] " if keyring.exists() else ""
        entries.append(f"deb-src {signed}{site} {release} {component}")
    if not entries:
        raise Unavailable("apt-get knows no Debian or Ubuntu packages here")
    return entries


def run(command: list[str], folder: pathlib.Path) -> str:
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(command[:1] + command[-2:])} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


# ---- unpacking --------------------------------------------------------------------------------

def unpack(archive: pathlib.Path, target: pathlib.Path) -> None:
    with tarfile.open(archive, "r|*") as members:
        for member in members:
            path = member.name.partition("/")[2]
            if not member.isfile() or not FOLDERS.match(path) or ".." in path.split("/"):
                continue
            file = target / path
            file.parent.mkdir(parents=True, exist_ok=True)
            content = members.extractfile(member).read() if READ_BY_CMAKE.search(path) else b""
            file.write_bytes(content)
    if not (target / "llvm" / "CMakeLists.txt").is_file():
        raise Unavailable(f"{archive.name} holds no llvm/CMakeLists.txt")


def main() -> int:
    if not sys.argv[1:] or not all(word.isdigit() for word in sys.argv[1:]):
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    for major in sys.argv[1:]:
        try:
            print(tree(int(major)))
        except Unavailable as reason:
            print(f"llvm_sources.py: {reason}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
