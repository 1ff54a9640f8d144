"""Programs for Windows, compared from Linux. What needs Wine is skipped where it, or the build for Windows
(./dev build windows-x86_64), is absent."""

import json
import os
import pathlib

import pytest

from on_wine import BUILD, build_program, pe_file, reheap, under_wine
from reheap_lab import allocators, evidence, profile, results, runner, windows
from reheap_lab.errors import LabError, UsageError


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> pathlib.Path:
    return build_program(tmp_path_factory.mktemp("a program"))


# ---- without Wine -----------------------------------------------------------------------------

def test_a_program_for_windows_is_known_by_its_headers(tmp_path):
    assert windows.is_program(str(pe_file(tmp_path / "any-name", windows.X86_64)))
    assert windows.machine_of(pe_file(tmp_path / "old.exe", windows.X86)) == windows.X86
    (tmp_path / "text.exe").write_text("MZ, but only in letters")
    (tmp_path / "dos.exe").write_bytes(b"MZ" + bytes(100))
    for other in ("text.exe", "dos.exe", "not there.exe"):
        assert not windows.is_program(str(tmp_path / other))
    assert not windows.is_program("/bin/sh")


@pytest.mark.parametrize("machine, words", [(windows.X86, "32 bits"), (windows.ARM64, "ARM64"), (0x1234, "another")])
def test_other_processors_are_refused(tmp_path, machine, words):
    with pytest.raises(LabError, match=words):
        windows.Program(str(pe_file(tmp_path / "program.exe", machine)))


def test_what_is_missing_is_named(tmp_path, monkeypatch):
    program = str(pe_file(tmp_path / "program.exe", windows.X86_64))
    monkeypatch.setenv("REHEAP_WINE", str(tmp_path / "no-wine"))
    with pytest.raises(LabError, match="REHEAP_WINE names .*no-wine"):
        windows.Program(program)
    monkeypatch.setenv("REHEAP_WINE", "/bin/true")
    monkeypatch.setenv("REHEAP_LAB_WINDOWS", str(tmp_path))
    with pytest.raises(LabError, match="./dev build windows-x86_64"):
        windows.Program(program)


def test_only_reheap_goes_under_a_program(no_wine, tmp_path):
    system, reheap = windows.choose(None, no_wine)
    assert (system.name, system.libraries, system.version) == ("system", (), "ucrt 10")
    assert (reheap.name, reheap.libraries, reheap.version) == ("reheap", (tmp_path / "reheap.dll",), "1.2")
    assert reheap.left == ("x: left",)
    assert [one.name for one in windows.choose(f"a=system,b={tmp_path}/reheap.exe", no_wine)] == ["a", "b"]
    for wanted, words in [("mimalloc", "mimalloc: under Wine there are system and reheap"),
                          ("system,system", "a name of its own"),
                          (f"a={tmp_path}/nowhere.dll", "nowhere.dll is not there"),
                          (f"a={pe_file(tmp_path / 'old.dll', windows.X86)}", "no library for Windows on x86-64")]:
        with pytest.raises(UsageError, match=words):
            windows.choose(wanted, no_wine)


OUTER = [{"type": "start", "pid": 1}, {"type": "sample", "t_us": 700, "rss_kib": 9}, {"type": "sample", "t_us": 800},
         {"type": "end", "wall_us": 9000, "user_us": 3, "timed_out": False, "exit": 232, "watched": 77}]


