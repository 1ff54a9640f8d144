#!/usr/bin/env python3
"""LLVM's own CMake files with the hook: LLVM is configured whole, unmodified, for Windows, and its link lines are read.

REHEAP_TEST_LLVM names the release, REHEAP_TEST_FOLDER where to build. clang-cl and lld-link stand for the compiler of
Windows; nothing of LLVM is compiled.
"""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import fake_crt
import llvm_sources
import make_hook

MAJOR = int(os.environ.get("REHEAP_TEST_LLVM", "19"))
FOLDER = pathlib.Path(os.environ.get("REHEAP_TEST_FOLDER") or tempfile.mkdtemp()) / f"llvm-{MAJOR}"
TOOLS = {"CMAKE_C_COMPILER": "clang-cl-19", "CMAKE_CXX_COMPILER": "clang-cl-19", "CMAKE_AR": "llvm-lib-19",
         "CMAKE_LINKER": "lld-link-19", "CMAKE_MT": "llvm-mt-19", "CMAKE_RC_COMPILER": "llvm-rc-19",
         "LLVM_TABLEGEN": "llvm-tblgen-19"}
TOOLCHAIN = {"CMAKE_SYSTEM_NAME": "Windows", "CMAKE_SYSTEM_PROCESSOR": "AMD64",
             "CMAKE_TRY_COMPILE_TARGET_TYPE": "STATIC_LIBRARY",  # there is nothing to link with
             "CMAKE_C_COMPILER_TARGET": fake_crt.TARGET, "CMAKE_CXX_COMPILER_TARGET": fake_crt.TARGET,
             "LLVM_HOST_TRIPLE": fake_crt.TARGET} | {name: shutil.which(tool) or tool for name, tool in TOOLS.items()}
# What is left out takes time and links nothing else.
SMALL = {"LLVM_TARGETS_TO_BUILD": "", "LLVM_TEMPORARILY_ALLOW_OLD_TOOLCHAIN": "ON",
         "LLVM_ENABLE_BINDINGS": "OFF"} | {f"LLVM_INCLUDE_{part}": "OFF" for part in
                                           ("TESTS", "EXAMPLES", "BENCHMARKS", "DOCS", "UTILS")}


@functools.cache
def hook() -> pathlib.Path:
    """A hook with a library that defines malloc, for this test's whole run."""
    place = FOLDER / "hook"
    place.mkdir(parents=True)
    library = fake_crt.archive(place / "reheap.lib", [fake_crt.assemble(place, "malloc.obj", ["malloc"])])
    return make_hook.make(place, library, force=False)[0]


def configure(**changes: str) -> tuple[int, str]:
    """CMake's status and words. The checks of the compiler are made once: later calls begin from the first one's
    cache."""
    asked = dict(word[2:].split("=", 1) for word in make_hook.options(hook()))
    settings = TOOLCHAIN | SMALL | asked | changes
    command = ["cmake", "-G", "Ninja", "-S", llvm_sources.tree(MAJOR) / "llvm", "-B", FOLDER / "build",
               *[f"-D{name}={value}" for name, value in settings.items()]]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.returncode, re.sub(r"\s+", " ", done.stderr)


def linked() -> dict[str, list[str]]:
    """Each program and DLL -> the words of its link line behind its objects."""
    found, target = {}, ""
    for line in (FOLDER / "build" / "build.ninja").read_text(encoding="utf-8").splitlines():
        if match := re.match(r"build (bin/\S+\.(?:exe|dll))[ :]", line):
            target = match[1]
        elif target and line.startswith("  LINK_LIBRARIES = "):
            found[target] = line.split("=", 1)[1].split()
            target = ""
    return found


def compiled(name: str) -> list[str]:
    """The words of the rule that compiles the source so named into LLVMSupport."""
    text = (FOLDER / "build" / "build.ninja").read_text(encoding="utf-8")
    return re.findall(rf"^build \S*LLVMSupport\.dir/\S*{re.escape(name)}\.obj: \S+ (\S+)", text, re.MULTILINE)


def setUpModule():
    shutil.rmtree(FOLDER, ignore_errors=True)


