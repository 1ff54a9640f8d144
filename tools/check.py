#!/usr/bin/env python3
"""./dev test: runs every check to its end, then says what failed and how many passed."""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build" / "results"
LAB = ROOT / "build" / "lab-environment"
# Whole programs, installed packages, the command and the tools are tried once a system, with what is installed.
INSTALLED = {"release", "windows-x86_64"}
INSTALLED_ONLY = "^(programs|integrations|command|tools)$"

# Tried when named: no package has them, and their compilers' C++ libraries take minutes to make.
NAMED_ONLY = {"linux-riscv64", "windows-x86_64-zig", "windows-arm64", "windows-arm64ec"}

# Each of the two starts the other's programs, where they are there: never half of them.
WITH_EACH_OTHER = {"windows-x86_64", "windows-i686"}

FAILURE = re.compile(r"\s*(\d+/\d+ )?Test +#\d+: (?P<name>.+?) \.+\*\*\*(?!Skipped)")  # a line of ctest's
TOLD_LINES = 60  # of what a failed test wrote, said again at the end: the log before it is long


@dataclasses.dataclass
class Preset:
    """What CMakePresets.json says of one."""
    name: str
    windows: bool  # runs under Wine
    runs: bool  # what was built runs here
    tests: bool


def presets() -> dict[str, Preset]:
    shown = [preset for preset in json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
             if not preset.get("hidden")]
    found = {}
    for preset in shown:
        name, variables = preset["name"], preset.get("cacheVariables", {})
        found[name] = Preset(name, windows=name.startswith("windows-"), tests=variables.get("REHEAP_TESTS") != "OFF",
                             runs=not variables.get("REHEAP_PROCESSOR", "").startswith("arm64"))
    return found


@dataclasses.dataclass
class Outcome:
    step: str
    passed: int = 0
    failed: dict[str, str] = dataclasses.field(default_factory=dict)  # title -> what it wrote, if that is known
    skipped: list[str] = dataclasses.field(default_factory=list)
    tried_again: list[str] = dataclasses.field(default_factory=list)  # and passed then
    seconds: float = 0.0
    cpu_seconds: float = 0.0  # of its processes, but for those that left it, as Wine's server does


def wait_for(process: subprocess.Popen) -> float:
    """Sets its returncode. The processor time that it and those it waited for took."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime


def command_step(name: str, command: list, log: pathlib.Path | None = None, environment: dict | None = None) -> Outcome:
    """One command, one result. With a log it runs beside other steps, in the time they leave."""
    started = time.monotonic()
    with log.open("w") if log else contextlib.nullcontext() as output:
        process = subprocess.Popen(["nice", "-n", "19", *command] if log else command, cwd=ROOT,
                                   env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT if log else None)
        cpu_seconds = wait_for(process)
    failed = {name: log.read_text(errors="replace") if log else ""} if process.returncode else {}
    return Outcome(name, int(not failed), failed, seconds=time.monotonic() - started, cpu_seconds=cpu_seconds)


def tests_step(preset: Preset) -> Outcome:
    """Every test of one build, from ctest's own record."""
    name = f"test {preset.name}"
    record = RESULTS / f"{preset.name}.xml"
    record.unlink(missing_ok=True)
    command = ["ctest", "--test-dir", f"build/{preset.name}", "--output-on-failure", "--no-tests=error",
               "--parallel", str(jobs()), "--timeout", "600", "--progress", "--output-junit", str(record)]
    # Wine itself sometimes dies or hangs as a process begins or ends. What passed at the second try is told.
    if preset.windows:
        command += ["--repeat", "until-pass:2"]
    if preset.name not in INSTALLED:
        command += ["--label-exclude", INSTALLED_ONLY]
    started = time.monotonic()
    status, failures, cpu_seconds = run_ctest(command)
    outcome = read_record(name, record)
    outcome.tried_again = sorted({f"{name}: {test}" for test in failures} - outcome.failed.keys())
    if status != 0 and not outcome.failed:
        outcome.failed[f"{name}: ctest itself, with status {status}"] = ""
    outcome.seconds, outcome.cpu_seconds = time.monotonic() - started, cpu_seconds
    return outcome


def run_ctest(command: list[str]) -> tuple[int, set[str], float]:
    """Its status, the names of all tests that failed at least once (its record has their last outcome alone), and its
    processor time."""
    failures = set()
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          errors="replace") as ctest:
        for line in ctest.stdout:
            print(line, end="", flush=True)
            if failure := FAILURE.match(line):
                failures.add(failure["name"])
        cpu_seconds = wait_for(ctest)
    return ctest.returncode, failures, cpu_seconds


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


def jobs() -> int:
    return int(os.environ.get("REHEAP_JOBS", os.cpu_count() or 1))


# ---- steps: each is prepared beside the tests of others, in the order they stand in, and then run --------------------

def prepare_preset(preset: Preset) -> Outcome:
    what = ["--all"] if preset.runs else []  # else the test programs could not run
    name = f"build {preset.name}"
    return command_step(name, ["./dev", "build", *what, preset.name], RESULTS / f"build-{preset.name}.log")


