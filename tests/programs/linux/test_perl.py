"""perl runs a script that lives on hashes and strings, and forks."""

from harness import INPUTS, ProgramTest, main


class Perl(ProgramTest):
    def test_script(self):
        self.assert_reached("perl")
        self.compare(["perl", str(INPUTS / "words.pl")], PERL_HASH_SEED="0", PERL_PERTURB_KEYS="0")


if __name__ == "__main__":
    main()
