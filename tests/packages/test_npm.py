"""The npm packages: made from what was built, installed into an empty project without a network, and used."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "packaging" / "npm" / "build.py"
SYSTEM = "linux-x64"

pytestmark = pytest.mark.skipif(not shutil.which("npm"), reason="needs node and npm")


def make(out: pathlib.Path, *words: str) -> list[pathlib.Path]:
    made = subprocess.run([sys.executable, BUILD, "--out", out, *words], check=True, stdout=subprocess.PIPE, text=True)
    return [pathlib.Path(line) for line in made.stdout.split()]


@pytest.fixture(scope="module")
def packed(tmp_path_factory) -> list[pathlib.Path]:
    return make(tmp_path_factory.mktemp("packed"), SYSTEM)


@pytest.fixture
def project(packed, tmp_path) -> pathlib.Path:
    (tmp_path / "package.json").write_text('{"name": "project", "version": "1.0.0"}')
    words = ["npm", "install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts", *packed]
    subprocess.run(words, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    return tmp_path


def run(project: pathlib.Path, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run([project / "node_modules" / ".bin" / "reheap", *words], cwd=project, capture_output=True,
                          text=True)


def test_node_runs_on_it(project):
    has = "console.log(require('fs').readFileSync('/proc/self/maps', 'utf8').includes(require('reheap').library()))"
    ran = run(project, "run", "--", "node", "-e", has)
    assert (ran.returncode, ran.stdout) == (0, "true\n"), ran.stderr


def test_modules_import_it_by_names(project):
    (project / "module.mjs").write_text('import { command, library } from "reheap"; console.log(command(), library());')
    ran = subprocess.run(["node", "module.mjs"], cwd=project, capture_output=True, text=True)
    folder = project / "node_modules" / "@reheap" / SYSTEM
    assert ran.stdout.split() == [f"{folder}/bin/reheap", f"{folder}/lib/libreheap.so"], ran.stderr


def test_it_ends_as_the_program_ended(project):
    assert run(project, "run", "--", "node", "-e", "process.exit(3)").returncode == 3
    assert run(project, "run", "--", "sh", "-c", "kill -TERM $$").returncode == -signal.SIGTERM


def test_a_signal_goes_to_the_program(project):
    words = [project / "node_modules" / ".bin" / "reheap", "run", "--", "sh", "-c", "echo up; exec sleep 60"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as started:
        assert started.stdout.readline() == b"up\n"
        started.terminate()
        assert started.wait(30) == -signal.SIGTERM
        assert started.stdout.read() == b""  # sleep is gone too: it held this open


def test_without_the_package_for_the_system_it_says_what_to_do(project):
    shutil.rmtree(project / "node_modules" / "@reheap")
    ran = run(project, "run", "--", "true")
    assert ran.returncode == 127
    assert f"@reheap/{SYSTEM} is not installed" in ran.stderr and "npm install reheap" in ran.stderr


def test_packages_hold_what_they_should(packed):
    assert all(package.stat().st_size < 1_500_000 for package in packed)
    with tarfile.open(packed[1]) as archive:
        assert sorted(name.removeprefix("package/") for name in archive.getnames()) == [
            "LICENSE", "bin/reheap", "lib/libreheap-hardened.so", "lib/libreheap.so", "package.json"]


def test_made_twice_they_are_the_same(packed, tmp_path):
    again = make(tmp_path, SYSTEM)
    assert [package.read_bytes() for package in again] == [package.read_bytes() for package in packed]


def test_what_was_not_built_is_named(tmp_path):
    ran = subprocess.run([sys.executable, BUILD, "--builds", tmp_path, "--out", tmp_path], capture_output=True,
                         text=True)
    assert ran.returncode == 1 and "./dev build linux-x86_64" in ran.stderr
    assert not os.listdir(tmp_path)
