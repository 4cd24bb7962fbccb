"""Tests the smaller routes of OpenTSDB's and Dragon's interfaces, and CORS."""
import unittest

from harness import TOKEN, Case, T, Writer


class Admin(Case):
    arguments = ("cors=https://grafana.example:3000, http://other.example",)

    @classmethod
    def write(cls, folder):
        writer = Writer(f"{folder}/a.sonde")
        writer.points("cpu", {"host": "a"}, [(T, 1)])
        writer.annotation(T + 5, {"rank": "1"}, "the run begins")
        writer.close()

    def test_stats(self):
        stats = self.server.get("/api/stats").json
        for stat in stats:
            self.assertEqual(list(stat), ["metric", "timestamp", "value", "tags"])
            self.assertEqual(list(stat["tags"]), ["host"])
        values = {s["metric"]: s["value"] for s in stats}
        self.assertEqual((values["sonde.series"], values["sonde.files"]), ("1", "1"))
        self.assertGreaterEqual(int(values["tsd.connectionmgr.connections"]), 1)
        self.assertEqual((values["sonde.requests.running"], values["sonde.requests.refused_memory"]), ("1", "0"))
        self.assertGreaterEqual(int(values["sonde.workers"]), 1)
        later = {s["metric"]: s["value"] for s in self.server.get("/api/stats").json}
        self.assertGreater(int(later["sonde.requests.answered"]), int(values["sonde.requests.answered"]))

    def test_dropcaches(self):
        self.assertEqual(self.server.get("/api/dropcaches").json, {"status": "200", "message": "Caches dropped"})

    def test_uid_assign(self):
        got = self.server.get("/api/uid/assign", "metric=cpu,mem&tagk=host").json
        self.assertEqual({k: list(v) for k, v in got.items()}, {"metric": ["cpu", "mem"], "tagk": ["host"]})
        self.assertEqual(self.server.post("/api/uid/assign", {"metric": ["cpu", "mem"], "tagk": ["host"]}).json, got)
        answer = self.server.post("/api/uid/assign", {"metric": ["cpu", "a b"]})
        self.assertEqual((answer.status, answer.json["metric_errors"]), (400, {"a b": "Illegal character in the name"}))
        self.assert_error(self.server.get("/api/uid/assign"), 400, "Missing values")
        self.assert_error(self.server.post("/api/uid/assign", {"metric": [7]}), 400, "list of texts")

    def test_annotation(self):
        answer = self.server.get("/api/annotation", {"start_time": T + 5})
        self.assertEqual(answer.json, {"startTime": T + 5, "endTime": 0, "description": "the run begins", "notes": "", "custom": {"rank": "1"}})
        self.assert_error(self.server.get("/api/annotation", {"start_time": T + 6}), 404, "Unable to locate annotation")
        self.assert_error(self.server.get("/api/annotation"), 400, "start_time")
        self.assert_error(self.server.get("/api/annotation", {"start_time": "x"}), 400, "")
        for path in ("/api/annotation", "/api/annotation/bulk"):
            for method in ("POST", "PUT"):
                self.assert_error(self.server.request(method, path, "{}"), 400, "these are recordings")
            self.assert_error(self.server.request("DELETE", path, "{}"), 501, "cannot be deleted")

    def test_dragon(self):
        answer = self.server.post("/api/token", {"auth_key": TOKEN}, token=False)
        self.assertEqual((answer.status, answer.json), (200, {"access_token": f"Bearer {TOKEN}"}))
        for body in ({"auth_key": "x"}, {"auth_key": ""}, {}, "", "{", {"auth_key": TOKEN[:-1]}):
            answer = self.server.post("/api/token", body, token=False)
            self.assertEqual((answer.status, answer.json), (400, {"msg": "Bad auth_key"}))
        self.assertEqual(self.server.get("/api/telemetry_shutdown").status, 200)
        self.assert_error(self.server.request("POST", "/api/reboot", "hostnames=a", {"Content-Type": "application/x-www-form-urlencoded"}), 501, "cannot")

    def test_cors(self):
        for origin in ("https://grafana.example:3000", "http://other.example"):
            answer = self.server.get("/api/version", headers={"Origin": origin})
            self.assertEqual((answer.status, answer.headers["Access-Control-Allow-Origin"], answer.headers["Vary"]), (200, origin, "Origin"))
            answer = self.server.request("OPTIONS", "/api/query", headers={"Origin": origin, "Access-Control-Request-Method": "POST"}, token=False)
            self.assertEqual((answer.status, answer.headers["Access-Control-Allow-Origin"]), (200, origin))
            self.assertIn("POST", answer.headers["Access-Control-Allow-Methods"])
            self.assertIn("Authorization", answer.headers["Access-Control-Allow-Headers"])
            # A request without the token is refused, but the page may read that error.
            answer = self.server.get("/api/version", headers={"Origin": origin}, token=False)
            self.assertEqual((answer.status, answer.headers["Access-Control-Allow-Origin"]), (401, origin))
        for origin in ("http://grafana.example:3000", "https://grafana.example", "null", "*"):
            self.assertIsNone(self.server.get("/api/version", headers={"Origin": origin}).headers["Access-Control-Allow-Origin"])
            self.assertEqual(self.server.request("OPTIONS", "/api/query", headers={"Origin": origin}, token=False).status, 401)


class NoCors(Case):
    def test_it(self):
        self.assertIsNone(self.server.get("/api/version", headers={"Origin": "http://other.example"}).headers["Access-Control-Allow-Origin"])
        self.assertEqual(self.server.request("OPTIONS", "/api/query", headers={"Origin": "http://other.example"}).status, 405)


if __name__ == "__main__":
    unittest.main()
