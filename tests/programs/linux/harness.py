"""Programs of Linux, on the system's heap and on reheap.

Every run under reheap is proved from inside its process: `reheap run --verbose` makes the library write one
line at the start of each process, the children's too, with who serves malloc there ("start"). Where a program would
take lines on stderr for its children's, the proof is that the library is mapped, with the statistics a process of the
program leaves ("exit": --stats=FILE; the last to end writes them), and reheap doctor.

REHEAP_TEST_LIBRARY=PATH puts another allocator in reheap's place, unproved: to see whether a failure is reheap's.
"""

import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/programs"))
from comparison import PATIENCE, Comparison, Given, Normalise, Result, main, need, tail  # noqa: E402, F401  for tests

COMMAND = os.environ["REHEAP_TEST_COMMAND"]
OTHER_LIBRARY = os.environ.get("REHEAP_TEST_LIBRARY")
INPUTS = ROOT / "tests/programs/inputs"

# git hands on what the other end of a clone says.
START_LINE = re.compile(rb"^(?:remote: )?reheap: (\{.*\}) *\n", re.MULTILINE)


def environment(**more: str) -> dict[str, str]:
    """The same for every machine and both runs."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "TMPDIR", "USER", "LOGNAME")}
    return kept | {"LC_ALL": "C.UTF-8", "TZ": "UTC", "HOME": "/nonexistent"} | more


class ProgramTest(Comparison):
    def command(self, words: list[str]) -> list[str]:
        return [need(words[0]), *words[1:]]

    def environment(self, variables: dict[str, str]) -> dict[str, str]:
        return environment(**variables)

    def assert_reached(self, *words: str):
        """reheap doctor: this program's malloc is reheap's."""
        if OTHER_LIBRARY:
            return
        done = subprocess.run([COMMAND, "doctor", "--json", "--", *words], capture_output=True, env=environment())
        self.assertEqual(done.returncode, 0, f"{words[0]} is not reached: {done.stdout.decode()}{done.stderr.decode()}")

    def under_reheap(self, words: list[str], options: tuple[str, ...] = ()) -> list[str]:
        words = self.command(words)
        if OTHER_LIBRARY:
            return [COMMAND, "run", f"--library={OTHER_LIBRARY}", "--require", "--", *words]
        return [COMMAND, "run", "--require", *options, "--", *words]

    def on_reheap(self, words: list[str], given: Given, proof: str, processes: int, refills: int) -> Result:
        if OTHER_LIBRARY:
            return self.execute(self.under_reheap(words), given)
        if proof == "start":
            return self.served_from_start(self.execute(self.under_reheap(words, ("--verbose",)), given), processes)
        statistics = self.folder / "statistics.json"
        result = self.execute(self.under_reheap(words, (f"--stats={statistics}",)), given, self.assert_mapped)
        self.assertTrue(statistics.exists(), f"no statistics at exit: {tail(result)}")
        self.served_at_exit(statistics, refills)
        return result

    def served_from_start(self, result: Result, at_least: int) -> Result:
        """Takes the library's lines out of stderr, and holds them to what they have to say."""
        reports = [json.loads(line) for line in START_LINE.findall(result.errors)]
        for report in reports:
            self.assertTrue(report["overridden"], f"malloc is served by {report['malloc_served_by']}")
        pids = {report["pid"] for report in reports}
        self.assertIn(result.pid, pids, f"reheap did not start in the program itself: {tail(result)}")
        self.assertGreaterEqual(len(pids), at_least, "reheap did not start in every process")
        return dataclasses.replace(result, errors=START_LINE.sub(b"", result.errors))

    def served_at_exit(self, path: pathlib.Path, refills: int = 1) -> dict:
        """The statistics a process left; it has served blocks by them."""
        statistics = json.loads(path.read_bytes())
        self.assertGreaterEqual(statistics["slow_paths"]["refill"], refills, statistics)
        self.assertGreater(len(statistics["classes"]), 0, statistics)
        return statistics

    def assert_mapped(self, program: subprocess.Popen) -> None:
        """The library is loaded into the process, or will be in a moment."""
        maps = pathlib.Path(f"/proc/{program.pid}/maps")
        deadline = time.monotonic() + 20
        while "/libreheap.so" not in maps.read_text():
            if time.monotonic() > deadline or program.poll() is not None:
                self.fail("libreheap.so is not mapped in the program")
            time.sleep(0.005)
