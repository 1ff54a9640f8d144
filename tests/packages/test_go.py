"""A Go program that takes memory from reheap by cgo, built and run beside an installed reheap."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.skipif(not shutil.which("go"), reason="needs Go")
def test_a_program_takes_memory_by_cgo(tmp_path):
    prefix = tmp_path / "a prefix"
    subprocess.run(["cmake", "--install", ROOT / "build" / "release", "--prefix", prefix], check=True,
                   stdout=subprocess.DEVNULL)
    found = next(prefix.rglob("reheap.pc")).parent
    environment = os.environ | {"PKG_CONFIG_PATH": str(found), "CGO_ENABLED": "1", "GOFLAGS": "-mod=mod"}
    program = tmp_path / "consumer"
    subprocess.run(["go", "build", "-o", program, "."], cwd=ROOT / "integrations" / "go", env=environment, check=True)
    ran = subprocess.run([program], env=os.environ | {"LD_LIBRARY_PATH": str(found.parent)}, capture_output=True,
                         text=True)
    assert (ran.returncode, ran.stderr) == (0, "100000 blocks; C's malloc is reheap's: true\n")
