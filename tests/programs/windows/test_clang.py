"""clang.exe compiles: the same assembly and the same object file. clang-tidy.exe finds the same faults."""

from harness import INPUTS, MICROSOFTS, MICROSOFTS_PLACE, RUNTIME, ProgramTest, main

SOURCE = INPUTS / "templates.cpp"
# For another system: for its own clang looks for Visual Studio first, which takes 20 seconds under Wine.
OPTIONS = ("--target=x86_64-linux-gnu", "-std=c++20")
CHECKS = "--checks=-*,bugprone-*,modernize-*,performance-*,readability-*"


class Clang(ProgramTest):
    def prepare(self, work):
        (work / "templates.cpp").write_bytes(SOURCE.read_bytes())

    def test_object(self):
        clang = self.place("llvm", "clang.exe")
        self.compare([clang, *OPTIONS, "-O2", "-c", "templates.cpp", "-o", "out.o"], files=("out.o",),
                     prepare=self.prepare)

    def test_object_on_microsofts_runtime(self):
        """The DLL beside the program is Microsoft's: it lies where Microsoft's prefers to."""
        self.need_emulator()
        for runtime in ("ucrt-10.0.26100", "ucrt-10.0.17763"):
            with self.subTest(runtime=runtime):
                clang = self.place("llvm", "clang.exe", libraries=(runtime,))
                result = self.compare([clang, *OPTIONS, "-O1", "-c", "templates.cpp", "-o", "out.o"], files=("out.o",),
                                      prepare=self.prepare, WINEDLLOVERRIDES=MICROSOFTS)
                self.assertEqual(result.runtimes[RUNTIME], MICROSOFTS_PLACE)
                clang.with_name("ucrtbase.dll").unlink()

    def test_object_on_the_heaps_layer_alone(self):
        """Microsoft's runtime takes its memory from the process's heap."""
        self.need_emulator()
        self.runtime = b""
        clang = self.place("llvm", "clang.exe", libraries=("ucrt-10.0.26100",))
        self.compare([clang, *OPTIONS, "-O1", "-c", "templates.cpp", "-o", "out.o"], files=("out.o",), refills=1000,
                     prepare=self.prepare, WINEDLLOVERRIDES=MICROSOFTS, REHEAP_LAYERS="heap")

    def test_assembly_in_its_own_compiler_process(self):
        clang = self.place("llvm", "clang.exe")
        self.compare([clang, *OPTIONS, "-O2", "-fno-integrated-cc1", "-S", "templates.cpp", "-o", "out.s"],
                     files=("out.s",),
                     prepare=self.prepare, processes=2)

    def test_tidy(self):
        tidy = self.place("clang-tidy", "clang-tidy.exe")
        result = self.compare([tidy, CHECKS, "templates.cpp", "--", *OPTIONS], prepare=self.prepare)
        self.assertIn(b"magic number", result.output)


if __name__ == "__main__":
    main()
