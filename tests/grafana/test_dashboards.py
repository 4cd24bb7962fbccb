"""Queries every panel of every dashboard through Grafana's OpenTSDB data source.

Grafana's own packages (npm) do the work of Grafana in the browser: variables, interpolation,
intervals, legends. GRAFANA_PLUGIN names the folder of an installed data source. Without it,
stand-ins replace the data source (test_stand_ins.py compares them with an installed one).
"""

import http.client
import itertools
import json
import os
import pathlib
import subprocess
import sys
import time
import unittest
from urllib.parse import quote, urlencode, urlsplit

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / name) for name in ("cli", "conformance", "cluster")]

import backend  # noqa: E402
import lab  # noqa: E402
from data_source import browser, source  # noqa: E402
from harness import TOKEN, Server, Writer  # noqa: E402
from packages import why_not  # noqa: E402
from place import PATIENCE_S, SONDE, Place, until  # noqa: E402

DASHBOARDS = pathlib.Path(os.environ["SONDE_DASHBOARDS"])
NAMES = ("job", "node", "gpu", "custom")  # test_dask.py tests "dask", which needs a Dask job
HIGH_RATE = 100  # per second
HOUR_S = 3600
OUT = "/mnt/shared/sonde"


def load(name):
    return json.loads((DASHBOARDS / f"{name}.json").read_text())


class Sonde:
    """A server of sonde, queried without Grafana."""

    def __init__(self, url, token):
        self.url, self.token = url, token
        self.known = {}

    def get(self, path, **parameters):
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=PATIENCE_S)
        try:
            connection.request(
                "GET",
                f"{path}?{urlencode(parameters, quote_via=quote)}",
                headers={"Authorization": f"Bearer {self.token}"},
            )
            answer = connection.getresponse()
            text = answer.read()
            return json.loads(text) if answer.status == 200 else None
        finally:
            connection.close()

    def series(self, metric, start, end):
        """Returns (tags, number of seconds with a point) of each series in a past range."""
        if (metric, start, end) not in self.known:
            answer = self.get(
                "/api/query", start=start, end=end, m=f"none:1s-avg:{metric}", arrays="true"
            )
            self.known[metric, start, end] = [(e["tags"], len(e["dps"])) for e in answer or []]
        return self.known[metric, start, end]


