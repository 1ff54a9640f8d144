"""Many comparisons as one: whom the best peer is, what is far from it, and what has no mean."""

import pytest
import synthetic
from common import means

from test_tables import comparison


def taking(**walls: float | None):
    """One comparison: each allocator takes the same in all rounds."""
    return comparison(**{name: [value] * 3 for name, value in walls.items()})


@pytest.fixture
def results():
    return {"a 1": taking(system=1.0, reheap=0.5, one=0.4, two=0.8),
            "b 2": taking(system=1.0, reheap=2.0, one=1.6, two=1.0)}


def of(found: list[means.Means], name: str) -> means.Means:
    return next(one for one in found if one.name == name)


def test_the_table_has_ratios_to_the_system_heap(results):
    assert synthetic.ratio_rows(results, "wall_s", 1, 2) == [["a 1", "1.00", "0.50", "0.40", "0.80"],
                                                             ["b 2", "1.00", "2.00", "1.60", "1.00"]]


def test_the_best_peer_of_a_workload_is_neither_the_system_heap_nor_reheap():
    results = {"a": taking(system=0.1, reheap=0.2, one=0.4, two=0.3)}
    assert means.best_peers(results, "wall_s") == {"a": "two"}
    assert means.best_peers({"a": taking(system=0.1, reheap=0.2)}, "wall_s") == {}


def test_means_are_geometric_and_against_each_workloads_best_peer(results):
    found = means.means(results, "wall_s", 1.10)
    assert of(found, "reheap").to_base == pytest.approx(1.0)
    assert of(found, "reheap").to_best == pytest.approx((0.5 / 0.4 * 2.0 / 1.0) ** 0.5)
    assert of(found, "system").to_base == 1.0


def test_the_best_mean_is_a_peers(results):
    found = means.means(results, "wall_s", 1.10)
    assert means.best_mean(found).name == "one"
    assert means.against(of(found, "reheap"), means.best_mean(found)) == pytest.approx(1.0 / (0.4 * 1.6) ** 0.5)


def test_what_is_far_from_the_best_peer_is_named_farthest_first(results):
    found = means.means(results, "wall_s", 1.10)
    assert synthetic.far_lines(found) == ["system: a 1 2.50", "reheap: b 2 2.00, a 1 1.25", "one: b 2 1.60",
                                          "two: a 1 2.00"]
    assert of(found, "one").far == {"b 2": pytest.approx(1.6)}


def test_exactly_as_much_as_allowed_is_not_far():
    found = means.means({"a": taking(system=1.0, reheap=1.5, one=1.0)}, "wall_s", 1.5)
    assert of(found, "reheap").far == {}


def test_a_missing_figure_leaves_no_mean_and_is_never_zero(results):
    results["c 4"] = taking(system=1.0, reheap=1.0, one=None, two=1.0)
    found = means.means(results, "wall_s", 1.10)
    assert of(found, "one").to_base is None and of(found, "one").to_best is None
    assert means.best_mean(found).name == "two"
    assert synthetic.mean_rows(found)[2] == ["one", "-", "-", "-", "1"]
    assert of(found, "reheap").to_base == pytest.approx(1.0) and of(found, "reheap").to_best is not None


def test_without_a_peer_there_is_only_the_mean_against_the_system_heap():
    found = means.means({"a": taking(system=1.0, reheap=0.5)}, "wall_s", 1.10)
    assert synthetic.mean_rows(found) == [["system", "1.000", "-", "-", "0"], ["reheap", "0.500", "-", "-", "0"]]


def test_a_missing_base_leaves_no_ratio():
    made = taking(system=None, reheap=1.0)
    assert means.ratio(made, "wall_s", "reheap", "system") is None
    assert means.ratio(made, "wall_s", "system", "system") is None


def test_of_one_round_the_ratio_is_that_of_the_medians():
    made = comparison(system=[2.0], reheap=[3.0])
    assert means.ratio(made, "wall_s", "reheap", "system") == pytest.approx(1.5)


def test_no_ratios_have_no_mean():
    assert means.geometric({}) is None and means.geometric({"a": 2.0, "b": None}) is None
    assert means.geometric({"a": 2.0, "b": 8.0}) == pytest.approx(4.0)


def test_the_gain_is_in_work_done_against_the_fewest_threads():
    measured = {("a", 1): taking(system=3.0, reheap=2.0), ("a", 2): taking(system=1.5, reheap=None),
                ("a", 4): taking(system=6.0, reheap=1.0)}
    assert synthetic.gain_rows(measured) == [["a 2", "2.00", "-"], ["a 4", "0.50", "2.00"]]
    assert synthetic.gain_rows({("a", 2): taking(system=1.0)}) == []
