"""The command line: what it prints, writes and returns, and whom it hands things to."""

import importlib
import os
import re
import signal
import subprocess
import sys

import click
import pytest

from reheap_lab import cli, compare, elf, native, results, runner, settings, workload
from reheap_lab.options import AllocatorList
from reheap_lab.errors import LabError, UsageError


def call(*words: str) -> int:
    with pytest.raises(SystemExit) as end:
        cli.main(list(words))
    return end.value.code


def test_compare_tells_and_writes(fake, capsys, tmp_path):
    fake.plan(a={"wall_us": 80_000})
    files = [tmp_path / f"x.{ending}" for ending in ("json", "csv", "md")]
    exports = [word for file in files for word in ("--export", str(file))]
    status = call("compare", "--with", f"system,a={fake.library('a')}", "--runs", "3", "--no-extras", *exports, "--",
                  "true", "--help")
    out = capsys.readouterr().out
    assert status == 0 and "a is faster than system, by 20.0 %" in out
    assert all(file.stat().st_size for file in files)
    made = results.load_file(files[0])
    assert made.command == ["true", "--help"] and made.settings["runs"] == 3


def test_allocators_may_be_named_one_at_a_time(fake, capsys):
    fake.plan(a={"wall_us": 80_000})
    call("compare", "--with", "system", "--with", f"a={fake.library('a')}", "--runs", "3", "--no-extras", "--", "true")
    assert "a is faster than system, by 20.0 %" in capsys.readouterr().out


def test_report_shows_and_converts(fake, capsys, tmp_path):
    fake.plan()
    json_file, markdown = tmp_path / "x.json", tmp_path / "x.md"
    call("compare", "--with", "system", "--runs", "2", "--no-extras", "--export", str(json_file), "--", "true")
    assert call("report", str(json_file)) == 0 and "100 ms" in capsys.readouterr().out
    assert call("report", str(json_file), str(markdown)) == 0 and "| wall time |" in markdown.read_text()


@pytest.mark.parametrize("text, said", [("{", "not JSON"), ("{}",
                                                            "its schema is None"), ('{"schema":"reheap-lab/compare/1"}',
                                                                                     "command is missing")])
def test_a_damaged_file_is_named(capsys, tmp_path, text, said):
    path = tmp_path / "bad.json"
    path.write_text(text)
    assert call("report", str(path)) == 2
    error = capsys.readouterr().err
    assert "bad.json" in error and said in error and "--export" in error


@pytest.mark.parametrize("words, said", [
    (["compare"], "Missing argument"),
    (["compare", "--", "/nowhere/prog"], "there is no program /nowhere/prog"),
    (["compare", "--", "prog with blanks"], "leave out the quotes"),
    (["compare", "--", "/"], "/ is a folder"),
    (["compare", "--runs", "0", "--", "true"], "--runs"),
    (["compare", "--runs", "2", "--time", "5s", "--", "true"], "exclude each other"),
    (["compare", "--time", "soon", "--", "true"], "is no length of time"),
    (["compare", "--time", "9" * 400, "--", "true"], "9… is longer than three years; for example: 90"),
    (["compare", "--timeout", "99999999999", "--", "true"], "is longer than three years"),
    (["compare", "--sample-ms", "9" * 20, "--", "true"], "--sample-ms is the time between two looks"),
    (["compare", "--sample-ms", "60001", "--", "true"], "and at most 60000: --sample-ms 10"),
    (["compare", "--seed", "9" * 20, "--", "true"], "--seed is too large a number"),
    (["compare", "--runs", "9" * 20, "--", "true"], "--runs is too large a number"),
    (["compare", "--warmup", "9" * 20, "--", "true"], "--warmup is too large a number"),
    (["compare", "--margin", "much", "--", "true"], "is no share"),
    (["compare", "--margin", "200%", "--", "true"], "--margin"),
    (["compare", "--idle", "3s", "--", "true"], "--idle is for servers"),
    (["compare", "--export", "x.pdf", "--", "true"], "the file's ending"),
    (["compare", "--input", "/nowhere", "--", "true"], "does not exist"),
    (["compare", "--with", "nonsense", "--", "true"], "no allocator is called nonsense"),
    (["report", "/nowhere.json"], "does not exist"),
    (["nonsense"], "No such command"),
])
def test_a_wrong_call_is_named_and_nothing_is_run(fake, capsys, words, said):
    assert call(*words) == 2
    assert said in capsys.readouterr().err and fake.calls == []


