"""What recording costs a program: instructions and bytes for each event, and time."""

import dataclasses
import os
import re
import shlex
from pathlib import Path

from calibration import programs
from calibration.programs import Program
from calibration.shared import RESULTS, compare, compile_program, run
from common.tables import render_markdown as table
from registries import need_tool
from reheap_lab import native, record
from reheap_lab.results import Comparison

# Of each run there is a longer one, and what both have in common cancels out.
COUNTED = (50_000, 150_000)
TIMED = "5000000"
STEPS = "1000000"  # of sixteen threads: twice as many as are replayed
RECORDER, PLAIN = "recorder", "system"
SAMPLED = "64K"


def add_options(parser) -> None:
    parser.add_argument("--runs", type=int, default=11, help="runs with and without (default 11)")


def main(options) -> bool:
    mix = compile_program("mix.c", name="mix")
    count(mix)
    sixteen = programs.sixteen()
    timed = [programs.cpython(), Program("mix", [str(mix), TIMED]),
             dataclasses.replace(sixteen, command=[*sixteen.command[:-1], STEPS])]
    rows = [time(program, options.runs) for program in timed]
    print(table(["program", "wall time, times", "99 % interval", "CPU time, times", "99 % interval",
                 "system's share of what is added"], rows))
    return True


def recording(trace: Path, stacks: str | None = None) -> dict[str, str]:
    settings = {"LD_PRELOAD": str(native.library("libreheap-record.so")), "REHEAP_RECORD": str(trace)}
    return settings | ({"REHEAP_RECORD_STACKS": record.stack_setting(stacks, "mix")} if stacks else {})


def remove_traces(name: str) -> None:
    for path in RESULTS.glob(f"{name}*.rht"):
        path.unlink()


def count(mix: Path) -> None:
    rounds = COUNTED[1] - COUNTED[0]
    few, many = (instructions(mix, each, {}) for each in COUNTED)
    without = (many - few) / rounds
    with_it, size = recorded(mix)
    print(f"Instructions for each event of `mix`: {without / 2:.1f} without the recorder, {with_it / 2:.1f} with it, "
          f"{with_it / without:.2f} times. Bytes for each event: {size / 2:.2f}.\n")
    sampled, _ = recorded(mix, SAMPLED)
    everywhere, size_everywhere = recorded(mix, "all")
    print(f"Stacks, for each allocation: {sampled - with_it:.1f} more instructions with --stacks {SAMPLED}, "
          f"{everywhere - with_it:.0f} and {size_everywhere - size:.2f} bytes with --stacks all.\n", flush=True)


def recorded(mix: Path, stacks: str | None = None) -> tuple[float, float]:
    """Instructions, and bytes of the trace, of an allocation and a free."""
    counts, sizes = [], []
    for rounds in COUNTED:
        remove_traces("counted")
        counts.append(instructions(mix, rounds, recording(RESULTS / "counted.rht", stacks)))
        # The recorder also sits in valgrind's own launcher, so the program's trace is the largest.
        sizes.append(max(path.stat().st_size for path in RESULTS.glob("counted*.rht")))
    remove_traces("counted")
    return tuple((many - few) / (COUNTED[1] - COUNTED[0]) for few, many in (counts, sizes))


def instructions(mix: Path, rounds: int, settings: dict[str, str]) -> int:
    line = [need_tool("valgrind", "valgrind"), "--tool=callgrind", "--callgrind-out-file=/dev/null", mix, rounds]
    return int(re.search(r"Collected : (\d+)", run(line, env=os.environ | settings).stderr)[1])


def time(program: Program, runs: int) -> list[str]:
    """The lab compares the system heap with itself under the recorder, whose traces go before each run."""
    trace = RESULTS / "timed.rht"
    settings = recording(trace)
    os.environ.update(program.environment, REHEAP_RECORD=settings["REHEAP_RECORD"])
    subjects = f"{PLAIN},{RECORDER}={settings['LD_PRELOAD']}"
    remove = f"rm -f {shlex.quote(str(RESULTS))}/timed*.rht"
    told = compare(f"recorder-{program.name}", "compare", "--with", subjects, "--runs", runs, "--no-extras",
                   "--prepare", remove, "--", *program.command)
    remove_traces("timed")
    cells = [program.name]
    for figure in ("wall_s", "cpu_s"):
        found = told.verdict(figure, RECORDER)
        cells += [f"{found.ratio:.2f}", f"{found.low:.2f} .. {found.high:.2f}"]
    return [*cells, f"{100 * added(told, 'system_s') / added(told, 'cpu_s'):.0f} %"]


def added(told: Comparison, figure: str) -> float:
    return told.summaries[figure][RECORDER].median - told.summaries[figure][PLAIN].median
