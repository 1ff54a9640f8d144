"""z3 solves problems of several theories: the same verdicts and models."""

import itertools

from harness import INPUTS, ProgramTest, main


def pigeons(count: int) -> str:
    """So many pigeons in one hole less: not possible, and long to show."""
    holes = range(count - 1)
    lines = ["(set-logic QF_UF)"]
    lines += [f"(declare-const p{pigeon}h{hole} Bool)" for pigeon in range(count) for hole in holes]
    lines += [f"(assert (or {' '.join(f'p{pigeon}h{hole}' for hole in holes)}))" for pigeon in range(count)]
    lines += [f"(assert (not (and p{one}h{hole} p{other}h{hole})))"
              for hole in holes for one, other in itertools.combinations(range(count), 2)]
    return "\n".join([*lines, "(check-sat)\n"])


class Z3(ProgramTest):
    def test_problems(self):
        self.assert_reached("z3")
        problems = {path.name: path.read_text() for path in sorted((INPUTS / "z3").glob("*.smt2"))}
        self.assertGreaterEqual(len(problems), 4)
        for name, problem in (problems | {"pigeons.smt2": pigeons(10)}).items():
            with self.subTest(problem=name):
                result = self.compare(["z3", "-smt2", name], prepare=lambda work: (work / name).write_text(problem))
                self.assertRegex(result.output, rb"^(un)?sat\n")
                self.assertNotIn(b"error", result.output)


if __name__ == "__main__":
    main()
