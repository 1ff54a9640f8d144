"""The model of bench/coherence beside cases that can be computed, and what is read of the counts."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from coherence import budgets, build, measure, model, places
from coherence import run as coherence
from coherence.model import Load
from common.paths import ROOT
from reheap_lab.errors import LabError

ALONE = Load(instructions=300, misses_outside=0, holds=0)  # 100 ns


def cores_of(load: Load, cores: tuple = (1, 8, 64), miss_ns: tuple = (100.0,)) -> list[float]:
    return model.useful_cores([load], cores, miss_ns)[0, 0].tolist()


def test_without_a_lock_and_misses_all_cores_are_useful():
    assert cores_of(ALONE) == pytest.approx([1, 8, 64])


def test_misses_cost_each_core_the_same():
    assert cores_of(Load(instructions=300, misses_outside=1, holds=0)) == pytest.approx([0.5, 4, 32])


def test_a_lock_that_is_always_held_is_all_there_is():
    """Half of each operation is in the lock: one core's work takes 100 ns, and no more than one hold fits into 50."""
    load = Load(instructions=300, misses_outside=0, holds=1, hold_instructions=150)
    rates = model.holds_a_ns(*(np.array([value] * 2) for value in (0.0, 50.0, 0.0)), np.array([1, 1]))
    assert rates == pytest.approx(1 / 50, rel=0.03)
    assert cores_of(load, miss_ns=(0.0,))[0] == pytest.approx(1, rel=0.03)
    # Who waits looks every 52 ns: the lock rests a while between holds, and never less than nothing.
    assert 1 < cores_of(load, miss_ns=(0.0,))[2] <= 2.05


def test_a_lock_that_is_hardly_held_costs_hardly_anything():
    load = Load(instructions=300, misses_outside=0, holds=0.001, hold_instructions=150)
    assert cores_of(load, (1, 8)) == pytest.approx([1, 8], rel=0.05)


def test_two_cores_and_a_lock_are_as_busy_as_the_queue_says():
    """M/M/1//2 with holds as long as what lies between: nobody holds the lock a fifth of the time. Here holds vary a
    little less, and who waits finds out a little late."""
    rate = model.holds_a_ns(*(np.array([value]) for value in (1000.0, 1000.0, 0.0)), np.array([2]))[0]
    assert rate * 1000 == pytest.approx(0.8, rel=0.05)


def test_misses_in_the_lock_are_everybodys():
    load = Load(instructions=300, misses_outside=0, holds=1, hold_instructions=30, hold_misses=4)
    few, many = cores_of(load, (64,), (50.0,)), cores_of(load, (64,), (150.0,))
    assert few[0] < 100 / 200 * 1.05 and many[0] < 100 / 600 * 1.05 and many[0] < few[0]


def test_who_waits_looks_as_back_off_has_it():
    asked = np.zeros(6)
    spinning, yielding = 64 * 52.0, 64 * 52.0 + 32 * 350.0
    free_at = np.array([-5.0, 1.0, 104.0, spinning + 1, yielding, yielding + 1])
    assert model.next_try(asked, free_at).tolist() == [0, 52, 104, spinning + 350, yielding, yielding + 105_000]


def test_the_models_back_off_is_the_locks():
    source = (ROOT / "src" / "platform" / "linux" / "thread.cpp").read_text()
    assert re.search(rf"kSpins = {model.SPINS};", source) and re.search(rf"kYields = {model.YIELDS};", source)
    assert "kShortest = 50 * 1000;" in source


def test_more_cores_or_dearer_misses_never_make_it_better_for_a_busy_lock():
    load = Load(instructions=300, misses_outside=1, holds=2, hold_instructions=100, hold_misses=10)
    cores = model.useful_cores([load])[0]
    assert (np.diff(cores, axis=0) < 0).all()


TOTALS = {"operations": 100, "accesses": 2000, "misses": 50, "stalls": 34, "read_modify_writes": 10, "pages": 40,
          "pages_of_others": 10, "holds": 20, "hold_accesses": 400, "hold_misses": 30, "hold_stalls": 18,
          "locks": {"arena": {"shared": True, "holds": 20}}, "places": []}


def test_the_load_is_told_by_the_counts():
    load = model.load_of(TOTALS, instructions=60)
    assert load == Load(instructions=60, misses_outside=0.17, holds=0.2, hold_instructions=60, hold_misses=1.05)
    assert model.load_of({**TOTALS, "holds": 0, "hold_misses": 0, "hold_stalls": 0, "hold_accesses": 0}, 60).holds == 0


def test_a_budget_that_is_exceeded_is_named():
    counted = measure.Counted(TOTALS)
    assert budgets.over(counted, {"misses": 0.5, "holds": 0.2}) == []
    assert budgets.over(counted, {"misses": 0.4, "holds": 0.1}) == [
        "0.5000 misses an operation; the budget is 0.4", "0.2000 holds an operation; the budget is 0.1"]


def test_what_is_not_seen_is_not_good():
    idle = {"arena": {"shared": True, "holds": 0}}
    for totals in ({"accesses": 0}, {"locks": {}}, {"locks": idle}):
        assert budgets.tells_nothing(measure.Counted({**TOTALS, **totals}))
    assert not budgets.tells_nothing(measure.Counted(TOTALS))


def test_every_workload_has_a_budget():
    table = json.loads(budgets.TABLE.read_text())
    assert list(table) == list(measure.WORKLOADS)


def test_a_program_over_its_budget_fails(tmp_path, capsys):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\ncat <<'END'\n" + json.dumps({**TOTALS, "misses": 10_000}) + "\nEND\n")
    program.chmod(0o755)
    assert budgets.main([str(program), "small"]) == 1
    assert "100.0000 misses an operation; the budget is" in capsys.readouterr().out


def test_a_program_that_dies_is_told(tmp_path):
    with pytest.raises(measure.Failed, match="small: ended with 1"):
        measure.run(Path("/bin/false"), "small", 2, 1)
    with pytest.raises(measure.Failed, match="small: .*nowhere"):
        measure.run(tmp_path / "nowhere", "small", 2, 1)


def test_who_names_no_locks_has_dashes_for_them():
    subject = coherence.Subject("other", "1", Path("x"), {"small": measure.Counted({**TOTALS, "locks": {}})})
    assert coherence.row("small", subject) == ["small", "other", "0.500", "0.100", "-", "-", "25.0"]
    assert coherence.row("big", subject) == ["big", "other", *["-"] * 5]


def test_a_line_is_named_by_who_uses_the_wrapper():
    frames = [("load", "atomic_base.h:488"), ("rh::Word<int>::load() const", "word.h:3"), ("rh::refill(rh::Heap*)",
                                                                                        "refill.cpp:20")]
    assert places.name_of(frames) == "refill.cpp:20 refill"
    assert places.name_of(frames[:2]) == "word.h:3 load"


def test_a_peer_that_cannot_be_built_is_named(monkeypatch):
    def refuse():
        raise LabError("does not compile")
    monkeypatch.setattr(build, "reheap", lambda: Path("own"))
    monkeypatch.setitem(build.RECIPES, "snmalloc", refuse)
    missing = {}
    assert [subject.name for subject in coherence.subjects(["snmalloc", "scudo"], missing)] == ["reheap"]
    assert missing["snmalloc"] == "does not compile" and "compiled" in missing["scudo"]
