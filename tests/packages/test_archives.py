"""What is unpacked anywhere and used from there, and what tells of it: sums, the list of what is in it."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILDS = pathlib.Path(os.environ.get("REHEAP_BUILDS", ROOT / "build")).absolute()
WINDOWS = (BUILDS / "windows-x86_64/bin/reheap.exe").is_file()
EPOCH = 1_700_000_000


def run(*words, **settings) -> str:
    done = subprocess.run([*map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          errors="replace", **settings)
    assert done.returncode == 0, f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout}"
    return done.stdout


def make(out: pathlib.Path, *kinds: str) -> pathlib.Path:
    run(sys.executable, "-B", ROOT / "packaging/package.py", *kinds, "--builds", BUILDS, "--out", out,
        env=os.environ | {"SOURCE_DATE_EPOCH": str(EPOCH)})
    return out


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> pathlib.Path:
    return make(tmp_path_factory.mktemp("made"), "tar", *(["zip"] if WINDOWS else []))


@pytest.fixture(scope="module")
def unpacked(made, tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("unpacked")
    run("tar", "-xzf", next(made.glob("*.tar.gz")), "-C", folder)
    return next(folder.iterdir())


def test_the_command_runs_where_it_was_unpacked(unpacked):
    found = json.loads(run(unpacked / "bin/reheap", "doctor", "--json"))
    assert found["report"]["overridden"] and pathlib.Path(found["report"]["library"]).is_relative_to(unpacked)


def test_debuggers_find_what_they_need_beside_it(unpacked):
    for name in ("lib/libreheap.so.0", "lib/libreheap-hardened.so.0"):
        file = (unpacked / name).resolve()
        named = run("readelf", "--string-dump=.gnu_debuglink", file)
        assert f"{file.name}.debug" in named
        assert ".debug_info" in run("readelf", "-SW", file.with_name(file.name + ".debug"))
        assert ".debug_info" not in run("readelf", "-SW", file)


def test_licences_are_in_it(unpacked):
    assert (unpacked / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    third_party = {file.name: file.read_text() for file in (unpacked / "share/doc/reheap/third-party").iterdir()}
    assert "Cincinnati" in third_party["CLI11.txt"] and "Lohmann" in third_party["nlohmann-json.txt"]


def test_nothing_tells_where_it_was_made(unpacked, made):
    for file in unpacked.rglob("*"):
        if file.is_file():
            assert os.fsencode(ROOT) not in file.read_bytes(), file
    with tarfile.open(next(made.glob("*.tar.gz"))) as archive:
        owners = {(member.uid, member.gid, member.uname, member.gname, member.mtime) for member in archive}
    assert owners == {(0, 0, "root", "root", EPOCH)}


def test_the_same_builds_give_the_same_bytes(made, tmp_path):
    again = make(tmp_path, "tar", *(["zip"] if WINDOWS else []))
    assert (again / "SHA256SUMS").read_text() == (made / "SHA256SUMS").read_text()


def test_what_lies_beside_packages_is_left_alone(tmp_path):
    (tmp_path / "mine.zip").write_text("mine")
    (tmp_path / "old.deb").write_text("of an earlier release")
    (tmp_path / "SHA256SUMS").write_text(f"{'0' * 64}  old.deb\n")
    make(tmp_path, "tar")
    assert (tmp_path / "mine.zip").read_text() == "mine" and not (tmp_path / "old.deb").exists()


def test_sums(made):
    lines = (made / "SHA256SUMS").read_text().splitlines()
    assert {line.split("  ")[1] for line in lines} == {path.name for path in made.iterdir()} - {"SHA256SUMS", "work"}
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=made)


def test_the_list_of_what_is_in_it(made):
    document = parse_file(str(next(made.glob("*.spdx.json"))))
    assert validate_full_spdx_document(document, "SPDX-2.3") == []
    packages = {package.name: package for package in document.packages}
    archive = next(made.glob("*.tar.gz"))
    assert packages[archive.name].checksums[0].value == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert packages["CLI11"].version and packages["nlohmann-json"].version
    ids = {package.spdx_id: package.name for package in document.packages}
    linked = {ids[relationship.related_spdx_element_id] for relationship in document.relationships
              if ids.get(relationship.spdx_element_id) == archive.name}
    assert {"CLI11", "nlohmann-json"} < linked and linked & {"glibc", "musl"}


@pytest.mark.skipif(not WINDOWS, reason="what is packed for Windows is not built here")
def test_what_is_for_windows(made):
    with zipfile.ZipFile(next(made.glob("*-windows.zip"))) as archive:
        names = {name.split("/", 1)[1] for name in archive.namelist()}
        assert [name for name in archive.namelist() if os.fsencode(ROOT) in archive.read(name)] == []
    assert names >= {"LICENSE", "bin/reheap.exe", "bin/reheap.dll", "bin/reheap.dll.debug", "bin/reheap-hardened.dll",
                     "lib/libreheap.a", "include/reheap/reheap.h", "share/doc/reheap/third-party/libc++.txt"}
    if (BUILDS / "windows-x86_64-msvc").is_dir():
        assert {"msvc/lib/reheap.lib", "msvc/lib/cmake/reheap/reheapTargets.cmake"} <= names
    if (BUILDS / "windows-i686").is_dir():
        assert {"bin/reheap32.exe", "bin/reheap32.dll", "debug/i686/reheap.dll.debug"} <= names
        # The tables for unwinding that the DLL itself has none of.
        assert ".debug_frame" in run("objdump", "-h", BUILDS / "windows-i686/bin/reheap.dll.debug")


def test_one_object_made_in_two_folders_is_the_same(tmp_path):
    """All of it: packaging/reproduce.sh"""
    objects = []
    for name in ("one", "another, longer"):
        for part in ("CMakeLists.txt", "LICENSE", "cmake", "include", "src", "integrations"):
            source, to = ROOT / part, tmp_path / name / part
            to.parent.mkdir(exist_ok=True)
            shutil.copytree(source, to) if source.is_dir() else shutil.copy(source, to)
        build = tmp_path / name / "build"
        run("cmake", "-G", "Ninja", "-S", tmp_path / name, "-B", build, "-DREHEAP_TESTS=OFF", "-DREHEAP_COMMAND=OFF",
            "-DREHEAP_HARDENED=OFF", "-DCMAKE_BUILD_TYPE=Debug")
        made = "CMakeFiles/reheap_override_objects.dir/src/entry/new.cpp.o"
        run("cmake", "--build", build, "--target", made)
        objects.append((build / made).read_bytes())
    assert b"new.cpp" in objects[0] and objects[0] == objects[1]
