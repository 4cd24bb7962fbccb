"""The dashboards: every metric of the catalogue has its panel, and a running job answers what they ask, in the way that each of Grafana's clients asks."""
import json
import os
import subprocess
import time
import unittest

from harness import Job


def load(name):
    with open(f"{os.environ['SONDE_DASHBOARDS']}/{name}.json") as f:
        return json.load(f)


class Dashboards(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.catalogue = json.loads(subprocess.run([os.environ["SONDE"], "metrics", "--json"], capture_output=True, check=True).stdout)
        cls.node = load("node")
        cls.panels = [p for p in cls.node["panels"] if p["type"] != "row"]

    def test_every_metric_once(self):
        shown = [p["targets"][0]["metric"] for p in self.panels]
        self.assertEqual(sorted(shown), sorted(m["name"] for m in self.catalogue if m["level"] in (2, 3)))

    def test_rates_and_helps(self):
        rows = {m["name"]: m for m in self.catalogue}
        for panel in self.panels:
            target = panel["targets"][0]
            self.assertEqual(target["shouldComputeRate"], rows[target["metric"]]["kind"] == "counter")
            self.assertEqual(panel["description"], rows[target["metric"]]["help"])

    def test_places(self):
        taken = set()
        ids = [p["id"] for p in self.node["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        for panel in self.node["panels"]:
            g = panel["gridPos"]
            cells = {(x, y) for x in range(g["x"], g["x"] + g["w"]) for y in range(g["y"], g["y"] + g["h"])}
            self.assertFalse(cells & taken, panel["title"])
            self.assertTrue(all(x < 24 for x, _ in cells))
            taken |= cells

    def sampled(self, job):
        """The names of its metrics, once it has taken a sample."""
        deadline = time.monotonic() + 60
        while True:
            known = set(job.server.get("/api/suggest", "type=metrics&max=10000").json)
            if {"cpu_percent", "load_1m"} <= known and job.server.get("/api/query/last", "timeseries=load_1m").json:
                return known
            self.assertLess(time.monotonic(), deadline)

    def test_a_running_job_answers(self):
        job = Job(level=2)
        self.addCleanup(job.stop)
        known = self.sampled(job)

        def asked(target):
            query = {"metric": target["metric"], "aggregator": target["aggregator"], "downsample": "1s-avg",
                     "filters": [{**f, "filter": f["filter"].replace("$host", "*")} for f in target["filters"]]}
            if target["shouldComputeRate"]:
                query.update(rate=True, rateOptions={"counter": target["isCounter"]})
            now = time.time()
            forms = [("/api/query?arrays=true", {"start": int(now) - 300, "end": int(now) + 1, "queries": [{**query, "tags": {}}]}),
                     ("/api/query", {"start": int(now * 1000) - 300000, "queries": [query], "msResolution": False, "globalAnnotations": True})]
            for path, body in forms:
                answer = job.server.post(path, body)
                self.assertEqual(answer.status, 200, (target["metric"], answer.raw))
            return answer.json
        for panel in self.panels:
            target = panel["targets"][0]
            if target["metric"] in known:
                for element in asked(target):
                    self.assertEqual(element["tags"]["host"], "node1")
        self.assertTrue(asked(next(p["targets"][0] for p in self.panels if p["targets"][0]["metric"] == "load_1m")))

    def test_variables(self):
        job = Job(level=2)
        self.addCleanup(job.stop)
        self.sampled(job)
        found = job.server.get("/api/search/lookup", {"m": "load_1m{host=*}"}).json["results"]
        self.assertEqual([r["tags"]["host"] for r in found], ["node1"])
        self.assertEqual([v["query"] for v in self.node["templating"]["list"]], ["tag_values(load_1m, host)"])
        custom = load("custom")
        self.assertEqual([v["name"] for v in custom["templating"]["list"]], ["metric", "host"])
        self.assertEqual(custom["panels"][0]["targets"][0]["metric"], "$metric")


if __name__ == "__main__":
    unittest.main()
