"""esbuild.exe is a Go program, which takes its memory from the OS: it is recognised, and runs as if started plainly."""

import subprocess

from harness import COMMAND, LINE, Given, ProgramTest, fetch, main
from typescript import write_modules

MODULES = 60
FILES = ("out.js", "out.js.map")
REASON = b"it is a Go program"
EXIT_FAILED = 125


class Esbuild(ProgramTest):
    def setUp(self):
        super().setUp()
        esbuild = fetch("esbuild") / "esbuild.exe"
        self.words = [esbuild, "module1.ts", "--bundle", "--minify", "--sourcemap", "--outfile=out.js",
                      "--log-level=warning"]
        self.given = Given(files=FILES, prepare=lambda work: write_modules(work, MODULES))

    def test_runs_unchanged(self):
        plain = self.execute(self.words, self.given)
        self.assertEqual(plain.status, 0, plain.errors)
        under = self.execute([COMMAND, "run", "--verbose", "--", *self.words], self.given)
        (said,) = LINE.findall(under.errors)  # no line of the library's
        self.assertIn(REASON, said)
        self.assertRegex(said, rb"it runs unchanged$")
        under.errors = LINE.sub(b"", under.errors)
        self.assert_same(plain, under, (), FILES)

    def test_not_where_reheap_is_required(self):
        under = self.execute([COMMAND, "run", "--require", "--", *self.words], self.given)
        self.assertEqual((under.status, under.files), (EXIT_FAILED, {}))
        self.assertIn(REASON, under.errors)

    def test_doctor(self):
        done = subprocess.run(self.command([COMMAND, "doctor", "--", self.words[0]]), capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, rb"kind +Go")
        self.assertIn(REASON, done.stdout)


if __name__ == "__main__":
    main()
