"""Installed by pip, the command lies among the scripts of a Python and the library in its packages."""

import os
import pathlib
import shutil
import subprocess
import unittest

from support import *


class PythonPackage(CommandTest):
    def setUp(self):
        super().setUp()
        (self.folder / "bin").mkdir()
        self.command = self.copy(COMMAND, "bin/reheap")

    def install(self, place: str) -> str:
        library = self.folder / place / "reheap" / "lib" / "libreheap.so"
        library.parent.mkdir(parents=True)
        return str(shutil.copy(FAKE_LIBRARY, library))

    def preloaded(self, command: str | pathlib.Path) -> str:
        """The same by either way."""
        found = set()
        for name, options in WAYS.items():
            done = subprocess.run([command, "run", *options, "--", SHOW], env=environment(), capture_output=True)
            self.assertEqual((done.returncode, done.stderr), (0, b""), name)
            found.add(shown(done.stdout).variables[b"LD_PRELOAD"].decode())
        self.assertEqual(len(found), 1)
        return found.pop()

    def test_it_is_found_in_every_layout(self):
        for place in ("lib/python3.12/site-packages", "lib/python3/dist-packages", "lib64/python3.9/site-packages",
                      "lib/pypy3.11/site-packages", "lib/python3.13t/site-packages", ""):
            with self.subTest(place=place):
                library = self.install(place)
                self.assertEqual(self.preloaded(self.command), library)
                shutil.rmtree(self.folder / (place.split("/")[0] or "reheap"))

    def test_of_several_the_newest_pythons(self):
        self.install("lib/python3.9/site-packages")
        library = self.install("lib/python3.13/site-packages")
        self.install("lib/python3.12/site-packages")
        (self.folder / "lib/python3.14/site-packages").mkdir(parents=True)
        (self.folder / "lib/python3.15").write_text("no folder")
        self.assertEqual(self.preloaded(self.command), library)

    def test_where_very_many_lie_beside_it(self):
        for number in range(500):
            (self.folder / "lib" / f"python-{number:060}").mkdir(parents=True)
        library = self.install("lib/python3.13/site-packages")
        self.assertEqual(self.preloaded(self.command), library)

    def test_by_a_link_and_past_a_folder_that_may_not_be_read(self):
        library = self.install("lib/python3.13/site-packages")
        link = self.folder / "a link"
        link.symlink_to(self.command)
        os.mkdir(self.folder / "lib64", 0)
        self.assertEqual(self.preloaded(link), library)

    def test_a_link_to_the_unpacked_wheel(self):
        """As uv makes environments of links to its cache."""
        (self.folder / "reheap-0.1.0.data/scripts").mkdir(parents=True)
        unpacked = self.copy(COMMAND, "reheap-0.1.0.data/scripts/reheap")
        library = self.install("")
        link = self.folder / "bin/linked"
        link.symlink_to(unpacked)
        self.assertEqual(self.preloaded(link), library)

    def test_what_lies_where_it_always_lay_goes_first(self):
        self.install("lib/python3.13/site-packages")
        library = self.copy(FAKE_LIBRARY, "lib/libreheap.so")
        self.assertEqual(self.preloaded(self.command), library)

    def test_without_one_nothing_else_is_taken(self):
        (self.folder / "lib/python3.13/site-packages").mkdir(parents=True)
        done = subprocess.run([self.command, "run", "--", SHOW], env=environment(), capture_output=True)
        self.assertEqual(done.returncode, 125)
        self.assert_one_line(done.stderr, f"cannot find libreheap.so (looked for {self.folder}/lib/libreheap.so")


if __name__ == "__main__":
    unittest.main(verbosity=2)
