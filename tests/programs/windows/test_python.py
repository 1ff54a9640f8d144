"""python.exe works with JSON, regular expressions and threads; its own memory comes from malloc alone, or from its
arenas."""

from harness import INPUTS, MICROSOFTS, RUNTIME, WINES_PLACE, Normalise, ProgramTest, fetch, main, windows_path

TIMES = Normalise(r"tests in [0-9.]+s", "tests", "how long they took")

# Those that start no program, which would read lines of reheap's, and do not take the time.
TESTS = ("test.test_re", "test.test_threading_local", "test.test_thread.ThreadRunningTests",
         *(f"test.test_threading.ConditionTests.{name}" for name in ("test_notify", "test_waitfor")),
         *(f"test.test_json.test_{part}"
           for part in ("decode", "default", "dump", "encode_basestring_ascii", "enum", "fail",
                                                      "float", "indent", "pass1", "scanstring", "separators",
                                                      "unicode")))


class Python(ProgramTest):
    def run_script(self, python=None, **variables: str):
        def prepare(work):
            (work / "work.py").write_bytes((INPUTS / "work.py").read_bytes())
        result = self.compare([python or fetch("cpython") / "python.exe", "-B", "work.py"], prepare=prepare,
                              PYTHONHASHSEED="0", **variables)
        self.assertIn(b"json 200 times", result.output)
        self.assertIn(b"threads ended", result.output)
        return result

    def test_script(self):
        self.run_script()

    def test_script_on_malloc_alone(self):
        self.run_script(PYTHONMALLOC="malloc")

    def test_script_on_microsofts_runtime(self):
        self.need_emulator()
        self.place("ucrt-10.0.26100", "ucrtbase.dll")
        python = self.place("cpython", "python.exe", libraries=("cpython", "vcruntime-x86_64"))
        python.with_name("lib").symlink_to(fetch("cpython") / "lib")
        result = self.run_script(python, WINEDLLOVERRIDES=MICROSOFTS)
        self.assertNotEqual(result.runtimes[RUNTIME], WINES_PLACE)

    def test_extension_modules(self):
        """Whose libraries are linked in: what they allocate comes by the C runtime's DLL alone."""
        python = self.place("cpython", "python.exe", libraries=("cpython", "vcruntime-x86_64"))
        python.with_name("lib").symlink_to(fetch("cpython") / "lib")
        path = ";".join(windows_path(fetch(item)) for item in ("lxml", "pillow"))

        def prepare(work):
            (work / "extensions.py").write_bytes((INPUTS / "extensions.py").read_bytes())
        result = self.compare([python, "-B", "extensions.py"], prepare=prepare, refills=100, PYTHONPATH=path,
                              WINEDLLOVERRIDES="vcruntime140,vcruntime140_1,msvcp140=n,b")
        self.assertEqual(result.output.count(b"xml "), 4, result.output)
        self.assertEqual(result.output.count(b"WEBP "), 4, result.output)

    def test_its_own_tests(self):
        result = self.compare([fetch("cpython") / "python.exe", "-B", "-m", "unittest", "--buffer", *TESTS],
                              normalise=(TIMES,), PYTHONHASHSEED="0")
        self.assertIn(b"OK", result.errors)


if __name__ == "__main__":
    main()
