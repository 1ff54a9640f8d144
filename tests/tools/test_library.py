#!/usr/bin/env python3
"""Shows that tools/check_library.py fails where it must, on small libraries with one fault each."""

import os
import pathlib
import shlex
import subprocess
import tempfile
import unittest

import check_library

COMPILER = shlex.split(os.environ.get("CC", "cc"))
LINK = ["-Wl,-z,now", "-Wl,-z,nodelete"]
SOURCE = """
static __thread int used __attribute__((tls_model("initial-exec")));
int malloc_(void) { return used++; }
int _Znwm(void) { return 0; }
__attribute__((visibility("hidden"))) int inner(void) { return 0; }
"""
EXPECTED = "malloc_  # the C part\n\n_Znw{size}\n"


class Library(unittest.TestCase):
    def problems(self, *flags: str, source: str = SOURCE, expected: str = EXPECTED) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            here = pathlib.Path(folder)
            (here / "x.c").write_text(source, encoding="utf-8")
            (here / "expected").write_text(expected, encoding="utf-8")
            subprocess.run([*COMPILER, "-w", "-O2", "-fPIC", "-shared", "x.c", "-o", "x.so", *flags], cwd=here,
                           check=True)
            return check_library.problems(str(here / "x.so"), str(here / "expected"))

    def one(self, words: str, *flags: str, **changes: str) -> None:
        found = self.problems(*flags, **changes)
        self.assertEqual(len(found), 1, found)
        self.assertIn(words, found[0])

    def test_good_library_passes(self):
        self.assertEqual(self.problems(*LINK), [])

    def test_name_too_many(self):
        self.one("exports extra", *LINK, source=SOURCE + "int extra(void) { return 1; }")

    def test_name_too_few(self):
        self.one("does not export missing", *LINK, expected=EXPECTED + "missing\n")

    def test_cxx_library(self):
        self.one("libstdc++", *LINK, "-Wl,--no-as-needed", "-lstdc++")

    def test_lazy_binding(self):
        self.one("NOW", "-Wl,-z,lazy", "-Wl,-z,nodelete")

    def test_unloadable(self):
        self.one("NODELETE", "-Wl,-z,now")

    def test_dynamic_thread_local_storage(self):
        self.one("STATIC_TLS", *LINK, source=SOURCE.replace("initial-exec", "global-dynamic"))


if __name__ == "__main__":
    unittest.main()
