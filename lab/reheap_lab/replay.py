"""`reheap replay`: plays recorded traces back under each allocator, and judges as `reheap compare` does.

The figures are those of the replay itself: the replayer's own tables, and the time before it begins, are taken out of
them. What the runner sees from outside stays only where that makes no difference.
"""

import json
import pathlib
import tempfile
from dataclasses import dataclass

import click

from reheap_lab import (allocators, compare, export, host, interrupts, native, options, runner, telling, terminal,
                        trace, windows)
from reheap_lab.errors import LabError
from reheap_lab.results import Comparison, Series
from reheap_lab.workload import CommandWorkload, Outcome

COMPILED_MAGIC = b"REHEAPOP"
NEAR = 0.01  # of the recorded peak of live memory


@dataclass
class How:
    """What of the replay can be chosen."""

    pace: str = "full"
    order: str = "program"
    touch: str = "recorded"
    threads: int = 1
    windows: bool = False  # by Windows' replayer, on Windows' allocators

    def program(self) -> str:
        return str(windows.part(windows.REPLAYER) if self.windows else native.program("reheap-replay"))

    def file(self, path: pathlib.Path) -> str:
        """As the replayer knows it."""
        return windows.windows_path(path) if self.windows else str(path)

    def choose(self, wanted: str | None) -> list:
        if self.windows:
            return windows.choose(wanted, [self.program()])
        return allocators.choose(wanted, compare.command_kind([self.program()]))

    def words(self) -> list[str]:
        return ["--pace", self.pace, "--order", self.order, "--touch", self.touch, "--threads", str(self.threads)]


class ReplayWorkload(CommandWorkload):
    kind = "replay"

    def __init__(self, how: How, *arguments):
        super().__init__(*arguments)
        self.how = how
        self.furthest = 0.0  # from the recorded peak of live memory, of all replays
        self.last: dict = {}  # what the last replay said

    def argv(self, allocator):
        sampling = ["--sample-ms", str(self.settings.sample_ms)] if self.settings.sample_ms else []
        return [*self.command, *sampling, "--out", self.how.file(self.path("replay.json"))]

    def complete(self, outcome: Outcome) -> None:
        try:
            said = json.loads(self.path("replay.json").read_text())
        except (OSError, ValueError):
            outcome.failed = outcome.failed or "the replay left no results"
            return
        self.last = said
        outcome.measured.figures = figures_of(said, outcome.measured.figures)
        outcome.measured.series = series_of(said)
        self._check_peak(said)

    def _check_peak(self, said: dict) -> None:
        wanted = said["recorded"]["peak_live_bytes"] * said["copies"]
        off = abs(said["peak_live_bytes"] / wanted - 1) if wanted else 0
        if said["copies"] == 1:
            self.furthest = max(self.furthest, off)

    def notes(self) -> list[str]:
        if self.furthest <= NEAR:
            return []
        return [f"threads ran in another order than when they were recorded: the peak of live memory was up to "
                f"{self.furthest:.1%} off. For figures of memory: --order strict"]


def figures_of(said: dict, outside: dict[str, float]) -> dict[str, float]:
    """Of one replay; of what was measured from outside only counts stay."""
    kept = ("minor_faults", "major_faults", "voluntary_switches", "involuntary_switches")
    wall = said["wall_us"] / 1e6
    figures = {name: outside[name] for name in kept if name in outside}
    figures |= {"wall_s": wall, "peak_live_kib": said["peak_live_bytes"] / 1024,
                "ordering_errors": said["errors"]["ordering"]}
    if said["most_threads"] * said["copies"] > 1:
        figures |= {f"{kind}_wait_s": said["waits"][f"{kind}_us"] / 1e6 for kind in ("handoff", "epoch")}
    if "cpu_us" in said:
        figures["cpu_s"] = said["cpu_us"] / 1e6
    if wall and "cpu_s" in figures:
        figures["utilisation"] = figures["cpu_s"] / wall
    for name, key, unit in (("peak_rss_kib", "peak_heap_bytes", 1024), ("mean_rss_kib", "mean_heap_bytes", 1024),
                            ("resident_over_live", "resident_over_live", 1),
                            ("peak_resident_over_live", "peak_resident_over_live", 1)):
        if said.get(key, 0) > 0:  # where the replayer's own is more than what was seen, the heap's is not known
            figures[name] = said[key] / unit
    return figures


def series_of(said: dict) -> Series:
    rows = said["series"]
    times = [t / 1e6 for t in rows["t_us"]]
    series = Series(t_s=times)
    for name, key in (("live_kib", "live_bytes"), ("rss_kib", "heap_bytes"), ("commit_kib", "commit_bytes")):
        setattr(series, name, [max(0, b) / 1024 for b in rows.get(key, [])])
    series.busy_cores = runner.busy_cores(times, rows["cpu_us"])
    return series


# ---- the command ------------------------------------------------------------------------------

