"""What `./dev bench calibration` runs: one calibration, or all of them."""

import argparse
import datetime
import os

from calibration import agreement, counts, made_up, planted, recorder, same, slowed, traces
from calibration.shared import RESULTS

PARTS = {"made-up": made_up, "same": same, "planted": planted, "agreement": agreement, "counts": counts,
         "traces": traces, "slowed": slowed, "recorder": recorder}


def parse(arguments: list[str]) -> argparse.Namespace:
    about = "Calibrates the lab (docs/lab-calibration.md)."
    parser = argparse.ArgumentParser(prog="./dev bench calibration", description=about)
    parts = parser.add_subparsers(dest="part", metavar="PART", required=True)
    for name, part in PARTS.items():
        text = part.__doc__.replace("%", "%%")  # argparse formats it
        part.add_options(parts.add_parser(name, help=text.replace("\n", " "), description=text))
    parts.add_parser("all", help="each of these as it is by default")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    RESULTS.mkdir(parents=True, exist_ok=True)
    names = list(PARTS) if options.part == "all" else [options.part]
    right = True
    for name in names:
        own = parse([name]) if options.part == "all" else options
        print(f"\n# {name}\n\n{_circumstances()}\n", flush=True)
        right = PARTS[name].main(own) and right
    return 0 if right else 1


def _circumstances() -> str:
    now = datetime.datetime.now(datetime.timezone.utc)
    return f"{now:%Y-%m-%d %H:%M} UTC, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} before it began."
