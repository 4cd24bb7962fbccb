"""A benchmark under sonde.dask, as docs/dask.md describes it for GPU-BDB: queries are jobs;
afterwards its files, peaks, tables and pictures agree."""

import os
import sys
import unittest

# Dask would query the fake GPUs for values that they lack
os.environ |= {"MPLBACKEND": "Agg", "DASK_DISTRIBUTED__DIAGNOSTICS__NVML": "False"}
from dask_clusters import GPUS, INTERVAL_MS, Clusters, sleep  # noqa: E402

from distributed import Client  # noqa: E402

from sonde.dask import Monitor, _csv, custom_metric  # noqa: E402
from sonde.dask import visualize as vis  # noqa: E402

try:
    import matplotlib  # noqa: F401
    import pyarrow  # noqa: F401
except ImportError:
    print("Matplotlib or pyarrow is not here (tools/test installs them): nothing is tested")
    sys.exit(77)

TRACKING = ["total-mem", "mem-util", "compute-util", "tasks", "rss"]
QUERIES = (3, 27)


@custom_metric("spread", per_device=False)
def spread(worker, handles):
    """Returns how unevenly the GPUs are busy."""
    busy = [handle.utilization() for handle in handles]
    return (max(busy) - min(busy)) / 2


class Benchmark(Clusters):
    def test_queries_are_jobs(self):
        with self.cluster(2) as (cluster, client):
            monitor = Monitor(client)
            monitor.attach(tracking=TRACKING, custom_metrics=[spread], job_type="manual", polling_interval=INTERVAL_MS)
            monitor.start()
            for query in QUERIES:
                with Client(cluster) as script:  # each query has a client of its own
                    Monitor(script).new_job(job=query)
                    script.gather(script.map(sleep, [0.3, 0.3], pure=False))
                    script.gather(script.map(sleep, [0.2, 0.2], pure=False))
            monitor.stop()
            folder = self.root / "out"
            files = monitor.to_csv(folder, identity=True)
            for metric in ("total-mem", "spread"):
                live = monitor.get_peaks(metric)
                self.assertEqual(live, Monitor.peaks_from_csv(folder, metric))
                self.assertEqual([set(QUERIES) <= set(jobs) for jobs in live], [True] * 2)
            self.assertEqual(monitor.errors(), [])
            table = monitor.to_arrow(identity=True)
            parts = monitor.to_parquet(self.root / "tables", fname="part", identity=True)
        self.assertEqual([os.path.basename(part) for part in parts], ["part_0.parquet", "part_1.parquet"])
        self.same(table, [_csv.read(file) for file in files])
        self.draw(files[1])

    def same(self, table, recordings):
        """Asserts that the table has the same rows as the files."""
        rows = table.to_pylist()
        for worker, recording in enumerate(recordings):
            mine = [row for row in rows if row["worker"] == worker]
            for column in ("job", "dag", "timestamp", "total-mem", "mem-util", "spread"):
                place = recording.columns.index(column)
                # a single missing value: an empty cell
                empty = [None] if column == "spread" else []
                self.assertEqual([row[column] for row in mine], [row[place] if row[place] != [] else empty for row in recording.rows], column)
            self.assertTrue(all(row["rss"] is None or row["rss"] > 1 << 20 for row in mine))
            self.assertEqual({row["gpu-index"] for row in mine}, {", ".join(map(str, range(GPUS)))})

    def draw(self, file):
        for query in QUERIES:
            figure = vis.lines(file, query, ["compute-util", "tasks", "spread"], save=self.root / "lines.png")
            self.assertEqual([len(axis.get_lines()) for axis in figure.axes], [GPUS, 1, 1])
            self.assertEqual(len(vis.boxes(file, query, ["compute-util"], freq=3, save=self.root / "boxes.png").axes), 1)


if __name__ == "__main__":
    unittest.main()
