"""Exports random recordings to SQLite and TensorBoard, opens them with the readers of these
formats, and imports them again."""

import json
import math
import os
import random
import shutil
import sqlite3
import struct
import subprocess
import unittest

from test_formats import Formats, Recording, SEED, sonde

try:
    from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader
except ImportError:
    LegacyEventFileLoader = None


def bits(value):
    return "nan" if value != value else struct.pack("<d", value)


class Databases(Formats):
    def test_sqlite(self):
        for recording in self.recordings():
            with sqlite3.connect(self.export("sqlite", recording)) as db:
                self.assertEqual(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
                tags = lambda table, owner: {n: dict(db.execute(f"SELECT key, value FROM {table} WHERE {owner} = ?", (n,))) for (n,) in db.execute(f"SELECT DISTINCT {owner} FROM {table}")}
                series, spans, notes = tags("series_tags", "series"), tags("span_tags", "span"), tags("annotation_tags", "annotation")
                points = [(t, kind, name, v, unit, series[s]) for t, name, kind, unit, v, s in db.execute("SELECT time_ns, name, kind, unit, value, series FROM named_points")]
                wanted = self.sorted_tags(recording)
                self.assert_same([(*p[:-1], dict(sorted(p[-1].items()))) for p in points], wanted.points)
                found = db.execute("SELECT start_ns, end_ns, name, id, parent, node, number FROM spans").fetchall()
                self.assert_same([(*s[:-1], dict(sorted(spans.get(s[-1], {}).items()))) for s in found], wanted.spans)
                found = db.execute("SELECT time_ns, text, node, number FROM annotations").fetchall()
                self.assert_same([(*a[:-1], notes.get(a[-1], {})) for a in found], recording.annotations)
                # A query for points uses the primary key instead of a scan.
                plan = str(db.execute("EXPLAIN QUERY PLAN SELECT value FROM points WHERE series = 1 AND time_ns > 5").fetchall())
                self.assertIn("SEARCH points USING PRIMARY KEY", plan)

    def test_many_rows_and_long_texts(self):
        """The file has trees of several levels, and texts that continue on overflow pages."""
        rng = random.Random(SEED)
        path = self.root / "wide.csv"
        with path.open("w") as file:
            file.write("time_ns,kind,name,value,host,note\n")
            for i in range(3000):
                file.write(f"{i + 1},annotation,{'x' * rng.choice([1, 100, 4000, 16340, 16347, 16350, 20000, 60000])},,n1,{i}\n" if i % 100 == 0 else f"{i + 1},annotation,{'y' * rng.randrange(900)},,n1,{i}\n")
            for name in range(40):
                for i in range(20000):
                    file.write(f"{1_790_000_000_000_000_000 + i},gauge,m{name},{i},n1,\n")
        self.assertEqual(sonde("import", "-o", self.root / "rec", path)[0], 0)
        out = self.root / "out.sqlite"
        status, _, errors = sonde("export", "-q", "-o", out, self.root / "rec")
        self.assertEqual((status, errors), (0, ""))
        with sqlite3.connect(out) as db:
            self.assertEqual(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
            self.assertEqual(db.execute("SELECT count(*), sum(value) FROM points").fetchall(), [(800000, 40 * sum(range(20000)))])
            self.assertEqual(db.execute("SELECT value FROM named_points WHERE name = 'm7' AND time_ns = 1790000000000012345").fetchall(), [(12345.0,)])
            # SQLite can add rows to the pages that sonde wrote.
            db.execute("INSERT INTO points SELECT series, time_ns + 20000, value FROM points")
            self.assertEqual(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        status, before, _ = sonde("export", "-q", self.root / "rec")
        out = self.root / "again.sqlite"
        sonde("export", "-q", "-o", out, self.root / "rec")
        self.assertEqual(sonde("import", "-o", self.root / "back", out)[0::2], (0, ""))
        self.assertTrue(sonde("export", "-q", self.root / "back")[1] == before)

    def test_an_empty_database(self):
        path = self.root / "one.csv"
        path.write_text("time_ns,name,value,host\n1,m,2,n1\n")
        sonde("import", "-o", self.root / "rec", path)
        for form in ("sqlite", "dragon-sqlite"):
            out = self.root / f"empty.{form}"
            self.assertEqual(sonde("export", "-q", "-f", form, "-s", "1790000000", "-o", out, self.root / "rec")[0], 0)
            with sqlite3.connect(out) as db:
                self.assertEqual(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        status, _, errors = sonde("export", "-f", "sqlite", self.root / "rec")
        self.assertEqual(status, 1)
        self.assertIn("sqlite needs a file: give -o FILE", errors)

    def test_dragon_sqlite(self):
        for recording in self.recordings():
            with sqlite3.connect(self.export("dragon-sqlite", recording)) as db:
                self.assertEqual(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
                found = []
                for host, metric, time, value, tags in db.execute("SELECT table_name, metric, timestamp, value, tags FROM datapoints"):
                    seconds, _, fraction = time.partition(".")
                    found.append((int(seconds) * 10**9 + int(fraction.ljust(9, "0")), metric, value, dict(sorted({"host": host, **json.loads(tags or "{}")}.items()))))
            self.assert_same(found, [(t, name, v, tags) for t, _, name, v, _, tags in self.sorted_tags(recording).points])

    @unittest.skipUnless(LegacyEventFileLoader, "tensorboard is not installed")
    def test_tensorboard(self):
        for recording in self.recordings():
            found = []
            for event in LegacyEventFileLoader(str(self.export("tensorboard", recording))).Load():
                for value in event.summary.value:
                    found.append((event.wall_time, value.tag, value.simple_value))
            single = lambda v: struct.unpack("<f", struct.pack("<f", v))[0] if abs(v) < 3.4e38 else math.copysign(math.inf, v)
            escape = lambda v: v.replace("/", "%2F")
            tag = lambda name, tags: name + "/" + ",".join(f"{k}={escape(v)}" for k, v in sorted(tags.items()))
            self.assertEqual(len(found), len(recording.points))
            wanted = [(t / 10**9, tag(name, tags), single(v)) for t, _, name, v, _, tags in recording.points]
            self.assert_same([(f"{t:.6f}", *rest) for t, *rest in found], [(f"{t:.6f}", *rest) for t, *rest in wanted])

    def test_they_come_back(self):
        for recording in self.recordings():
            points = sonde("export", "-q", "--no-events", *recording.files)[1]
            everything = sonde("export", "-q", *recording.files)[1]
            for form, name in (("sqlite", "a.sqlite"), ("dragon-sqlite", "a.db"), ("tensorboard", "events.out.tfevents.1"), ("openmetrics", "a.om")):
                file, out = self.root / name, self.root / f"back-{recording.files[0].parent.name}-{form}"
                status, _, errors = sonde("export", "-q", "--format", form, "-o", file, *recording.files)
                self.assertEqual(status, 0)
                counters = "counters are neither negative" in errors
                status, _, errors = sonde("import", "-o", out, file)  # recognises the format
                self.assertEqual((status, errors), (0, ""), (self.what, form))
                files = [path for path in (out / path.name for path in recording.files) if path.exists()]
                if form == "sqlite":
                    self.assertEqual(sonde("export", "-q", *files)[1], everything, self.what)
                    self.assertEqual(self.questions(files), self.questions(recording.files), self.what)
                elif form == "tensorboard":
                    self.assertEqual(sonde("export", "-q", "--no-events", *files)[1], points, self.what)
                else:  # these formats lack kinds and units, or rename counters
                    plain = lambda text: sorted((c[0], c[2].removesuffix("_total"), *c[3:4], *c[9:]) for c in (line.split(",") for line in text.splitlines()[1:]) if not counters or c[1] != "counter")
                    back = plain(sonde("export", "-q", "--no-events", *files)[1]) if files else []
                    if form == "openmetrics" and counters:
                        self.assertLessEqual(set(plain(points)), set(back), self.what)
                    else:
                        self.assertEqual(back, plain(points), (self.what, form))

    def test_tensorboard_of_others(self):
        """In a file of another program, a tag of TensorBoard is only a name. In sonde's files, it
        also has labels, a unit and a help text."""
        varint = lambda n: bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)
        sized = lambda field, data: varint(field << 3 | 2) + varint(len(data)) + data
        # Records have masked checksums, as TensorFlow writes them.
        table = [0] * 256
        for i in range(256):
            c = i
            for _ in range(8):
                c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
            table[i] = c

        def checksum(data):
            crc = 0xFFFFFFFF
            for byte in data:
                crc = crc >> 8 ^ table[(crc ^ byte) & 255]
            crc ^= 0xFFFFFFFF
            return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

        def record(event):
            size = struct.pack("<Q", len(event))
            return size + checksum(size) + event + checksum(event)

        def scalar(tag, about):
            value = sized(1, tag.encode()) + b"\x15" + struct.pack("<f", 0.5) + (sized(9, sized(3, about.encode())) if about else b"")
            return record(b"\x09" + struct.pack("<d", 1790000000.0) + sized(5, sized(1, value)))

        folder = self.root / "run1"
        folder.mkdir()
        (folder / "events.out.tfevents.1").write_bytes(b"".join(map(scalar, ("train/lr=0.1", "loss", "a%2Fb"), ("", "counter in seconds: x", "gauge"))))
        status, _, errors = sonde("import", "--host", "h", "-o", self.root / "rec", folder / "events.out.tfevents.1")
        self.assertEqual((status, errors), (0, ""))
        header, *rows = sonde("export", "-q", self.root / "rec")[1].splitlines()
        self.assertEqual(header.split(",")[9:], ["host", "run"])
        rows = [row.split(",") for row in rows]
        self.assertEqual({(row[1], row[4], row[10]) for row in rows}, {("gauge", "", "run1")})
        names = [row[2] for row in rows]
        self.assertEqual((len(names), "loss" in names), (3, True))
        self.assertTrue([n for n in names if n.startswith("train/lr")], names)

    def described(self, *recordings):
        """Returns name, unit and help of each metric."""
        out = self.root / "described.sqlite"
        self.assertEqual(sonde("export", "-q", "-o", out, *recordings)[0], 0)
        with sqlite3.connect(out) as db:
            return sorted(db.execute("SELECT name, unit, help FROM metrics"))

    def test_units_and_help_come_back(self):
        (recording,) = list(self.recordings())[:1]
        self.assertEqual({about for _, _, about in self.described(*recording.files)}, {"help"})
        for form, name in (("sqlite", "a.sqlite"), ("tensorboard", "a.tfevents"), ("openmetrics", "a.om")):
            file, out = self.root / name, self.root / f"described-{form}"
            self.assertEqual(sonde("export", "-q", "-f", form, "-o", file, *recording.files)[0], 0)
            self.assertEqual(sonde("import", "-o", out, file)[::2], (0, ""))
            found = self.described(out)
            self.assertEqual({about for _, _, about in found}, {"help"}, form)
            if form != "openmetrics":  # OpenMetrics has a unit only as the end of a name
                self.assertEqual(found, self.described(*recording.files), form)

    def test_metrics_of_sonde_itself(self):
        """A table has no help texts, but sonde knows those of its own metrics, if the kind is the
        same."""
        path = self.root / "own.csv"
        path.write_text("time_ns,kind,name,value,host\n1,counter,cpu_user_seconds_total,1,n1\n1,counter,load_1m,1,n1\n")
        self.assertEqual(sonde("import", "-o", self.root / "rec", path)[::2], (0, ""))
        found = {(name, unit, bool(about)) for name, unit, about in self.described(self.root / "rec")}
        self.assertEqual(found, {("cpu_user_seconds_total", "seconds", True), ("load_1m", "", False)})

    def test_files_of_several_formats(self):
        """An import recognises the format of each file. If it cannot read one file, it imports
        nothing."""
        (self.root / "a.csv").write_text("time_ns,name,value,host\n1000,m,1,n1\n")
        (self.root / "b.influx").write_text("m,host=n1 value=2 2000\n")
        (self.root / "wide.csv").write_text("t,w\n3000,3\n")
        (self.root / "wider.csv").write_text("t,w\n4000,4\n")
        with sqlite3.connect(self.root / "ts_me_n7_20261123_014055.db") as db:
            db.execute("CREATE TABLE datapoints (metric, timestamp, value, tags)")
            db.execute("INSERT INTO datapoints VALUES ('loss', '1790000000', 1, NULL)")
        files = [self.root / name for name in ("a.csv", "wide.csv", "b.influx", "ts_me_n7_20261123_014055.db", "wider.csv")]
        status, said, errors = sonde("import", "-o", self.root / "rec", *files)
        self.assertEqual((status, errors), (0, ""))
        self.assertEqual(sorted(line.split(":")[0].rpartition("/")[2] for line in said.splitlines()), ["n1.sonde", "n7.sonde", "wide.sonde", "wider.sonde"])
        rows = [row.split(",") for row in sonde("export", "-q", self.root / "rec")[1].splitlines()[1:]]
        self.assertEqual(sorted((row[2], row[3], row[9]) for row in rows), [("loss", "1", "n7"), ("m", "1", "n1"), ("m", "2", "n1"), ("w", "3", "wide"), ("w", "4", "wider")])
        status, said, errors = sonde("import", "--host", "h", "-o", self.root / "no", *files)
        self.assertEqual((status, said), (2, ""))
        self.assertIn("--host with 2 tables", errors)
        (self.root / "words.csv").write_text("t,w\nx,y\n")
        status, said, errors = sonde("import", "-o", self.root / "no", *files, self.root / "words.csv")
        self.assertEqual((status, said), (1, ""))
        self.assertIn("words.csv", errors)
        self.assertEqual(list((self.root / "no").iterdir()), [])

    def test_openmetrics_of_others(self):
        path = self.root / "scrape.prom"
        path.write_text('# HELP rpc_total x\n# TYPE rpc counter\n# UNIT rpc seconds\nrpc_total{a="b\\n\\"c\\\\",empty="",d="}"} 5 1790000000.25 # {id="x"} 1\nup 1 1790000000123\nnan NaN 1790000000\nno_time 3\nbad{ 1 2\n# EOF\n')
        status, _, errors = sonde("import", "--host", "h", "-o", self.root / "rec", path)
        self.assertEqual(status, 0)
        self.assertIn("2 rows could not be read", errors)
        self.assertEqual(sonde("export", "-q", self.root / "rec")[1].splitlines()[1:], [
            "1790000000000000000,gauge,nan,NaN,,,,,,,,h", '1790000000250000000,counter,rpc_total,5,seconds,,,,,"b', '""c\\",},h', "1790000000123000000,gauge,up,1,,,,,,,,h"])

    def test_the_end_of_openmetrics(self):
        """Without # EOF, the end of a file in OpenMetrics is missing. Prometheus' older format,
        whose times are milliseconds, has no such line."""
        path, ended = self.root / "in.prom", "# EOF\n"
        for text, code in (("up 1 1790000000\n", 4), ("up 1 1790000000.5\n", 4), ("up 1 1790000000.5\n" + ended, 0), ("up 1 1790000000123\n", 0), ("up 1 1790000000123\n" + ended, 0)):
            path.write_text(text)
            status, _, errors = sonde("import", "--host", "h", "-o", self.root / f"rec-{hash(text)}", path)
            self.assertEqual((status, "the end of the file is missing" in errors), (code, code == 4), (text, errors))

    def test_labels_that_become_one_name(self):
        """Tags whose names would become equal in OpenMetrics get different names, even if no series
        has two of them."""
        path = self.root / "in.csv"
        path.write_text("time_ns,name,value,host,a.b,a/b,a_b\n1000000000,m,1,n1,x,,\n2000000000,m,2,n1,,x,\n3000000000,m,3,n1,,,x\n")
        self.assertEqual(sonde("import", "-o", self.root / "rec", path)[0::2], (0, ""))
        text = sonde("export", "-q", "-f", "openmetrics", self.root / "rec")[1]
        lines = [line for line in text.splitlines() if line[0] != "#"]
        self.assertEqual(len({line.split("}")[0] for line in lines}), 3, text)
        self.assertIn('m{a_b="x",host="n1"} 3', text)

    def test_ldms(self):
        path = self.root / "meminfo.csv"
        path.write_text("#Time,Time_usec,ProducerName,component_id,job_id,app_id,MemFree,Mem(Total)\n1790000000.002127,2127,nid1,1,17,0,4182,8192\n1790000001.0,0,nid2,2,0,0,5,x\n")
        status, _, errors = sonde("import", "-o", self.root / "rec", path)
        self.assertEqual(status, 0, errors)
        self.assertIn("1 rows could not be read", errors)
        header, *rows = sonde("export", "-q", self.root / "rec")[1].splitlines()
        self.assertEqual(header.split(",")[9:], ["component_id", "host", "job_id"])
        self.assertEqual(sorted(r.split(",")[2:4] + r.split(",")[9:11] for r in rows), [["MemFree", "4182", "1", "nid1"], ["MemFree", "5", "2", "nid2"], ["Mem（Total）", "8192", "1", "nid1"]])

    def test_files_that_are_damaged(self):
        """Of a truncated file, the beginning is read, and the exit code reports it. A file of
        another format is refused."""
        (recording,) = list(self.recordings())[:1]
        for form, name in (("tensorboard", "a.tfevents"), ("openmetrics", "a.om")):
            whole = self.export(form, recording, *([sum(1 for p in recording.points if p[1] == "counter" and not p[3] >= 0)] if form == "openmetrics" else [])).read_bytes()
            (self.root / name).write_bytes(whole[: len(whole) * 2 // 3])
            status, said, errors = sonde("import", "-o", self.root / f"out-{name}", self.root / name)
            self.assertEqual(status, 4, errors)
            self.assertIn(f"{name}: the end of the file is missing", errors)
            self.assertRegex(said, "[1-9][0-9]* values")
        database = self.export("sqlite", recording).read_bytes()
        cases = {
            "empty.tfevents": (b"", "the file is empty"),
            "foreign.tfevents": (b"words " * 100, "no event file of TensorBoard"),
            "empty.sqlite": (b"", "empty"),
            "foreign.sqlite": (b"words " * 100, "not an SQLite database"),
            "cut.sqlite": (database[: len(database) // 2], ""),
            "other.sqlite": (None, "it has no table metrics"),
            "words.om": (b"# TYPE a gauge\n" + b"what is this\n" * 9, "make no sense"),
        }
        with sqlite3.connect(self.root / "other.sqlite") as db:
            db.execute("CREATE TABLE t (a)")
        for name, (content, why) in cases.items():
            with self.subTest(name):
                path, out = self.root / name, self.root / f"out-{name}"
                if content is not None:
                    path.write_bytes(content)
                status, said, errors = sonde("import", "-o", out, path)
                self.assertEqual((status, said), (1, ""))
                self.assertIn(why, errors)
                self.assertIn(str(path), errors)
                self.assertEqual(list(out.iterdir()) if out.exists() else [], [])


# The tests of the base class run only in their own file.
for name in [n for n in dir(Formats) if n.startswith("test_")]:
    if name not in vars(Databases):
        setattr(Databases, name, None)
del Formats


if __name__ == "__main__":
    unittest.main()
