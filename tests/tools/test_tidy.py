#!/usr/bin/env python3
"""Plants every violation tools/tidy.py knows in a small clean tree, and sees it caught."""

import pathlib
import tempfile
import unittest

import tidy

CLEAN = {
    "CMakeLists.txt": "file(GLOB S src/*/*.cpp)\nfile(GLOB P ${REHEAP_SRC}/platform/linux/*.cpp)\n"
                      "add_library(x ${S} ${P} src/entry/api.cpp)\n",
    "include/reheap/reheap.h": "#include <stddef.h>\n#define RH_VERSION_MAJOR 0\n",
    "include/reheap/reheap.hpp": "#include <memory_resource>\n#include \"reheap/reheap.h\"\n",
    "src/base/units.h": "#include <cstddef>\n",
    "src/base/text.cpp": '#include "base/text.h"\n#include <string.h>\nconst char* s = "// #include <vector>";\n',
    "src/base/text.h": '#include "units.h"\n// _WIN32 is named in a comment only\n',
    "src/platform/platform.h": '#include "base/units.h"\n',
    "src/platform/linux/memory.cpp": '#include "platform/platform.h"\n#include <sys/mman.h>\n'
                                     "#ifdef __linux__\n#endif\n",
    "src/arena/arena.h": '#include "platform/platform.h"\n#include "../base/units.h"\n#define RH_LIKELY(c) (c)\n',
    "src/slabs/slab.h": '#include "arena/arena.h"\n#define RH_SWITCH 1\n#if RH_SWITCH\n#endif\n',
    "src/heap/heap.h": '#include "slabs/slab.h"\n#include <atomic>\n',
    "src/entry/api.cpp": '#include "heap/heap.h"\n#include <reheap/reheap.h>\n#include <new>\n#include <unistd.h>\n',
    "command/main.cpp": '#include "common/frame.h"\n#include <vector>\n#include <unistd.h>\n'
                        "int main() { return frame(); }\n",
    "command/common/frame.h": '#include "heap/heap.h"\nint frame();\n',
    "command/CMakeLists.txt": "file(GLOB C *.cpp)\n",
    "lab/native/part.h": '#include "../../src/base/units.h"\n',
    "lab/part.py": 'COMMAND = ROOT / "command" / "main.cpp"\n',
    "tests/src/CMakeLists.txt": "foreach(layer heap)\n  file(GLOB s ${layer}/*_test.cpp)\nendforeach()\n",
    "tests/src/heap/heap_test.cpp": "int main() {}\n",
    "tests/crimes/CMakeLists.txt": "foreach(name double_free)\n  add_executable(${name} ${name}.cpp)\nendforeach()\n",
    "tests/crimes/double_free.cpp": "int main() {}\n",
    "bench/bench.py": 'SOURCE = pathlib.Path(__file__).parent / "workloads" / "growing.c"\n',
    "bench/workloads/work.h": "",
    "bench/workloads/growing.c": "int main(void) { return 0; }\n",
    "docs/a.md": "[one](b.md#part) [site](https://example.org) `src/base/units.h` `src/base/<file>.h`\n",
    "docs/b.md": "# Part\n```\n[not a link](nowhere.md)\n```\n",
}


class TidyTest(unittest.TestCase):
    def check(self, changes: dict[str, str] | None = None) -> list[tidy.Violation]:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in {**CLEAN, **(changes or {})}.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text, encoding="utf-8")
            return tidy.check(root)

    def caught(self, path: str, text: str, line: int, *words: str) -> None:
        """Appends text to the file; exactly one violation must come of it, at that line of the addition."""
        before = CLEAN.get(path, "")
        found = self.check({path: before + text})
        self.assertEqual(len(found), 1, found)
        self.assertEqual((found[0].path, found[0].line), (path, before.count("\n") + line))
        for word in words:
            self.assertIn(word, found[0].message)

    def caught_in(self, path: str, changes: dict[str, str], *words: str) -> None:
        """The changes give one violation, told of `path`."""
        found = self.check(changes)
        self.assertEqual([violation.path for violation in found], [path])
        for word in words:
            self.assertIn(word, found[0].message)

    def passes(self, path: str, text: str) -> None:
        self.assertEqual(self.check({path: CLEAN.get(path, "") + text}), [])


class CleanTree(TidyTest):
    def test_clean_tree_passes(self):
        self.assertEqual(self.check(), [])

    def test_binary_files_are_left_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "picture.bin").write_bytes(b"\xff\xfe\x00")
            self.assertEqual(tidy.check(pathlib.Path(folder)), [])


