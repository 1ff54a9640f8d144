"""Runs a program of bench/coherence and reads what it counted."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

WORKLOADS = ("small", "medium-small", "mstress", "maltest", "big", "pairs", "larson")
CORES = 60
SEED = 1
LONGEST_RUN_S = 600

# A run stands for a few milliseconds of a machine with as many cores, in which nothing grows old enough to be returned.
TIME_STANDS_STILL = {"REHEAP_DECAY_MS": "600000", "MIMALLOC_PURGE_DELAY": "600000"}


class Failed(Exception):
    """The program did not run to its end."""


@dataclass(frozen=True)
class Counted:
    """What one run counted; the names are those that report.cpp prints."""

    totals: dict

    def an_operation(self, name: str) -> float:
        return self.totals[name] / self.totals["operations"]

    @property
    def names_locks(self) -> bool:
        """Whether the allocator says when it holds one."""
        return bool(self.totals["locks"])

    def share_of_others(self) -> float | None:
        """Of the pages that had been some core's before, how many were another's."""
        pages = self.totals["pages"]
        return self.totals["pages_of_others"] / pages if pages else None


def run(program: Path, workload: str, cores: int, operations: int, seed: int = SEED) -> Counted:
    command = [str(program), "simulate", workload, str(cores), str(operations), str(seed)]
    try:
        done = subprocess.run(command, env={**os.environ, **TIME_STANDS_STILL}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=LONGEST_RUN_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failed(f"{workload}: {error}") from None
    if done.returncode != 0:
        raise Failed(f"{workload}: ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    try:
        return Counted(json.loads(done.stdout))
    except ValueError:
        raise Failed(f"{workload}: what it printed is no JSON: {done.stdout[:200]}") from None
