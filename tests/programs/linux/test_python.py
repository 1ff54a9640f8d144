"""CPython runs parts of its own test suite, every object of its from malloc."""

from harness import Normalise, ProgramTest, main

PYTHON = "/usr/bin/python3"

MODULES = """test_json test_re test_dict test_list test_set test_deque test_gc test_mmap test_threading
    test_bytes test_struct test_zlib test_memoryview test_generators test_ordered_dict
    test_unicode test_xml_etree test_fork1 test_bigmem""".split()

NORMALISE = (
    Normalise(r"( ?\b[0-9.]+ ?(sec|seconds|s|ms|min)\b)+", " TIME", "how long tests took"),
    Normalise(r" -- test_\w+ passed in TIME$", "", "the same, of tests that took over half a minute"),
    Normalise(r"^(0:\d\d:\d\d )?(load avg: [0-9.]+ )?", "", "clock and load"),
    Normalise(r"test_python_(worker_)?[0-9]+.", "FOLDER", "a folder named after the process"),
    Normalise(r"\b0x[0-9a-f]{6,}\b", "ADDRESS", "addresses"),
    Normalise(r"\b(pid=|process |thread |Thread-)[0-9]+", "NUMBER", "numbers of processes and threads"),
)


class CPython(ProgramTest):
    def test_its_own_tests(self):
        self.assert_reached(PYTHON)
        # test_various_ops… tell in which order their threads happened to run.
        words = [PYTHON, "-u", "-m", "test", "-v", "--ignore", "test_various_ops*", *MODULES]
        self.compare(words, normalise=NORMALISE, proof="exit", PYTHONMALLOC="malloc", PYTHONHASHSEED="0")


if __name__ == "__main__":
    main()
