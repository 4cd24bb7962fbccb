"""The parts of sonde.dask that need no cluster: counting jobs and dags, prefixes of tasks, requests
to workers."""

import json
import random
import unittest
import unittest.mock

import dask_clusters  # noqa: F401: sets the path
import distributed
from place import main

from sonde.dask import _jobs, _keys, _store


class Counting(unittest.TestCase):
    """Jobs and dags of graphs that start and end, without a cluster."""

    def setUp(self):
        self.at, self.opened, self.closed = [], [], []
        self.known = {}

    def jobs(self, manual=False):
        return _jobs.Jobs(manual, lambda g: self.opened.append((g.job, g.dag)), lambda g: self.closed.append((g.job, g.dag, g.failed)), lambda *at: self.at.append(at))

    def graph(self, jobs, client, *keys, wanted=None, span=None):
        return jobs.graph(client, wanted or keys, keys, self.known.get, span)

    def move(self, jobs, key, *states):
        for state in states:
            jobs.transition(key, self.known.get(key, "released"), state)
            self.known[key] = state

    def test_the_newest_that_runs(self):
        jobs = self.jobs()
        self.graph(jobs, "A", "a1", "a2")
        self.graph(jobs, "B", "b")
        self.graph(jobs, "A", "a3")  # this task waits for the others
        self.move(jobs, "a1", "processing")
        self.move(jobs, "b", "processing")
        self.move(jobs, "b", "memory")
        self.move(jobs, "a2", "processing")
        self.move(jobs, "a1", "memory")
        self.move(jobs, "a3", "processing")
        self.assertEqual(self.at, [(1, 0), (0, 0), (0, 1)])
        self.move(jobs, "a2", "memory")
        self.move(jobs, "a3", "memory")
        self.assertEqual((jobs.job, jobs.dag), (0, 1))  # unchanged while nothing runs
        self.assertEqual(self.closed, [(1, 0, False), (0, 0, False), (0, 1, False)])
        self.assertEqual(jobs.successful(), [0, 1])

    def test_failed_and_given_up(self):
        jobs = self.jobs()
        self.graph(jobs, "A", "a")
        self.graph(jobs, "B", "b", "c", wanted=["c"])
        self.graph(jobs, "C", "d")
        self.move(jobs, "a", "processing", "erred")
        self.move(jobs, "c", "forgotten")
        self.assertEqual(self.closed, [(0, 0, True), (1, 0, True)])
        self.assertEqual(jobs.successful(), [])  # the last one is still open
        # its worker died once
        self.move(jobs, "d", "processing", "released", "processing", "memory", "forgotten")
        self.assertEqual(jobs.successful(), [2])
        self.graph(jobs, "C", "e")
        self.assertEqual(jobs.successful(), [])

    def test_what_is_there_already(self):
        jobs = self.jobs()
        self.graph(jobs, "A", "a")
        self.move(jobs, "a", "processing", "memory")
        self.graph(jobs, "A", "a")
        self.assertEqual((self.opened, self.closed), ([(0, 0), (0, 1)], [(0, 0, False), (0, 1, False)]))
        self.move(jobs, "a", "released", "processing")  # the result was lost, and is computed again
        self.move(jobs, "a", "memory")
        self.assertEqual(jobs.successful(), [0])

    def test_tasks_that_submit_and_idle_clients(self):
        jobs = self.jobs()
        self.assertIsNone(jobs.job_of("idle"))
        self.graph(jobs, "A", "a")
        self.move(jobs, "a", "processing")
        self.assertIsNone(self.graph(jobs, "Client-worker-1", "child"))
        self.move(jobs, "child", "processing")
        self.graph(jobs, "A", "b")
        self.move(jobs, "a", "memory")
        self.move(jobs, "child", "memory")
        self.move(jobs, "b", "processing")
        self.assertEqual((self.opened, self.at), ([(0, 0), (0, 1)], [(0, 1)]))

    def test_spans_and_manual(self):
        jobs = self.jobs()
        for client, span in (("A", "load"), ("A", None), ("B", "load"), ("A", "train")):
            self.graph(jobs, client, f"{client}{span}", span=span)
        self.assertEqual(self.opened, [(0, 0), (1, 0), (0, 1), (2, 0)])
        manual = self.jobs(manual=True)
        self.opened.clear()
        self.graph(manual, "A", "x")
        self.assertEqual((manual.new_job(), manual.new_job(9), manual.new_job()), (1, 9, 10))
        self.graph(manual, "B", "y")
        self.graph(manual, "A", "z")
        self.assertEqual(self.opened, [(0, 0), (10, 0), (10, 1)])
        self.assertEqual(self.at[-3:], [(1, 0), (9, 0), (10, 0)])

    def test_a_restart_ends_what_is_open(self):
        jobs = self.jobs()
        self.graph(jobs, "A", "a", "b")
        self.graph(jobs, "B", "c")
        self.move(jobs, "c", "processing")
        jobs.restarted()
        self.assertEqual(self.closed, [(0, 0, True), (1, 0, True)])
        self.known.clear()
        self.graph(jobs, "A", "d")
        self.move(jobs, "d", "processing", "memory")
        self.assertEqual((jobs.job, jobs.dag), (0, 1))
        self.assertEqual(self.closed[-1], (0, 1, False))

    def test_many_graphs_take_little(self):
        """The heap does not grow when running graphs alternate."""
        jobs = self.jobs()
        self.graph(jobs, "A", "old", *(f"o{i}" for i in range(100)))
        self.graph(jobs, "A", "new", "never")
        self.move(jobs, "new", "processing")
        for i in range(100):
            self.move(jobs, f"o{i}", "processing", "memory")
        self.assertLessEqual(len(jobs._heap), 2)


