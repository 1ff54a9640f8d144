"""`reheap calibrate`: the statistics and verdicts on made-up runs."""

from calibration.shared import RESULTS, call_reheap


def add_options(parser) -> None:
    parser.add_argument("--trials", type=int, default=100, help="comparisons of each kind (default 100)")
    parser.add_argument("--runs", type=int, default=30, help="runs in each (default 30)")


def main(options) -> bool:
    arguments = ["--trials", options.trials, "--runs", options.runs]
    return call_reheap("calibrate", *arguments, "--export", RESULTS / "made-up.json") == 0
