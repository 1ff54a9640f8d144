"""Calls `reheap-runner`, which measures one process, and reads the lines it writes (docs/lab.md, "The runner")."""

import json
import pathlib
import signal
import subprocess
import typing
from dataclasses import dataclass, field, replace

from reheap_lab import host, native, statistics
from reheap_lab.errors import LabError
from reheap_lab.evidence import Program
from reheap_lab.figures import TICKS
from reheap_lab.launch import Launch
from reheap_lab.results import Series

EVENTS = ("instructions", "cycles")  # where the kernel counts them
FEWEST_SAMPLES = 5  # below, a mean over time or a sum over processes would be of the start alone


@dataclass
class Ask:
    """What one run shall look like, beside its launch."""

    cwd: str | None = None
    stdin: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    timeout: float | None = None
    sample_ms: int = 10
    profile_hz: int | None = None
    events: tuple[str, ...] = EVENTS
    count_calls: bool = False
    account: bool = False


@dataclass
class Measured:
    figures: dict[str, float] = field(default_factory=dict)
    series: Series = field(default_factory=Series)
    status: int | None = None
    signal: int | None = None
    timed_out: bool = False
    stopped: bool = False
    left: int = 0  # processes that outlived the command
    calls: dict[str, int] | None = None
    profile: dict[str, typing.Any] | None = None
    programs: list[Program] | None = None  # when they were accounted for

    def failure(self, timeout: float | None) -> str | None:
        if self.timed_out:
            return f"it took longer than {timeout:g} s" if timeout else "it took too long"
        if self.signal is not None:
            return f"it was ended by signal {self.signal} ({_signal_name(self.signal)})"
        if self.status:
            return f"its exit status was {self.status if self.status < 2**31 else hex(self.status)}"
        return None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def start(launch: Launch, ask: Ask, out: pathlib.Path) -> subprocess.Popen:
    """The runner at work; SIGTERM to it stops the command."""
    argv = launch.argv
    if ask.profile_hz and launch.profiled:
        argv, ask = launch.profiled(ask.profile_hz), replace(ask, profile_hz=None)
    runner = [*launch.before, str(native.program("reheap-runner"))]
    line = [*runner, "--out", str(out), *_options(launch, ask), "--", *argv]
    return subprocess.Popen(line, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")


def _options(launch: Launch, ask: Ask) -> list[str]:
    options = ["--sample-ms", str(ask.sample_ms)]
    for name, value in launch.env.items():
        options += ["--env", f"{name}={value}"]
    for name in launch.unset:
        options += ["--unset", name]
    pairs = {"--cwd": ask.cwd, "--stdin": ask.stdin, "--stdout": ask.stdout, "--stderr": ask.stderr,
             "--timeout": ask.timeout, "--profile": ask.profile_hz, "--watch": launch.watch,
             "--events": ",".join(ask.events) if counts_events(launch) else None}
    for name, value in pairs.items():
        if value is not None:
            options += [name, str(value)]
    account = ask.account or launch.account
    return options + ["--count-calls"] * ask.count_calls + ["--account"] * account


def counts_events(launch: Launch) -> bool:
    """Windows counts none for others, and under Wine its server's would not be the program's."""
    return not (launch.watch or host.WINDOWS)


def finish(process: subprocess.Popen, out: pathlib.Path, launch: Launch | None = None) -> Measured:
    try:
        _, said = process.communicate()
    except BaseException:  # the user's Ctrl-C above all: the command must not outlive us
        host.end(process)
        raise
    if process.returncode == 0:
        return read(out, launch)
    raise LabError(said.strip().split("\n")[-1] or f"reheap-runner {ending(process.returncode)}")


def ending(status: int) -> str:
    """Of a process of ours, as Python has it."""
    return f"was ended by signal {-status} ({_signal_name(-status)})" if status < 0 else f"ended with status {status}"


def measure(launch: Launch, ask: Ask, out: pathlib.Path) -> Measured:
    return finish(start(launch, ask, out), out, launch)


# ---- the runner's lines -------------------------------------------------------------------------

def read(path: pathlib.Path, launch: Launch | None = None) -> Measured:
    lines = [_line(path, number, text) for number, text in
             enumerate(path.read_text(encoding="utf-8", errors="replace").split("\n"), 1) if text]
    if not any(line["type"] == "end" for line in lines):
        raise LabError(f"{path}: the runner's record has no end; was the runner killed?")
    if launch and launch.amend:
        lines = launch.amend(lines)
    by_type = {line["type"]: line for line in lines}
    measured = _ended(by_type["end"])
    _add_samples(measured, [line for line in lines if line["type"] == "sample"])
    _add_peak_of_all(measured, by_type["end"])
    _add_events(measured, by_type.get("counters", {}).get("counters", []))
    if "calls" in by_type:
        measured.calls = {name: count for name, count in by_type["calls"].items() if name != "type"}
    measured.profile = by_type.get("profile")
    if "programs" in by_type:
        measured.programs = [_program(program) for program in by_type["programs"]["programs"]]
    return measured


def _line(path: pathlib.Path, number: int, text: str) -> dict[str, typing.Any]:
    try:
        line = json.loads(text)
        line["type"]
        return line
    except (json.JSONDecodeError, KeyError, TypeError):
        raise LabError(f"{path}:{number}: not a line of the runner: {text[:60]!r}") from None


def _program(line: dict[str, typing.Any]) -> Program:
    return Program(**{"path": ""} | line | {"mapped": {one["path"]: one["kib"] for one in line.get("mapped", [])}})


def _ended(end: dict[str, typing.Any]) -> Measured:
    figures: dict[str, float] = {}
    for name in ("wall", "user", "system"):
        if f"{name}_us" in end:
            figures[f"{name}_s"] = end[f"{name}_us"] / 1e6
    for name in ("peak_rss_kib", "peak_commit_kib", "minor_faults", "major_faults", "voluntary_switches",
                 "involuntary_switches"):
        if name in end:
            figures[name] = end[name]
    _add_cpu(figures)
    return Measured(figures, status=end.get("exit"), signal=end.get("signal"), timed_out=end.get("timed_out", False),
                    stopped=end.get("stopped", False), left=end.get("left", 0))


def _add_cpu(figures: dict[str, float]) -> None:
    """The kernel splits it by ticks. Where none fell into one of the two it calls that 0, which of a short command
    says nothing."""
    both = [figures[name] for name in ("user_s", "system_s") if name in figures]
    if len(both) == 2 and sum(both) > 0:
        figures["cpu_s"] = sum(both)
        if figures.get("wall_s"):
            figures["utilisation"] = figures["cpu_s"] / figures["wall_s"]
    if 0 in both and sum(both) < TICKS:
        figures.pop("user_s", None)
        figures.pop("system_s", None)


def _add_samples(measured: Measured, samples: list[dict[str, typing.Any]]) -> None:
    series = measured.series
    series.t_s = [sample["t_us"] / 1e6 for sample in samples]
    for name in ("rss_kib", "commit_kib"):
        if samples and all(name in sample for sample in samples):
            setattr(series, name, [sample[name] for sample in samples])
    if samples and all("cpu_us" in sample for sample in samples):
        series.busy_cores = busy_cores(series.t_s, [sample["cpu_us"] for sample in samples])
    if len(samples) >= FEWEST_SAMPLES and series.rss_kib and "wall_s" in measured.figures:
        mean = statistics.time_weighted(series.t_s, series.rss_kib, measured.figures["wall_s"])
        if mean is not None:
            measured.figures["mean_rss_kib"] = mean


def _add_peak_of_all(measured: Measured, end: dict[str, typing.Any]) -> None:
    """When several processes lived at a time. What was seen of them together is no more than samples; the largest one's
    own peak is exact."""
    if "peak_tree_pss_kib" in end and len(measured.series.t_s) >= FEWEST_SAMPLES:
        measured.figures["peak_tree_kib"] = max(end["peak_tree_pss_kib"], end.get("peak_rss_kib", 0))


def _add_events(measured: Measured, counters: list[dict[str, typing.Any]]) -> None:
    """Those counted for a part of the time only are scaled to all of it; those never counted are unknown, not 0."""
    for counter in counters:
        if counter["event"] in EVENTS and counter["running_ns"]:
            count = counter["value"] * counter["enabled_ns"] / counter["running_ns"]
            measured.figures[counter["event"]] = float(round(count))


def busy_cores(times: list[float], cpu_us: list[int]) -> list[float]:
    """Between one sample and the next. A process that ends takes its time along: never less than none."""
    spans = zip([0.0, *times], times, [0, *cpu_us], cpu_us)
    return [max(0.0, (c1 - c0) / 1e6 / (t1 - t0)) if t1 > t0 else 0.0 for t0, t1, c0, c1 in spans]
