"""Sweeps and suites from the command line, on a runner that is made up."""

import os
import pathlib
import sys

import fakes
import pytest

from reheap_lab import cli, compare, results, runner
from reheap_lab.settings import Settings
from reheap_lab.suite import run
from reheap_lab.workload import CommandWorkload


@pytest.fixture
def two(fake):
    """system, and a, which takes 20 % less time."""
    fake.plan(a={"wall_us": 80_000})
    return f"system,a={fake.library('a')}"


@pytest.fixture
def file(tmp_path):
    def write(text: str) -> str:
        path = tmp_path / "my.toml"
        path.write_text("runs = 3\nno_extras = true\n" + text)
        return str(path)
    return write


def call(*words: str) -> int:
    with pytest.raises(SystemExit) as end:
        cli.main(list(words))
    return end.value.code or 0


def commands(fake: fakes.Fake) -> list[str]:
    return list(dict.fromkeys(" ".join(launch.argv) for launch, _ in fake.calls))


# ---- compare --parameter ------------------------------------------------------------------------

def test_a_sweep_measures_every_value_and_says_what_to_take(fake, two, capsys, tmp_path):
    files = [tmp_path / f"x.{ending}" for ending in ("json", "csv", "md", "html")]
    exports = [word for path in files for word in ("--export", str(path))]
    status = call("compare", "--with", two, "--runs", "4", "--no-extras", "--parameter", "n=1..4*2", *exports, "--",
                  "true", "--size={n}")
    said = capsys.readouterr()
    assert status == 0 and "Take a: 20 % faster than system over 3 values of n" in said.out
    assert commands(fake) == ["true --size=1", "true --size=2", "true --size=4"]
    assert all(path.stat().st_size for path in files)
    made = results.load_export(files[0])
    assert [case.name for case in made.cases] == ["n=1", "n=2", "n=4"]
    assert "--size=2" in made.cases[1].comparison.reproduce
    assert (tmp_path / "x.html").read_text().count('<details class="case"') == 3
    assert call("report", str(files[0]), str(tmp_path / "again.md")) == 0
    assert (tmp_path / "again.md").read_text() == (tmp_path / "x.md").read_text()
    assert call("report", str(files[0])) == 0 and "over 3 values of n" in capsys.readouterr().out


@pytest.mark.parametrize("words, said", [
    (["--parameter", "n", "--", "true", "{n}"], "gives a parameter no values"),
    (["--parameter", "n=1", "--", "true"], "the parameter n stands nowhere"),
    (["--parameter", "n=1", "--", "true", "{n}{m}"], "{m}: no parameter has this name"),
    (["--parameter", "p=true,/nowhere/prog", "--", "{p}"], "there is no program /nowhere/prog"),
    (["--parameter", "n=1", "--with", "nonsense", "--", "true", "{n}"], "no allocator is called nonsense"),
    (["--parameter", "n=1", "--export", "x.pdf", "--", "true", "{n}"], "the file's ending"),
])
def test_a_wrong_sweep_is_named_and_nothing_runs(fake, capsys, words, said):
    assert call("compare", *words) == 2
    assert said in capsys.readouterr().err and fake.calls == []


def test_without_parameters_braces_are_the_commands_own(fake, two):
    assert call("compare", "--with", two, "--runs", "1", "--no-extras", "--", "true", "{n}", "{{m}}") == 0
    assert commands(fake) == ["true {n} {{m}}"]


# ---- suite --------------------------------------------------------------------------------------

def test_a_file_of_several_commands(fake, two, file, capsys, tmp_path):
    path = file(f"title = 'mine'\nwith = '{two}'\n[case.one]\ncommand = 'true 1'\nruns = 5\n"
                "[case.two]\ncommand = 'true {n}'\nparameters = {n = [3, 4]}")
    assert call("suite", path, "--export", str(tmp_path / "x.json")) == 0
    said = capsys.readouterr()
    assert "Take a: 20 % faster than system over 3 cases" in said.out
    assert "[1/3] one: Take a" in said.err and "[3/3] two n=4: Take a" in said.err
    made = results.load_export(tmp_path / "x.json")
    assert made.title == "mine" and [len(c.comparison.measured("a")) for c in made.cases] == [5, 3, 3]
    assert made.cases[2].comparison.reproduce.endswith(f"reheap suite {path} --only two")


def test_what_is_said_on_the_line_goes_before_the_file(fake, two, file, tmp_path):
    path = file("with = 'system'\n[case.one]\ncommand = 'true'\ntime = 60")
    assert call("suite", path, "--with", two, "--runs", "4", "--export", str(tmp_path / "x.json")) == 0
    comparison = results.load_export(tmp_path / "x.json").cases[0].comparison
    assert [len(comparison.measured(name)) for name in ("system", "a")] == [4, 4]
    assert f"--with {two} --runs 4 --only one" in comparison.reproduce


def test_what_goes_wrong_with_one_case_costs_no_other(fake, two, file, capsys, tmp_path):
    path = file(f"with = '{two}'\n[case.gone]\ncommand = '/nowhere/prog'\n[case.bad]\ncommand = 'true'\n"
                "setup = 'echo why >&2; exit 3'\n[case.good]\ncommand = 'true'")
    assert call("suite", path, "--export", str(tmp_path / "x.json")) == 0
    made = results.load_export(tmp_path / "x.json")
    assert "no program /nowhere/prog" in made.cases[0].failed
    assert "--setup failed with status 3" in made.cases[1].failed and "why" in made.cases[1].failed
    assert made.cases[2].comparison and "no verdict on gone, bad" in capsys.readouterr().err