def compile_traces(traces: list[pathlib.Path], folder: pathlib.Path) -> tuple[pathlib.Path, list[str]]:
    """The compiled form, and warnings about what of the traces could not be used."""
    if len(traces) == 1 and traces[0].open("rb").read(len(COMPILED_MAGIC)) == COMPILED_MAGIC:
        return traces[0], []
    compiled = folder / "trace.compiled"
    status, printed = trace.run(["compile", *trace.names(traces), "-o", str(compiled)], quiet=True)
    said = json.loads(printed)
    if said["operations"] == 0:
        raise LabError(f"{traces[0]} holds no allocation that could be replayed")
    damage = said["damage"]["told"]
    warnings = ["the trace is damaged, and only what could be read is replayed: " + "; ".join(damage)] * bool(damage)
    if said["stopped"]:
        warnings.append(f"the recording {trace.stopped(said['stopped'])}: what the program did after that is not in it")
    return compiled, warnings + [f"{said[key]:,} {text}" for key, text in (
        ("frees_of_unknown", "frees were of blocks that the trace does not know: they are left out"),
        ("frees_missed", "blocks were handed out again without a free between: a free was put in"),
        ("lost", "events could not be recorded: they are missing")) if said[key]]


def replay(traces: list[pathlib.Path], how: How, chosen, settings, watch=None) -> Comparison:
    settings.output = "discard"
    made: list[ReplayWorkload] = []

    def workload(*arguments) -> ReplayWorkload:
        made.append(ReplayWorkload(how, *arguments))
        return made[0]

    with tempfile.TemporaryDirectory(prefix="reheap-lab-replay-") as folder:
        with interrupts.open_to_them():
            compiled, warnings = compile_traces(traces, pathlib.Path(folder))
        line = [how.program(), how.file(compiled), *how.words()]
        comparison = compare.compare(line, chosen, settings, watch, workload)
    comparison.command = [pathlib.Path(how.program()).name, *map(str, traces), *how.words()]
    asked = [*["--windows"] * how.windows, *how.words()]
    comparison.reproduce = compare.repeating(comparison, "replay", [*asked, "--", *map(str, traces)])
    comparison.warnings += warnings + made[0].notes()
    comparison.settings |= {"pace": how.pace, "order": how.order, "touch": how.touch, "copies": how.threads}
    own = made[0].last.get("own")
    if own:
        comparison.settings["replayer"] = {
            "excluded_tables_kib": own["tables_bytes"] / 1024, "excluded_at_start_kib": own["at_start_bytes"] / 1024,
            "excluded_per_thread_kib": own["per_thread_bytes"] / 1024}
        if "reading_us" in own:
            comparison.settings["replayer"]["reading_s"] = own["reading_us"] / 1e6
    return comparison


def tell_replayer(comparison: Comparison) -> None:
    own = comparison.settings.get("replayer")
    if own:
        click.echo(f"The replayer's own memory is left out of all figures: {own['excluded_tables_kib']:,.0f} KiB of "
                   f"tables, {own['excluded_per_thread_kib']:,.0f} KiB for each running thread, and "
                   f"{own['excluded_at_start_kib']:,.0f} KiB that were resident when it began.")
    if own and "reading_s" in own:
        click.echo(f"Reading the operations alone takes {own['reading_s']:.3f} s of CPU time, which is part of the "
                   "time shown.")


@click.command()
@options.options(options.MEASURING)
@click.option("--pace", type=click.Choice(["full", "recorded"]), default="full", show_default=True,
              help="As fast as possible, or at the times recorded")
@click.option("--order", type=click.Choice(["program", "strict"]), default="program", show_default=True,
              help="Only what the program ordered, for time; or live memory as recorded to a percent, for memory")
@click.option("--touch", type=click.Choice(["recorded", "whole", "ends"]), default="recorded", show_default=True,
              help="How much of each block is written")
@click.option("--threads", type=click.IntRange(1, 1024), default=1, show_default=True, metavar="N",
              help="Run the recorded program N times at once")
@click.option("--windows", "for_windows", is_flag=True,
              help="On allocators of Windows, under Wine: the system's and reheap's, or NAME=path/to/reheap.dll")
@click.argument("traces", nargs=-1, required=True, type=trace.EXISTING)
def command(traces: tuple[pathlib.Path, ...], pace: str, order: str, touch: str, threads: int, for_windows: bool,
            exports: tuple[pathlib.Path, ...], **words) -> None:
    """Play TRACES back under each allocator in interleaved rounds, and judge.

    Several files are those of one program's processes: they are played in one process, in the order of their times.
    """
    settings = options.settings_of(words)
    for path in exports:
        export.check_path(path)
    how = How(pace, order, touch, threads, for_windows or host.WINDOWS)
    chosen = how.choose(words["with_"])
    with interrupts.held():
        with terminal.ProgressLine(terminal.Aside()) as watch:
            comparison = replay(list(traces), how, chosen, settings, watch)
        telling.tell(comparison, exports)
        tell_replayer(comparison)
