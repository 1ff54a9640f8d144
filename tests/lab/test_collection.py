"""Many comparisons as one: what they show together, and how it is kept, told and held against an earlier one."""

import csv
import io
import json
import math

import collected
import numpy as np
import pytest
from rich.console import Console

from reheap_lab import cli, gate, results, statistics, synthetic, verdicts
from reheap_lab.answer import PEAK, TIME
from reheap_lab.errors import LabError, UsageError
from reheap_lab.results import Case
from reheap_lab.suite import documents, overall, screen
from reheap_lab.synthetic import BUSY, MEMORY, QUIET


@pytest.fixture(scope="module")
def made() -> results.Collection:
    return collected.programs()


def text_of(collection) -> str:
    return overall.overall_answer(collection).text


# ---- the mean over cases ------------------------------------------------------------------------

def test_the_mean_is_the_geometric_one_of_the_cases(made):
    found = [overall.verdict_in(case, TIME, "reheap", "system").ratio for case in made.cases]
    assert made.verdict(TIME, "reheap").ratio == pytest.approx(math.exp(np.mean(np.log(found))))
    assert made.verdict(TIME, "reheap").cases == len(made.cases) == 8


def test_its_interval_is_narrower_than_a_cases_and_that_of_programs_like_these_wider(made):
    over, one = made.verdict(TIME, "reheap"), overall.verdict_in(made.cases[0], TIME, "reheap", "system")
    assert over.high / over.low < one.high / one.low < over.like_high / over.like_low


def test_a_sweep_says_nothing_of_other_programs():
    assert all(v.like_low is None for v in collected.sweep().verdicts)


def estimates(random, noise, spread, rounds, cases):
    """Of as many cases, whose true ratios differ, and whose noise does."""
    truths = random.normal(0, 0.1, cases)
    found = []
    for truth in truths:
        pairs = synthetic.factors(noise, 2, rounds, random) ** random.lognormal(0, spread)
        found.append(statistics.estimate(truth + np.log(pairs[:, 1] / pairs[:, 0])))
    return float(truths.mean()), found


@pytest.mark.parametrize("noise", [QUIET, BUSY, MEMORY], ids=lambda noise: noise.name)
@pytest.mark.parametrize("rounds, cases", [(3, 3), (5, 12), (10, 6)])
def test_the_interval_holds_the_mean_as_often_as_it_says(noise, rounds, cases):
    random = np.random.default_rng(11)
    held = 0
    for _ in range(400):
        truth, found = estimates(random, noise, 0.5, rounds, cases)
        interval = statistics.mean_of(found, 0.99)
        held += interval.low <= truth <= interval.high
    assert held >= 390  # of 400 intervals of 99 %, fewer hold it in one of a hundred such tests


def test_an_interval_that_is_too_narrow_would_be_noticed():
    random = np.random.default_rng(11)
    held = 0
    for _ in range(400):
        truth, found = estimates(random, QUIET, 0.5, 5, 12)
        interval = statistics.mean_of(found, 0.95)
        held += interval.low <= truth <= interval.high
    assert held < 390


def test_the_intervals_of_all_pairs_hold_together():
    """Of four allocators' six ratios, in time and in memory, in as many collections as fifty."""
    names = ("system", "a", "b", "c")
    random, whole = np.random.default_rng(3), 0
    for _ in range(50):
        truths, cases = [], []
        for number in range(5):
            truth = {name: float(random.lognormal(0, 0.05)) for name in names}
            truths.append(truth)
            cases.append(Case(f"{number}", comparison=collected.compared([f"{number}"], truth, truth, 8, random)))
        made = collected.collection(cases)
        found = made.verdicts + made.between_others
        assert len(found) == 2 * math.comb(len(names), 2)
        whole += sum(all(v.low <= math.exp(np.mean([math.log(t[v.subject] / t[v.base]) for t in truths])) <= v.high
                         for v in found if v.figure == figure) for figure in overall.FIGURES)
    assert whole >= 95


