"""Recordings as Arrow tables and Parquet files: types instead of texts, null for missing values."""

import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

sys.path.insert(0, os.environ["PACKAGE"])
from sonde.dask import _csv, _tables  # noqa: E402
from sonde.dask._settings import KINDS  # noqa: E402

try:
    import pyarrow
    from pyarrow import parquet
except ImportError:
    pyarrow = None

COLUMNS = ["job", "dag", "timestamp", "total-mem", "mem-util", "cpu", "rss", "tasks", "power"]
IDENTITY = ["tcp://h:1", "w-1", "h", 77, "GPU-a, GPU-b", "0, 1", 1.5e9]
ROWS = [
    (1, 0, 0.5, [1 << 40, None], [1, 2.5], [150], [1 << 33], [("x", 0), "a, b"], [None, 3]),
    (2, 1, 0.75, [], [None, None], [], [None], [], 7),
]


def recorded(*workers):
    """Like `_rows.Rows`, the source of the tables."""

    def rows(worker, identity):
        for row in ROWS:
            yield [*row, *(IDENTITY if identity else ())]

    return types.SimpleNamespace(columns=COLUMNS, workers=list(workers), of=rows)


class NoPyarrow(unittest.TestCase):
    def test_says_what_to_install(self):
        text = "import sys; sys.modules['pyarrow'] = None; from sonde.dask import _tables as t; t.to_arrow(0, [], [])"
        result = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": os.environ["PACKAGE"]})
        self.assertIn("ImportError: Arrow tables and Parquet files need pyarrow (pip install pyarrow)", result.stderr)


@unittest.skipUnless(pyarrow, "pyarrow is not here")
class Tables(unittest.TestCase):
    def test_bytes_are_whole_numbers(self):
        of_bytes = [name for name, (_, metric) in KINDS.items() if metric.endswith("_bytes")]
        self.assertIn("unmanaged", of_bytes)
        schema = _tables.to_arrow(0, of_bytes, []).schema
        self.assertEqual({str(schema.field(name).type) for name in of_bytes}, {"int64", "list<item: int64>"})

    def test_types_and_nulls(self):
        table = _tables.to_arrow(3, COLUMNS, ROWS)
        self.assertEqual({name: str(table.schema.field(name).type).replace("element: ", "item: ") for name in table.column_names}, {
            "worker": "int64", "job": "int64", "dag": "int64", "timestamp": "double", "total-mem": "list<item: int64>", "mem-util": "list<item: double>",
            "cpu": "double", "rss": "int64", "tasks": "list<item: string>", "power": "list<item: double>",
        })  # fmt: skip
        self.assertEqual(table.to_pylist(), [
            {"worker": 3, "job": 1, "dag": 0, "timestamp": 0.5, "total-mem": [1 << 40, None], "mem-util": [1.0, 2.5], "cpu": 150.0, "rss": 1 << 33,
             "tasks": ["('x', 0)", "'a, b'"], "power": [None, 3.0]},
            {"worker": 3, "job": 2, "dag": 1, "timestamp": 0.75, "total-mem": [], "mem-util": [None, None], "cpu": None, "rss": None, "tasks": [], "power": [7.0]},
        ])  # fmt: skip

    def test_several_workers_are_one_table(self):
        table = _tables.whole(recorded(0, 2), identity=True)
        self.assertEqual(table.column("worker").to_pylist(), [0, 0, 2, 2])
        self.assertEqual(table.to_pylist()[1]["pid"], 77)
        self.assertEqual([table.to_pylist()[0][name] for name in table.column_names[-7:]], IDENTITY)
        none = _tables.whole(recorded())
        self.assertEqual((none.num_rows, none.schema), (0, _tables.to_arrow(0, COLUMNS, ROWS).schema))

    def test_parquet(self):
        with tempfile.TemporaryDirectory(prefix="sp-") as place:
            folder = pathlib.Path(place) / "new"
            written = _tables.write_parquet(recorded(0, 10), folder, fname="part")
            self.assertEqual(written, [str(folder / f"part_{n}.parquet") for n in (0, 10)])
            self.assertEqual(sorted(os.listdir(folder)), ["part_0.parquet", "part_10.parquet"])
            self.assertEqual(parquet.read_table(written[1]), _tables.to_arrow(10, COLUMNS, ROWS))
            self.assertEqual(parquet.read_table(folder).num_rows, 4)

    def test_a_recording_that_was_read_back(self):
        with tempfile.TemporaryDirectory(prefix="sp-") as place:
            _csv.write(place + "/worker_0.csv", COLUMNS, ROWS)
            back = _csv.read(place + "/worker_0.csv")
        again, whole = (_tables.to_arrow(0, columns, rows).to_pylist() for columns, rows in ((back.columns, back.rows), (COLUMNS, ROWS)))
        self.assertEqual(again, whole)


if __name__ == "__main__":
    unittest.main()
