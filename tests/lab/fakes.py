"""Stands in for the native runner, within this process: it writes the runner's lines, and starts nothing.

How runs go is told by a plan: library's name (or "system") -> {wall_us, peak, peak_of_all, exit, signal, timed_out,
prints, says, served_by, others_us, no_samples, left, cannot, cannot_later, untraceable, serves, stops_by}. Probes go by
it too, but for those that begin with `cannot`, `untraceable` and `serves`.
"""

import itertools
import json
import os
import pathlib
import struct
import subprocess

from reheap_lab import allocators
from reheap_lab.allocators import Allocator
from reheap_lab.launch import Launch
from reheap_lab.runner import Ask

LIBC = "/lib/x86_64-linux-gnu/libc.so.6"
_changing = itertools.count()


def elf_bytes(bits: int = 64, machine: int = 62, kind: int = 3) -> bytes:
    """An ELF header and nothing behind it."""
    ident = b"\x7fELF" + bytes([bits // 32, 1, 1]) + bytes(9)
    return ident + struct.pack("<HHI", kind, machine, 1) + bytes(40)


class FakeProcess:
    """As much of Popen as the lab uses. A server ends when it is told to."""

    def __init__(self, returncode: int | None, said: str = "", on_end=lambda: None):
        self.returncode, self._said, self._on_end = returncode, said, on_end

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int | None:
        if self.returncode is None:
            raise subprocess.TimeoutExpired("fake", timeout)
        return self.returncode

    def terminate(self) -> None:
        if self.returncode is None:
            self.returncode = 0
            self._on_end()

    def communicate(self) -> tuple[str, str]:
        return "", self._said


class Fake:
    """The made-up lab."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.calls: list[tuple[Launch, Ask]] = []  # all but the probes
        self._plan: dict[str, dict] = {}

    def plan(self, **by_library: dict) -> None:
        self._plan = by_library

    def library(self, name: str) -> pathlib.Path:
        path = self.folder / f"lib{name}.so"
        path.write_bytes(elf_bytes())
        return path

    def allocators(self, *names: str) -> list[Allocator]:
        return [allocators.system() if n == "system" else Allocator(n, (self.library(n),)) for n in names]

    def start(self, launch: Launch, ask: Ask, out: pathlib.Path) -> FakeProcess:
        preloaded = launch.env.get("LD_PRELOAD", "").split(":")
        library = next((path for path in preloaded if path and "witness" not in path), None)
        name = pathlib.Path(library).stem.removeprefix("lib") if library else "system"
        plan, probing = self._plan.get(name, {}), "probe" in out.name
        if not probing:
            self.calls.append((launch, ask))
            if "cannot" in plan:
                _print(ask, plan)
                return FakeProcess(125, plan["cannot"])
            if not ask.account and "cannot_later" in plan:
                return FakeProcess(125, plan["cannot_later"])
            if ask.account and "untraceable" in plan:
                return FakeProcess(125, plan["untraceable"])
        self._testify(launch, plan.get("served_by", LIBC if name == "system" else library))
        _print(ask, plan)
        if plan.get("serves") and not probing:
            return FakeProcess(None, on_end=lambda: _write(ask, plan, out, stopped=True))
        _write(ask, plan, out)
        return FakeProcess(0)

    @staticmethod
    def _testify(launch: Launch, server: str) -> None:
        lines = [f"7\t50\t{name}\t{server}\n" for name in ("malloc", "free", "calloc", "realloc") if server]
        if "REHEAP_WITNESS" in launch.env:
            pathlib.Path(launch.env["REHEAP_WITNESS"]).write_text("".join(lines))


def _print(ask: Ask, plan: dict) -> None:
    if ask.stdout and ask.stdout != os.devnull:
        text = plan.get("prints", "same")
        pathlib.Path(ask.stdout).write_text(str(next(_changing)) if text == "time" else text)
    if "says" in plan:
        pathlib.Path(ask.stderr).write_text(plan["says"])


def _write(ask: Ask, plan: dict, out: pathlib.Path, stopped: bool = False) -> None:
    wall = plan.get("wall_us", 100_000)
    wall = wall() if callable(wall) else wall  # another one each time
    lines = [{"type": "start", "runner": "fake", "system": "linux", "pid": 7}]
    if not plan.get("no_samples"):
        lines += [{"type": "sample", "t_us": wall * i // 10, "rss_kib": 1000 + 100 * i, "cpu_us": wall * i // 10,
                   "processes": 1, "threads": 1} for i in range(10)]
    if "counters" in plan:
        lines.append({"type": "counters", "counters": [
            {"event": event, "value": value, "enabled_ns": enabled, "running_ns": running}
            for event, (value, enabled, running) in plan["counters"].items()]})
    if ask.count_calls:
        lines.append({"type": "calls", "mmap": 12, "munmap": 3})
    if ask.account or ask.count_calls:
        used = {"/usr/bin/program": 1000, "/usr/bin/other": plan.get("others_us", 0)}
        programs = [{"pid": pid, "path": path, "began_ns": 0, "ended_ns": 99, "cpu_us": used[path], "peak_kib": 2000}
                    for pid, path in enumerate(used, 7)]
        lines.append({"type": "programs", "programs": programs})
    if ask.profile_hz:
        modules = plan.get("samples", {LIBC: 30, "[kernel]": 10, "/usr/bin/program": 60})
        lines.append({"type": "profile", "source": "sigprof", "hz": ask.profile_hz, "lost": 1,
                      "modules": [{"module": name, "samples": count} for name, count in modules.items()]})
    end = {"type": "end", "wall_us": wall, "user_us": wall // 2, "system_us": wall // 4,
           "peak_rss_kib": plan.get("peak", 2000), "minor_faults": 5, "major_faults": 0, "voluntary_switches": 1,
           "involuntary_switches": 2, "timed_out": plan.get("timed_out", False), "stopped": stopped,
           "left": plan.get("left", 0)}
    if "peak_of_all" in plan:
        end["peak_tree_pss_kib"] = plan["peak_of_all"]
    ending = {"signal": plan.get("stops_by", 15)} if stopped else \
        {"signal": plan["signal"]} if "signal" in plan else {"exit": plan.get("exit", 0)}
    out.write_text("".join(json.dumps(line) + "\n" for line in [*lines, end | ending]))
