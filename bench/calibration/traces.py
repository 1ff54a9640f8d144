"""Real programs recorded and replayed under every allocator: is the peak of live memory what was recorded, is every
hand-over in order, and does the replay rank the allocators as the program itself does?"""

import itertools
import json
import math
import os
import shlex
import subprocess
from pathlib import Path

from calibration import programs
from calibration.programs import Program
from calibration.shared import REHEAP, RESULTS, compare, percent, run
from common.subjects import known_peers
from common.tables import render_markdown as table
from reheap_lab import native, statistics
from reheap_lab.errors import LabError
from reheap_lab.figures import SAME, UNDECIDED
from reheap_lab.replay import NEAR
from reheap_lab.results import Comparison

DRIFT = 0.1  # how far the replayed peak of many threads may be from the recorded one
RANKED = {"wall_s": "wall time", "cpu_s": "CPU time", "peak_rss_kib": "peak resident"}


def add_options(parser) -> None:
    parser.add_argument("--runs", type=int, default=5, help="runs under each allocator (default 5)")
    parser.add_argument("--program", action="append", choices=list(programs.PROGRAMS), help="only this one; repeatable")
    parser.add_argument("--without-real", action="store_true", help="replay only, without the programs themselves")


def main(options) -> bool:
    allocators = every_allocator()
    right = True
    for name in options.program or programs.PROGRAMS:
        program = programs.PROGRAMS[name]()
        trace = record(program)
        told = json.loads(run([native.program("reheap-trace"), "info", trace]).stdout)
        print(f"\n## {name}\n\n{told['events']:,} events of {told['thread_count']} threads, "
              f"{trace.stat().st_size / told['events']:.1f} bytes each; at most "
              f"{told['peak']['live_bytes'] / 2**20:.1f} MiB live in {told['peak']['live_blocks']:,} blocks\n",
              flush=True)
        right = show_faith(trace, allocators, told) and right
        if not options.without_real:
            show_ranking(real(program, allocators, options.runs), replay(name, trace, allocators, options.runs))
    return right


def every_allocator() -> dict[str, str]:
    """By name the library, none for the system heap: with reheap, and the peers that ./dev bench peers made."""
    peers = {name: peer["preload"] for name, peer in known_peers().items() if "preload" in peer}
    # A library that needs another one beside it finds it there.
    folders = {str(Path(library).parent) for preload in peers.values() for library in preload[1:]}
    os.environ["LD_LIBRARY_PATH"] = ":".join(sorted(folders))
    own = {"system": "", "reheap": str(native.library("libreheap.so"))}
    return own | {name: preload[0] for name, preload in sorted(peers.items())}


def with_option(allocators: dict[str, str]) -> str:
    return ",".join(f"{name}={library}" if library else name for name, library in allocators.items())


def record(program: Program) -> Path:
    trace = RESULTS / f"{program.name}.rht"
    for old in RESULTS.glob(f"{program.name}*.rht"):
        old.unlink()
    programs.run_wrapped(program, [*REHEAP, "record", "-o", trace, "--"])
    return trace


def replay(name: str, trace: Path, allocators: dict[str, str], runs: int) -> Comparison:
    return compare(f"{name}-replay", "replay", "--with", with_option(allocators), "--runs", runs, "--no-extras", trace)


def real(program: Program, allocators: dict[str, str], runs: int) -> Comparison:
    """The program itself. One that brings an allocator along gets the C library's put before it."""
    named = allocators | ({"system": libc()} if program.brings_allocator else {})
    served = []
    if program.drive:
        served = ["--load", shlex.join(program.drive), "--ready", shlex.join(program.ready), "--idle", "1s"]
    os.environ.update(program.environment)
    return compare(f"{program.name}-real", "compare", "--with", with_option(named), "--runs", runs, "--no-extras",
                   *served, "--", *program.command)


def libc() -> str:
    words = (line.split() for line in Path("/proc/self/maps").read_text().splitlines())
    return next(path for *_, path in words if "/libc.so" in path)


# ---- is the replay true to the record? ----------------------------------------------------------

