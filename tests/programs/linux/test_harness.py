"""The comparison itself: it has to fail when a program does something else on reheap, or is not on it."""

import shutil
import subprocess
import unittest

from harness import OTHER_LIBRARY, Normalise, ProgramTest, main

SEES_IT = 'case "$LD_PRELOAD" in *reheap*) echo reheap;; *) echo system;; esac'


@unittest.skipIf(OTHER_LIBRARY, "there is no proof with another library")
class Harness(ProgramTest):
    def assert_noticed(self, message: str, *words: str, **more):
        with self.assertRaisesRegex(AssertionError, message):
            self.compare(list(words), **more)

    def test_the_same_is_the_same(self):
        result = self.compare(["sh", "-c", "cat; echo out; echo err >&2; echo file > name"], stdin=b"in\n",
                              files=("name",))
        self.assertEqual((result.output, result.errors, result.files), (b"in\nout\n", b"err\n", {"name": b"file\n"}))

    def test_differences_are_noticed(self):
        self.assert_noticed("stdout differs at byte 0", "sh", "-c", SEES_IT)
        self.assert_noticed("stderr differs at byte 0", "sh", "-c", f"({SEES_IT}) >&2")
        self.assert_noticed("name differs at byte 0", "sh", "-c", f"({SEES_IT}) > name", files=("name",))
        self.assert_noticed("name was not made", "true", files=("name",))
        self.assert_noticed("name was not made on reheap", "sh", "-c", 'test "$LD_PRELOAD" || : > name',
                            files=("name",))
        self.assert_noticed("1 != 0", "sh", "-c", 'test -z "$LD_PRELOAD"')
        self.assert_noticed("-9 != 0", "sh", "-c", 'test -z "$LD_PRELOAD" || kill -9 $$')

    def test_what_is_normalised_is_not_compared(self):
        rule = Normalise("system|reheap", "HEAP", "the heap")
        self.compare(["sh", "-c", SEES_IT], normalise=(rule,))

    def test_a_process_that_is_not_reached_is_noticed(self):
        # The second process is started without the library.
        words = ("sh", "-c", "env LD_PRELOAD= sh -c 'sort < /dev/null; :'; true")
        self.assert_noticed("did not start in every process", *words, processes=3)
        self.compare(["sh", "-c", "sh -c 'sort < /dev/null; :'; true"], processes=3)

    def test_a_program_that_cannot_be_reached_is_noticed(self):
        source = self.folder / "static.c"
        source.write_text("int main(void) { return 0; }\n")
        static = str(self.folder / "static")
        subprocess.run([shutil.which("gcc"), "-static", str(source), "-o", static], check=True)
        self.assert_noticed("statically linked", static)
        with self.assertRaisesRegex(AssertionError, "is not reached"):
            self.assert_reached(static)

    def test_a_program_that_leaves_no_statistics_is_noticed(self):
        self.assert_noticed("no statistics at exit", "sh", "-c", "read line; kill -9 $$", stdin=b"\n", proof="exit",
                            status=-9)


if __name__ == "__main__":
    main()
