"""The runner's figures beside those of hyperfine and /usr/bin/time, on the same commands in interleaved rounds."""

import json
import pathlib
import sys
import tempfile
from statistics import median

from calibration.shared import compile_program, percent, run
from common.tables import render_markdown as table
from registries import need_tool
from reheap_lab import native, statistics

SHOWN = ["wall_s", "cpu_s", "user_s", "system_s", "peak_rss_kib", "minor_faults"]
TO_BE_THE_SAME = {"peak_rss_kib": 0.01, "minor_faults": 0.01}  # what a busy machine does not change
CONFIDENCE = 0.95
UNITS = {"wall_s": 1e6, "user_s": 1e6, "system_s": 1e6}  # the runner counts in microseconds


def add_options(parser) -> None:
    parser.add_argument("--rounds", type=int, default=10, help="rounds of each command (default 10)")


def main(options) -> bool:
    tools = {"runner": _runner, "hyperfine": _hyperfine, "time": _time}
    hyperfine, gnu_time = need_tool("hyperfine", "hyperfine"), need_tool("time", "time")
    places = {"runner": str(native.program("reheap-runner")), "hyperfine": hyperfine, "time": gnu_time}
    right = True
    for title, command in _commands().items():
        measured = {name: [] for name in tools}
        names = list(tools)
        for number in range(options.rounds + 1):
            for name in names[number % 3:] + names[:number % 3]:
                figures = tools[name](places[name], command)
                if number:  # the first round warms up
                    measured[name].append(figures)
        print(f"\n{title}: medians of {options.rounds} rounds, and how the runner's figure differs, paired by round\n")
        print(_table(measured))
        right = right and all(_close(measured, figure, most) for figure, most in TO_BE_THE_SAME.items())
    return right


def _commands() -> dict[str, list[str]]:
    subject = compile_program("subject.c", name="subject")
    lines = "import json; [json.loads(json.dumps(list(range(1000)))) for _ in range(2000)]"
    return {
        "one thread that allocates and computes": [str(subject), "40000", "20000"],
        "64 MiB, written and freed": [str(subject), "2000000", "64000", "0"],
        "CPython": [sys.executable, "-S", "-c", lines],
    }


def _runner(program: str, command: list[str]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out")
        run([program, "--out", out, "--stdout", "/dev/null", "--", *command])
        end = next(line for line in map(json.loads, out.read_text().splitlines()) if line["type"] == "end")
    figures = {name: end[name.removesuffix("_s") + "_us"] / scale for name, scale in UNITS.items()}
    figures["cpu_s"] = figures["user_s"] + figures["system_s"]
    return figures | {name: end[name] for name in ("peak_rss_kib", "minor_faults") if name in end}


def _hyperfine(program: str, command: list[str]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out")
        line = " ".join(f"'{part}'" for part in command)
        run([program, "--shell=none", "--runs", "1", "--export-json", out, line])
        result = json.loads(out.read_text())["results"][0]
    return {"wall_s": result["mean"], "cpu_s": result["user"] + result["system"],
            "user_s": result["user"], "system_s": result["system"]}


def _time(program: str, command: list[str]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out")
        run([program, "-o", out, "-f", "%e %U %S %M %R", *command])
        wall, user, system, peak, faults = map(float, out.read_text().split())
    return {"wall_s": wall, "cpu_s": user + system, "user_s": user, "system_s": system,
            "peak_rss_kib": peak, "minor_faults": faults}


def _table(measured: dict[str, list[dict[str, float]]]) -> str:
    rows = []
    for figure in SHOWN:
        row = [figure, _median(measured["runner"], figure)]
        for other in ("hyperfine", "time"):
            row += [_median(measured[other], figure), _difference(measured, other, figure)]
        rows.append(row)
    return table(["figure", "runner", "hyperfine", "differs by (interval)", "time", "differs by (interval)"], rows)


def _ratio(measured: dict, other: str, figure: str) -> statistics.Interval | None:
    pairs = [(own[figure], theirs[figure]) for own, theirs in zip(measured["runner"], measured[other])
             if own.get(figure) and theirs.get(figure)]
    return statistics.paired_ratio(*zip(*pairs), CONFIDENCE) if pairs else None


def _difference(measured: dict, other: str, figure: str) -> str:
    ratio = _ratio(measured, other, figure)
    return f"{percent(ratio.middle)} ({percent(ratio.low)} .. {percent(ratio.high)})" if ratio else "—"


def _close(measured: dict, figure: str, most: float) -> bool:
    ratio = _ratio(measured, "time", figure)
    return ratio is not None and abs(ratio.middle - 1) <= most


def _median(measured: list[dict[str, float]], figure: str) -> str:
    known = [figures[figure] for figures in measured if figure in figures]
    return f"{median(known):.{0 if figure in TO_BE_THE_SAME else 3}f}" if known else "—"
