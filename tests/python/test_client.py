"""sonde.AnalysisClient inside of jobs, beside them, and on recordings: a running job gives the same
answers as its recording."""

import errno
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import unittest

try:
    import pyarrow
except ImportError:
    pyarrow = None
try:
    import pandas
except ImportError:
    pandas = None

from client_place import PACKAGE, Asking
from place import PATIENCE_S, SONDE, main, until

import sonde


class Found(Asking):
    """The default target of a client."""

    def test_after_the_job_its_recording(self):
        with self.assertRaises(sonde.ClientError) as nothing, sonde.AnalysisClient():
            pass
        self.assertEqual(nothing.exception.errno, errno.ENOENT)
        for job in ("first", "second"):
            self.sonde("run", "-q", "-l", "1", "--", "sonde", "put", job, "1", env={"SONDE_JOB": job})
        with sonde.AnalysisClient() as client:
            self.assertEqual([list(series.values) for series in client.query("second")], [[1.0]])
        os.environ["SONDE_JOB"] = "first"
        with sonde.AnalysisClient() as client:
            self.assertEqual([list(series.values) for series in client.query("first")], [[1.0]])

    def test_a_job_is_asked_first(self):
        self.sonde("run", "-q", "-l", "1", "--", "sonde", "put", "past", "1")
        url = self.start_job()
        with sonde.AnalysisClient() as client:
            self.assertIn(url, repr(client))


class Statistics(Asking):
    """stats() and peaks(), compared with `sonde stats --json` and `sonde peaks --json`."""

    def record(self, some):
        """Records random points of ranks and GPUs, some of them equal peaks, and spans of the
        ranks."""
        base = 1_700_000_000_000
        lines = []
        for rank in range(3):
            for gpu in range(2):
                t = base
                for _ in range(some.choice((1, 3, 40))):
                    t += some.choice((1, 10, 10, 10, 700))
                    lines.append(f"put power {t} {some.choice((9.0, 9.0, some.uniform(-5, 9)))!r} rank={rank} gpu={gpu}")
                    lines.append(f"put joules_total {t} {t - base} rank={rank} gpu={gpu}")
        (self.root / "lines").write_text("\n".join(lines) + "\n")
        program = self.root / "spans.py"
        program.write_text(textwrap.dedent(f"""
            import sonde, time
            for i in range(4):
                with sonde.span("step", rank=i % 3):
                    for gpu in range(2):
                        sonde.emit("power", i * gpu, rank=i % 3, gpu=gpu)
        """))
        done = self.sonde("run", "-q", "-l", "1", "--", "sh", "-c", f"sonde put < {self.root}/lines && {sys.executable} {program}", env={"SONDE_JOB": "known"})
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_same_as_the_command(self):
        seed = int(os.environ.get("SONDE_TEST_SEED") or 20)
        self.record(random.Random(seed))
        with sonde.AnalysisClient("known") as client:
            for expressions, by, span in itertools.product(("power", "none:rate:joules_total", "sum:1s-avg:power{rank=*}", "none:1s-max:power{gpu=1}"), (None, "rank", ("gpu", "host"), ()), (None, "step")):
                words = ["stats", "--json", expressions, "known", *(["--per-span", span] if span else []), *(["--by", ",".join([by] if isinstance(by, str) else by or ["none"])] if by is not None else [])]
                done = self.sonde(*words)
                self.assertEqual(done.returncode, 0, (seed, words, done.stderr))
                self.assertEqual(list(client.stats(expressions, by, span=span)), json.loads(done.stdout), (seed, words))
            for by in ((), "rank", ("rank", "gpu")):
                rows = json.loads(self.sonde("peaks", "--json", "power", "known", "--by", ",".join([by] if isinstance(by, str) else by) or "none").stdout)
                found = {tuple(series.tags[key] for key in ([by] if isinstance(by, str) else by)): (series.values[0], series.times[0], series.tags) for series in client.peaks("power", by)}
                self.assertEqual(found, {tuple(row["tags"].values()) if isinstance(by, str) else tuple(row["tags"][key] for key in by): (row["max"], row["max_ns"], row["max_tags"]) for row in rows}, (seed, by))
            self.assertEqual(list(client.stats("power", end=1_600_000_000)), [])
            self.assertEqual({row["metric"] for row in client.stats()}, {"power", "joules_total"})
            self.assertEqual(list(client.stats(["power", "joules_total"])), list(client.stats("power")) + list(sonde.stats("joules_total", where="known")))
            with self.assertRaises(sonde.ClientError):
                client.stats("nobody")
        self.assertEqual([list(series) for series in sonde.peaks("power", "rank", where="known")], [list(series) for series in sonde.AnalysisClient("known").peaks("power", "rank")])


