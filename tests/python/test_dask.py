"""sonde.dask on real clusters with the Dask in PYTHONPATH: the oldest and the newest supported
version. The fake NVML simulates GPUs."""

import asyncio
import base64
import collections
import contextlib
import gzip
import importlib.util
import json
import os
import pathlib
import re
import sys
import time

from dask_clusters import GPUS, INTERVAL_MS, Clusters, fail, grow, sleep, wait_for
import distributed
from distributed import Client, LocalCluster, wait
from place import PATIENCE_S, main, until

import dask.config

from sonde.dask import Monitor, custom_metric
from sonde.dask import _csv, _figures, _settings

DEFAULT = ["total-mem", "mem-util", "compute-util", "tasks"]


def memory_and_disk(dask_worker):
    """Returns Dask's own count of bytes in both places of its spill buffer."""
    return dask_worker.data.fast.total_weight, dask_worker.data.spilled_total.disk


def transfers(dask_worker):
    """Returns the seconds of completed transfers, from Dask's own records."""
    return tuple(sum(one["duration"] for one in log) for log in (dask_worker.transfer_incoming_log, dask_worker.transfer_outgoing_log))


def disk_seconds(dask_worker):
    """Returns the seconds of spilling, if this version of Dask counts them."""
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


def hold_up(seconds, dask_worker):
    """Holds up the worker's event loop. Returns Dask's mean time of a turn, and keeps it from being
    measured again: it would be replaced at any moment."""
    dask_worker.periodic_callbacks["ticks"].stop()
    time.sleep(seconds)
    dask_worker._cycle_ticks()
    return dask_worker._tick_interval_observed


def executing(dask_worker):
    """Returns the number of tasks that the worker plugin counts as executing."""
    return len(dask_worker.plugins[_settings.PLUGIN].tasks)


def data_of(path):
    """Returns the contents of a report."""
    return json.loads(gzip.decompress(base64.b64decode(re.search(r'id="data">([\w+/=]*)<', pathlib.Path(path).read_text())[1])))


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
                # Returns the last row for which this machine was not too busy to query the GPU in
                # time.
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
                    until(lambda: [row[3:5] for row in self.csv(monitor)[0].rows[-1:]] == [[[in_memory], [on_disk]]], f"managed is {in_memory} and spilled {on_disk}")
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
            # a mean over more than 3 s and at most some 50 turns
            [held_up] = client.run(hold_up, 3).values()
            self.assertGreater(held_up, 0.05)
            until(lambda: round(last()["event-loop"] or 0, 6) == round(held_up, 6), f"a loop that was held up, {held_up} s a turn")
            monitor.stop()
            if importlib.util.find_spec("gilknocker") is None:
                # missing, never 0
                self.assertEqual([cell for cell in self.column(self.csv(monitor)[0], "gil") if cell], [])

    def test_what_transfers_take(self):
        """The metric counts seconds since the monitor started, as in Dask's own records."""
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
            # the file has no sign for one missing value, which the first row may have
            rows = [[[] if cell == [None] else cell for cell in row] for row in zip(*metrics.values())]
            self.assertEqual(rows, recording.rows)

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


def nested():
    from distributed import get_client, secede

    with get_client() as client:
        future = client.submit(sleep, 0.1, pure=False)
        secede()
        return future.result()


if __name__ == "__main__":
    print(f"distributed {distributed.__version__}")
    main()
