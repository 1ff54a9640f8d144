"""Where the parts written in C++ lie: in the folder $REHEAP_LAB_NATIVE names, else in the package itself."""

import os
import pathlib
import shutil
import sys

from reheap_lab import host
from reheap_lab.errors import LabError

VARIABLE = "REHEAP_LAB_NATIVE"


def folder() -> pathlib.Path:
    named = os.environ.get(VARIABLE)
    return pathlib.Path(named).absolute() if named else pathlib.Path(__file__).parent / "native"


def program(name: str) -> pathlib.Path:
    return _part("bin", host.executable(name))


def library(name: str) -> pathlib.Path:
    return _part("lib", name)


def find_library(name: str) -> pathlib.Path | None:
    path = folder() / "lib" / name
    return path if path.is_file() else None


def _part(kind: str, name: str) -> pathlib.Path:
    path = folder() / kind / name
    if not path.is_file():
        raise LabError(f"{path} is missing. Install the lab again (pip install ./lab), or let {VARIABLE} name a folder "
                       f"with {kind}/{name}, as a build leaves in build/release")
    return path


def reheap_command() -> str:
    """The native `reheap`, which runs programs on the allocator; this package's own script has the same name."""
    own = folder() / "bin" / host.executable("reheap")
    if own.is_file():
        return str(own)
    # Both may lie on PATH, this one first: the scripts of an environment stand beside its Python.
    scripts = {os.path.realpath(os.path.dirname(path)) for path in (sys.argv[0], sys.executable) if path}
    for place in os.get_exec_path():
        found = shutil.which("reheap", path=place)
        if found and os.path.realpath(place) not in scripts and not _is_script(found):
            return found
    raise LabError("the native reheap command is not installed. Build it (./dev build) and put build/release/bin on "
                   f"PATH, or let {VARIABLE} name build/release")


def _is_script(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == b"#!"
