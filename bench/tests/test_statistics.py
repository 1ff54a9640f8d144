import unittest

from common.statistics import (
    geometric_mean,
    median_interval,
    middle_half,
    paired_differences,
    paired_ratios,
    summarize,
)


class Summaries(unittest.TestCase):
    def test_median_of_an_odd_count_is_the_middle(self):
        summary = summarize([3.0, 1.0, 10.0])
        self.assertEqual((summary.median, summary.low, summary.high, summary.count), (3.0, 1.0, 10.0, 3))

    def test_median_of_an_even_count_is_between(self):
        self.assertEqual(summarize([4.0, 1.0, 2.0, 9.0]).median, 3.0)

    def test_what_was_not_measured_does_not_count(self):
        summary = summarize([None, 5.0, None])
        self.assertEqual((summary.median, summary.count), (5.0, 1))

    def test_nothing_measured_is_absent_not_zero(self):
        self.assertIsNone(summarize([None, None]))
        self.assertIsNone(summarize([]))


class MiddleHalf(unittest.TestCase):
    def test_outliers_leave_the_range(self):
        summary = middle_half([1.0, 2.0, 3.0, 4.0, 1000.0])
        self.assertEqual((summary.median, summary.low, summary.high), (3.0, 2.0, 4.0))

    def test_one_value_is_its_own_range(self):
        self.assertEqual(middle_half([7.0, None]).high, 7.0)

    def test_nothing_measured_is_absent(self):
        self.assertIsNone(middle_half([None]))


class MedianInterval(unittest.TestCase):
    def test_its_ends_are_those_of_the_published_tables(self):
        # k of the sign test's interval at 95 %: 1 of 6 to 8 values, 2 of 9 to 11, 3 of 12, 6 of 20 (Conover).
        for count, k in ((6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (20, 6)):
            with self.subTest(count=count):
                summary = median_interval([float(value) for value in range(count, 0, -1)])
                self.assertEqual((summary.low, summary.high), (float(k), float(count + 1 - k)))

    def test_fewer_than_six_have_none(self):
        self.assertIsNone(median_interval([1.0] * 5 + [None]))


class Pairs(unittest.TestCase):
    def test_ratio_is_taken_within_a_round(self):
        # The machine was twice as slow in the second round; the ratio does not notice.
        self.assertEqual(paired_ratios([9.0, 18.0], [10.0, 20.0]), [0.9, 0.9])

    def test_a_round_without_both_is_left_out(self):
        self.assertEqual(paired_ratios([None, 3.0, 8.0], [1.0, None, 4.0]), [2.0])

    def test_no_ratio_to_zero(self):
        self.assertEqual(paired_ratios([1.0], [0.0]), [])

    def test_pairs_of_different_rounds_are_refused(self):
        with self.assertRaises(ValueError):
            paired_ratios([1.0], [1.0, 2.0])
        with self.assertRaises(ValueError):
            paired_differences([1.0], [])

    def test_difference(self):
        self.assertEqual(paired_differences([5.0, None, 1.0], [2.0, 1.0, 4.0]), [3.0, -3.0])


class GeometricMean(unittest.TestCase):
    def test_opposite_ratios_cancel(self):
        self.assertAlmostEqual(geometric_mean([0.5, 2.0]), 1.0)

    def test_empty_is_absent(self):
        self.assertIsNone(geometric_mean([]))


if __name__ == "__main__":
    unittest.main()
