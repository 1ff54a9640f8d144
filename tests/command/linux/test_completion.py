"""Completion scripts: each shell accepts its own, and they offer what the command has."""

import re
import shutil
import subprocess
import unittest

from support import *


class Completion(CommandTest):
    def script(self, shell: str) -> str:
        done = call("completion", shell)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return self.file(f"completion.{shell}", done.stdout.decode())

    def test_each_shell_accepts_its_script(self):
        for shell in ("bash", "zsh", "fish"):
            with self.subTest(shell=shell):
                path = self.script(shell)
                if not shutil.which(shell):
                    self.skipTest(f"{shell} is not installed")
                done = subprocess.run([shell, "-n", path], capture_output=True)
                self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_every_option_is_in_every_script(self):
        for sub in ("run", "doctor"):
            options = re.findall(r"^\s+(?:-h,)?(--[a-z-]+)", call(sub, "--help").stdout.decode(), re.MULTILINE)
            self.assertGreater(len(options), 5)
            for shell in ("bash", "zsh", "fish"):
                script = call("completion", shell).stdout.decode()
                for option in options:
                    self.assertRegex(script, f"-l {option[2:]}\\b" if shell == "fish" else option)

    def bash(self, *words: str) -> list[str]:
        """What bash offers for the last of the words."""
        quoted = " ".join(f"'{word}'" for word in words)
        text = (f"source {self.script('bash')}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _reheap; "
                'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "--norc", "-c", text], capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        return sorted(done.stdout.split())

    def test_bash_offers_what_fits(self):
        self.assertEqual(self.bash("reheap", "d"), ["doctor"])
        self.assertEqual(self.bash("reheap", "completion", ""), ["--help", "bash", "fish", "zsh"])
        self.assertEqual(self.bash("reheap", "run", "--window"), ["--window", "--window-at"])
        self.assertNotIn("--json", self.bash("reheap", "run", "--"))
        self.assertIn("--json", self.bash("reheap", "doctor", "--"))
        self.assertIn("cat", self.bash("reheap", "run", "--", "ca"))
        self.assertEqual(self.bash("reheap", "run", "--", "cat", "/etc/host"),
                         sorted(self.bash("reheap", "run", "--", "cat", "/etc/host")))

    def test_fish_offers_what_fits(self):
        if not shutil.which("fish"):
            self.skipTest("fish is not installed")
        path = self.script("fish")

        def offered(line: str) -> list[str]:
            done = subprocess.run(["fish", "--no-config", "-c", f"source {path}; complete -C '{line}'"],
                                  capture_output=True, text=True, env=environment(HOME=str(self.folder)))
            self.assertEqual(done.stderr, "")
            return [entry.split("\t")[0] for entry in done.stdout.splitlines()]

        self.assertEqual(offered("reheap d"), ["doctor"])
        self.assertIn("--decay-ms", offered("reheap run --d"))
        self.assertNotIn("--json", offered("reheap run --"))
        self.assertIn("--json", offered("reheap doctor --"))
        self.assertEqual(sorted(offered("reheap completion ")), ["bash", "fish", "zsh"])
        self.assertIn("cat", offered("reheap run -- ca"))

    def test_zsh_offers_what_fits(self):
        if not shutil.which("zsh"):
            self.skipTest("zsh is not installed")
        # A terminal of its own is the only way to ask zsh for completions.
        asked = {"reheap run --deca": "run --decay-ms=", "reheap doctor --js": "doctor --json ",
                 "reheap comp": "completion ",
                 "reheap completion ba": "completion bash", "reheap run -- mkfif": "-- mkfifo"}
        asking = "\n".join(f"ask '{line}' '{completed}'" for line, completed in asked.items())
        text = f"""
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'stty columns 500; autoload -U compinit; compinit -u -D; source {self.script("zsh")}; print lo""aded'
zpty -r shell answer '*loaded*'
ask() {{
  local answer part
  zpty -n -w shell $1$'\\t'
  repeat 300; do
    zpty -r -t shell part && answer+=$part
    [[ $answer == *$2* ]] && break
    sleep 0.02
  done
  print -r -- $answer
  zpty -n -w shell $'\\C-u'
}}
{asking}
"""
        done = subprocess.run(["zsh", "-f", "-c", text], capture_output=True, text=True, timeout=60,
                              env=environment(TERM="dumb", HOME=str(self.folder)))
        for completed in asked.values():
            self.assertIn(completed, done.stdout)

    def test_an_unknown_shell(self):
        done = call("completion", "tcsh")
        self.assertEqual(done.returncode, 2)
        self.assert_one_line(done.stderr, "tcsh", "bash")
        self.assertEqual(call("completion").returncode, 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
