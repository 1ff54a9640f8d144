"""`reheap replay --windows`: traces on allocators of Windows, under Wine. Skipped where Wine, or the build for Windows
(./dev build windows-x86_64), is absent."""

import json
import subprocess

import pytest
from on_wine import BUILD, WINE, reheap, under_wine
from test_trace import made_at_random

from reheap_lab import native, replay, results, windows
from reheap_lab.errors import LabError

replayed = pytest.mark.skipif(not (BUILD / "bin" / windows.REPLAYER).exists(), reason="reheap-replay.exe is not built")


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """Recorded on Linux, by all appearances; and the most that lived."""
    path = tmp_path_factory.mktemp("a trace") / "a trace.rht"
    return path, made_at_random(path, threads=4, events=5_000)


@under_wine
@replayed
def test_a_trace_of_linux_is_replayed_on_the_heaps_of_windows(trace, here, tmp_path, capsys):
    path, peak = trace
    record = tmp_path / "record.json"
    status, said = reheap(capsys, "replay", "--windows", "--runs", 2, "--warmup", 0, "--order", "strict",
                          "--touch", "whole", "--no-extras", "--export", record, path)
    assert status == 0, said
    made = results.load_file(record)
    assert made.command[0] == "reheap-replay.exe" and "--windows" in made.reproduce
    assert {subject.name: subject.proof["malloc"] for subject in made.subjects} == {
        "system": windows.THE_SYSTEMS, "reheap": str(BUILD / "bin" / "reheap.dll")}
    for run in made.runs:
        assert run.failed is None
        assert run.figures["ordering_errors"] == 0 and run.figures["wall_s"] > 0
        assert run.figures["peak_live_kib"] * 1024 == pytest.approx(peak, rel=replay.NEAR)
        # Wine's clock is too coarse for less, and Wine does not tell what is committed.
        assert run.figures.get("cpu_s", 1) >= 0.1 and not run.series.commit_kib
    assert "its heap is Wine's" in said


@under_wine
@replayed
def test_both_systems_compile_a_trace_alike(trace, tmp_path):
    path, _ = trace
    ours, theirs = tmp_path / "linux", tmp_path / "windows"
    subprocess.run([native.program("reheap-trace"), "compile", path, "-o", ours], check=True, capture_output=True)
    subprocess.run([WINE, BUILD / "bin" / "reheap-trace.exe", "compile", f"Z:{path}", "-o", f"Z:{theirs}"], check=True,
                   capture_output=True, timeout=60)
    assert ours.read_bytes() == theirs.read_bytes()


def test_a_replayer_that_is_not_built_is_named(tmp_path, monkeypatch):
    for name in windows.PARTS:
        (tmp_path / name).touch()
    monkeypatch.setenv("REHEAP_LAB_WINDOWS", str(tmp_path))
    with pytest.raises(LabError, match=r"reheap-replay.exe is not there: build it \(./dev build windows-x86_64"):
        replay.How(windows=True).program()


def test_times_that_the_clock_of_a_system_is_too_coarse_for_are_absent():
    said = {"wall_us": 2_000_000, "peak_live_bytes": 1024, "most_threads": 1, "copies": 1,
            "errors": {"ordering": 0}}
    assert not {"cpu_s", "utilisation"} & replay.figures_of(said, {}).keys()
    assert replay.figures_of(said | {"cpu_us": 1_000_000}, {})["utilisation"] == 0.5
