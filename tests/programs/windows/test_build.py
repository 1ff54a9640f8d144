"""cmake.exe and ninja.exe, with static C runtimes: scripts, generated build files, and builds by processes of both."""

from harness import INPUTS, Normalise, ProgramTest, fetch, main, windows_path

EDGES = 1500
TIMES = Normalise(r"done \([0-9.]+s\)$", "done", "how long it took")


def cmake():
    return fetch("cmake") / "bin" / "cmake.exe"


def ninja():
    return fetch("ninja") / "ninja.exe"


def copy_input(name: str, to: str):
    return lambda work: (work / to).write_bytes((INPUTS / name).read_bytes())


class Cmake(ProgramTest):
    runtime = b""

    def test_script(self):
        result = self.compare([cmake(), "-P", "work.cmake"], files=("all.tar.xz", "extracted/*"), refills=100,
                              prepare=copy_input("work.cmake", "work.cmake"))
        self.assertIn(b"json 61 text 7 ", result.errors)

    def prepare(self, work):
        copy_input("project.cmake", "CMakeLists.txt")(work)
        (work / "part.in").write_text("part @number@ of the parts\n")

    def test_generate(self):
        words = [cmake(), "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={windows_path(ninja())}", "-S", ".", "-B", "out"]
        self.compare(words, files=("out/*.ninja", "out/*.in", "out/*.cmake", "out/CMakeCache.txt"), refills=100,
                     prepare=self.prepare, normalise=(TIMES,))

    def test_generate_and_build(self):
        """ninja starts cmd.exe, and that starts cmake."""
        script = f"""
            execute_process(COMMAND "${{CMAKE_COMMAND}}" -G Ninja
              "-DCMAKE_MAKE_PROGRAM={windows_path(ninja())}" -S . -B out
              OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
            execute_process(COMMAND "${{CMAKE_COMMAND}}" --build out -- --quiet -j2 COMMAND_ERROR_IS_FATAL ANY)
            """

        def prepare(work):
            self.prepare(work)
            (work / "all.cmake").write_text(script)
        result = self.compare([cmake(), "-P", "all.cmake"], files=("out/part?",), prepare=prepare,
                              processes=1 + 2 + 1 + 6)
        self.assertEqual(result.files["out/part6"].count(b"\n"), 3)


class Ninja(ProgramTest):
    runtime = b""

    def test_graph(self):
        """Each file is made from two others by cmake, without a shell."""
        tool = windows_path(cmake())
        lines = [f"rule pack\n command = {tool} -E tar cf $out --mtime=2020-01-01 --format=paxr $in",
                 f"rule copy\n command = {tool} -E copy $in $out", "build part0: copy build.ninja"]
        lines += [f"build part{part}: pack part{(part - 1) // 2} build.ninja" for part in range(1, 7)]

        def prepare(work):
            (work / "build.ninja").write_text("\n".join(lines) + "\n")
        self.compare([ninja(), "--quiet", "-j2"], files=("part?",), prepare=prepare, processes=1 + 7)

    def test_large_graph(self):
        """Only said, not done."""
        lines = ["rule make\n command = make --with $flags -o $out $in\n description = making $out"]
        for edge in range(EDGES):
            needs = " ".join(f"out/{edge // two}" for two in (2, 3) if edge > 0)
            lines.append(f"build out/{edge}: make src/{edge}.c {needs}"
                         f"\n flags = -DNUMBER={edge} {'x' * (edge % 50)}")

        def prepare(work):
            (work / "build.ninja").write_text("\n".join(lines).replace("out/0: make src/0.c out/0",
                                                                       "out/0: make src/0.c") + "\n")
            (work / "src").mkdir()
            for edge in range(EDGES):
                (work / "src" / f"{edge}.c").touch()
        result = self.compare([ninja(), "-n", "-v"], prepare=prepare, refills=100)
        self.assertEqual(result.output.count(b"\n"), EDGES)


if __name__ == "__main__":
    main()
