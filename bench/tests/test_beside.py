import os
import threading
import unittest
from dataclasses import dataclass
from unittest import mock

from common import beside
from common.errors import BenchError
from common.measuring import Sample
from common.rounds import SampleFailed


@dataclass(frozen=True)
class Timed(Sample):
    commit_kib: int | None = None


def silent(_: str) -> None:
    pass


class SideBySide(unittest.TestCase):
    def setUp(self):
        # Tests run on machines of one processor too.
        self.pins = []
        self.addCleanup(mock.patch.stopall)
        mock.patch.object(beside, "processors", lambda: [3, 4]).start()
        mock.patch.object(os, "sched_setaffinity", lambda _, mask: self.pins.append(mask)).start()

    def test_both_run_at_once_and_exchange_their_places(self):
        together = threading.Barrier(2, timeout=30)
        seen = []

        def run(subject, place):
            if len(seen) >= 2:  # past the warm-up
                together.wait()
            seen.append((subject, place))
            return Timed(place + (2.0 if subject == "b" else 1.0), None, 10, 3, "text", 8)

        samples, failed = beside.side_by_side(["a", "b"], 2, run, silent)
        self.assertEqual(failed, {})
        self.assertEqual(seen[:2], [("a", 0), ("b", 0)])
        for number in (0, 1):
            halves = seen[2 + 4 * number :]
            self.assertEqual((set(halves[:2]), set(halves[2:4])), ({("a", 0), ("b", 1)}, {("b", 0), ("a", 1)}))
        self.assertEqual(self.pins.count({3}), self.pins.count({4}))
        # The mean of one run at each place; what was not measured stays absent.
        self.assertEqual(samples[0], [Timed(1.5, None, 10, 3, "text", 8)] * 2)
        self.assertEqual([sample.wall_s for sample in samples[1]], [2.5, 2.5])

    def test_a_failure_ends_the_pair(self):
        runs = []

        def run(subject, place):
            runs.append(subject)
            if subject == "b" and len(runs) > 4:
                raise SampleFailed("ended by signal 11")
            return Timed(1.0, 1.0, 1, 1)

        samples, failed = beside.side_by_side(["a", "b"], 3, run, silent)
        self.assertEqual(failed, {1: "ended by signal 11"})
        self.assertEqual((samples[0], samples[1]), ([None] * 3, [None] * 3))
        self.assertEqual(len(runs), 6)


class Processors(unittest.TestCase):
    def test_one_is_too_few(self):
        with mock.patch.object(os, "sched_getaffinity", lambda _: {5}), self.assertRaisesRegex(BenchError, "leave out"):
            beside.processors()


if __name__ == "__main__":
    unittest.main()