class Titles(Asking):
    """The title in `sonde status` of a job that a library has started."""

    def shown(self, **env):
        code = 'import json, subprocess; from sonde import _service; _service.start(1); print(subprocess.run(["sonde", "status", "--json"], capture_output=True, text=True).stdout); _service.stop()'
        done = subprocess.run([sys.executable, "-c", code], env=self.env | env, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)[0]["command"]

    def test_the_program_or_the_notebook(self):
        self.assertRegex(self.shown(), r"^\S*python\S* -c 'import json, subprocess; from sonde")
        self.assertEqual(self.shown(JPY_SESSION_NAME="/home/u/train.ipynb"), "notebook /home/u/train.ipynb")


class Pandas(Asking):
    RECORD = "put loss 1700000000 1 rank=0\nput loss 1700000001 2 rank=0\nput loss 1700000000 3 rank=1 time=x\n"
    ASK = """
        import sys
        for name in sys.argv[1:]:
            sys.modules[name] = None  # as if it were not installed
        import sonde
        with sonde.AnalysisClient("known") as client:
            table = client.frame("loss").to_pandas()
            print(table.drop(columns="host").to_csv(index=False), end="")
            print([str(kind) for kind in table.dtypes][:2], len(client.frame("loss", start=1_700_010_000).to_pandas()))
    """

    def table(self, *without):
        self.sonde("run", "-q", "-l", "1", "--", "sonde", "put", stdin=self.RECORD, env={"SONDE_JOB": "known"})
        return subprocess.run([sys.executable, "-c", textwrap.dedent(self.ASK), *without], env=self.env, capture_output=True, text=True)

    @unittest.skipIf(pandas is None, "no pandas here")
    def test_without_pyarrow(self):
        for without in (["pyarrow"], [] if pyarrow else ["pyarrow"]):
            answer = self.table(*without)
            self.assertEqual(answer.stdout, """\
time,value,metric,rank,tag.time
2023-11-14 22:13:20+00:00,1.0,loss,0,
2023-11-14 22:13:21+00:00,2.0,loss,0,
2023-11-14 22:13:20+00:00,3.0,loss,1,x
['datetime64[ns, UTC]', 'float64'] 0
""", answer.stderr)

    def test_without_pandas(self):
        self.assertIn("to_pandas() needs pandas: pip install pandas", self.table("pandas").stderr)


# The recorded data: two ranks' losses for 100 s, a counter, spans, an annotation. T: see NS.
T = 1_700_000_000

NS = 1_000_000_000

WRITE = """
    import os
    T, NS = 1_700_000_000, 1_000_000_000
    for rank in range(2):
        loss, steps = sonde.gauge("loss", "nats", tags={"rank": rank, "k": "a|b"}), sonde.counter("steps_total", tags={"rank": rank})
        for i in range(1000):
            loss.emit(100 * rank + (i * 37) % 1000 / 10, T * NS + i * NS // 10)
            steps.emit(i * (rank + 1), T * NS + i * NS // 10)
    sonde.emit("other", 1)
    with sonde.span("work", number=1): pass
    sonde.annotate("a remark", why="none")
    there = sonde.AnalysisClient()
    there.connect(timeout=300)
    def all_of_it():
        try: return len(there.query("none:loss")[1]) + len(there.query("none:steps_total")[1]) == 2000 and there.query("other") and there.spans("work") and there.annotations()
        except (IndexError, RuntimeError): return False
    while not all_of_it(): time.sleep(0.01)
"""


