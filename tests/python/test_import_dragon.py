"""`sonde import --format dragon-sqlite`: recordings of databases of Dragon's node servers.

The databases are made here, with the tables of dragonhpc 0.14.1. dragon_original.sh --dump imports
real ones.
"""

import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys

from program import PACKAGE, Place, Recording, main
from columns import to_double  # noqa: E402, I001

SEED = int(os.environ.get("SONDE_TEST_SEED") or 17)
ROUNDS = float(os.environ.get("SONDE_TEST_ROUNDS") or 1)
NOW = 1_795_000_000
TABLES = "CREATE TABLE datapoints (metric varchar(50), timestamp varchar(30), value real, tags json); CREATE TABLE flags (id INTEGER PRIMARY KEY CHECK (id = 1), is_shutdown BLOB)"
MERGED = "CREATE TABLE datapoints (table_name text, metric text, timestamp text, value real, tags json)"
OWN = {"load_average": "load_1m", "used_RAM": "memory_used_percent", "DeviceUtilization": "gpu_utilization_percent"}


class Import(Place):
    def setUp(self):
        super().setUp()
        self.folder = self.root / "dump" / "telemetry"
        self.folder.mkdir(parents=True)

    def database(self, name, rows, tables=TABLES):
        """Writes rows in the form that node servers insert: times as texts, tags as JSON."""
        path = self.folder / name
        with sqlite3.connect(path) as db:
            db.executescript(tables)
            if rows:
                db.executemany(f"INSERT INTO datapoints VALUES ({','.join('?' * len(rows[0]))})", rows)
        db.close()
        return path

    def make(self, *paths, code=0, options=(), env=None):
        done = self.sonde("import", "--format", "dragon-sqlite", "-o", "made", *options, *paths, env=env)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def points(self, host):
        """Returns (metric, tags without host) → {second: value} of a recording."""
        recording = Recording(str(self.root / "made" / f"{host}.sonde"))
        self.assertEqual(recording.problems, [])
        found = {}
        for (number, labels), points in zip(recording.series, recording.points):
            tags = dict(labels)
            self.assertEqual(tags.pop("host"), host)
            found[recording.metrics[number]["name"], tuple(sorted(tags.items()))] = {t / 10**9: to_double(v) for t, v in points.items()}
        return found

    def refused(self, path, *words, code=1, options=(), env=None):
        done = self.make(path, code=code, options=options, env=env)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertEqual(list((self.root / "made").glob("*")) if (self.root / "made").exists() else [], [])

    def test_what_dragon_would_answer(self):
        """Dumps repeat rows: for a series and a second, the last row of the last dump counts."""
        some = random.Random(SEED)
        metrics = {"load_average": [None], "DeviceUtilization": [{"gpu": 0}, {"gpu": 1}], "loss %": [None, {"rank": 3}, {"my key": "a b"}], "größe": [{"share": 0.5, "on": True, "no": None}]}
        for number in range(max(3, int(20 * ROUNDS))):
            expected = {}
            for host in ("n1", "n2", "node-3"):
                at, rows, answer = NOW, [], expected.setdefault(host, {})
                for dump in range(some.randrange(1, 4)):
                    for _ in range(some.randrange(1, 200)):
                        at += some.choice((0, 0, 0, 1))
                        metric = some.choice(list(metrics))
                        tags = some.choice(metrics[metric])
                        value = some.choice((some.random(), some.randrange(-9, 9), 1e300, None, "0.5", "x"))
                        rows.append((metric, str(at), value, json.dumps(tags)))
                        if isinstance(value, (int, float)) or value == "0.5":
                            name = {"loss %": "loss　％"}.get(metric, OWN.get(metric, metric))
                            key = name, tuple(sorted((k.replace(" ", "　"), str(v)) for k, v in (tags or {}).items() if v is not None))
                            answer.setdefault(key, {})[at] = float(value)
                    self.database(f"ts_a_user_{host}_20261123_0140{dump:02}.db", rows)
                    rows = rows[some.randrange(len(rows)):]  # the rows that the window keeps
            self.make(self.root / "dump", code=int(not all(expected.values())))
            self.assertEqual({host: self.points(host) for host in expected if expected[host]}, {h: e for h, e in expected.items() if e}, f"SONDE_TEST_SEED={SEED}, round {number}")
            for path in self.folder.iterdir():
                path.unlink()
            shutil.rmtree(self.root / "made")

    def test_rows_of_anything(self):
        """Every row is in the recording, or was replaced, or has no value, or is left out and
        counted."""
        some = random.Random(SEED)
        things = (None, 5, 1.5, "m", "a\0b", b"\xff\x00\xfe", "x" * 5000, "é" * 300, "", '{"a":1}', '{"a":1,"a":2}', '{"":"x"}', json.dumps({f"k{i}": i for i in range(40)}),
                  json.dumps({"k": "v" * 3000}), '{"a":1e999}', '{"a":' + "[" * 3000 + "]" * 3000 + "}", '{"a":{"b":1}}', '{"host":"z"}', '{"a b":"\\u0000"}', "[]", '"x"', NOW,
                  f"{NOW}.1234567891234", f"{NOW}.", ".5", "-3", "9" * 25, 2**63 - 1, -(2**63), float("inf"), 1e300, "nan", "0x10")
        rows = [("m" if some.random() < 0.5 else some.choice(things), str(NOW + some.randrange(9)) if some.random() < 0.6 else some.choice(things),
                 some.random() if some.random() < 0.5 else some.choice(things), "null" if some.random() < 0.2 else some.choice(things)) for _ in range(int(3000 * ROUNDS))]
        self.database("ts_root_n1_20261123_014055.db", rows, "CREATE TABLE datapoints (metric, timestamp, value, tags)")
        done = self.make(self.folder)
        values, count, replaced = map(int, re.search(r": (\d+) values in \d+ series, (\d+) rows \((\d+) replaced", done.stdout).groups())
        left_out = int(re.search(r": (\d+) rows could not", done.stderr)[1])
        self.assertEqual(values + replaced + left_out + sum(row[2] is None for row in rows), count, f"SONDE_TEST_SEED={SEED}")
        self.assertEqual((count, sum(map(len, self.points("n1").values()))), (len(rows), values), f"SONDE_TEST_SEED={SEED}")

    def test_clients_and_servers_read_it(self):
        rows = [("loss %", str(NOW + i), i / 2, json.dumps({"rank": i % 2})) for i in range(10)] + [("used_RAM", str(NOW), 50, "null")]
        self.database("ts_root_n1.cluster.example_20261123_014055.db", rows)
        done = self.make(self.folder)
        self.assertEqual(done.stdout.split(": ", 1)[1].split(" rows")[0], "11 values in 3 series, 11")
        program = "import json, sonde\nwith sonde.AnalysisClient('made') as c: print(json.dumps([sorted(c.get_metrics()), c.get_data('loss %', tags='rank'), c.get_data('used_RAM')]))"
        text = subprocess.run([sys.executable, "-c", program], env=self.env | {"PYTHONPATH": PACKAGE}, cwd=self.root, capture_output=True, text=True, check=True).stdout
        names, loss, ram = json.loads(text)
        self.assertEqual(names, ["loss %", "memory_used_percent", "used_RAM"])
        self.assertEqual(loss, [{"metric": "loss %", "tags": {"host": "n1", "rank": rank}, "aggregateTags": [], "dps": {str(NOW + i): i / 2 for i in range(10) if i % 2 == rank}} for rank in (0, 1)])
        self.assertEqual([s["dps"] for s in ram], [{str(NOW): 50}])
        answer = json.loads(self.sonde("query", "--json", "none:used_RAM", "made").stdout)
        self.assertEqual([(s["tags"], s["dps"]) for s in answer], [({"host": "n1"}, {f"{NOW}000": 50})])
        self.assertIn("damage  none", self.sonde("inspect", "made").stdout)

    def test_merged_by_the_offline_tool(self):
        path = self.database("offline_ts_root_n1.db", [(host, "m", str(NOW + i), i, "null") for i in range(3) for host in ("n1", "n2")], MERGED)
        # it duplicates the others
        self.refused(self.folder, "no database of Dragon's telemetry (ts_USER_HOST_DATE.db) in it")
        shutil.rmtree(self.root / "made", ignore_errors=True)
        self.make(path)
        for host in ("n1", "n2"):
            self.assertEqual(self.points(host), {("m", ()): {NOW + i: i for i in range(3)}})

    def test_another_name(self):
        rows = [("m", str(NOW) + ".25", 1, "null")]
        self.make(self.database("any.db", rows), options=("--host", "n7"))
        self.assertEqual(self.points("n7"), {("m", ()): {NOW + 0.25: 1}})
        for host in ("n1", "n2"):
            self.database(f"ts_root_{host}_20261123_014055.db", rows)
        done = self.make(self.folder, code=1, options=("--host", "n8"))
        self.assertIn("--host n8 names one host, but the databases are of n1 and n2", done.stderr)

    def test_mistakes(self):
        rows = [("m", str(NOW + i), i, json.dumps({"tag": "x" * 100 + str(i)})) for i in range(5000)]
        good = self.database("ts_root_n1_20261123_014055.db", rows)
        (self.folder / "empty.db").write_bytes(b"")
        (self.folder / "text.db").write_text("metric,timestamp,value,tags\n")
        (self.folder / "cut.db").write_bytes(good.read_bytes()[:40000])
        torn = bytearray(good.read_bytes())
        torn[300_000:304_096] = bytes(4096)
        (self.folder / "torn.db").write_bytes(torn)
        os.mkfifo(self.folder / "pipe.db")
        self.refused(self.folder / "none.db", "cannot open", "none.db: No such file")
        self.refused(self.folder / "empty.db", "cannot read", "empty.db: the file is empty")
        self.refused(self.folder / "text.db", "not an SQLite database")
        self.refused(self.folder / "pipe.db", "not a regular file")
        self.refused(self.folder / "cut.db", "cannot import", "cut.db: database disk image is malformed")
        self.refused(self.folder / "torn.db", "torn.db: database disk image is malformed")
        self.refused(self.database("other.db", [], "CREATE TABLE points (a)"), "no database of Dragon's telemetry: it has no table datapoints")
        self.refused(self.database("view.db", [], "CREATE VIEW datapoints AS SELECT 1 metric, 2 timestamp, 3 value, 4 tags"), "it has no table datapoints")
        self.refused(self.database("columns.db", [(1,)], "CREATE TABLE datapoints (metric)"), "no such column: timestamp")
        self.refused(self.database("none_yet.db", []), "its table datapoints is empty")
        self.refused(self.database("times.db", [("m", t, 1, "null") for t in ("", "x", "-1", "1e99", "9" * 30)]), "none of its 5 rows has a time and a number")
        self.refused(self.database("hosts.db", [("../n1", "m", str(NOW), 1, "null")], MERGED), "'' is not the name of a host; give --host")
        self.refused(good, "cannot open the library SQLite", "install it", env={"SONDE_SQLITE": "libnone.so"})

    def test_one_bad_database_costs_itself(self):
        good = self.database("ts_root_n1_20261123_014055.db", [("m", str(NOW), 1, "null"), ("bad", "x", 1, "null"), ("bad", str(NOW), 1, "[1"), ("bad", str(NOW), 1, '{"a": [1]}')])
        (self.folder / "ts_root_n2_20261123_014055.db").write_bytes(b"")
        done = self.make(self.folder, code=1)
        self.assertIn("3 rows could not be read and are left out", done.stderr)
        self.assertIn("error: cannot read", done.stderr)
        self.assertEqual(self.points("n1"), {("m", ()): {NOW: 1}})
        done = self.make(self.folder, code=1)  # exists already
        self.assertIn("n1.sonde already exists", done.stderr)
        self.assertIn("cannot import 2 of 2 databases", done.stderr)
        self.assertEqual(self.make(good, code=1).stderr.count("\n"), 1)

    def test_other_commands_say_what_to_do(self):
        path = self.database("ts_root_n1_20261123_014055.db", [("m", str(NOW), 1, "null")])
        for given in (path, self.folder, self.root / "dump"):
            for command in (("query", "m"), ("inspect",), ("replay",)):
                done = self.sonde(*command, given)
                self.assertEqual(done.returncode, 1)
                self.assertIn(f"sonde import --format dragon-sqlite -o DIR {given}", done.stderr)


if __name__ == "__main__":
    main()
