"""Every statistic against a reference implementation, on made-up numbers with fixed seeds."""

import math

import numpy
import pytest
import scipy.stats

from reheap_lab import statistics
from reheap_lab.statistics import Interval


def noise(n: int, seed: int = 1, spread: float = 0.02) -> numpy.ndarray:
    return numpy.random.default_rng(seed).normal(0, spread, n)


@pytest.mark.parametrize("n", [3, 5, 10, 23, 60])
@pytest.mark.parametrize("confidence", [0.95, 0.99])
def test_the_interval_is_scipys(n, confidence):
    values = noise(n)
    found = statistics.location(values, confidence)
    assert found.middle == pytest.approx(scipy.stats.trim_mean(values, statistics.TRIM))
    theirs = scipy.stats.mstats.trimmed_mean_ci(values, (statistics.TRIM, statistics.TRIM), alpha=1 - confidence)
    # Scipy takes the share that is to be cut; Yuen (1974) what is left, which is never narrower once anything is.
    kept = n - 2 * int(statistics.TRIM * n)
    yuens = (1 - 2 * statistics.TRIM) * math.sqrt(n * (n - 1) / (kept * (kept - 1)))
    middle = found.middle
    assert (found.low, found.high) == pytest.approx(tuple(middle + (end - middle) * yuens for end in theirs))


@pytest.mark.parametrize("method", ["BCa", "percentile"])
def test_with_many_values_it_is_that_of_the_bootstrap(method):
    values = noise(200)
    ours = statistics.location(values, 0.95)
    theirs = scipy.stats.bootstrap((values,), lambda x, axis: scipy.stats.trim_mean(x, 0.2, axis=axis),
                                   confidence_level=0.95, n_resamples=4000, random_state=2, method=method)
    width = ours.high - ours.low
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=0.1 * width)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=0.1 * width)


@pytest.mark.parametrize("n", [5, 8, 20])
@pytest.mark.parametrize("kind", ["normal", "heavy", "spiky"])
def test_the_interval_covers_as_often_as_it_says(n, kind):
    random = numpy.random.default_rng(3)
    draw = {"normal": lambda: random.normal(size=n), "heavy": lambda: random.standard_t(3, n),
            "spiky": lambda: random.normal(size=n) + 8 * random.choice([-1, 0, 1], n, p=[.1, .8, .1])}[kind]
    intervals = [statistics.location(draw(), 0.95) for _ in range(2000)]
    hits = sum(i.low <= 0 <= i.high for i in intervals)
    # Three standard deviations below 95 % of 2000; with five normal values it is two per cent below.
    assert hits >= (0.93 if n == 5 else 0.945) * 2000 - 3 * math.sqrt(2000 * 0.95 * 0.05)


def test_an_outlier_hardly_moves_the_ratio():
    logs = noise(20)
    clean = statistics.paired_ratio(numpy.exp(logs), numpy.ones(20), 0.99)
    logs[4] += 3
    assert statistics.paired_ratio(numpy.exp(logs), numpy.ones(20), 0.99).middle == pytest.approx(clean.middle,
                                                                                                  abs=0.01)


def test_pairing_takes_out_what_both_have_in_common():
    common, own = numpy.linspace(1, 3, 20), noise(20, spread=0.001)
    ratio = statistics.paired_ratio(common * 1.03 * numpy.exp(own), common, 0.99)
    assert 1.028 < ratio.low < 1.03 < ratio.high < 1.032


def test_the_ratio_turned_round_is_its_inverse():
    top, bottom = numpy.exp(noise(12, 5)), numpy.exp(noise(12, 6))
    there, back = statistics.paired_ratio(top, bottom, 0.99), statistics.paired_ratio(bottom, top, 0.99)
    assert there.middle * back.middle == pytest.approx(1) and there.low * back.high == pytest.approx(1)


def test_equal_figures_give_a_point():
    assert statistics.paired_ratio([5] * 6, [4] * 6, 0.99) == Interval(*[pytest.approx(1.25)] * 3, 6)


