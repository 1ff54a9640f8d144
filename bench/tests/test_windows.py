"""What the Windows benchmark takes for proven, and what it leaves out."""

import subprocess
import tempfile
import unittest
from pathlib import Path

import windows
from common import windows as runs
from common import windows_peers
from common.errors import BenchError
from common.programs import build_program
from common.rounds import SampleFailed

PLAIN, REDIRECTED, PEER = (runs.SUBJECTS[name] for name in ("wine", "reheap", "mimalloc"))
START = 'reheap: {"pid":7,"overridden":true}\n'
HEAP, RUNTIME = (f"reheap: {name} at 0x170000000: replaced heap (14)\n" for name in ("ntdll.dll", "ucrtbase.dll"))
LINE = HEAP + RUNTIME + START
PEERS_LINES = "".join(f'peer: {{"name":"mimalloc","pid":7,"replaced":"{dll}"}}\n' for dll in ("ntdll.dll", "ucrtbase.dll"))
STATIC = runs.Program("static", (), file=Path("static.exe"), runtime=False)


def report(*names: str, wines: bool = True) -> dict:
    modules = [{"name": name, "path": name, "wines": wines and name == "ucrtbase.dll"} for name in names]
    return {"pid": 7, "exit": 0, "wall_ns": 2_000_000_000, "modules": modules}


class Served(unittest.TestCase):
    def test_by_the_allocator_it_stands_for(self):
        right = [
            (PLAIN, report("ucrtbase.dll"), ""),
            (REDIRECTED, report("ucrtbase.dll", "reheap.dll"), LINE),
            (PEER, report("ucrtbase.dll", "peer_mimalloc.dll"), PEERS_LINES),
            (runs.SUBJECTS["microsoft"], report("ucrtbase.dll", wines=False), ""),
            (runs.SUBJECTS["reheap-linked"], report("ucrtbase.dll"), START),
            (runs.SUBJECTS["reheap-heap"], report("ucrtbase.dll", "reheap.dll"), HEAP + START),
            (runs.SUBJECTS["reheap-crt"], report("ucrtbase.dll", "reheap.dll"), LINE.replace('"pid":7', '"pid":6') + RUNTIME + START),
            (runs.SUBJECTS["mimalloc-linked"], report("ucrtbase.dll", "mimalloc.dll"), ""),
        ]
        for subject, told, errors in right:
            runs.check_served(windows.maltest(), subject, told, errors)

    def test_by_another_one(self):
        wrong = [
            (PLAIN, report(), ""),
            (PLAIN, report("ucrtbase.dll", wines=False), ""),
            (PLAIN, report("ucrtbase.dll", "reheap.dll"), LINE),
            (PLAIN, report("ucrtbase.dll"), LINE),
            (REDIRECTED, report("ucrtbase.dll"), LINE),
            (REDIRECTED, report("ucrtbase.dll", "reheap.dll"), ""),
            (REDIRECTED, report("ucrtbase.dll", "reheap.dll"), LINE.replace('"pid":7', '"pid":8')),
            (REDIRECTED, report("ucrtbase.dll", "reheap.dll"), LINE.replace("true", "false")),
            (REDIRECTED, report("ucrtbase.dll", "reheap.dll"), HEAP + START),
            (REDIRECTED, report("ucrtbase.dll", "reheap.dll"), RUNTIME + START),
            (runs.SUBJECTS["reheap-heap"], report("ucrtbase.dll", "reheap.dll"), LINE),
            (runs.SUBJECTS["reheap-crt"], report("ucrtbase.dll", "reheap.dll"), LINE),
            (PEER, report("ucrtbase.dll"), PEERS_LINES),
            (PEER, report("ucrtbase.dll", "peer_rpmalloc.dll"), PEERS_LINES),
            (PEER, report("ucrtbase.dll", "peer_mimalloc.dll"), ""),
            (PEER, report("ucrtbase.dll", "peer_mimalloc.dll"), PEERS_LINES.replace("7", "8")),
            (PEER, report("ucrtbase.dll", "peer_mimalloc.dll"), PEERS_LINES.replace("ucrtbase", "msvcrt")),
            (PEER, report("ucrtbase.dll", "peer_mimalloc.dll"), PEERS_LINES.replace("ntdll", "msvcrt")),
            (PEER, report("ucrtbase.dll", "peer_mimalloc.dll"), PEERS_LINES.replace("replaced", "left")),
            (runs.SUBJECTS["mimalloc-linked"], report("ucrtbase.dll"), ""),
        ]
        for subject, told, errors in wrong:
            with self.subTest(subject=subject.name, told=told, errors=errors), self.assertRaises(SampleFailed):
                runs.check_served(windows.maltest(), subject, told, errors)

    def test_a_program_without_a_runtime_has_the_heap_alone(self):
        runs.check_served(STATIC, PLAIN, report(), "")
        for lines in (PEERS_LINES, PEERS_LINES.splitlines()[0]):
            runs.check_served(STATIC, PEER, report("peer_mimalloc.dll"), lines)
        with self.assertRaisesRegex(SampleFailed, "replaced were functions of nothing"):
            runs.check_served(STATIC, PEER, report("peer_mimalloc.dll"), "")
        self.assertFalse(STATIC.takes(runs.SUBJECTS["mimalloc-crt"]))

    def test_a_runtime_with_a_heap_of_its_own_needs_an_allocator_with_heaps(self):
        for name, taken in (("mimalloc-heap", True), ("rpmalloc-heap", False), ("rpmalloc", True)):
            self.assertEqual(windows.maltest().takes(runs.SUBJECTS[name]), taken, name)
        self.assertTrue(STATIC.takes(runs.SUBJECTS["rpmalloc-heap"]))


