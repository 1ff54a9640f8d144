#!/usr/bin/env python3
"""./dev test: runs every check to its end, then says what failed and how many passed."""

import argparse
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build" / "results"
PRESETS = ["release", "debug", "clang", "ubsan", "tsan", "m32"]
# Run under Wine; the last three are for processors that nothing here can run.
WINDOWS_PRESETS = ["windows-x86_64", "windows-x86_64-msvcrt", "windows-x86_64-msvc", "windows-x86_64-abi",
                   "windows-x86_64-zig", "windows-i686", "windows-arm64", "windows-arm64-msvc", "windows-arm64ec"]
BUILT_ONLY = {"windows-arm64-msvc", "windows-arm64ec"}
PRODUCTS_ONLY = {"windows-arm64", *BUILT_ONLY}  # whose test programs could not run

# Whole programs, installed packages, the command and the tools are tried once a system, with what is installed.
INSTALLED = {"release", "windows-x86_64"}
INSTALLED_ONLY = "^(programs|integrations|command|tools)$"

FAILURE = re.compile(r"\s*(\d+/\d+ )?Test +#\d+: (?P<name>.+?) \.+\*\*\*(?!Skipped)")  # a line of ctest's
TOLD_LINES = 60  # of what a failed test wrote, said again at the end: the log before it is long


@dataclasses.dataclass
class Outcome:
    step: str
    passed: int = 0
    failed: dict[str, str] = dataclasses.field(default_factory=dict)  # title -> what it wrote, if that is known
    skipped: list[str] = dataclasses.field(default_factory=list)
    tried_again: list[str] = dataclasses.field(default_factory=list)  # and passed then
    seconds: float = 0.0


def command_step(name: str, command: list[str]) -> Outcome:
    """One command, one result."""
    started = time.monotonic()
    succeeded = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL).returncode == 0
    outcome = Outcome(name, passed=int(succeeded), failed={} if succeeded else {name: ""})
    outcome.seconds = time.monotonic() - started
    return outcome


def tests_step(preset: str) -> Outcome:
    """Every test of one build, from ctest's own record."""
    name = f"test {preset}"
    record = RESULTS / f"{preset}.xml"
    record.unlink(missing_ok=True)
    command = ["ctest", "--preset", preset, "--parallel", str(jobs()), "--timeout", "600", "--progress",
               "--output-junit", str(record)]
    # Wine itself sometimes dies or hangs as a process begins or ends. What passed at the second try is told.
    if preset in WINDOWS_PRESETS:
        command += ["--repeat", "until-pass:2"]
    if preset not in INSTALLED:
        command += ["--label-exclude", INSTALLED_ONLY]
    started = time.monotonic()
    status, failures = run_ctest(command)
    outcome = read_record(name, record)
    outcome.tried_again = sorted({f"{name}: {test}" for test in failures} - outcome.failed.keys())
    if status != 0 and not outcome.failed:
        outcome.failed[f"{name}: ctest itself, with status {status}"] = ""
    outcome.seconds = time.monotonic() - started
    return outcome


def run_ctest(command: list[str]) -> tuple[int, set[str]]:
    """Its status, and the names of all tests that failed at least once: its record has their last outcome alone."""
    failures = set()
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          errors="replace") as ctest:
        for line in ctest.stdout:
            print(line, end="", flush=True)
            if failure := FAILURE.match(line):
                failures.add(failure["name"])
    return ctest.returncode, failures


def read_record(name: str, record: pathlib.Path) -> Outcome:
    outcome = Outcome(name)
    if not record.exists():
        outcome.failed[f"{name}: ctest left no results"] = ""
        return outcome
    for case in xml.parse(record).getroot().iter("testcase"):
        within = case.get("classname")  # pytest's, where a name may stand in several files; ctest gives the name again
        called = case.get("name")
        title = f"{name}: {called}" if within in (None, called) else f"{name}: {within}.{called}"
        skipped = case.find("skipped")
        reason = skipped.get("message", "") if skipped is not None else ""
        by_ctest = case.get("status")
        if by_ctest == "run" or (by_ctest is None and len(case) == 0):
            outcome.passed += 1
        elif reason.startswith("SKIP_") or by_ctest == "disabled" or (by_ctest is None and skipped is not None):
            outcome.skipped.append(title)
        else:  # failed, or could not be run at all
            outcome.failed[title] = "\n".join([*(part.text or "" for part in case), reason])
    return outcome


