"""The recipe for Conan: made and used as its user does, with no registry to ask."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECIPE = ROOT / "packaging/conan"
# The library without its hardened brother, which takes as long again.
HALF = ("-o", "&:hardened=False")


@pytest.fixture(scope="module")
def conan(tmp_path_factory):
    home = tmp_path_factory.mktemp("conan")
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "CONAN_HOME": str(home / "a home"),
                   "TMPDIR": str(home)}

    def call(*words) -> subprocess.CompletedProcess:
        command = [sys.executable, "-c", "from conans.conan import run; run()", *map(str, words)]
        return subprocess.run(command, text=True, check=False, capture_output=True, env=environment, cwd=home)

    assert call("profile", "detect").returncode == 0
    return call


def test_it_is_packed_and_programs_link_it(conan):
    done = conan("create", RECIPE, "--no-remote", *HALF, "-c", "tools.cmake.cmake_layout:test_folder=$TMP",
                 "-c", "tools.build:jobs=2")
    assert done.returncode == 0, done.stdout + done.stderr
    listed = conan("list", "reheap/*:*", "--format=compact").stdout
    assert "reheap/" in listed and "hardened=False" in listed
    found = next(pathlib.Path(line) for line in conan("cache", "path", *package_of(conan)).stdout.splitlines() if line)
    packed = {str(file.relative_to(found)) for file in found.rglob("*")}
    assert packed >= {"licenses/LICENSE", "include/reheap/reheap.h", "lib/libreheap.so", "lib/libreheap.so.0"}
    assert not [name for name in packed if name.startswith("share")]


def package_of(conan) -> list[str]:
    """Its name in the cache, with everything in it that tells one from another."""
    listed = json.loads(conan("list", "reheap/*:*", "--format=json").stdout)
    for recipe, described in listed["Local Cache"].items():
        for revision, of_revision in described["revisions"].items():
            for package in of_revision["packages"]:
                return [f"{recipe}#{revision}:{package}"]
    return []


def test_systems_it_is_not_for_are_told(conan):
    done = conan("create", RECIPE, "--no-remote", "-s", "os=Macos", "-tf", "")
    assert done.returncode != 0 and "Linux and Windows alone" in done.stdout + done.stderr
