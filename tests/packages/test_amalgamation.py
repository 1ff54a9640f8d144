"""reheap.cpp and reheap.h, as tools/amalgamate.py writes them: compiled by compilers and linked as users do."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools" / "amalgamate.py"
sys.path.insert(0, str(SCRIPT.parent))
import check_library  # noqa: E402

CONSUMER = ROOT / "integrations" / "consumer"
STRICT = ["-std=c++20", "-Wall", "-Wextra", "-Werror"]
LINUX = ["-pthread", "-ldl"]
MINGW = "x86_64-w64-mingw32-g++"

WINDOWS_PROGRAM = r"""
#include <reheap/reheap.h>
#include <malloc.h>
#include <cstdio>
#include <string>
#include <thread>
int main() {
  std::string text(1000, 'x');
  std::thread([&] { text += text; }).join();
  std::printf("%d %d %d\n", rh_owns(malloc(1)), rh_owns(_aligned_malloc(1, 64)), rh_owns(text.data()));
}
"""

# Not in it: what tests the rest, and what only a shared library of its own needs.
LEFT_OUT = re.compile(r"platform/fake/|(platform|entry)/darwin/|entry/linux/(dlmopen|\w+_shared)\.cpp")


def run(*words, **more) -> subprocess.CompletedProcess:
    more.setdefault("env", {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")})
    return subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          **more)


def succeeds(*words, **more) -> str:
    ran = run(*words, **more)
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


def needs(tool: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"needs {tool}")


@pytest.fixture(scope="session")
def pair(tmp_path_factory) -> pathlib.Path:
    """A folder from which <reheap/reheap.h> is found."""
    folder = tmp_path_factory.mktemp("with a space") / "reheap"
    succeeds(sys.executable, SCRIPT, folder, cwd="/")
    return folder


@pytest.fixture(scope="session")
def compiled(pair, tmp_path_factory):
    """compiled(COMPILER, *FLAGS): the object, each made once."""
    made = {}

    def compile_once(*words: str) -> pathlib.Path:
        needs(words[0])
        if words not in made:
            made[words] = tmp_path_factory.mktemp("object") / "reheap.o"
            succeeds(*words, *STRICT, "-c", pair / "reheap.cpp", "-o", made[words])
        return made[words]

    return compile_once


# ---- the script --------------------------------------------------------------------------------------

def test_all_source_is_in_it_once_and_nothing_of_this_machine(pair, tmp_path):
    text = (pair / "reheap.cpp").read_text()
    for path in sorted((ROOT / "src").rglob("*.cpp")):
        name = path.relative_to(ROOT / "src").as_posix()
        assert text.count(f"\n// ---- {name} ----\n") == (0 if LEFT_OUT.match(name) else 1), name
    assert '#include "' not in text.replace('#include "reheap.h"', "", 1)
    assert "MIT License" in text[:300] and str(ROOT) not in text
    succeeds(sys.executable, SCRIPT, tmp_path, cwd=ROOT, env={"PATH": os.environ["PATH"], "PYTHONHASHSEED": "7"})
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["reheap.cpp", "reheap.h"]
    for made in tmp_path.iterdir():
        assert made.read_bytes() == (pair / made.name).read_bytes()


def test_without_cmake_it_says_so(tmp_path):
    ran = run(sys.executable, SCRIPT, tmp_path / "out", env={"PATH": str(tmp_path)})
    assert ran.returncode == 1 and "cmake" in ran.stdout and "Traceback" not in ran.stdout
    assert not (tmp_path / "out").exists()


def test_where_it_cannot_write_it_says_so(tmp_path):
    (tmp_path / "file").touch()
    ran = run(sys.executable, SCRIPT, tmp_path / "file")
    assert ran.returncode == 1 and ran.stdout.startswith("amalgamate: ") and "Traceback" not in ran.stdout


def test_what_a_build_has_is_said_by_facts_alone():
    sys.path.insert(0, str(SCRIPT.parent))
    import amalgamate
    only = amalgamate.matching({"windows": False, "x86_64": True, "override": True})
    assert amalgamate.condition(amalgamate.hull(only)) == "!defined(_WIN32) && RH_X86_64 && defined(REHEAP_OVERRIDE)"
    assert amalgamate.condition(amalgamate.hull(amalgamate.ALL)) == ""
    two = amalgamate.matching({"windows": True, "wide": True}) | amalgamate.matching({"windows": False, "wide": False})
    assert amalgamate.matching(amalgamate.hull(two)) != two  # no such #if: refused for a source, widened for a header


# ---- the core ----------------------------------------------------------------------------------------

def test_the_core_serves_c_programs_without_a_c_library_of_cplusplus(compiled, pair, tmp_path):
    core = compiled("g++", "-O1", "-fPIC", "-fno-exceptions")
    succeeds("cc", "-O1", f"-I{pair.parent}", CONSUMER / "consumer.c", core, *LINUX, "-o", tmp_path / "consumer")
    succeeds(tmp_path / "consumer", "beside")


def test_a_library_with_it_exports_the_interface_alone(compiled, tmp_path):
    core = compiled("g++", "-O1", "-fPIC", "-fno-exceptions")
    library = tmp_path / "library.so"
    succeeds("cc", "-shared", "-Wl,-z,defs", core, *LINUX, "-o", library)
    exported = {line.split()[-1] for line in succeeds("nm", "-D", "--defined-only", library).splitlines()}
    expected = check_library.expected_names(ROOT / "tests/contract/exports.expected", wide=True, musl=False)
    assert exported <= expected and not exported & {"malloc", "free", "_Znwm"}
    assert not [name for name in expected - exported if name.startswith("rh_")]


# ---- with malloc -------------------------------------------------------------------------------------

@pytest.mark.parametrize("words", [
    pytest.param(["g++", "-O0", "-DREHEAP_OVERRIDE"], id="gcc"),
    pytest.param(["clang++-19", "-O1", "-D_FORTIFY_SOURCE=3", "-DREHEAP_OVERRIDE", "-DREHEAP_HARDENED"],
                 id="clang-hardened"),
])
def test_it_serves_malloc(compiled, pair, tmp_path, words):
    served = compiled(*words, "-fno-builtin-malloc", "-fno-builtin-calloc", "-fno-builtin-realloc", "-fno-builtin-free")
    succeeds(words[0], "-std=c++17", "-O1", f"-I{pair.parent}", CONSUMER / "consumer.cpp", served, *LINUX,
             "-o", tmp_path / "consumer")
    succeeds(tmp_path / "consumer", "serves")
    for linked in ([], ["-static"]):
        succeeds("cc", f"-I{pair.parent}", "-c", CONSUMER / "consumer.c", "-o", tmp_path / "c.o")
        succeeds(words[0], *linked, tmp_path / "c.o", served, *LINUX, "-o", tmp_path / "in-c")
        succeeds(tmp_path / "in-c", "serves")


# ---- elsewhere ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("words", [
    pytest.param(["g++", "-m32", "-DREHEAP_OVERRIDE"], id="m32"),
    pytest.param(["clang++-19", "-m32"], id="clang-m32"),
    pytest.param(["clang++-19", "-DRH_DEBUG_CHECKS"], id="checks"),
    pytest.param(["i686-w64-mingw32-g++", "-DREHEAP_OVERRIDE", "-DREHEAP_HARDENED"], id="windows-i686"),
])
def test_it_compiles(pair, words):
    needs(words[0])
    succeeds(*words, *STRICT, "-fsyntax-only", pair / "reheap.cpp")


def test_it_serves_windows_programs(compiled, pair, tmp_path):
    served = compiled(MINGW, "-O0", "-DREHEAP_OVERRIDE")
    (tmp_path / "program.cpp").write_text(WINDOWS_PROGRAM)
    succeeds(MINGW, f"-I{pair.parent}", "-static", tmp_path / "program.cpp", served, "-lntdll",
             "-o", tmp_path / "program.exe")
    assert succeeds(ROOT / "tools" / "wine", tmp_path / "program.exe").split() == ["1", "1", "1"]


WIDE_TIMES = r"""
#include <stdlib.h>
#include <time.h>
int main(void) {
  struct timespec asked = {0, 100000000}, before, after;
  free(malloc(1));
  clock_gettime(CLOCK_MONOTONIC, &before);
  nanosleep(&asked, 0);
  clock_gettime(CLOCK_MONOTONIC, &after);
  return (after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec < asked.tv_nsec;
}
"""


def test_a_32_bit_program_with_64_bit_times_sleeps_as_long_as_it_says(compiled, tmp_path):
    wide = ("-m32", "-D_FILE_OFFSET_BITS=64", "-D_TIME_BITS=64")
    served = compiled("g++", "-O0", "-DREHEAP_OVERRIDE", *wide)
    (tmp_path / "program.c").write_text(WIDE_TIMES)
    succeeds("cc", *wide, "-c", tmp_path / "program.c", "-o", tmp_path / "program.o")
    succeeds("g++", "-m32", tmp_path / "program.o", served, *LINUX, "-o", tmp_path / "program")
    succeeds(tmp_path / "program")


@pytest.mark.parametrize("words, said", [
    (["-std=c++17"], "pass -std=c++20"),
    (["-std=c++20", "-DREHEAP_OVERRIDE", "-fno-exceptions"], "do not pass -fno-exceptions"),
    (["-std=c++20", "-DREHEAP_OVERRIDE", "-fsanitize=address"], "leave REHEAP_OVERRIDE out"),
    (["-std=c++20", "-U__linux__"], "is for Linux and Windows"),
    (["-xc"], "compile it with a C++ compiler"),
])
def test_what_is_missing_is_said(pair, words, said):
    ran = run("g++", *words, "-E", "-Wfatal-errors", "-o", "/dev/null", pair / "reheap.cpp")
    assert ran.returncode != 0 and said in ran.stdout, ran.stdout
