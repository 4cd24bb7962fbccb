"""sonde.Judge: src/detect from Python. tests/unit/detect checks its judgement; this test checks
that the rule is the same, and that it accepts Python's values."""

import gc
import math
import os
import sys
import unittest

sys.path.insert(0, os.environ["PACKAGE"])
import sonde  # noqa: E402


class Judging(unittest.TestCase):
    def test_half_as_slow_again_is_found_in_six_rounds(self):
        judge = sonde.Judge()
        for i in range(20):
            judge.round({"a": 1 + 0.01 * (i % 3), "b": 1.01, "c": 0.99, "d": 1 + 0.01 * (i % 2)})
        self.assertEqual({v.state for v in judge.verdicts().values()}, {"good"})
        rounds = 0
        while judge.verdicts()["c"].state != "slow":
            judge.round({"a": 1, "b": 1.01, "c": 1.5, "d": 1})
            rounds += 1
        self.assertLessEqual(rounds, 6)
        verdict = judge.verdicts()["c"]
        self.assertAlmostEqual(verdict.peers, 1.5, delta=0.02)
        self.assertTrue(verdict.by_peers and verdict.score > 4 and verdict.rounds == 4, verdict)
        self.assertEqual(judge.verdicts()["a"].state, "good")

    def test_who_gives_nothing_is_silent_and_who_left_is_not_missed(self):
        judge = sonde.Judge(persistence=2)
        for _ in range(5):
            judge.round({"a": 1, "b": 1, "c": 1, "d": 1})
        judge.leave("c")
        for value in (None, math.nan):
            judge.round({"a": 1, "b": value, "d": 1})
        states = {name: verdict.state for name, verdict in judge.verdicts().items()}
        self.assertEqual(states, {"a": "good", "b": "silent", "c": "waiting", "d": "good"})

    def test_options(self):
        for options in ({"window": 1000}, {"slowdown": 0.5}, {"not_peers": True, "not_own": True}):
            with self.assertRaises(ValueError):
                sonde.Judge(**options)
        with self.assertRaises(TypeError):
            sonde.Judge(speed=1)
        rates = sonde.Judge(less_is_worse=True, window=1, persistence=1)
        for _ in range(8):
            rates.round({"a": 100, "b": 101, "c": 50})
        self.assertEqual({name for name, v in rates.verdicts().items() if v.state == "slow"}, {"c"})

    def test_what_is_no_round(self):
        judge = sonde.Judge()
        for bad, error in ((3, AttributeError), ({"a": "fast"}, TypeError), ({1: 1.0}, TypeError)):
            with self.assertRaises(error):
                judge.round(bad)
        judge.round({"\udcff": 1.0, "é\0": 2.0})  # any text can be a name
        self.assertEqual(set(judge.verdicts()), {"\udcff", "é"})

    def test_nothing_is_kept(self):
        judges = [sonde.Judge() for _ in range(100)]
        for judge in judges:
            judge.round({str(i): 1.0 for i in range(100)})
        verdicts = judges[0].verdicts()
        del judges, judge
        gc.collect()
        self.assertEqual(verdicts["7"].state, "waiting")


if __name__ == "__main__":
    unittest.main()
