#!/usr/bin/env python3
"""Shows that tools/check_old_systems.py fails where it must."""

import os
import pathlib
import shlex
import subprocess
import tempfile
import unittest

import check_old_systems

COMPILER = shlex.split(os.environ.get("CC", "cc"))
SOURCE = """
extern int strerrordesc_np(int);  /* of glibc 2.32 */
int ask(int error) { return strerrordesc_np(error); }
"""
WEAK = SOURCE.replace("extern", "extern __attribute__((weak))")


class OldSystems(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def make(self, name: str, source: str) -> str:
        (self.folder / "x.c").write_text(source, encoding="utf-8")
        subprocess.run([*COMPILER, "-w", "-fPIC", "-shared", "x.c", "-o", name], cwd=self.folder, check=True)
        return str(self.folder / name)

    def test_a_new_symbol(self):
        library = self.make("new.so", SOURCE)
        self.assertEqual(check_old_systems.too_new(library, "2.32"), [])
        self.assertEqual(len(check_old_systems.too_new(library, "2.31")), 1)

    def test_a_name_that_is_missing(self):
        other = self.make("other.so", "int something;")
        self.assertEqual(len(check_old_systems.missing(self.make("new.so", SOURCE), other)), 1)
        self.assertEqual(check_old_systems.missing(self.make("weak.so", WEAK), other), [])


if __name__ == "__main__":
    unittest.main()
