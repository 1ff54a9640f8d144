"""How the controls are judged, of made-up figures: by the same means and the lab's words."""

import controls
import pytest
from controls import CONTROLS, Control
from reheap_lab import verdicts
from reheap_lab.results import Comparison

from test_tables import comparison

COPY, SLOWED, LEAKING = CONTROLS
NOISE = (1.0, 1.002, 0.999, 1.001, 0.998, 1.0)


def made_up(control: Control, ratio: float, noise: tuple[float, ...] = NOISE) -> dict[str, Comparison]:
    """Two workloads in which the control takes `ratio` of everything, but for noise."""
    results = {}
    for title, seconds in (("one", 1.0), ("two", 3.0)):
        made = comparison(**{"reheap": [seconds] * len(noise), control.name: [seconds * ratio * n for n in noise]})
        for run in made.runs:
            run.figures |= {"cpu_s": run.figures["wall_s"], "peak_rss_kib": 50_000 * run.figures["wall_s"]}
        verdicts.judge(made)
        results[title] = made
    return results


@pytest.mark.parametrize("control, figure, ratio, word, right", [
    (SLOWED, "cpu_s", 1.03, "slower", True),
    (SLOWED, "cpu_s", 1.0, "no measurable difference", False),
    (SLOWED, "cpu_s", 0.97, "faster", False),
    (LEAKING, "peak_rss_kib", 1.1, "more memory", True),
    (LEAKING, "peak_rss_kib", 1.0, "no measurable difference", False),
    (COPY, "cpu_s", 1.0, "no measurable difference", True),
    (COPY, "wall_s", 1.03, "slower", False),
    (COPY, "peak_rss_kib", 0.9, "less memory", False),
])
def test_a_control_is_right_when_the_lab_says_what_was_planted(control, figure, ratio, word, right):
    found = controls.find(made_up(control, ratio), figure, control)
    assert (found.word, found.right) == (word, right) and found.interval.middle == pytest.approx(ratio, rel=0.002)


def test_noise_leaves_it_undecided_which_is_right_of_equals_alone():
    noise = (0.8, 1.2, 1.0, 0.9, 1.1, 1.0)
    assert controls.find(made_up(COPY, 1.0, noise), "cpu_s", COPY).right
    found = controls.find(made_up(SLOWED, 1.03, noise), "cpu_s", SLOWED)
    assert (found.word, found.right) == ("undecided", False)


def test_what_was_not_measured_is_not_right():
    results = made_up(COPY, 1.0)
    for run in results["two"].runs:
        del run.figures["cpu_s"]
    verdicts.judge(results["two"])
    assert controls.find(results, "cpu_s", COPY) == controls.Finding(None, "not measured", False)


def test_the_table_says_what_was_planted_what_was_found_and_whether_it_is_right(capsys):
    right = {COPY: made_up(COPY, 1.0), SLOWED: made_up(SLOWED, 1.03), LEAKING: made_up(LEAKING, 1.1)}
    assert controls.show(right)
    out = capsys.readouterr().out
    assert out.count("PASS") == 5 and "FAIL" not in out and "more memory" in out
    assert not controls.show(right | {SLOWED: made_up(SLOWED, 1.0)})
    assert capsys.readouterr().out.count("FAIL") == 1
