"""What became worse since a comparison that was kept."""

import comparisons
import pytest

from reheap_lab import cli, gate, results, verdicts


def judged(slower: float = 1.0, larger: float = 1.0, machine: float = 1.0, runs: int = 15, seed: int = 5):
    """A made-up comparison of system and reheap, on a machine so much slower, where reheap became so much worse."""
    made = comparisons.made_up(("system", "reheap"), runs=runs, seed=seed)
    for run in made.runs:
        own = run.subject == "reheap"
        for name in ("wall_s", "cpu_s"):
            run.figures[name] *= machine * (slower if own else 1)
        run.figures["peak_rss_kib"] *= larger if own else 1
    made.verdicts = []
    verdicts.judge(made)
    return made


def test_the_same_again_is_no_worse():
    found = gate.changes(judged(), judged(seed=6))
    assert [c.figure for c in found] == ["wall_s", "cpu_s", "peak_rss_kib"]
    assert {c.word(0.02) for c in found} == {"no worse"}


def test_another_machine_is_no_regression():
    assert not any(c.worse_than(0.02) for c in gate.changes(judged(), judged(machine=1.7, seed=6)))


def test_a_regression_is_named():
    worse = [c.figure for c in gate.changes(judged(), judged(slower=1.06, seed=6)) if c.worse_than(0.02)]
    assert worse == ["wall_s", "cpu_s"]
    worse = [c.figure for c in gate.changes(judged(), judged(larger=1.05, seed=6)) if c.worse_than(0.02)]
    assert worse == ["peak_rss_kib"]


def test_what_is_not_certain_lets_pass():
    change = gate.changes(judged(runs=4), judged(slower=1.025, runs=4, seed=6))[0]
    assert change.word(0.02) == "undecided" and not change.worse_than(0.02)


@pytest.mark.parametrize("now, status", [({}, 0), ({"slower": 1.1}, 3)])
def test_the_command_writes_markdown_and_ends_accordingly(tmp_path, capsys, now, status):
    for name, made in (("then", judged()), ("now", judged(seed=6, **now))):
        (tmp_path / f"{name}.json").write_text(results.dump(made))
    with pytest.raises(SystemExit) as ended:
        cli.main(["gate", str(tmp_path / "then.json"), str(tmp_path / "now.json")])
    said = capsys.readouterr()
    assert (ended.value.code or 0) == status
    assert "| wall time | reheap | system | 0.9" in said.out and ("**worse**" in said.out) == (status == 3)
    assert ("worse by more than 0.02: wall time of reheap, CPU time of reheap" in said.err) == (status == 3)


def test_comparisons_with_nothing_in_common(tmp_path, capsys):
    for name, names in (("then", ("system", "reheap")), ("now", ("system", "mimalloc"))):
        made = comparisons.made_up(names)
        (tmp_path / f"{name}.json").write_text(results.dump(made))
    with pytest.raises(SystemExit) as ended:
        cli.main(["gate", str(tmp_path / "then.json"), str(tmp_path / "now.json")])
    assert ended.value.code == 1 and "compare the same allocators" in capsys.readouterr().err


def test_a_comparison_without_verdicts_is_named(tmp_path, capsys):
    """Of one round, say: it is not the allocators that are others."""
    made = comparisons.made_up(("system", "reheap"), runs=8)
    made.verdicts = []
    verdicts.judge(made)
    (tmp_path / "whole.json").write_text(results.dump(made))
    made.verdicts = []
    (tmp_path / "empty.json").write_text(results.dump(made))
    for pair in (("whole", "empty"), ("empty", "whole")):
        with pytest.raises(SystemExit) as end:
            cli.main(["gate", *(str(tmp_path / f"{name}.json") for name in pair)])
        assert end.value.code == 1
        assert "empty.json has no verdict that could be held against another: that takes two" in capsys.readouterr().err
