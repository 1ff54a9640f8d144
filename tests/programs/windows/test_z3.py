"""z3.exe, built with control-flow guard, solves problems of several theories: the same verdicts and models."""

from harness import ROOT, ProgramTest, main

PROBLEMS = ROOT / "tests/programs/inputs/z3"


class Z3(ProgramTest):
    def solve(self, name: str, *options: str, **variables: str):
        z3 = self.place("z3", "z3.exe")
        result = self.compare([z3, *options, "-smt2", name],
                              prepare=lambda work: (work / name).write_bytes((PROBLEMS / name).read_bytes()),
                              **variables)
        self.assertRegex(result.output, rb"^(un)?sat\r?\n")
        self.assertNotIn(b"error", result.output)

    def test_problems(self):
        for name in ("arrays.smt2", "bits.smt2", "square.smt2", "strings.smt2"):
            with self.subTest(problem=name):
                self.solve(name)

    def test_on_two_threads(self):
        self.solve("bits.smt2", "parallel.enable=true", "parallel.threads.max=2")

    def test_on_the_hardened_build(self):
        self.options = ("--hardened", "--strict")
        for name in ("arrays.smt2", "strings.smt2"):
            with self.subTest(problem=name):
                self.solve(name)

    def test_on_the_runtimes_layer_alone(self):
        self.heap = False
        self.solve("strings.smt2", REHEAP_LAYERS="crt")

    def test_on_the_heaps_layer_alone(self):
        """Wine's runtime takes its memory from a heap that it creates."""
        self.runtime = b""
        self.solve("strings.smt2", REHEAP_LAYERS="heap")


if __name__ == "__main__":
    main()
