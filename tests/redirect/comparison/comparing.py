"""What the suites have in common that compare a program's checks under reheap with those of a plain run.

The program writes a line per check (line.h). Under reheap each must read as in a plain run. What may differ stands in
differences.txt with its reason, and what stands there must be seen."""

import argparse
import collections
import dataclasses
import fnmatch
import os
import pathlib
import re
import subprocess
import tempfile
from collections.abc import Callable


class Failure(Exception):
    pass


CHANCE = "? "


@dataclasses.dataclass
class Difference:
    """Checks that may read otherwise than in a plain run."""
    check: str  # a pattern
    where: str  # a pattern for the runs, such as "late/*/i686"; what these are called is the suite's
    says: str  # a pattern
    reason: str
    by_chance: bool = False  # need not be seen: it depends on what lies where
    seen: int = 0

    def covers(self, check: str, where: str, said: str) -> bool:
        return (fnmatch.fnmatchcase(check, self.check) and fnmatch.fnmatchcase(where, self.where)
                and fnmatch.fnmatchcase(said, self.says))


def read_differences(path: pathlib.Path) -> list[Difference]:
    lines = [line for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    if any(len(row) != 4 or not all(row) for row in rows):
        raise Failure(f"{path}: each line has four cells: check | where | what is said | reason")
    return [Difference(check.removeprefix(CHANCE), where, says, reason, check.startswith(CHANCE))
            for check, where, says, reason in rows]


def never_seen(differences: list[Difference], tried: list[str]) -> list[str]:
    """What was to differ in one of the runs tried, and did not."""
    return [f"differences.txt lists '{each.check}' for {each.where}, but nothing differs so" for each in differences
            if each.seen == 0 and not each.by_chance and any(fnmatch.fnmatchcase(where, each.where) for where in tried)]


# ---- running ----------------------------------------------------------------------------------

def run(command: list[str], folder: pathlib.Path, patience: float, **environment: str) -> str:
    """What the program wrote, to its end."""
    try:
        done = subprocess.run(command, cwd=folder, env={**os.environ, "REHEAP_VERBOSE": "0", **environment}, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=patience)
    except subprocess.TimeoutExpired as late:
        said = (late.stdout or b"").decode(errors="replace")
        raise Failure(f"{' '.join(command)} did not end:\n{last_lines(said)}") from None
    if done.returncode not in (0, 1) or "\nend:" not in done.stdout:  # 1: what failed stands in the lines
        raise Failure(f"{' '.join(command)} ended with status {done.returncode}:\n"
                      f"{last_lines(done.stdout)}\n{last_lines(done.stderr)}")
    return done.stdout


def last_lines(text: str) -> str:
    failures = [line for line in text.splitlines() if line.startswith("FAILED")]
    return "\n".join([*failures[:20], *text.splitlines()[-10:]])


# ---- comparing --------------------------------------------------------------------------------

def checks_of(output: str) -> dict[str, str]:
    """What each check said. One that is made again is told apart by its number."""
    found: dict[str, str] = {}
    times: collections.Counter = collections.Counter()
    for line in output.splitlines():
        name, _, said = split_check(line)
        times[name] += 1
        found[name if times[name] == 1 else f"{name} #{times[name]}"] = said.strip()
    return found


def split_check(line: str) -> tuple[str, str, str]:
    """What is told of a check stands behind its last colon."""
    return line.rpartition(":") if line.endswith(":") else line.rpartition(": ")


def compare(where: str, plain: dict, reheap: dict, differences: list[Difference],
            may_say: Callable[[str, str], bool] = lambda check, said: False) -> list[str]:
    """What is wrong with reheap's run. A check may also say what `may_say` lets it say."""
    wrong = [f"{check}: is missing under reheap" for check in plain if check not in reheap]
    for check, said in reheap.items():
        if said == plain.get(check) or may_say(check, said):
            continue
        allowed = [each for each in differences if each.covers(check, where, said)]
        for each in allowed:
            each.seen += 1
        if not allowed:
            wrong.append(f"{check}:\n    plain:  {plain.get(check)}\n    reheap: {said}")
    return wrong


# ---- the command ------------------------------------------------------------------------------

def parser_of(description: str, differences: pathlib.Path) -> argparse.ArgumentParser:
    """With the options that every such suite has."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--reheap", required=True, help="reheap.dll")
    parser.add_argument("--emulator", type=split_words, default="",
                        help="what runs a Windows program here; words are split at ;")
    parser.add_argument("--differences", type=pathlib.Path, default=differences)
    parser.add_argument("--control", action="store_true", help="the DLL replaces nothing: see that this is noticed")
    return parser


def split_words(text: str) -> list[str]:
    return [word for word in text.split(";") if word]


@dataclasses.dataclass(frozen=True)
class Control:
    """With a DLL that replaces nothing, blocks are missed, each in a line that matches `missed`; nothing else is wrong
    but what matches `also`, and follows from it."""
    missed: str
    also: str
    fewest: int

    def see(self, wrong: list[str]) -> list[str]:
        count = sum(bool(re.search(self.missed, each)) for each in wrong)
        others = [each for each in wrong if not re.search(f"{self.missed}|{self.also}", each)]
        return others if count >= self.fewest else [f"only {count} blocks were missed", *others]


def main(arguments: argparse.Namespace, control: Control,
         judge: Callable[[pathlib.Path, list[Difference]], list[str]]) -> int:
    """The status to end with. `judge` says what is wrong, and may use the folder."""
    try:
        differences = [] if arguments.control else read_differences(arguments.differences)
        with tempfile.TemporaryDirectory() as folder:
            wrong = judge(pathlib.Path(folder), differences)
    except Failure as failure:
        wrong = [str(failure)]
    if arguments.control:
        wrong = control.see(wrong)
    for each in wrong:
        print(each)
    return 1 if wrong else 0