@pytest.mark.parametrize("top, confidence", [([1, 1e30, 1e-30], 0.9999), ([1, 1.1, 1.2], math.nextafter(1, 0)),
                                             ([1e-320, 1e90, 1], 0.99)])
def test_who_knows_nothing_is_undecided(top, confidence):
    """What was measured must not be lost for an interval that no number ends."""
    found = statistics.paired_ratio(top, [1, 1, 1], statistics.for_all_pairs(confidence, 10))
    assert 0 < found.low < 1e-90 and 1e90 < found.high < 1e100
    assert not statistics.decided(found, 0.01) and statistics.more_runs(found, 0.01)


def test_mostly_equal_figures_give_their_whole_range():
    values = [0.0] * 40 + [1.0]
    assert statistics.location(values, 0.99).high > 0


@pytest.mark.parametrize("top, bottom", [([1, 2], [1, 2]), ([1, 0, 1], [1, 1, 1]), ([1, 1, 1], [1, 1, 0]), ([], [])])
def test_no_ratio_where_there_is_none(top, bottom):
    assert statistics.paired_ratio(top, bottom, 0.99) is None


def test_unequal_lengths_are_not_paired():
    with pytest.raises(ValueError, match="2 figures cannot be paired with 3"):
        statistics.paired_ratio([1, 2], [1, 2, 3], 0.99)


@pytest.mark.parametrize("n", [8, 12, 30, 101, 2000])
def test_median_interval_is_scipys(n):
    values = noise(n)
    ours = statistics.median(values, 0.95)
    theirs = scipy.stats.quantile_test(values, q=0, p=0.5).confidence_interval(0.95)
    assert ours.middle == numpy.median(values) and (ours.low, ours.high) == (theirs.low, theirs.high)


def test_median_of_two_spans_them():
    assert statistics.median([3, 1], 0.99) == Interval(2, 1, 3, 2)
    assert statistics.median([], 0.99) is None


@pytest.mark.parametrize("centre", [0.0, 0.001, 0.004, 0.02])
def test_equivalence_is_two_one_sided_tests(centre):
    logs = noise(400, 7) + centre
    ratio = statistics.paired_ratio(numpy.exp(logs), numpy.ones(400), 0.90)
    edge = math.log1p(0.01)
    above = scipy.stats.ttest_1samp(logs, -edge, alternative="greater").pvalue
    below = scipy.stats.ttest_1samp(logs, edge, alternative="less").pvalue
    assert statistics.equivalent(ratio, 0.01) == (max(above, below) < 0.05)


def test_what_is_equivalent_does_not_differ_and_either_is_decided():
    inside, across, beyond = Interval(1.002, 1.001, 1.003, 9), Interval(1.0, 0.97, 1.03, 9), Interval(1.05, 1.02, 1.08,
                                                                                                      9)
    assert statistics.equivalent(inside, 0.01) and not statistics.differs(inside, 0.01)
    assert not statistics.equivalent(across, 0.01) and not statistics.differs(across, 0.01)
    assert [statistics.decided(i, 0.01) for i in (inside, across, beyond)] == [True, False, True]


def test_a_difference_that_counts_as_none_is_not_told_as_one():
    certain = Interval(1.007, 1.003, 1.011, 9)  # not 1, but perhaps as good as 1
    assert not statistics.equivalent(certain, 0.01) and not statistics.differs(certain, 0.01)
    assert statistics.differs(certain, 0.005) and statistics.more_runs(certain, 0.01) > 1


def test_an_interval_that_just_leaves_none_out_claims_nothing():
    assert not statistics.differs(Interval(1.05, 1.01, 1.09, 9), 0.01)
    assert not statistics.differs(Interval(1 / 1.05, 1 / 1.09, 1 / 1.01, 9), 0.01)
    assert statistics.differs(Interval(1.05, 1.02, 1.08, 9), 0.01)
    assert statistics.more_runs(Interval(1.05, 1.01, 1.09, 9), 0.01) in range(5, 8)


def test_the_more_pairs_the_surer_each():
    assert statistics.for_all_pairs(0.99, 1) == statistics.for_all_pairs(0.99, 2) == 0.99
    assert statistics.for_all_pairs(0.99, 5) == pytest.approx(0.999)