def test_a_file_that_is_no_program(fake, capsys, tmp_path):
    (tmp_path / "data").write_text("x")
    assert call("compare", "--", str(tmp_path / "data")) == 2
    assert "cannot be executed. Allow it: chmod +x" in capsys.readouterr().err


@pytest.mark.parametrize("line, said", [
    ("#!/no/such/interpreter -x\n", "its interpreter /no/such/interpreter is missing. Install it, or correct the"),
    ("#!/bin/sh\r\nexit 0\r\n", "its #! line ends in a carriage return, which becomes part of the interpreter's name"),
    ("#!/" + 253 * "a", "its interpreter's name is longer than the kernel reads of a #! line (256 bytes). Link"),
    ("#!/" + 252 * "a", "aaa is missing"),
    ("#!/bin/sh" + 400 * " " + "\n", None), ("#!\n", None), ("#!" + 400 * " ", None), ("#!relative\n", None),
    ("", None)])
def test_a_script_whose_interpreter_cannot_be_started(tmp_path, line, said):
    script = tmp_path / "script"
    script.write_bytes(line.encode())
    script.chmod(0o755)
    if said is None:
        assert workload.find_program([str(script)]) == script
        return
    with pytest.raises(UsageError, match=re.escape(said)):
        workload.find_program([str(script)])


def test_a_program_that_may_be_executed_but_not_read_is_measured(fake, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(elf, "kind", lambda path, kind=elf.kind: refuse(path) if path.name == "true" else kind(path))
    assert call("compare", "--with", "system", "--runs", "1", "--no-extras", "--", "true") == 0


def test_when_nothing_could_be_measured_the_status_is_1(fake, capsys):
    fake.plan(system={"cannot": "no way"})
    assert call("compare", "--with", "system", "--", "true") == 1
    assert "nothing could be measured of true" in capsys.readouterr().err


def test_lengths_of_time_and_shares():
    assert [settings.seconds(t) for t in ("90", "250ms", "1.5m", "2h", " 3 s ")] == [90, 0.25, 90, 7200, 3]
    assert [settings.share(t) for t in ("0.02", "2%", "0.5 %")] == pytest.approx([0.02, 0.02, 0.005])


@pytest.fixture
def heeded():
    """Signals as a program finds them in a terminal; what started the tests may have had some ignored."""
    before = {signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler)}
    others = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
    before |= {number: signal.signal(number, signal.SIG_DFL) for number in others}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_interrupted_after_a_round_tells_what_is_known(number, heeded, fake, capsys, monkeypatch):
    fake.plan()
    start, count = runner.start, iter(range(100))

    def interrupted(*words):
        if next(count) == 9:
            signal.raise_signal(number)
        return start(*words)
    monkeypatch.setattr(runner, "start", interrupted)
    assert call("compare", "--with", f"system,a={fake.library('a')}", "--no-extras", "--", "true") == 0
    out = capsys.readouterr().out
    assert "stopped by the user" in out and "100 ms" in out


@pytest.mark.parametrize("place", ["reheap_lab.verdicts.judge", "reheap_lab.compare.reproduction",
                                   "reheap_lab.export.write_each", "reheap_lab.terminal.show"])
