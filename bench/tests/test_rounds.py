import unittest

from common.rounds import SampleFailed, interleave, round_orders


class Orders(unittest.TestCase):
    def test_each_subject_once_a_round(self):
        for order in round_orders(5, 12, seed=3):
            self.assertEqual(sorted(order), [0, 1, 2, 3, 4])

    def test_each_subject_at_each_place_once(self):
        orders = round_orders(4, 4, seed=1)
        for place in range(4):
            self.assertEqual(sorted(order[place] for order in orders), [0, 1, 2, 3])

    def test_nothing_to_run(self):
        self.assertEqual(round_orders(0, 3, seed=1), [])


class Interleaving(unittest.TestCase):
    def test_the_warm_up_is_thrown_away(self):
        calls = []

        def run(subject):
            calls.append(subject)
            return len(calls)

        samples, failed = interleave(["a", "b"], 2, run, warmups=1)
        self.assertEqual(len(calls), 6)
        self.assertEqual(failed, {})
        self.assertEqual(sorted(samples[0] + samples[1]), [3, 4, 5, 6])
        self.assertEqual(sorted(calls[2:4]), ["a", "b"])

    def test_a_failure_leaves_the_rest_running(self):
        rounds_of_b = []

        def run(subject):
            if subject == "b":
                rounds_of_b.append(1)
                if len(rounds_of_b) == 3:
                    raise SampleFailed("ended by signal 11")
            return 1

        samples, failed = interleave(["a", "b"], 4, run, warmups=1)
        self.assertEqual(samples[0], [1, 1, 1, 1])
        self.assertEqual(samples[1], [1, None, None, None])
        self.assertEqual(failed, {1: "ended by signal 11"})
        self.assertEqual(len(rounds_of_b), 3)


if __name__ == "__main__":
    unittest.main()
