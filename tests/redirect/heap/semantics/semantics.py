#!/usr/bin/env python3
"""Compares the heap functions under reheap.dll with the same functions alone, check by check.

The program (program/main.cpp) writes a line per check. Under reheap each must read as in a plain run, which --record
makes once for all that compare with it. What may differ stands in differences.txt with its reason, and what stands
there must be seen; so must be what it says of the plain run, where that is Wine's and not as Windows documents it."""

import argparse
import pathlib
import re
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "comparison"))
import comparing  # noqa: E402
from comparing import Difference, Failure, checks_of, compare, never_seen, run  # noqa: E402

PATIENCE = 280
FEWEST_CHECKS = 6000
FEWEST_BLOCKS = 3000  # of reheap's, where it replaces the heaps
CONTROL = comparing.Control(missed="NOT REHEAP'S", also=" end:|blocks were reheap's", fewest=FEWEST_BLOCKS)

# How reheap.dll comes into the process: by the launcher, before the program's first instruction; or by LoadLibrary once
# blocks have been made.
WAYS = ("run", "late")


# ---- running ----------------------------------------------------------------------------------

class Laboratory:
    def __init__(self, arguments: argparse.Namespace, folder: pathlib.Path):
        self.emulator, self.launcher, self.layers = arguments.emulator, arguments.launcher, arguments.layers
        self.folder = folder
        shutil.copy(arguments.program, folder / "semantics.exe")
        shutil.copy(arguments.reheap, folder / "under_test.dll")

    def plain(self) -> str:
        return self.run(["semantics.exe"])

    def under_reheap(self, way: str) -> str:
        if way == "run":
            return self.run([self.launcher, "run", "--require", "--", "semantics.exe"])
        return self.run(["semantics.exe", "under_test.dll"])

    def run(self, command: list[str]) -> str:
        return run([*self.emulator, *command], self.folder, PATIENCE, REHEAP_LAYERS=self.layers)


# ---- comparing --------------------------------------------------------------------------------

def tell_makers(reheap: dict, layers: str) -> list[str]:
    """The blocks were reheap's, where they were to be."""
    told = re.match(r"(\d+) blocks by reheap", reheap.pop("makers", ""))
    count = int(told[1]) if told else 0
    if layers in ("both", "heap") and count < FEWEST_BLOCKS:
        return [f"only {count} blocks were reheap's"]
    return []


def see_plain(plain: dict, differences: list[Difference]) -> None:
    """What differences.txt says of Wine itself."""
    for each in differences:
        each.seen += each.where == "plain" and any(each.covers(check, "plain", said) for check, said in plain.items())


def judge(laboratory: Laboratory, recorded: str, processor: str, ways: list[str],
          differences: list[Difference]) -> list[str]:
    plain = checks_of(recorded)
    if len(plain) < FEWEST_CHECKS:
        raise Failure(f"only {len(plain)} checks were made")
    see_plain(plain, differences)
    if laboratory.layers == "crt":  # the heap functions are left alone: nothing may differ
        differences = [each for each in differences if each.where == "plain"]
    wrong = [f"plain: {check}: {said}" for check, said in plain.items() if check.startswith("FAILED")]
    tried = ["plain"]
    for way in ways:
        where = f"{way}/{laboratory.layers}/{processor}"
        tried.append(where)
        reheap = checks_of(laboratory.under_reheap(way))
        found = tell_makers(reheap, laboratory.layers) + compare(where, plain, reheap, differences)
        wrong += [f"{where}: {each}" for each in found]
        print(f"{where}: {len(reheap)} checks, {len(found)} wrong")
    if plain.get("system") == "Wine":
        wrong += never_seen(differences, tried)
    return wrong


def main() -> int:
    parser = comparing.parser_of(__doc__, HERE / "differences.txt")
    parser.add_argument("ways", nargs="*", help=f"of {WAYS}; all if none is named")
    parser.add_argument("--layers", default="both", help="REHEAP_LAYERS")
    parser.add_argument("--processor", required=True)
    parser.add_argument("--launcher", required=True, help="reheap.exe")
    parser.add_argument("--plain", type=pathlib.Path, required=True, help="the file for what a plain run writes")
    parser.add_argument("--record", action="store_true", help="write it, and compare nothing")
    arguments = parser.parse_args()

    def judge_in(folder: pathlib.Path, differences: list[Difference]) -> list[str]:
        laboratory = Laboratory(arguments, folder)
        if arguments.record:
            arguments.plain.write_text(laboratory.plain())
            return []
        return judge(laboratory, arguments.plain.read_text(), arguments.processor, arguments.ways or list(WAYS),
                     differences)

    return comparing.main(arguments, CONTROL, judge_in)


if __name__ == "__main__":
    sys.exit(main())