# Each of these returns the same from the running job as from its recording.
QUESTIONS = [
    'c.query("loss")', 'c.query("none:loss{rank=1}")', 'c.query("sum:10s-avg:loss")', 'c.query("avg:1m-p95-nan:loss{rank=*}", start=1_700_000_000, end=1_700_000_200)',
    'c.query(metric="loss", tags={"rank": [0, 1]}, by="rank", downsample="30s-max")', 'c.query(metric="loss", tags={"rank": 1, "k": "*"}, aggregator="max", downsample="0all-min")',
    'c.query(metric="loss", by=["rank", "host"], aggregator="count", downsample="1m-count", start="2023/11/14-22:13:20", end=datetime.datetime(2023, 11, 14, 22, 15, tzinfo=datetime.timezone.utc))',
    'c.query(metric="steps_total", rate=True, downsample="10s-last", by="rank")', 'c.query("rate:none:steps_total")', 'c.query(metric="steps_total", rate="dropcounter", start=1_700_000_001)',
    'c.query(metric="loss", start=1_700_010_000)', 'c.query("none:nobody")', 'c.query("loss:")', 'c.query(metric="loss", downsample="fast")',
    'c.peaks("loss")', 'c.peaks("loss", "host")', 'c.peaks("loss", ["rank"], tags={"rank": "1|7"}, start=1_700_000_033.3, end=1_700_000_060.05)', 'c.peaks("steps_total", by=("no_such_tag",))',
    'c.peaks("loss", start=1_700_010_000)', 'c.peaks("nobody")',
    'c.metrics()', 'c.metrics("oss")', 'c.series("loss{rank=1}")', 'c.series("*", limit=2)', 'c.spans()', 'c.spans("work", tags={"number": "1"})', 'c.spans("nobody")', 'c.annotations()',
    'c.annotations(tags={"why": "other"})', 'c.query(metric="other", span="work", downsample="count")', 'c.query(metric="loss", span="work", downsample="1s-max")',
    'c.query(metric="steps_total", span="work", span_tags={"number": 1}, downsample="max", span_node=True)',
    'c.get_data("loss", {"rank": "1"}, 1_700_000_000)', 'c.get_data(["steps_total", "nobody"], start_time=1_700_000_090)', 'sorted(c.get_metrics())',
    '[(n["host"], n["job"], n["series"]) for n in c.nodes()]',
]

SHOW = """
    import datetime, math
    def plain(x):
        if isinstance(x, float): return repr(x)
        if isinstance(x, sonde.Series):
            return [x.metric, x.unit, x.kind, x.tags, x.aggregate_tags, x.source_series, x.estimated, [[t, repr(v)] for t, v in x]]
        if isinstance(x, sonde.Result): return [plain(s) for s in x] + [x.missing]
        if isinstance(x, dict): return {k: plain(v) for k, v in x.items()}
        return [plain(v) for v in x] if isinstance(x, (list, tuple)) else x
    def answers(c, questions):
        found = []
        for question in questions:
            try: found.append(plain(eval(question)))
            except Exception as e: found.append([type(e).__name__, str(e)])
        return found
"""


