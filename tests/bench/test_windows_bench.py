"""What the Windows benchmark takes for proven, and what it leaves out."""

import pathlib
import subprocess

import pytest
import windows
from common import windows as runs
from common.programs import build_program
from peers import windows as peers
from registries import Failure
from reheap_lab.errors import LabError
from test_tables import comparison

PLAIN, REDIRECTED, PEER = (runs.SUBJECTS[name] for name in ("wine", "reheap", "mimalloc"))
START = 'reheap: {"pid":7,"overridden":true}\n'
HEAP, RUNTIME = (f"reheap: {name} at 0x170000000: replaced heap (14)\n" for name in ("ntdll.dll", "ucrtbase.dll"))
LINE = HEAP + RUNTIME + START
PEERS_LINES = "".join(f'peer: {{"name":"mimalloc","pid":7,"replaced":"{dll}"}}\n'
                      for dll in ("ntdll.dll", "ucrtbase.dll"))
STATIC = runs.Program("static", (), file=pathlib.Path("static.exe"), runtime=False)


def report(*names: str, wines: bool = True) -> dict:
    modules = [{"path": f"C:\\\\windows\\\\{name}", "wines": wines and name == "ucrtbase.dll"} for name in names]
    return {"pid": 7, "modules": modules}


def test_by_the_allocator_it_stands_for():
    right = [
        (PLAIN, report("ucrtbase.dll"), ""),
        (REDIRECTED, report("ucrtbase.dll", "reheap.dll"), LINE),
        (PEER, report("ucrtbase.dll", "peer_mimalloc.dll"), PEERS_LINES),
        (runs.SUBJECTS["microsoft"], report("ucrtbase.dll", wines=False), ""),
        (runs.SUBJECTS["reheap-linked"], report("ucrtbase.dll"), START),
        (runs.SUBJECTS["reheap-heap"], report("ucrtbase.dll", "reheap.dll"), HEAP + START),
        (runs.SUBJECTS["reheap-crt"], report("ucrtbase.dll", "reheap.dll"),
         LINE.replace('"pid":7', '"pid":6') + RUNTIME + START),
        (runs.SUBJECTS["mimalloc-linked"], report("ucrtbase.dll", "mimalloc.dll"), ""),
    ]
    for subject, told, errors in right:
        runs.check_served(windows.maltest(), subject, told, errors)


def test_by_another_one():
    wrong = [
        (PLAIN, report(), ""),
        (PLAIN, report("ucrtbase.dll", wines=False), ""),
        (PLAIN, report("ucrtbase.dll", "reheap.dll"), LINE),
        (PLAIN, report("ucrtbase.dll"), LINE),
        (REDIRECTED, report("ucrtbase.dll"), LINE),
        (REDIRECTED, report("ucrtbase.dll", "reheap.dll"), ""),
        (REDIRECTED, report("ucrtbase.dll", "reheap.dll"), LINE.replace('"pid":7', '"pid":8')),
        (REDIRECTED, report("ucrtbase.dll", "reheap.dll"), LINE.replace("true", "false")),
        (REDIRECTED, report("ucrtbase.dll", "reheap.dll"), HEAP + START),
        (REDIRECTED, report("ucrtbase.dll", "reheap.dll"), RUNTIME + START),
        (runs.SUBJECTS["reheap-heap"], report("ucrtbase.dll", "reheap.dll"), LINE),
        (runs.SUBJECTS["reheap-crt"], report("ucrtbase.dll", "reheap.dll"), LINE),
        (PEER, report("ucrtbase.dll"), PEERS_LINES),
        (PEER, report("ucrtbase.dll", "peer_rpmalloc.dll"), PEERS_LINES),
        (PEER, report("ucrtbase.dll", "peer_mimalloc.dll"), ""),
        (PEER, report("ucrtbase.dll", "peer_mimalloc.dll"), PEERS_LINES.replace("7", "8")),
        (PEER, report("ucrtbase.dll", "peer_mimalloc.dll"), PEERS_LINES.replace("ucrtbase", "msvcrt")),
        (PEER, report("ucrtbase.dll", "peer_mimalloc.dll"), PEERS_LINES.replace("ntdll", "msvcrt")),
        (PEER, report("ucrtbase.dll", "peer_mimalloc.dll"), PEERS_LINES.replace("replaced", "left")),
        (runs.SUBJECTS["mimalloc-linked"], report("ucrtbase.dll"), ""),
    ]
    for subject, told, errors in wrong:
        with pytest.raises(LabError):
            runs.check_served(windows.maltest(), subject, told, errors)


def test_a_program_without_a_runtime_has_the_heap_alone():
    runs.check_served(STATIC, PLAIN, report(), "")
    for lines in (PEERS_LINES, PEERS_LINES.splitlines()[0]):
        runs.check_served(STATIC, PEER, report("peer_mimalloc.dll"), lines)
    with pytest.raises(LabError, match="replaced were functions of nothing"):
        runs.check_served(STATIC, PEER, report("peer_mimalloc.dll"), "")
    assert not STATIC.takes(runs.SUBJECTS["mimalloc-crt"])


def test_a_runtime_with_a_heap_of_its_own_needs_an_allocator_with_heaps():
    for name, taken in (("mimalloc-heap", True), ("rpmalloc-heap", False), ("rpmalloc", True)):
        assert windows.maltest().takes(runs.SUBJECTS[name]) == taken, name
    assert STATIC.takes(runs.SUBJECTS["rpmalloc-heap"])


def test_only_programs_of_ours_can_have_one_linked_in():
    assert windows.maltest().takes(runs.SUBJECTS["reheap-linked"])
    assert not runs.Program("lld", (), file=pathlib.Path("lld.exe")).takes(runs.SUBJECTS["reheap-linked"])


def test_what_was_not_measured_is_a_dash():
    rows = windows.rows_of(windows.maltest(), comparison(wine=[2.0] * 3, reheap=[1.0] * 3))
    assert rows[0] == ["maltest", "wine", "2.00", "", *["-", ""] * 4]
    assert rows[1][:5] == ["maltest", "reheap", "1.00", "0.50 (0.50 .. 0.50)", "-"]


def test_what_side_by_side_needs():
    with pytest.raises(LabError, match="needs two allocators"):
        windows.read(["--side-by-side", "--on", "reheap"])


def test_the_peers_layers_compile_with_the_functions_of_reheap_dll_that_they_use():
    """The allocators themselves are fetched when they are measured."""
    try:
        compiler = peers.clang("clang++")
    except Failure as missing:
        pytest.skip(str(missing))
    for source in (*peers.OWN, peers.LAYERS / "system.c"):
        language = peers.CPP if source.suffix == ".cpp" else ("-x", "c", "-std=gnu11")
        done = subprocess.run([compiler, *peers.TARGET, *language, "-fsyntax-only", source], stderr=subprocess.PIPE,
                              text=True)
        assert (done.returncode, done.stderr) == (0, ""), source.name


def test_maltests_sum_is_the_same_each_time():
    program = build_program("maltest.cpp")
    sums = {subprocess.run([program, "2"], stdout=subprocess.PIPE, check=True).stdout for _ in range(2)}
    assert len(sums) == 1
