"""LLD links a seventh of protobuf's C++ library from bitcode (ThinLTO, two threads)."""

import sys

from harness import ROOT, ProgramTest, main

sys.path.insert(0, str(ROOT / "bench"))
import corpus  # noqa: E402  the corpus and the command that ./dev run measures


class Link(ProgramTest):
    def test_thinlto(self):
        objects = corpus.prepare_corpus(every=7)
        self.assertGreaterEqual(len(objects), 10)
        words = corpus.link_command(objects, "libcorpus.so")
        self.assert_reached(*words)
        # LLD ends without freeing anything; told that it is under test, it frees all there is.
        self.compare(words, files=("libcorpus.so",), LLD_IN_TEST="1")


if __name__ == "__main__":
    main()