class Figures(unittest.TestCase):
    def test_what_was_not_measured_is_a_dash(self):
        sample = runs.sample(report(), {"found": False}, "")
        self.assertEqual((sample.wall_s, sample.cpu_s, sample.system_s, sample.peak_kib, sample.commit_kib),
                         (2.0, None, None, None, None))
        measured = windows.Measured(windows.maltest(), [PLAIN], [[sample]])
        self.assertEqual(windows.rows_of(measured), [["maltest", "wine", "2.00", "", *["-", ""] * 4]])

    def measured(self, **digests: str) -> windows.Measured:
        subjects = [REDIRECTED, PEER, PLAIN]
        samples = [[runs.sample(report(), {}, "")] for _ in subjects]
        return windows.Measured(windows.maltest(), subjects, samples, {name: set(text) for name, text in digests.items()})

    def test_another_output_than_the_plain_program_s_takes_the_figures_away(self):
        measured = self.measured(reheap="b", mimalloc="a", wine="a")
        self.assertEqual(measured.leave_out_wrong(), {"reheap in maltest": "the program's output was another one"})
        self.assertEqual([bool(samples[0]) for samples in measured.samples], [False, True, True])

    def test_the_same_outputs_leave_all(self):
        self.assertEqual(self.measured(reheap="a", mimalloc="a", wine="a").leave_out_wrong(), {})

    def test_a_plain_program_that_says_another_thing_each_time_cannot_be_compared(self):
        with self.assertRaisesRegex(BenchError, "maltest: its outputs differ from run to run"):
            self.measured(reheap="a", mimalloc="a", wine="ab").leave_out_wrong()

    def test_only_programs_of_ours_can_have_one_linked_in(self):
        self.assertTrue(windows.maltest().takes(runs.SUBJECTS["reheap-linked"]))
        self.assertFalse(runs.Program("lld", (), file=Path("lld.exe")).takes(runs.SUBJECTS["reheap-linked"]))


class SideBySide(unittest.TestCase):
    def test_each_place_has_an_output_of_its_own(self):
        program = runs.Program("clang", ("-o", "/there/unit.o", "unit.ii"), output=Path("/there/unit.o"))
        other = program.at(1)
        self.assertEqual((other.arguments, other.output), (("-o", "/there/unit-1.o", "unit.ii"), Path("/there/unit-1.o")))
        self.assertEqual(program.at(0), program)

    def test_what_it_needs(self):
        for arguments, text in (("--on reheap --rounds 9", "needs two allocators"), ("--rounds 5", "needs --rounds 6")):
            with self.subTest(arguments=arguments), self.assertRaisesRegex(BenchError, text):
                windows.read(["--side-by-side", *arguments.split()])


class Layers(unittest.TestCase):
    def test_they_compile_with_the_functions_of_reheap_dll_that_they_use(self):
        """The allocators themselves are fetched when they are measured."""
        try:
            compiler = windows_peers.clang("clang++")
        except BenchError as missing:
            self.skipTest(str(missing))
        for source in (*windows_peers.OWN, *windows_peers.SHARED, windows_peers.LAYERS / "system.c"):
            language = windows_peers.CPP if source.suffix == ".cpp" else ("-x", "c", "-std=gnu11")
            with self.subTest(source=source.name):
                done = subprocess.run([compiler, *windows_peers.TARGET, *language, "-fsyntax-only", source],
                                      stderr=subprocess.PIPE, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""))


class Watching(unittest.TestCase):
    def watch(self, name: str, *command: str) -> tuple[int, str]:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "out")
            program = build_program("watch.c", "-static")
            status = subprocess.run([program, "--out", out, "--name", name, "--", *command]).returncode
            return status, out.read_text()

    def test_a_process_that_left_its_parent(self):
        status, text = self.watch("sleep", "sh", "-c", "(sleep 0.3 &); sleep 0.1; exit 3")
        self.assertEqual(status, 3)
        self.assertRegex(text, r'"found":true,"commit_kib":[1-9]\d*,"user_us":\d+,"system_us":\d+,"peak_kib":[1-9]')

    def test_none_of_the_name(self):
        self.assertEqual(self.watch("nobody.exe", "true"), (0, '{"found":false}\n'))


class Maltest(unittest.TestCase):
    def test_the_sum_is_the_same_each_time(self):
        program = build_program("maltest.cpp")
        sums = {subprocess.run([program, "2"], stdout=subprocess.PIPE, check=True).stdout for _ in range(2)}
        self.assertEqual(len(sums), 1)


if __name__ == "__main__":
    unittest.main()
