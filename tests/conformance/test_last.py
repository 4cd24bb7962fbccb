"""Tests /api/query/last, which returns the latest point of each series."""
import time
import unittest

from harness import T, Case, Writer


class Last(Case):
    arguments = ("alias=other:cpu",)

    @classmethod
    def write(cls, folder):
        now = int(time.time())
        for node, newest in (("one", 42), ("two", 43)):
            writer = Writer(f"{folder}/{node}.sonde")
            writer.points("cpu", {"host": node, "core": "0"}, [(T, 1), (T + 10, newest)])
            # The same series in both files: the newer point counts.
            writer.points("shared", {"host": "x"}, [(T + newest, newest + 0.5)])
            writer.points("fresh", {"host": node}, [(now - (60 if node == "one" else 7200), 5)])
            if node == "two":
                writer.seal()
            writer.close()

    def last(self, *parameters):
        answer = self.server.get("/api/query/last", "&".join(parameters))
        self.assertEqual(answer.status, 200, answer.raw)
        return answer.json

    def test_one(self):
        got = self.last("timeseries=cpu{host=one,core=0}")
        self.assertEqual([list(e) for e in got], [["timestamp", "value", "tsuid"]])
        self.assertEqual((got[0]["timestamp"], got[0]["value"]), ((T + 10) * 1000, "42"))

    def test_resolve(self):
        got = self.last("timeseries=cpu", "resolve")
        self.assertEqual([(e["metric"], e["tags"], e["value"]) for e in got],
                         [("cpu", {"core": "0", "host": "one"}, "42"), ("cpu", {"core": "0", "host": "two"}, "43")])

    def test_several_and_tsuids(self):
        got = self.last("timeseries=shared", "timeseries=cpu{host=two}", "resolve")
        self.assertEqual([(e["metric"], e["value"], e["timestamp"]) for e in got],
                         [("shared", "43.5", (T + 43) * 1000), ("cpu", "43", (T + 10) * 1000)])
        self.assertEqual(self.last("tsuids=" + ",".join(e["tsuid"] for e in got), "resolve"), sorted(got, key=lambda e: e["metric"]))
        self.assertEqual(self.last("tsuids=00"), [])

    def test_back_scan(self):
        self.assertEqual([e["tags"]["host"] for e in self.last("timeseries=fresh", "resolve", "back_scan=1")], ["one"])
        self.assertEqual(len(self.last("timeseries=fresh", "back_scan=24")), 2)
        self.assertEqual(len(self.last("timeseries=fresh", "back_scan=0")), 2)

    def test_post(self):
        body = {"queries": [{"metric": "cpu", "tags": {"host": "one"}}, {"tsuids": [self.last("timeseries=shared")[0]["tsuid"]]}],
                "resolveNames": True, "backScan": 0}
        got = self.server.post("/api/query/last", body).json
        self.assertEqual([(e["metric"], e["value"]) for e in got], [("cpu", "42"), ("shared", "43.5")])

    def test_aliases(self):
        got = self.last("timeseries=other{host=one}", "resolve")
        self.assertEqual([(e["metric"], e["value"]) for e in got], [("other", "42")])

    def test_errors(self):
        for parameters, words in (("", "missing"), ("timeseries=", "metric"), ("timeseries=nothing", "No such name for 'metrics': 'nothing'"),
                                  ("timeseries=cpu{host", "Missing '}'"), ("timeseries=cpu{host}", "key=value"), ("timeseries=cpu&back_scan=x", "back_scan"),
                                  ("timeseries=cpu&back_scan=99999999999999", "back_scan")):
            with self.subTest(parameters):
                self.assert_error(self.server.get("/api/query/last", parameters), 400, words)
        for body in ({}, {"queries": []}, {"queries": [{}]}, {"queries": [{"metric": "cpu", "tags": {"a": 1}}]}, {"queries": [7]}):
            self.assert_error(self.server.post("/api/query/last", body), 400, "")
        self.assertEqual(self.last("timeseries=cpu{host=nobody}"), [])


if __name__ == "__main__":
    unittest.main()
