"""Tests the dashboards: every metric of the catalogue has a panel, and a running job answers the
queries of the panels, in the form of each of Grafana's clients."""
import json
import os
import re
import subprocess
import time
import unittest

from harness import Job, Server, until


def load(name):
    with open(f"{os.environ['SONDE_DASHBOARDS']}/{name}.json") as f:
        return json.load(f)


def panels(dashboard):
    return [p for p in dashboard["panels"] if p["type"] != "row"]


def asked(server, target, start, end, host=".*"):
    """Sends a panel's query in the forms of Grafana's three clients: in the browser, and the old
    and the new one in the backend. Checks that all get the same answer, and returns it."""
    filters = [{**f, "filter": f["filter"].replace("${host:pipe}", host)} for f in target["filters"]]
    query = {"metric": target["metric"].replace("$metric", "load_1m"), "aggregator": target["aggregator"], "downsample": "1s-avg"}
    if target["shouldComputeRate"]:
        query.update(rate=True, rateOptions={"counter": target["isCounter"], "dropResets": False})
    browser = server.post("/api/query", {"start": start * 1000, "end": end * 1000, "queries": [{**query, **({"filters": filters} if filters else {"tags": {}})}],
                                         "msResolution": False, "globalAnnotations": True, "showQuery": True})
    old = server.post("/api/query", {"start": str(start * 1000), "end": str(end * 1000), "queries": [{**query, "tags": {f["tagk"]: f"{f['type']}({f['filter']})" for f in filters}}]})
    new = server.post("/api/query?arrays=true", {"start": start, "end": end, "queries": [{**query, **({"filters": filters} if filters else {})}]})
    for answer in (browser, old, new):
        if answer.status != 200:
            raise AssertionError(query, answer.raw)
    if any(element["query"]["index"] != 0 for element in browser.json):
        raise AssertionError(browser.raw)  # the browser's client needs it in every element
    lines = [[(e["tags"], sorted([int(t), v] for t, v in (e["dps"].items() if isinstance(e["dps"], dict) else e["dps"]))) for e in answer.json]
             for answer in (browser, old, new)]
    if not lines[0] == lines[1] == lines[2]:
        raise AssertionError(lines)
    return lines[0]


