"""clang++ and g++ compile heavy C++: their object files have to be the same."""

import subprocess
import sys

from harness import INPUTS, ROOT, ProgramTest, environment, main

sys.path.insert(0, str(ROOT / "bench"))
import corpus  # noqa: E402


class Compilers(ProgramTest):
    def protobuf(self, name: str) -> list[str]:
        source = corpus.source_folder()
        return [*(f"-I{source / folder}" for folder in corpus.INCLUDES), str(source / f"src/google/protobuf/{name}.cc")]

    def compile(self, compiler: str, arguments: list[str], processes: int):
        words = [compiler, "-std=c++20", "-O2", "-w", "-c", "-o", "out.o", *arguments]
        self.compare(words, files=("out.o",), processes=processes)

    def test_clang(self):
        self.assert_reached("clang++-19")
        self.compile("clang++-19", self.protobuf("wire_format_lite"), 1)
        self.compile("clang++-19", [str(INPUTS / "heavy.cpp")], 1)

    def test_gcc(self):
        # The driver starts cc1plus and the assembler; both are reached as its children.
        for part in ("cc1plus", "as"):
            done = subprocess.run(["g++", f"-print-prog-name={part}"], capture_output=True, text=True, check=True,
                                  env=environment())
            self.assert_reached(done.stdout.strip())
        self.compile("g++", self.protobuf("wire_format_lite"), 3)
        self.compile("g++", [str(INPUTS / "heavy.cpp")], 3)


if __name__ == "__main__":
    main()