class Appended(TidyTest):
    """One line too many in a file, and what is said of it."""
    CASES = (
        # the order of the layers
        ("src/arena/arena.h", '#include "heap/heap.h"\n', 1, "arena includes src/heap/heap.h"),
        ("src/base/units.h", '\n#include "../platform/platform.h"\n', 2, "higher layer"),
        ("src/slabs/slab.h", "#include <heap/heap.h>\n", 1, "higher layer"),
        ("include/reheap/reheap.h", '#include "base/units.h"\n', 1, "internal"),
        ("src/misc/x.h", "", 1, "no layer"),
        # the order of the top folders
        ("command/common/frame.h", '#include "lab/native/part.h"\n', 1, "command/ knows lab/"),
        ("lab/native/part.h", '#include "../../bench/workloads/work.h"\n', 1, "lab/ knows bench/"),
        ("command/CMakeLists.txt", "include(${PROJECT_SOURCE_DIR}/bench/x.cmake)\n", 1, "knows bench/"),
        ("lab/part.py", 'sys.path.insert(0, str(ROOT / "bench"))\n', 1, "lab/ knows bench/"),
        # headers
        ("src/heap/heap.h", "#include <vector>\n", 1, "<vector>"),
        ("src/platform/linux/memory.cpp", "#include <string>\n", 1, "<string>"),
        ("include/reheap/reheap.h", "#include <sys/types.h>\n", 1, "sys/types.h"),
        ("src/arena/arena.h", '#include "arena/gone.h"\n', 1, "does not exist"),
        ("include/reheap/reheap.h", "#ifdef _WIN32\n#endif\n", 1, "_WIN32"),
        # links
        ("docs/a.md", "\nsee [this](gone.md#x)\n", 2, "gone.md"),
        ("docs/a.md", "[r]: ../gone.md\n", 1, "gone.md"),
        ("docs/a.md", "in `src/heap/gone.h`\n", 1, "src/heap/gone.h"),
    )

    def test_each(self):
        for case in self.CASES:
            with self.subTest(case):
                self.caught(*case)

    def test_include_of_tests(self):
        self.caught_in("src/base/units.h", {"src/base/units.h": '#include "../../tests/t.h"\n', "tests/t.h": ""})


class Circles(TidyTest):
    def test_two_headers(self):
        self.caught_in("src/heap/heap.h", {"src/heap/heap.h": '#include "heap/other.h"\n',
                                           "src/heap/other.h": '#include "heap.h"\n'}, "heap other")

    def test_a_source_is_part_of_its_header(self):
        self.caught_in("src/base/more.cpp", {"src/base/more.h": "", "src/base/text.cpp": '#include "base/more.h"\n',
                                           "src/base/more.cpp": '#include "base/text.h"\n'}, "more text")

    def test_three(self):
        self.caught_in("src/heap/a.h", {f"src/heap/{one}.h": f'#include "heap/{other}.h"\n'
                                        for one, other in ("ab", "bc", "ca")}, "a b c")

    def test_a_line_is_no_circle(self):
        self.assertEqual(self.check({"src/heap/a.h": '#include "heap/b.h"\n#include "heap/heap.h"\n',
                                     "src/heap/b.h": '#include "heap/heap.h"\n'}), [])


class Lines(TidyTest):
    LONG = "x" * (tidy.MOST_COLUMNS + 1)

    def test_code_and_prose(self):
        for path in ("docs/b.md", "src/base/units.h", "bench/bench.py", "command/CMakeLists.txt"):
            self.caught(path, f"# {self.LONG}\n" if not path.endswith(".h") else f"// {self.LONG}\n", 1, "columns")

    def test_tables_and_quotations(self):
        self.passes("docs/b.md", f"| {self.LONG} |\n```\n{self.LONG}\n```\n")


class Functions(TidyTest):
    BODY = "  step();\n" * tidy.MOST_FUNCTION_LINES

    def test_long(self):
        for head in ("int walk(int a) {", "static void walk(int a,\n                 int b) {", "Walk::~Walk() {"):
            self.caught("tests/src/heap/heap_test.cpp", f"{head}\n{self.BODY}}}\n", 1, "lines")

    def test_long_in_a_class(self):
        text = f"struct Walk {{\n  int go() {{\n  {self.BODY}  }}\n}};\n"
        self.caught("tests/src/heap/heap_test.cpp", text, 2, "lines")

    def test_long_in_python(self):
        self.caught("bench/bench.py", "def walk():\n" + "    step()\n" * tidy.MOST_FUNCTION_LINES, 1, "lines")

    def test_why_it_is_long(self):
        self.passes("tests/src/heap/heap_test.cpp", f"// Each register; long: a table.\nint walk() {{\n{self.BODY}}}\n")

    def test_short_ones_one_after_another(self):
        self.passes("tests/src/heap/heap_test.cpp", "void step() {\n  next();\n}\n" * tidy.MOST_FUNCTION_LINES)

    def test_a_type_is_no_function(self):
        self.passes("tests/src/heap/heap_test.cpp", "struct Table {\n" + "  int a;\n" * 70 + "};\n"
                    "const int g_table[] = {\n" + "    1,\n" * 70 + "};\n")


