"""The lines of source that missed most."""

import subprocess
from pathlib import Path

from registries import need_tool

from .measure import Counted

# A place in one of these says nothing: whoever called it is meant.
WRAPPERS = {"atomic", "atomic_base.h", "atomic.h", "std_atomic.h", "word.h", "counter.h", "units.h", "lock.h"}


def frames_of(program: Path, addresses: list[int]) -> list[list[tuple[str, str]]]:
    """For each address the function and file:line it is in, and those into which that was inlined."""
    command = [need_tool("addr2line", "binutils"), "-e", program, "-a", "-i", "-f", "-s", "-C"]
    done = subprocess.run([*command, *map(hex, addresses)], stdout=subprocess.PIPE, text=True, check=True)
    found: list[list[tuple[str, str]]] = []
    lines = iter(done.stdout.splitlines())
    for line in lines:
        if line.startswith("0x"):
            found.append([])
        else:
            found[-1].append((line, next(lines).split(" ")[0]))
    return found


def name_of(frames: list[tuple[str, str]]) -> str:
    """The innermost frame that is no wrapper's; of wrappers alone, the outermost."""
    telling = [frame for frame in frames if frame[1].split(":")[0] not in WRAPPERS] or frames[-1:]
    function, place = telling[0]
    return f"{place} {function.split('(')[0].split('::')[-1]}"


def worst(program: Path, counted: Counted, most: int) -> list[tuple[str, float, float]]:
    """Lines by misses an operation, with the share of these in holds of shared locks."""
    places = counted.totals["places"]
    sums: dict[str, list[int]] = {}
    for place, frames in zip(places, frames_of(program, [place["address"] for place in places])):
        of_line = sums.setdefault(name_of(frames), [0, 0])
        of_line[0] += place["misses"]
        of_line[1] += place["in_shared_holds"]
    ordered = sorted(sums.items(), key=lambda item: -item[1][0])[:most]
    operations = counted.totals["operations"]
    return [(name, misses / operations, held / misses) for name, (misses, held) in ordered]
