"""The harness itself: it has to fail when a program does something else on reheap, or is not on it."""

from harness import ProgramTest, fetch, main


class Harness(ProgramTest):
    runtime = b""

    def assert_noticed(self, message: str, *words: str, program: str = "cmake/bin/cmake.exe", **more):
        item, _, path = program.partition("/")
        with self.assertRaisesRegex(AssertionError, message):
            self.compare([fetch(item) / path, *words], **more)

    def test_other_output(self):
        self.assert_noticed("stdout differs at byte", "-E", "environment")  # has reheap's variables

    def test_a_process_that_is_not_reached(self):
        self.assert_noticed("reheap did not start", "--version", processes=2)
        self.assert_noticed("reheap did not start", "--version", program="esbuild/esbuild.exe")

    def test_a_layer_that_does_not_serve(self):
        self.assert_noticed("False != True", "--version", REHEAP_LAYERS="crt")
        self.runtime = b"ucrtbase.dll"
        self.assert_noticed("0 not greater than or equal to 1", "--version", REHEAP_LAYERS="heap")

    def test_another_heap_that_serves(self):
        self.assert_noticed("not greater than or equal to 1000000", "--version", refills=1000000)


if __name__ == "__main__":
    main()
