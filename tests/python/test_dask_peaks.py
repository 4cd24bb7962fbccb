"""Peaks of a running monitor without a cluster: stretches contain every instant once, and queries
over them return the same as the files."""

import os
import random
import sys
import unittest
import unittest.mock

sys.path.insert(0, os.environ["PACKAGE"])
from sonde.dask import _csv, _peaks, _rows, _stretches  # noqa: E402
from sonde.dask._settings import INSTANTS, Settings  # noqa: E402
from sonde.dask._stretches import SPAN, Stretches  # noqa: E402

MS = 1_000_000
METRIC = "gpu_memory_used_bytes"


class Life:
    def __init__(self, worker, host, begin_ns, end_ns=None):
        self.worker, self.host, self.begin_ns, self.end_ns, self.devices = worker, host, begin_ns, end_ns, None
        self.address, self.name, self.pid = f"tcp://{host}:{begin_ns}", str(worker), begin_ns


class Engine:
    """Imitates the store's answers (docs/query.md, "Per span") with lists: the points of series,
    and spans."""

    def __init__(self):
        self.points = {}  # metric → [(tags, [(t_ns, value)])]
        self.spans = []  # start_ns, end_ns, job, dag
        self.asked = []

    def query(self, start_ms, end_ms, metrics, downsample=None, per_span=None):
        self.asked.append(per_span)
        found = []
        for metric, tags in metrics:
            for own, points in self.points.get(metric, ()):
                if own["host"] in tags["host"].split("|") or tags["host"] == "*":
                    spans = self.spans if per_span == SPAN else [(start_ms * MS, end_ms * MS, None, None)]
                    found += self.of_series(metric, own, points, [span for span in spans if start_ms * MS <= span[0] <= end_ms * MS], end_ms)
        return found

    def of_series(self, metric, tags, points, spans, end_ms):
        if len(spans) > 10000:
            raise AssertionError("limit spans")
        by_tags = {}
        for begin, end, job, dag in spans:
            end = min(end, end_ms * MS + 1)  # open, so its values up to the end of the range count
            seen = [value for t, value in points if begin <= t < end and value is not None]
            if seen:
                by_tags.setdefault((job, dag), []).append((begin, max(seen)))
        return [
            {"metric": metric, "tags": tags if job is None else tags | {"job": str(job), "dag": str(dag)}, "t_ns": [t for t, _ in values], "values": [v for _, v in values]}
            for (job, dag), values in by_tags.items()
        ]  # fmt: skip


def written_to(spans):
    """The two callbacks of Stretches, which write [start, end, job, dag] to `spans` like the
    engine: the end of an open one is None."""

    def opened(start_ns, job, dag):
        span = [start_ns, None, job, dag]
        spans.append(span)
        return lambda end_ns: span.__setitem__(1, end_ns)

    return (lambda *stretch: spans.append([*stretch])), opened