def test_one_estimate_alone_has_its_own_interval():
    values = np.random.default_rng(1).normal(0, 1, 9)
    assert statistics.mean_of([statistics.estimate(values)], 0.99) == statistics.location(values, 0.99)


def test_equal_values_add_the_width_of_all_of_them():
    same, other = [0.0] * 9 + [0.4], [1.0, 1.1, 0.9, 1.05, 0.95]
    alone = statistics.location(other, 0.99)
    both = statistics.mean_of([statistics.estimate(same), statistics.estimate(other)], 0.99)
    assert both.middle == pytest.approx(alone.middle / 2)
    assert both.high - both.middle == pytest.approx(math.hypot(0.4, alone.high - alone.middle) / 2)
    assert both.middle - both.low == pytest.approx((alone.middle - alone.low) / 2)


# ---- the answer ---------------------------------------------------------------------------------

def quiet(cases: dict[str, dict[str, tuple[float, float]]], **settings) -> results.Collection:
    random = np.random.default_rng(4)
    return collected.collection([
        Case(name, group=name, comparison=collected.compared(
            [name], {n: t for n, (t, _) in by.items()}, {n: m for n, (_, m) in by.items()}, 10, random))
        for name, by in cases.items()], **settings)


@pytest.mark.parametrize("cases, said", [
    ({n: {"system": (1, 1), "a": (0.8, 1)} for n in "xyz"}, "Take a: 20 % faster than system over 3 programs, with "),
    ({n: {"system": (1, 1), "a": (1.2, 1.5)} for n in "xyz"},
     "Stay with system: nothing is faster over 3 programs, or as fast with less memory."),
    ({"x": {"system": (1, 1), "a": (0.7, 1)}, "y": {"system": (1, 1), "a": (1 / 0.7, 1)}}, "Nothing tells them apart"),
    ({"x": {"system": (1, 1), "a": (0.5, 1)}, "y": {"system": (1, 1), "b": (0.9, 1)}},
     "a has no figures of y."),
])
def test_what_to_take_over_all(cases, said):
    assert said in text_of(quiet(cases))


def test_it_says_over_what():
    assert "over 4 values of threads" in text_of(collected.sweep())
    same = quiet({n: {"system": (1, 1), "a": (0.8, 1)} for n in "xy"})
    same.cases[1].comparison.command = same.cases[0].comparison.command
    same.cases.append(Case("lost", failed="it is gone"))
    overall.judge(same)
    assert "20 % faster than system over 2 of 3 cases" in text_of(same)


def test_nothing_measured():
    assert text_of(collected.collection([Case("x", failed="no")])) == "No allocator could be measured."


def test_each_case_has_the_memory_that_its_answer_speaks_of():
    made = quiet({n: {"system": (1, 1), "a": (1, 1)} for n in "xy"})
    for run in made.cases[1].comparison.runs:
        run.figures["peak_tree_kib"] = 1000.0 if run.subject == "a" else 2000.0
    made.cases[1].comparison.verdicts = made.cases[1].comparison.between_others = []
    verdicts.judge(made.cases[1].comparison)
    overall.judge(made)
    assert made.verdict(PEAK, "a").ratio == pytest.approx(0.5 ** 0.5, rel=0.02)


# ---- kept, written, shown -----------------------------------------------------------------------

def test_json_gives_back_the_same_collection(made, tmp_path):
    made = collected.sweep()
    made.cases.append(Case("lost", failed="it is gone", packages={"a": "1"}))
    path = tmp_path / "x.json"
    documents.WRITERS[".json"](made, path)
    assert results.load_export(path) == made


