"""LLD links by ThinLTO, on two threads: the same executable. LLVM's lld.exe, and the one in zig.exe."""

import pathlib
import shutil
import subprocess
import tempfile

from harness import INPUTS, MICROSOFTS, MICROSOFTS_PLACE, RUNTIME, ProgramTest, Result, fetch, main, need

PARTS = 8
COMPILE = ("--target=x86_64-linux-gnu", "-std=c++20", "-O2", "-fPIC", "-flto=thin", "-c")


def compile_parts(folder: pathlib.Path) -> None:
    """Bitcode of several parts that call each other."""
    for part in range(PARTS):
        following = (part + 1) % PARTS
        source = (INPUTS / "templates.cpp").read_text()
        source = source[:source.index("int main(")] + (
            f"extern int part{following}(int);\n"
            f"int part{part}(int x) {{ return x > 100 ? x : work<{60 + part}>(x) + part{following}(x + 1); }}\n")
        if part == 0:
            source += "extern \"C\" int start() { return part0(1); }\n"
        (folder / f"part{part}.cpp").write_text(source)
        subprocess.run([need("clang-19"), *COMPILE, f"part{part}.cpp", "-o", f"part{part}.o"], cwd=folder, check=True)


class Lld(ProgramTest):
    @classmethod
    def setUpClass(cls):
        parts = tempfile.TemporaryDirectory()
        cls.addClassCleanup(parts.cleanup)
        cls.parts = pathlib.Path(parts.name)
        compile_parts(cls.parts)

    def link(self, *lld, **variables: str) -> Result:
        words = [*lld, "--thinlto-jobs=2", "-e", "start", "-o", "out", *(f"part{part}.o" for part in range(PARTS))]
        return self.compare(words, files=("out",),
                            prepare=lambda work: shutil.copytree(self.parts, work, dirs_exist_ok=True),
                            **variables)

    def test_lld(self):
        self.link(self.place("llvm", "lld.exe"), "-flavor", "gnu")

    def test_lld_on_microsofts_runtime(self):
        self.need_emulator()
        lld = self.place("llvm", "lld.exe", libraries=("ucrt-10.0.17763",))
        result = self.link(lld, "-flavor", "gnu", WINEDLLOVERRIDES=MICROSOFTS)
        self.assertEqual(result.runtimes[RUNTIME], MICROSOFTS_PLACE)

    def test_zig(self):
        self.link(fetch("zig-windows") / "zig.exe", "ld.lld")


if __name__ == "__main__":
    main()
