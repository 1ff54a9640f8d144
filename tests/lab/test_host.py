"""The lab on Windows itself, as far as it can be tried here: what it would start, and what it makes of what is told."""

import subprocess
import sys

import pytest
from reheap import process
from reheap_lab import beside, compare, evidence, host, machine, native, record, replay, runner, windows
from reheap_lab.errors import UsageError
from reheap_lab.settings import Settings

PROGRAMS = [{"pid": 8, "path": r"C:\\tools\\launcher.exe", "cpu_us": 1000},
            {"pid": 9, "path": r"C:\\tools\\worker.exe", "cpu_us": 9000}]


@pytest.fixture
def on_windows(monkeypatch, tmp_path):
    monkeypatch.setattr(host, "WINDOWS", True)
    (tmp_path / "bin").mkdir()
    for name in (*windows.PARTS, windows.REPLAYER):
        (tmp_path / "bin" / name).touch()
    monkeypatch.setenv(native.VARIABLE, str(tmp_path))


def lines(programs: list[dict]) -> list[dict]:
    return [{"type": "start", "pid": 8}, {"type": "programs", "programs": programs},
            {"type": "end", "wall_us": 5, "exit": 0}]


def test_windows_runner_measures_there_and_the_launcher_starts_it(no_wine, on_windows, tmp_path):
    system, reheap = (one.launch(no_wine, tmp_path / "run") for one in windows.choose(None, no_wine))
    assert system.before == [] and system.argv == reheap.argv == no_wine
    parts = tmp_path / "bin"
    assert reheap.before == [str(parts / "reheap.exe"), "run", "--require", "--dll", str(parts / "reheap.dll"), "--"]
    assert reheap.account and reheap.watch is None and reheap.env["REHEAP_STATS"] == str(tmp_path / "run-%p.json")
    assert native.program("reheap-runner") == tmp_path / "bin" / "reheap-runner.exe"


def test_the_runner_is_started_by_the_launcher(no_wine, on_windows, tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(subprocess, "Popen", lambda line, **_: started.append(line))
    runner.start(windows.choose("reheap", no_wine)[0].launch(no_wine, tmp_path / "run"), runner.Ask(), tmp_path / "out")
    line, = started
    runner_at = line.index(str(tmp_path / "bin" / "reheap-runner.exe"))
    assert "--events" not in line  # which Windows' runner refuses
    assert line[runner_at - 1] == "--" and "--account" in line[runner_at:] and line[-2:] == no_wine


@pytest.mark.parametrize("served, share", [((8, 9), 1), ((8,), pytest.approx(0.1))])
def test_its_processes_are_accounted_for_by_what_windows_counts(no_wine, on_windows, tmp_path, served, share):
    allocator = windows.choose("reheap", no_wine)[0]
    launch = allocator.launch(no_wine, tmp_path / "run")
    for process in served:
        (tmp_path / f"run-{process}.json").write_text(f'{{"pid": {process}}}')
    programs = launch.amend(lines(PROGRAMS))[1]["programs"]
    proof = evidence.Proof(evidence.Testimony.read(tmp_path / "run"), [evidence.Program(**one) for one in programs])
    reach = proof.reach(allocator.objection)
    assert reach.share == share
    if share != 1:
        assert reach.refusal().startswith("worker.exe (90 % of the CPU time)")


def test_what_windows_does_not_count_is_no_account(no_wine, on_windows, tmp_path):
    """Under Wine, which counts no times of other processes."""
    launch = windows.choose("system", no_wine)[0].launch(no_wine, tmp_path / "run")
    without = [{name: value for name, value in one.items() if name != "cpu_us"} for one in PROGRAMS]
    assert launch.amend(lines(without))[1]["programs"] == []


def test_replays_are_windows_own(on_windows, tmp_path):
    assert replay.How(windows=True).program() == str(tmp_path / "bin" / "reheap-replay.exe")
    assert replay.How(windows=True).file(tmp_path / "x") == str(tmp_path / "x")


def test_what_linux_alone_has_is_refused_by_name(on_windows):
    with pytest.raises(UsageError, match="--side-by-side .* on Linux alone"):
        beside.processors()
    with pytest.raises(UsageError, match="is no program for Windows: name an .exe"):
        compare.choose(["sh"], None, Settings())
    assert host.shell("a | b") == 'cmd.exe /d /s /c "a | b"'


@pytest.mark.parametrize("code, status", [(0, 0), (7, 7), (0xC0000005, -0x3FFFFFFB), (0xFFFFFFFF, -1)])
def test_an_exit_code_stays_the_same_32_bits(code, status):
    assert process.as_exit_status(code) == status and status % 2**32 == code


def test_an_exception_of_windows_is_told_as_it_is_known():
    assert runner.Measured(status=0xC0000005).failure(None) == "its exit status was 0xc0000005"
    assert runner.Measured(status=1000).failure(None) == "its exit status was 1000"


def test_a_command_is_recorded_to_its_end(on_windows):
    assert record.run([sys.executable, "-c", "raise SystemExit(9)"], {}) == (9, 0)
    assert record.run(["/no/such/program"], {})[0] == 127


def test_the_machine_is_described_without_a_service(on_windows, monkeypatch):
    monkeypatch.setattr(sys, "getwindowsversion", lambda: type("V", (), {"major": 10, "minor": 0, "build": 19045}),
                        raising=False)
    monkeypatch.setenv("PROCESSOR_ARCHITECTURE", "AMD64")
    facts = machine.describe()
    assert (facts["system"], facts["kernel"], facts["architecture"]) == ("windows", "10.0.19045", "AMD64")
