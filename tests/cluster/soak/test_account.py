"""Tests the soak's arithmetic: it finds lost, duplicated and damaged points, and growing memory."""

import collections
import random
import sys
import unittest

import account
import samples


def life(
    slot="0",
    generation=0,
    *,
    points=1000,
    spans=10,
    dropped=0,
    killed=False,
    signalled=100.0,
    ended=100.1,
    begun=0,
):
    return account.Life(
        slot,
        generation,
        "n1",
        "c",
        killed,
        signalled,
        ended,
        points + begun,
        points,
        points + begun,
        points,
        spans + begun,
        spans,
        dropped,
    )


def recorded(programs):
    """Returns recordings that contain all data of the programs."""
    found = object.__new__(account.Recorded)
    found.numbers = {
        "points": {(p.slot, p.generation): list(range(p.points)) for p in programs},
        "spans": {(p.slot, p.generation): list(range(p.spans)) for p in programs},
    }
    found.cells = collections.Counter()
    for p in programs:
        found.cells[p.slot] += p.adds
    found.damaged, found.reported_drops = [], {}
    return found


class Account(unittest.TestCase):
    def settle(self, programs, change=lambda r: None, kills=()):
        found = recorded(programs)
        change(found)
        total, wrong = account.settle(found, programs, kills)
        return {name: total[name] for name in account.BAD if total[name]}, total, wrong

    def test_in_order(self):
        programs = [life(), life(generation=1), life("1", killed=True, begun=1)]
        bad, total, wrong = self.settle(programs)
        self.assertEqual(
            (bad, wrong, total["points_emitted"], total["points_stored"], total["adds_stored"]),
            ({}, [], 3000, 3000, 3000),
        )

    def test_a_kill_during_a_call(self):
        """The last begun point, span and addition may be recorded or not."""

        def one_more(r):
            r.numbers["points"]["0", 0].append(1000)
            r.numbers["spans"]["0", 0].append(10)
            r.cells["0"] += 1

        self.assertEqual(self.settle([life(killed=True, begun=1)], one_more)[0], {})
        self.assertEqual(
            self.settle([life()], one_more)[0],
            {"points_damaged": 1, "spans_damaged": 1, "adds_doubled": 1},
        )

    def test_lost(self):
        def lose(r):
            del r.numbers["points"]["0", 0][500:507]

        self.assertEqual(self.settle([life()], lose)[0], {"unaccounted": 7})
        self.assertEqual(self.settle([life(dropped=7)], lose)[0], {})
        self.assertEqual(self.settle([life(dropped=5)], lose)[0], {"unaccounted": 2})
        self.assertEqual(self.settle([life(dropped=9)], lose)[0], {"overcounted": 2})

    def test_ended_while_the_agent_was_away(self):
        """If a program ends while no agent runs, its last points may be missing. Points before a
        gap, or the last points of other programs, must not be missing."""

        def tail(r):
            del r.numbers["points"]["0", 0][900:]
            r.cells["0"] -= 150

        bad, total, _ = self.settle([life()], tail, [("n1", 99.9)])
        self.assertEqual(
            (bad, total["points_unattended"], total["adds_unattended"]), ({}, 100, 150)
        )
        for kills in ([("n1", 105.0)], [("n1", 60.0)], [("n2", 99.9)]):
            self.assertEqual(
                self.settle([life()], tail, kills)[0],
                {"unaccounted": 100, "adds_missing": 150},
                kills,
            )

        def hole(r):
            del r.numbers["points"]["0", 0][900:950]

        self.assertEqual(self.settle([life()], hole, [("n1", 99.9)])[0], {"unaccounted": 50})

    def test_doubled_and_damaged(self):
        def change(r):
            r.numbers["points"]["0", 0] += [3, 3, 4]
            r.numbers["spans"]["0", 0].append(77)
            r.numbers["points"]["5", 9] = [1, 2]
            r.damaged.append("points of slot 0: 0.5")
            r.cells["0"] += 12

        self.assertEqual(
            self.settle([life()], change)[0],
            {"points_doubled": 3, "points_damaged": 3, "spans_damaged": 1, "adds_doubled": 12},
        )

    def test_additions_missing(self):
        def change(r):
            r.cells["0"] -= 40

        self.assertEqual(self.settle([life()], change, [("n1", 99.9)])[0], {"adds_missing": 40})