def wrote(evidence: pathlib.Path, *served: int, started: list[dict] | None = None) -> None:
    """What a run of process 8 leaves, and the statistics of others."""
    lines = [{"type": "start", "pid": 8}, {"type": "programs", "programs": started or [{"pid": 8}]},
             {"type": "end", "wall_us": 5, "exit": 1000}]
    evidence.with_name(evidence.name + "-windows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for process in served:
        evidence.with_name(f"{evidence.name}-{process}.json").write_text(json.dumps({"pid": process}))


def test_times_are_the_programs_not_those_of_wine(no_wine, tmp_path):
    launch = windows.choose("system", no_wine)[0].launch(no_wine, tmp_path / "run")
    wrote(tmp_path / "run")
    assert launch.amend(OUTER) == [
        {"type": "start", "pid": 1}, {"type": "sample", "t_us": 0, "rss_kib": 9}, {"type": "sample", "t_us": 100},
        {"type": "end", "wall_us": 5, "user_us": 3, "timed_out": False, "exit": 1000, "watched": 77}]


@pytest.mark.parametrize("served, right", [([], "system"), ([7], "system"), ([8], "reheap"), ([7, 8], "reheap")])
def test_the_proof_is_what_reheap_wrote_in_that_process(no_wine, tmp_path, served, right):
    for allocator in windows.choose(None, no_wine):
        launch = allocator.launch(no_wine, tmp_path / "run")
        wrote(tmp_path / "run", *served)
        launch.amend(OUTER)
        objection = allocator.objection(evidence.Proof(evidence.Testimony.read(tmp_path / "run")).first())
        assert (objection is None) == (allocator.name == right), objection


def counted(*programs: tuple[str, int]) -> list[dict]:
    """What Linux's runner says of a run whose first program it watched: names and microseconds."""
    listed = [{"pid": 77 + at, "path": name, "began_ns": 100 + at, "ended_ns": 999, "cpu_us": used, "peak_kib": used}
              for at, (name, used) in enumerate(programs)]
    before = {"pid": 12, "path": "reheap-runner.e", "began_ns": 99, "ended_ns": 999, "cpu_us": 10**9, "peak_kib": 10**9}
    return [{"type": "programs", "programs": [before, *listed]}, *OUTER]


def reach_of(no_wine, tmp_path, name: str, outer: list[dict], *served: int) -> evidence.Reach:
    """Of a launcher, number 8, that started 9 and 10."""
    allocator = windows.choose(name, no_wine)[0]
    launch = allocator.launch(no_wine, tmp_path / "run")
    paths = {8: r"Z:\x\reheap-runner.exe", 9: r"Z:\x\Worker of a long name.exe", 10: r"C:\Worker of a long name.exe"}
    wrote(tmp_path / "run", *served, started=[{"pid": pid, "path": path} for pid, path in paths.items()])
    told = next((line["programs"] for line in launch.amend(outer) if line["type"] == "programs"), None)
    programs = told and [evidence.Program(**one) for one in told]
    return evidence.Proof(evidence.Testimony.read(tmp_path / "run"), programs).reach(allocator.objection)


WORKER = "Worker of a lon"


def test_every_process_of_a_program_is_accounted_for(no_wine, tmp_path):
    outer = counted(("reheap-runner.e", 1000), (WORKER, 8000), (WORKER, 1000))
    assert reach_of(no_wine, tmp_path, "reheap", outer, 8, 9, 10).share == 1
    assert reach_of(no_wine, tmp_path, "system", outer).share == 1
    most = reach_of(no_wine, tmp_path, "reheap", outer, 8, 9)
    assert most.share == pytest.approx(0.9) and most.refusal() is None
    assert "10 % of the CPU time was not its own: Worker of a long name.exe" in most.warnings()[0]
    least = reach_of(no_wine, tmp_path, "reheap", outer, 8, 10)
    assert least.refusal().startswith("Worker of a long name.exe (80 % of the CPU time): nothing proves")
    assert least.largest_missed


def test_of_processes_that_linux_did_not_count_one_by_one_the_missed_have_all(no_wine, tmp_path):
    outer = counted(("reheap-runner.e", 1000), (WORKER, 9000))
    assert reach_of(no_wine, tmp_path, "reheap", outer, 8, 9, 10).share == 1
    assert reach_of(no_wine, tmp_path, "reheap", outer, 8, 9).share == pytest.approx(0.1)


def test_without_an_account_the_first_process_alone_is_proven(no_wine, tmp_path):
    reach = reach_of(no_wine, tmp_path, "reheap", OUTER, 8)
    assert reach.share is None and reach.refusal() is None
    assert "only the first is known to have been served" in reach.warnings()[0]


def test_figures_of_wine_are_not_the_programs(no_wine, tmp_path):
    end = {"type": "end", "wall_us": 9000, "user_us": 3, "peak_rss_kib": 4, "minor_faults": 5, "timed_out": False,
           "exit": 0}
    launch = windows.choose("system", no_wine)[0].launch(no_wine, tmp_path / "run")
    wrote(tmp_path / "run")
    assert launch.amend([end]) == [{"type": "end", "wall_us": 5, "timed_out": False, "exit": 1000}]


def test_an_earlier_run_proves_nothing(no_wine, tmp_path):
    wrote(tmp_path / "run", 8)
    reheap = windows.choose("reheap", no_wine)[0]
    launch = reheap.launch(no_wine, tmp_path / "run")
    wrote(tmp_path / "run")
    launch.amend(OUTER)
    assert "nothing proves" in reheap.objection(evidence.Proof(evidence.Testimony.read(tmp_path / "run")).first())


def test_a_program_that_did_not_start(no_wine, tmp_path):
    reheap = windows.choose("reheap", no_wine)[0]
    with pytest.raises(LabError, match="not started: its launcher ended with 125"):
        reheap.launch(no_wine, tmp_path / "run").amend([{"type": "end", "exit": 125}])
    assert "nothing proves" in reheap.objection(evidence.Proof(evidence.Testimony.read(tmp_path / "run")).first())


# ---- allocators under a program ---------------------------------------------------------------

@under_wine
def test_each_allocator_is_found_out(program, here):
    system, reheap = windows.choose(None, [str(program)])
    assert "msvcrt" in system.version
    assert reheap.libraries == (BUILD / "bin" / "reheap.dll",) and not reheap.left


@under_wine
@pytest.mark.parametrize("told, served", [("start", True), ("start-alone", False)])
def test_a_program_that_starts_another_is_accounted_for(program, here, tmp_path, told, served):
    """The time is the other's; without what the environment asks for, it does not tell who served it."""
    allocator = windows.choose("reheap", [str(program)])[0]
    launch = allocator.launch([str(program), told], tmp_path / "evidence")
    measured = runner.measure(launch, runner.Ask(stdout=os.devnull), tmp_path / "record")
    assert [pathlib.Path(one.path).name for one in measured.programs] == ["work.exe", "work.exe"]
    assert measured.figures["cpu_s"] >= 0.999 * sum(one.cpu_us for one in measured.programs) / 1e6 > 0
    reach = evidence.Proof(evidence.Testimony.read(tmp_path / "evidence"), measured.programs).reach(allocator.objection)
    assert (reach.share == 1) is served and (reach.refusal() is None) is served


@under_wine
def test_compare_under_wine(program, here, tmp_path, capsys):
    """From the command line to the record: both allocators, each proven, with all the figures that there are."""
    record = tmp_path / "record.json"
    status, said = reheap(capsys, "compare", "--runs", 2, "--warmup", 0, "--ignore-status", "--export", record, "--",
                          program, "word")
    assert status == 0, said
    made = results.load_file(record)
    library = str(BUILD / "bin" / "reheap.dll")
    assert {subject.name: subject.proof["malloc"] for subject in made.subjects} == {"system": windows.THE_SYSTEMS,
                                                                                    "reheap": library}
    for name in ("system", "reheap"):
        runs = made.measured(name)
        assert len(runs) == 2
        for run in runs:
            assert 0.25 < run.figures["wall_s"] and run.figures["cpu_s"] > 0
            assert {"peak_rss_kib", "peak_commit_kib", "minor_faults", "voluntary_switches"} <= run.figures.keys()
            assert run.series.t_s[0] == 0
    # On a busy machine a short program may use no hundredth of a second that could be seen.
    for extras in made.extras.values():
        assert extras.calls is None and extras.profile.source == "suspend"
    assert made.summaries["wall_s"].keys() == made.summaries["peak_commit_kib"].keys() == {"system", "reheap"}


@under_wine
def test_compare_refuses_what_wine_cannot_do(program, here, capsys):
    for words, message in [(["--load", "true"], "a server for Windows"), (["--with", "mimalloc"],
                                                                          "under Wine there are")]:
        status, said = reheap(capsys, "compare", *words, "--", program)
        assert status == 2 and message in said


@pytest.mark.parametrize("module, kind", [
    ("/x/reheap.dll", "allocator"), (r"C:\windows\system32\ntdll.dll", "libc"), (r"C:\windows\system32\UCRTBASE.dll",
                                                                                 "libc"),
    (r"C:\windows\system32\kernel32.dll", "other"), ("/x/work.exe", "program"), ("[kernel]", "kernel")])
def test_modules_of_windows_have_their_kinds(module, kind):
    assert profile.kind_of(module, ["/x/reheap.dll"]) == kind