def test_precise_asks_for_width():
    assert statistics.precise(Interval(1, 0.996, 1.004, 9), 0.01)
    assert not statistics.precise(Interval(1.012, 1.001, 1.023, 9), 0.01)  # differs, but may do so by patience
    assert statistics.precise(Interval(1.3, 1.25, 1.35, 9), 0.01)


@pytest.mark.parametrize("effect", [0.0, 0.03])
def test_more_runs_is_about_enough(effect):
    """With as many pairs as it asks for, most trials are decided."""
    random, decided, trials = numpy.random.default_rng(11), 0, 0
    while trials < 40:
        logs = random.normal(effect, 0.04, 10)
        first = statistics.paired_ratio(numpy.exp(logs), numpy.ones(10), 0.99)
        more = statistics.more_runs(first, 0.02)
        if more is None:
            continue
        trials += 1
        logs = numpy.append(logs, random.normal(first and math.log(first.middle), 0.04, more))
        decided += statistics.decided(statistics.paired_ratio(numpy.exp(logs), numpy.ones(len(logs)), 0.99), 0.02)
    assert decided >= 16


def test_more_runs_follows_the_square_root_law():
    ratio = Interval(1.0, math.exp(-0.04), math.exp(0.04), 10)
    assert statistics.more_runs(ratio, math.expm1(0.02)) in (30, 31)
    assert statistics.more_runs(Interval(1.5, 1.4, 1.6, 5), 0.01) is None


def test_outliers_are_those_of_the_modified_z_score():
    values = numpy.append(noise(30), [0.5, -0.4])
    spread = scipy.stats.median_abs_deviation(values, scale="normal")
    expected = abs(values - numpy.median(values)) / spread > 3.5
    assert statistics.outliers(values) == expected.tolist() and expected[-2:].all()


def test_outliers_among_equals():
    assert statistics.outliers([7.0] * 9 + [8.0]) == [False] * 9 + [True]
    assert statistics.outliers([7.0] * 9) == [False] * 9
    assert statistics.outliers([1.0, 9.0]) == [False, False]


def test_drift_is_scipys():
    values = 5 + numpy.linspace(0, 0.5, 20) + noise(20)
    found, rank = statistics.drift(values), scipy.stats.spearmanr(range(20), values)
    assert (found.correlation, found.p) == pytest.approx((rank.statistic, rank.pvalue))
    assert found.change == pytest.approx(0.5 / 5.25, abs=0.02) and found.p < 1e-6
    assert scipy.stats.kendalltau(range(20), values).pvalue < 1e-6


def test_what_falls_falls_by_less_than_all():
    assert statistics.drift(numpy.geomspace(10, 1, 12)).change == pytest.approx(-0.9)
    assert statistics.drift([10, 9, 8, 1.3, 1.2, 1.1, 1.0, 0.9]).change > -1


def test_no_drift_where_there_is_none():
    assert statistics.drift(5 + noise(20)).p > 0.05
    assert statistics.drift([1.0] * 20) is None and statistics.drift([1, 2, 3]) is None


def test_time_weighted_mean_is_the_integral():
    times, values = [0.0, 1.0, 3.0], [10, 40, 20]
    assert statistics.time_weighted(times, values, 4.0) == pytest.approx((10 + 80 + 20) / 4)
    fine = numpy.linspace(0, 10, 5001)
    curve = numpy.sin(fine) + 2
    reference = numpy.trapezoid(curve, fine) / 10 if hasattr(numpy, "trapezoid") else numpy.trapz(curve, fine) / 10
    assert statistics.time_weighted(fine.tolist(), curve, 10.001) == pytest.approx(reference, rel=1e-3)


def test_a_sample_after_the_end_counts_for_nothing():
    """The end and the last sample are two looks at the clock."""
    assert statistics.time_weighted([0, 1, 2.5], [10, 20, 30], 2) == pytest.approx(15)


def test_no_mean_without_samples():
    assert statistics.time_weighted([], [], 1) is None and statistics.time_weighted([1.0], [2], 1.0) is None