@pytest.mark.parametrize("change, said", [
    (lambda d: d.update(schema="reheap-lab/collection/9"), "collection/9"),
    (lambda d: d.update(schema=[1]), "its schema is"),
    (lambda d: d["cases"][0].pop("name"), r"collection.cases\[0\].name is missing"),
    (lambda d: d["cases"][0]["comparison"].update(runs=3), r"cases\[0\].comparison.runs is a int, not a list"),
])
def test_damage_is_named(tmp_path, change, said):
    data = json.loads(results.dump(collected.sweep(values=("1", "2"))))
    change(data)
    (tmp_path / "x.json").write_text(json.dumps(data))
    with pytest.raises(UsageError, match=said):
        results.load_export(tmp_path / "x.json")


def test_csv_has_the_case_and_its_parameters_before_each_run():
    rows = list(csv.DictReader(io.StringIO(documents.as_csv(collected.sweep(rounds=3)))))
    assert len(rows) == 4 * 2 * 3
    assert (rows[-1]["case"], rows[-1]["threads"], rows[-1]["subject"]) == ("threads=8", "8", "reheap")
    assert float(rows[-1]["wall_s"]) > 0


def test_markdown_says_the_answer_first_and_every_case(made):
    text = documents.as_markdown(made)
    assert text.index(text_of(made)) < text.index("| reheap |") < text.index("<details>")
    assert text.count("<details>") == len(made.cases) and "Over programs like these, reheap" in text
    assert "```sh\nreheap suite made-up.toml\n```" in text


def test_the_terminal_has_everything_in_80_columns(made):
    made = collected.programs(("system", "reheap", "mimalloc", "jemalloc", "tcmalloc", "snmalloc", "rpmalloc"))
    made.cases.append(Case("a case with a very long name indeed", failed="it is gone"))
    console = Console(width=80, file=io.StringIO(), color_system=None)
    screen.show(made, console)
    out = console.file.getvalue()
    assert " ".join(out.split()).startswith(text_of(made))
    assert all(case.name in out for case in made.cases) and "it is gone" in out
    assert all(len(line.rstrip()) <= 80 for line in out.splitlines())
    for name in made.subjects()[1:]:
        assert verdicts.signed(made.verdict(TIME, name).ratio) in out


def test_warnings_that_several_cases_share_are_said_once():
    made = collected.sweep(values=("1", "2", "4"))
    for case in made.cases:
        case.comparison.warnings = ["the same"]
    made.cases[0].comparison.warnings.append("only here")
    assert documents.all_warnings(made) == ["the same", "threads=1: only here"]


# ---- the gate -----------------------------------------------------------------------------------

def worse(name: str, factor: float, seed: int = 1):
    made = collected.programs(("system", "reheap"), ("clang", "lld"), seed=seed)
    for run in next(case.comparison for case in made.cases if case.name == name).runs:
        run.figures["wall_s"] *= factor if run.subject == "reheap" else 1
    for case in made.cases:
        verdicts.judge(case.comparison)
    return made


def test_the_gate_holds_each_case_against_itself():
    found = gate.changes_of(worse("lld", 1), worse("lld", 1.2))
    assert [(c.case, c.figure) for c in found if c.worse_than(0.02)] == [("lld", "wall_s")]
    assert {c.case for c in found} == {"clang", "lld"}


def test_the_gate_of_two_kinds_or_of_nothing_in_common():
    with pytest.raises(UsageError, match="give two of a kind"):
        gate.changes_of(worse("lld", 1), worse("lld", 1).cases[0].comparison)
    with pytest.raises(LabError, match="no case in common: one has clang, lld; one has threads=1"):
        gate.changes_of(worse("lld", 1), collected.sweep())


def test_the_gates_command_names_the_case(tmp_path, capsys):
    for name, factor in (("then", 1), ("now", 1.2)):
        (tmp_path / f"{name}.json").write_text(results.dump(worse("lld", factor)))
    with pytest.raises(SystemExit) as ended:
        cli.main(["gate", str(tmp_path / "then.json"), str(tmp_path / "now.json")])
    said = capsys.readouterr()
    assert ended.value.code == 3 and "wall time of reheap in lld" in said.err
    assert "| lld | wall time | reheap" in said.out
