"""A program (jit/jit.cpp) compiles functions at run time with LLVM, on several threads, and they allocate."""

import os
import pathlib

from harness import MICROSOFTS, MICROSOFTS_PLACE, RUNTIME, ProgramTest, main

THREADS, MODULES = "4", "3"


class Jit(ProgramTest):
    def words(self, mode: str, modules: str = MODULES) -> list:
        self.place("llvmlite", "llvmlite/binding/llvmlite.dll",
                   libraries=("llvmlite/llvmlite.libs", "vcruntime-x86_64"))
        jit = self.place_file(pathlib.Path(os.environ["REHEAP_TEST_JIT"]))
        return [jit, mode, jit.with_name("llvmlite.dll"), THREADS, modules]

    def test_compiles_and_the_compiler_is_unloaded(self):
        result = self.compare(self.words("unload"))
        self.assertRegex(result.output, rb"^1200 functions compiled and run")
        self.assertIn(b"unloaded", result.output)

    def test_on_microsofts_runtime(self):
        """LLVM's DLL wants the place that the runtime has, and is relocated."""
        self.need_emulator()
        self.place("ucrt-10.0.26100", "ucrtbase.dll")
        result = self.compare(self.words("unload", modules="2"), WINEDLLOVERRIDES=MICROSOFTS)
        self.assertEqual(result.runtimes[RUNTIME], MICROSOFTS_PLACE)

    def test_process_ends_while_threads_allocate_and_compile(self):
        for _ in range(4):
            result = self.on_reheap(self.words("exit"))
            self.assertEqual((result.status, result.output.strip()), (3, b"ending"), result.errors)

    def test_blocks_lie_within_the_window(self):
        for place in ("low", "image"):
            with self.subTest(place=place):
                result = self.on_reheap(self.words(place), options=("--window-at", place))
                self.assertEqual(result.status, 0, result.output)
                self.assertRegex(result.output, rb"\n0 of \d{5,} blocks outside")

    def test_blocks_lie_elsewhere_without_a_window(self):
        result = self.on_reheap(self.words("low"))
        self.assertEqual(result.status, 1, result.output)


if __name__ == "__main__":
    main()