def test_a_signal_while_it_is_told_costs_nothing(place, heeded, fake, capfd, monkeypatch, tmp_path):
    """It was measured for an hour, and somebody grows impatient."""
    fake.plan()
    during(place, signal.SIGINT, monkeypatch)
    exports = [word for ending in ("csv", "json") for word in ("--export", str(tmp_path / f"x.{ending}"))]
    assert call("compare", "--with", f"system,a={fake.library('a')}", "--runs", "3", "--no-extras", *exports, "--",
                "true") == 0
    shown = capfd.readouterr()
    assert "100 ms" in shown.out and "being told; that comes first" in shown.err
    assert len(results.load_file(tmp_path / "x.json").runs) == 8 and (tmp_path / "x.csv").stat().st_size


@pytest.mark.parametrize("place", ["reheap_lab.verdicts.judge", "reheap_lab.telling.keep"])
def test_a_signal_between_two_cases_ends_after_the_first(place, heeded, fake, capfd, monkeypatch, tmp_path):
    fake.plan()
    during(place, signal.SIGTERM, monkeypatch)
    assert call("compare", "--with", "system", "--parameter", "n=1,2,3", "--runs", "2", "--no-extras", "--export",
                str(tmp_path / "x.json"), "--", "true", "{n}") == 0
    cases = results.load_export(tmp_path / "x.json").cases
    assert cases[0].comparison and [case.failed for case in cases[1:]] == [compare.STOPPED] * 2


def during(place: str, number: int, monkeypatch) -> None:
    """The signal comes when this is called, which then goes on."""
    where, _, name = place.rpartition(".")
    real = getattr(importlib.import_module(where), name)
    monkeypatch.setattr(place, lambda *words: (signal.raise_signal(number), real(*words))[1])


def test_of_several_values_each_is_kept_when_it_is_measured(fake, monkeypatch, tmp_path):
    fake.plan()
    kept = tmp_path / "x.json"
    measured: list[int] = []
    show = click.echo

    def seen(text, **more):
        if text.startswith("[2/2]"):
            measured.extend(len(case.comparison.runs) for case in results.load_export(kept).measured())
        show(text, **more)
    monkeypatch.setattr(click, "echo", seen)
    assert call("compare", "--with", "system", "--parameter", "n=1,2", "--runs", "2", "--no-extras", "--export",
                str(kept), "--", "true", "{n}") == 0
    assert measured == [3]


def test_a_signal_that_is_ignored_stays_so(monkeypatch):
    monkeypatch.setattr("reheap_lab.trace.read_info", lambda traces: (signal.raise_signal(signal.SIGHUP) or 0, {}))
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert call("trace", "info", "--json", __file__) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_words_that_are_not_utf8_are_written_all_the_same(fake, capsys, tmp_path):
    fake.plan()
    word = os.fsdecode(b"\xff<i>")
    files = [tmp_path / f"x.{ending}" for ending in ("json", "csv", "md", "html")]
    exports = [part for file in files for part in ("--export", str(file))]
    assert call("compare", "--with", "system", "--runs", "2", "--no-extras", *exports, "--", "true", word) == 0
    assert all(file.read_text(encoding="utf-8") for file in files)
    assert results.load_file(files[0]).command == ["true", word]
    assert r"\udcff&lt;i&gt;" in files[3].read_text(encoding="utf-8")