@unittest.skipIf(why_not(), why_not())
class Panels(Place):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser()
        cls.addClassCleanup(cls.browser.close)

    def tearDown(self):
        self.doCleanups()  # ends the servers, because Place would wait for them
        super().tearDown()

    def grafana(self, url, token, **more):
        self.sonde_server = Sonde(url, token)
        server = source(backend.settings(url, token, **more))
        self.addCleanup(server.close)
        return server.url

    def expected_lines(self, panel, start, end, hosts=None):
        """Returns the expected legends of a panel, according to sonde's own series."""
        target = panel["targets"][0]
        tags = [f["tagk"] for f in target["filters"]]
        series = self.sonde_server.series
        found = [
            t for t, _ in series(target["metric"], start, end) if all(tag in t for tag in tags)
        ]
        if target[
            "shouldComputeRate"
        ]:  # a rate needs two points, of which the first one may be before the range
            counts = [
                t for t, seconds in series(target["metric"], start - HOUR_S, end) if seconds > 1
            ]
            found = [t for t in found if t in counts]
        words = {"gpu": "GPU "}
        return sorted(
            {
                " ".join(words.get(tag, "") + t[tag] for tag in tags) or panel["title"]
                for t in found
                if hosts is None or t["host"] in hosts
            }
        )

    def check(self, base, name, start, end, width=500, **variables):
        """Checks that no panel of a dashboard has an error, and that each has the expected
        lines."""
        dashboard = load(name)
        seen = self.browser.look(base, dashboard, start, end, width, **variables)
        panels = [p for p in dashboard["panels"] if p["type"] != "row"]
        self.assertEqual(
            [
                (p["title"], p["errors"])
                for p in seen["panels"]
                if p["errors"] or p["state"] != "Done"
            ],
            [],
            name,
        )
        self.assertEqual({k: v for k, v in seen["variables"].items() if v.get("error")}, {}, name)
        expected, drawn = {}, {}
        for panel in seen["panels"]:
            model = (
                panels[0]
                if name == "custom"
                else next(p for p in panels if f"panel-{p['id']}" == panel["key"])
            )
            if name == "custom":
                model = json.loads(json.dumps(model).replace("$metric", panel["title"]))
            expected[panel["key"]] = self.expected_lines(model, start, end, variables.get("host"))
            drawn[panel["key"]] = sorted(line["name"] for line in panel["lines"])
            self.assertTrue(all(line["points"] for line in panel["lines"]), (name, panel["title"]))
            self.assertTrue(
                all(
                    start - 1 <= t / 1000 <= end
                    for line in panel["lines"]
                    for t, _ in line["points"]
                ),
                (name, panel["title"]),
            )
        self.assertEqual(drawn, expected, name)
        return seen

    def check_all(self, base, start, end, hosts, gpus=0, notes=()):
        """Checks all dashboards; returns (dashboard, panel) → lines."""
        drawn = {}
        for name in NAMES:
            metrics = {"metric": ["load_1m", "cpu_percent"]} if name == "custom" else {}
            seen = self.check(base, name, start, end, **metrics)
            drawn.update({(name, p["title"]): p["lines"] for p in seen["panels"]})
            self.assertEqual([note["text"] for note in seen["annotations"]], list(notes), name)
            self.assertTrue(
                all(start <= note["time"] / 1000 <= end for note in seen["annotations"]),
                seen["annotations"],
            )
            if name in ("node", "custom"):
                self.assertEqual(seen["variables"]["host"]["options"], hosts)
                some = self.check(base, name, start, end, host=hosts[:1], **metrics)
                self.assertEqual(
                    {line["name"] for p in some["panels"] for line in p["lines"]}, set(hosts[:1])
                )
            if name == "gpu":
                self.assertEqual(seen["variables"]["host"]["options"], hosts if gpus else [])
        for name, panel in (
            ("job", "nodes"),
            ("job", "CPU, mean of the nodes"),
            ("node", "load_1m"),
            ("node", "cpu_user_seconds per second"),
            ("custom", "cpu_percent"),
        ):
            self.assertTrue(drawn[name, panel], (name, panel))
        self.assertEqual({v for _, v in drawn["job", "nodes"][0]["points"]}, {len(hosts)})
        self.assertEqual(
            [line["name"] for line in drawn["gpu", "gpu_utilization_percent"]],
            [f"{h} GPU {g}" for h in hosts for g in range(gpus)],
        )
        self.assertEqual(bool(drawn["job", "GPUs, mean utilization"]), bool(gpus))
        return drawn

    def run_job(self, level, **env):
        """Starts a job that makes an annotation after a line of input, and ends with its input.
        Returns URL and token."""
        job = subprocess.Popen(
            [
                os.environ["SONDE"],
                "run",
                "--quiet",
                "-l",
                str(level),
                "--token-file",
                str(self.root / "token"),
                "--rate",
                "0.1",
                "--",
                "sh",
                "-c",
                'echo "$SONDE_URL"; read begin; sonde annotate noted; echo noted; cat',
            ],
            env={**self.env, **env},
            cwd=self.root,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.started.append(job)
        return job, job.stdout.readline().strip(), (self.root / "token").read_text().strip()

    def look_at_a_job(self, level, gpus, **env):
        job, url, token = self.run_job(level, **env)
        base = self.grafana(url, token)
        start = int(time.time())
        job.stdin.write("begin\n")
        job.stdin.flush()
        self.assertEqual(job.stdout.readline(), "noted\n")
        end = int(time.time()) + 4
        # The job continues, but it adds no more points to the range. File systems and GPUs are
        # sampled in threads of their own, so their points may come later than the others.
        for metric in ["load_1m", "filesystem_free_bytes"] + ["gpu_utilization_percent"] * bool(gpus):
            until(
                lambda: self.sonde_server.get(
                    "/api/query", start=end + 1, end=end + 3600, m=f"none:{metric}"
                ),
                f"points of {metric} behind the end of the range",
            )
        (host,) = {tags["host"] for tags, _ in self.sonde_server.series("load_1m", start, end)}
        live = self.check_all(base, start, end, [host], gpus, ["noted"])
        job.stdin.close()
        self.assertEqual(job.wait(timeout=PATIENCE_S), 0)
        (run,) = (path for path in self.runs.iterdir() if path.name[0] != ".")  # beside the index
        replay = self.start("replay", "--token-file", self.root / "token", "--verbose", run)
        line = next(line for line in replay.stderr if "http://" in line)
        url = line[line.index("http://") :].split("/?")[0].strip()
        self.assertEqual(
            self.check_all(self.grafana(url, token), start, end, [host], gpus, ["noted"]),
            live,
        )

    def test_a_job_without_gpus_and_its_replay(self):
        self.look_at_a_job(2, 0)

    def test_a_job_with_gpus_and_its_replay(self):
        self.look_at_a_job(
            3, 2, SONDE_NVML=os.environ["FAKE_NVML"], SONDE_FAKE_NVML=os.environ["GPU_SCRIPT"]
        )

    @unittest.skipIf(lab.why_not(), lab.why_not())
    def test_three_hosts(self):
        """The job runs on hosts of the cluster lab, which have their own networks. Unix sockets
        connect them to this machine."""
        hosts = lab.Lab([SONDE], folders={"grafana": HERE})
        self.addCleanup(hosts.close)
        job = hosts.start(
            "n1",
            *("sonde", "run", "--quiet", "--no-record", "--hosts=n[1-3]", "--rate=0.1"),
            *("--token-file=/mnt/shared/token", "--", "sh", "-c"),
            "echo $SONDE_URL; until [ -e /mnt/shared/begin ]; do sleep 0.1; done;"
            " date +%s; sonde annotate noted; sleep 1000",
        )
        port = job.stdout.readline().strip().rpartition(":")[2]
        path = hosts.shared / "sonde"
        inside = hosts.start(
            "n1",
            *("sh", "-c", f"sleep 1000 | python3 /mnt/folders/grafana/forward.py {OUT} {port}"),
        )
        self.assertEqual(inside.stdout.readline(), f"{OUT}\n")
        outside = subprocess.Popen(
            [sys.executable, HERE / "forward.py", "0", path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.started += [job, inside, outside]
        url = f"http://127.0.0.1:{outside.stdout.readline().strip()}"
        base = self.grafana(url, (hosts.shared / "token").read_text().strip())

        def all_hosts_have_points(since):
            last = self.sonde_server.get("/api/query/last", timeseries="load_1m") or []
            return len(last) == 3 and all(p["timestamp"] >= since * 1000 for p in last)

        # The range begins when every agent has started.
        joined = until(lambda: all_hosts_have_points(0) and int(time.time()) + 1, "all hosts")
        until(lambda: all_hosts_have_points(joined), "points of all hosts before the range")
        (hosts.shared / "begin").touch()
        start = int(job.stdout.readline())
        end = int(time.time()) + 4
        until(lambda: all_hosts_have_points(end + 1), "points of all hosts after the range")
        self.check_all(base, start, end, ["n1", "n2", "n3"], notes=["noted"])

    def test_three_simulated_nodes(self):
        """Each simulated node has its own store, and answers over the network protocol."""
        simulation = subprocess.Popen(
            [
                os.environ["SONDE"],
                "simulate",
                "--quiet",
                "--nodes=3",
                "--metrics=232",
                "--history=60",
                "--token-file",
                str(self.root / "token"),
                "--",
                "sh",
                "-c",
                'echo "$SONDE_URL"; cat',
            ],
            env=self.env,
            cwd=self.root,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.started.append(simulation)
        url = simulation.stdout.readline().strip()
        base = self.grafana(url, (self.root / "token").read_text().strip())
        now = int(time.time())
        gpus = len({t["gpu"] for t, _ in self.sonde_server.series("gpu_up", now - 40, now - 10)})
        self.assertGreater(gpus, 0)
        self.check_all(base, now - 40, now - 10, ["n00000", "n00001", "n00002"], gpus)
        simulation.stdin.close()
        self.assertEqual(simulation.wait(timeout=PATIENCE_S), 0)

    def counter(self, step_s, amounts):
        """Starts a server with five minutes of a counter that grows by these amounts in turn.

        Returns the address of a data source for this server, the start and the end.
        """
        end = int(time.time()) // 10 * 10
        writer = Writer(str(self.root / "a.sonde"))
        writer.metric("disk_read_bytes_total", "counter", "bytes", "x")
        count = round(310 / step_s)
        totals = itertools.accumulate(itertools.islice(itertools.cycle(amounts), count))
        writer.points(
            "disk_read_bytes_total",
            {"host": "node1"},
            [(end - 310 + i * step_s, float(total)) for i, total in enumerate(totals)],
        )
        writer.close()
        server = Server(str(self.root))
        self.addCleanup(server.stop)
        return self.grafana(f"http://127.0.0.1:{server.port}", TOKEN), end - 300, end

    def test_a_rate_is_right_at_every_width(self):
        """A counter grows by 1 and by 99 in turn, twice a second. So its rate is 100 per second."""
        base, start, end = self.counter(0.5, [1, 99])
        drawn, expected = {}, {
            width: (interval, {HIGH_RATE})
            for width, interval in ((100, "2s"), (300, "1s"), (500, "1s"), (2000, "1s"))
        }
        for width in expected:
            seen = self.browser.look(base, load("node"), start, end, width)
            (panel,) = [p for p in seen["panels"] if p["metric"] == "disk_read_bytes_total"]
            (line,) = panel["lines"]
            drawn[width] = panel["interval"], {round(v, 6) for _, v in line["points"][1:-1]}
            self.assertGreater(len(line["points"]), 140 if width == 100 else 290)
        self.assertEqual(drawn, expected)
        seen = self.browser.look(base, load("job"), start, end, 500)
        (panel,) = [p for p in seen["panels"] if p["title"] == "read from disks"]
        self.assertEqual({round(v, 6) for _, v in panel["lines"][0]["points"][1:-1]}, {HIGH_RATE})

    def test_a_token_is_a_header_or_a_password_or_in_the_address(self):
        """Each way also works for "Save & test", and for requests of variables and editors."""
        writer = Writer(str(self.root / "a.sonde"))
        now = int(time.time())
        writer.points("load_1m", {"host": "node1"}, [(now - 5 + i, 1.0) for i in range(5)])
        writer.close()
        server = Server(str(self.root))
        self.addCleanup(server.stop)
        url = f"http://127.0.0.1:{server.port}"
        for made in (
            backend.settings(url, TOKEN),
            backend.settings(url, TOKEN, basic=True),
            backend.settings(f"http://grafana:{TOKEN}@127.0.0.1:{server.port}"),
        ):
            data_source = source(made)
            try:
                self.assertEqual(
                    self.ask(data_source.url, "/api/datasources/uid/sonde/health")[0], 200
                )
                for path, words in (
                    ("api/suggest?type=metrics&q=load", ["load_1m", "load_average"]),
                    ("api/search/lookup?type=key&metric=load_1m", ["host"]),
                ):
                    self.assertEqual(
                        self.ask(data_source.url, backend.RESOURCES + path), (200, words)
                    )
                self.assertIn(
                    "regexp", self.ask(data_source.url, f"{backend.RESOURCES}api/config/filters")[1]
                )
                self.assertIn(
                    "p99", self.ask(data_source.url, f"{backend.RESOURCES}api/aggregators")[1]
                )
                seen = self.browser.look(
                    data_source.url, load("custom"), now - 5, now, metric=["load_1m"]
                )
                self.assertEqual([line["name"] for line in seen["panels"][0]["lines"]], ["node1"])
            finally:
                data_source.close()

    @staticmethod
    def ask(base, path):
        connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=PATIENCE_S)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or "null")
        finally:
            connection.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
