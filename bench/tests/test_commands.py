"""What the benchmarks compute from what the programs print, and what they refuse."""

import time
import unittest
from pathlib import Path
from unittest import mock

import bench
import corpus
import fast_path
import idle
import peers
import startup
import synthetic
from common import allocators, measuring
from common.allocators import Allocator, choose
from common.errors import BenchError
from common.measuring import Sample, measure
from common.report import WALL
from common.rounds import SampleFailed

SYSTEM, OTHER = Allocator("system"), Allocator("other", "", ("/x.so",))


def sample(output: str = "", wall: float = 1.0, peak: int | None = 1000) -> Sample:
    return Sample(wall_s=wall, cpu_s=0.5, peak_kib=peak, faults=1, output=output)


class Idle(unittest.TestCase):
    def test_share_is_of_what_the_blocks_added(self):
        printed = sample("before 1000\nfull 11000\nafter_2000_ms 2000\n")
        self.assertEqual(idle.share_left(printed, "after_2000_ms"), 10.0)


class FastPath(unittest.TestCase):
    def test_start_up_cancels_out(self):
        path = fast_path.Shortest("mixed", "", 100, (10, 30), (10, 30))
        counted = fast_path.per_pair(lambda _, program: 5_000_000 + 70 * 100 * int(program[-1]), SYSTEM, path)
        self.assertEqual(counted, 70.0)

    def test_both_ways_of_counting_agree(self):
        program = [str(fast_path.build_program("fast_path.c")), "pairs", "1"]
        by_callgrind, by_steps = (count(SYSTEM, program) for count in (fast_path.by_callgrind, fast_path.by_steps))
        self.assertAlmostEqual(by_callgrind / by_steps, 1.0, delta=0.1)


class Startup(unittest.TestCase):
    def test_added_is_against_the_same_round(self):
        ways = [startup.Starter("system", SYSTEM), startup.Starter("other", OTHER)]
        samples = [[sample(peak=1000), sample(peak=2000)], [sample(peak=1100), sample(peak=2100)]]
        last = startup.table("true", ways, samples).splitlines()[-1]
        self.assertRegex(last, r"^other +1,600 +100 +100 \.\. 100 ")


class Synthetic(unittest.TestCase):
    def test_the_mean_is_over_the_workloads(self):
        results = [
            synthetic.Result("a", 1, [[sample(wall=1.0)], [sample(wall=0.5)]]),
            synthetic.Result("b", 2, [[sample(wall=1.0)], [sample(wall=2.0)]]),
        ]
        lines = synthetic.ratio_table(results, [SYSTEM, OTHER], WALL).splitlines()
        self.assertRegex(lines[2], r"^a 1 +1\.00 +0\.50$")
        self.assertRegex(lines[-1], r"^geometric mean +1\.00$")

    def test_an_unknown_workload_is_refused(self):
        with self.assertRaisesRegex(BenchError, "unknown workload larsen; known: larson"):
            synthetic.select("larsen")


class Names(unittest.TestCase):
    def setUp(self):
        known = {"good": {"version": "1", "preload": ["/good.so"]}, "bad": {"missing": "does not compile"}}
        patch = mock.patch.object(allocators, "_known_peers", lambda: known)
        proof = mock.patch.object(allocators, "prove", lambda allocator: {})
        for one in (patch, proof):
            one.start()
            self.addCleanup(one.stop)

    def test_a_peer_that_could_not_be_built_is_named_and_left_out(self):
        choice = choose(["peers"], reheap=False)
        self.assertEqual([str(one) for one in choice.allocators], ["system", "good"])
        self.assertEqual(choice.missing, {"bad": "does not compile"})

    def test_unknown_names_are_refused(self):
        with self.assertRaisesRegex(BenchError, "unknown allocator 'god'; known: system, reheap, bad, good"):
            choose(["god"], reheap=False)
        with self.assertRaisesRegex(BenchError, "no library /nowhere/x.so"):
            choose(["new=/nowhere/x.so"], reheap=False)
        with self.assertRaisesRegex(BenchError, "unknown peer snmaloc"):
            peers.select("snmaloc")

    def test_a_library_by_its_path(self):
        choice = choose([f"mine={__file__}"], reheap=False)
        self.assertEqual(choice.allocators[1], Allocator("mine", "", (__file__,)))


class Commands(unittest.TestCase):
    def test_every_measurement_has_an_export_of_its_own(self):
        for given in (["--export", "/a/b.json"], ["--export=/a/b.json"]):
            self.assertEqual("=".join(bench._with_own_export(given, "idle")), "--export=/a/idle-b.json")

    def test_the_link_does_not_depend_on_the_machine(self):
        command = corpus.link_command([], corpus.CORPUS / "x.so")
        for flag in ("--threads=2", "--thinlto-jobs=2", "--build-id=none"):
            self.assertIn(flag, command)


def running(command_line: str) -> list[str]:
    """The processes with these arguments."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:  # it ended while we looked
            continue
        if arguments == command_line:
            found.append(folder.name)
    return found


class Hanging(unittest.TestCase):
    def test_a_run_that_hangs_is_ended(self):
        with mock.patch.object(measuring, "LONGEST_RUN_S", 0.2):
            with self.assertRaisesRegex(SampleFailed, "still running"):
                measure(["sleep", "61.25"], SYSTEM)
        time.sleep(0.1)  # a killed process is gone a moment later
        self.assertEqual(running("sleep 61.25"), [])


if __name__ == "__main__":
    unittest.main()
