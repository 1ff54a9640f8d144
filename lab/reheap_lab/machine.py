"""What the measuring was done on."""

import os
import pathlib
import platform
import re
import sys
from typing import Any

from reheap_lab import figures, host


def describe() -> dict[str, Any]:
    """Only what could be found out."""
    facts = {
        **(_windows() if host.WINDOWS else _unix()),
        "libc": " ".join(platform.libc_ver()).strip() or None,
        "cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "memory_kib": _memory_kib(),
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "virtual": _virtual(),
        "thp": _chosen(_read("/sys/kernel/mm/transparent_hugepage/enabled")),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
    }
    return {name: value for name, value in facts.items() if value is not None}


def warnings(facts: dict[str, Any]) -> list[str]:
    found = []
    cores, load = facts.get("usable_cores") or facts.get("cores") or 1, facts.get("load", 0)
    if load > 0.3 * cores:
        found.append(f"the machine was busy before it began (load {load} on {figures.plural(cores, 'core')}): stop "
                     "what else runs")
    if facts.get("governor") in ("powersave", "ondemand", "conservative"):
        found.append(f"the CPU's frequency follows the load (governor {facts['governor']}): "
                     "cpupower frequency-set -g performance steadies it")
    return found


def _unix() -> dict[str, Any]:
    return {"system": platform.system().lower(), "architecture": platform.machine(), "kernel": platform.release(),
            "cpu": _cpu()}


def _windows() -> dict[str, Any]:
    """Not by `platform`, which asks a service that may be absent."""
    version = sys.getwindowsversion()
    return {"system": "windows", "architecture": os.environ.get("PROCESSOR_ARCHITECTURE"),
            "kernel": f"{version.major}.{version.minor}.{version.build}",
            "cpu": os.environ.get("PROCESSOR_IDENTIFIER")}


def _read(path: str) -> str | None:
    try:
        return pathlib.Path(path).read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None


def _cpu() -> str | None:
    found = re.search(r"^(?:model name|Model|Hardware)\s*:\s*(.+)$", _read("/proc/cpuinfo") or "", re.MULTILINE)
    return found.group(1) if found else platform.processor() or None


def _memory_kib() -> int | None:
    found = re.search(r"^MemTotal:\s*(\d+) kB", _read("/proc/meminfo") or "", re.MULTILINE)
    return int(found.group(1)) if found else None


def _virtual() -> bool | None:
    info = _read("/proc/cpuinfo")
    return bool(re.search(r"^flags\s*:.*\bhypervisor\b", info, re.MULTILINE)) if info else None


def _chosen(text: str | None) -> str | None:
    found = re.search(r"\[(\w+)\]", text or "")
    return found.group(1) if found else None
