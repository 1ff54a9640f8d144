#!/usr/bin/env python3
"""make_hook.py: the folder it makes, and what it refuses."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import fake_crt
import make_hook

SCRIPT = pathlib.Path(make_hook.__file__)


class Hook(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.here = pathlib.Path(folder.name)
        self.library = fake_crt.archive(self.here / "reheap.lib", [fake_crt.assemble(self.here, "x.obj", ["malloc"])])

    def call(self, *words: str | os.PathLike) -> subprocess.CompletedProcess:
        command = [sys.executable, "-B", SCRIPT, f"--library={self.library}", *words]
        return subprocess.run(command, cwd=self.here, capture_output=True, text=True)

    def refused(self, reason: str, *words: str | os.PathLike) -> None:
        done = self.call(*words)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertIn(reason, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def made(self, target: pathlib.Path, *words: str | os.PathLike) -> None:
        done = self.call(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"-DLLVM_INTEGRATED_CRT_ALLOC={target.as_posix()}", done.stdout)
        self.assertEqual((target / make_hook.PLACE).read_bytes(), self.library.read_bytes())

    def test_the_folder(self):
        self.made(self.here / "hook" / "mimalloc", "hook")

    def test_a_path_that_ends_as_llvm_wants(self):
        self.made(self.here / "mimalloc", "mimalloc")

    def test_a_path_with_a_space(self):
        target = self.here / "my hook" / "mimalloc"
        done = self.call("my hook")
        self.assertIn(f'"-DLLVM_INTEGRATED_CRT_ALLOC={target}"', done.stdout)

    def test_anew_by_force_only(self):
        self.made(self.here / "hook" / "mimalloc", "hook")
        before = self.library.read_bytes()
        self.library = fake_crt.archive(self.library, [fake_crt.assemble(self.here, "y.obj", ["malloc", "free"])])
        self.refused("--force", "hook")
        self.assertEqual((self.here / "hook" / "mimalloc" / make_hook.PLACE).read_bytes(), before)
        self.made(self.here / "hook" / "mimalloc", "hook", "--force")

    def test_what_somebody_else_made_stays(self):
        theirs = self.here / "mimalloc" / "readme.md"
        theirs.parent.mkdir()
        theirs.write_text("mimalloc", encoding="utf-8")
        self.refused("not made by this command", "mimalloc", "--force")
        self.assertEqual(theirs.read_text(encoding="utf-8"), "mimalloc")

    def test_a_file_in_the_way(self):
        (self.here / "mimalloc").write_text("", encoding="utf-8")
        self.refused("is no folder", "mimalloc")

    def test_a_semicolon(self):
        self.refused("semicolon", "a;b")

    def test_libraries_that_do_not_serve(self):
        self.library.write_bytes(b"no library")
        self.refused("is not a static library", "hook")
        fake_crt.archive(self.library, [fake_crt.assemble(self.here, "core.obj", ["rh_malloc"])])
        self.refused("defines no malloc", "hook")
        self.library.unlink()
        self.refused("there is no", "hook")
        self.assertFalse((self.here / "hook").exists())


if __name__ == "__main__":
    unittest.main()