def prepare_lab() -> Outcome:
    """The lab as its user installs it, into an environment of its own, with what the tests of packages need."""
    made = command_step("install lab", [sys.executable, "-m", "venv", "--clear", LAB], RESULTS / "install-lab.log")
    if made.failed:
        return made
    needed = [word for file in sorted(ROOT.glob("tests/packages/requirements-*.txt")) for word in ("-r", file)]
    words = [LAB / "bin" / "python3", "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check",
             *needed, "./lab[test]"]
    installed = command_step("install lab", words, RESULTS / "install-lab.log")
    installed.seconds += made.seconds
    installed.cpu_seconds += made.cpu_seconds
    return installed


def run_pytest(step: str, *folders: str) -> Outcome:
    name, record = f"test {step}", RESULTS / f"{step}.xml"
    record.unlink(missing_ok=True)
    # What was installed is compiled as it is first imported, for the many commands that the tests start.
    environment = os.environ | {"PYTHONPYCACHEPREFIX": str(LAB / "compiled")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    # By files: what several tests of a file share is made once.
    tested = command_step(name, [LAB / "bin" / "python3", "-m", "pytest", "-q", "--rootdir", ROOT,
                                 "--numprocesses", str(jobs()), "--dist", "loadfile",
                                 "--junitxml", record, *folders], environment=environment)
    outcome = read_record(name, record)
    if tested.failed and not outcome.failed:
        outcome.failed[f"{name}: pytest itself"] = ""
    outcome.seconds, outcome.cpu_seconds = tested.seconds, tested.cpu_seconds
    return outcome


def steps() -> dict:
    """Name of a step -> what prepares it and what runs it, either of which may be None."""
    table = {
        "fmt": (None, lambda: command_step("fmt", [sys.executable, "tools/format.py", "--check"])),
        "tidy": (None, lambda: command_step("tidy", [sys.executable, "tools/tidy.py"])),
    }
    for name, preset in presets().items():
        table[name] = (functools.partial(prepare_preset, preset),
                       functools.partial(tests_step, preset) if preset.tests else None)
    table["packages"] = (prepare_lab, functools.partial(run_pytest, "packages", "tests/packages"))
    # The last: under Wine it measures what was built before. The benchmarks stand on it.
    table["lab"] = (prepare_lab, functools.partial(run_pytest, "lab", "tests/lab", "tests/bench"))
    return table


def run_steps(chosen: list[str], table: dict):
    # Two: where one configures or links, the other compiles.
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as builder:
        started = {prepare: builder.submit(prepare)
                   for prepare in dict.fromkeys(table[name][0] for name in chosen) if prepare}  # of two steps once
        told = []
        for number, name in enumerate(chosen, 1):
            print(f"\n==== {number}/{len(chosen)} {name}", flush=True)
            failed = False
            if prepare := table[name][0]:
                before = started[prepare].result()
                failed = bool(before.failed)
                if before not in told:
                    told.append(before)
                    yield before
            if name in WITH_EACH_OTHER:
                concurrent.futures.wait(started[table[other][0]] for other in WITH_EACH_OTHER if other in chosen)
            if run := table[name][1]:
                title = f"test {name}"
                yield Outcome(title, failed={f"{title}: not run, what it tests was not made": ""}) if failed else run()


def summary(outcomes: list[Outcome], seconds: float) -> int:
    print(f"\n{'step':<28}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>9}{'CPU s':>9}")
    for outcome in outcomes:
        print(f"{outcome.step:<28}{outcome.passed:>8}{len(outcome.failed):>8}{len(outcome.skipped):>9}"
              f"{outcome.seconds:>9.1f}{outcome.cpu_seconds:>9.1f}")
    print(f"{'in all, many side by side':<28}{seconds:>35.1f}{sum(outcome.cpu_seconds for outcome in outcomes):>9.1f}")
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


def pass_by_wrappers():
    """A version manager's python3 is a script that looks for the real one: longer than most of 2,000 starts take."""
    found = shutil.which("python3")
    if found and not os.path.samefile(found, sys.executable):
        os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])


def main() -> int:
    pass_by_wrappers()
    table = steps()
    parser = argparse.ArgumentParser(prog="./dev test", description=__doc__)
    parser.add_argument("steps", nargs="*", metavar="STEP",
                        help=f"only these: {' '.join(table)}, or windows for all that begin with it")
    parser.add_argument("--list", action="store_true", help="print the steps and stop")
    arguments = parser.parse_args()
    windows = [name for name in table if name.startswith("windows-")]
    named = [step for name in arguments.steps for step in (windows if name == "windows" else [name])]
    unknown = [name for name in named if name not in table]
    if unknown:
        parser.error(f"unknown step {' '.join(unknown)}; there are: {' '.join(table)}")
    if arguments.list:
        print("\n".join(table))
        return 0
    RESULTS.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    outcomes = []
    for outcome in run_steps(list(dict.fromkeys(named)) or [name for name in table if name not in NAMED_ONLY], table):
        outcomes.append(outcome)
        word = "FAILED" if outcome.failed else "ok"
        print(f"---- {outcome.step}: {word}, {outcome.seconds:.1f} s", flush=True)
    return summary(outcomes, time.monotonic() - started)


if __name__ == "__main__":
    sys.exit(main())