def show_faith(trace: Path, allocators: dict[str, str], recorded: dict) -> bool:
    """One replay under each allocator, by the replayer alone."""
    close = NEAR if recorded["thread_count"] == 1 else DRIFT
    compiled = trace.with_suffix(".compiled")
    run([native.program("reheap-trace"), "compile", trace, "-o", compiled])
    rows, right = [], True
    for name, library in allocators.items():
        told = replay_once(compiled, library)
        off = told["peak_live_bytes"] / recorded["peak"]["live_bytes"]
        good = abs(off - 1) <= close and not any(told["errors"].values())
        right = right and good
        errors = ", ".join(f"{count} {kind}" for kind, count in told["errors"].items() if count)
        rows.append([name, f"{told['peak_live_bytes'] / 2**20:.2f}", percent(off), str(told["errors"]["ordering"]),
                     errors or "none", "yes" if good else "NO"])
    compiled.unlink()
    header = ["allocator", "replayed peak live, MiB", "off by", "ordering errors", "errors", "good"]
    print(table(header, rows), flush=True)
    return right


def replay_once(compiled: Path, library: str) -> dict:
    out = compiled.with_suffix(".json")
    environment = os.environ | ({"LD_PRELOAD": library} if library else {})
    subprocess.run([native.program("reheap-replay"), compiled, "--out", out], env=environment, capture_output=True)
    if not out.exists():
        raise LabError(f"the replay under {library or 'the system heap'} wrote no results")
    told = json.loads(out.read_text())
    out.unlink()
    return told


# ---- does the replay rank allocators as the program does? ---------------------------------------

def show_ranking(real: Comparison, replayed: Comparison) -> None:
    for figure, label in RANKED.items():
        ours, theirs = ({name: summary.median for name, summary in made.summaries.get(figure, {}).items()}
                        for made in (real, replayed))
        names = [name for name in ours if name in theirs]
        if len(names) < 3:
            print(f"\n{label}: too few allocators were measured in both to rank them")
            continue
        order = sorted(names, key=ours.get)
        best = ours[order[0]], min(theirs[name] for name in names)
        place = {name: number for number, name in enumerate(sorted(names, key=theirs.get), 1)}
        rows = [[name, str(number), percent(ours[name] / best[0]), str(place[name]), percent(theirs[name] / best[1])]
                for number, name in enumerate(order, 1)]
        print(f"\n{table([label, 'place, program', 'over the best', 'place, replay', 'over the best'], rows)}\n")
        print(agreement([ours[n] for n in names], [theirs[n] for n in names]))
        print(concordance(real, theirs, figure))
        print(disagreement(real, replayed, figure, names))


def agreement(ours: list[float], theirs: list[float]) -> str:
    pairs = list(itertools.combinations(zip(ours, theirs), 2))
    kendall = sum(math.copysign((a - c) * (b - d) != 0, (a - c) * (b - d)) for (a, b), (c, d) in pairs) / len(pairs)
    return f"Kendall's tau {kendall:.2f}, Spearman's rho {statistics.spearman(ours, theirs):.2f}."


def concordance(real: Comparison, replayed: dict[str, float], figure: str) -> str:
    """Of the pairs that the program tells apart: whatever ranks the others ranks noise."""
    apart = [v for v in real.verdicts + real.between_others
             if v.figure == figure and v.word not in (SAME, UNDECIDED) and {v.subject, v.base} <= replayed.keys()]
    if not apart:
        return "The program tells no two of them apart."
    alike = sum((replayed[v.subject] > replayed[v.base]) == (v.ratio > 1) for v in apart)
    gamma = (2 * alike - len(apart)) / len(apart)
    return (f"The program tells {len(apart)} pairs apart; the replay ranks {alike} alike: Goodman and Kruskal's "
            f"gamma is {gamma:.2f}.")


def disagreement(real: Comparison, replayed: Comparison, figure: str, names: list[str]) -> str:
    """The pairs that both decided, and decided differently: each subject against the base."""
    base = real.subjects[0].name
    words = [{v.subject: v.word for v in made.verdicts if v.figure == figure} for made in (real, replayed)]
    if not words[0] or not words[1]:
        return "There were too few runs for verdicts."
    different = [f"{name} against {base}: {words[0][name]} in the program, {words[1][name]} in the replay"
                 for name in names if name in words[0] and words[0][name] != words[1].get(name)]
    return "; ".join(different) + "." if different else "Every verdict against the base is the same in both."
