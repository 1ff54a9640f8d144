"""What every package knows of the release it is of: version, time, the project's files."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from project import files  # noqa: E402

STRIPS = ("strip", "llvm-strip", "llvm-strip-19")  # the first that knows the file's format


class PackagingError(Exception):
    """Says what is wrong and what to do about it; for the user."""


def version() -> str:
    header = (ROOT / "include/reheap/reheap.h").read_text()
    return ".".join(re.search(rf"#define RH_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH"))


def epoch() -> int:
    """The time packages say they are of, in seconds: $SOURCE_DATE_EPOCH, else the commit's."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        if not given.isdecimal():
            raise PackagingError(f"SOURCE_DATE_EPOCH={given} is no time: it is in seconds since 1970")
        return int(given)
    try:
        return int(output("git", "-c", "safe.directory=*", "-C", ROOT, "log", "-1", "--format=%ct"))
    except (OSError, subprocess.CalledProcessError) as error:
        raise PackagingError("no commit tells the time of this release: set SOURCE_DATE_EPOCH, in seconds") from error


def zip_moment(moment: int) -> tuple[int, ...]:
    """For a member of a zip file, which knows no time before 1980."""
    return max(time.gmtime(moment)[:6], (1980, 1, 1, 0, 0, 0))


def output(*words) -> str:
    return subprocess.run([*map(str, words)], check=True, stdout=subprocess.PIPE, text=True).stdout


def run(*words, log: pathlib.Path, **settings) -> None:
    """With what it writes in a file of its own, of which the end is told when it fails."""
    with log.open("a") as file:
        done = subprocess.run([*map(str, words)], stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                              check=False, **settings)
    if done.returncode:
        end = "\n".join(log.read_text(errors="replace").splitlines()[-30:])
        raise PackagingError(f"{end}\n{words[0]} ended with status {done.returncode}; all that it wrote: {log}")


def built(build: pathlib.Path, *products: str) -> pathlib.Path:
    """The folder of a build, when what is to be packed is there."""
    for product in products:
        if not (build / product).is_file():
            raise PackagingError(f"{build / product} is missing. Build it: ./dev build {build.name}")
    return build


def stripped(path: pathlib.Path) -> bytes:
    """A program or library without what only debuggers read; of any processor and system."""
    said = []
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder, path.name)
        for tool in STRIPS:
            try:
                done = subprocess.run([tool, "-o", copy, path], stdin=subprocess.DEVNULL, capture_output=True,
                                      text=True)
            except FileNotFoundError:
                said.append(f"{tool} is not installed")
                continue
            if done.returncode == 0:
                return copy.read_bytes()
            said.append(done.stderr.strip())
    raise PackagingError(f"{path} could not be stripped: {'; '.join(said)}")


def empty(folder: pathlib.Path) -> pathlib.Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def copy_sources(to: pathlib.Path) -> pathlib.Path:
    """The project's own files, as they are now."""
    for file in files(ROOT):
        (to / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, to / file, follow_symlinks=False)
    return to
