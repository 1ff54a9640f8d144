#!/usr/bin/env python3
"""fetch_windows: what is kept of an archive, and what is refused."""

import hashlib
import os
import pathlib
import shutil
import tarfile
import tempfile
import unittest
import zipfile

import fetch_windows

NAMES = ["bin/tool.exe", "bin/deep/tool.dll", "bin/readme", "elsewhere/tool.exe"]


def zipped(folder: pathlib.Path) -> None:
    with zipfile.ZipFile(folder / "pack.whl", "w") as pack:
        for name in NAMES:
            pack.writestr(zipfile.ZipInfo(name), name)  # always of the same date


def tarred(folder: pathlib.Path) -> None:
    with tarfile.open(folder / "pack.tgz", "w:gz") as pack:
        for name in NAMES:
            file = folder.parent / "file"
            file.write_text(name)
            pack.add(file, "./" + name)


def names(folder: pathlib.Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


class Fetch(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        os.environ["REHEAP_CACHE"] = place.name
        self.addCleanup(os.environ.pop, "REHEAP_CACHE")
        self.addCleanup(fetch_windows.ITEMS.pop, "thing", None)
        self.brought = 0

    def thing(self, bring=zipped, **details):
        def counted(folder):
            self.brought += 1
            bring(folder)
        fetch_windows.ITEMS["thing"] = fetch_windows.Item("for this test", counted, **details)
        return fetch_windows.fetch("thing")

    def test_what_is_kept(self):
        for bring in (zipped, tarred):
            with self.subTest(bring.__name__):
                folder = self.thing(bring, inside="bin/", wanted=("*.exe", "*.dll"))
                self.assertEqual(names(folder), ["deep/tool.dll", "tool.exe"])
                self.assertEqual((folder / "tool.exe").read_text(), "bin/tool.exe")
                shutil.rmtree(folder)
        self.assertEqual(self.brought, 2)

    def test_fetched_once(self):
        self.assertEqual(self.thing(), self.thing())
        self.assertEqual(self.brought, 1)

    def test_another_archive_is_fetched_again(self):
        self.thing()
        with tempfile.TemporaryDirectory() as place:
            zipped(pathlib.Path(place))
            digest = hashlib.sha256(pathlib.Path(place, "pack.whl").read_bytes()).hexdigest()
        self.thing(inside="elsewhere/", sha256=digest)
        self.assertEqual(self.brought, 2)
        self.assertEqual(names(self.thing(inside="elsewhere/", sha256=digest)), ["tool.exe"])

    def test_what_is_refused(self):
        def two(folder):
            zipped(folder)
            tarred(folder)
        for complaint, details in {"is not the one": {"sha256": "0" * 64}, "holds nothing": {"inside": "nowhere/"},
                                   "expected one archive": {"bring": two}}.items():
            with self.subTest(complaint), self.assertRaisesRegex(fetch_windows.Failure, complaint):
                self.thing(**details)
            self.assertFalse((fetch_windows.cache() / "thing").exists())

    def test_without_a_client(self):
        with self.assertRaisesRegex(fetch_windows.NoClient, "no-such-client is not installed"):
            self.thing(bring=lambda folder: fetch_windows.run_quiet(["no-such-client"], folder))

    def test_unknown(self):
        with self.assertRaisesRegex(fetch_windows.Failure, "nothing is known of 'nothing'"):
            fetch_windows.fetch("nothing")


if __name__ == "__main__":
    unittest.main()
