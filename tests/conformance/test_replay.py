"""Tests servers of recordings: several runs behind one server, and shifted times."""
import os
import shutil
import tempfile
import time
import unittest

from harness import Case, Server, T, Writer, until


def record(path, job, host, value, **more):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    writer = Writer(path, job)
    writer.points("cpu", {"host": host, "core": "0"}, [(T + i, value + i) for i in range(10)])
    writer.points("own", {"host": host, "job": "mine"}, [(T, value)])
    writer.annotation(T + 5, {}, f"of {job or 'none'}")
    writer.close()


class Several(Case):
    arguments = ("replay=1",)

    @classmethod
    def write(cls, folder):
        for job in ("17", "18"):
            for host in ("a", "b"):
                record(f"{folder}/run{job}/{host}.sonde", job, host, int(job) * 100)
        record(f"{folder}/nameless/c.sonde", "", "c", 5)
        with open(f"{folder}/run17/run.json", "w") as f:
            f.write("{}")

    def test_told_apart(self):
        got = {(e["tags"]["job"], e["tags"]["host"]): e["dps"][str(T)] for e in self.query("sum:cpu{job=*,host=*}")}
        self.assertEqual(got, {("17", "a"): 1700, ("17", "b"): 1700, ("18", "a"): 1800, ("18", "b"): 1800, ("nameless", "c"): 5})

    def test_filters(self):
        for m in ("sum:cpu{job=17}", "sum:cpu{job=literal_or(17|none)}", "sum:cpu{}{job=wildcard(*7)}", "sum:cpu{}{job=regexp(^17$)}",
                  "sum:cpu{}{job=not_literal_or(18|nameless)}"):
            got = self.query(m)
            self.assertEqual([(e["tags"]["job"], e["aggregateTags"], e["dps"][str(T)]) for e in got], [("17", ["host"], 3400)], m)
        self.assertEqual(self.query("sum:cpu{job=19}"), [])
        self.assertEqual(self.query("sum:cpu")[0]["aggregateTags"], ["host", "job"])
        self.assertEqual(self.query("sum:cpu{}{job=not_key()}"), [])
        self.assertEqual(self.query("none:explicit_tags:cpu{job=17,host=a,core=0}")[0]["dps"][str(T)], 1700)

    def test_a_tag_of_ones_own_stays(self):
        self.assertEqual([e["tags"]["job"] for e in self.query("sum:own{job=*}")], ["mine"])

    def test_names(self):
        self.assertEqual(self.server.get("/api/suggest", "type=tagk").json, ["core", "host", "job"])
        self.assertEqual(self.server.get("/api/suggest", "type=tagk&q=jo").json, ["job"])
        self.assertEqual(self.server.get("/api/suggest", "type=tagv").json, ["0", "17", "18", "a", "b", "c", "mine", "nameless"])
        self.assertEqual(self.server.get("/api/suggest", "type=tagv&q=1&max=1").json, ["17"])
        found = self.server.get("/api/search/lookup", {"m": "cpu{job=18}"}).json["results"]
        self.assertEqual([r["tags"] for r in found], [{"core": "0", "host": h, "job": "18"} for h in "ab"])
        self.assertEqual(len(self.server.get("/api/search/lookup", {"m": "cpu{job=*}"}).json["results"]), 5)

    def test_latest(self):
        got = self.server.get("/api/query/last", "timeseries=cpu{job=17,host=a}&resolve").json
        self.assertEqual([(e["tags"]["job"], e["value"]) for e in got], [("17", "1709")])
        self.assertIn(b'cpu{core="0",host="a",job="18"} 1809 ', self.server.get("/metrics").raw)

    def test_no_points_are_taken(self):
        self.assert_error(self.server.post("/api/put", {"metric": "a", "timestamp": T, "value": 1, "tags": {"a": "b"}}), 400, "recordings")


class OneRun(Case):
    """A single run gets no tag job."""
    arguments = ("replay=1",)

    @classmethod
    def write(cls, folder):
        for host in ("a", "b"):
            record(f"{folder}/run17/{host}.sonde", "17", host, 1)

    def test_no_tag(self):
        self.assertEqual(self.query("none:cpu{host=a}")[0]["tags"], {"core": "0", "host": "a"})
        # The series of the metric own have their own tag job.
        self.assertEqual(self.server.get("/api/suggest", "type=tagk&q=j").json, ["job"])


class Later(Case):
    arguments = ("replay=1",)

    @classmethod
    def write(cls, folder):
        record(f"{folder}/run17/a.sonde", "17", "a", 1)

    def test_a_run_that_comes_later(self):
        record(f"{self.folder}/run20/z.sonde", "20", "z", 1)
        until(lambda: self.query("sum:cpu{job=20}"), "the server has seen it")
        self.assertEqual(len(self.query("sum:cpu{job=*}")), 2)


class AsIfNow(Case):
    arguments = ("replay=1", "now=1")

    @classmethod
    def write(cls, folder):
        record(f"{folder}/a.sonde", "17", "a", 100)

    def test_all_faces(self):
        shift = self.server.get("/sonde/v1/status").json["shift_ns"] // 10**9
        self.assertEqual(shift % 60, 0)
        self.assertLess(abs(time.time() - (T + 9 + shift)), 120)
        for query in ({"start": "5m-ago"}, {"start": T + shift, "end": T + 9 + shift}):
            got = self.server.get("/api/query", {"m": "sum:cpu", "global_annotations": "", **query}).json[0]
            self.assertEqual(got["dps"], {str(T + shift + i): 100 + i for i in range(10)})
            self.assertEqual([a["startTime"] for a in got["annotations"]], [T + 5 + shift])
            self.assertEqual([a["startTime"] for a in got["globalAnnotations"]], [T + 5 + shift])
        self.assertEqual(self.query("sum:cpu"), [])  # the recorded time has no points any more
        body = {"start": (T + shift) * 1000, "end": (T + shift + 2) * 1000, "msResolution": True,
                "queries": [{"metric": "cpu", "aggregator": "sum", "downsample": "1m-max"}]}
        self.assertEqual({int(t) % 60000 for t in self.server.post("/api/query", body).json[0]["dps"]}, {0})
        last = self.server.get("/api/query/last", "timeseries=cpu&back_scan=1").json
        self.assertEqual([e["timestamp"] for e in last], [(T + 9 + shift) * 1000])
        self.assertIn(f" 109 {T + 9 + shift}.000\n".encode(), self.server.get("/metrics").raw)
        for start in (0, 1, 9 * 10**15):
            self.assertIn(self.server.get("/api/query", {"m": "sum:cpu", "start": start, "end": 9 * 10**15}).status, (200, 400))


class Nothing(unittest.TestCase):
    def test_refused(self):
        folder = tempfile.mkdtemp(prefix="sonde-conformance-")
        self.addCleanup(shutil.rmtree, folder)
        server = Server("replay=1", folder)
        self.assertIn("no recording", server.line)
        self.assertEqual(server.stop(), 1)


if __name__ == "__main__":
    unittest.main()
