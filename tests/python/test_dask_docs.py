"""The programs in docs/dask.md, unchanged except for the scheduler's address, under the names
sonde.dask and dask_metrics."""

import ast
import os
import pathlib
import re
import sys
import textwrap

# Dask would query the fake GPUs for values that they lack
os.environ |= {"MPLBACKEND": "Agg", "DASK_DISTRIBUTED__DIAGNOSTICS__NVML": "False"}
from published import BENCHMARK  # noqa: E402
from dask_clusters import GPUS, Clusters, sleep  # noqa: E402
from place import main, until  # noqa: E402

from distributed import Client  # noqa: E402

from sonde.dask import Monitor, _csv  # noqa: E402

try:
    import matplotlib  # noqa: F401
    import pynvml  # noqa: F401
except ImportError:
    print("Matplotlib or pynvml is not here (tools/test installs them): nothing is tested")
    sys.exit(77)

TEXT = (pathlib.Path(os.environ["SOURCE"]) / "docs/dask.md").read_text()
BLOCKS = [textwrap.dedent(block) for block in re.findall(r"^ *```python\n(.*?)^ *```$", TEXT, re.DOTALL | re.MULTILINE)]
WORKERS = 9  # workers=[0, 8]


class Docs(Clusters):
    def setUp(self):
        super().setUp()
        self.left = set(BLOCKS)

    def block(self, word):
        """Runs the only block that contains this word. Returns the values of its expressions."""
        [block] = [block for block in BLOCKS if word in block]
        self.left.discard(block)
        values = []
        for statement in ast.parse(block.replace("[scheduler address]", self.address).replace("sonde.dask", self.module)).body:
            if isinstance(statement, ast.Expr):
                values.append(eval(compile(ast.Expression(statement.value), "docs/dask.md", "eval"), self.names))
            else:
                exec(compile(ast.Module([statement], []), "docs/dask.md", "exec"), self.names)
        return values

    def test_every_block_under_both_names(self):
        with self.cluster(WORKERS, processes=False) as (cluster, client):
            self.address = cluster.scheduler_address
            for self.module in ("sonde.dask", "dask_metrics"):
                self.names = {"__name__": "__main__", "client": client, "run_the_jobs": self.run_the_jobs, "run_query": self.run_query}
                with self.subTest(self.module):
                    self.how_to_use_it(client)
                    self.metrics_of_ones_own()
                    self.a_benchmark()
            self.pictures()
        self.assertEqual(self.left, set())

    def run_the_jobs(self, client):
        client.gather(client.map(sleep, [0.25] * WORKERS, pure=False))

    def run_query(self, query, client):
        client.submit(sleep, 0.01, pure=False).result()

    def how_to_use_it(self, client):
        self.block("monitor.start()")
        with Client(self.address) as user:
            self.run_the_jobs(user)
        *_, files, _ = self.block("monitor.stop()")
        self.assertEqual([os.path.basename(file) for file in files], [f"worker_{number}.csv" for number in range(WORKERS)])
        self.names["client"] = client
        self.block("with Monitor(")
        self.assertEqual(_csv.read("path/to/folder/worker_8.csv").columns, ["job", "dag", "timestamp", "mem-util", "compute-util"])
        live, of_files = self.block("get_peaks")
        self.assertEqual(live, of_files)
        self.assertEqual([{job: len(values) for job, values in jobs.items()} for jobs in live], [{0: GPUS}, {0: GPUS}])
        self.assertEqual(self.block("monitor.report("), ["run.html"])
        everything = Monitor(client).get_peaks("compute-util")
        self.assertEqual((len(everything), live), (WORKERS, [everything[0], everything[8]]))

    def metrics_of_ones_own(self):
        self.block("@custom_metric")
        monitor = self.names["monitor"]
        monitor.start()
        until(lambda: monitor.get_peaks("power", workers=[3])[0], "a value")
        monitor.stop()
        # from the fake NVML
        self.assertEqual(monitor.get_peaks("power", workers=[3], per_job=False), [[350500] * GPUS])
        self.assertEqual(monitor.errors(), [])

    def a_benchmark(self):
        monitor = self.names["monitor"]
        monitor.attach(tracking=["total-mem"], job_type="manual", polling_interval=50)
        monitor.start()
        self.block("run_query(query, client)")
        monitor.stop()
        self.assertEqual(monitor.successful_jobs(), list(range(1, 31)))

    def pictures(self):
        """From the published recording if it is available, under the name of mem-util in
        docs/dask.md; else from a generated one."""
        columns = ["job", "dag", "timestamp", "mem-activity", "compute-util"]
        rows = [(job, i // 40, job * 100 + i / 5, [i % 50] * 8, [(i * 7 + gpu) % 101 for gpu in range(8)]) for job in (3, 4, 12) for i in range(200)]
        if BENCHMARK.is_dir():
            published = _csv.read(BENCHMARK / "worker_0.csv.gz")
            columns, rows = [{"mem-util": "mem-activity"}.get(column, column) for column in published.columns], published.rows
        _csv.write("path/to/worker_0.csv", columns, rows)
        for self.module in ("sonde.dask", "dask_metrics"):
            lines, boxes, heat = self.block("vis.lines")
            self.assertEqual([len(axis.get_lines()) for axis in lines.axes], [8, 8])
            # with a colour scale beside each
            self.assertEqual((len(boxes.axes), len(heat.axes)), (2, 4))


if __name__ == "__main__":
    main()
