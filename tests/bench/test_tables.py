"""Figures as they are shown: medians, ratios and differences, with what was not measured left out."""

import pytest
from common import tables
from common.tables import number
from reheap_lab import verdicts
from reheap_lab.results import Comparison, Run, Subject


def comparison(**walls: list) -> Comparison:
    """Of each subject the wall times of its rounds; None where it has none."""
    made = Comparison(["x"], settings={"confidence": 0.99, "seed": 0, "margin": 0.01},
                      subjects=[Subject(name) for name in walls])
    for name, values in walls.items():
        made.runs += [Run(name, i, 0, figures={"wall_s": value} if value else {}) for i, value in enumerate(values)]
    verdicts.judge(made)
    return made


def shown(capsys, made: Comparison) -> list[str]:
    tables.show_figure(made, "wall_s", "wall time, s", 2)
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_a_missing_figure_is_a_dash_and_zero_is_a_figure():
    assert number(None) == "-" and number(0.0) == "0.00" and number(27167, 0) == "27,167"
    assert tables.cells(None, 2) == ["-", "-"]


def test_the_ratio_is_taken_within_a_round(capsys):
    made = comparison(system=[10.0, 20.0, 10.0, 30.0], other=[9.0, 18.0, 9.0, 27.0])
    lines = shown(capsys, made)
    assert lines[0].split() == "wall time, s median 99 % interval x system 99 % interval".split()
    assert lines[2].split() == "other 13.50 9.00 .. 27.00 0.900 0.900 .. 0.900".split()


def test_what_was_not_measured_has_no_ratio(capsys):
    made = comparison(system=[None] * 4, other=[2.0] * 4)
    lines = shown(capsys, made)
    assert lines[1].split() == ["system", "-", "-"] and lines[2].split() == ["other", "2.00", "2.00", "..", "2.00",
                                                                             "-", "-"]


def test_a_failed_allocator_is_shown_without_figures(capsys):
    made = comparison(system=[1.0] * 4, other=[1.0] * 4)
    made.subjects[1].failed, made.warnings = "crashed", []
    verdicts.judge(made)
    assert shown(capsys, made)[2].split()[:3] == ["other", "-", "-"]


def test_a_difference_is_taken_within_a_round():
    made = comparison(system=[1.0, 2.0, 4.0, 1.0], other=[2.0, 3.0, 5.0, None])
    assert tables.added(made, "wall_s", "other", "system").middle == pytest.approx(1.0)
    assert tables.added(made, "cpu_s", "other", "system") is None


def test_markdown_has_its_figures_to_the_right():
    assert tables.render_markdown(["a", "b",
                                   "c"], [["x", "y", "1"]]) == "| a | b | c |\n| --- | --- | --: |\n| x | y | 1 |"
