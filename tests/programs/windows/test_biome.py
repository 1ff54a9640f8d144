"""biome.exe (Rust, on the process's heap) formats modules of TypeScript and finds the same faults in one."""

from harness import Normalise, ProgramTest, fetch, main
from typescript import write_modules

TIMES = Normalise(r" in \d+(ms|s|.s)\. ", " ", "how long it took")


class Biome(ProgramTest):
    runtime = b""

    def compare_on(self, count: int, *words: str, **more):
        biome = fetch("biome") / "biome.exe"
        return self.compare([biome, *words], prepare=lambda work: write_modules(work, count), normalise=(TIMES,),
                            **more)

    def test_format(self):
        result = self.compare_on(60, "format", "--write", ".", files=("*.ts",), refills=100)
        self.assertIn(b"Fixed 60 files", result.output)

    def test_lint(self):
        # Of one module, for threads tell in any order what they found.
        result = self.compare_on(1, "lint", "--max-diagnostics=none", "module1.ts", status=1, refills=20)
        self.assertIn(b"noDoubleEquals", result.errors)


if __name__ == "__main__":
    main()