class Dashboards(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.catalogue = json.loads(subprocess.run([os.environ["SONDE"], "metrics", "--json"], capture_output=True, check=True).stdout)
        cls.dashboards = {name: load(name) for name in ("job", "node", "gpu", "dask", "custom", "ai_in_the_loop")}

    def test_every_metric_once(self):
        for name, level in (("node", 2), ("gpu", 3)):
            shown = [p["targets"][0]["metric"] for p in panels(self.dashboards[name])]
            self.assertEqual(sorted(shown), sorted(m["name"] for m in self.catalogue if m["level"] == level))

    def test_rates_and_helps(self):
        rows = {m["name"]: m for m in self.catalogue}
        for name in ("job", "node", "gpu"):
            for panel in panels(self.dashboards[name]):
                target = panel["targets"][0]
                self.assertEqual(target["shouldComputeRate"], rows[target["metric"]]["kind"] == "counter")
                self.assertEqual(panel["description"], rows[target["metric"]]["help"])

    def test_panels_suit_the_data_source(self):
        """Panels request whole seconds, and neither nulls nor aliases. tests/grafana tests how the
        data source misinterprets other requests."""
        for dashboard in self.dashboards.values():
            for panel in panels(dashboard):
                target = panel["targets"][0]
                for one in panel["targets"]:
                    self.assertEqual((panel["interval"], one["downsampleFillPolicy"], "alias" in one), ("1s", "none", False))
                if len(panel["targets"]) > 1: # the data source names each line by its metric
                    self.assertNotIn("displayName", panel["fieldConfig"]["defaults"])
                    continue
                name = panel["fieldConfig"]["defaults"]["displayName"]
                self.assertEqual(re.findall(r"\$\{__field\.labels\.(\w+)\}", name), [f["tagk"] for f in target["filters"]])
                self.assertEqual(name == panel["title"], not target["filters"])

    def test_places(self):
        for name, dashboard in self.dashboards.items():
            taken = set()
            ids = [p["id"] for p in dashboard["panels"]]
            self.assertEqual(len(ids), len(set(ids)))
            for panel in dashboard["panels"]:
                g = panel["gridPos"]
                cells = {(x, y) for x in range(g["x"], g["x"] + g["w"]) for y in range(g["y"], g["y"] + g["h"])}
                self.assertFalse(cells & taken, (name, panel["title"]))
                self.assertTrue(all(x < 24 for x, _ in cells))
                taken |= cells
        self.assertEqual(len({d["uid"] for d in self.dashboards.values()}), len(self.dashboards))

    def test_a_running_job_and_its_recording_answer(self):
        """A job on a machine with two GPUs, which a fake library simulates, and its recording."""
        job = Job(level=3, env={"SONDE_NVML": os.environ["FAKE_NVML"], "SONDE_FAKE_NVML": os.environ["GPU_SCRIPT"]})
        self.addCleanup(job.stop)
        begun = int(time.time())

        def last(metric):
            answer = job.server.get("/api/query/last", f"timeseries={metric}")
            return answer.json if answer.status == 200 else []
        # Rates need points of several seconds. The test waits for a sample after the range, because
        # then the points in the range no longer change.
        until(lambda: any(point["timestamp"] >= (begun + 4) * 1000 for point in last("gpu_utilization_percent")), "a sample after the range")
        self.assertEqual(job.server.post("/api/annotation", {"startTime": begun + 1, "description": "now"}).status, 200)
        live = self.answers(job.server, begun, begun + 2)
        self.assertEqual(sorted((tags["host"], tags["gpu"]) for tags, _ in live["gpu", "gpu_utilization_percent", "avg"]), [("node1", "0"), ("node1", "1")])
        self.assertEqual(live["job", "load_1m", "count"][0][1][-1][1], 1, "one node")
        # A machine may lack other metrics of the catalogue, but every test machine has these.
        empty = {metric for (_, metric, _), lines in live.items() if not lines}
        self.assertFalse(empty & {"load_1m", "cpu_percent", "cpu_user_seconds_total", "memory_used_percent", "gpu_count", "gpu_up", "gpu_utilization_percent",
                                  "gpu_memory_used_percent", "gpu_power_watts", "gpu_energy_joules_total", "gpu_temperature_celsius"})
        self.assert_annotation(job.server, begun)
        found = job.server.get("/api/search/lookup", {"m": "gpu_count{host=*}", "limit": 1000}).json["results"]
        self.assertEqual([r["tags"]["host"] for r in found], ["node1"])
        job.end_agent()
        recording = Server(job.folder)
        self.addCleanup(recording.stop)
        self.assertEqual(self.answers(recording, begun, begun + 2), live)
        self.assert_annotation(recording, begun)

    def answers(self, server, start, end):
        """Returns (dashboard, metric, aggregator) → lines, for all existing metrics."""
        known = set(server.get("/api/suggest", "type=metrics&max=10000").json)
        self.assertLess({"cpu_percent", "load_1m", "gpu_utilization_percent", "gpu_energy_joules_total"}, known)
        lines = {}
        for name in ("job", "node", "gpu"):
            for panel in panels(self.dashboards[name]):
                target = panel["targets"][0]
                if target["metric"] in known:
                    lines[name, target["metric"], target["aggregator"]] = asked(server, target, start, end)
                else:
                    self.assertEqual(asked(server, target, start, end), [])
        target = self.dashboards["custom"]["panels"][0]["targets"][0]
        lines["custom", "load_1m", "avg"] = asked(server, target, start, end)
        # The dashboard's choice of hosts: one, several, and hosts that do not exist.
        for host in ("node1", "node1|node2"):
            self.assertEqual(asked(server, target, start, end, host), lines["custom", "load_1m", "avg"])
        self.assertEqual(asked(server, target, start, end, "node2|ode1"), [])
        return lines

    def assert_annotation(self, server, begun):
        """Checks that the backend's client finds the annotation. Its query has no downsampling and
        never requests global annotations."""
        for dashboard in self.dashboards.values():
            note = dashboard["annotations"]["list"][0]["target"]
            answer = server.post("/api/query?arrays=true", {"start": begun, "end": begun + 3,
                                                            "queries": [{"aggregator": "sum", "metric": note["target"]}]})
            found = [a["description"] for element in answer.json for a in element.get("annotations", [])]
            self.assertEqual((note["isGlobal"], found), (False, ["now"]))

    def test_variables(self):
        self.assertEqual([v["query"] for v in self.dashboards["node"]["templating"]["list"]], ["tag_values(load_1m, host)"])
        self.assertEqual([v["query"] for v in self.dashboards["gpu"]["templating"]["list"]], ["tag_values(gpu_count, host)"])
        self.assertEqual([(v["name"], v["query"]) for v in self.dashboards["custom"]["templating"]["list"]],
                         [("metric", "metrics()"), ("host", "tag_values(load_1m, host)")])
        self.assertEqual(self.dashboards["custom"]["panels"][0]["targets"][0]["metric"], "$metric")


if __name__ == "__main__":
    unittest.main()
