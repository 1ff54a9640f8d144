"""A trace's call stacks with names, and what each of them allocated."""

import functools
import pathlib
from dataclasses import dataclass, field

import numpy as np

from reheap_lab import trace
from reheap_lab.errors import UsageError
from reheap_lab.sites import functions
from reheap_lab.sites.images import Module
from reheap_lab.sites.kinds import FIGURES, KINDS, LIVE_KINDS, Kind
from reheap_lab.sites.symbols import Place, Symbolizer

UNKNOWN = Place("(no call stack)", "", "", 0, "", named=False)  # where what held it is damaged
IN_BYTES = np.array([name.endswith("bytes") for name in FIGURES])


@dataclass(frozen=True)
class Stack:
    """Its ends are cut off: what only passes allocations on, and what a thread begins with."""

    frames: tuple[tuple[int, int], ...]  # (address, how many of its inlined places were cut off), innermost first
    places: tuple[Place, ...]  # the innermost first
    site: int  # which of the places the allocation is put down to

    @property
    def at(self) -> Place:
        return self.places[self.site]


@dataclass
class Profile:
    """All of it; row i of the arrays is about stack i, and their columns are FIGURES."""

    title: str
    every_bytes: int  # 0: each allocation has its stack, and the figures are exact
    totals: dict[str, int]  # exact, but for a live one
    modules: list[Module]
    stacks: list[Stack]
    values: np.ndarray
    sampled: np.ndarray
    lifetime_us: np.ndarray  # the mean; not a number where nothing was freed
    places_at: dict[int, tuple[Place, ...]]  # by address
    library: set[Place]  # those of the C library and of languages' own ones, which are no sites
    notes: list[str]
    live: bool = False  # sampled by the library itself: all of it is estimated
    curve: list[tuple[int, int]] = field(default_factory=list)  # of a live one: milliseconds, and the bytes live then

    @property
    def kinds(self) -> dict[str, Kind]:
        """What it can be weighed by."""
        return LIVE_KINDS if self.live else KINDS

    @property
    def exact(self) -> bool:
        return self.every_bytes == 0

    def figures(self, stack: int) -> dict[str, int]:
        return {name: round(value) for name, value in zip(FIGURES, self.values[stack].tolist())}

    @functools.cached_property
    def variances(self) -> np.ndarray:
        """Of the estimates. A sample that stands for w allocations was taken with a probability of 1/w; all samples of
        a stack are taken to be alike."""
        if self.exact:
            return np.zeros_like(self.values)
        counts = self.values[:, FIGURES.index("allocations")]
        stands_for = np.maximum(counts / np.maximum(self.sampled, 1), 1)[:, None]
        each = (self.values[:, FIGURES.index("bytes")] / np.maximum(self.sampled, 1))[:, None]
        return self.values * np.where(IN_BYTES, each * (1 - 1 / stands_for), stands_for - 1)


def load(found: dict, traces: list[pathlib.Path], wrappers: tuple[str, ...] = (),
         sysroot: pathlib.Path | None = None, title: str = "") -> Profile:
    """From what `reheap-trace sites` printed, or what library.read found, which needs a title."""
    if not found["recorded"]:
        raise UsageError(f"{traces[0]} was recorded without call stacks: record again with --stacks 64K")
    modules = [Module(m["path"], int(m["start"], 0), int(m["end"], 0), int(m["file_offset"], 0), m["build_id"])
               for m in found["modules"]]
    calls = [int(frame, 0) - 1 for frame in found["frames"]]  # where it returns to may be another line, or function
    symbolizer = Symbolizer(modules, max(path.stat().st_mtime for path in traces), sysroot or pathlib.Path("/"))
    places_at = symbolizer.name(calls)
    cut = _Cut(places_at, functions.Passing(wrappers))
    rows = found["stacks"]
    return Profile(functions.printable(title.replace("\n", " ")) or _title(traces), found["every_bytes"],
                   {name: found["totals"][name] for name in FIGURES}, modules,
                   [cut.stack([calls[i] for i in row["frames"]]) for row in rows],
                   np.array([[row[name] for name in FIGURES] for row in rows], float).reshape(-1, len(FIGURES)),
                   np.array([row["sampled"] for row in rows], float),
                   np.array([row.get("lifetime_us", np.nan) for row in rows], float), places_at, cut.library,
                   symbolizer.notes + found.get("comments", []), found.get("live", False), found.get("curve", []))


def _title(traces: list[pathlib.Path]) -> str:
    more = f" and {len(traces) - 1} more" if len(traces) > 1 else ""
    return functions.printable((trace.command_of(traces[0]) or traces[0].name).replace("\n", " ")) + more


class _Cut:
    """Makes stacks of addresses. Each place is judged once."""

    def __init__(self, places_at: dict[int, tuple[Place, ...]], passing: functions.Passing):
        places = {place for found in places_at.values() for place in found}
        self._places_at = places_at
        self._passing = {place for place in places if passing(place.function, place.module)}
        self.library = self._passing | {place for place in places if functions.is_library(
            place.function, place.mangled, place.module)}
        self._startup = {place for place in places if functions.is_startup(place.function, place.module)}

    def stack(self, addresses: list[int]) -> Stack:
        if not addresses:
            return Stack((), (UNKNOWN,), 0)
        kept = self._from_outside(addresses)
        rows = [(address, skipped, place) for address in kept
                for skipped, place in enumerate(self._places_at[address])]
        first = next((i for i, row in enumerate(rows) if row[2] not in self._passing), len(rows) - 1)
        rows = rows[first:]
        frames = tuple((address, skipped) for i, (address, skipped, _) in enumerate(rows) if i == 0 or skipped == 0)
        places = tuple(place for _, _, place in rows)
        return Stack(frames, places, next((i for i, place in enumerate(places) if place not in self.library), 0))

    def _from_outside(self, addresses: list[int]) -> list[int]:
        """Without what a thread begins with; of that, a stripped program's _start has no name of its own."""
        end = len(addresses)
        if end > 2 and self._startup.issuperset(self._places_at[addresses[end - 2]]):
            end -= not self._places_at[addresses[end - 1]][-1].named
        while end > 1 and self._startup.issuperset(self._places_at[addresses[end - 1]]):
            end -= 1
        return addresses[:end]
