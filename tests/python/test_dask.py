"""sonde.dask on real clusters with the Dask in PYTHONPATH: the oldest and the newest supported
version. The fake NVML simulates GPUs."""

import asyncio
import base64
import collections
import contextlib
import functools
import gzip
import importlib.util
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import textwrap
import time
import unittest
import unittest.mock

sys.path[:0] = [os.environ["PACKAGE"], os.environ["PLACE"]]
from place import PATIENCE_S, Place, main, until  # noqa: E402
from published import BENCHMARK  # noqa: E402

try:
    import distributed
except ImportError:
    print("Dask is not here (tools/test installs it): nothing is tested")
    sys.exit(77)
from distributed import Client, LocalCluster, Nanny, wait  # noqa: E402

import dask.config  # noqa: E402

from sonde._client import Connection  # noqa: E402
from sonde.dask import Monitor, _csv, _figures, _jobs, _keys, _settings, _store, custom_metric  # noqa: E402

# A busy machine is not an error: a connection may be slow, and a worker may not be back after 15 s
# (LocalCluster then closes its nanny: a restart still in progress 15 s after a kill loses that
# worker).
PATIENT = {"comm.timeouts.connect": PATIENCE_S, "comm.timeouts.tcp": PATIENCE_S, "deploy.lost-worker-timeout": 2 * PATIENCE_S}
dask.config.set({f"distributed.{name}": f"{seconds}s" for name, seconds in PATIENT.items()})

DEFAULT = ["total-mem", "mem-util", "compute-util", "tasks"]
INTERVAL_MS = 50
GPUS = 8


def sleep(seconds, value=None):
    time.sleep(seconds)
    return value


def pause(seconds):
    time.sleep(seconds)


def fail():
    raise ZeroDivisionError("on purpose")


def hold_the_lock(seconds):
    """Keeps the interpreter's lock, like a task in C that does not release it."""
    import ctypes

    ctypes.PyDLL(None).usleep(int(seconds * 1e6))


def grow(megabytes):
    held = bytearray(megabytes << 20)
    held[::4096] = b"x" * len(held[::4096])
    time.sleep(0.5)
    return len(held)


def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.01)


def work_of(worker):
    return os.getpid()


class PatientNanny(Nanny):
    """Gives a worker time to end. Dask's own nanny gives up after five seconds, too few on a busy
    machine, and leaves the cluster half closed."""

    async def kill(self, timeout=0, reason="nanny-kill"):
        await super().kill(timeout=max(timeout, PATIENCE_S / 2), reason=reason)


def memory_and_disk(dask_worker):
    """Dask's own count of bytes in both places of its spill buffer."""
    return dask_worker.data.fast.total_weight, dask_worker.data.spilled_total.disk


def transfers(dask_worker):
    """The seconds of completed transfers, from Dask's own records."""
    return tuple(sum(one["duration"] for one in log) for log in (dask_worker.transfer_incoming_log, dask_worker.transfer_outgoing_log))


def disk_seconds(dask_worker):
    """The seconds of spilling, if this version of Dask counts them."""
    data = dask_worker.data
    if hasattr(data, "cumulative_metrics"):
        return data.cumulative_metrics["disk-write", "seconds"], data.cumulative_metrics["disk-read", "seconds"]
    slow = data._slow_uncached.metrics
    return slow.write_time_total, slow.read_time_total


def stepped(number):
    """A task with spans of its own, as users write it."""
    import sonde

    with sonde.span("step", number=number), sonde.span("part"):
        time.sleep(0.02)
    return number


def leak(megabytes):
    sys.modules["__main__"].leaked = bytearray(os.urandom(1 << 20) * megabytes)


def in_transfer(incoming, outgoing, dask_worker):
    """Simulates this number of bytes in transfer."""
    dask_worker.state.transfer_incoming_bytes, dask_worker.transfer_outgoing_bytes = incoming, outgoing


def executing(dask_worker):
    """The number of tasks that the worker plugin counts as executing."""
    return len(dask_worker.plugins[_settings.PLUGIN].tasks)


def data_of(path):
    """The contents of a report."""
    return json.loads(gzip.decompress(base64.b64decode(re.search(r'id="data">([\w+/=]*)<', pathlib.Path(path).read_text())[1])))


@functools.cache
def played():
    """A real recording if it is available, else a generated one."""
    recorded = BENCHMARK / "worker_0.csv.gz"
    if not recorded.is_file():
        return [[[(i * 7 + g) % 101, i % 50, (i + g * 1000) << 20] for g in range(GPUS)] for i in range(2000)]
    found = _csv.read(recorded)
    memory, activity, compute = (found.columns.index(name) for name in ("total-mem", "mem-util", "compute-util"))
    return [[[row[compute][g], row[activity][g], row[memory][g]] for g in range(GPUS)] for row in found.rows[2000:4000]]


