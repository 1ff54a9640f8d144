"""ruff.exe (Rust) checks and formats parts of CPython's library on several threads.

It brings a mimalloc; what its C runtime, its threads and the OS's DLLs take is from the process's heap."""

import shutil

from harness import ProgramTest, fetch, main

PACKAGES = ("json", "email", "asyncio", "http")


class Ruff(ProgramTest):
    runtime = b""

    def prepare(self, work):
        for package in PACKAGES:
            shutil.copytree(fetch("cpython") / "lib" / package, work / package)

    def compare_ruff(self, *words: str, **more):
        ruff = fetch("ruff") / "ruff.exe"
        return self.compare([ruff, *words, "--isolated", "--no-cache", "."], prepare=self.prepare, **more)

    def test_check(self):
        result = self.compare_ruff("check", "--select=ALL", "--output-format=concise", status=1, refills=50)
        self.assertGreater(result.output.count(b"\n"), 10**4)

    def test_format(self):
        result = self.compare_ruff("format", files=("*.py",), refills=50)
        self.assertIn(b"files reformatted", result.output)


if __name__ == "__main__":
    main()
