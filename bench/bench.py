#!/usr/bin/env python3
"""./dev bench: measures allocators by the lab of this tree. One command a question, each with --help of its own."""

import sys

import controls
import corpus
import document
import fast_path
import hardened
import heaps
import hours
import idle
import latency
import link
import misuse
import musl
import peers.linux
import programs
import startup
import survivors
import synthetic
import threads
import watched
import windows
from calibration import run as calibration
from coherence import run as coherence
from common import record
from common.errors import ERRORS, run_main
from reheap_lab.errors import LabError

MEASURING = {
    "fast-path": (fast_path.main, "instructions of malloc and free on their fast paths"),
    "startup": (startup.main, "memory and time added to a program that hardly allocates"),
    "threads": (threads.main, "a thread's birth and death"),
    "idle": (idle.main, "memory kept by a process that freed everything and sleeps"),
    "survivors": (survivors.main, "memory kept by a process in which a few blocks of many survive"),
    "hours": (hours.main, "memory held by a server for days whose sizes shift"),
    "latency": (latency.main, "how long each single malloc and free takes under load"),
    "heaps": (heaps.main, "first-class heaps: made, filled, churned and destroyed"),
    "misuse": (misuse.main, "which misuse of memory is stopped"),
    "synthetic": (synthetic.main, "well-known patterns at 1, 2 and 4 threads"),
    "programs": (programs.main, "real programs: linkers, compilers, solvers, interpreters, servers, tools"),
    "watched": (watched.main, "instructions that sampled guards and profiles add to real programs"),
    "link": (link.main, "a ThinLTO link of a real C++ library (what ./dev run shows)"),
    "controls": (controls.main, "whether all this sees a difference that was planted, and none where there is none"),
}
ELSEWHERE = {
    "calibration": (calibration.main, "the lab itself, on what is known beforehand (docs/lab-calibration.md)"),
    "coherence": (coherence.main, "how allocators scale to more cores than there are, by simulation"),
    "hardened": (hardened.main, "instructions of the hardened build, of calls and of real programs"),
    "musl": (musl.main, "programs made for musl, on its own malloc and on reheap"),
    "windows": (windows.main, "Windows programs under Wine, on allocators of its own list"),
}
PREPARING = {
    "peers": (peers.linux.main, "fetch and build the peers that --with can name"),
    "corpus": (corpus.main, "fetch and compile what the link links"),
}
TELLING = {
    "document": (document.main, "put what was recorded into docs/performance.md, as tables and plots"),
}
COMMANDS = {**PREPARING, **MEASURING, **ELSEWHERE, **TELLING}


def usage() -> str:
    return "\n".join([
        "usage: ./dev bench COMMAND [OPTIONS]",
        "",
        *(f"  {name:<12}{what}" for name, (_, what) in COMMANDS.items()),
        f"  {'all':<12}every measurement from fast-path to controls, into build/bench/performance.json",
        "",
        "options of the measurements: --with NAME,... --rounds N --quick --record FILE --export FOLDER "
        "--without-reheap",
        "./dev bench COMMAND --help says more.",
    ])


def run_all(arguments: list[str]) -> int:
    """Every measurement with the same options, into one record. One that cannot be made does not end the others."""
    if not any(argument.startswith(("--record", "-h", "--help")) for argument in arguments):
        arguments = [*arguments, "--record", str(record.FILE)]
    statuses = []
    for name, (run, _) in MEASURING.items():
        print(f"\n== {name}\n", flush=True)
        try:
            statuses.append(run(arguments))
        except ERRORS as error:
            print(f"bench: {name} was not measured: {error}", file=sys.stderr, flush=True)
            statuses.append(1)
    return max(statuses)


def main() -> int:
    command, *arguments = sys.argv[1:] or ["--help"]
    if command in ("-h", "--help", "help"):
        print(usage())
        return 0
    if command == "all":
        return run_all(arguments)
    if command not in COMMANDS:
        raise LabError(f"unknown command '{command}'; known: {', '.join(COMMANDS)}, all")
    return COMMANDS[command][0](arguments)


if __name__ == "__main__":
    run_main(main)