class Clusters(Place):
    def setUp(self):
        super().setUp()
        rows = self.play()
        script = self.root / "nvml.txt"
        script.write_text(f"gpus {GPUS}\nset * memory_total {64 << 30}\nplay {rows}\n")
        # spawned workers import this file
        more = {name: os.environ[name] for name in ("SONDE", "PACKAGE", "PLACE", "FAKE_NVML", "SOURCE", "DASHBOARDS")} | {
            "SONDE_NVML": os.environ["FAKE_NVML"], "SONDE_FAKE_NVML": str(script), "DASK_DISTRIBUTED__DIAGNOSTICS__NVML": "False",
            "PYTHONPATH": os.environ["PACKAGE"] + ":" + os.environ["PYTHONPATH"] + ":" + os.path.dirname(__file__),
            "DASK_TEMPORARY_DIRECTORY": str(self.root),
        }  # fmt: skip
        patch = unittest.mock.patch.dict(os.environ, self.env | more, clear=True)
        patch.start()
        self.addCleanup(patch.stop)
        here = os.getcwd()
        os.chdir(self.root)
        self.addCleanup(os.chdir, here)

    def alive(self, word=None):
        """Without the helper process that the interpreter keeps for its spawned children."""
        return {pid: text for pid, text in super().alive(word).items() if "multiprocessing.resource_tracker" not in text}

    def play(self):
        """The simulated data of the GPUs: rows of utilisation, memory activity, memory used for
        each GPU."""
        self.table = played()
        path = self.root / "play.txt"
        path.write_text("\n".join(" ".join(str(v) for gpu in row for v in gpu) for row in self.table))
        return path

    @contextlib.contextmanager
    def cluster(self, workers=2, **options):
        options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None} | ({"worker_class": PatientNanny} if options.get("processes", True) else {}) | options
        with LocalCluster(**options) as cluster, Client(cluster) as client:
            yield cluster, client

    def csv(self, monitor, **options):
        """The files, read back, by worker."""
        folder = self.root / f"csv-{time.monotonic_ns()}"
        return [_csv.read(path) for path in monitor.to_csv(folder, **options)]

    def one_row_each(self, recording, interval_ms):
        """One row per interval. On a busy machine, the agent may miss the first instant of one."""
        intervals = [round(time_s * 1000) // interval_ms for [time_s] in self.column(recording, "time")]
        self.assertEqual(intervals, sorted(set(intervals)))

    def column(self, recording, name):
        place = recording.columns.index(name)
        return [row[place] for row in recording.rows]


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
        self.graph(jobs, "A", "a3")  # waits for the others
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
        self.move(jobs, "a", "released", "processing")  # lost, and computed again
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


class Recording(Clusters):
    def test_rows_are_what_the_gpus_did(self):
        with self.cluster(3) as (cluster, client):
            monitor = Monitor(client)
            monitor.attach(tracking=["tasks", *DEFAULT, "mem-activity"], polling_interval=INTERVAL_MS)
            monitor.start()
            client.gather(client.map(sleep, [0.2, 0.21, 0.22, 0.23]))
            with Client(cluster) as second:
                second.submit(sleep, 0.3).result()
            monitor.stop()
            files = monitor.to_csv(self.root / "new" / "folder")
            self.assertEqual([os.path.basename(file) for file in files], ["worker_0.csv", "worker_1.csv", "worker_2.csv"])
            recordings = [_csv.read(file) for file in files]
            for recording in recordings:
                self.assertEqual(recording.columns, ["job", "dag", "timestamp", "total-mem", "mem-util", "compute-util", "mem-activity", "tasks"])
                self.look_at_rows(recording)
                self.assertEqual(sorted(set(self.column(recording, "job"))), [0, 1])
            running = sorted(key.split("-")[0] for recording in recordings for keys in self.column(recording, "tasks") for key in keys)
            self.assertGreater(len(running), 10)
            self.assertEqual(set(running), {"sleep"})
            for metric in ("total-mem", "mem-util", "compute-util"):
                live = monitor.get_peaks(metric)
                self.assertEqual(live, Monitor.peaks_from_csv(self.root / "new" / "folder", metric), metric)
                self.assertEqual([sorted(jobs) for jobs in live], [[0, 1]] * 3)
                self.assertEqual({len(values) for jobs in live for values in jobs.values()}, {GPUS})
            flat = monitor.get_peaks("total-mem", workers=[2, 0], per_job=False)
            self.assertEqual(flat, [[max(jobs[job][gpu] for job in jobs) for gpu in range(GPUS)] for jobs in (monitor.get_peaks("total-mem")[n] for n in (2, 0))])
            self.assertEqual(monitor.get_peaks("total-mem", workers=[1]), [monitor.get_peaks("total-mem")[1]])
            self.assertEqual(monitor.successful_jobs(), [0, 1])
            with self.assertRaisesRegex(KeyError, "rss"):
                monitor.get_peaks("rss")
            with self.assertRaisesRegex(ValueError, "no worker 9"):
                monitor.get_peaks("total-mem", workers=[9])

    def look_at_rows(self, recording):
        """Each GPU's values are in the order of the simulation; times are whole intervals apart."""
        times = self.column(recording, "timestamp")
        self.assertGreater(len(times), 5)
        for before, after in zip(times, times[1:]):
            self.assertAlmostEqual((after - before) * 1000 / INTERVAL_MS, max(1, round((after - before) * 1000 / INTERVAL_MS)), places=2)
        memory, share, compute = (self.column(recording, name) for name in ("total-mem", "mem-util", "compute-util"))
        for gpu in range(GPUS):
            left = iter((row[gpu][0], int(row[gpu][2])) for row in self.table)
            for used, percent, busy in zip(memory, share, compute):
                if busy[gpu] is None or used[gpu] is None:
                    continue  # this machine was too busy to query it in time
                self.assertIn((busy[gpu], used[gpu]), left)
                self.assertAlmostEqual(percent[gpu], used[gpu] / (64 << 30) * 100, places=6)

    def test_workers_in_threads_and_asynchronous_clients(self):
        async def body():
            async with LocalCluster(n_workers=4, threads_per_worker=1, processes=False, dashboard_address=None, asynchronous=True) as cluster:
                async with Client(cluster, asynchronous=True) as client:
                    async with Monitor(client, tracking=["compute-util", "tasks", "managed"], polling_interval=INTERVAL_MS) as monitor:
                        await client.gather(client.map(sleep, [0.2, 0.21, 0.22, 0.23]))
                    files = await monitor.to_csv(self.root / "out", fname="part")
                    peaks = await monitor.get_peaks("compute-util")
                    await monitor.shutdown()
                    with self.assertRaisesRegex(RuntimeError, "attach"):
                        await monitor.stop()
                    return files, peaks

        files, peaks = asyncio.run(body())
        self.assertEqual([os.path.basename(file) for file in files], [f"part_{number}.csv" for number in range(4)])
        self.assertEqual(peaks, Monitor.peaks_from_csv(self.root / "out", "compute-util"))
        self.assertEqual([any(self.column(_csv.read(file), "tasks")) for file in files], [True] * 4)
        self.assertEqual(len(self.recordings()), 1)

    def test_custom_metrics(self):
        @custom_metric("power draw")
        def power(worker, handle):
            return handle.power_watts()

        @custom_metric("spread", per_device=False)
        def spread(worker, handles):
            return len(handles) + 0.25

        @custom_metric("broken")
        def broken(worker, handle):
            return 1 / handle.index  # the first one has index 0

        @custom_metric("stuck", per_device=False)
        def stuck(worker, handles):
            time.sleep(1000)

        with self.cluster(1) as (_, client):
            monitor = Monitor(client)
            monitor.attach(tracking=["compute-util", "managed"], custom_metrics=[stuck, power, spread, broken], polling_interval=INTERVAL_MS)
            monitor.start()
            client.submit(sleep, 0.5).result()
            monitor.stop()
            [recording] = self.csv(monitor)
            self.assertEqual(recording.columns[3:], ["compute-util", "managed", "stuck", "power draw", "spread", "broken"])
            self.assertEqual([cell for cell in self.column(recording, "stuck") if cell], [])
            # the others have their values nevertheless
            full = [row for row in recording.rows if all(row[3:5] + row[6:])]
            self.assertGreater(len(full), 3)
            self.assertEqual(len(full[-1][6]), GPUS)
            self.assertEqual(full[-1][7], [GPUS + 0.25])
            self.assertEqual([len(errors := monitor.errors()), "ZeroDivisionError" in errors[0], "broken" in errors[0]], [1, True, True])
            self.assertEqual(monitor.get_peaks("spread"), [{0: [GPUS + 0.25]}])

    def test_back_from_the_recording(self):
        """Files, peaks and tasks of a cluster that has ended equal those of its Monitor."""

        @custom_metric("broken, at times")
        def broken(worker, handle):
            return 1 / handle.index

        with self.cluster(2) as (cluster, client):
            monitor = Monitor(client)
            monitor.attach(tracking=["total-mem", "tasks", "rss"], polling_interval=INTERVAL_MS)
            monitor.start()
            client.submit(sleep, 0.2, pure=False).result()
            monitor.attach(tracking=["compute-util", "tasks", "rss"], custom_metrics=[broken], polling_interval=INTERVAL_MS)
            monitor.start()
            client.submit(sleep, 0.2, pure=False).result()
            monitor.clear_metrics()
            client.gather(client.map(sleep, [0.3, 0.31, 0.32]))
            client.gather(client.map(stepped, range(3)))
            monitor.stop()
            client.submit(sleep, 0.1, pure=False).result()
            monitor.start()
            cluster.scale(3)
            client.wait_for_workers(3)
            with Client(cluster) as second:
                second.gather(second.map(sleep, [0.4, 0.41, 0.42, 0.43]))
                wait(second.submit(fail))
            monitor.stop()
            files = monitor.to_csv(self.root / "live", identity=True)
            peaks = {metric: monitor.get_peaks(metric, per_dag=True) for metric in ("compute-util", "rss", "broken, at times")}
            extremes, successful, errors = monitor.task_extremes(), monitor.successful_jobs(), monitor.errors()
            prefixes, written = monitor.task_prefixes(), monitor.report(self.root / "live.html")
            address, job = client.scheduler.address, monitor.where()["job"]
            monitor.shutdown()
        self.assertTrue(len(files) == 3 and all(peaks["compute-util"]) and errors)
        self.assertEqual(successful, [0])
        with self.assertRaisesRegex(ValueError, f"has the clusters {address}: say which"):
            Monitor.from_recording(self.runs / job, cluster="tcp://elsewhere")
        recorded = Monitor.from_recording(self.runs / job)
        self.assertEqual(recorded.cluster, address)
        again = recorded.to_csv(self.root / "again", identity=True)
        self.assertEqual([pathlib.Path(file).read_text() for file in again], [pathlib.Path(file).read_text() for file in files])
        self.assertEqual({metric: recorded.get_peaks(metric, per_dag=True) for metric in peaks}, peaks)
        self.assertEqual((recorded.task_extremes(), recorded.successful_jobs(), recorded.errors()), (extremes, successful, errors))
        self.assertEqual([(one["prefix"], one["count"], one["errors"], one["unfinished"]) for one in prefixes if one["prefix"] != "stepped"], [("sleep", 7, 0, 0), ("fail", 1, 1, 0)])
        self.assertEqual(recorded.task_prefixes(), prefixes)
        data = data_of(written)
        self.assertEqual(data_of(recorded.report(self.root / "again.html")), data | {"title": job})
        self.assertEqual((data["cluster"], [one["name"] for one in data["workers"]]), (address, ["0", "1", "2"]))
        [step, part] = [[place for place, name in enumerate(data["inner"]["name"]) if name == wanted] for wanted in ("step", "part")]
        self.assertEqual((len(step), [data["inner"]["parent"][place] for place in part]), (3, step))
        self.assertEqual({data["tasks"]["key"][data["inner"]["task"][place]].split("-")[0] for place in step}, {"stepped"})
        for span in ("dask_dag", "dask_stretch"):
            self.look_at_gpus_by(span, recorded, job)
        before = self.recordings()
        self.sonde("run", "--quiet", "-l", 2, "--", "true", env=dict(os.environ))
        [other] = set(self.recordings()) - set(before)
        with self.assertRaisesRegex(ValueError, "is not a recording of a Monitor"):
            Monitor.from_recording(self.runs / other)

    def look_at_gpus_by(self, span, recorded, job):
        """`sonde query`'s peak memory of each GPU by job and dag equals the maximum of the samples
        within the spans."""
        asked = self.sonde("query", "--json", "--per-span", span, "none:0all-max:gpu_memory_used_bytes", self.runs / job, env=dict(os.environ))
        found = {}
        for one in json.loads(asked.stdout):
            place = tuple(one["tags"][name] for name in ("job", "dag", "gpu"))
            found[place] = max([*one["dps"].values(), found.get(place, 0)])
        wanted = {}
        far_ns = time.time_ns() + 10**9
        for one in recorded._store.raw(0, far_ns // 10**6, 10**9, [("gpu_memory_used_bytes", {"host": "*"})], 1):
            for stretch in recorded._store.spans(span, 0, far_ns):
                values = [value for t_ns, value in zip(one["t_ns"], one["values"]) if stretch["start_ns"] <= t_ns < stretch["end_ns"]]
                place = (stretch["tags"]["job"], stretch["tags"]["dag"], one["tags"]["gpu"])
                if values:
                    wanted[place] = max([*values, wanted.get(place, 0)])
        self.assertEqual(found, wanted)
        self.assertEqual({gpu for _, _, gpu in found}, {str(gpu) for gpu in range(GPUS)})
        self.assertGreater(len({(job, dag) for job, dag, _ in found}), 2)

    def test_identity_and_own_gpu(self):
        with self.cluster(0) as (cluster, client):
            for number in range(2):
                cluster.scale(number + 1)
                client.wait_for_workers(number + 1)
            client.run(lambda dask_worker: os.environ.update(CUDA_VISIBLE_DEVICES=f"{dask_worker.name},0"))
            with Monitor(client, tracking=["total-mem"], polling_interval=INTERVAL_MS, own_gpus=True) as monitor:
                until(lambda: all(jobs and None not in jobs[0] for jobs in monitor.get_peaks("total-mem")), "a row of each worker")
            pids = client.run(os.getpid)
            for number, recording in enumerate(self.csv(monitor, identity=True)):
                # The last row for which this machine was not too busy to query the GPU in time.
                row = [row for row in (dict(zip(recording.columns, row)) for row in recording.rows) if row["total-mem"]][-1]
                self.assertEqual(len(row["total-mem"]), 1)
                self.assertEqual(row["gpu-index"], [number])
                self.assertEqual(row["gpu-uuid"], f"GPU-{number:08d}-0000-0000-0000-000000000000")
                self.assertEqual(row["pid"], [pids[row["worker-address"]]])
                self.assertAlmostEqual(row["time"][0], time.time(), delta=PATIENCE_S)

    def test_what_it_leaves_is_a_recording_as_any(self):
        with self.cluster(1) as (_, client):
            monitor = Monitor(client)
            monitor.attach(tracking=["compute-util", "tasks"], polling_interval=INTERVAL_MS)
            monitor.start()
            client.submit(sleep, 0.2).result()
            job = monitor.where()["job"]
            self.assertEqual(self.job()["job"], job)
            monitor.shutdown()
            self.assertEqual(self.recordings(), [job])
        names = self.names(job)
        self.assertGreater(names["gpu_utilization_percent"], GPUS)
        self.assertIn("dask_job", names)


    def test_memory_of_tasks(self):
        with self.cluster(1) as (_, client):
            with Monitor(client, tracking=["tasks", "rss", "cpu", "managed", "network-read"], polling_interval=INTERVAL_MS) as monitor:
                client.submit(grow, 200).result()
                client.submit(sleep, 0.3, b"x" * 1000).result()
            grown, slept = monitor.task_extremes()
            self.assertTrue(str(grown["key"]).startswith("grow-"))
            self.assertGreater(grown["max"][0] - slept["min"][0], 150 << 20)
            self.assertGreaterEqual(grown["seconds"], 0.5)
            [recording] = self.csv(monitor)
            self.assertTrue(any(all(row[3:7]) for row in recording.rows), recording.rows)
            with self.assertRaisesRegex(KeyError, "total-mem"):
                monitor.task_extremes("total-mem")

    def test_managed_leaves_out_what_is_spilled(self):
        # memory of this process, which has other data, too
        limits = {"target": 0.5, "spill": False, "pause": False, "terminate": False}
        with dask.config.set({f"distributed.worker.memory.{name}": value for name, value in limits.items()}):
            with self.cluster(1, processes=False, memory_limit=64 << 20) as (_, client):
                with Monitor(client, tracking=["managed", "spilled", "spill-time", "unspill-time"], polling_interval=INTERVAL_MS) as monitor:
                    held = client.map(bytes, [(10 << 20) + i for i in range(8)], pure=False)
                    wait(held)
                    [(in_memory, on_disk)] = client.run(memory_and_disk).values()
                    self.assertGreater(on_disk, 40 << 20)
                    until(lambda: self.csv(monitor)[0].rows[-1][3:5] == [[in_memory], [on_disk]], f"managed is {in_memory} and spilled {on_disk}")
                    # 2022.12 cannot read its spilled data with today's zict
                    if distributed.__version__ > "2023":
                        self.assertEqual(len(held[0].result()), 10 << 20)
                    [(written, read)] = client.run(disk_seconds).values()
                    self.assertGreater(written, 0)
                    until(lambda: [round(cell[0], 9) for cell in self.csv(monitor)[0].rows[-1][5:]] == [round(written, 9), round(read, 9)], f"{written} s and {read} s")

    def test_what_a_worker_says_of_itself(self):
        tracking = ["managed", "unmanaged", "transfer-in", "transfer-out", "event-loop", "gil"]
        with self.cluster(1) as (_, client), Monitor(client, tracking=tracking, polling_interval=INTERVAL_MS) as monitor:
            def last():
                rows = self.csv(monitor)[0].rows
                return {name: cell[0] if cell else None for name, cell in zip(tracking, rows[-1][3:])} if rows else dict.fromkeys(tracking)

            before = until(lambda: (row := last())["unmanaged"] and row, "a row")
            self.assertEqual((before["transfer-in"], before["transfer-out"]), (0, 0))
            client.run(leak, 200)
            until(lambda: (last()["unmanaged"] or 0) > before["unmanaged"] + (190 << 20), "what is leaked")
            until(lambda: (row := last())["managed"] is not None and row["managed"] < 1 << 20, "which is not Dask's data")
            client.run(in_transfer, 12345, 678)
            until(lambda: (last()["transfer-in"], last()["transfer-out"]) == (12345, 678), "what Dask says that it transfers")
            client.run(in_transfer, 0, 0)
            # in the worker's event loop: Dask then averages over 3 s and at most 50 turns
            client.run(time.sleep, 3)
            until(lambda: any(cell and (cell[0] or 0) > 0.05 for cell in self.column(self.csv(monitor)[0], "event-loop")), "a loop that was held up")
            monitor.stop()
            if importlib.util.find_spec("gilknocker") is None:
                # missing, never 0
                self.assertEqual([cell for cell in self.column(self.csv(monitor)[0], "gil") if cell], [])

    def test_what_transfers_take(self):
        """In seconds since the monitor started, from Dask's own records."""
        with self.cluster(2, processes=False) as (_, client):
            addresses = list(client.scheduler_info()["workers"])

            def move(count):
                moved = [client.submit(bytes, (1 << 20) + i, workers=[addresses[0]], pure=False) for i in range(count)]
                wait([client.submit(len, one, workers=[addresses[1]], pure=False) for one in moved])

            move(1)
            before = until(lambda: (now := client.run(transfers))[addresses[0]][1] and now[addresses[1]][0] and now, "a transfer that does not count")
            with Monitor(client, tracking=["transfer-in-time", "transfer-out-time"], polling_interval=INTERVAL_MS) as monitor:
                move(5)

                def agrees():
                    now = client.run(transfers)
                    wanted = {(address, round(b - a, 6)) for address in addresses for a, b in zip(before[address], now[address])}
                    rows = [dict(zip(one.columns, one.rows[-1])) for one in self.csv(monitor, identity=True) if one.rows]
                    found = {(row["worker-address"], round(value, 6)) for row in rows for name in ("transfer-in-time", "transfer-out-time") for value in row[name]}
                    return found == wanted and max(value for _, value in found) > 0

                until(agrees, f"what Dask's records say beyond {before}")

    def test_a_log_of_transfers_that_overflows(self):
        """A sum that would be too small counts as missing."""
        log = collections.deque([{"duration": 1.0}], maxlen=3)
        time_of = _figures.TransferTime(log)
        self.assertEqual(time_of.look(), 0)
        log.extend({"duration": float(i)} for i in (2, 3))
        self.assertEqual((time_of.look(), time_of.look()), (5, 5))
        log.extend({"duration": float(i)} for i in (4, 5))
        self.assertEqual(time_of.look(), 14)
        log.extend({"duration": 1.0} for _ in range(3))
        self.assertEqual([time_of.look(), time_of.look()], [None, None])
        self.assertIsNone(_figures.TransferTime(None).look())
        self.assertEqual(_figures.spill_seconds({}), (None, None))

    def test_nothing_is_kept_of_tasks_that_are_gone(self):
        with self.cluster(2) as (cluster, client), Monitor(client, tracking=["tasks"], polling_interval=INTERVAL_MS):
            done = [*client.map(sleep, [0] * 200, range(200), pure=False), client.submit(fail, pure=False)]
            wait(done)
            given_up = client.submit(wait_for, str(self.root / "go"), key="wait-1")
            until(lambda: sum(client.run(executing).values()), "it executes")
            given_up.cancel()
            (self.root / "go").touch()
            del done, given_up
            keys = cluster.scheduler.plugins[_settings.PLUGIN].jobs._keys
            until(lambda: not len(keys), "the scheduler's part has forgotten them")
            until(lambda: not sum(client.run(executing).values()), "the workers' parts, too")


class Jobs(Clusters):
    def test_manual(self):
        with self.cluster(1) as (cluster, client):
            monitor = Monitor(client)
            monitor.attach(tracking=["compute-util"], job_type="manual", polling_interval=INTERVAL_MS)
            with Client(client.scheduler.address) as other:
                twin = Monitor(other)  # it has not attached
                monitor.start()
                until(lambda: monitor.get_peaks("compute-util")[0], "a row")
                client.submit(sleep, 0.15, pure=False).result()
                self.assertEqual(twin.new_job(), 1)
                client.submit(sleep, 0.15, pure=False).result()
                with contextlib.suppress(ZeroDivisionError):
                    other.submit(fail, pure=False).result()
                self.assertEqual(twin.new_job(job=7), 7)
                client.submit(sleep, 0.15, pure=False).result()
                client.submit(sleep, 0.15, pure=False).result()
                monitor.stop()
            [recording] = self.csv(monitor)
            at = list(dict.fromkeys((row[0], row[1]) for row in recording.rows))
            self.assertEqual([pair for pair in at if pair != (1, 1)], [(0, 0), (1, 0), (7, 0), (7, 1)])
            self.assertEqual(monitor.successful_jobs(), [0, 7])
            part = cluster.scheduler.plugins[_settings.PLUGIN]
            spans = part.store.spans("dask_job", part.attached_ns, time.time_ns())
            spans.sort(key=lambda one: one["start_ns"])
            self.assertEqual([one["tags"]["job"] for one in spans], ["0", "1", "7"])
            for before, after in zip(spans, spans[1:]):  # a job ends when the next one begins
                self.assertLessEqual(before.get("end_ns", 1 << 63), after["start_ns"])

    def test_clients_that_only_look_are_no_jobs(self):
        with self.cluster(1) as (cluster, client), Client(cluster) as idle:
            idle.scheduler_info()
            monitor = Monitor(idle)
            monitor.attach(tracking=["tasks"], polling_interval=INTERVAL_MS)
            monitor.start()
            client.submit(nested, pure=False).result()
            [recording] = self.csv(monitor)  # also during the recording
            self.assertEqual(set(self.column(recording, "job")), {0})
            self.assertEqual(set(self.column(recording, "dag")), {0})
            self.assertEqual(monitor.successful_jobs(), [0])
            with self.assertRaisesRegex(ValueError, "manual"):
                monitor.new_job()
            monitor.clear_metrics()
            client.submit(sleep, 0.2, pure=False).result()
            monitor.stop()
            self.assertEqual({(row[0], row[1]) for row in self.csv(monitor)[0].rows} - {(0, 0)}, {(0, 1)})

    def test_what_programs_for_dask_metrics_call(self):
        import dask_metrics.monitor
        import dask_metrics.visualize
        import sonde.dask.visualize

        self.assertIs(dask_metrics.monitor.Monitor, Monitor)
        self.assertIs(dask_metrics.visualize.lines, sonde.dask.visualize.lines)
        self.assertIs(dask_metrics.visualize.boxes, sonde.dask.visualize.boxes)
        with self.cluster(1) as (_, client):
            monitor = dask_metrics.monitor.Monitor(client)
            monitor.attach(polling_interval=INTERVAL_MS)
            monitor.start(tracking=["rss", "tasks"])
            client.submit(sleep, 0.4).result()
            monitor.start(tracking=["rss", "tasks"])  # unchanged: no data is lost
            with self.assertRaisesRegex(ValueError, "unknown metric 'gpu'"):
                monitor.start(tracking=["gpu"])
            monitor.stop(force=True)
            folder = self.root / "out"
            folder.mkdir()
            for name in ("worker_7.csv", "worker_8.csv.gz", "worker_9.txt", "other_7.csv"):
                (folder / name).touch()
            monitor.to_csv(folder, clear_dir=True)
            self.assertEqual(sorted(path.name for path in folder.iterdir()), ["other_7.csv", "worker_0.csv", "worker_9.txt"])
            recording = _csv.read(folder / "worker_0.csv")
            self.assertEqual(recording.columns, ["job", "dag", "timestamp", "tasks", "rss"])
            self.assertTrue(any(self.column(recording, "tasks")))
            [metrics] = monitor.request_metrics()
            self.assertEqual(list(metrics), recording.columns)
            self.assertEqual([*map(list, zip(*metrics.values()))], recording.rows)

    def test_wrong_wishes(self):
        with self.cluster(0) as (_, client):
            monitor = Monitor(client)
            for words, wish in {
                "unknown metric 'gpu'": {"tracking": ["gpu"]}, "job_type 'cleint'": {"tracking": [], "job_type": "cleint"},
                "polling_interval 0": {"tracking": [], "polling_interval": 0},
                "polling_interval 9.9: milliseconds, from 10 to": {"tracking": [], "polling_interval": 9.9}, "mem_limit -1": {"tracking": [], "mem_limit": -1},
                "custom_metric": {"tracking": [], "custom_metrics": [sleep]},
            }.items():  # fmt: skip
                with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                    monitor.attach(**wish)
            with self.assertRaisesRegex(RuntimeError, "attach"):
                monitor.start()


class TwoClusters(Clusters):
    def look(self, monitor, key, interval_ms):
        """The rows of a cluster have its own tasks, at its own interval."""
        [recording] = self.csv(monitor, identity=True)
        keys = {key.split("-")[0] for keys in self.column(recording, "tasks") for key in keys}
        self.assertEqual(keys, {key})
        self.one_row_each(recording, interval_ms)
        self.assertEqual({len(jobs) for jobs in monitor.get_peaks("rss")}, {1})
        self.assertEqual([len(one["min"]) for one in monitor.task_extremes("rss")], [1])

    def test_their_monitors_do_not_mix(self):
        tracking = ["tasks", "rss", "compute-util"]
        with self.cluster(1) as (_, second):
            with self.cluster(1) as (_, first):
                one, two = Monitor(first), Monitor(second)
                one.attach(tracking=tracking, polling_interval=INTERVAL_MS)
                two.attach(tracking=tracking, polling_interval=4 * INTERVAL_MS)
                one.start()
                two.start()
                running = [first.submit(sleep, 1.5), second.submit(pause, 1.5)]
                wait(running[0]), wait(running[1])
                one.stop()
                self.look(one, "sleep", INTERVAL_MS)
                one.shutdown()
            two.stop()
            self.look(two, "pause", 4 * INTERVAL_MS)  # the first one is closed
            other = Monitor(second)
            other.attach(tracking=tracking, polling_interval=INTERVAL_MS)  # the only one now
            other.shutdown()
        self.assertEqual(len(self.recordings()), 2)

    def test_a_finer_interval_than_the_run_has(self):
        with self.cluster(0) as (_, first), self.cluster(0) as (_, second):
            Monitor(first).attach(tracking=["tasks"], polling_interval=200)
            with self.assertRaisesRegex(RuntimeError, "another monitor of this program samples every 200 ms"):
                Monitor(second).attach(tracking=["tasks"], polling_interval=INTERVAL_MS)


class Faults(Clusters):
    def test_workers_come_restart_and_are_killed(self):
        with self.cluster(2) as (cluster, client):
            monitor = Monitor(client)
            monitor.attach(tracking=["compute-util", "tasks"], polling_interval=INTERVAL_MS, mem_limit=5, dump_loc=self.root / "dump")
            monitor.start()
            self.assertTrue((self.root / "dump").is_dir())
            first = {str(worker["name"]): address for address, worker in client.scheduler_info()["workers"].items()}
            stuck = client.submit(wait_for, str(self.root / "go"), workers=[first["0"]], allow_other_workers=False, pure=False)
            cluster.scale(3)
            client.wait_for_workers(3)
            pid = client.run(os.getpid, workers=[first["1"]])[first["1"]]
            begun = client.submit(hold, str(self.root / "held"), workers=[first["1"]], pure=False, retries=0)
            until(lambda: (self.root / "held").exists(), "the task runs")
            time_killed = time.time()
            until(lambda: time.time() > time_killed + 0.3, "some rows of it")
            killed = time.time()
            os.kill(pid, signal.SIGKILL)
            until(lambda: "1" in {str(w["name"]) for a, w in client.scheduler_info()["workers"].items() if a != first["1"]}, "the nanny starts it again")
            begun.cancel()
            # distributed 2022.12.1 loses a worker that is restarted before its nanny knows that it
            # runs, and waits for it until its timeout.
            until(lambda: {*client.run(lambda dask_worker: dask_worker.process.status.name, nanny=True, on_error="return").values()} == {"running"}, "nannies know their workers to run")
            (self.root / "go").touch()
            stuck.result()
            began = time.time()
            client.restart(timeout=2 * PATIENCE_S)
            client.submit(sleep, 0.2, pure=False).result()
            monitor.stop()
            recordings = self.csv(monitor, identity=True)
            self.assertEqual(len(recordings), 3)
            for number, recording in enumerate(recordings):
                rows = [dict(zip(recording.columns, row)) for row in recording.rows]
                self.assertEqual({row["worker-name"][0] for row in rows}, {number})
                # before and after the restart
                self.assertGreater(len({row["worker-address"] for row in rows}), 1)
                times = [row["time"][0] for row in rows]
                self.assertEqual(times, sorted(set(times)))
                self.assertTrue(any(t < began for t in times) and any(t > began for t in times))
            origins = {round(row["time"][0] - row["timestamp"], 3) for row in (dict(zip(one.columns, row)) for one in recordings for row in one.rows)}
            self.assertEqual(len(origins), 1)  # the timestamps of all workers have the same origin
            rows = [dict(zip(recordings[1].columns, row)) for row in recordings[1].rows]
            before = [row for row in rows if row["worker-address"] == first["1"]]
            self.assertGreater(before[-1]["time"][0], killed - 5 * INTERVAL_MS / 1000)
            self.assertTrue(before[-1]["tasks"][0].startswith("hold-"))
            later = {key for row in rows if row["worker-address"] != first["1"] for key in row["tasks"]}
            # the killed process executes no task
            self.assertEqual([key for key in later if key.startswith("hold-")], [])
            part = cluster.scheduler.plugins[_settings.PLUGIN]
            [cut_off] = [one for one in part.store.spans("dask_task", part.attached_ns, time.time_ns()) if one["tags"]["key"].startswith("hold-")]
            # as for every reader of the store
            self.assertEqual((cut_off["tags"]["unfinished"], cut_off["tags"]["worker"]), ("1", "1"))
            self.assertTrue(killed * 1e9 <= cut_off["end_ns"] <= began * 1e9)
            self.assertLess(max(b["time"][0] - a["time"][0] for a, b in zip(before, before[1:])), 1)

    def test_a_task_that_holds_the_lock_leaves_no_gap(self):
        with self.cluster(1) as (_, client):
            with Monitor(client, tracking=["compute-util", "tasks", "rss"]) as monitor:
                client.submit(hold_the_lock, 2).result()
            [recording] = self.csv(monitor)
            held = [row for row in recording.rows if row[recording.columns.index("tasks")]]
            self.assertGreaterEqual(len(held), 8)
            self.assertLess(max(b[2] - a[2] for a, b in zip(held, held[1:])), 2 * 0.2)
            for metric in ("compute-util", "rss"):
                self.assertTrue(all(None not in row[recording.columns.index(metric)] for row in held), metric)

    def test_a_gpu_that_fails_costs_itself_only(self):
        script = pathlib.Path(os.environ["SONDE_FAKE_NVML"])
        script.write_text(script.read_text() + "fail 1 utilization 3\n")
        with self.cluster(1) as (_, client):
            with Monitor(client, tracking=["total-mem", "compute-util"], polling_interval=INTERVAL_MS) as monitor:
                until(lambda: [gpu for gpu, value in enumerate(monitor.get_peaks("compute-util")[0].get(0, [None])) if value is None] == [1], "a row")
            [recording] = self.csv(monitor)
            missing = [([gpu for gpu, value in enumerate(row[column]) if value is None] for column in (3, 4)) for row in recording.rows]
            # others are missing if this machine was too busy to query them in time
            self.assertIn(([], [1]), [tuple(row) for row in missing])
            self.assertEqual({row[4][1] for row in recording.rows}, {None})
            [jobs] = monitor.get_peaks("compute-util")
            self.assertEqual([gpu for gpu, value in enumerate(jobs[0]) if value is None], [1])

    def test_a_client_that_is_closed(self):
        with self.cluster(1, processes=False) as (cluster, client):
            with Client(cluster) as other:
                monitor = Monitor(other)
                monitor.attach(tracking=["tasks"], polling_interval=INTERVAL_MS)
            for call in (monitor.start, monitor.stop, monitor.shutdown, lambda: monitor.get_peaks("tasks"), lambda: monitor.to_csv(self.root)):
                with self.assertRaisesRegex(RuntimeError, "the client of this Monitor is closed: .*Monitor.Client"):
                    call()
            Monitor(client).shutdown()

    def test_a_cluster_that_is_closed(self):
        with self.cluster(0) as (cluster, _), dask.config.set({"distributed.comm.timeouts.connect": "500ms"}), Client(cluster.scheduler_address) as client:
            monitor = Monitor(client)
            monitor.attach(tracking=["tasks"], polling_interval=INTERVAL_MS)
            address = cluster.scheduler_address
            cluster.close()
            for call in (monitor.start, monitor.stop, lambda: monitor.get_peaks("tasks"), lambda: monitor.to_csv(self.root)):
                with self.assertRaisesRegex(RuntimeError, f"does not answer at {address}.*from_recording|the client of this Monitor is closed.*from_recording"):
                    call()

    def test_the_scheduler_is_killed(self):
        """No process is left, and the recording is kept."""
        script = self.root / "cluster.py"
        script.write_text(textwrap.dedent("""
            import time
            from distributed import Client, LocalCluster
            from sonde.dask import Monitor
            if __name__ == "__main__":
                cluster = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None)
                client = Client(cluster)
                with Monitor(client, tracking=["compute-util"]):
                    print("ready", flush=True)
                    time.sleep(1000)
        """))
        process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=os.environ.copy())
        self.started.append(process)
        self.assertEqual(process.stdout.readline(), "ready\n")
        asked = ("query", "--per-span", "dask_stretch", "none:0all-max:gpu_utilization_percent")
        until(lambda: "dag=0" in self.sonde(*asked, env=dict(os.environ)).stdout, "peaks of the stretch that goes on")
        process.kill()
        until(lambda: not self.alive("sonde run") and not self.alive("agent --folder"), "sonde has ended")
        [recording] = self.recordings()
        peaks = self.sonde(*asked, self.runs / recording, env=dict(os.environ))
        self.assertIn("dag=0", peaks.stdout, peaks.stderr)


class Deployments(Clusters):
    def test_preload(self):
        environment = os.environ | {"DASK_SONDE__TRACKING": "['compute-util', 'tasks']", "DASK_SONDE__CSV": str(self.root / "csv"), "DASK_SONDE__POLLING_INTERVAL": "50"}
        command = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
        file = self.root / "scheduler.json"
        scheduler = subprocess.Popen([*command, "--port", "0", "--no-dashboard", "--preload", "sonde.dask", "--scheduler-file", str(file)], env=environment,
                                     stderr=subprocess.PIPE, text=True)  # fmt: skip
        self.started.append(scheduler)
        until(file.exists, "a scheduler")
        worker = subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(file), "--no-nanny", "--nthreads", "1",
                                   "--preload", "sonde.dask"], env=environment, stderr=subprocess.DEVNULL)  # fmt: skip
        self.started.append(worker)
        with Client(scheduler_file=str(file)) as client:
            client.submit(sleep, 0.5).result()
        scheduler.send_signal(signal.SIGINT)
        self.assertEqual(scheduler.wait(PATIENCE_S), 0, scheduler.stderr.read())
        recording = _csv.read(self.root / "csv" / "worker_0.csv")
        self.assertTrue(any(self.column(recording, "tasks")))
        self.assertEqual(len(self.recordings()), 1)

    def test_within_a_run(self):
        """The agent of `sonde run` records the cluster of a program below it."""
        script = self.root / "program.py"
        script.write_text(textwrap.dedent("""
            import os, time
            from distributed import Client, LocalCluster
            from sonde.dask import Monitor
            if __name__ == "__main__":
                with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
                    with Monitor(client, tracking=["compute-util", "tasks"], polling_interval=50) as monitor:
                        client.submit(time.sleep, 0.4).result()
                    print(monitor.where()["job"] == os.environ["SONDE_JOB"], len(open(monitor.to_csv("out")[0]).readlines()) > 5)
        """))
        result = self.sonde("run", "--quiet", "-l", 3, "--rate", 0.05, "--", sys.executable, script, env=dict(os.environ))
        self.assertEqual((result.returncode, result.stdout), (0, "True True\n"), result.stderr)
        self.assertEqual(len(self.recordings()), 1)
        self.assertNotIn("polling_interval", result.stderr)
        slow = self.sonde("run", "--quiet", "-l", 3, "--rate", 0.1, "--", sys.executable, script, env=dict(os.environ))
        self.assertEqual(slow.stderr.count("polling_interval=50: the run around this cluster samples every 100 ms"), 1, slow.stderr)
        low = self.sonde("run", "--quiet", "-l", 1, "--", sys.executable, script, env=dict(os.environ))
        self.assertIn("sonde run -l 3", low.stderr)

    def test_the_dashboard(self):
        """Each of its panels has a line for each worker, GPU or cluster, and every metric of
        workers has a panel."""
        dashboard = json.loads(pathlib.Path(os.environ["DASHBOARDS"], "dask.json").read_text())
        panels = dashboard["panels"]
        asked = {name for panel in panels for name in re.findall(r"\$\{(\w+)[:}]", json.dumps(panel["targets"]))}
        self.assertEqual(asked, {variable["name"] for variable in dashboard["templating"]["list"]})
        of_workers = {metric for kind, metric in _settings.KINDS.values() if kind == "worker"}
        self.assertLess(of_workers, {panel["targets"][0]["metric"] for panel in panels})
        with self.cluster(2) as (_, client):
            with Monitor(client, tracking=list(_settings.KINDS), polling_interval=INTERVAL_MS) as monitor:
                begun = int(time.time())
                client.gather(client.map(sleep, [1.2, 1.3, 1.4]))
                until(lambda: time.time() > begun + 3, "whole seconds")
            self.csv(monitor)  # all data is in the store
            where = monitor.where()
            server = Connection(where["url"], pathlib.Path(where["token_file"]).read_text().strip(), PATIENCE_S)
            lines = {"cluster": 1, "worker": 2, "gpu": GPUS}
            for panel in panels:
                [target] = panel["targets"]
                tags = [one["tagk"] for one in target["filters"]]
                filters = [one | {"filter": one["filter"].replace("${host:pipe}", ".*")} for one in target["filters"]]
                query = {"metric": target["metric"], "aggregator": target["aggregator"], "downsample": f"1s-{target['downsampleAggregator']}", "filters": filters}
                if panel["title"] == "interpreter's lock" and importlib.util.find_spec("gilknocker") is None:
                    continue
                answer = json.loads(server.ask("/api/query", json.dumps({"start": begun - 5, "end": begun + 3, "queries": [query]})))
                self.assertEqual(len({tuple(one["tags"][tag] for tag in tags) for one in answer}), lines[tags[-1]], panel["title"])
                self.assertTrue(all(one["dps"] for one in answer), panel["title"])
                if tags == ["cluster"]:
                    self.assertTrue(all(value == int(value) for one in answer for value in one["dps"].values()), panel["title"])

    def test_two_clusters_within_a_run(self):
        """They share the run; each Monitor sees its own cluster, at its own interval."""
        script = self.root / "program.py"
        script.write_text(textwrap.dedent("""
            import os, time
            from distributed import Client, LocalCluster, wait
            from sonde.dask import Monitor
            from test_dask import pause, sleep
            if __name__ == "__main__":
                one = dict(n_workers=1, threads_per_worker=1, dashboard_address=None)
                tracking = ["tasks", "rss"]
                with LocalCluster(**one) as a, Client(a) as first, LocalCluster(**one) as b, Client(b) as second:
                    monitors = Monitor(first), Monitor(second)
                    for monitor, interval in zip(monitors, (50, 200)):
                        monitor.attach(tracking=tracking, polling_interval=interval)
                        monitor.start()
                    wait([first.submit(sleep, 1.5)]), wait([second.submit(pause, 1.5)])
                    for monitor, name in zip(monitors, ("first", "second")):
                        monitor.stop()
                        assert monitor.where()["job"] == os.environ["SONDE_JOB"]
                        monitor.to_csv(name, identity=True)
                        assert [len(jobs) for jobs in monitor.get_peaks("rss")] == [1], monitor.get_peaks("rss")
                    monitors[0].shutdown()
                    assert [one["key"].split("-")[0] for one in monitors[1].task_extremes()] == ["pause"]
        """))
        result = self.sonde("run", "--quiet", "-l", 3, "--rate", 0.05, "--", sys.executable, script, env=dict(os.environ))
        self.assertEqual(result.returncode, 0, result.stderr)
        for name, key, interval_ms in (("first", "sleep", 50), ("second", "pause", 200)):
            recording = _csv.read(self.root / name / "worker_0.csv")
            self.assertEqual({key.split("-")[0] for keys in self.column(recording, "tasks") for key in keys}, {key})
            times = self.column(recording, "timestamp")
            self.assertGreater(len(times), 5)
            self.one_row_each(recording, interval_ms)
            self.assertEqual(sorted((self.root / name).iterdir()), [self.root / name / "worker_0.csv"])


def nested():
    from distributed import get_client, secede

    with get_client() as client:
        future = client.submit(sleep, 0.1, pure=False)
        secede()
        return future.result()


def hold(path):
    pathlib.Path(path).touch()
    time.sleep(1000)


if __name__ == "__main__":
    print(f"distributed {distributed.__version__}")
    main()
