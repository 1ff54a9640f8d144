"""rsync.exe is Cygwin's: its malloc lies in cygwin1.dll, and its fork needs the same places free in parent and child.
It is recognised, and runs as if started plainly."""

from harness import COMMAND, LINE, Given, ProgramTest, main

REASON = b"it is a Cygwin program"
EXIT_FAILED = 125


class Cygwin(ProgramTest):
    def setUp(self):
        super().setUp()
        self.program = self.place("cygwin", "rsync.exe", libraries=("cygwin",))

    def ask(self, *words):
        return self.execute([COMMAND, *words], Given())

    def test_runs_unchanged(self):
        plain = self.execute([self.program, "--version"], Given())
        self.assertEqual(plain.status, 0, plain.errors)
        self.assertIn(b"rsync  version", plain.output)
        under = self.ask("run", "--verbose", "--", self.program, "--version")
        (said,) = LINE.findall(under.errors)  # no line of the library's
        self.assertIn(REASON, said)
        self.assertRegex(said, rb"it runs unchanged$")
        self.assert_same_bytes("stdout", plain.output, under.output)

    def test_not_where_reheap_is_required(self):
        for words in (["run", "--require", "--", self.program, "--version"],
                      ["patch", self.program, "-o", self.program.with_name("patched.exe")]):
            refused = self.ask(*words)
            self.assertEqual((refused.status, refused.output), (EXIT_FAILED, b""))
            self.assertIn(REASON, refused.errors)

    def test_doctor(self):
        found = self.ask("doctor", "--", self.program)
        self.assertEqual(found.status, 1)
        for line in (rb"kind +Cygwin", rb"C runtime +cygwin1 \d", rb"imports +cygwin1.dll: .*malloc", REASON):
            self.assertRegex(found.output, line)


if __name__ == "__main__":
    main()