def test_when_no_case_could_be_measured_the_status_is_1(fake, file, capsys):
    assert call("suite", file("[case.gone]\ncommand = '/nowhere/prog'")) == 1
    assert "nothing could be measured:\n  gone: there is no program" in capsys.readouterr().err


@pytest.mark.parametrize("text, words, said", [
    ("[case.x]\ncommand = 'true'\nwith = 'nonsense'", [], "case x: no allocator is called nonsense"),
    ("[case.x]\ncommand = 'true'\nidle = 3", [], "--idle is for servers"),
    ("[case.x]\ncommand = 'true'", ["--only", "y"], "there is no such case. There are: x"),
    ("[case.x]\ncommand = 'true'", ["--export", "x.pdf"], "the file's ending"),
    ("[case.x]\ncommand = 'true'", ["--runs", "2", "--time", "3s"], "exclude each other"),
])
def test_a_wrong_suite_is_named_and_nothing_runs(fake, file, capsys, text, words, said):
    assert call("suite", file(text), *words) == 2
    assert said in capsys.readouterr().err and fake.calls == []


def interrupt(monkeypatch, at: int) -> None:
    start, left = runner.start, iter(range(1000))

    def interrupted(*words):
        if next(left) == at:
            raise KeyboardInterrupt
        return start(*words)
    monkeypatch.setattr(runner, "start", interrupted)


THREE = "".join(f"[case.{name}]\ncommand = 'true {name}'\n" for name in ("one", "two", "three"))


@pytest.mark.parametrize("at, whole, cut", [
    (12, ["one"], None),  # in the second case's warm-up
    (17, ["one", "two"], "two"),  # after a round of the second
])
def test_ctrl_c_keeps_what_was_measured(fake, two, file, capsys, tmp_path, monkeypatch, at, whole, cut):
    interrupt(monkeypatch, at)
    assert call("suite", file(THREE), "--with", two, "--export", str(tmp_path / "x.json")) == 0
    made = results.load_export(tmp_path / "x.json")
    assert [case.name for case in made.cases if case.comparison] == whole
    assert [case.name for case in made.cases if case.comparison and compare.STOPPED in case.comparison.warnings] == \
        ([cut] if cut else [])
    assert made.cases[2].failed == compare.STOPPED and compare.STOPPED in made.warnings
    assert "stopped by the user" in capsys.readouterr().out


def test_ctrl_c_before_anything_is_known(fake, two, file, monkeypatch):
    interrupt(monkeypatch, 1)
    assert call("suite", file(THREE), "--with", two) == 130


def test_json_is_written_after_each_case(fake, two, file, tmp_path, monkeypatch):
    out, seen = tmp_path / "x.json", []
    measured = run.compare.compare

    def watched(*words, **more):
        seen.append(len(results.load_export(out).measured()) if out.exists() else 0)
        return measured(*words, **more)
    monkeypatch.setattr(run.compare, "compare", watched)
    assert call("suite", file(THREE), "--with", two, "--export", str(out)) == 0
    assert seen == [0, 1, 2]


def test_each_case_has_a_folder_that_is_gone_afterwards(fake, two, file):
    path = file("[case.x]\ncommand = ['true', '{case}', '{here}', '{python}']\nsetup = 'echo made > {case}/it'\n"
                "prepare = 'cat {case}/it'")
    assert call("suite", path, "--with", two) == 0
    argv = fake.calls[0][0].argv
    assert not pathlib.Path(argv[1]).exists() and argv[2:] == [str(pathlib.Path(path).parent), sys.executable]


def test_list_says_what_is_there(fake, file, capsys):
    path = file("[case.here]\ncommand = 'true'\nabout = 'does nothing'\n[case.gone]\ncommand = '/nowhere/prog {n}'\n"
                "parameters = {n = [1, 2]}")
    assert call("suite", path, "--list") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1][0] == "here" and lines[1][-1] == "yes" and "does nothing" in " ".join(lines[1])
    assert lines[2][0] == "gone" and lines[2][-1] == "no" and len(lines) == 3 and fake.calls == []


# ---- where a command runs -----------------------------------------------------------------------

def test_variables_and_folder_reach_the_command_and_its_helpers(fake, two, file, tmp_path):
    (tmp_path / "sub").mkdir()
    path = file("[case.x]\ncommand = 'true'\nenv = { OWN = 'word' }\ncwd = 'sub'\nsetup = 'echo $OWN > setup'\n"
                "prepare = 'echo $OWN >> prepared'")
    assert call("suite", path, "--with", two) == 0
    launch, ask = fake.calls[-1]
    assert launch.env["OWN"] == "word" and ask.cwd == str(tmp_path / "sub")
    assert (tmp_path / "sub/setup").read_text() == "word\n"
    assert (tmp_path / "sub/prepared").read_text() == "word\n" * len(fake.calls)


def test_each_run_may_have_an_empty_folder_of_its_own(fake, tmp_path):
    settings = Settings(own_folder=True, prepare="test ! -e left && echo x > left")
    workload = CommandWorkload(["true"], settings, tmp_path)
    for _ in range(3):
        workload.run(fake.allocators("system")[0])
    folders = [ask.cwd for _, ask in fake.calls]
    assert len(set(folders)) == 3 and os.path.exists(f"{folders[2]}/left") and not os.path.exists(folders[1])
