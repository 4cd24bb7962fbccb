"""`sonde export`: an export contains what was recorded, and it is complete or missing."""

import contextlib
import csv
import io
import json
import math
import os
import pty
import random
import re
import resource
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import time
import unittest

from place import PATIENCE_S, Place, main, until

SPECIAL = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 5e-324, -2.2e-308, 1.7976931348623157e308, 2.0**53, 2.0**63, -(2.0**63), 0.1, 1 / 3]
FIXED = ["time_ns", "kind", "name", "value", "unit", "end_ns", "id", "parent", "node"]


def bits(value):
    return "nan" if value != value else struct.pack("<d", value)


class Export(Place):
    def record(self, rng, host, columns, rows):
        """Makes a recording with random values; returns the same values in Python."""
        expected = {}
        start = 1_790_000_000_000_000_000 + rng.randrange(10**12)
        table = io.StringIO()
        out = csv.writer(table)
        out.writerow(["t", *(f"m{i}" for i in range(columns))])
        for row in range(rows):
            at = start + row * rng.choice([1, 7, 10**9]) * 1000
            values = [rng.choice([*SPECIAL, rng.gauss(0, 1), float(rng.randrange(-(2**63), 2**63)), None]) for _ in range(columns)]
            out.writerow([at, *("" if v is None else repr(v) for v in values)])
            for i, value in enumerate(values):
                if value is not None:
                    expected[f"m{i}", host, at] = bits(value)
        path = self.root / f"{host}.csv"
        path.write_text(table.getvalue())
        done = self.sonde("import", "-o", str(self.root / "rec"), str(path))
        self.assertEqual(done.returncode, 0, done.stderr)
        return expected

    def read(self, text):
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        self.assertEqual(csv.reader([text.split("\n")[0]]).__next__()[: len(FIXED)], FIXED)
        return rows

    def points(self, text):
        found = {}
        for row in self.read(text):
            key = (row["name"], row["host"], int(row["time_ns"]))
            self.assertNotIn(key, found)  # each point once
            found[key] = bits(float(row["value"]))
        return found

    def test_random_recordings(self):
        seed = int(os.environ.get("SONDE_TEST_SEED", "1"))
        print(f"SONDE_TEST_SEED={seed}", flush=True)
        rng = random.Random(seed)
        rounds = int(os.environ.get("SONDE_TEST_ROUNDS", "1"))
        expected = {}
        for i in range(2):
            expected |= self.record(rng, f"n{i}", rng.randrange(4, 9), 300 * rounds)
        done = self.sonde("export", "rec")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.points(done.stdout), expected)
        self.assertIn(f"{len(expected)} points", done.stderr)

        times = sorted({t for _, _, t in expected})
        # milliseconds
        start, end = times[len(times) // 3] // 10**6, times[2 * len(times) // 3] // 10**6
        done = self.sonde("export", "--metric", "m0,m*3", "--filter", "host=n1", "-s", str(start), "-e", str(end), "rec")
        some = {k: v for k, v in expected.items() if k[0] in ("m0", "m3") and k[1] == "n1" and start * 10**6 <= k[2] <= end * 10**6}
        self.assertEqual(self.points(done.stdout), some, done.stderr)

        # As rows: the same points, in order of time.
        done = self.sonde("export", "--format", "wide-csv", "rec")
        rows = list(csv.reader(io.StringIO(done.stdout)))
        columns = [name.removesuffix("}").split("{host=") for name in rows[0][1:]]
        self.assertEqual([int(row[0]) for row in rows[1:]], times)
        self.assertEqual({(metric, host, int(row[0])): bits(float(cell)) for row in rows[1:] for (metric, host), cell in zip(columns, row[1:]) if cell}, expected)
        (self.root / "wide.csv").write_text(done.stdout)
        done = self.sonde("import", "-o", "wide", "wide.csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.points(self.sonde("export", "wide").stdout), expected)

        # With the same file twice, under two names, each point is still exported once.
        (self.root / "rec" / "copy.sonde").write_bytes((self.root / "rec" / "n0.sonde").read_bytes())
        self.assertEqual(self.points(self.sonde("export", "rec").stdout), expected)

    def test_more_rows_than_fit_into_memory_at_once(self):
        """A slice of time with too many points is halved."""
        table = "t," + ",".join(f"m{i}" for i in range(600)) + "\n"
        table += "".join(f"{1_790_000_000_000_000_000 + i * (1 if i < 1500 else 10**9)}," + ",".join(str(i * k) for k in range(600)) + "\n" for i in range(2000))
        (self.root / "n0.csv").write_text(table)
        self.assertEqual(self.sonde("import", "-o", "rec", "n0.csv").returncode, 0)
        lines = self.sonde("export", "--format", "wide-csv", "rec").stdout.splitlines()
        order = [int(name.split("{")[0].strip('"')[1:]) for name in lines[0].split(",")[1:]]
        self.assertEqual([line.split(",")[0] for line in lines[1:]], [line.split(",")[0] for line in table.splitlines()[1:]])
        for got, line in zip(lines[1:], table.splitlines()[1:]):
            cells = line.split(",")[1:]
            self.assertEqual([float(v) for v in got.split(",")[1:]], [float(cells[k]) for k in order])

    def test_annotations(self):
        script = self.root / "events.sh"
        words = ("one", "two, three", "drei 🙂", 'a " b')
        script.write_text("".join(f"sonde annotate '{word}'\n" for word in words))
        done = self.sonde("run", "-q", "-l", "1", "sh", str(script))
        self.assertEqual(done.returncode, 0, done.stderr)
        listed = json.loads(self.sonde("query", "--annotations", "--json").stdout)
        rows = [r for r in self.read(self.sonde("export").stdout) if r["kind"] == "annotation"]
        listed = listed["annotations"] if isinstance(listed, dict) else listed
        self.assertEqual(sorted(r["name"] for r in rows), sorted(a["text"] for a in listed))
        self.assertLessEqual(set(words), {r["name"] for r in rows})
        self.assertEqual([r for r in self.read(self.sonde("export", "--no-events").stdout) if r["kind"] == "annotation"], [])

    def test_tags_that_are_called_like_columns(self):
        done = self.sonde("run", "-q", "-l", "1", "sh", "-c", "echo loss 1 node=a id=b tag.x=c plain=d | sonde put")
        self.assertEqual(done.returncode, 0, done.stderr)
        text = self.sonde("export", "--metric", "loss").stdout
        header = text.splitlines()[0].split(",")
        self.assertEqual(len(header), len(set(header)), header)
        (row,) = (r for r in self.read(text) if r["name"] == "loss")
        self.assertEqual([row[k] for k in ("tag.node", "tag.id", "tag.tag.x", "plain")], ["a", "b", "c", "d"])

    @staticmethod
    def influx(text):
        """Parses the points of line protocol: a backslash makes the next byte ordinary."""
        found = {}
        for line in text.split("\n")[:-1]:
            parts = re.findall(r"([, =]|^)((?:[^, =\\]|\\.)*)", line)
            texts = [re.sub(r"\\(.)", r"\1", part) for _, part in parts]
            at = [separator for separator, _ in parts].index(" ")
            name, tags, (field, value, time) = texts[0], texts[1:at], texts[at:]
            assert field == "value", line
            key = (name, frozenset(zip(tags[::2], tags[1::2], strict=True)), int(time))
            assert key not in found, line
            found[key] = bits(float(value))
        return found

    def tagged(self, text):
        """Parses the points of long CSV."""
        rows = [r for r in self.read(text) if r["kind"] in ("gauge", "counter")]
        tags = lambda r: frozenset((k.removeprefix("tag."), v) for k, v in r.items() if k not in FIXED and v)
        return {(r["name"], tags(r), int(r["time_ns"])): bits(float(r["value"])) for r in rows}

    def test_influx(self):
        seed = int(os.environ.get("SONDE_TEST_SEED", "1"))
        print(f"SONDE_TEST_SEED={seed}", flush=True)
        rng = random.Random(seed)
        for i in range(2):
            self.record(rng, f"n{i}", 4, 200 * int(os.environ.get("SONDE_TEST_ROUNDS", "1")))
        wanted = self.tagged(self.sonde("export", "rec").stdout)
        finite = {k: v for k, v in wanted.items() if v != "nan" and math.isfinite(struct.unpack("<d", v)[0])}
        self.assertTrue(0 < len(finite) < len(wanted))
        done = self.sonde("export", "--format", "influx", "rec")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.influx(done.stdout), finite)
        self.assertIn(f"{len(wanted) - len(finite)} values or events are left out", done.stderr)

    def test_influx_comes_back(self):
        """sonde put reads from line protocol the points that were written to it."""
        alphabet = ["a", "ä", ",", " ", "=", "\\", '"', "#", "'", "{", "|"]
        rng = random.Random(int(os.environ.get("SONDE_TEST_SEED", "1")))
        escape = lambda text: re.sub(r"([, =\\])", r"\\\1", text)
        values = {"x" + "".join(rng.choices(alphabet, k=rng.randrange(1, 9))) + "\\": i + 0.5 for i in range(50)}
        lines = "".join(f"loss,file={escape(value)} value={number}\n" for value, number in values.items())
        runs = []
        for text in (lines, None):
            (self.root / "lines").write_text(text or runs[0].stdout)
            done = self.sonde("run", "-q", "-l", "1", "sh", "-c", "sonde put <lines")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            runs.append(self.sonde("export", "--format", "influx", "--metric", "loss"))
            self.assertEqual(runs[-1].returncode, 0, runs[-1].stderr)
        found = self.influx(runs[0].stdout)
        self.assertEqual({dict(tags)["file"]: value for (_, tags, _), value in found.items()}, {k: bits(v) for k, v in values.items()})
        self.assertEqual(self.influx(runs[1].stdout), found)

    def test_influx_has_no_line_ends(self):
        values = ["a\nb", "c\rd", "\n", "e\\", "f"]
        with contextlib.closing(sqlite3.connect(self.root / "ts_me_n1_20261123_014055.db")) as db:
            db.execute("CREATE TABLE datapoints (metric, timestamp, value, tags)")
            db.executemany("INSERT INTO datapoints VALUES ('loss', '1790000000', 1, ?)", [(json.dumps({"file": v}),) for v in values])
            db.commit()
        done = self.sonde("import", "--format", "dragon-sqlite", "-o", "rec", str(self.root / "ts_me_n1_20261123_014055.db"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.tagged(self.sonde("export", "rec").stdout)), len(values))
        done = self.sonde("export", "--format", "influx", "rec")
        self.assertEqual(sorted(dict(tags)["file"] for _, tags, _ in self.influx(done.stdout)), ["e\\", "f"])
        self.assertIn("3 values or events are left out: Influx has", done.stderr)

    @staticmethod
    def openmetrics(text):
        """Parses the points of OpenMetrics' text; anything that the standard does not allow is an
        error."""
        families, found = {}, {}
        assert text.endswith("# EOF\n")
        for line in text.split("\n")[:-2]:
            if head := re.fullmatch(r"# (HELP|UNIT|TYPE) ([a-zA-Z_:][\w:]*) (.*)", line):
                what, family, value = head.groups()
                if not families or family != next(reversed(families)):
                    assert family not in families, line
                    families[family] = {}
                assert what not in families[family], line
                families[family][what] = value
                continue
            sample = re.fullmatch(r'([a-zA-Z_:][\w:]*)((?:[{,][a-zA-Z_]\w*="(?:[^"\\]|\\["\\n])*")*)\}? (NaN|[+-]Inf|-?[0-9.e+-]+) (\d+)\.(\d{9})', line)
            assert sample, line
            name, labels, value, seconds, nanoseconds = sample.groups()
            family = next(reversed(families))
            counter = families[family]["TYPE"] == "counter"
            assert name == family + ("_total" if counter else ""), line
            unescape = lambda v: re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), v)
            pairs = re.findall(r'[{,]([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"', labels)
            key = (family, frozenset((k, unescape(v)) for k, v in pairs), int(seconds + nanoseconds))
            assert len(dict(pairs)) == len(pairs) and key not in found, line
            found[key] = bits(float(value))
        return found

    def test_openmetrics(self):
        seed = int(os.environ.get("SONDE_TEST_SEED", "1"))
        print(f"SONDE_TEST_SEED={seed}", flush=True)
        rng = random.Random(seed)
        for i in range(2):
            self.record(rng, f"n{i}", 4, 200 * int(os.environ.get("SONDE_TEST_ROUNDS", "1")))
        wanted = self.tagged(self.sonde("export", "rec").stdout)
        done = self.sonde("export", "--format", "openmetrics", "rec")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.openmetrics(done.stdout), wanted)
        self.assertNotIn("left out", done.stderr)

    def test_openmetrics_of_a_run(self):
        """A run has counters, units, names and tags that OpenMetrics cannot express."""
        (self.root / "lines").write_text('a.b 1 k-1=x\na/b 2 k-1=y k.1=z\na:b 3\nc 4 k="\n')
        wait = "until sonde query --list | grep -q cpu_user_seconds; do sleep 0.1; done"
        done = self.sonde("run", "-q", "-l", "2", "sh", "-c", f"sonde put <lines; {wait}")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.sonde("export", "--format", "openmetrics", "-o", "run.om")
        self.assertEqual(done.returncode, 0, done.stderr)
        text = (self.root / "run.om").read_text()
        found, table = self.openmetrics(text), self.tagged(self.sonde("export").stdout)
        self.assertEqual(sorted((t, str(v)) for (*_, t), v in found.items()), sorted((t, str(v)) for (*_, t), v in table.items()))
        self.assertIn("# TYPE cpu_user_seconds counter\n# UNIT cpu_user_seconds seconds\n", text)
        own = {v: (family, {k: v for k, v in tags if k.startswith("k")}) for (family, tags, _), v in found.items() if re.match("a[:_]b|c$", family)}
        dots, slash, colon, quote = (own[bits(v)] for v in (1.0, 2.0, 3.0, 4.0))
        self.assertEqual((dots[1], slash[1], colon, quote), ({"k_1": "x"}, {"k_1": "y", "k_1_2": "z"}, ("a:b", {}), ("c", {"k": '"'})))
        self.assertNotEqual(dots[0], slash[0])
        self.assertTrue({"a_b"} < {dots[0], slash[0]})
        if shutil.which("promtool"):
            made = subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", "run.om", "blocks"], cwd=self.root, capture_output=True, text=True, timeout=PATIENCE_S)
            self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
            (self.root / "blocks" / "wal").mkdir()  # dump opens a whole database
            dump = subprocess.run(["promtool", "tsdb", "dump", "blocks"], cwd=self.root, capture_output=True, text=True, timeout=PATIENCE_S)
            instants = {(family, tags, t // 10**6) for family, tags, t in found}
            self.assertEqual((dump.returncode, len(dump.stdout.splitlines())), (0, len(instants)), dump.stderr)

    def test_the_ending_chooses_the_format(self):
        self.record(random.Random(3), "n0", 2, 5)
        begins = {"a.csv": b"time_ns,kind", "a.parquet": b"PAR1", "a.arrow": b"ARROW1", "a.json": b"{", "a.perfetto-trace": b"\n", "a.influx": b"m0,host=n0", "a.om": b"# TYPE m0 gauge"}
        for name, begin in begins.items():
            done = self.sonde("export", "-q", "-o", name, "rec")
            self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
            self.assertTrue((self.root / name).read_bytes().startswith(begin), name)
        done = self.sonde("export", "-q", "-o", "b.parquet", "--format", "wide-csv", "rec")
        self.assertTrue((self.root / "b.parquet").read_bytes().startswith(b"time"), done.stderr)

    def test_a_terminal_gets_no_bytes(self):
        self.record(random.Random(3), "n0", 2, 5)
        ours, theirs = pty.openpty()
        done = subprocess.run(["sonde", "export", "--format", "parquet", "rec"], stdout=theirs, stderr=subprocess.PIPE, text=True, cwd=self.root, env=self.env)
        os.close(theirs)
        os.close(ours)
        self.assertEqual(done.returncode, 2)
        self.assertIn("cannot write parquet to a terminal: give -o FILE", done.stderr)

    def test_a_file_is_whole_or_not_there(self):
        self.record(random.Random(1), "n0", 3, 50)
        old = self.root / "out.csv"
        old.write_text("old")
        self.one_line(self.sonde("export", "-o", "/dev/full", "rec"), 1, "/dev/full", "No space left")
        self.one_line(self.sonde("export", "-o", "nowhere/out.csv", "rec"), 1, "nowhere/out.csv", "No such file")
        self.one_line(self.sonde("export", "-o", ".", "rec"), 1, "is a folder")
        self.one_line(self.sonde("export", "--metric", "none", "-o", "out.csv", "rec"), 1, "no metric 'none'")
        self.one_line(self.sonde("export", "--filter", "host", "-o", "out.csv", "rec"), 2, "--filter")
        self.assertEqual(old.read_text(), "old")
        self.assertEqual(self.sonde("export", "-o", "out.csv", "rec").returncode, 0)
        self.assertEqual(old.read_text(), self.sonde("export", "-o", "-", "rec").stdout)
        self.assertEqual([p.name for p in self.root.iterdir() if "out.csv" in p.name], ["out.csv"])

    def test_an_interrupted_export_leaves_nothing(self):
        """The signal arrives while the export waits for the reader of its pipe."""
        self.record(random.Random(1), "n0", 40, 20000)
        out = subprocess.Popen(["sonde", "export", "rec"], cwd=self.root, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out.stdout.read(1)
        out.send_signal(signal.SIGINT)
        out.communicate()
        self.assertEqual(out.returncode, -signal.SIGINT)

    def test_what_cannot_be_read_is_named(self):
        expected = self.record(random.Random(1), "n0", 3, 50)
        (self.root / "rec" / "foreign.sonde").write_bytes(b"no recording" * 500)
        done = self.sonde("export", "rec")
        self.assertEqual(done.returncode, 4)
        self.assertEqual(done.stderr.count("foreign.sonde"), 1)
        self.assertEqual(self.points(done.stdout), expected)
        (self.root / "rec" / "n0.sonde").unlink()
        self.one_line(self.sonde("export", "rec"), 1, "foreign.sonde")

    def emit(self, rng, points):
        """Makes text for sonde put: random series, kinds, tags and values, with spans and
        annotations."""
        lines = []
        now = time.time_ns() - 10**9
        for name in ("loss", "words_total", "a.b", "temp:c"):
            for tags in ("", " rank=0", " rank=1 part=x/y", " rank=2 part=ä"):
                at = now - rng.randrange(10**10)
                for _ in range(rng.randrange(1, points)):
                    at += rng.choice([1, 10**3, rng.randrange(1, 10**8)])
                    value = rng.choice([*SPECIAL, rng.gauss(0, 1)])
                    lines.append(f"put {name} {at} {value!r}{tags}\n")
        return "".join(lines)

    def test_a_running_job(self):
        """The export of a running job has the same bytes as that of its recording, for the same
        range."""
        rng = random.Random(int(os.environ.get("SONDE_TEST_SEED", "1")))
        script = "sonde put <lines; for i in 1 2 3 4 5; do sonde annotate \"note $i\" rank=$i; done; sonde span run step rank=1 -- sonde span run inner -- true; touch ready; read line <go"
        (self.root / "lines").write_text(self.emit(rng, 400))
        os.mkfifo(self.root / "go")
        job = self.start("run", "-q", "-l", "2", "sh", "-c", script, env={"SONDE_JOB": "one"})
        until((self.root / "ready").exists, "the job has emitted")
        end = str(time.time_ns() // 10**6)
        alone = ["--metric", "loss,words_total,a.b,temp:c", "-e", end]
        ways = [("csv", alone), ("csv", [*alone, "--filter", "rank=0|1"]), ("wide-csv", ["-e", end, "--metric", "loss"]), ("openmetrics", alone), ("csv", [*alone, "--no-events"]), ("chrome-trace", alone)]
        url = self.job()["url"]
        live = [self.sonde("export", "--format", form, *options, "one") for form, options in ways]
        live.append(self.sonde("export", *alone))
        live.append(self.sonde("export", *alone, url))
        before = self.sonde("export", "--metric", "loss", "-e", "1000", "one")
        self.assertEqual((before.returncode, before.stdout.count("\n")), (0, 1), before.stderr)
        self.one_line(self.sonde("export", "--metric", "none", "one"), 1, "no metric 'none'")
        self.assertEqual([p.name for p in self.tmp.iterdir() if p.name.startswith("sonde-export")], [])
        (self.root / "go").write_text("x\n")
        self.assertEqual(self.ends(job)[0], 0)
        for (form, options), done in zip([*ways, ways[0], ways[0]], live):
            self.assertEqual(done.returncode, 0, done.stderr)
            recorded = self.sonde("export", "--format", form, *options, "one")
            self.assertEqual(done.stdout, recorded.stdout, (form, options))
        self.assertEqual(len({live[0].stdout, live[-1].stdout, live[-2].stdout}), 1)
        self.assertEqual(live[0].stdout.count(",span,"), 2)
        self.assertEqual(live[0].stdout.count(",annotation,"), 5)

    def test_buckets_and_spans_of_a_running_job(self):
        """As from the recording, a bucket that contains the end of the range has all of its points,
        and spans are used even for formats that do not write them."""
        now = time.time_ns() // 10**9 * 10**9
        (self.root / "lines").write_text("".join(f"put level {now - i * 10**9} {i}\n" for i in range(60)))
        (self.root / "emit").write_text("sonde put <lines; for e in 1 2; do sonde span run epoch nr=$e -- sh -c 'sonde put loss 1; sonde put loss 3'; done; touch ready; read line <go")
        os.mkfifo(self.root / "go")
        job = self.start("run", "-q", "-l", "1", "sh", "emit", env={"SONDE_JOB": "one"})
        until((self.root / "ready").exists, "the job has emitted")
        end = str(time.time_ns() // 10**6)
        per_span = ["--per-span", "epoch", "--metric", "loss"]
        middle = ["--metric", "level", "-s", str(now // 10**6 - 3 * 3600000), "-e", str(now // 10**6 - 30000)]
        ways = [("wide-csv", per_span), ("openmetrics", per_span), ("csv", [*per_span, "--no-events"]), ("csv", per_span)]
        ways += [("csv", ["--downsample", each, *middle]) for each in ("1s-sum", "7s-sum", "1h-count", "1hc-max", "0all-count")]
        live = [self.sonde("export", "-q", "--format", form, *options, *(() if "-e" in options else ("-e", end)), "one") for form, options in ways]
        (self.root / "go").write_text("x\n")
        self.assertEqual(self.ends(job)[0], 0)
        for (form, options), done in zip(ways, live):
            self.assertEqual((done.returncode, done.stderr), (0, ""), options)
            recorded = self.sonde("export", "-q", "--format", form, *options, *(() if "-e" in options else ("-e", end)), "one")
            self.assertEqual(done.stdout, recorded.stdout, (form, options))
            self.assertTrue(re.search("loss|level", done.stdout), (form, options))
        self.assertEqual(live[0].stdout.splitlines()[0].count("loss_mean"), 2)

    def test_a_running_job_and_a_recording(self):
        self.assertEqual(self.sonde("run", "-q", "-l", "1", "sonde", "put", "loss", "1", env={"SONDE_JOB": "old"}).returncode, 0)
        job = self.start("run", "-q", "-l", "1", "sh", "-c", "sonde put loss 2; sonde span begin open; touch ready; exec sleep 1000", env={"SONDE_JOB": "new"})
        until((self.root / "ready").exists, "the job has emitted")
        done = self.sonde("export", "--metric", "loss", "old", "new")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({(r["job"], r["value"]) for r in self.read(done.stdout)}, {("old", "1"), ("new", "2"), ("new", "")})
        self.assertEqual([(r["name"], r["end_ns"]) for r in self.read(done.stdout) if r["kind"] == "span"], [("open", "")])
        job.terminate()
        self.ends(job)

    def queried(self, *arguments):
        """Returns the points of `sonde query`, with the tags as in an export; times are
        milliseconds."""
        done = self.sonde("query", "--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = {}
        for series in json.loads(done.stdout):
            found |= {(frozenset(series["tags"].items()), int(t)): bits(float(v)) for t, v in series["dps"].items()}
        return found

    def test_downsampled(self):
        rng = random.Random(int(os.environ.get("SONDE_TEST_SEED", "1")))
        table = "t,m0,m1\n" + "".join(f"{1_790_000_000_000_000_000 + i * 10**8 + rng.randrange(10**7)},{rng.gauss(0, 1)},{i if i % 3 else ''}\n" for i in range(2000))
        (self.root / "n0.csv").write_text(table)
        self.assertEqual(self.sonde("import", "-o", "rec", "n0.csv").returncode, 0)
        for each in ("1s-avg", "7s-p95", "1ms-max", "0all-sum", "1hc-count", "30s-first"):
            for span in ([], ["-s", "1790000020", "-e", "1790000090"]):
                done = self.sonde("export", "--downsample", each, "--metric", "m1", *span, "rec")
                self.assertEqual(done.returncode, 0, done.stderr)
                found = {(tags, t // 10**6): v for (_, tags, t), v in self.tagged(done.stdout).items()}
                self.assertEqual(found, self.queried(f"none:{each}:m1", *span, "rec"), (each, span))
                self.assertEqual(bool(found), each != "1hc-count" or not span)
        rows = list(csv.reader(io.StringIO(self.sonde("export", "--format", "wide-csv", "--downsample", "10s-count", "rec").stdout)))
        self.assertEqual((len(rows), {row[1] for row in rows[2:-1]}), (21, {"100"}))
        self.one_line(self.sonde("export", "--downsample", "1s-avg-zero", "rec"), 2, "no values for gaps")
        self.one_line(self.sonde("export", "--downsample", "soon", "rec"), 2, "downsampl")

    def test_values_of_spans(self):
        script = "for e in 1 2 3; do sonde span run epoch nr=$e rank=0 -- sh -c \"for i in 1 2 3 4; do echo loss \\${i}$e rank=0; done | sonde put\"; done; sonde put loss 1000 rank=0"
        done = self.sonde("run", "-q", "-l", "1", "sh", "-c", script)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.sonde("export", "--per-span", "epoch", "--metric", "loss", "--no-events")
        self.assertEqual(done.returncode, 0, done.stderr)
        for name, function in (("count", "count"), ("mean", "avg"), ("min", "min"), ("max", "max")):
            found = {(tags, t // 10**6): v for (metric, tags, t), v in self.tagged(done.stdout).items() if metric == f"loss_{name}"}
            self.assertEqual(found, self.queried("--per-span", "epoch", f"none:0all-{function}:loss"), name)
            self.assertEqual(len(found), 3)
        wide = self.sonde("export", "--per-span", "epoch", "--metric", "loss", "--format", "wide-csv").stdout
        self.assertEqual(wide.splitlines()[0].count("loss_"), 12)
        for row in csv.DictReader(io.StringIO(wide)):
            for name, value in row.items():
                nr = re.search("nr=(\\d)", name)
                if nr and value:
                    low, high = float("1" + nr[1]), float("4" + nr[1])
                    self.assertEqual(float(value), {"count": 4, "mean": (low + high) / 2, "min": low, "max": high}[name.split("{")[0].removeprefix("loss_")])
        self.one_line(self.sonde("export", "--per-span", "none", "last"), 1, "no span 'none'")
        self.one_line(self.sonde("export", "--per-span", "epoch", "--downsample", "1s-avg", "last"), 2, "leave out --downsample")

    def test_an_interrupted_copy_leaves_nothing(self):
        """The job's server accepts connections but does not answer."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = "http://127.0.0.1:%d/?token=%s" % (server.getsockname()[1], "x" * 43)
            export = self.start("export", "-o", "out.csv", address)
            connection, _ = server.accept()
            export.send_signal(signal.SIGTERM)
            code, _, err = self.ends(export)
            connection.close()
        self.assertEqual(code, -signal.SIGTERM, err)
        self.assertEqual([p.name for p in self.root.iterdir() if p.name.startswith("out")] + [p.name for p in self.tmp.iterdir()], [])

    def copies(self):
        return [p for p in self.tmp.iterdir() if p.name.startswith("sonde-export-")]

    def exporting(self, server):
        """Starts an export of a job whose server accepts connections but does not answer."""
        address = "http://127.0.0.1:%d/?token=%s" % (server.getsockname()[1], "x" * 43)
        export = self.start("export", "-o", "out.csv", address)
        connection, _ = server.accept()
        self.addCleanup(connection.close)
        return export

    def test_a_killed_copy_is_removed_by_the_next_export(self):
        """An export that is still copying keeps its copy, and so do other users' names."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            killed = self.exporting(server)
            (left,) = self.copies()
            killed.kill()
            self.ends(killed)
            self.assertEqual(self.copies(), [left])
            (left / "0" / "n1.sonde").write_bytes(b"x" * 100)
            foreign = self.tmp / "sonde-export-file"
            foreign.write_text("a file")
            first = self.exporting(server)
            (living,) = set(self.copies()) - {foreign}
            self.assertNotEqual(living, left)
            second = self.exporting(server)
            self.assertEqual(len(set(self.copies()) - {foreign}), 2)
            self.assertTrue((living / "0").is_dir())
            for export in (first, second):
                export.terminate()
                self.ends(export)
        self.assertEqual(self.copies(), [foreign])

    def emitting(self, lines):
        """Starts a job that emits these lines."""
        (self.root / "lines").write_text(lines)
        job = self.start("run", "-q", "-l", "1", "sh", "-c", "sonde put <lines; touch ready; exec sleep 1000", env={"SONDE_JOB": "one"})
        until((self.root / "ready").exists, "the job has emitted")
        return job

    def test_the_copy_of_a_job_shows_its_progress(self):
        now = time.time_ns()
        job = self.emitting("".join(f"put mm{m} {now - i * 1000} {i}\n" for m in range(4) for i in range(100)))
        ours, theirs = pty.openpty()
        export = subprocess.Popen(["sonde", "export", "-o", "out.csv", "--metric", "mm*", "one"], cwd=self.root, env=self.env, stderr=theirs)
        self.started.append(export)
        os.close(theirs)
        said = b""
        with contextlib.suppress(OSError):  # EIO: the export has ended
            while piece := os.read(ours, 65536):
                said += piece
        os.close(ours)
        self.assertEqual(export.wait(timeout=PATIENCE_S), 0, said)
        shares = [int(share) for share in re.findall(rb"copying the job, (\d+) %", said)]
        self.assertEqual((shares, bool(shares)), (sorted(shares), True), said)
        self.assertRegex(said, rb"copying the job, \d+ %, 400 points")
        # Without a terminal, or with --quiet, there is no progress.
        self.assertNotIn("copying", self.sonde("export", "-o", "out.csv", "one").stderr)
        job.terminate()
        self.ends(job)

    def test_memory_of_the_copy_of_a_job(self):
        """The copy needs at most 100 MiB, whatever the job has; the system refuses more
        (RLIMIT_DATA)."""
        rng, now = random.Random(1), time.time_ns()
        values = [repr(rng.random()) for _ in range(1000)]
        job = self.emitting("".join(f"put noise {now - i * 1000} {values[i % 997]} rank={i % 300}\n" for i in range(600_000)))
        limit = lambda: resource.setrlimit(resource.RLIMIT_DATA, (100 << 20, 100 << 20))
        for form in ("csv", "parquet", "sqlite"):
            done = subprocess.run(["sonde", "export", "-f", form, "-o", "out", "--metric", "noise", "one"], cwd=self.root, env=self.env, capture_output=True, text=True, preexec_fn=limit, timeout=PATIENCE_S)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("600000 points of 300 series", done.stderr)
        job.terminate()
        self.ends(job)

    @unittest.skipIf(os.getuid() != 0, "only root can mount")
    def test_a_full_disk(self):
        """Both TMPDIR, for the copy of a job, and the folder of the file may be full: the message
        gives the reason, and no incomplete file is left."""
        rng, now = random.Random(1), time.time_ns()
        job = self.emitting("".join(f"put noise {now - i * 1000} {rng.random()!r}\n" for i in range(300_000)))
        # The address has the token, because the folder of the job lies in the usual TMPDIR.
        url = self.job()["url"] + "?token=" + (self.tmp / f"sonde-{os.getuid()}" / "one" / "token").read_text().split()[0]
        small = self.root / "small"
        small.mkdir()
        script = 'set -e; mount -t tmpfs -o size=512k,mode=700 none small; "$@" || code=$?; ls -A small; exit $code'
        run = lambda *command, **env: subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh", "sonde", "export", "--metric", "noise", *command],
                                                     cwd=self.root, env=self.env | env, capture_output=True, text=True, timeout=PATIENCE_S)
        done = run("-o", "out.csv", url, TMPDIR=str(small))
        self.one_line(done, 1, f"TMPDIR ({small}) has no space", "No space left on device")
        self.assertFalse((self.root / "out.csv").exists())
        for form in ("csv", "parquet", "sqlite"):
            done = run("-f", form, "-o", "small/out", url)
            self.one_line(done, 1, "cannot write small/out", "No space left on device")
        self.assertEqual(self.copies(), [])
        job.terminate()
        self.ends(job)

if __name__ == "__main__":
    main()