class Prefixes(unittest.TestCase):
    def test_as_dask_counts_them(self):
        from dask.utils import key_split

        r = random.Random(5)
        parts = ["a", "b", "x-", "-", "abcdefab", "<", "m.n", "('", "',", "_", "é", "1", "0f", " ", ">", "deadbeef", "zz", "(", ")", '"', "abcdefab12345678" * 2]
        for _ in range(20_000):
            text = "".join(r.choice(parts) for _ in range(r.randrange(7)))
            for key in (text, (text, 1), text.encode()):
                self.assertEqual(_keys.prefix(key), key_split(key), repr(key))
        for key in (None, 5, 1.5):
            self.assertEqual(_keys.prefix(key), key_split(key))


class Questions(unittest.TestCase):
    """Queries of a store with late nodes."""

    def ask(self, *answers):
        store = _store.Store.__new__(_store.Store)
        store.given_up = set()
        left = iter(answers)
        store.connection = unittest.mock.Mock(ask=lambda *_, **__: json.dumps(next(left)))
        return store._ask("/x"), list(left)

    def missing(self, reason, n):
        return {"n": n, "missing": [{"host": "n2", "reason": reason}]}

    def test_late_ones_are_asked_again_and_gone_ones_not(self):
        whole = {"n": 3, "missing": []}
        self.assertEqual(self.ask(self.missing("late", 1), self.missing("connection lost", 2), whole, {"n": 4}), (whole, [{"n": 4}]))
        gone = self.missing("not connected", 1)
        self.assertEqual(self.ask(gone, whole), (gone, [whole]))

    def test_one_that_stays_late_holds_nobody_up_for_ever(self):
        with unittest.mock.patch.object(_store, "LATE_S", -1), self.assertLogs("sonde.dask", "WARNING") as said:
            self.assertEqual(self.ask(self.missing("late", 1), self.missing("late", 2))[0]["n"], 2)
        self.assertIn("n2", said.output[0])


if __name__ == "__main__":
    print(f"distributed {distributed.__version__}")
    main()
