"""php with its default extensions, which it opens with RTLD_DEEPBIND: they would find the C library's free."""

from harness import INPUTS, ProgramTest, main


class Php(ProgramTest):
    def test_script(self):
        self.assert_reached("php")
        self.compare(["php", str(INPUTS / "work.php")])


if __name__ == "__main__":
    main()
