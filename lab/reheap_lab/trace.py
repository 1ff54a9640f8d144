"""What the native reheap-trace says of a trace, and how the terminal shows it."""

import json
import pathlib
import shlex
import struct
import subprocess
import sys

import click
from rich.console import Console
from rich.table import Table

from reheap_lab import native
from reheap_lab.errors import LabError, UsageError
from reheap_lab.figures import plural
from reheap_lab.sites.functions import printable

HEADER_BYTES, COMMAND_BYTES_AT, COMMAND_AT = 4096, 36, 120
DAMAGED = 3  # what reheap-trace answers when it used what could be read
STOPPED = {1: "reached the size limit", 2: "filled the disk", 3: "could not go on writing"}
EXISTING = click.Path(path_type=pathlib.Path, dir_okay=False, exists=True)


def run(words: list[str], quiet: bool = False) -> tuple[int, str]:
    """Its status, 0 or DAMAGED, and what it printed; says on standard error what could not be read unless `quiet`."""
    done = subprocess.run([str(native.program("reheap-trace")), *words], capture_output=True, text=True,
                          errors="replace")
    if done.returncode not in (0, DAMAGED):
        said = done.stderr.strip().removeprefix("reheap-trace: ")
        raise (UsageError if done.returncode == 2 else LabError)(said or f"reheap-trace ended with {done.returncode}")
    if done.stderr and not quiet:
        sys.stderr.write(done.stderr)
    return done.returncode, done.stdout


def names(traces: list[pathlib.Path]) -> list[str]:
    """As words of which none reads as an option."""
    return [f"./{path}" if str(path).startswith("-") else str(path) for path in traces]


def stopped(why: int) -> str:
    """A recording, before its program ended."""
    return STOPPED.get(why, "ended early")


def command_of(path: pathlib.Path) -> str:
    """What was recorded, as a shell has it: from the header (docs/trace-format.md). Empty where that does not say."""
    with open(path, "rb") as file:
        header = file.read(HEADER_BYTES)
    if len(header) < HEADER_BYTES:
        return ""
    (used,) = struct.unpack_from("<I", header, COMMAND_BYTES_AT)
    words = header[COMMAND_AT:COMMAND_AT + used].split(b"\0")[:-1]
    return shlex.join(word.decode("utf-8", "replace") for word in words)


def read_info(traces: list[pathlib.Path], quiet: bool = False) -> tuple[int, dict]:
    status, printed = run(["info", *names(traces)], quiet)
    return status, json.loads(printed)


# ---- on the terminal --------------------------------------------------------------------------

def size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 1000 else f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.2f} GiB"


def time(ns: float) -> str:
    for unit in ("ns", "µs", "ms"):
        if ns < 1000:
            return f"{ns:.3g} {unit}"
        ns /= 1000
    return f"{ns:.3g} s"


def show(found: dict, to: Console) -> None:
    for file in found["files"]:
        lost = f", {plural(file['lost'], 'event')} lost" if file["lost"] else ""
        end = "" if file["ended"] else ", did not run to its end"
        early = f", the recording {stopped(file['stopped'])}" if file["stopped"] else ""
        command = printable(shlex.join(file["command"]))
        to.print(f"process {file['process']}: {command}{end}{lost}{early}", highlight=False)
    facts = Table(box=None, show_header=False)
    for name, value in _facts(found):
        facts.add_row(name, value)
    to.print(facts)
    rows = _shares(found["hot_classes"], found["allocated"]["blocks"])
    to.print(_table("sizes asked for most", ("bytes", "blocks", "share", "together", "peak live"),
                    [(f"{r['from']}–{r['to']}", f"{r['blocks']:,}", s, size(r["bytes"]), size(r["peak_live_bytes"]))
                     for r, s in rows]))
    rows = _shares(found["lifetimes"], found["frees"]["blocks"])
    to.print(_table("how long they lived", ("up to", "blocks", "share", "together"),
                    [(time(r["to_ns"]), f"{r['blocks']:,}", s, size(r["bytes"])) for r, s in rows]))


def _facts(found: dict) -> list[tuple[str, str]]:
    peak, never, crossed, fragments = (found[k] for k in ("peak", "never_freed", "cross_thread", "fragmentation"))
    threads = plural(found["thread_count"], "thread")
    facts = [("events", f"{found['events']:,} in {time(found['duration_us'] * 1000)}, {threads}"),
             ("kinds", ", ".join(f"{n:,} {k.replace('_', ' ')}" for k, n in found["kinds"].items() if n)),
             ("peak live", f"{size(peak['live_bytes'])} (most blocks: {peak['live_blocks']:,})"),
             ("allocated", f"{size(found['allocated']['bytes'])} in {plural(found['allocated']['blocks'], 'block')}"),
             ("never freed", f"{size(never['bytes'])} in {plural(never['blocks'], 'block')}"),
             ("freed by another thread", f"{crossed['share']:.1%} of blocks, {crossed['bytes_share']:.1%} of bytes"),
             ("fragmentation potential", f"{fragments['potential']:.1%}" if fragments["held_peak_bytes"] else "")]
    facts = [(name, value) for name, value in facts if value]
    unknown = found["frees"]["of_unknown"]
    return facts + ([("frees of blocks not recorded", f"{unknown:,}")] if unknown else [])


def _shares(rows: list[dict], whole: int) -> list[tuple[dict, str]]:
    return [(row, f"{row['blocks'] / max(whole, 1):.1%}") for row in rows]


def _table(title: str, heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> Table:
    table = Table(title=title, title_justify="left", box=None)
    for head in heads:
        table.add_column(head, justify="right")
    for row in rows:
        table.add_row(*row)
    return table
