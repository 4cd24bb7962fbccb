"""sonde simulate: the requested number of nodes behind one address, without leftovers at the
end."""

import json
import os
import resource
import signal
import subprocess
import unittest
import urllib.request

from place import PATIENCE_S, SONDE, Place, until

# Queries the simulation around it, and prints the answer and the missing nodes.
ASK = """
import json, os, sys, urllib.request
token = open(os.environ["SONDE_TOKEN_FILE"]).read().strip()
for path in sys.argv[1:]:
    with urllib.request.urlopen(urllib.request.Request(os.environ["SONDE_URL"] + path, headers={"Authorization": "Bearer " + token})) as answer:
        print(json.dumps([answer.headers.get("X-Sonde-Missing"), json.load(answer)]))
"""


class Simulate(Place):
    def simulate(self, *arguments, **more):
        return subprocess.run([SONDE, "simulate", *arguments], capture_output=True, text=True, env=self.env, timeout=PATIENCE_S, **more)

    def ask(self, *paths, options=()):
        done = self.simulate("--nodes=30", "--fanout=4", "--metrics=12", "--rate=1", "--history=1m", *options, "--", "python3", "-c", ASK, *paths)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()], done.stderr

    def test_all_nodes_in_one_answer_through_a_tree(self):
        answers, said = self.ask("/sonde/v1/nodes", "/sonde/v1/metrics", "/sonde/v1/status", "/api/query?start=30s-ago&m=avg:10s-avg:queue_length")
        self.assertEqual([missing for missing, _ in answers], [None] * 4)
        nodes, metrics, status, query = (answer for _, answer in answers)
        self.assertEqual([n["host"] for n in nodes["nodes"]], [f"n{i:05}" for i in range(30)])
        names = {m["name"]: m["unit"] for m in metrics["metrics"]}
        self.assertEqual(len(names), 12)
        self.assertEqual((names["step_seconds"], names["cpu_percent"]), ("seconds", "percent"))
        hub = {n["host"]: n for n in status["hub"]["nodes"]}
        self.assertEqual([host for host, n in hub.items() if n["connected"]], ["n00001", "n00002", "n00003", "n00004"])
        self.assertEqual((hub["n00005"]["via"], hub["n00029"]["via"], status["missing"]), ("n00001", "n00007", []))
        self.assertEqual(query[0]["aggregateTags"], ["host"])
        self.assertTrue(all(5 < value < 30 for value in query[0]["dps"].values()), query)
        self.assertIn("30 nodes × 12 metrics every 1 s, 7 relays", said)
        self.assertIn("sonde: http://127.0.0.1:", said)
        self.nothing_left()

    def test_no_mishap_happens(self):
        done = self.simulate("--nodes=2", "--metrics=120", "--rate=1", "--history=1m", "--", "python3", "-c", ASK,
                             "/api/query?start=1m-ago&m=max:0all-max:oom_kills_total&m=max:0all-max:memory_used_bytes")
        _, query = json.loads(done.stdout)
        self.assertEqual([set(series["dps"].values()) == {0} for series in query], [True, False], query)

    def test_the_queries_of_a_request_are_one_message_to_each_node(self):
        """The page asks a dozen charts at once, and Grafana all targets of a panel."""
        script = ASK + """
def ask(path, body=None):
    request = urllib.request.Request(os.environ["SONDE_URL"] + path, body and json.dumps(body).encode(), {"Authorization": "Bearer " + token})
    return json.load(urllib.request.urlopen(request))
def asked():
    return [node["questions"] for node in ask("/sonde/v1/status")["hub"]["nodes"]]
queries = [{"m": aggregator + ":10s-avg:" + metric} for metric in ("step_seconds", "cpu_percent", "queue_length") for aggregator in ("p50", "min", "max", "none")]
counts = []
for path, body in (("/sonde/v1/query", {"start": "30s-ago", "queries": queries}), ("/sonde/v1/query?format=binary", None), ("/api/query", None),
                   ("/sonde/v1/query", {"start": "30s-ago", "queries": queries[:1]})):
    before = asked()
    if path.startswith("/sonde/v1/query?format"):
        urllib.request.urlopen(urllib.request.Request(os.environ["SONDE_URL"] + path, json.dumps({"start": "30s-ago", "queries": queries}).encode(), {"Authorization": "Bearer " + token})).read()
        series = None
    else:
        answer = ask(path, body or {"start": "30s-ago", "noAnnotations": True, "queries": [{"aggregator": "sum", "metric": m, "downsample": "10s-avg"} for m in ("step_seconds", "cpu_percent", "queue_length")]})
        series = len(answer["series"] if "series" in answer else answer)
    counts.append([series, sorted({b - a for a, b in zip(before, asked())})])
print(json.dumps(counts))
"""
        done = self.simulate("--nodes=6", "--metrics=12", "--rate=1", "--history=1m", "--", "python3", "-c", script)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout), [[9 + 18, [1]], [None, [1]], [3, [1]], [1, [1]]])

    def nothing_left(self):
        until(lambda: not [p for p in self.tmp.rglob("*")], lambda: f"{self.tmp} is empty: {list(self.tmp.rglob('*'))}")

    def test_gpus_have_the_tags_of_gpus(self):
        """A panel of GPUs groups by gpu, as for a real job; series that do not belong to one GPU
        lack the tag."""
        catalogue = json.loads(subprocess.run([SONDE, "metrics", "--json"], capture_output=True, check=True).stdout)
        count = 4 + len(catalogue)  # the whole catalogue
        answers, _ = self.ask("/sonde/v1/series?limit=0", "/api/query?start=30s-ago&m=avg:10s-avg:gpu_power_watts{host=*,gpu=*}", "/api/search/lookup?m=gpu_count{gpu=*}",
                              "/api/query/last?timeseries=gpu_count{host=n00001}", "/sonde/v1/series?latest&limit=0", options=(f"--metrics={count}", "--nodes=2"))
        (_, series), (_, power), (_, with_gpu), (_, (gpus,)), (_, latest) = answers
        keys = {s["metric"]: sorted(s["tags"]) for s in series["series"]}
        of_gpus = {m["name"] for m in catalogue if m["source"] == "gpu"} - {"gpu_count"}
        self.assertEqual({name for name, tags in keys.items() if tags == ["gpu", "host", "uuid"]}, of_gpus)
        self.assertEqual({tuple(tags) for name, tags in keys.items() if name not in of_gpus}, {("host",)})
        self.assertEqual([(s["tags"]["host"], s["tags"]["gpu"]) for s in power], [("n00000", "0"), ("n00001", "0")])
        self.assertEqual(len({s["tags"]["uuid"] for s in power}), 2)
        self.assertEqual((with_gpu["results"], gpus["value"]), ([], "1"))
        states = {m["name"] for m in catalogue if m["help"].startswith("1 while")}
        self.assertIn("gpu_up", states)
        values = {name: {s["value"] for s in latest["series"] if s["metric"] == name} for name in states}
        self.assertEqual(values.pop("gpu_up"), {1})
        self.assertEqual(set(map(tuple, values.values())), {(0,)})

    def test_the_command_is_the_end(self):
        done = self.simulate("--quiet", "--nodes=3", "--", "sh", "-c", "exit 7")
        self.assertEqual((done.returncode, done.stderr), (7, ""))
        self.assertEqual(self.simulate("--nodes=3", "--quiet", "--", "no-such-command").returncode, 127)
        self.nothing_left()

    def start(self):
        process = subprocess.Popen([SONDE, "simulate", "--nodes=5", "--history=0"], stderr=subprocess.PIPE, text=True, env=self.env)
        self.started.append(process)
        url = ""
        while "http" not in url:
            url = process.stderr.readline()
            self.assertTrue(url, "it ended")
        return process, url.split()[1]

    def test_it_goes_on_until_it_is_told_to_end(self):
        process, url = self.start()
        base, token = url.split("/?token=")

        def latest():
            with urllib.request.urlopen(f"{base}/sonde/v1/series?match=loss&latest&token={token}") as answer:
                return {s["tags"]["host"]: s["t_ns"] for s in json.load(answer)["series"]}
        until(lambda: len(latest()) == 5, "all nodes have points")
        first = latest()
        until(lambda: all(t > first[host] for host, t in latest().items()), "there are new ones of all nodes")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=PATIENCE_S), 0)
        self.nothing_left()

    def test_killed_it_leaves_no_process_and_no_file_of_a_node(self):
        process, _ = self.start()
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as f:
            others = [int(pid) for pid in f.read().split()]
        self.assertTrue(others)
        process.kill()
        process.wait()
        until(lambda: not any(os.path.exists(f"/proc/{pid}/fd/0") for pid in others), "its processes are gone")
        until(lambda: not [p for p in self.tmp.rglob("*.sonde") if "/head/" not in str(p)], "their files are gone")

    def test_too_few_descriptors(self):
        done = self.simulate("--nodes=5000", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (320, 320)))
        self.assertEqual(done.returncode, 1)
        self.assertIn("a process may have 320 open files, which is too few for 5000 nodes", done.stderr)
        self.assertIn("ulimit -n", done.stderr)
        self.nothing_left()


if __name__ == "__main__":
    unittest.main()