class StretchesOfTime(unittest.TestCase):
    def stretches(self, now_ns, grain_ms, spans):
        return Stretches(now_ns, grain_ms, *written_to(spans))

    def test_one_for_each_change_with_an_instant_in_it(self):
        put = []
        stretches = self.stretches(1_000_400_000, 200, put)
        stretches.go(1_199_999_999, 1, 0)  # no instant yet
        # nor here: an instant belongs to the stretch that begins there
        stretches.go(1_200_000_000, 2, 0)
        stretches.cut(1_200_000_001)
        stretches.go(1_399_000_000, 2, 1)
        stretches.go(1_700_000_000, 3, 0)
        stretches.cut(1_600_000_000)  # the clock was set back
        stretches.cut(1_900_000_000)
        self.assertEqual(stretches.look(1_950_000_000), 2_000_000_000)
        self.assertEqual(stretches.look(2_000_000_000), 2_000_000_000)
        self.assertIsNone(stretches.look(2_000_000_001))
        self.assertEqual(put.pop(), [1_900_000_000, None, 3, 0])  # it is open
        self.assertEqual(put, [[1_200_000_000, 1_200_000_001, 2, 0], [1_399_000_000, 1_700_000_000, 2, 1], [1_600_000_000, 1_900_000_000, 3, 0]])

    def test_pages_hold_what_the_engine_takes(self):
        """However often clients alternate, every instant is in one stretch, and every stretch as a
        whole in a query."""
        some, put = random.Random(4), []
        now = 10**18
        stretches = self.stretches(now, 5, put)
        with unittest.mock.patch.object(_stretches, "PAGE", 50):
            for turn in range(3000):
                now += some.choice((some.randrange(3 * MS), some.randrange(30 * MS)))
                if some.random() < 0.5:
                    stretches.look(now - some.randrange(3 * MS))
                stretches.go(now, turn, 0)
            stretches.cut(now)
        first, last = 10**18, now
        instants = range(-(-first // (5 * MS)) * 5 * MS, last, 5 * MS)
        self.assertLessEqual(len(put), len(instants))
        questions = stretches.questions(first, last)
        self.assertEqual(len(questions), -(-len(put) // 50))
        seen = {}
        for begin_ms, end_ms in questions:
            mine = [span for span in put if begin_ms * MS <= span[0] <= end_ms * MS]
            self.assertLessEqual(len(mine), 52)
            for begin, end, job, _ in mine:
                for instant in range(-(-begin // (5 * MS)) * 5 * MS, min(end, end_ms * MS + 1), 5 * MS):
                    seen.setdefault(instant, set()).add(job)
        self.assertEqual(sorted(seen), list(instants))
        self.assertEqual({len(jobs) for jobs in seen.values()}, {1})


class FilesAndMonitorAgree(unittest.TestCase):
    def play(self, seed):
        """Jobs alternate, workers start and end, and a recording is started and stopped, all at
        random."""
        some, engine = random.Random(seed), Engine()
        interval_ms = some.choice((1, 10, 50))
        now = 10**18 + some.randrange(10**9)
        begun = now
        stretches = Stretches(now, interval_ms, *written_to(engine.spans))
        at, lives, periods = [(now, 0, 0)], [Life(0, "n1", now), Life(1, "n2", now)], [[now, None]]
        stretches.cut(now)
        for _ in range(120):
            now += some.randrange(4 * interval_ms * MS)
            stretches.look(now - some.randrange(2 * interval_ms * MS))
            what = some.randrange(10)
            if what < 7:
                at.append((now, some.randrange(4), some.randrange(3)))
                stretches.go(*at[-1])
                continue
            stretches.cut(now)
            if what == 7:
                lives.append(Life(len(lives) % 3, some.choice(("n1", "n2")), now))
            elif what == 8 and lives[-1].end_ns is None:
                lives[-1].end_ns = now
            elif what == 9:
                if periods[-1][1] is None:
                    periods[-1][1] = now
                else:
                    periods.append([now, None])
        stretches.cut(now)
        periods = [(begin, end or now) for begin, end in periods]
        instants = range(-(-begun // (interval_ms * MS)) * interval_ms * MS, now, interval_ms * MS)
        engine.points[INSTANTS] = [({"host": host}, [(t, 1) for t in instants]) for host in ("n1", "n2")]
        engine.points[METRIC] = [
            ({"host": host, "gpu": str(gpu), "uuid": f"GPU-{host}-{gpu}"}, [(t, some.randrange(10**6)) for t in instants if some.random() < 0.9])
            for host, gpus in (("n1", 3), ("n2", 1)) for gpu in range(gpus)
        ]  # fmt: skip
        settings = Settings(["total-mem"], interval_ms=interval_ms)
        series = [{"metric": metric, "tags": tags, "t_ns": [t for t, _ in points], "values": [v for _, v in points]} for metric, all_ in engine.points.items() for tags, points in all_]
        rows = _rows.Rows({"settings": settings, "periods": periods, "lives": lives, "series": series, "at": at, "tasks": []})
        questions = stretches.questions(periods[0][0], periods[-1][1])
        return rows, lambda workers=None, **how: _peaks.peaks(engine, settings, periods, questions, lives, "total-mem", workers, **({"per_job": True, "per_dag": False} | how)), engine

    def known(self, peaks):
        """Removes jobs and GPUs without values: files contain jobs without readings, and GPUs that
        never had one."""
        values = {of: {gpu: value for gpu, value in enumerate(peak) if value is not None} for of, peak in peaks.items()}
        return {of: peak for of, peak in values.items() if peak}

    def test_at_random(self):
        cells = 0
        for seed in range(60):
            rows, ask, engine = self.play(seed)
            for how in ({"per_dag": True}, {"per_job": True}):
                for worker, found in zip(rows.workers, ask(**how)):
                    recording = _csv.Recording(rows.columns, list(rows.of(worker)))
                    wanted = _csv.peaks(recording, "total-mem", how.get("per_dag", False))
                    cells += len(found)
                    with self.subTest(seed=seed, worker=worker, **how):
                        self.assertEqual(self.known(found), self.known(wanted))
        self.assertGreater(cells, 1000)

    def test_one_question_per_span_whatever_there_is(self):
        rows, ask, engine = self.play(7)
        self.assertGreater(len(engine.spans), 20)
        everything = ask(per_dag=True)
        self.assertEqual(engine.asked, [None, SPAN])
        last = rows.workers[-1]
        self.assertEqual(ask([last, 0], per_dag=True), [everything[last], everything[0]])
        self.assertEqual(ask([last], per_job=False), [_csv.over_jobs(everything[last])])
        self.assertEqual(ask([]), [])


class TasksEndWithTheirWorker(unittest.TestCase):
    """A killed process leaves the spans of its tasks open."""

    def play(self, some):
        """Lives of one worker, one process after the other, with a clock that differs from the
        scheduler's; the tasks of each, the last of which is cut off by its death. Returns the rows
        and, by instant, the executing tasks."""
        interval_ns, skew_ns = 10 * MS, some.randrange(-50, 50) * MS
        now, lives, tasks, truth = 10**18, [], [], {}
        # of a process that was killed before this monitor started
        tasks.append(("0", "older-0", now - 10**9, None))
        for number in range(some.randrange(1, 5)):
            now += some.randrange(1, 100) * MS
            life = Life(0, "n1", now)
            life.joined_ns = now + skew_ns
            lives.append(life)
            for turn in range(some.randrange(4)):
                begin = now + some.randrange(50 * MS)
                now = begin + some.randrange(1, 80 * MS)
                killed = turn == 2 and some.random() < 0.7
                tasks.append(("0", f"t-{number}.{turn}", begin + skew_ns, None if killed else now + skew_ns))
                if killed:
                    break
            now += some.randrange(1, 100) * MS
            life.end_ns = now
        instants = range(-(-(10**18) // interval_ns) * interval_ns, now, interval_ns)
        for instant in instants:
            for life in lives:
                if life.begin_ns <= instant <= life.end_ns:
                    mine = [(start, end, key) for _, key, start, end in tasks if key.startswith(f"t-{lives.index(life)}.")]
                    truth[instant] = [key for start, end, key in sorted(mine) if start <= instant and (end is None or end > instant)]
        found = {"settings": Settings(["tasks"], interval_ms=10), "periods": [(10**18, now)], "lives": lives, "at": [], "tasks": tasks}
        series = [{"metric": INSTANTS, "tags": {"host": "n1"}, "t_ns": list(instants), "values": [1] * len(instants)}]
        return _rows.Rows(found | {"series": series}), truth, tasks

    def test_at_random(self):
        seed = int(os.environ.get("SONDE_TEST_SEED") or 17)
        some, cut_off = random.Random(seed), 0
        for turn in range(300 * int(os.environ.get("SONDE_TEST_ROUNDS") or 1)):
            rows, truth, tasks = self.play(some)
            with self.subTest(seed=seed, turn=turn):
                seen = {round(row[-1] * 100) * 10 * MS: row[3] for row in rows.of(0, identity=True)}
                self.assertEqual(seen, truth)
                of_task = {one["key"]: one["seconds"] for one in rows.extremes("tasks")}
                self.assertEqual(of_task, {key: end and (end - start) / 1e9 for _, key, start, end in tasks[1:]})
                cut_off += sum(end is None for _, _, _, end in tasks[1:])
        self.assertGreater(cut_off, 100)


if __name__ == "__main__":
    unittest.main()