class Declarations(TidyTest):
    def test_unused(self):
        for line in ("int forgotten();", "inline constexpr int kForgotten = 1;", "extern int forgotten(int a);"):
            self.caught("src/base/units.h", line + "\n", 1, "nobody uses")

    def test_its_definition_is_no_use(self):
        found = self.check({"src/base/text.h": CLEAN["src/base/text.h"] + "int forgotten(int a);\n",
                            "src/base/text.cpp": "int forgotten(int a) {\n  return a;\n}\n"})
        self.assertEqual([(violation.path, violation.message) for violation in found],
                         [("src/base/text.h", "nobody uses forgotten")])

    def test_used(self):
        for use in ("int g() { return used(1); }", "int g() {\n  return used(1);\n}", "const auto g = &used;",
                    "#define G used(1)", "static_assert(used(1) == 1);"):
            self.assertEqual(self.check({"src/base/units.h": CLEAN["src/base/units.h"] + "int used(int a);\n",
                                         "src/base/text.cpp": use + "\n"}), [])


class Headers(TidyTest):
    def test_os_header(self):
        for header in ("sys/mman.h", "unistd.h", "windows.h", "pthread.h", "stdlib.h"):
            self.caught("src/arena/arena.h", f"#include <{header}>\n", 1, header)


class Macros(TidyTest):
    def test_os_macro(self):
        for macro in ("_WIN32", "__linux__", "__APPLE__", "__GLIBC__"):
            self.caught("src/slabs/slab.h", f"#if defined({macro})\n#endif\n", 1, macro)

    def test_number(self):
        for body in ("4096", "(1 << 14)", "0x40u", "(SIZE_MAX / 2)", "(size_t{1} << 20)", "-1L"):
            self.caught("src/slabs/slab.h", f"#define RH_SIZE {body}\n", 1, "RH_SIZE")

    def test_not_a_number(self):
        for body in ("inline", '"1"', "__attribute__((aligned(64)))", "[[gnu::cold]]"):
            self.passes("src/slabs/slab.h", f"#define RH_THING {body}\n")


class Traces(TidyTest):
    def test_unfinished_words(self):
        for word in ("TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK", "stu" + "b", "Stu" + "bs"):
            self.caught("docs/b.md", f"{word}: later\n", 1, word)

    def test_words_inside_words(self):
        self.passes("docs/b.md", "tmpXX" + "XXXX, stu" + "bborn, hackathon\n")

    def test_machine_paths(self):
        for path in ("/wo" + "rk/main/x", "/ro" + "ot/.cache", "/tmp/ba" + "sh_jobs"):
            self.caught("bench/bench.py", f'X = "{path}"\n', 1, "one machine")

    def test_paths_of_other_things(self):
        self.passes("docs/b.md", "https://example.org/ro" + "ot/x build/wo" + "rk/x $HOME/wo" + "rk\n")

    def test_registry_hosts(self):
        for host in ("py" + "pi.org", "deb.deb" + "ian.org", "static.cra" + "tes.io", "registry.npm" + "js.org"):
            self.caught("bench/bench.py", f'X = "https://{host}/x"\n', 1, "registry")


class Files(TidyTest):
    def test_long_file(self):
        self.passes("src/base/units.h", "\n" * (tidy.MOST_LINES - 1))
        self.caught("src/base/units.h", "\n" * tidy.MOST_LINES, tidy.MOST_LINES, "at most")

    def test_source_built_by_nothing(self):
        for path in ("tests/crimes/forgotten.cpp", "bench/workloads/forgotten.c", "command/sub/forgotten.cpp",
                     "tests/src/arena/forgotten_test.cpp", "tests/src/heap/forgotten.cpp",
                     "src/platform/posix/forgotten.cpp"):
            self.caught(path, "", 1, "built by nothing")

    def test_mention_in_a_comment_does_not_count(self):
        self.caught_in("tests/x.cpp", {"tests/x.cpp": "", "tests/CMakeLists.txt": "# x.cpp\n"})


if __name__ == "__main__":
    unittest.main()
