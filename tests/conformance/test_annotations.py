"""Tests annotations over HTTP: writes them to a live job, and reads them back."""
import hashlib
import hmac
import json
import unittest
from urllib.parse import urlencode

from harness import Job, T


class Annotations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.job = Job()
        cls.addClassCleanup(cls.job.stop)
        cls.server = cls.job.server
        points = [{"metric": "loss", "timestamp": T + i, "value": i, "tags": {"rank": str(rank)}} for rank in (0, 1) for i in range(100)]
        assert cls.server.post("/api/put", points).status == 204

    def shown(self, start, end, m="sum:loss{rank=0}", **more):
        answer = self.server.get("/api/query", {"start": start, "end": end, "m": m, **more})
        self.assertEqual(answer.status, 200, answer.raw)
        return answer.json

    def assert_refused(self, answer, status, words):
        self.assertEqual((answer.status, answer.json["error"]["code"]), (status, status))
        self.assertIn(words, answer.json["error"]["message"])

    def test_there_and_back(self):
        sent = {"startTime": T + 10, "description": "the rate was\nhalved \\ twice", "notes": "by hand", "custom": {"who": "j doe", "rank": "0"}, "endTime": T + 12}
        answer = self.server.post("/api/annotation", sent)
        self.assertEqual((answer.status, answer.json), (200, sent))
        got = self.server.get("/api/annotation", {"start_time": T + 10}).json
        self.assertEqual(got, {**sent, "custom": {**sent["custom"], "host": "node1"}})
        # Answers contain the annotation for its series; all answers contain it if the request asks
        # for global annotations.
        self.assertEqual([{k: a[k] for k in a if k != "tsuid"} for a in self.shown(T + 10, T + 11)[0]["annotations"]], [got])
        self.assertNotIn("annotations", self.shown(T + 10, T + 11, "sum:loss{rank=1}")[0])
        self.assertNotIn("annotations", self.shown(T + 10, T + 11, no_annotations="")[0])
        self.assertEqual(self.shown(T + 10, T + 11, "sum:loss{rank=1}", global_annotations="")[0]["globalAnnotations"], [got])
        native = self.server.get("/sonde/v1/annotations", {"start": T + 10, "end": T + 11}).json["annotations"]
        self.assertEqual([(a["text"], a["t_ns"]) for a in native], [(sent["description"], (T + 10) * 1_000_000_000)])

    def test_the_last_of_a_second_counts(self):
        for method, text in (("POST", "first"), ("PUT", "second")):
            answer = self.server.request(method, "/api/annotation", json.dumps({"startTime": T + 20, "description": text}))
            self.assertEqual(answer.status, 200)
            self.assertEqual(self.server.get("/api/annotation", {"start_time": T + 20}).json["description"], text)

    def test_forms_of_times(self):
        for start in (T + 30, str(T + 30), (T + 30) * 1000, T + 30.25):
            self.assertEqual(self.server.post("/api/annotation", {"startTime": start, "description": repr(start), "endTime": 0, "custom": None, "tsuid": ""}).status, 200)
            self.assertEqual(self.server.get("/api/annotation", {"start_time": T + 30}).json["description"], repr(start))

    def test_of_a_range(self):
        for start in (T - 70, (T - 71) * 1000 + 250, T - 72):
            self.assertEqual(self.server.post("/api/annotations", {"startTime": start, "description": f"at {start}"}).status, 200)

        def listed(**more):
            answer = self.server.get("/api/annotations", more)
            self.assertEqual(answer.status, 200, answer.raw)
            return [a["startTime"] for a in answer.json]
        self.assertEqual(listed(start_time=T - 72, end_time=T - 70), [T - 72, (T - 71) * 1000 + 250, T - 70])
        self.assertEqual(listed(start_time=T - 71, end_time=T - 71), [])
        self.assertEqual(listed(start_time=T - 70, end_time=T - 69), [T - 70])
        self.assertIn(T - 70, listed(start_time=T - 80))
        one = self.server.get("/api/annotation", {"start_time": (T - 71) * 1000 + 250}).json
        self.assertEqual(one["startTime"], (T - 71) * 1000 + 250)
        self.assertEqual(self.server.get("/api/annotation", {"start_time": (T - 71) * 1000 + 251}).status, 404)
        self.assert_refused(self.server.get("/api/annotations"), 400, "Missing start time")
        self.assert_refused(self.server.get("/api/annotations", {"start_time": T, "end_time": T - 1}), 400, "before")
        self.assertEqual(self.server.request("DELETE", "/api/annotations").status, 501)

    def test_times_in_the_resolution_of_the_answer(self):
        """Grafana reads startTime as seconds in an answer whose points have seconds."""
        self.assertEqual(self.server.post("/api/annotation", {"startTime": (T + 60) * 1000 + 750, "description": "fine"}).status, 200)
        for more, time in (({}, T + 60), ({"ms": ""}, (T + 60) * 1000 + 750)):
            element = self.shown(T + 60, T + 61, global_annotations="", **more)[0]
            for member in ("annotations", "globalAnnotations"):
                self.assertEqual([a["startTime"] for a in element[member] if a["description"] == "fine"], [time], (member, more))
        # A request for the annotation itself keeps the milliseconds, which identify it.
        self.assertEqual(self.server.get("/api/annotation", {"start_time": (T + 60) * 1000 + 750}).json["startTime"], (T + 60) * 1000 + 750)

    def test_in_the_address(self):
        """Like OpenTSDB, the server takes annotations in the parameters of the address, for clients
        that can send only GET, or no body."""
        def ask(method, override=None, path="/api/annotation", **more):
            query = {"start_time": T - 90, **more, **({"method_override": override} if override is not None else {})}
            return self.server.request(method, f"{path}?{urlencode(query)}")
        for method, override, text in (("GET", "post", "by get"), ("GET", "PUT", "by get again"), ("POST", None, "by post"), ("PUT", None, "by put"), ("POST", "get", "still by post")):
            for path in ("/api/annotation", "/api/annotations"):
                sent = {"startTime": T - 90, "endTime": T - 80, "description": f"{text} & {path}", "notes": "n ö"}
                answer = ask(method, override, path, description=sent["description"], notes=sent["notes"], end_time=T - 80)
                self.assertEqual((answer.status, answer.json), (200, sent))
                self.assertEqual(ask("GET").json, {**sent, "custom": {"host": "node1"}})
        tsuid = self.shown(T, T + 5, show_tsuids="")[0]["tsuids"][0]
        self.assertEqual(self.server.get("/api/annotation", {"start_time": T - 95, "description": "x", "tsuid": tsuid, "method_override": "post"}).status, 200)
        self.assertEqual(self.server.get("/api/annotation", {"start_time": T - 95}).json["custom"], {"host": "node1", "rank": "0"})
        self.assertEqual(ask("GET", "get").status, 200)
        for override, words in (("", "Missing method override value"), ("foo", "Unknown or unsupported method override value")):
            self.assert_refused(ask("GET", override, description="x"), 405, words)
        self.assert_refused(ask("GET", "delete"), 501, "cannot be deleted")
        self.assert_refused(ask("GET", "post"), 400, "Missing description")
        self.assert_refused(self.server.get("/api/annotation", {"description": "x", "method_override": "post"}), 400, "startTime")
        self.assert_refused(ask("GET", "post", start_time="soon", description="x"), 400, "startTime")
        self.assert_refused(ask("GET", "post", "/api/annotation/bulk", description="x"), 400, "Missing request content")
        # A changing request needs more than the view role.
        view = hmac.new(self.server.token.encode(), b"sonde view token", hashlib.sha256).hexdigest()
        for override, status in (("post", 403), ("delete", 403), ("get", 200)):
            answer = self.server.get("/api/annotation", {"start_time": T - 90, "description": "x", "method_override": override}, headers={"Authorization": f"Bearer {view}"})
            self.assertEqual(answer.status, status)
        self.assertEqual(ask("GET").json["description"], "still by post & /api/annotations")
        # On routes that change nothing, method_override has no effect.
        self.assertEqual(self.server.get("/api/suggest", "type=metrics&q=lo&method_override=post").json, ["loss"])
        self.assertEqual(self.server.get("/api/put", "method_override=post").status, 405)

    def test_bulk(self):
        sent = [{"startTime": T + 40 + i, "description": f"n{i}"} for i in range(500)]
        for method in ("POST", "PUT"):
            answer = self.server.request(method, "/api/annotation/bulk", json.dumps(sent))
            self.assertEqual((answer.status, answer.json), (200, sent))
        self.assertEqual(self.server.get("/api/annotation", {"start_time": T + 539}).json["description"], "n499")
        answer = self.server.post("/api/annotation/bulk", [*sent[:2], {"startTime": 0, "description": "x"}, {"startTime": T, "description": "a", "custom": {"not(a)name": "x"}}])
        self.assert_refused(answer, 400, "2 of 4 annotations were refused, the first with: Missing or invalid startTime")
        self.assert_refused(self.server.post("/api/annotation/bulk", [{"startTime": T, "description": "x"}] * 10001), 413, "put_annotations")
        self.assertEqual(self.server.get("/api/annotation/bulk").status, 405)

    def test_of_a_series(self):
        tsuid = self.shown(T, T + 5, show_tsuids="")[0]["tsuids"][0]
        self.assertEqual(self.server.post("/api/annotation", {"startTime": T + 2, "description": "of rank 0", "tsuid": tsuid}).status, 200)
        self.assertEqual([a["description"] for a in self.shown(T + 2, T + 2)[0]["annotations"]], ["of rank 0"])
        self.assertNotIn("annotations", self.shown(T + 2, T + 2, "sum:loss{rank=1}")[0])
        self.assert_refused(self.server.post("/api/annotation", {"startTime": T, "description": "x", "tsuid": "00"}), 400, "No such tsuid")

    def test_errors(self):
        good = {"startTime": T, "description": "x"}
        for body, words in (({}, "startTime"), ({**good, "startTime": -1}, "startTime"), ({**good, "startTime": "soon"}, "startTime"), ({"startTime": T}, "Missing description"),
                            ({**good, "description": ""}, "Missing description"), ({**good, "description": 7}, "Missing description"), ({**good, "custom": [1]}, "an object is needed"),
                            ({**good, "custom": {"a": 1}}, "has to be a text"), ({**good, "custom": {"a b": "1"}}, "a word"), ({**good, "custom": {"a": "x" * 2000}}, "longer than 1024"),
                            ({**good, "custom": {f"k{i}": "v" for i in range(17)}}, "Too many custom"), ({**good, "description": "x" * 5000}, "longer than 4096"),
                            ({**good, "description": "x" * 70000}, "Too long"), ({**good, "endTime": "never"}, "endTime"), ({**good, "startTime": 99999999999}, "in the future"),
                            ([], "No annotations"), ([7], "Not an annotation"), ("", "Missing request content"), ("{", "JSON"), ("7", "JSON")):
            with self.subTest(str(body)[:80]):
                self.assert_refused(self.server.post("/api/annotation", body), 400, words)
        self.assert_refused(self.server.request("DELETE", "/api/annotation", json.dumps(good)), 501, "cannot be deleted")
        self.assertEqual(self.server.request("POST", "/api/annotation", json.dumps(good), token=False).status, 401)


class AgentGone(unittest.TestCase):
    def test_it(self):
        job = Job()
        self.addCleanup(job.stop)
        job.kill_agent()
        self.assertEqual(job.server.post("/api/annotation", {"startTime": T, "description": "x"}).status, 503)


if __name__ == "__main__":
    unittest.main()
