"""What is the lab's is passed on to it, word for word."""

import os
import unittest

from support import *


class PassesOn(CommandTest):
    def test_the_words_reach_the_lab(self):
        lab = self.file("reheap-lab", '#!/bin/sh\nfor word; do echo "[$word]"; done\nexit 5\n')
        path = os.path.dirname(lab) + ":" + os.environ["PATH"]
        for name in ("compare", "suite", "report", "gate", "record", "replay", "trace", "profile", "calibrate"):
            with self.subTest(command=name):
                done = call(name, "--with", "a b", "--", "prog", "--help", env=environment(PATH=path))
                self.assertEqual((done.returncode, done.stderr), (5, b""))
                self.assertEqual(done.stdout.decode().split("\n")[:-1],
                                 [f"[{word}]" for word in (name, "--with", "a b", "--", "prog", "--help")])

    def test_without_the_lab_it_says_how_to_install_it(self):
        done = call("compare", "--", "prog", env=environment(PATH="/nowhere"))
        self.assertEqual((done.returncode, done.stdout), (127, b""))
        self.assertEqual(done.stderr, b"reheap: compare is the lab's, which is not installed: pip install ./lab\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
