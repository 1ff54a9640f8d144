"""What a trace says was allocated, beside what valgrind's DHAT and heaptrack say of the same commands: blocks, bytes,
the most that lived at a time, and what was never freed."""

import json
import os
import re
import sys

from calibration.shared import HERE, REHEAP, RESULTS, compile_program, percent, run
from common.tables import render_markdown as table
from registries import need_tool
from reheap_lab import native

CLOSE = 0.01  # how far each figure of a trace may be from another tool's
FEW = {"blocks": 64, "bytes": 80_000}  # what a tool itself may add; heaptrack's C++ library keeps 71 KiB in reserve
# What random addresses and hashes change would be told as disagreement.
STEADY = {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}

Told = dict[str, float]
FIGURES = ("blocks", "bytes", "peak live bytes", "never freed blocks")
DHAT = {"Total": ("bytes", "blocks"), "At t-gmax": ("peak live bytes", ""), "At t-end": ("", "never freed blocks")}
HEAPTRACK = {"blocks": r"^calls to allocation functions: (\d+)", "peak live bytes": r"^peak heap.*: ([\d.]+\w)",
             "never freed blocks": r"leaked allocations:\s+(\d+)"}
SUFFIXES = {"B": 1, "K": 1e3, "M": 1e6, "G": 1e9}


def add_options(parser) -> None:
    pass


def main(_) -> bool:
    os.environ.update(STEADY)
    right = True
    for title, command in _commands().items():
        ours, others = _trace(command), {"DHAT": _dhat(command), "heaptrack": _heaptrack(command)}
        rows = [[figure, f"{ours[figure]:,.0f}", *(_beside(ours, other, figure) for other in others.values())]
                for figure in FIGURES]
        print(f"\n{title}\n")
        print(table(["figure", "the trace", *(f"{name}, and the trace over it" for name in others)], rows), flush=True)
        right = right and all(_close(ours, other, figure) for other in others.values() for figure in other)
    return right


def _commands() -> dict[str, list[str]]:
    return {
        "malloc and free alone": [str(compile_program("mix.c", name="mix")), "100000"],
        "one thread, 20 MB live": [str(compile_program("subject.c", name="subject")), "40000", "20000", "0"],
        "CPython": [os.path.realpath(sys.executable), "-S", str(HERE / "texts.py"), "1"],
    }


def _trace(command: list[str]) -> Told:
    trace = RESULTS / "counts.rht"
    run([*REHEAP, "record", "-o", trace, "--", *command])
    told = json.loads(run([native.program("reheap-trace"), "info", trace]).stdout)
    trace.unlink()
    return {"blocks": told["allocated"]["blocks"], "bytes": told["allocated"]["bytes"],
            "peak live bytes": told["peak"]["live_bytes"], "never freed blocks": told["never_freed"]["blocks"]}


def _dhat(command: list[str]) -> Told:
    valgrind = [need_tool("valgrind", "valgrind"), "--tool=dhat", "--dhat-out-file=/dev/null"]
    said = run([*valgrind, *command]).stderr
    told: Told = {}
    for heading, names in DHAT.items():
        found = re.search(rf"{heading}: +([\d,]+) bytes in ([\d,]+) blocks", said)
        told |= {name: float(text.replace(",", "")) for name, text in zip(names, found.groups()) if name}
    return told


def _heaptrack(command: list[str]) -> Told:
    heaptrack = need_tool("heaptrack", "heaptrack")
    for old in RESULTS.glob("counts-heaptrack*"):
        old.unlink()
    said = run([heaptrack, "-o", RESULTS / "counts-heaptrack", *command]).stderr
    written = next(RESULTS.glob("counts-heaptrack*"))
    said += run([need_tool("heaptrack_print", "heaptrack"), written]).stdout
    written.unlink()
    return {figure: _number(re.search(pattern, said, re.MULTILINE)[1]) for figure, pattern in HEAPTRACK.items()}


def _number(text: str) -> float:
    """As heaptrack writes it: 126141, 3.21M."""
    return float(text) if text[-1].isdigit() else float(text[:-1]) * SUFFIXES[text[-1]]


def _close(ours: Told, other: Told, figure: str) -> bool:
    return abs(ours[figure] - other[figure]) <= max(CLOSE * other[figure], FEW[figure.split()[-1]])


def _beside(ours: Told, other: Told, figure: str) -> str:
    if figure not in other:
        return "–"
    return f"{other[figure]:,.0f}" + (f" ({percent(ours[figure] / other[figure])})" if other[figure] else "")
