"""The allocators a benchmark compares: the system heap, reheap, peers, or any library by its path."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .errors import BenchError
from .paths import PEERS, REHEAP_LIBRARY
from .programs import build_program

SYSTEM = "system"
REHEAP = "reheap"
PEERS_FILE = PEERS / "peers.json"


@dataclass(frozen=True)
class Allocator:
    """A name and the libraries to preload; none for the system heap. The first one serves malloc."""

    name: str
    version: str = ""
    preload: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name

    def preload_variable(self, *more: Path) -> list[str]:
        libraries = [*self.preload, *map(str, more)]
        return [f"LD_PRELOAD={':'.join(libraries)}"] if libraries else []


@dataclass(frozen=True)
class Choice:
    """What can be measured, and by name why the rest cannot."""

    allocators: list[Allocator]
    missing: dict[str, str]


def choose(names: list[str], *, reheap: bool = True) -> Choice:
    """The system heap first, then reheap, then `names`: a peer's name, `peers` for all of them, the
    path of a library, or NAME=PATH. Each has been proven to serve malloc."""
    found, missing = [Allocator(SYSTEM, _libc_version())], {}
    for name in _expand(([REHEAP] if reheap else []) + names):
        if any(allocator.name == name.partition("=")[0] for allocator in found):
            continue
        _check_known(name)
        try:
            allocator = _find(name)
            prove(allocator)
            found.append(allocator)
        except BenchError as error:
            missing[name] = str(error)
    if reheap and REHEAP in missing:
        raise BenchError(f"{REHEAP} cannot be measured: {missing[REHEAP]}")
    prove(found[0])
    return Choice(found, missing)


def _libc_version() -> str:
    return os.confstr("CS_GNU_LIBC_VERSION") or ""


def _expand(names: list[str]) -> list[str]:
    expanded = []
    for name in names:
        expanded += sorted(_known_peers()) if name == "peers" else [name]
    return expanded


def _known_peers() -> dict:
    if not PEERS_FILE.exists():
        raise BenchError("no peers have been fetched yet; run: ./dev bench peers")
    return json.loads(PEERS_FILE.read_text())


def _check_known(name: str) -> None:
    """A name that means nothing is an error; a peer that could not be built is only missing."""
    path = _path_of(name)
    if path is not None and not path.is_file():
        raise BenchError(f"there is no library {path}")
    if path is None and name != REHEAP and name not in _known_peers():
        known = ", ".join([SYSTEM, REHEAP, *sorted(_known_peers())])
        raise BenchError(f"unknown allocator '{name}'; known: {known}, peers, NAME=/path/to/library.so")


def _path_of(name: str) -> Path | None:
    """The library that NAME=PATH or a bare path means."""
    _, equals, path = name.partition("=")
    if equals:
        return Path(path).resolve()
    return Path(name).resolve() if "/" in name else None


def _find(name: str) -> Allocator:
    library = _path_of(name)
    if library is not None:
        label = name.partition("=")[0] if "=" in name else library.stem
        return Allocator(label, "", (str(library),))
    return _find_reheap() if name == REHEAP else _find_peer(name)


def _find_reheap() -> Allocator:
    if not REHEAP_LIBRARY.exists():
        raise BenchError(f"{REHEAP_LIBRARY} is not built; run: ./dev build")
    return Allocator(REHEAP, "", (str(REHEAP_LIBRARY),))


def _find_peer(name: str) -> Allocator:
    entry = _known_peers()[name]
    if "missing" in entry:
        raise BenchError(entry["missing"])
    return Allocator(name, entry["version"], tuple(entry["preload"]))


def prove(allocator: Allocator) -> dict:
    """Runs the proof program under `allocator`; raises when another allocator served it."""
    program = build_program("proof.c")
    environment = clean_environment(allocator.preload_variable())
    try:
        result = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        raise BenchError("the proof program hung under it") from None
    if result.returncode != 0:
        raise BenchError(f"the proof program failed under it ({result.returncode}): {result.stderr.strip()}")
    if result.stderr.strip():
        raise BenchError(f"loading it printed: {result.stderr.strip()}")
    report = json.loads(result.stdout)
    check_proof(allocator, report)
    return report


def check_proof(allocator: Allocator, report: dict) -> None:
    for function in ("malloc", "free", "realloc", "calloc"):
        if not serves(allocator, report[function]):
            raise BenchError(f"it is loaded, but {function} is served by {report[function]}")
    by_libc = report["libc_grew"] >= report["taken"]
    if by_libc != (not allocator.preload):
        raise BenchError(
            f"libc's heap grew by {report['libc_grew']} bytes while {report['taken']} were taken"
        )


def serves(allocator: Allocator, path: str) -> bool:
    """Whether the file `path`, seen to define malloc, belongs to `allocator`."""
    if not allocator.preload:
        return os.path.basename(path).startswith("libc.so")
    return any(os.path.realpath(path) == os.path.realpath(one) for one in allocator.preload)


def clean_environment(settings: list[str] = ()) -> dict[str, str]:
    """Ours, without a preload that the caller's shell may carry, and with `settings`."""
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    environment.update(setting.split("=", 1) for setting in settings)
    return environment
