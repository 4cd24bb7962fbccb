"""Tests points over HTTP: a live job's agent takes them; the server of a recording refuses them."""
import gzip
import json
import time
import unittest

from harness import Case, Job, T


def point(metric="loss", t=T, value=1, **tags):
    return {"metric": metric, "timestamp": t, "value": value, "tags": tags or {"rank": "0"}}


class Put(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.job = Job()
        cls.addClassCleanup(cls.job.stop)
        cls.server = cls.job.server

    def stored(self, metric, tag="{rank=*}"):
        answer = self.server.get("/api/query", {"start": T - 1000, "end": T + 1000, "m": f"none:{metric}{tag}", "ms": ""})
        self.assertEqual(answer.status, 200, answer.raw)
        return {(e["tags"].get("rank"), int(t) - T * 1000): v for e in answer.json for t, v in e["dps"].items()}

    def put(self, body, parameters="", headers=None):
        return self.server.post("/api/put" + parameters, body, headers)

    def test_single_and_array(self):
        answer = self.put(point("one", value=0.1))
        self.assertEqual((answer.status, answer.raw), (204, b""))
        answer = self.put([point("several", t=T + i, value=i, rank=str(r)) for r in range(3) for i in range(100)])
        self.assertEqual((answer.status, answer.raw), (204, b""))
        self.assertEqual(self.stored("one"), {("0", 0): 0.1})
        self.assertEqual(self.stored("several"), {(str(r), 1000 * i): i for r in range(3) for i in range(100)})

    def test_forms_of_numbers_and_times(self):
        self.put([point("forms", t=T, value="42.5"), point("forms", t=str(T + 1), value=1e300), point("forms", t=T * 1000 + 2500, value=-3),
                  point("forms", t=T + 3.5, value=2**53)])
        self.assertEqual(self.stored("forms"), {("0", 0): 42.5, ("0", 1000): 1e300, ("0", 2500): -3, ("0", 3500): 2**53})

    def test_gzip(self):
        body = gzip.compress(json.dumps([point("zipped", t=T + i, value=i) for i in range(1000)]).encode())
        self.assertEqual(self.put(body, headers={"Content-Encoding": "gzip"}).status, 204)
        self.assertEqual(len(self.stored("zipped")), 1000)

    def test_summary_and_details(self):
        good, bad = point("mixed", value=7), point("mixed", value="seven")
        self.assertEqual(self.put(good, "?summary").json, {"success": 1, "failed": 0})
        answer = self.put(good, "?details")
        self.assertEqual((answer.status, answer.json), (200, {"success": 1, "failed": 0, "errors": []}))
        answer = self.put([good, bad], "?summary")
        self.assertEqual((answer.status, answer.json), (400, {"success": 1, "failed": 1}))
        answer = self.put([good, bad], "?details")
        self.assertEqual(answer.status, 400)
        self.assertEqual(answer.json, {"success": 1, "failed": 1,
                                       "errors": [{"datapoint": bad, "error": "Unable to parse value to a number"}]})
        answer = self.put([good, bad])
        self.assertEqual((answer.status, answer.json["error"]["message"]), (400, "One or more data points had errors"))

    def test_numbers_out_of_range_are_refused_alone(self):
        """A point whose number JSON or a double cannot express is refused; the others are
        stored."""
        for written, named in (("NaN", "NaN"), ("Infinity", "Infinity"), ("-Infinity", "-Infinity"), ("1e400", "1e400"), ("-1E+999", "-1E+999"),
                               ("1" + "0" * 20, "1" + "0" * 20), ('"1' + "0" * 20 + '"', "1" + "0" * 20)):
            with self.subTest(written):
                good = json.dumps([point("apart", t=T + i, value=i, rank='a"NaN,1e999\\') if False else point("apart", t=T + i, value=i) for i in range(2)])
                bad = json.dumps(point("apart", value="VALUE")).replace('"VALUE"', written)
                answer = self.put(f"{good[:-1]}, {bad}]", "?details")
                self.assertEqual((answer.status, answer.json["success"], answer.json["failed"]), (400, 2, 1))
                self.assertEqual(answer.json["errors"], [{"datapoint": point("apart", value=named), "error": "Unable to parse value to a number"}])
                self.assertEqual(self.stored("apart"), {("0", 0): 0, ("0", 1000): 1})
        # Whole numbers of 64 bits stay unchanged, and so does the word NaN in strings.
        kept = {"metric": "kept", "timestamp": T, "value": 2**62, "tags": {"rank": "NaN"}}
        answer = self.put(f'[{json.dumps(kept)}, {json.dumps(point("kept", value="V")).replace(chr(34) + "V" + chr(34), "NaN")}]', "?details")
        self.assertEqual((answer.status, answer.json["success"]), (400, 1))
        self.assertEqual(self.stored("kept"), {("NaN", 0): 2**62})
        self.assertEqual(self.put("[NaN,").status, 400)

    def test_words_of_errors(self):
        def without(key):
            return {k: v for k, v in point().items() if k != key}
        for bad, words in ((point(metric=""), "Metric name was empty"), (without("metric"), "Metric name was empty"),
                           (point(t=0), "Invalid timestamp"), (point(t=-5), "Invalid timestamp"), (point(t="soon"), "Invalid timestamp"),
                           (without("timestamp"), "Invalid timestamp"), (point(value=""), "Empty value"), (point(value=None), "Empty value"),
                           (without("value"), "Empty value"), (point(value="x"), "Unable to parse value to a number"),
                           (point(value="nan"), "Unable to parse value to a number"), (without("tags"), "Missing tags"),
                           ({**point(), "tags": {}}, "Missing tags"), ({**point(), "tags": [1]}, "Invalid tags"),
                           (point(rank="a b"), "Invalid tag"), (point(rank="a\nput evil 1 1 a=b"), "Invalid tag"), (point("a b"), "Invalid metric"),
                           (7, "Not a data point"), ({**point(), "tags": {f"k{i}": "v" for i in range(17)}}, "Too many tags")):
            with self.subTest(words, bad=bad):
                answer = self.put([bad], "?details")
                self.assertEqual((answer.status, answer.json["failed"]), (400, 1))
                self.assertIn(words, answer.json["errors"][0]["error"])
                self.assertEqual(answer.json["errors"][0]["datapoint"], bad)

    def test_what_the_agent_refuses(self):
        """The agent checks names. Its messages are in the answer, with their points."""
        bad = point("not(a)name")
        answer = self.put([point("named"), bad, point("named", t=T + 1)], "?details")
        self.assertEqual((answer.status, answer.json["success"], answer.json["failed"]), (400, 2, 1))
        self.assertEqual(answer.json["errors"][0]["datapoint"], bad)
        self.assertIn("name", answer.json["errors"][0]["error"])
        self.assertEqual(len(self.stored("named")), 2)
        answer = self.put([point(f"not({i})name") for i in range(250)], "?summary")
        self.assertEqual(answer.json, {"success": 0, "failed": 250})

    def test_no_points_in_the_body(self):
        for body, words in (("", "Missing"), ("{", "JSON"), ("[]", "No datapoints"), ("7", "data point"), ("null", "JSON")):
            with self.subTest(body):
                answer = self.put(body)
                self.assertEqual(answer.status, 400)
                self.assertIn("error", answer.json)
        answer = self.put([point()] * 100001)
        self.assertEqual(answer.status, 413)
        self.assertIn("put_points", answer.json["error"]["message"])
        self.assertEqual(self.server.get("/api/put").status, 405)
        self.assertEqual(self.server.request("POST", "/api/put", json.dumps(point()), token=False).status, 401)

    def test_dragon(self):
        body = {"dps": [{"metric": "dragon", "value": 1.5, "tags": {"rank": "3"}}, {"metric": "dragon", "value": 2.5}], "timestamp": T + 5}
        answer = self.server.post("/api/metrics", body)
        self.assertEqual((answer.status, answer.json), (201, {"success": 2, "failed": 0, "errors": []}))
        self.assertEqual(self.stored("dragon", ""), {("3", 5000): 1.5, (None, 5000): 2.5})
        answer = self.server.post("/api/metrics", {"dps": [{"metric": "dragon", "value": "x"}], "timestamp": T})
        self.assertEqual((answer.status, answer.json["success"], answer.json["failed"]), (201, 0, 1))
        self.assertEqual([type(e) for e in answer.json["errors"]], [str])
        for body in ({}, [], {"dps": 7}):
            self.assertEqual(self.server.post("/api/metrics", body).status, 400)
        self.assertEqual(self.server.get("/api/ready").json, {"is_ready": True})

    def test_points_of_dragons_programs(self):
        """Dragon's programs send points without a time, with null tags, with any name, and with
        truth values."""
        before = time.time()
        body = {"dps": [{"metric": "lr(0) %", "value": 0.5, "tags": None}, {"metric": "flag", "value": True, "tags": {"gpu": 0}}]}
        self.assertEqual(self.server.post("/api/metrics", body).json, {"success": 2, "failed": 0, "errors": []})
        [stored] = self.server.get("/api/query", {"start": int(before) - 1, "m": "none:lr（0）　％", "ms": ""}).json
        [(t_ms, value)] = stored["dps"].items()
        self.assertEqual((list(stored["tags"]), value), (["host"], 0.5))
        self.assertTrue(before - 1 <= int(t_ms) / 1000 <= time.time() + 1)
        got = self.server.post("/api/query", {"start": "1h-ago", "queries": [{"metric": "lr(0) %", "aggregator": "sum"}]}).json
        self.assertEqual([e["metric"] for e in got], ["lr(0) %"])
        for method, path, status, answer in (("GET", "/api/set_shutdown", 200, {"success": 1, "failed": 0, "errors": []}),
                                             ("POST", "/api/tsdb_cleanup", 201, {"success": 0, "failed": 0, "errors": []})):
            got = self.server.get(path) if method == "GET" else self.server.post(path, {"start_time": 0})
            self.assertEqual((got.status, got.json), (status, answer), path)
        self.assertTrue(self.server.get("/api/telemetry_shutdown").json["shutdown_begin"])


class AgentGone(unittest.TestCase):
    def test_it(self):
        job = Job()
        self.addCleanup(job.stop)
        self.assertEqual(job.server.post("/api/put", point("before")).status, 204)
        job.kill_agent()
        answer = job.server.post("/api/put", point())
        self.assertEqual(answer.status, 503)
        self.assertIn("agent", answer.json["error"]["message"])
        self.assertEqual(job.server.get("/api/query", {"start": T - 9, "end": T + 9, "m": "sum:before"}).json[0]["dps"], {str(T): 1})


class Recording(Case):
    def test_refused(self):
        for path in ("/api/put", "/api/metrics"):
            self.assert_error(self.server.post(path, point()), 400, "recordings")


if __name__ == "__main__":
    unittest.main()
