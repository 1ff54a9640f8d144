"""z3 solves problems of several theories: the same verdicts and models."""

from harness import INPUTS, ProgramTest, main


class Z3(ProgramTest):
    def test_problems(self):
        self.assert_reached("z3")
        problems = sorted((INPUTS / "z3").glob("*.smt2"))
        self.assertGreaterEqual(len(problems), 5)
        for problem in problems:
            with self.subTest(problem=problem.name):
                result = self.compare(["z3", "-smt2", str(problem)])
                self.assertRegex(result.output, rb"^(un)?sat\n")
                self.assertNotIn(b"error", result.output)


if __name__ == "__main__":
    main()
