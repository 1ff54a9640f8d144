"""What of the corpus is compiled, and when."""

import tempfile
import unittest
from pathlib import Path
from unittest import mock

import corpus
from reheap_lab.errors import LabError


class Prepared(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.source, self.compiled = Path(folder.name, "source"), []
        self.source.mkdir()
        for name, value in {
            "CORPUS": Path(folder.name),
            "need_tool": lambda name, _: name,
            "source_folder": lambda: self.source,
            "_units": lambda source: [source / f"{letter}.cc" for letter in "abcdef"],
            "_key": lambda compiler, flags: f"key{flags[-1]}",
            "run_step": lambda command: self.compiled.append(Path(command[-1]).name),
        }.items():
            patch = mock.patch.object(corpus, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def prepare(self, every: int, debug: bool = False) -> tuple[list[str], list[str]]:
        """What it gives, and what it compiles for that."""
        self.compiled.clear()
        given = corpus.prepare_corpus(every, debug)
        return [path.name for path in given], sorted(self.compiled)

    def test_each_is_compiled_once(self):
        self.assertEqual(self.prepare(3), (["a.bc", "d.bc"], ["a.bc", "d.bc"]))
        self.assertEqual(self.prepare(2), (["a.bc", "c.bc", "e.bc"], ["c.bc", "e.bc"]))
        self.assertEqual(self.prepare(1), ([f"{letter}.bc" for letter in "abcdef"], ["b.bc", "f.bc"]))
        self.assertEqual(self.prepare(1)[1], [])

    def test_debug_information_is_beside_the_rest(self):
        self.prepare(3)
        self.assertEqual(self.prepare(3, True), (["a.bc", "d.bc"], ["a.bc", "d.bc"]))
        self.assertEqual((self.prepare(3)[1], self.prepare(3, True)[1]), ([], []))
        self.assertEqual(corpus.prepare_corpus(6, True), [corpus.CORPUS / "debug" / "a.bc"])

    def test_another_compiler_compiles_all_anew(self):
        self.prepare(3)
        with mock.patch.object(corpus, "_key", lambda compiler, flags: "other"):
            self.assertEqual(self.prepare(2)[1], ["a.bc", "c.bc", "e.bc"])

    def test_what_failed_is_compiled_again(self):
        def fail(command):
            raise LabError("no space left")

        with mock.patch.object(corpus, "run_step", fail), self.assertRaises(LabError):
            corpus.prepare_corpus()
        self.assertEqual(len(self.prepare(1)[1]), 6)