class Both(Asking):
    """A job that runs all queries on itself, and its recording's answers to them."""

    def record(self, text="", *more):
        self.recording = self.root / "recording"
        return self.run_it(textwrap.dedent(WRITE) + textwrap.dedent(text), "-l", "1", "--record", self.recording, *more)

    def test_the_same_answers(self):
        live = json.loads(self.record(textwrap.dedent(SHOW) + f"print(json.dumps(answers(there, {QUESTIONS!r})))"))
        there = {"sonde": sonde}
        exec(textwrap.dedent(SHOW), there)
        with sonde.AnalysisClient(self.recording) as client:
            recorded = json.loads(json.dumps(there["answers"](client, QUESTIONS)))
        for question, one, other in zip(QUESTIONS, live, recorded):
            self.assertEqual(one, other, question)
        # And the answers are correct.
        said = dict(zip(QUESTIONS, recorded))
        host = said['c.query("loss")'][0][3]["host"]
        self.assertEqual([s[3] for s in said['c.query("loss")'][:2]], [{"host": host, "k": "a|b", "rank": str(r)} for r in range(2)])
        self.assertEqual(said['c.query("loss")'][1][7][:2], [[T * NS, "100.0"], [T * NS + NS // 10, "103.7"]])
        self.assertEqual(said['c.peaks("loss")'], [["loss", "nats", "gauge", {"host": host, "k": "a|b", "rank": str(r)}, [], 1, False, [[T * NS + 27 * NS // 10, repr(100.0 * r + 99.9)]]] for r in range(2)]
                         + [""])
        values = [(100 + i * 37 % 1000 / 10, -i) for i in range(333, 601)]
        highest, when = max(values)
        self.assertEqual(said[QUESTIONS[16]][0][7], [[T * NS - when * NS // 10, repr(highest)]])
        self.assertEqual([s[7] for s in said['c.query(metric="other", span="work", downsample="count")'][:-1]], [])
        self.assertEqual(said['c.query("none:nobody")'], ["ClientError", "No such name for 'metrics': 'nobody'"])
        self.assertIn("0all-FUNCTION", said['c.query(metric="loss", span="work", downsample="1s-max")'][1])
        self.assertEqual(said['c.peaks("loss", start=1_700_010_000)'], [""])
        self.assertEqual(len(said['c.series("*", limit=2)']), 2)

    def test_per_span_on_the_command_line(self):
        """The command line returns the same as the client."""
        self.recording = self.root / "recording"
        self.run_it("""
            for i in range(3):
                with sonde.span("epoch", number=i):
                    sonde.emit("loss", i); sonde.emit("loss", 10 * i)
        """, "-l", "1", "--record", self.recording)
        with sonde.AnalysisClient(self.recording) as client:
            wanted = {s.tags["number"]: {str(t // 1_000_000): v for t, v in s} for s in client.query(metric="loss", span="epoch", downsample="max")}
        result = self.sonde("query", "--json", "--per-span", "epoch", "none:0all-max:loss", self.recording)
        self.assertEqual({s["tags"]["number"]: s["dps"] for s in json.loads(result.stdout)}, wanted)
        self.assertEqual(sorted(next(iter(dps.values())) for dps in wanted.values()), [0, 10, 20])
        wrong = self.sonde("query", "--per-span", "epoch", "none:1s-max:loss", self.recording)
        self.one_line(wrong, 1, "0all-FUNCTION")

    def test_in_c(self):
        """examples/peaks.c, linked with the shared library, prints the same peaks, and waits for a
        value."""
        self.record()
        with sonde.AnalysisClient(self.recording) as client:
            [peak] = client.peaks("loss", "host")
        result = subprocess.run([os.environ["PEAKS"], "loss", self.recording], env=self.env, capture_output=True, text=True)
        self.assertEqual(result.stdout.split(), [peak.tags["host"], "2023-11-14", "22:13:22", str(peak.values[0]), "nats"], result.stderr)
        result = subprocess.run([os.environ["PEAKS"], "loss"], env=self.env, capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("no job runs here", result.stderr)
        self.start_job()
        until(lambda: not self.sonde("put", "x", "1").returncode, "an agent")
        waiting = subprocess.Popen([os.environ["PEAKS"], "-w", "90", "x"], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.started.append(waiting)
        value = 0
        while waiting.poll() is None:  # the program may not watch yet
            value += 1
            self.sonde("put", "x", value % 100)
        self.assertGreater(float(waiting.stdout.read().split()[3]), 90)

    def test_where(self):
        self.record()
        [file] = self.recording.glob("*.sonde")
        self.env["SONDE_JOB"] = "kept"
        self.run_it("sonde.emit('x', 1)", "-l", "1")
        for where, metric in ((self.recording, "loss"), (str(file), "loss"), ("kept", "x")):
            with sonde.AnalysisClient(where) as client:
                self.assertIn(metric, client.get_metrics())
                self.assertIn(str(where), repr(client))
        self.assertEqual([list(s["dps"].values()) for s in sonde_data(self.recording, "other")], [[1]])
        (self.root / "empty").mkdir()
        (self.root / "torn.sonde").write_bytes(b"x" * 5000)
        for where, words in ((self.root / "empty", "no recording"), (self.root / "none", "cannot open"), (self.root / "torn.sonde", "torn.sonde"), ("nobody", "job or address"),
                             ("http:/", "cannot open"), ("x://y", "not an? .*address")):
            with self.assertRaisesRegex(sonde.ClientError, words):
                sonde.AnalysisClient(where).connect()
        with sonde.AnalysisClient(self.recording) as client:
            with self.assertRaisesRegex(RuntimeError, "running jobs do"):
                client.reboot()

    def test_mistakes(self):
        self.record()
        client = sonde.AnalysisClient(self.recording)
        for wrong, error in ((lambda: client.query(), RuntimeError), (lambda: client.query("a:b", metric="c"), TypeError), (lambda: client.query("loss", metric="c"), TypeError),
                             (lambda: client.query("sum:loss", by="rank"), TypeError), (lambda: client.query(metric="loss", rate="fast"), ValueError),
                             (lambda: client.query(metric="loss", tags=dict.fromkeys(map(str, range(99)), 1)), ValueError), (lambda: client.query("loss")[7], IndexError),
                             (lambda: client.query(metric="loss", span_node=True), RuntimeError), (lambda: client.watch("loss", "about 90", print), ValueError),
                             (lambda: client.watch("loss", "> x", print), ValueError), (lambda: client.peaks("loss", by=list("abcdefghijklmnopqrst")), ValueError)):
            with self.assertRaises(error):
                wrong()
        result = client.query("loss")
        client.close()
        with self.assertRaisesRegex(RuntimeError, "connect"):
            client.get_metrics()
        self.assertEqual((len(result), len(result[0]), len(result[-1]), len(result[:])), (2, 1000, 1000, 2))
        self.assertEqual(client.query("loss")[0].values[1], 3.7)  # reopened

    def test_references_are_counted(self):
        self.record()
        import gc
        import sys as system
        client = sonde.AnalysisClient(self.recording)

        def all_of_it():
            result = client.query("loss")
            list(result), result[0].tags, result[0].times, repr(result[1]), client.peaks("loss", "rank")
            result.frame().__arrow_c_stream__()
            for wrong in (lambda: client.query("none:nobody"), lambda: result[9], lambda: client.query(metric="loss", tags={"a": 1}, by=["b"] * 99)):
                try:
                    wrong()
                except Exception:
                    pass
        for _ in range(20):
            all_of_it()
        gc.collect()
        before = system.getallocatedblocks()
        for _ in range(100):
            all_of_it()
        gc.collect()
        self.assertLess(system.getallocatedblocks() - before, 100)

    @unittest.skipIf(pyarrow is None, "no pyarrow here")
    def test_arrow(self):
        self.record()
        client = sonde.AnalysisClient(self.recording)
        frame = client.frame("none:loss{rank=1}")
        table = frame.to_arrow()
        table.validate(full=True)
        self.assertEqual(table.schema.names, ["time", "value", "metric", "host", "k", "rank"])
        self.assertEqual([str(f.type) for f in table.schema][:3], ["timestamp[ns, tz=UTC]", "double", "dictionary<values=string, indices=int32, ordered=0>"])
        [series] = client.query("none:loss{rank=1}")
        self.assertEqual((table["time"].cast("int64").to_pylist(), table["value"].to_pylist()), (list(series.times), list(series.values)))
        self.assertEqual((set(table["rank"].to_pylist()), set(table["metric"].to_pylist())), ({"1"}, {"loss"}))
        both = pyarrow.table(client.query("loss").frame()) if hasattr(pyarrow, "table") else None
        self.assertEqual((both.num_rows, both["rank"].to_pylist()), (2000, ["0"] * 1000 + ["1"] * 1000))
        empty = client.frame("loss", start=1_700_010_000).to_arrow()
        self.assertEqual((empty.num_rows, empty.schema.names), (0, ["time", "value", "metric"]))
        # The reader outlives the objects that it came from.
        reader = pyarrow.RecordBatchReader.from_stream(client.frame("loss"))
        client.close()
        self.assertEqual(reader.read_all().num_rows, 2000)
        self.assertEqual(table["value"].to_pylist(), list(series.values))

    @unittest.skipIf(pyarrow is None, "no pyarrow here")
    def test_long_series_are_not_copied(self):
        self.recording = self.root / "recording"
        self.run_it("""
            m = sonde.gauge("m")
            for k in range(4):
                for i in range(1000): m.emit(k * 1000 + i, (1_700_000_000_000 + k * 1000 + i) * 1_000_000)
                time.sleep(0.05)
            short = [sonde.gauge("short", tags={"i": i, "odd" if i % 2 else "even": i, "time": "x"}) for i in range(3000)]
            for s in short: s(1)
        """, "-l", "1", "--record", self.recording)
        client = sonde.AnalysisClient(self.recording)
        result = client.query("m")
        one, other = result.frame().to_arrow(), result.frame().to_arrow()
        for column in ("time", "value"):
            [a], [b] = one[column].chunks, other[column].chunks
            self.assertEqual(a.buffers()[1].address, b.buffers()[1].address, column)
            self.assertEqual(len(a), 4000)
        self.assertEqual(one["value"].to_pylist(), list(map(float, range(4000))))
        # Thousands of short series become a few batches, with nulls for missing tags.
        table = client.frame("short").to_arrow()
        table.validate(full=True)
        self.assertEqual((table.num_rows, table["value"].num_chunks, table["even"].null_count, table["odd"].null_count), (3000, 1, 1500, 1500))
        rows = zip(*(table[c].to_pylist() for c in ("i", "even", "odd", "tag.time")))
        self.assertEqual(sorted(rows), sorted((str(i), None if i % 2 else str(i), str(i) if i % 2 else None, "x") for i in range(3000)))


def sonde_data(where, metric):
    with sonde.AnalysisClient(where) as client:
        return client.get_data(metric)


class Https(Asking):
    def test_the_jobs_own_certificate_is_trusted_inside(self):
        certificate, key = self.root / "cert.pem", self.root / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=sonde",
                        "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        out = self.run_it("""
            import os
            with sonde.AnalysisClient() as client: print(repr(client)[:30], client.nodes() != [])
            del os.environ["SONDE_CA"]
            try: sonde.AnalysisClient().connect()
            except sonde.ClientError as error: print("SONDE_CA" in str(error))
        """, "-l", "1", "--no-record", "--tls-cert", certificate, "--tls-key", key)
        self.assertEqual(out, "<sonde.AnalysisClient https:// True\nTrue\n")


class Nodes(Asking):
    """A job of several nodes, which form a tree."""

    def setUp(self):
        super().setUp()
        self.simulation = subprocess.Popen([SONDE, "simulate", "--nodes=7", "--fanout=3", "--metrics=5", "--rate=0.2", "--history=1m"], stderr=subprocess.PIPE, text=True,
                                           env=self.env, cwd=self.root)
        self.started.append(self.simulation)
        url = ""
        while "http" not in url:
            url = self.simulation.stderr.readline()
            self.assertTrue(url, "it ended")
        self.client = sonde.AnalysisClient(url.split()[1], timeout=300)
        self.addCleanup(self.client.close)
        until(lambda: len(self.client.nodes()) == 7, "all nodes are there")

    def tearDown(self):
        self.simulation.send_signal(signal.SIGINT)
        self.assertEqual(self.simulation.wait(60), 0)
        super().tearDown()

    def test_frame(self):
        """The table equals the JSON, for all nodes."""
        ends = [node["last_ns"] / 1e9 for node in self.client.nodes()]
        start, end = int(min(ends)) - 30, int(min(ends)) - 1
        result = self.client.query("loss", start=start, end=end)
        body = {"start": start, "end": end, "queries": [{"metric": "loss", "aggregator": "none"}]}
        said = json.loads(self.client._open().ask("/sonde/v1/query", json.dumps(body)))["series"]
        self.assertEqual(result.missing, "")
        self.assertEqual([(s.tags, s.unit, list(s.times), list(s.values)) for s in result], [(s["tags"], s["unit"], s["t_ns"], s["values"]) for s in said])
        self.assertEqual(len({s.tags["host"] for s in result}), 7)
        if pyarrow:
            table = result.frame().to_arrow()
            self.assertEqual(table.num_rows, sum(len(s) for s in result))
            self.assertEqual(set(table["host"].to_pylist()), {f"n{i:05}" for i in range(7)})

    def test_watch(self):
        """Points of all nodes, each once and in order; equal to a later query."""
        seen, units = {}, set()

        def take(series, time_ns, value):
            units.add((series.unit, series.kind))
            seen.setdefault(series.tags["host"], []).append((time_ns, value))
        with self.client.watch("loss{host=*}", None, take):
            until(lambda: len(seen) == 7 and all(len(points) >= 10 for points in seen.values()), lambda: f"ten points of each node: {seen}")
        for series in self.client.query("loss"):
            points = seen[series.tags["host"]]
            self.assertEqual([point for point in series if points[0][0] <= point[0] <= points[-1][0]], points)
            self.assertEqual(units, {(series.unit, series.kind)})


class Together(Asking):
    def test_async(self):
        out = self.run_it("""
            import asyncio
            async def main():
                m = sonde.gauge("m")
                async with sonde.AsyncAnalysisClient(timeout=300) as client:
                    async def emit():
                        while True:  # as long as the watch waits: it does not hold up the loop
                            m(1); m(5)
                            await asyncio.sleep(0.01)
                    source = asyncio.create_task(emit())
                    async for series, time_ns, value in client.watch("m", "> 4"):
                        break
                    source.cancel()
                    assert (series.metric, value) == ("m", 5)
                    results = await asyncio.gather(*[client.query("m") for _ in range(20)])
                    assert all(len(r) == 1 for r in results)
                    assert await client.nodes() and await client.metrics() and await client.series() and await client.spans() == [] and await client.annotations() == []
                    assert (await client.peaks("m"))[0].values[0] == 5 and await client.frame("m")
            asyncio.run(main())
            print("done")
        """)
        self.assertEqual(out, "done\n")

    def test_children_and_threads(self):
        out = self.run_it("""
            import os, threading
            sonde.emit("x", 1)
            client = sonde.AnalysisClient()
            client.connect(timeout=300)
            while "x" not in client.get_metrics(): time.sleep(0.01)
            children = []
            for i in range(8):
                pid = os.fork()
                if not pid: os._exit(0 if all(len(client.query("x")) == 1 for _ in range(20)) else 1)
                children.append(pid)
            good = []
            threads = [threading.Thread(target=lambda: good.append(all(len(client.query("x")) == 1 for _ in range(20)))) for _ in range(16)]
            for t in threads: t.start()
            for t in threads: t.join()
            import pickle
            assert len(pickle.loads(pickle.dumps(client)).query("x")) == 1
            print([os.waitpid(pid, 0)[1] for pid in children] == [0] * 8, good == [True] * 16)
        """)
        self.assertEqual(out, "True True\n")

    def test_interrupt(self):
        """Ctrl-C ends a waiting request."""
        text = """
            import http.server, signal, sonde, threading
            asked = threading.Event()
            class Never(http.server.BaseHTTPRequestHandler):
                def do_GET(self):
                    asked.set()
                    threading.Event().wait()
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Never)
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, daemon=True).start()
            main = threading.main_thread().ident
            threading.Thread(target=lambda: (asked.wait(), signal.pthread_kill(main, signal.SIGINT)), daemon=True).start()
            try: sonde.AnalysisClient(f"http://127.0.0.1:{server.server_port}", timeout=600).connect()
            except KeyboardInterrupt: print("interrupted")
            try: sonde.AnalysisClient(f"http://127.0.0.1:{server.server_port}", timeout=0.3).connect()
            except sonde.ClientError as error: print(error.errno)
            try: sonde.AnalysisClient(f"http://127.0.0.1:{server.server_port}").connect(timeout=0.3)
            except sonde.ClientError as error: print(error.errno)
        """
        result = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], env=self.env, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
        self.assertEqual(result.stdout, f"interrupted\n{errno.ETIMEDOUT}\n{errno.ETIMEDOUT}\n", result.stderr)

    def test_twins(self):
        """Each method has a counterpart for coroutines."""
        plain = {n for n in vars(sonde.AnalysisClient) if not n.startswith("_")} - {"get_metrics", "get_data", "db_dump", "reboot"}
        self.assertEqual({n for n in vars(sonde.AsyncAnalysisClient) if not n.startswith("_")}, plain)

    def test_stub_and_extension_have_the_same_names(self):
        import ast
        import pathlib
        from sonde import _client
        stub = ast.parse((pathlib.Path(PACKAGE) / "sonde/_client.pyi").read_text())
        classes = {n.name: {m.name for m in n.body if isinstance(m, ast.FunctionDef)} for n in stub.body if isinstance(n, ast.ClassDef)}
        self.assertEqual(set(classes), {n for n in vars(_client) if not n.startswith("__")})
        for name, methods in classes.items():
            there = {m for m in vars(getattr(_client, name)) if m == "__arrow_c_stream__" or not m.startswith("__")}
            self.assertEqual({m for m in methods if m not in ("__new__", "__len__")}, there - {"__weakref__"}, name)


if __name__ == "__main__":
    main()
