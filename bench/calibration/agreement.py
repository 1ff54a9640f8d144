"""The figures of `reheap compare` beside those of hyperfine and GNU time: the same commands in interleaved rounds."""

import json
import pathlib
import sys
import tempfile
from statistics import median

from calibration.shared import compare, compile_program, percent, run
from common.tables import render_markdown as table
from registries import need_tool
from reheap_lab import statistics

SHOWN = ["wall_s", "cpu_s", "user_s", "system_s", "peak_rss_kib", "minor_faults"]
TO_BE_THE_SAME = {"peak_rss_kib": 0.01, "minor_faults": 0.01}  # what a busy machine does not change
CONFIDENCE = 0.95


def add_options(parser) -> None:
    parser.add_argument("--rounds", type=int, default=10, help="rounds of each command (default 10)")


def main(options) -> bool:
    tools = {"compare": _compare, "hyperfine": _hyperfine, "time": _time}
    right = True
    for title, command in _commands().items():
        measured = {name: [] for name in tools}
        names = list(tools)
        for number in range(options.rounds + 1):
            for name in names[number % 3:] + names[:number % 3]:
                figures = tools[name](command)
                if number:  # the first round warms up
                    measured[name].append(figures)
        print(f"\n{title}: medians of {options.rounds} rounds, and how compare's figure differs, paired by round\n")
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


def _compare(command: list[str]) -> dict[str, float]:
    made = compare("agreement", "compare", "--with", "system", "--runs", 1, "--no-extras", "--output", "discard", "--",
                   *command)
    return made.measured("system")[0].figures


def _hyperfine(command: list[str]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out")
        line = " ".join(f"'{part}'" for part in command)
        run([need_tool("hyperfine", "hyperfine"), "--shell=none", "--runs", "1", "--export-json", out, line])
        result = json.loads(out.read_text())["results"][0]
    return {"wall_s": result["mean"], "cpu_s": result["user"] + result["system"],
            "user_s": result["user"], "system_s": result["system"]}


def _time(command: list[str]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out")
        run([need_tool("time", "time"), "-o", out, "-f", "%e %U %S %M %R", *command])
        wall, user, system, peak, faults = map(float, out.read_text().split())
    return {"wall_s": wall, "cpu_s": user + system, "user_s": user, "system_s": system,
            "peak_rss_kib": peak, "minor_faults": faults}


def _table(measured: dict[str, list[dict[str, float]]]) -> str:
    rows = []
    for figure in SHOWN:
        row = [figure, _median(measured["compare"], figure)]
        for other in ("hyperfine", "time"):
            row += [_median(measured[other], figure), _difference(measured, other, figure)]
        rows.append(row)
    return table(["figure", "compare", "hyperfine", "differs by (interval)", "time", "differs by (interval)"], rows)


def _ratio(measured: dict, other: str, figure: str) -> statistics.Interval | None:
    pairs = [(own[figure], theirs[figure]) for own, theirs in zip(measured["compare"], measured[other])
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