def lab_steps():
    """The lab as its user installs it, into an environment of its own, and the benchmarks that stand on it."""
    environment = ROOT / "build" / "lab-environment"
    python = environment / "bin" / "python3"
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "./lab[test]"]
    made = command_step("install lab", [sys.executable, "-m", "venv", "--clear", environment])
    if not made.failed:
        installed = command_step("install lab", install)
        installed.seconds += made.seconds
        made = installed
    yield made
    if made.failed:
        yield Outcome("test lab", failed={"test lab: not run, it could not be installed": ""})
        return
    record = RESULTS / "lab.xml"
    record.unlink(missing_ok=True)
    tested = command_step("test lab", [python, "-m", "pytest", "-q", "--rootdir", ROOT, "--junitxml", record, "tests/lab", "tests/bench"])
    outcome = read_record("test lab", record)
    if tested.failed and not outcome.failed:
        outcome.failed["test lab: pytest itself"] = ""
    outcome.seconds = tested.seconds
    yield outcome


def jobs() -> int:
    return int(os.environ.get("REHEAP_JOBS", os.cpu_count() or 1))


def preset_steps(preset: str):
    what = [] if preset in PRODUCTS_ONLY else ["--all"]
    built = command_step(f"build {preset}", ["./dev", "build", *what, preset])
    yield built
    if preset in BUILT_ONLY:
        return
    if built.failed:
        yield Outcome(f"test {preset}", failed={f"test {preset}: not run, its build failed": ""})
    else:
        yield tests_step(preset)


def steps() -> dict:
    """Name of a step -> a function that gives its outcomes."""
    table = {
        "fmt": lambda: [command_step("fmt", [sys.executable, "tools/format.py", "--check"])],
        "tidy": lambda: [command_step("tidy", [sys.executable, "tools/tidy.py"])],
    }
    for preset in PRESETS + WINDOWS_PRESETS:
        table[preset] = lambda preset=preset: preset_steps(preset)
    table["lab"] = lab_steps  # the last: under Wine it measures what was built before
    return table


def summary(outcomes: list[Outcome]) -> int:
    print(f"\n{'step':<28}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>9}")
    for outcome in outcomes:
        print(f"{outcome.step:<28}{outcome.passed:>8}{len(outcome.failed):>8}{len(outcome.skipped):>9}"
              f"{outcome.seconds:>9.1f}")
    for said, which in (("skipped", "skipped"), ("passed at the second try", "tried_again"), ("failed", "failed")):
        titles = [title for outcome in outcomes for title in getattr(outcome, which)]
        if titles:
            print(f"\n{said}:")
            print("\n".join(f"  {title}" for title in titles))
    for outcome in outcomes:
        for title, wrote in outcome.failed.items():
            if wrote:
                print(f"\n{title}:\n" + "\n".join(wrote.strip().splitlines()[-TOLD_LINES:]))
    passed = sum(outcome.passed for outcome in outcomes)
    failed = sum(len(outcome.failed) for outcome in outcomes)
    print(f"\n{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def main() -> int:
    table = steps()
    parser = argparse.ArgumentParser(prog="./dev test", description=__doc__)
    parser.add_argument("steps", nargs="*", metavar="STEP",
                        help=f"only these: {' '.join(table)}, or windows for all that begin with it")
    parser.add_argument("--list", action="store_true", help="print the steps and stop")
    arguments = parser.parse_args()
    named = [step for name in arguments.steps for step in (WINDOWS_PRESETS if name == "windows" else [name])]
    unknown = [name for name in named if name not in table]
    if unknown:
        parser.error(f"unknown step {' '.join(unknown)}; there are: {' '.join(table)}")
    if arguments.list:
        print("\n".join(table))
        return 0
    RESULTS.mkdir(parents=True, exist_ok=True)
    chosen = named or list(table)
    outcomes = []
    for number, name in enumerate(chosen, 1):
        print(f"\n==== {number}/{len(chosen)} {name}", flush=True)
        for outcome in table[name]():
            outcomes.append(outcome)
            word = "FAILED" if outcome.failed else "ok"
            print(f"---- {outcome.step}: {word}, {outcome.seconds:.1f} s", flush=True)
    return summary(outcomes)


if __name__ == "__main__":
    sys.exit(main())
