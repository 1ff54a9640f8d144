"""The allocators a benchmark compares: the system heap, reheap, peers, or any library by its path."""

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from reheap_lab import allocators
from reheap_lab.allocators import SYSTEM, Allocator
from reheap_lab.errors import LabError

from .errors import ERRORS
from .paths import BENCH, PEERS
from .programs import build
from .work import run_once

REHEAP = "reheap"
NO_PEERS = (SYSTEM, REHEAP)  # all others are peers
PEERS_FILE = PEERS / "peers.json"


@dataclass(frozen=True)
class Choice:
    """What can be measured, and by name why the rest cannot."""

    allocators: list[Allocator]
    missing: dict[str, str]


def choose(names: list[str], *, reheap: bool = True) -> Choice:
    """The system heap first, then reheap, then `names`: a peer's name, `peers` for all of them, the path of a library,
    or NAME=PATH. Each has been proven to serve malloc."""
    os.environ.pop("LD_PRELOAD", None)  # the caller's: the lab would leave it in place
    found, missing = [], {}
    for name in [SYSTEM, *([REHEAP] if reheap else []), *_expand(names)]:
        if any(allocator.name == name.partition("=")[0] for allocator in found):
            continue
        _check_known(name)
        try:
            found.append(_find(name))
            prove(found[-1])
        except ERRORS as error:
            if name in (SYSTEM, REHEAP):
                raise LabError(f"{name} cannot be measured: {error}") from None
            found = [allocator for allocator in found if allocator.name != name.partition("=")[0]]
            missing[name] = str(error)
    return Choice(found, missing)


def _expand(names: list[str]) -> list[str]:
    return [one for name in names for one in (sorted(known_peers()) if name == "peers" else [name])]


def known_peers() -> dict:
    if not PEERS_FILE.exists():
        raise LabError("no peers have been fetched yet; run: ./dev bench peers")
    return json.loads(PEERS_FILE.read_text())


def _check_known(name: str) -> None:
    """A name that means nothing is an error; a peer that could not be built is only missing."""
    if name in (SYSTEM, REHEAP):
        return
    path = _path_of(name)
    if path is not None and not path.is_file():
        raise LabError(f"there is no library {path}")
    if path is None and name not in known_peers():
        known = ", ".join([SYSTEM, REHEAP, *sorted(known_peers())])
        raise LabError(f"unknown allocator '{name}'; known: {known}, peers, NAME=/path/to/library.so")


def _path_of(name: str) -> Path | None:
    """The library that NAME=PATH or a bare path means."""
    _, equals, path = name.partition("=")
    return Path(path).resolve() if equals else Path(name).resolve() if "/" in name else None


def _find(name: str) -> Allocator:
    path = _path_of(name)
    if path is not None:
        return Allocator(name.partition("=")[0] if "=" in name else path.stem, (path,))
    if name in (SYSTEM, REHEAP):
        return allocators.choose(name, folders=[])[0]
    peer = known_peers()[name]
    if "missing" in peer:
        raise LabError(peer["missing"])
    return Allocator(name, tuple(map(Path, peer["preload"])), peer["version"])


def prove(allocator: Allocator) -> None:
    """Names can lie: a library that forwards to libc carries the right ones. So libc is asked whether its own heap grew
    while a megabyte of blocks was taken."""
    with tempfile.TemporaryDirectory() as folder:
        said, errors = run_once([build(BENCH / "peers" / "proof.c")], allocator, Path(folder))
    if errors:
        raise LabError(f"loading it printed: {errors}")
    grew, taken = map(int, said.split())
    if (grew >= taken) != (not allocator.libraries):
        raise LabError(f"libc's heap grew by {grew} bytes while {taken} were taken")
