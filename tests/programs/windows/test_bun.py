"""bun.exe, with a static C runtime and heaps of its own: the same answers of a script, the same bundle."""

from harness import INPUTS, ProgramTest, fetch, main, windows_path
from typescript import write_modules

MODULES = 60


class Bun(ProgramTest):
    runtime = b""

    def bun(self):
        return fetch("bun") / "bun.exe"

    def test_script(self):
        result = self.compare([self.bun(), "work.mjs"], refills=20,
                              prepare=lambda work: (work / "work.mjs").write_bytes((INPUTS / "work.mjs").read_bytes()))
        self.assertIn(b"json 60 times", result.output)
        self.assertRegex(result.output, rb"worker 1 [0-9a-f]{128}\n$")

    def test_bundle(self):
        # By its full path, and to its output: under Wine it finds no file otherwise.
        work = windows_path(self.work)
        result = self.compare([self.bun(), "build", f"{work}/module1.ts", "--root", work, "--minify"], refills=20,
                              prepare=lambda work: write_modules(work, MODULES))
        self.assertIn(f"of {MODULES}".encode(), result.output)


if __name__ == "__main__":
    main()
