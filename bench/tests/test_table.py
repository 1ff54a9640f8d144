import unittest

from common.allocators import Allocator
from common.measuring import Sample
from common.report import FAULTS, PEAK, WALL, compare, metric_table, rows_as_json
from common.table import number, render, span


def sample(wall: float, peak: int | None = 2048, faults: int = 10) -> Sample:
    return Sample(wall_s=wall, cpu_s=wall, peak_kib=peak, faults=faults)


ALLOCATORS = [Allocator("system"), Allocator("other")]


class Cells(unittest.TestCase):
    def test_a_missing_figure_is_a_dash(self):
        self.assertEqual(number(None), "-")
        self.assertEqual(span(None, 1.0), "-")

    def test_zero_is_a_figure(self):
        self.assertEqual(number(0.0), "0.00")

    def test_thousands(self):
        self.assertEqual(number(27167, 0), "27,167")


class Rendering(unittest.TestCase):
    def test_columns_line_up(self):
        text = render(["name", "value"], [["a", "1"], ["long name", "22"]])
        self.assertEqual(text.splitlines(), ["name       value", "---------  -----", "a              1", "long name     22"])

    def test_a_short_row_is_filled(self):
        self.assertEqual(render(["a", "b"], [["x"]]).splitlines()[-1], "x")

    def test_a_long_row_is_refused(self):
        with self.assertRaises(ValueError):
            render(["a"], [["x", "y"]])


class Comparing(unittest.TestCase):
    def test_ratio_is_the_median_of_the_rounds_ratios(self):
        samples = [[sample(10.0), sample(20.0), sample(10.0)], [sample(9.0), sample(18.0), sample(11.0)]]
        system, other = compare(ALLOCATORS, samples, WALL)
        self.assertIsNone(system.ratio)
        self.assertEqual((other.ratio.median, other.ratio.low, other.ratio.high), (0.9, 0.9, 1.1))

    def test_an_unmeasured_peak_is_absent(self):
        samples = [[sample(1.0, peak=None)], [sample(1.0)]]
        system, other = compare(ALLOCATORS, samples, PEAK)
        self.assertIsNone(system.values)
        self.assertIsNone(other.ratio)
        self.assertEqual(other.values.median, 2.0)

    def test_a_failed_allocator_is_shown_without_figures(self):
        text = metric_table(ALLOCATORS, [[sample(1.0)], [None]], WALL)
        self.assertRegex(text.splitlines()[-1], r"^  other +- +-$")

    def test_export_keeps_every_round(self):
        rows = rows_as_json(ALLOCATORS, [[sample(1.0), None], [None, sample(2.0)]], [WALL, FAULTS])
        self.assertEqual(rows["system"], {"wall_s": [1.0, None], "minor_faults": [10, None]})
        self.assertEqual(rows["other"], {"wall_s": [None, 2.0], "minor_faults": [None, 10]})


if __name__ == "__main__":
    unittest.main()
