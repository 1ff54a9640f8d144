"""Turning samples into tables and JSON: one block for each metric, one row for each allocator."""

import json
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .allocators import Allocator
from .measuring import Sample
from .statistics import Summary, paired_ratios, summarize
from .table import number, render, span

Rows = list[list[Sample | None]]


@dataclass(frozen=True)
class Metric:
    key: str
    title: str
    value: Callable[[Sample], float | None]
    digits: int


WALL = Metric("wall_s", "wall time, s", lambda sample: sample.wall_s, 2)
CPU = Metric("cpu_s", "CPU time (user + system), s", lambda sample: sample.cpu_s, 2)
PEAK = Metric(
    "peak_mib",
    "peak resident memory, MiB",
    lambda sample: None if sample.peak_kib is None else sample.peak_kib / 1024,
    1,
)
FAULTS = Metric("minor_faults", "minor page faults", lambda sample: sample.faults, 0)
METRICS = [WALL, CPU, PEAK, FAULTS]
TITLE_WIDTH = max(len(metric.title) for metric in METRICS)  # so that the blocks' columns line up


@dataclass(frozen=True)
class Row:
    """One allocator under one metric: its values, and its ratio to the first allocator's."""

    name: str
    values: Summary | None
    ratio: Summary | None


def metric_values(samples: list[Sample | None], metric: Metric) -> list[float | None]:
    return [None if sample is None else metric.value(sample) for sample in samples]


def compare(allocators: list[Allocator], samples: Rows, metric: Metric, spread=summarize) -> list[Row]:
    """Ratios are taken round by round against the first allocator; `spread` makes their middle and range."""
    base = metric_values(samples[0], metric)
    rows = []
    for place, (allocator, own) in enumerate(zip(allocators, samples)):
        values = metric_values(own, metric)
        ratio = spread(paired_ratios(values, base)) if place else None
        rows.append(Row(allocator.name, summarize(values), ratio))
    return rows


def metric_table(allocators: list[Allocator], samples: Rows, metric: Metric) -> str:
    base = allocators[0].name
    header = [metric.title.ljust(TITLE_WIDTH), "median", "min .. max", f"x {base}", "min .. max"]
    return render(header, [_cells(row, metric) for row in compare(allocators, samples, metric)])


def _cells(row: Row, metric: Metric) -> list[str]:
    cells = ["  " + row.name, *summary_cells(row.values, metric.digits)]
    return cells + (summary_cells(row.ratio, 3) if row.ratio else [])


def summary_cells(summary: Summary | None, digits: int) -> list[str]:
    if summary is None:
        return [number(None), number(None)]
    return [number(summary.median, digits), span(summary.low, summary.high, digits)]


def tables(allocators: list[Allocator], samples: Rows, metrics: list[Metric] = METRICS) -> str:
    return "\n\n".join(metric_table(allocators, samples, metric) for metric in metrics)


def rows_as_json(allocators: list[Allocator], samples: Rows, metrics: list[Metric] = METRICS) -> dict:
    """Raw values by allocator and metric, in the order of the rounds; null where not measured."""
    return {
        allocator.name: {metric.key: metric_values(own, metric) for metric in metrics}
        for allocator, own in zip(allocators, samples)
    }


def not_measured(missing: dict[str, str]) -> str:
    return "\n".join(f"{name} was not measured: {reason}" for name, reason in missing.items())


def export(path: Path, benchmark: str, allocators: list[Allocator], missing: dict, results) -> None:
    """Writes everything one needs to compute the tables again."""
    document = {
        "benchmark": benchmark,
        "machine": machine(),
        "allocators": {allocator.name: allocator.version for allocator in allocators},
        "not_measured": missing,
        "results": results,
    }
    path.write_text(json.dumps(document, indent=2) + "\n")


def machine() -> dict:
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_mib": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20,
        "load": os.getloadavg()[0],
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