def test_signs_that_the_locale_has_not_are_told_in_others(fake, tmp_path):
    fake.plan()
    call("compare", "--with", f"system,a={fake.library('a')}", "--runs", "4", "--no-extras", "--export",
         str(tmp_path / "x.json"), "--", "true")
    done = own_process("report", str(tmp_path / "x.json"), capture_output=True, variables={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "") and r"\u2022 wall time" in done.stdout


def test_a_file_that_cannot_be_written_costs_no_other(fake, capsys, tmp_path):
    fake.plan()
    bad, good = tmp_path / "full.json", tmp_path / "good.csv"
    bad.symlink_to("/dev/full")
    status = call("compare", "--with", "system", "--runs", "1", "--no-extras", "--export", str(bad), "--export",
                  str(good), "--",
                  "true")
    assert status == 1 and good.stat().st_size
    assert "full.json cannot be written: No space left" in capsys.readouterr().err


# ---- what else there is --------------------------------------------------------------------------

def own_process(*words: str, variables: dict[str, str] | None = None, **how) -> subprocess.CompletedProcess:
    lab = os.path.dirname(os.path.dirname(native.__file__))
    return subprocess.run([sys.executable, "-m", "reheap_lab.cli", *words], text=True,
                          env=os.environ | {"PYTHONPATH": lab} | (variables or {}), **how)


def test_a_missing_part_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv(native.VARIABLE, str(tmp_path))
    with pytest.raises(LabError, match="bin/reheap-runner is missing. For x86-64 with glibc.* pip install"):
        native.program("reheap-runner")


def test_a_path_that_cannot_be_preloaded_is_named_with_the_way_around(tmp_path, monkeypatch):
    place = tmp_path / "with blanks"
    (place / "lib").mkdir(parents=True)
    (place / "lib" / "libreheap.so").touch()
    monkeypatch.setenv(native.VARIABLE, str(place))
    for look in (native.library, native.find_library):
        with pytest.raises(LabError, match=f"{native.VARIABLE} name a link to {place} that has none"):
            look("libreheap.so")
    (tmp_path / "link").symlink_to(place)
    monkeypatch.setenv(native.VARIABLE, str(tmp_path / "link"))
    assert native.library("libreheap.so") == tmp_path / "link" / "lib" / "libreheap.so"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(capsys, shell):
    assert call("completion", shell) == 0
    assert "COMPLETE=" in capsys.readouterr().out


def test_completion_of_allocators(fake):
    offered = [item.value for item in AllocatorList().shell_complete(None, None, "system,je")]
    assert offered == ["system,jemalloc"]


def test_help_lists_every_command(capsys):
    assert call("--help") == 0
    out = capsys.readouterr().out
    assert all(name in out for name in (*cli.PARTS, "completion"))


def test_what_a_part_ends_with_is_the_commands_status(monkeypatch):
    monkeypatch.setattr("reheap_lab.trace.read_info", lambda traces: (3, {}))
    assert call("trace", "info", "--json", __file__) == 3


def test_a_page_that_cannot_be_written_is_named(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("reheap_lab.trace.read_info", lambda traces: (0, {}))
    monkeypatch.setattr("reheap_lab.report.trace_plots.html", lambda info: "<html>")
    (tmp_path / "full.html").symlink_to("/nowhere/else.html")
    assert call("trace", "info", "--json", "--html", str(tmp_path / "full.html"), __file__) == 1
    assert "full.html cannot be written: No such file" in capsys.readouterr().err


def test_a_full_disk_is_told_and_costs_no_file_and_a_reader_that_left_is_not(tmp_path):
    kept = tmp_path / "kept.json"
    with open("/dev/full", "w") as full:
        done = own_process("compare", "--with", "system", "--runs", "1", "--no-extras", "--export", str(kept), "--",
                           "true", stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (1, "reheap: standard output: No space left on device\n")
    assert results.load_file(kept).measured("system")
    done = own_process("--help", stderr=subprocess.PIPE, preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr) == (0, "")
    reading, writing = os.pipe()
    os.close(reading)
    done = own_process("--help", stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("part, said", [("report", "not JSON"), ("suite", "not TOML")])
def test_a_device_that_has_no_end_is_refused(part, said):
    def little_memory():
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

    done = own_process(part, "/dev/zero", capture_output=True, preexec_fn=little_memory)
    assert done.returncode == 2 and f"/dev/zero: {said}" in done.stderr


def test_a_folder_that_is_gone_is_named(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    done = own_process("compare", "--with", "system", "--runs", "1", "--no-extras", "--", "true", capture_output=True,
                       cwd=gone, preexec_fn=gone.rmdir)
    assert (done.returncode, done.stderr) == (1, "reheap: the current folder: No such file or directory\n")
