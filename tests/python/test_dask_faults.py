"""sonde.dask on clusters that fail, in pairs, and in every deployment."""

import importlib.util
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
import time

from dask_clusters import GPUS, INTERVAL_MS, Clusters, pause, sleep, wait_for
import distributed
from distributed import Client, wait
from place import PATIENCE_S, main, until

import dask.config

from sonde._client import Connection
from sonde.dask import Monitor
from sonde.dask import _csv, _settings


def hold_the_lock(seconds):
    """Keeps the interpreter's lock, like a task in C that does not release it."""
    import ctypes

    ctypes.PyDLL(None).usleep(int(seconds * 1e6))


class TwoClusters(Clusters):
    def look(self, monitor, key, interval_ms):
        """Asserts that the rows of a cluster have its own tasks, at its own interval."""
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

            def rows_of_it():
                rows = [dict(zip(one.columns, row)) for one in self.csv(monitor, identity=True) for row in one.rows]
                return [row["time"][0] for row in rows if any(key.startswith("hold-") for key in row["tasks"] or ())]

            seen = until(lambda: len(times := rows_of_it()) > 3 and times, "some rows of it")
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
            self.assertGreaterEqual(before[-1]["time"][0], seen[-1])
            self.assertTrue(before[-1]["tasks"][0].startswith("hold-"))
            later = {key for row in rows if row["worker-address"] != first["1"] for key in row["tasks"]}
            # the killed process executes no task
            self.assertEqual([key for key in later if key.startswith("hold-")], [])
            part = cluster.scheduler.plugins[_settings.PLUGIN]
            [cut_off] = [one for one in part.store.spans("dask_task", part.attached_ns, time.time_ns()) if one["tags"]["key"].startswith("hold-")]
            # as for every reader of the store, the span ends with its process
            self.assertEqual((cut_off["tags"]["unfinished"], cut_off["tags"]["worker"]), ("1", "1"))
            self.assertTrue(killed * 1e9 <= cut_off["end_ns"] <= began * 1e9)
            self.assertLess(max(b["time"][0] - a["time"][0] for a, b in zip(before, before[1:])), 1)

    def test_a_task_that_holds_the_lock_leaves_no_gap(self):
        with self.cluster(1) as (_, client):
            with Monitor(client, tracking=["compute-util", "tasks", "rss"]) as monitor:
                client.submit(hold_the_lock, 4).result()
            [recording] = self.csv(monitor)
            held = [row for row in recording.rows if row[recording.columns.index("tasks")]]
            self.assertGreaterEqual(len(held), 8)
            # An agent that waited for the lock would leave a gap of 4 s.
            self.assertLess(max(b[2] - a[2] for a, b in zip(held, held[1:])), 2)
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
        command = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(file)]
        command += ["--no-nanny", "--nthreads", "1", "--preload", "sonde.dask"]
        worker = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
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
            from dask_clusters import pause, sleep
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


def hold(path):
    pathlib.Path(path).touch()
    time.sleep(1000)


if __name__ == "__main__":
    print(f"distributed {distributed.__version__}")
    main()
