#!/usr/bin/env python3
"""Compares a C runtime DLL under reheap with the same DLL alone, check by check.

The program (program/main.cpp) writes a line per check. Under reheap each must read as it does on the plain DLL, or, on
Wine's, as on Microsoft's: where the two differ, reheap does as Microsoft's does. What else may differ stands in
differences.txt with its reason, and what stands there must be seen."""

import dataclasses
import os
import pathlib
import re
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "comparison"))
import comparing  # noqa: E402
from comparing import Difference, Failure, checks_of, compare, never_seen, run  # noqa: E402

PATIENCE = 120
FEWEST_CHECKS = 350
CONTROL = comparing.Control(missed="NOT REHEAP'S|by the CRT", also="end:", fewest=FEWEST_CHECKS)
SKIPPED = 77  # a status that ctest knows


class Unavailable(Exception):
    """What a test needs cannot be fetched."""


@dataclasses.dataclass(frozen=True)
class Runtime:
    """A DLL to test. One that is fetched is put beside the program; another is the system's."""
    dll: str
    version: str  # of the file, as the program tells it
    maker: str
    item: str = ""
    layers: str = "crt"  # alone: with the other, what this one lets through would come to reheap all the same


RUNTIMES = {
    "ucrt-10.0.26100": Runtime("ucrtbase.dll", "10.0.26100", "Microsoft", "ucrt-10.0.26100"),
    "ucrt-10.0.17763": Runtime("ucrtbase.dll", "10.0.17763", "Microsoft", "ucrt-10.0.17763"),
    "ucrt-i686-10.0.17763": Runtime("ucrtbase.dll", "10.0.17763", "Microsoft", "ucrt-i686-10.0.17763", "both"),
    "ucrt": Runtime("ucrtbase.dll", "", ""),  # the system's: Wine's, or Windows'
    "msvcrt": Runtime("msvcrt.dll", "", ""),
}

# How reheap.dll comes into the process: the program's last arguments.
WAYS = {"late": (), "first": ("first",)}


# ---- running ----------------------------------------------------------------------------------

class Laboratory:
    """Runs the program on one DLL or another, each in a folder of its own."""

    def __init__(self, program: pathlib.Path, reference: str, emulator: list[str], folder: pathlib.Path):
        self.program, self.reference, self.emulator, self.folder = program, reference, emulator, folder

    def run_reference(self) -> str:
        return self.run(self.reference)

    def run(self, name: str, *arguments: str) -> str:
        runtime = RUNTIMES[name]
        place = self.folder / name
        place.mkdir(exist_ok=True)
        shutil.copy(self.program, place / "conformance.exe")
        environment = {"REHEAP_LAYERS": runtime.layers}
        if runtime.item:
            shutil.copy(fetch(runtime.item) / runtime.dll, place)
            environment["WINEDLLOVERRIDES"] = "ucrtbase=n,b"
        output = run([*self.emulator, "conformance.exe", runtime.dll, *arguments], place, PATIENCE, **environment)
        check_identity(runtime, output)
        return output


def fetch(item: str) -> pathlib.Path:
    sys.path.insert(0, str(HERE.parents[3] / "tools"))
    import fetch_windows  # only where Windows' DLLs have to be brought: it is not for Windows itself
    try:
        return fetch_windows.fetch(item)
    except fetch_windows.Failure as failure:
        raise Unavailable(str(failure)) from None


def check_identity(runtime: Runtime, output: str) -> None:
    """It was this DLL that was loaded, and not another of its name."""
    said = re.search(r"^crt: made by (\w+), version (\S+)$", output, re.MULTILINE)
    if not said or not said[1].startswith(runtime.maker) or not said[2].startswith(runtime.version):
        raise Failure(f"the DLL tested is {said and said[0]}, not {runtime.maker}'s {runtime.version}")


# ---- comparing --------------------------------------------------------------------------------

def is_served(check: str, said: str) -> bool:
    return check.startswith("served") and said.endswith("by reheap")


# What a runtime may be unable to tell or do: msvcrt has no _aligned_msize and no handler for invalid parameters, and
# Wine's ucrtbase takes a new handler that it never calls.
ABILITIES = (r"(?<=aligned) msize=\d+|(?<=kept) old msize=\d+", r" invalid-parameter=\d+", r" new-handler=\d+")


def without_what_lacks(reference: dict[str, str], plain: dict[str, str]) -> dict[str, str]:
    """What Microsoft's DLL says, without what the plain DLL tested never says."""
    for ability in ABILITIES:
        if not any(re.search(ability, said) for said in plain.values()):
            reference = {check: re.sub(ability, "", said) for check, said in reference.items()}
    return reference


def judge(laboratory: Laboratory, name: str, reheap: str, differences: list[Difference]) -> list[str]:
    plain = checks_of(laboratory.run(name))
    if len(plain) < FEWEST_CHECKS:
        raise Failure(f"only {len(plain)} checks were made of {name}")
    by_wine = "Wine" in plain["crt"]
    reference = without_what_lacks(checks_of(laboratory.run_reference()), plain) if by_wine else {}

    def may_say(check: str, said: str) -> bool:
        return is_served(check, said) or said == reference.get(check)

    wrong, tried = [], []
    width = "32-bit" if "i686" in laboratory.reference else "64-bit"
    for way, arguments in WAYS.items():
        checks = checks_of(laboratory.run(name, reheap, *arguments))
        served = sum(is_served(check, said) for check, said in checks.items())
        tried.append(f"{name}/{way}/{width}")
        found = compare(tried[-1], leave_out_early(plain) if way == "first" else plain, checks, differences, may_say)
        wrong += [f"{name}/{way}: {each}" for each in found]
        print(f"{name}/{way}: {len(checks)} checks, {served} results of other functions served by reheap, "
              f"{len(found)} wrong")
    return wrong + never_seen(differences, tried)


def leave_out_early(plain: dict[str, str]) -> dict[str, str]:
    """Where reheap comes first, no block is made before it."""
    return {check: said for check, said in plain.items() if not check.startswith("early")}


def main() -> int:
    parser = comparing.parser_of(__doc__, HERE / "differences.txt")
    parser.add_argument("runtime", choices=RUNTIMES)
    parser.add_argument("--reference", choices=RUNTIMES, required=True, help="Microsoft's DLL that Wine's are held to")
    arguments = parser.parse_args()

    def judge_in(folder: pathlib.Path, differences: list[Difference]) -> list[str]:
        laboratory = Laboratory(arguments.program.resolve(), arguments.reference, arguments.emulator, folder)
        shutil.copy(arguments.reheap, folder / "reheap.dll")
        return judge(laboratory, arguments.runtime, "..\\reheap.dll", differences)

    try:
        return comparing.main(arguments, CONTROL, judge_in)
    except Unavailable as failure:
        print(f"skipped: Microsoft's DLL is not in the cache, and cannot be fetched: {failure}")
        return 1 if os.environ.get("CI") else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