class WithTheHook(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.status, cls.words = configure()

    def test_llvm_takes_it(self):
        self.assertEqual(self.status, 0, self.words[-500:])

    def test_every_program_is_linked_with_it(self):
        programs = linked()
        self.assertGreater(len(programs), 40)
        self.assertIn("bin/llvm-ar.exe", programs)
        library = str(hook() / make_hook.PLACE)
        without = sorted(name for name, words in programs.items() if library not in words
                         or "-INCLUDE:malloc" not in words)
        self.assertEqual(without, [name for name in without if "LLVMSupport" not in " ".join(programs[name])])

    def test_it_comes_before_all_that_the_compiler_adds(self):
        words = linked()["bin/llvm-ar.exe"]
        place = words.index(str(hook() / make_hook.PLACE))
        self.assertLess(place, words.index("kernel32.lib"))
        self.assertTrue(any(word.endswith("LLVMSupport.lib") for word in words[:place]), words)

    def test_the_static_runtime_is_asked_for(self):
        text = (FOLDER / "build" / "build.ninja").read_text(encoding="utf-8")
        flags = re.findall(r"^  FLAGS = .*$", text, re.MULTILINE)
        self.assertTrue(flags and all(re.search(r"[ /-]MT( |$)", line) for line in flags))


# Each takes a whole configuration, seconds, and shows what is the same in all releases.
newest = unittest.skipIf(MAJOR < 19, "the same in all releases")


class Controls(unittest.TestCase):
    """A wrong layout and wrong options are refused in LLVM's own words, or go unnoticed where the guide says so."""

    def folder(self, name: str, *files: str) -> str:
        place = FOLDER / "controls" / self.id().rpartition(".")[2] / name
        for file in ("", *files):
            (place / file).parent.mkdir(parents=True, exist_ok=True)
            (place / file).touch() if file else place.mkdir(exist_ok=True)
        return str(place)

    def refused(self, words: str, **changes: str) -> None:
        status, said = configure(**changes)
        self.assertNotEqual(status, 0)
        self.assertIn(words, said)

    def test_the_library_is_not_there(self):
        self.refused("Cannot find the mimalloc static library", LLVM_INTEGRATED_CRT_ALLOC=self.folder("mimalloc"))

    def test_the_folder_is_not_there(self):
        self.refused("Cannot find the path to `git clone` for the CRT allocator",
                     LLVM_INTEGRATED_CRT_ALLOC="/none/mimalloc")

    def test_the_dynamic_runtime(self):
        self.refused("LLVM_INTEGRATED_CRT_ALLOC only works with", CMAKE_MSVC_RUNTIME_LIBRARY="MultiThreadedDLL",
                     LLVM_USE_CRT_RELEASE="MD")

    def test_a_debug_build(self):
        self.refused("The Debug target isn't supported along with LLVM_INTEGRATED_CRT_ALLOC", CMAKE_BUILD_TYPE="Debug")

    @newest
    def test_another_name_goes_unnoticed(self):
        status, words = configure(LLVM_INTEGRATED_CRT_ALLOC=self.folder("reheap", str(make_hook.PLACE)))
        self.assertEqual(status, 0, words[-500:])
        self.assertNotIn("-INCLUDE:malloc", linked()["bin/llvm-ar.exe"])

    @newest
    def test_the_form_of_rpmalloc_links_no_library(self):
        place = self.folder("rpmalloc", "rpmalloc/rpmalloc.c")
        status, words = configure(LLVM_INTEGRATED_CRT_ALLOC=place)
        self.assertEqual(status, 0, words[-500:])
        self.assertEqual(compiled("rpmalloc.c"), [f"{place}/rpmalloc/rpmalloc.c"])
        self.assertFalse([word for word in linked()["bin/llvm-ar.exe"] if "rpmalloc" in word])

    def test_the_form_of_snmalloc_differs_between_releases(self):
        files = ["src/override/malloc.cc", "src/override/new.cc", "src/snmalloc/override/new.cc"]
        place = self.folder("snmalloc", *files)
        status, words = configure(LLVM_INTEGRATED_CRT_ALLOC=place)
        self.assertEqual(status, 0, words[-500:])
        taken = [file for file in files if compiled(file) == [f"{place}/{file}"]]
        self.assertEqual(taken, files[:2] if MAJOR < 15 else files[2:])
        self.assertIn("mincore.lib", linked()["bin/llvm-ar.exe"])


if __name__ == "__main__":
    unittest.main()
