"""The instruments themselves: the launcher, the witness and the proof of who serves malloc."""

import os
import resource
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from common.allocators import Allocator, check_proof, prove, serves
from common.errors import BenchError
from common.measuring import check_testimony, measure
from common.programs import build_program
from common.rounds import SampleFailed

SYSTEM = Allocator("system")

# Serves malloc itself: blocks are cut from a mapping and never freed.
BUMP = """
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#define SHOWN __attribute__((visibility("%s")))
static char* at; static size_t left;
SHOWN void* malloc(size_t size) {
  size = (size + 31) / 16 * 16;
  if (size > left) {
    left = size + (64 << 20);
    at = mmap(0, left, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) { errno = ENOMEM; left = 0; return 0; }
  }
  *(size_t*)at = size - 16; void* block = at + 16; at += size; left -= size; return block;
}
SHOWN size_t malloc_usable_size(void* block) { return block ? ((size_t*)block)[-2] : 0; }
SHOWN void free(void* block) { (void)block; }
SHOWN void* calloc(size_t n, size_t size) { return malloc(n * size); }
SHOWN void* realloc(void* old, size_t size) {
  void* block = malloc(size); size_t had = malloc_usable_size(old);
  if (old && block) memcpy(block, old, had < size ? had : size);
  return block;
}
"""


def build_library(folder: Path, text: str, name: str) -> Allocator:
    source, library = folder / f"{name}.c", folder / f"{name}.so"
    source.write_text(text)
    command = ["cc", "-O1", "-fno-builtin", "-shared", "-fPIC", "-w", "-o", library, source]
    subprocess.run(command, check=True)
    return Allocator(name, "", (str(library),))


class Launcher(unittest.TestCase):
    def test_exit_status_and_signal_are_failures(self):
        with self.assertRaisesRegex(SampleFailed, "exit status 7"):
            measure(["sh", "-c", "exit 7"], SYSTEM)
        with self.assertRaisesRegex(SampleFailed, "signal 9"):
            measure(["sh", "-c", "kill -9 $$"], SYSTEM)

    def test_a_command_that_is_not_there_is_named(self):
        with self.assertRaisesRegex(BenchError, "no-such-command"):
            measure(["no-such-command"], SYSTEM)

    def test_output_and_environment_reach_the_command(self):
        shown = measure(["sh", "-c", "echo $A$LD_PRELOAD"], SYSTEM, settings=["A=1"], witness=False, keep_output=True)
        self.assertEqual(shown.output, "1\n")

    def test_times_are_those_of_the_command(self):
        slept = measure(["sleep", "0.2"], SYSTEM)
        self.assertGreaterEqual(slept.wall_s, 0.2)
        self.assertLess(slept.cpu_s, 0.1)

    def test_peak_is_not_this_interpreter(self):
        ballast = bytearray(64 << 20)
        ballast[::4096] = b"x" * len(ballast[::4096])
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.assertGreater(own, 64 << 10)
        self.assertLess(measure(["true"], SYSTEM).peak_kib, 8 << 10)

    @unittest.skipUnless(shutil.which("time"), "needs Debian's package time")
    def test_figures_agree_with_time(self):
        command = ["head", "-c", "1000000", "/dev/zero"]
        code = ["perl", "-e", '$a = "x" x 50_000_000; print length $a']
        for one in (command, code):
            ours = measure(one, SYSTEM, witness=False)
            shown = subprocess.run([shutil.which("time"), "-f", "%M %R", *one], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            peak, faults = map(int, shown.stderr.split())
            self.assertAlmostEqual(ours.peak_kib, peak, delta=0.05 * peak + 256)
            self.assertAlmostEqual(ours.faults, faults, delta=0.05 * faults + 64)


class Proof(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def test_the_system_heap(self):
        self.assertGreaterEqual(prove(SYSTEM)["libc_grew"], 1 << 20)

    def test_a_library_that_serves_malloc(self):
        allocator = build_library(self.folder, BUMP % "default", "bump")
        self.assertEqual(prove(allocator)["libc_grew"], 0)
        measure(["true"], allocator)

    def test_hidden_symbols_are_found_out(self):
        allocator = build_library(self.folder, BUMP % "hidden", "hidden")
        with self.assertRaisesRegex(BenchError, "malloc is served by .*libc"):
            prove(allocator)
        with self.assertRaisesRegex(SampleFailed, "malloc was served by .*libc"):
            measure(["true"], allocator)

    def test_a_library_that_only_forwards_is_found_out(self):
        report = {name: "/x.so" for name in ("malloc", "free", "realloc", "calloc")}
        report |= {"libc_grew": 1 << 20, "taken": 1 << 20}
        with self.assertRaisesRegex(BenchError, "libc's heap grew"):
            check_proof(Allocator("x", "", ("/x.so",)), report)

    def test_a_library_that_cannot_be_loaded(self):
        with self.assertRaises(BenchError):
            prove(Allocator("gone", "", (str(self.folder / "gone.so"),)))

    def test_a_preload_of_the_callers_shell_is_left_out(self):
        allocator = build_library(self.folder, BUMP % "default", "bump")
        with mock.patch.dict(os.environ, LD_PRELOAD=allocator.preload[0]):
            measure(["true"], SYSTEM)
            measure(["true"], SYSTEM, witness=False)
            prove(SYSTEM)

    def test_no_testimony_is_a_failure(self):
        with self.assertRaisesRegex(SampleFailed, "no process"):
            check_testimony(SYSTEM, "")

    def test_a_child_served_by_another_is_a_failure(self):
        with self.assertRaisesRegex(SampleFailed, "/other.so"):
            check_testimony(SYSTEM, "1 /lib/libc.so.6\n2 /other.so\n")

    def test_a_link_to_the_library_is_the_library(self):
        library = self.folder / "a.so"
        library.touch()
        os.symlink(library, self.folder / "b.so")
        self.assertTrue(serves(Allocator("a", "", (str(library),)), str(self.folder / "b.so")))

    def test_a_static_program_is_found_out(self):
        with self.assertRaises(SampleFailed):
            program = build_program("measure.c", "-static")
            measure([program, "--out", "/dev/null", "--", "/nonexistent"], SYSTEM)


if __name__ == "__main__":
    unittest.main()
