"""node runs a script with workers."""

from harness import INPUTS, ProgramTest, main


class Node(ProgramTest):
    def test_workers(self):
        self.assert_reached("node")
        result = self.compare(["node", str(INPUTS / "workers.js")], proof="start", processes=2)
        self.assertEqual(len(result.output.splitlines()), 10)


if __name__ == "__main__":
    main()
