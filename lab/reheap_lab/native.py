"""Where the parts written in C++ lie: in the folder $REHEAP_LAB_NATIVE names, else in the package `reheap`."""

import pathlib
import re

import reheap
from reheap_lab import host
from reheap_lab.errors import LabError

VARIABLE = reheap.VARIABLE


def folder() -> pathlib.Path:
    return pathlib.Path(reheap.folder())


def program(name: str) -> pathlib.Path:
    return _part("bin", host.executable(name))


def library(name: str) -> pathlib.Path:
    """One to be preloaded, on Linux."""
    return _preloadable(_part("lib", name))


def find_library(name: str) -> pathlib.Path | None:
    path = folder() / "lib" / name
    return _preloadable(path) if path.is_file() else None


def _preloadable(path: pathlib.Path) -> pathlib.Path:
    if re.search(r"[:\s]", str(path)):
        raise LabError(f"the loader cannot preload a path with a colon or a blank ({path}). Let {VARIABLE} name a "
                       f"link to {folder()} that has none")
    return path


def _part(kind: str, name: str) -> pathlib.Path:
    path = folder() / kind / name
    if not path.is_file():
        raise LabError(f"{path} is missing. For x86-64 with glibc, and Windows, it is installed by pip install "
                       f"--force-reinstall 'reheap[lab]'; else let {VARIABLE} name a folder with {kind}/{name}, as a "
                       "build leaves in build/release")
    return path
