"""`cmake --install` into folders that its user chooses, and the headers under whatever warnings a project has."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILDS = pathlib.Path(os.environ.get("REHEAP_BUILDS", ROOT / "build")).absolute()
CONSUMER = ROOT / "integrations/consumer/consumer.c"


def run(*words, **settings) -> subprocess.CompletedProcess:
    return subprocess.run([*map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          **settings)


def succeeds(*words, **settings) -> str:
    done = run(*words, **settings)
    assert done.returncode == 0, f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout}"
    return done.stdout


# ---- folders ---------------------------------------------------------------------------------------------------------

def install(folder: pathlib.Path, *words: str) -> pathlib.Path:
    """The libraries of the preset release, by a configuration of their own; the prefix."""
    build, prefix = folder / "build", folder / "prefix"
    succeeds("cmake", "-G", "Ninja", "-S", ROOT, "-B", build, "-DREHEAP_TESTS=OFF", "-DREHEAP_COMMAND=OFF",
             "-DREHEAP_HARDENED=OFF", f"-DCMAKE_INSTALL_PREFIX={prefix}", *words)
    shutil.copytree(BUILDS / "release/lib", build / "lib", symlinks=True, dirs_exist_ok=True)
    succeeds("cmake", "--install", build)
    return prefix


@pytest.mark.parametrize("libraries, headers", [
    ("lib64", "other/headers"),
    ("{}/apart/lib", "{}/prefix/include"),  # said in full, as Nix does
    ("{}/apart/lib", "{}/apart/include"),
], ids=["relative", "full", "apart"])
def test_programs_find_it_in_any_folder(libraries, headers, tmp_path):
    libraries, headers = libraries.format(tmp_path), headers.format(tmp_path)
    prefix = install(tmp_path, f"-DCMAKE_INSTALL_LIBDIR={libraries}", f"-DCMAKE_INSTALL_INCLUDEDIR={headers}")
    assert (prefix / headers / "reheap/reheap.h").is_file()

    variables = os.environ | {"PKG_CONFIG_PATH": str(prefix / libraries / "pkgconfig")}
    for package, how in (("reheap-core", "beside"), ("reheap-static", "serves")):
        words = succeeds("pkg-config", "--cflags", "--libs", package, env=variables).split()
        succeeds("cc", CONSUMER, *words, "-o", tmp_path / package)
        succeeds(tmp_path / package, how)

    (tmp_path / "user").mkdir()
    (tmp_path / "user/CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(user C)\nfind_package(reheap REQUIRED)\n"
        f"add_executable(user {CONSUMER})\ntarget_link_libraries(user reheap::static)\n")
    succeeds("cmake", "-G", "Ninja", "-S", tmp_path / "user", "-B", tmp_path / "built",
             f"-Dreheap_DIR={prefix / libraries}/cmake/reheap")
    succeeds("cmake", "--build", tmp_path / "built")
    succeeds(tmp_path / "built/user", "serves")


# ---- headers ---------------------------------------------------------------------------------------------------------

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Wundef", "-Wcast-qual",
            "-Wredundant-decls", "-Werror"]
OF_CPLUSPLUS = ["-Wold-style-cast", "-Wuseless-cast", "-Weffc++", "-Wzero-as-null-pointer-constant", "-Wextra-semi",
                "-Wnon-virtual-dtor", "-Woverloaded-virtual"]


def preprocessed(header: str, suffix: str, tmp_path: pathlib.Path, *words: str) -> subprocess.CompletedProcess:
    source = tmp_path / f"twice.{suffix}"
    source.write_text(f"#include <reheap/{header}>\n" * 2)
    return run(*words, f"-I{ROOT / 'include'}", "-fsyntax-only", source)


@pytest.mark.parametrize("header, suffix, words", [
    ("reheap.h", "c", ["gcc", "-std=c11", "-Wstrict-prototypes"]),
    ("reheap.h", "cpp", ["g++", "-std=c++11", *OF_CPLUSPLUS]),
    ("reheap.hpp", "cpp", ["g++", "-std=c++17", *OF_CPLUSPLUS]),
    ("reheap.hpp", "cpp", ["g++", "-std=c++23", "-fno-exceptions", "-fno-rtti", *OF_CPLUSPLUS]),
    ("reheap.hpp", "cpp", ["clang++-19", "-std=c++20", "-Weverything", "-Wno-c++98-compat-pedantic", "-Wno-padded",
                           "-Wno-unsafe-buffer-usage", "-Wno-weak-vtables"]),
], ids=lambda value: value if isinstance(value, str) else "".join(value[:2]))
def test_headers_are_silent_under_a_strangers_warnings(header, suffix, words, tmp_path):
    """They come from a folder that no -isystem names, as in add_subdirectory."""
    if shutil.which(words[0]) is None:
        pytest.skip(f"needs {words[0]}")
    done = preprocessed(header, suffix, tmp_path, *words, *WARNINGS)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("header, standard, said", [
    ("reheap.h", "c++98", "pass -std=c++11"), ("reheap.hpp", "c++14", "pass -std=c++17")])
def test_headers_name_the_language_they_need(header, standard, said, tmp_path):
    done = preprocessed(header, "cpp", tmp_path, "g++", f"-std={standard}", "-Wfatal-errors")
    assert done.returncode != 0 and said in done.stdout
