#!/usr/bin/env python3
"""tools/wine: hands on streams and status, ends what has to end, and starts many at once."""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

RUNNER = os.environ["REHEAP_TEST_RUNNER"]
PROGRAM = os.environ["REHEAP_TEST_PROGRAM"]
BITS = int(os.environ["REHEAP_TEST_BITS"])


def run(*words: str, options: tuple = (), given: str = "") -> subprocess.CompletedProcess:
    return subprocess.run([RUNNER, *options, PROGRAM, *words], input=given, capture_output=True, text=True, timeout=120)


class Wine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.sign = pathlib.Path(folder.name) / "alive"

    def assertDead(self):
        self.assertTrue(self.sign.exists(), "it never lived, so that its end shows nothing")
        size = self.sign.stat().st_size
        time.sleep(0.5)
        self.assertEqual(self.sign.stat().st_size, size)

    def test_streams(self):
        done = run("echo", given="one\ntwo\n")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "read one\nread two\n", "error stream\n"))

    def test_status(self):
        self.assertEqual([run("exit", status).returncode for status in ("0", "1", "77", "255")], [0, 1, 77, 255])

    def test_a_crash_is_a_status(self):
        done = run("crash")
        self.assertEqual((done.returncode, done.stdout), (5, ""))  # 0xC0000005

    def test_processor(self):
        self.assertEqual(run("bits").returncode, BITS)

    def test_a_timeout_ends_the_program(self):
        done = run("live", str(self.sign), options=("--timeout", "3"))
        self.assertEqual(done.returncode, 124)
        self.assertIn("did not end within 3 s", done.stderr)
        self.assertDead()

    def test_what_a_program_leaves_behind_ends_with_it(self):
        self.assertEqual(run("leave", str(self.sign)).returncode, 0)
        self.assertDead()

    def test_an_ended_runner_takes_all_with_it(self):
        runner = subprocess.Popen([RUNNER, PROGRAM, "leave", str(self.sign)])
        while not self.sign.exists():
            time.sleep(0.05)
        runner.terminate()
        self.assertEqual(runner.wait(30), 128 + 15)
        self.assertDead()

    def test_a_program_of_this_system_is_run_as_it_is(self):
        done = subprocess.run([RUNNER, sys.executable, "-c", "print('here')"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "here\n"))

    def test_misuse(self):
        for words in ([], ["--timeout"], ["--other", PROGRAM], ["--timeout", "soon", PROGRAM],
                      ["--timeout", "-1", PROGRAM]):
            done = subprocess.run([RUNNER, *words], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (125, ""), words)
            self.assertRegex(done.stderr, "^wine: (use: tools/wine|--timeout takes seconds)")

    def test_many_at_once(self):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            statuses = list(pool.map(lambda number: run("exit", str(number)).returncode, range(8)))
        self.assertEqual(statuses, list(range(8)))


if __name__ == "__main__":
    unittest.main()
