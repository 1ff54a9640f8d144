"""A server under each allocator: start it, wait until it answers, drive it with a load command, leave it idle, stop it.

Memory after idle is what the server holds on to when nobody asks anything of it. Wall time is that of the load command;
CPU time and faults are the server's, from its start to its end.
"""

import bisect
import os
import pathlib
import signal
import subprocess
import time

from reheap_lab import host, runner
from reheap_lab.errors import LabError
from reheap_lab.launch import Launch
from reheap_lab.runner import Ask, Measured
from reheap_lab.settings import Settings
from reheap_lab.workload import CommandWorkload

POLL = 0.05
SETTLE = 0.3  # seconds a server without --ready gets to start


class ServerWorkload(CommandWorkload):
    kind = "server"

    def __init__(self, command: list[str], settings: Settings, folder: pathlib.Path):
        super().__init__(command, settings, folder)
        self.server = settings.server

    def printed(self) -> pathlib.Path:
        return self.path("load-stdout")

    def drive(self, launch: Launch, ask: Ask) -> Measured:
        began = time.monotonic()
        process = runner.start(launch, ask, self.path("record"))
        try:
            load = self._load(process)
            idle_from = time.monotonic() - began
            self._wait(process, self.server.idle)
            idle_to = time.monotonic() - began
            self._stop(process)
        except BaseException:
            host.end(process)
            raise
        measured = runner.finish(process, self.path("record"))
        return self._as_server(measured, load, idle_from, idle_to)

    def _load(self, process: subprocess.Popen) -> float:
        """Seconds the load took."""
        self._wait_until_ready(process)
        began = time.monotonic()
        self.shell(self.server.load, "--load", self.printed(), self.settings.timeout)
        took = time.monotonic() - began
        self._must_live(process, "during the load")
        return took

    def _wait_until_ready(self, process: subprocess.Popen) -> None:
        if self.server.ready is None:
            self._wait(process, SETTLE)
            return
        deadline = time.monotonic() + self.server.ready_timeout
        while time.monotonic() < deadline:
            self._must_live(process, "before it was ready")
            if self._is_ready(deadline - time.monotonic()):
                return
            time.sleep(POLL)
        raise LabError(f"the server was not ready after {self.server.ready_timeout:g} s (--ready {self.server.ready})")

    def _is_ready(self, at_most: float) -> bool:
        """Who asks may wait for the answer himself."""
        try:
            return subprocess.run(host.shell(self.server.ready), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, cwd=self.cwd(), env=os.environ | self.settings.env,
                                  timeout=at_most).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def _wait(self, process: subprocess.Popen, seconds: float) -> None:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            return
        self._must_live(process, "before it was stopped")

    def _must_live(self, process: subprocess.Popen, when: str) -> None:
        if process.poll() is None:
            return
        raise LabError(self.with_what_it_said(f"the server ended {when}"))

    def _stop(self, process: subprocess.Popen) -> None:
        if self.server.stop is None:
            process.terminate()
        else:
            self.shell(self.server.stop, "--stop")
        try:
            process.wait(self.server.stop_timeout)
        except subprocess.TimeoutExpired:
            by = "SIGTERM" if self.server.stop is None else f"--stop {self.server.stop}"
            raise LabError(f"the server was still there {self.server.stop_timeout:g} s after {by}. Name what stops it: "
                           "--stop CMD") from None

    def _as_server(self, measured: Measured, load: float, idle_from: float, idle_to: float) -> Measured:
        measured.figures["wall_s"] = load
        measured.figures.pop("utilisation", None)
        idle = idle_memory(measured.series.t_s, measured.series.rss_kib, idle_from, idle_to)
        if idle is not None:
            measured.figures["idle_rss_kib"] = idle
        if measured.signal == signal.SIGTERM or (measured.stopped and measured.signal is None):  # as was asked of it
            measured.signal, measured.status = None, 0
        return measured


def idle_memory(times: list[float], rss_kib: list[float], start: float, end: float) -> float | None:
    """The last sample while it was idle: what is left when everything had its time to go back."""
    last = bisect.bisect_right(times, end) - 1
    return rss_kib[last] if len(times) == len(rss_kib) and last >= 0 and times[last] >= start else None
