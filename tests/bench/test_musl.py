"""Real programs made for musl, on its own malloc and on reheap: they look themselves at what they compute."""

import shutil

import musl
import musl_programs
import pytest
from reheap_lab import native
from reheap_lab.errors import LabError

COMPILER = shutil.which("musl-gcc")


@pytest.fixture(scope="module")
def lua():
    assert COMPILER, "musl-gcc is not installed; install it: apt-get install musl-tools"
    return musl_programs.prepare("lua", COMPILER, "-O0")


@pytest.mark.parametrize("threads", [1, 3])
def test_a_program_is_right_on_either_heap(lua, threads):
    for library in (None, native.library("libreheap.so")):
        assert musl.run([lua, threads, 2], library)["peak_rss_kib"] > 0


def test_a_program_that_is_wrong_is_no_figure(lua):
    with pytest.raises(LabError, match="THREADS"):
        musl.run([lua, 0], None)


def test_every_program_is_known_by_name():
    assert set(musl_programs.PROGRAMS) <= set(musl.NAMES) and "lua" in musl.QUICK
