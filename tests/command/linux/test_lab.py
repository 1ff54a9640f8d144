"""What is the lab's is passed on to it, word for word."""

import os
import subprocess
import unittest

from support import *


class PassesOn(CommandTest):
    def test_the_words_reach_the_lab(self):
        lab = self.file("reheap-lab", '#!/bin/sh\nfor word; do echo "[$word]"; done\nexit 5\n')
        path = os.path.dirname(lab) + ":" + os.environ["PATH"]
        for name in ("allocators", "calibrate", "compare", "gate", "profile", "record", "replay", "report", "suite",
                     "trace"):
            with self.subTest(command=name):
                done = call(name, "--with", "a b", "--", "prog", "--help", env=environment(PATH=path))
                self.assertEqual((done.returncode, done.stderr), (5, b""))
                self.assertEqual(done.stdout.decode().split("\n")[:-1],
                                 [f"[{word}]" for word in (name, "--with", "a b", "--", "prog", "--help")])

    def test_what_lies_beside_the_command_goes_before_path(self):
        words = [self.copy(COMMAND, "reheap"), "compare"]
        self.file("reheap-lab", "#!/bin/sh\necho beside\n")
        os.mkdir(self.folder / "other")
        self.file("other/reheap-lab", "#!/bin/sh\necho on PATH\n")
        variables = environment(PATH=f"{self.folder / 'other'}:{os.environ['PATH']}")
        self.assertEqual(subprocess.run(words, env=variables, stdout=subprocess.PIPE).stdout, b"beside\n")
        os.remove(self.folder / "reheap-lab")
        self.assertEqual(subprocess.run(words, env=variables, stdout=subprocess.PIPE).stdout, b"on PATH\n")

    def test_without_the_lab_it_says_how_to_install_it(self):
        done = call("compare", "--", "prog", env=environment(PATH="/nowhere"))
        self.assertEqual((done.returncode, done.stdout), (127, b""))
        self.assertEqual(done.stderr, 
                         b"reheap: compare is the lab's, which is not installed: pip install 'reheap[lab]'\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
