"""Counts the instructions that real programs take while reheap watches their allocations, by callgrind.

Of each program: without, with sampled guards (one allocation in 5,000), and with a profile (one sample in 512 KiB). All
of its processes count. What differs between two counts of the same is a few in a hundred thousand; servers, and
programs whose threads wait for each other by turning, are left out.
"""

import dataclasses
import re
import statistics
import tempfile
from pathlib import Path

from common import question, tables
from common.names import select
from common.work import Work
from programs import known
from registries import need_tool
from reheap_lab.allocators import Allocator
from reheap_lab.errors import LabError
from reheap_lab.options import settings_of
from reheap_lab.suite import command
from reheap_lab.workload import Extra, shell

PROGRAMS = ("cpython", "perl", "ruby", "jq", "sqlite", "git", "z3-quantifiers", "lld", "clang-templates")
QUICK = ("jq", "sqlite")
WAYS = {"sampled guards": {"REHEAP_SAMPLE_GUARD": "5000"}, "a profile": {"REHEAP_PROFILE": "/dev/null"}}
SLOWDOWN_S = 1800  # callgrind takes fifty times as long


def instructions_in(logs: list[str]) -> int:
    """Of all processes together; each wrote one log."""
    counts = [re.search(r"Collected\s*:\s*(\d+)", log) for log in logs]
    if not counts or None in counts:
        raise LabError("a process told callgrind's log no instructions: it was killed, or replaced another")
    return sum(int(count[1]) for count in counts)


def count(name: str, allocator: Allocator) -> int:
    """All instructions of one run of a program."""
    with tempfile.TemporaryDirectory(prefix="reheap-bench-") as place:
        folder, logs = Path(place) / "case", Path(place) / "logs"
        folder.mkdir()
        logs.mkdir()
        program, own, _ = command.prepared(known()[name], folder)
        settings = settings_of({"warmup": 0, "no_extras": True, **own})
        if settings.server:
            raise LabError("it is a server")
        settings = dataclasses.replace(settings, timeout=SLOWDOWN_S, sample_ms=0)
        shell(settings.setup, "--setup", cwd=settings.cwd, env=settings.env)
        valgrind = [need_tool("valgrind", "valgrind"), "--tool=callgrind", "--callgrind-out-file=/dev/null",
                    "--trace-children=yes", f"--log-file={logs}/%p"]
        outcome = Work([*valgrind, *program], settings, Path(place)).run(allocator, Extra())
        if outcome.failed:
            raise LabError(outcome.failed)
        return instructions_in([log.read_text() for log in logs.iterdir()])


def rows_of(counts: dict[str, list[int]]) -> list[list[str]]:
    """Of each program the instructions without, and what each way adds to them; then the median and the most."""
    added = {name: [100 * (one / plain - 1) for one in ways] for name, (plain, *ways) in counts.items()}
    rows = [[name, tables.number(counts[name][0] / 1e6, 0), *(f"{share:+.2f} %" for share in added[name])]
            for name in counts]
    for title, figure in (("median", statistics.median), ("most", max)):
        rows.append([title, "", *(f"{figure(shares):+.2f} %" for shares in zip(*added.values(), strict=True))])
    return rows


def main(arguments: list[str]) -> int:
    parser = question.parser("watched", f"{__doc__}\n--quick: {', '.join(QUICK)}.\n", rounds=1)
    parser.add_argument("--only", default="", metavar="PROGRAM,...", help="only these: " + ", ".join(known()))
    asked = question.ask(parser, arguments)
    reheap = next(one for one in asked.allocators if one.name == "reheap")
    watching = [dataclasses.replace(reheap, variables=tuple(ways.items())) for ways in WAYS.values()]
    counts = {}
    for name in select(asked.given.only, known(), "program", QUICK if asked.quick else PROGRAMS):
        print(f"{name}: {known()[name].about}", flush=True)
        try:
            counts[name] = [count(name, one) for one in (reheap, *watching)]
        except LabError as reason:
            asked.missing[name] = str(reason)
    if not counts:
        raise LabError("nothing could be counted:\n" + "\n".join(f"  {name}: {why}" for name, why in
                                                                asked.missing.items()))
    print()
    tables.show(["million instructions", "reheap", *WAYS], rows_of(counts))
    return asked.end()
