#!/usr/bin/env python3
"""./dev bench: measures allocators side by side. One command a benchmark, each with --help of its own."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import corpus
import fast_path
import idle
import lab
import peers
import run_link
import startup
import synthetic
import threads
import windows
from common.errors import BenchError, run_main

MEASURING = {
    "fast-path": (fast_path.main, "instructions of malloc and free on their shortest ways"),
    "startup": (startup.main, "memory and time added to a program that hardly allocates"),
    "threads": (threads.main, "a thread's birth and death"),
    "idle": (idle.main, "memory kept by a process that freed everything and sleeps"),
    "synthetic": (synthetic.main, "well-known patterns at 1, 2 and 4 threads"),
    "link": (run_link.main, "a ThinLTO link of a real C++ library (what ./dev run shows)"),
}
ELSEWHERE = {
    "lab": (lab.main, "the lab itself, on what is known beforehand (docs/lab-calibration.md)"),
    "windows": (windows.main, "Windows programs under Wine, on allocators of its own list"),
}
PREPARING = {
    "peers": (peers.main, "fetch and build the peers that --with can name"),
    "corpus": (corpus.main, "fetch and compile what the link links"),
}


def usage() -> str:
    lines = [f"  {name:<12}{what}" for name, (_, what) in {**PREPARING, **MEASURING, **ELSEWHERE}.items()]
    return "\n".join(
        [
            "usage: ./dev bench COMMAND [OPTIONS]",
            "",
            *lines,
            f"  {'all':<12}every measurement but windows and lab, one after another",
            "",
            "options of the measurements: --with NAME,... --rounds N --export FILE --without-reheap",
            "./dev bench COMMAND --help says more.",
        ]
    )


def run_all(arguments: list[str]) -> int:
    """Every measurement with the same options; --export FILE becomes one file each, NAME-FILE."""
    statuses = []
    for name, (run, _) in MEASURING.items():
        print(f"\n== {name}\n", flush=True)
        statuses.append(run(_with_own_export(arguments, name)))
    return max(statuses)


def _with_own_export(arguments: list[str], name: str) -> list[str]:
    own = list(arguments)
    for place, argument in enumerate(own):
        if argument == "--export" and place + 1 < len(own):
            own[place + 1] = _named(own[place + 1], name)
        elif argument.startswith("--export="):
            own[place] = "--export=" + _named(argument.removeprefix("--export="), name)
    return own


def _named(path: str, name: str) -> str:
    return str(Path(path).with_name(f"{name}-{Path(path).name}"))


def main() -> int:
    command, *arguments = sys.argv[1:] or ["--help"]
    if command in ("-h", "--help", "help"):
        print(usage())
        return 0
    if command == "all":
        return run_all(arguments)
    commands = {**PREPARING, **MEASURING, **ELSEWHERE}
    if command not in commands:
        raise BenchError(f"unknown command '{command}'; known: {', '.join(commands)}, all")
    return commands[command][0](arguments)


if __name__ == "__main__":
    run_main(main)
