"""Whether a slowdown of the allocator shows in the replay as it does in the program: a library that works before each
allocation, under one, four and sixteen threads that do nothing but allocate, touch both ends, and hand blocks over."""

from calibration.shared import RESULTS, REHEAP, compare, compile_program, run
from common.tables import render_markdown as table

THREADS = (1, 4, 16)
WORK = 300  # units before each allocation: some 200 ns
CLOSE = 0.25  # how far the time added in the replay may be from that added in the program


def add_options(parser) -> None:
    parser.add_argument("--runs", type=int, default=5, help="runs of each (default 5)")
    parser.add_argument("--steps", type=int, default=4_000_000, help="steps of all threads (default 4,000,000)")


def main(options) -> bool:
    program = compile_program("sixteen.c", name="sixteen")
    plain = compile_program("planted.c", "-shared", "-fPIC", name="plain.so")
    slow = compile_program("planted.c", "-shared", "-fPIC", f"-DWORK={WORK}", name="slow.so")
    measuring = ["--with", f"plain={plain},slow={slow}", "--runs", options.runs, "--no-extras"]
    rows, right = [], True
    for threads in THREADS:
        command = [program, options.steps // threads, threads]
        trace = RESULTS / f"slowed-{threads}.rht"
        run([*REHEAP, "record", "-o", trace, "--", *command])
        real = added(compare(f"slowed-{threads}-program", "compare", *measuring, "--", *command))
        replayed = added(compare(f"slowed-{threads}-replay", "replay", *measuring, "--touch", "ends", trace))
        trace.unlink()
        right = right and abs(replayed[1] / real[1] - 1) <= CLOSE
        rows.append([str(threads), *(f"{seconds:.2f} s" for seconds in (*real, *replayed)),
                     f"{replayed[1] / real[1]:.2f}"])
    print(table(["threads", "program", "added", "replay", "added", "replay over program"], rows))
    return right


def added(made) -> tuple[float, float]:
    """CPU time on the plain library, and how much more on the slow one."""
    by_name = made.summaries["cpu_s"]
    return by_name["plain"].median, by_name["slow"].median - by_name["plain"].median
