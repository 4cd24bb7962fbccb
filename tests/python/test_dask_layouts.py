"""sonde.dask on clusters as other tools make them, with the Dask in PYTHONPATH. (By ssh, Slurm and
MPI over several hosts: tests/cluster/test_dask.py.)"""

import logging
import os
import sys
import textwrap

from dask_clusters import GPUS, INTERVAL_MS, Clusters, PatientNanny, sleep, wait_for
from place import main, until

from distributed import Client, LocalCluster, Scheduler, SpecCluster  # noqa: E402

from sonde.dask import Monitor  # noqa: E402

try:
    from distributed import span
except ImportError:
    span = None  # before 2023.10

UUIDS = [f"GPU-{gpu:08d}-0000-0000-0000-000000000000" for gpu in range(GPUS)]


def rotated(words, first):
    """As in dask-cuda, every worker sees all GPUs, its own first."""
    return ",".join([*words[first:], *words[:first]])


class Layouts(Clusters):
    def cuda_cluster(self):
        """8 workers in processes, each with a GPU, a resource and a preload, as LocalCUDACluster
        and dask-cuda-worker start them; every second one gets UUIDs."""
        preload = self.root / "initialize.py"
        preload.write_text(textwrap.dedent("""
            async def dask_setup(worker):
                worker.preloaded = True
        """))
        workers = {
            number: {"cls": PatientNanny, "options": {
                "nthreads": 1, "resources": {"GPU": 1}, "preload": [str(preload)], "preload_argv": [],
                "env": {"CUDA_VISIBLE_DEVICES": rotated(UUIDS if number % 2 else list(map(str, range(GPUS))), number)},
            }} for number in range(GPUS)
        }  # fmt: skip
        return SpecCluster(workers=workers, scheduler={"cls": Scheduler, "options": {"port": 0, "dashboard": False}}, silence_logs=logging.WARN)

    def test_a_worker_for_each_gpu(self):
        with self.cuda_cluster() as cluster, Client(cluster) as client:
            client.wait_for_workers(GPUS)
            self.assertEqual(set(client.run(lambda dask_worker: dask_worker.preloaded).values()), {True})
            with Monitor(client, tracking=["total-mem", "tasks"], polling_interval=INTERVAL_MS, own_gpus=True) as monitor:
                measured = self.root / "measured"
                tasks = client.map(wait_for, [measured] * GPUS, pure=False, resources={"GPU": 1})
                until(lambda: all(monitor.get_peaks("total-mem")), "a value of each worker")
                measured.touch()
                client.gather(tasks)
            for number, recording in enumerate(self.csv(monitor, identity=True)):
                rows = [dict(zip(recording.columns, row)) for row in recording.rows]
                self.assertEqual({(row["gpu-index"][0], row["gpu-uuid"]) for row in rows}, {(number, UUIDS[number])})
                # Without a value if this machine was too busy to query the GPU in time.
                self.assertEqual({len(row["total-mem"]) for row in rows} - {0}, {1})
                self.assertEqual({row["worker-name"][0] for row in rows}, {number})
                self.assertEqual(len({key for row in rows for key in row["tasks"]}), 1)
            peaks = monitor.get_peaks("total-mem", workers=[0, 7])
            own = {number: [max(row[number][2] for row in self.table)] for number in (0, 7)}
            self.assertEqual([len(values) for jobs in peaks for values in jobs.values()], [1, 1])
            self.assertTrue(all(jobs[0] <= own[number] for number, jobs in zip((0, 7), peaks)), (peaks, own))
            if span is not None:
                self.spans_as_jobs(client)

    def spans_as_jobs(self, client):
        """Dask's own spans; on the same cluster, because its workers start slowly."""
        monitor = Monitor(client)
        monitor.attach(tracking=["total-mem", "tasks"], polling_interval=INTERVAL_MS, spans=True)
        monitor.start()

        def work():
            client.gather(client.map(sleep, [0.2] * GPUS, pure=False))

        with span("load"):
            work()
        with span("train", "first epoch"):
            work()
            with span("inner"):
                work()
        with span("load"):
            work()
        work()  # outside of spans: the client's job
        monitor.stop()
        for recording in self.csv(monitor):
            at = dict.fromkeys((row[0], row[1]) for row in recording.rows if row[recording.columns.index("tasks")])
            self.assertEqual(list(at), [(0, 0), (1, 0), (1, 1), (0, 1), (2, 0)])
        self.assertEqual(monitor.successful_jobs(), [0, 1, 2])
        folder = self.root / "of-spans"
        monitor.to_csv(folder)
        for how in ({}, {"per_dag": True}):
            self.assertEqual(monitor.get_peaks("total-mem", **how), Monitor.peaks_from_csv(folder, "total-mem", **how))

    def test_workers_that_come_and_go_as_there_is_work(self):
        with LocalCluster(n_workers=0, threads_per_worker=1, processes=False, dashboard_address=None) as cluster, Client(cluster) as client:
            cluster.adapt(minimum=1, maximum=4, interval="50ms", wait_count=2, target_duration="100ms")
            client.wait_for_workers(1)
            with Monitor(client, tracking=["compute-util", "tasks"], polling_interval=INTERVAL_MS) as monitor:
                for turn in range(2):
                    wait = client.map(sleep, [0.5 + i / 100 for i in range(8)], pure=False)
                    until(lambda: self.workers(client) == 4, "as many workers as there may be")
                    client.gather(wait)
                    del wait
                    until(lambda: self.workers(client) == 1, "those that have nothing to do have left")
            recordings = self.csv(monitor, identity=True)
            self.assertGreater(len(recordings), 4)  # some were restarted as new workers
            of_tasks = {key for recording in recordings for keys in self.column(recording, "tasks") for key in keys}
            self.assertEqual(len(of_tasks), 16)
            gone = [recording for recording in recordings if recording.rows and recording.rows[-1][0] == 0 and not recording.rows[-1][-8]]
            self.assertTrue(gone)
            folder = self.root / "out"
            monitor.to_csv(folder)
            self.assertEqual(Monitor.peaks_from_csv(folder, "compute-util"), monitor.get_peaks("compute-util"))

    def test_a_cluster_without_gpus(self):
        """Metrics without GPUs are recorded; the others are missing, without an error."""
        os.environ["SONDE_NVML"] = "/nowhere/libnvidia-ml.so.1"
        with self.cluster(4, processes=False) as (cluster, client):
            with Monitor(client, tracking=["compute-util", "cpu", "rss", "managed", "tasks"], polling_interval=INTERVAL_MS) as monitor:
                client.gather(client.map(sleep, [0.3, 0.31, 0.32, 0.33]))
                until(lambda: all(monitor.get_peaks("rss")), "a value of each worker")
            for recording in self.csv(monitor):
                self.assertTrue(any(self.column(recording, "tasks")))
                self.assertEqual([cell for cell in self.column(recording, "compute-util") if cell], [])
                self.assertTrue(any(rss and rss[0] > 1 << 20 for rss in self.column(recording, "rss")))
            monitor.to_csv(self.root / "out")
            for peaks in (lambda: monitor.get_peaks("compute-util"), lambda: Monitor.peaks_from_csv(self.root / "out", "compute-util")):
                with self.assertWarnsRegex(RuntimeWarning, "compute-util has no value"):
                    self.assertEqual(peaks(), [{}] * 4)
            self.assertTrue(all(rss > 1 << 20 for [rss] in monitor.get_peaks("rss", per_job=False)))
            self.assertEqual(monitor.errors(), [])

    def workers(self, client):
        return client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.workers))


if __name__ == "__main__":
    print(f"distributed {sys.modules['distributed'].__version__}")
    main()
