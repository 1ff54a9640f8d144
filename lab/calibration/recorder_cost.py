#!/usr/bin/env python3
"""What recording costs: instructions for each event, counted by callgrind, bytes for each event, and time.

Usage: recorder_cost.py LIBREHEAP-RECORD.SO. Counts do not move with the machine's load; the time is that of pairs of runs,
one behind the other, and wants a machine with nothing else to do."""

import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

PROGRAM = """
#include <stdlib.h>
static unsigned long x = 88172645463325252ul;
static unsigned next(void) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; return (unsigned)(x >> 20); }
/* Frees a block chosen by chance and allocates another: seven in ten small, few above 2 KB. */
int main(int count, char **words) {
  static void *blocks[4096];
  for (long i = atol(words[1]); i; --i) {
    unsigned place = next() & 4095, kind = next() % 100;
    free(blocks[place]);
    blocks[place] = malloc(kind < 70 ? 8 + next() % 120 : kind < 97 ? next() % 2000 : next() % 20000);
  }
}
"""
FEW, MANY = 50000, 150000
PAIRS, TIMED = 11, 5_000_000


def instructions(program: pathlib.Path, rounds: int, settings: dict[str, str]) -> int:
    line = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(program), str(rounds)]
    told = subprocess.run(line, env={**os.environ, **settings}, capture_output=True, text=True, check=True).stderr
    return int(re.search(r"Collected : (\d+)", told).group(1))


def seconds(program: pathlib.Path, settings: dict[str, str]) -> float:
    began = time.monotonic()
    subprocess.run([program, str(TIMED)], env={**os.environ, **settings}, check=True, capture_output=True)
    return time.monotonic() - began


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "mix.c").write_text(PROGRAM)
        subprocess.run(["cc", "-O1", "-w", "-o", folder / "mix", folder / "mix.c"], check=True)
        cost = {}
        for kind, library in (("without", None), ("with", pathlib.Path(sys.argv[1]).resolve())):
            counts = []
            for rounds in (FEW, MANY):
                trace = folder / f"{rounds}.rht"
                counts.append(instructions(folder / "mix", rounds, {"LD_PRELOAD": str(library), "REHEAP_RECORD": str(trace)}
                                           if library else {}))
            cost[kind] = (counts[1] - counts[0]) / (2 * (MANY - FEW))
        # The recorder also sits in valgrind's own launcher, so the program's trace is the largest.
        sizes = [max(path.stat().st_size for path in folder.glob(f"{rounds}*.rht")) for rounds in (FEW, MANY)]
        recorded = {"LD_PRELOAD": str(pathlib.Path(sys.argv[1]).resolve()), "REHEAP_RECORD": str(folder / "timed.rht")}
        ratios = []
        for _ in range(PAIRS):
            plain = seconds(folder / "mix", {})
            ratios.append(seconds(folder / "mix", recorded) / plain)
            for path in folder.glob("timed*.rht"):
                path.unlink()
    print(f"instructions for each event: {cost['without']:.1f} without the recorder, {cost['with']:.1f} with it: "
          f"{cost['with'] / cost['without']:.2f} times")
    print(f"wall time of {2 * TIMED:,} events, {PAIRS} pairs: {statistics.median(ratios):.2f} times "
          f"({min(ratios):.2f} .. {max(ratios):.2f})")
    print(f"bytes for each event: {(sizes[1] - sizes[0]) / (2 * (MANY - FEW)):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