class Slope(unittest.TestCase):
    def process(self, seconds, kib_per_minute, begin_kib=5000, begin_s=0):
        chance = random.Random(begin_s)
        made = samples.Process(1, "agent", "n1")
        made.samples = [
            (
                begin_s + s,
                begin_kib + kib_per_minute * s / 60 + chance.gauss(0, 30),
                20 + s // 100,
                4,
            )
            for s in range(seconds)
        ]
        return made

    def test_of_lives_that_follow_one_another(self):
        """A different level of each process is not growth."""
        for growth in (0, 250):
            lives = [
                self.process(360, growth, level, begin)
                for level, begin in ((5000, 0), (9000, 360), (4000, 720))
            ]
            found, width = samples.slope(lives)
            self.assertLess(abs(found - growth), 2 * width)
            self.assertLess(width, 20)

    def test_short_lives_do_not_count_beside_a_long_one(self):
        """The warm-up of short lives is not growth; a leak of the long life is found."""
        for growth in (0, 250):
            short = [self.process(180, 500, 6000, begin) for begin in range(0, 1800, 180)]
            found, width = samples.slope([*short, self.process(900, growth, 9000, 1800)])
            self.assertLess(abs(found - growth), 2 * width)
            self.assertLess(width, 20)

    def test_warming_up_is_no_growth(self):
        """The first minutes of a long life do not count; later growth is found."""
        for growth in (0, 250):
            process = self.process(1200, growth)
            process.samples = [
                (at, kib + 4000 * min(at, 240) / 240, *rest) for at, kib, *rest in process.samples
            ]
            found, width = samples.slope([process])
            self.assertLess(abs(found - growth), 2 * width + 2)
            self.assertLess(width, 20)

    def test_memory_for_a_growing_recording_is_no_leak(self):
        """Memory that the process after a long life has, too, does not count. Memory that it lacks
        is found."""
        for leak in (0, 250):
            long = self.process(1200, 200 + leak)
            successor = self.process(420, 200, 4000 + 200 * 20, 1200)
            found = samples.beyond_successor([long, successor])
            self.assertLess(abs(found - leak), 60)
        self.assertIsNone(samples.beyond_successor([long]))
        self.assertIsNone(samples.beyond_successor([successor, long]))
        self.assertIsNone(samples.beyond_successor([long, self.process(200, 0)]))

    def test_requests_in_flight_are_no_growth(self):
        """The memory of requests does not count; a leak is found in spite of it."""
        chance = random.Random(1)
        for growth in (0, 250):
            process = self.process(600, growth)
            process.samples = [
                (at, kib + (chance.choice((0, 0, 8000))), *rest)
                for at, kib, *rest in process.samples
            ]
            found, width = samples.slope([process])
            self.assertLess(abs(found - growth), 30)
            self.assertLess(width, 30)

    def test_rise(self):
        self.assertAlmostEqual(samples.rise([(s, 400 + s / 2) for s in range(300)]), 30)
        self.assertIsNone(samples.rise([(0, 1), (1, 2)]))

    def test_faults(self):
        row = {
            "process": "agent",
            "host": "n1",
            "kib_most": 16384,
            "kib_per_minute": 80.0,
            "plus_minus": 20.0,
            "kept_per_minute": None,
            "descriptors": [20, 36],
            "threads": [4, 8],
        }
        self.assertEqual(samples.faults(row), [])
        self.assertEqual(samples.faults(row | {"kib_per_minute": None, "plus_minus": None}), [])
        self.assertEqual(samples.faults(row | {"kib_per_minute": 800.0, "kept_per_minute": 64}), [])
        for change in (
            {"kib_most": 16385},
            {"plus_minus": 15.0},
            {"plus_minus": 1000.0},
            {"kept_per_minute": 65},
            {"descriptors": [20, 37]},
            {"threads": [4, 9]},
        ):
            self.assertEqual(len(samples.faults(row | change)), 1, change)

    def test_too_short(self):
        self.assertIsNone(samples.slope([self.process(45, 0)]))

    def test_edges(self):
        self.assertEqual(samples.edges([self.process(500, 0)], 2), (20, 24))

    def test_roles(self):
        self.assertEqual(
            [
                samples.role_of(c)
                for c in (
                    "sonde agent --x",
                    "/mnt/bin/sonde run -- sh",
                    "ssh n2 sonde node",
                    "sonde",
                    "sh -c sonde run",
                )
            ],
            ["agent", "run", None, None, None],
        )


if __name__ == "__main__":
    sys.exit(unittest.main())
