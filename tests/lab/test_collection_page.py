"""The page of a collection: the answer first, every case in it, and nothing that breaks it."""

import re

import collected
import pytest
from test_report import HOSTILE, Page

from reheap_lab.report import collection, palette
from reheap_lab.results import Case
from reheap_lab.suite import overall


@pytest.fixture(scope="module")
def whole():
    made = collected.programs(("system", "reheap", HOSTILE), ("clang", HOSTILE), rounds=5)
    made.title = made.cases[1].about = HOSTILE
    made.cases.append(Case(f"lost {HOSTILE}", failed=HOSTILE))
    overall.judge(made)
    text = collection.html(made)
    return made, Page(text), text


def test_it_says_the_answer_first_and_every_case(whole):
    made, page, _ = whole
    seen = page.text
    assert seen.index("Take reheap") < seen.index("Over 2 of 3 programs") < seen.index("Each case")
    assert page.tags.count("details") > 2 and "Not measured" in seen and "lost <script>" in seen
    for case in made.measured():
        assert f"{100 * (overall.verdict_in(case, 'wall_s', 'reheap', 'system').ratio - 1):.1f}".strip("-") in seen


def test_nothing_on_it_is_there_twice_loads_or_runs(whole):
    _, page, text = whole
    assert len(page.ids) == len(set(page.ids)) and page.events == []
    assert "<script>alert" not in text and text.count("<script>") == 1
    assert all(address.startswith("#") for address in page.loads)
    assert {address[1:] for address in page.loads if address.startswith("#case-")} <= set(page.ids)
    copied = re.findall(r'data-copy="([^"]+)"', text)
    assert len(copied) == 3 and set(copied) <= set(page.ids)
    assert all(page.alts)


def test_a_sweep_has_its_plots(whole):
    """Against the parameter, with the axis that its values ask for."""
    text = collection.html(collected.sweep(values=("1", "2", "4", "8"), rounds=4))
    assert "Against the parameter" in text and "wall time at threads 1, 2, 4, 8: system 2.0" in text
    assert "Against the parameter" not in whole[2]


@pytest.mark.parametrize("values, expected", [(("1", "2", "4", "8"), True), (("1", "2", "3", "4"), False),
                                              (("0", "1", "2"), False), (("1", "10"), False)])
def test_an_axis_is_logarithmic_where_values_grow_by_factors(values, expected):
    from reheap_lab.report import spans
    assert spans._grow_by_factors(list(map(float, values))) == expected


def test_values_that_are_no_numbers_and_two_parameters():
    """The one with numbers is the axis, and there is a plot for each value of the other that has two of them."""
    made = collected.sweep(values=("fast", "slow", "odd"), parameter="mode", rounds=4)
    assert "wall time at mode fast, slow, odd" in collection.html(made)
    for case, number in zip(made.cases, ("1", "2", "1")):
        case.parameters |= {"mode": "slow" if case.name == "mode=odd" else "fast", "n": number}
    text = collection.html(made)
    assert "wall time at n 1, 2" in text and "<h3>mode=fast</h3>" in text and "<h3>mode=slow</h3>" not in text


def test_a_collection_of_nothing_and_of_one_allocator():
    nothing = collected.collection([Case("x", failed="no")])
    assert "No allocator could be measured" in Page(collection.html(nothing)).text
    alone = collected.programs(("system",), ("clang",), rounds=3)
    assert "nothing to compare" in Page(collection.html(alone)).text


def test_an_allocator_looks_the_same_in_every_report():
    some, others = palette.looks(["system", "reheap", "jemalloc"]), palette.looks(["jemalloc", "x", "reheap", "y"])
    assert some["jemalloc"] == others["jemalloc"] and some["reheap"] == others["reheap"]
    assert len({look.index for look in others.values()}) == 4
    many = palette.looks([*palette.OWNERS, "x", "y"])
    assert len({(look.variable, look.dash) for look in many.values()}) == 12
