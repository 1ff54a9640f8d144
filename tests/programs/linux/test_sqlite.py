"""sqlite3 runs a heavy script; its output and its database file have to be the same."""

from harness import INPUTS, ProgramTest, main


class SQLite(ProgramTest):
    def test_script(self):
        self.assert_reached("sqlite3")
        script = (INPUTS / "script.sql").read_bytes()
        self.compare(["sqlite3", "-batch", "test.db"], stdin=script, files=("test.db",))

    def test_in_memory(self):
        script = (INPUTS / "script.sql").read_bytes() + b".dump link\n"
        self.compare(["sqlite3", "-batch", ":memory:"], stdin=script)


if __name__ == "__main__":
    main()
