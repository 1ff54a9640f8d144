"""Sorts a profile's modules: time in the allocator, in libc, in the kernel, in the program itself, elsewhere."""

import os
import re
from typing import Any

from reheap_lab.results import Module, Profile

KINDS = ("allocator", "libc", "kernel", "program", "other")
LIBC = re.compile(r"^(libc|libpthread|libm|librt|libdl|ld-linux[\w-]*|ld-musl[\w-]*)([-.][\w.-]+)?\.so(\.|$)|"
                  r"^(ntdll|ucrtbase|msvcrt|msvcr\d+|vcruntime\d+)\.dll$", re.IGNORECASE)  # ntdll has Windows' heap


def kind_of(module: str, libraries: list[str]) -> str:
    """An allocator inside libc cannot be told from the rest of it: that is libc."""
    if module.startswith("["):
        return "kernel" if module == "[kernel]" else "other"
    if os.path.realpath(module) in {os.path.realpath(library) for library in libraries}:
        return "allocator"
    name = re.split(r"[/\\]", module)[-1]
    if LIBC.match(name):
        return "libc"
    return "other" if re.search(r"\.so(\.|$)|\.dll$", name, re.IGNORECASE) else "program"


def read(line: dict[str, Any], libraries: list[str]) -> Profile | None:
    """From the runner's line; None when there is no sample."""
    counts = {m["module"]: m["samples"] for m in line.get("modules", []) if m["samples"] > 0}
    total = sum(counts.values())
    if not total:
        return None
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    modules = [Module(name, count / total, kind_of(name, libraries)) for name, count in ranked]
    shares = {kind: sum(m.share for m in modules if m.kind == kind) for kind in KINDS}
    return Profile(line.get("source", "unknown"), line.get("hz"), total, line.get("lost", 0), shares, modules)
