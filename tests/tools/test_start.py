#!/usr/bin/env python3
"""Shows that tools/check_start.py fails where it must, on small libraries whose rare code lies apart or does not."""

import os
import pathlib
import shlex
import subprocess
import tempfile
import unittest

import check_start

COMPILER = shlex.split(os.environ.get("CC", "cc"))
LAYOUT = """
SECTIONS {
  .text_rare ALIGN(CONSTANT(MAXPAGESIZE)) + 2 * CONSTANT(MAXPAGESIZE) : { *(rare) }
} INSERT AFTER .rodata;
"""
SOURCE = """
__attribute__((section("rare"), noinline)) int seldom(int x) { return x + 1; }
__attribute__((constructor)) static void start(void) {}
"""
CALL = "__attribute__((constructor)) static void call(void) { static volatile int x; x = seldom(x); }"


class Start(unittest.TestCase):
    def problem(self, source: str, *flags: str) -> str | None:
        with tempfile.TemporaryDirectory() as folder:
            here = pathlib.Path(folder)
            (here / "x.c").write_text(source, encoding="utf-8")
            (here / "x.ld").write_text(LAYOUT, encoding="utf-8")
            subprocess.run([*COMPILER, "-O2", "-fPIC", "-shared", "x.c", "-o", "x.so", *flags], cwd=here, check=True)
            return check_start.problem(str(here / "x.so"))

    def test_rare_code_on_disk_passes(self):
        self.assertIsNone(self.problem(SOURCE, "-Wl,-z,noseparate-code", "-Wl,-T,x.ld"))

    def test_rare_code_called(self):
        self.assertIn("KiB of what few programs run", self.problem(SOURCE + CALL, "-Wl,-z,noseparate-code",
                                                                   "-Wl,-T,x.ld"))

    def test_no_code_apart(self):
        self.assertIn("no second segment", self.problem(SOURCE))


if __name__ == "__main__":
    unittest.main()
