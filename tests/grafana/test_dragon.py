"""Tests the dashboards of the Dragon Telemetry Service through Grafana's data source.

The data source has Dragon's settings: version 2.3, and no credentials. The table below has the
queries of the 34 panels. With DRAGON_DASHBOARDS=DIR (src/dragon/telemetry/imports in the sources of
Dragon 0.14.1), the test uses the original files, and compares the table with them.
"""

import json
import os
import pathlib
import subprocess
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / name) for name in ("cli", "conformance", "cluster")]

import backend  # noqa: E402
import lab  # noqa: E402
from data_source import browser, source  # noqa: E402
from harness import Writer  # noqa: E402
from packages import why_not  # noqa: E402
from place import PATIENCE_S, SONDE, Place, until  # noqa: E402

ORIGINALS = os.environ.get("DRAGON_DASHBOARDS")
OUT = "/mnt/shared/sonde"
HOST, GPU, SOURCE, PUID = (
    ("wildcard", "host"),
    ("wildcard", "gpu"),
    ("wildcard", "source"),
    ("wildcard", "puid"),
)
GPUS = [
    (m, "sum", (HOST, GPU))
    for m in ("DeviceMemoryUtilization", "DeviceUtilization", "DevicePowerUsage")
]
HSTA = [
    (m, "avg", (HOST, SOURCE))
    for m in (
        "req_completion_rate",
        "pending_channel_operations",
        "pending_work_requests",
        "rendezvous_bandwidth",
        "channel_operations_per_second",
    )
]


def of_hosts(*metrics):
    return [(m, "sum", (HOST,)) for m in metrics]


# Dashboard → metric, aggregator, filters (type and tag). The filters match all values, and do not
# group.
PANELS = {
    "Grafana_DragonTelemetryDashboard": [
        *of_hosts("load_average", "used_RAM", "cpu_percent"),
        *GPUS,
        *of_hosts("num_running_tasks", "num_completed_tasks", "db_size"),
        *HSTA,
    ],
    "Grafana_DragonTelemetryDashboard_custom_metric": [
        *of_hosts("pool_start_time"),
        ("elapsed_time", "sum", (PUID,)),
        *of_hosts("iteration_time"),
        *GPUS,
        *of_hosts("load_average", "load_average", "used_RAM", "db_size"),
    ],
    "Grafana_DragonTelemetry_ResilientDashboard": [
        ("elapsed_time", "sum", (PUID, HOST)),
        *of_hosts(
            "merge_cutoff",
            "num_running_processes",
            "def_pool_utilization",
            "cpu_percent",
            "used_RAM",
        ),
        *GPUS,
        ("db_size", "sum", (("iliteral_or", "host"),)),
    ],
}
# Dragon's metrics → the corresponding metrics of sonde. Other metrics of Dragon are emitted only by
# programs or by Dragon's runtime.
OWN = {
    "load_average": "load_1m",
    "used_RAM": "memory_used_percent",
    "cpu_percent": "cpu_percent",
    "num_running_processes": "own_processes",
    "DeviceMemoryUtilization": "gpu_memory_used_percent",
    "DeviceUtilization": "gpu_utilization_percent",
    "DevicePowerUsage": "gpu_power_watts",
    "db_size": "sonde_store_megabytes",
}
EMITTED = {
    "num_running_tasks": None,
    "num_completed_tasks": None,
    "pool_start_time": None,
    "iteration_time": None,
    "merge_cutoff": None,
    "def_pool_utilization": None,
    "elapsed_time": "puid",
    **{metric: "source" for metric, _, _ in HSTA},
}
TAGGED = ("7", "8")  # values of these tags


def made(panels):
    """Returns a dashboard with these panels."""
    return {
        "templating": {"list": []},
        "annotations": {"list": []},
        "panels": [
            {
                "id": number,
                "type": "timeseries",
                "title": f"{metric} {number}",
                "datasource": {"type": "opentsdb", "uid": "sonde"},
                "fieldConfig": {"defaults": {}, "overrides": []},
                "options": {},
                "targets": [
                    {
                        "refId": "A",
                        "metric": metric,
                        "aggregator": aggregator,
                        "downsampleAggregator": "avg",
                        "downsampleFillPolicy": "none",
                        "filters": [
                            {"type": kind, "tagk": tag, "filter": "*", "groupBy": False}
                            for kind, tag in filters
                        ],
                    }
                ],
            }
            for number, (metric, aggregator, filters) in enumerate(panels, 1)
        ],
    }


def original(name):
    """Returns the original dashboard, as imported into a Grafana with only this data source. A
    panel of another data source is left out."""
    model = json.loads(pathlib.Path(ORIGINALS, f"{name}.json").read_text())
    panels = [p for row in model["panels"] for p in [row, *row.get("panels", [])]]
    for panel in panels:
        for asks in (panel, *panel.get("targets", [])):
            asks["datasource"] = {"type": "opentsdb", "uid": "sonde"}
    return {
        "templating": {"list": []},
        "annotations": {"list": []},
        "panels": [p for p in panels if p["type"] == "timeseries"],
    }


def asked(dashboard):
    return sorted(
        (t["metric"], t["aggregator"], tuple((f["type"], f["tagk"]) for f in t["filters"]))
        for p in dashboard["panels"]
        for t in p["targets"]
    )


DASHBOARDS = {
    name: original(name) if ORIGINALS else made(panels) for name, panels in PANELS.items()
}


class Table(unittest.TestCase):
    def test_it_is_what_dragon_ships(self):
        self.assertEqual(sum(map(len, PANELS.values())), 34)
        for name, panels in PANELS.items():
            self.assertEqual(asked(DASHBOARDS[name]), sorted(panels), name)


@unittest.skipIf(why_not(), why_not())
class Dashboards(Place):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser()
        cls.addClassCleanup(cls.browser.close)

    def tearDown(self):
        self.doCleanups()  # ends the servers, because Place would wait for them
        super().tearDown()

    def look(self, url, start, end):
        """Returns (dashboard, metric) → the lines of its panels. Checks that no panel has an
        error."""
        data_source = source(backend.settings(url, version=3))
        self.addCleanup(data_source.close)
        drawn = {}
        for name, dashboard in DASHBOARDS.items():
            seen = self.browser.look(data_source.url, dashboard, start, end)
            self.assertEqual(len(seen["panels"]), len(PANELS[name]))
            for panel in seen["panels"]:
                self.assertEqual(
                    (panel["state"], panel["errors"]), ("Done", []), (name, panel["title"])
                )
                model = next(p for p in dashboard["panels"] if f"panel-{p['id']}" == panel["key"])
                drawn.setdefault((name, model["targets"][0]["metric"]), []).append(panel["lines"])
        return drawn

    def check(self, drawn, hosts, gpus, missing=()):
        """Checks that each panel has a line for each host and each value of its other tag."""
        for (name, metric), panels in drawn.items():
            tag = "gpu" if metric in {m for m, _, _ in GPUS} else EMITTED.get(metric)
            values = {"gpu": [str(g) for g in range(gpus)]}.get(tag, TAGGED if tag else [None])
            expected = [
                (host, value) for host in hosts for value in values if metric not in missing
            ]
            for lines in panels:
                words = [line["name"] for line in lines]
                self.assertEqual(len(lines), len(expected), (name, metric, words))
                self.assertTrue(all(line["points"] for line in lines), (name, metric))
                for host, value in expected:
                    fits = [
                        w
                        for w in words
                        if host in w and (value is None or f"{tag}={value}" in w.replace('"', ""))
                    ]
                    self.assertEqual(len(fits), 1, (name, metric, host, value, words))

    def serve(self, *command):
        """Starts a server that answers without a token; returns its address."""
        server = self.start(*command, "--dragon-compatible", "--view-without-token", "--verbose")
        line = next(line for line in server.stderr if "http://" in line)
        return line[line.index("http://") :].split("/?")[0].strip()

    def test_three_nodes_recorded(self):
        """With recordings of three nodes, each panel has a line for each node."""
        now = int(time.time()) // 10 * 10
        hosts = ("n1", "n2", "n3")
        for index, host in enumerate(hosts):
            writer = Writer(str(self.root / f"{host}.sonde"), host=host)
            for metric in [*OWN.values(), *EMITTED]:
                tag = "gpu" if metric.startswith("gpu_") else EMITTED.get(metric)
                for value in {"gpu": ("0", "1")}.get(tag, TAGGED if tag else (None,)):
                    tags = {"host": host, **({tag: value} if tag else {})}
                    number = index + (int(value) / 10 if tag else 0)
                    writer.points(metric, tags, [(now - 60 + i, number) for i in range(60)])
            writer.close()
        drawn = self.look(self.serve("replay", self.root), now - 60, now)
        self.check(drawn, hosts, 2)
        for (_, metric), panels in drawn.items():
            for line in (line for lines in panels for line in lines):
                values = {v for _, v in line["points"]}
                host = next(h for h in hosts if h in line["name"])
                self.assertEqual(
                    {int(v) for v in values}, {hosts.index(host)}, (metric, line["name"])
                )
                self.assertEqual(len(values), 1, (metric, line["name"]))

    def run_job(self, level, **env):
        command = 'echo "$SONDE_URL"; cat'  # runs until the test stops it
        job = subprocess.Popen(
            [
                *(SONDE, "run", "--quiet", "--no-record", "-l", str(level), "--rate=0.1"),
                *(
                    "--dragon-compatible",
                    "--tsdb-server-port=0",
                    "--view-without-token",
                    "--",
                    "sh",
                    "-c",
                    command,
                ),
            ],
            env={**self.env, **env},
            cwd=self.root,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.started.append(job)
        return job, job.stdout.readline().strip()

    @staticmethod
    def emitted(hosts=(None,)):
        """Returns lines with the metrics of programs, for `sonde put`."""
        return "".join(
            " ".join(
                [
                    metric,
                    "1",
                    *([f"{tag}={value}"] if tag else []),
                    *([f"host={host}"] if host else []),
                ]
            )
            + "\n"
            for metric, tag in EMITTED.items()
            for value in (TAGGED if tag else (None,))
            for host in hosts
        )

    def test_a_running_job(self):
        """The job runs with GPUs of the fake library, then without GPUs. Then the panels of GPUs
        are empty, and have no error."""
        script = self.root / "gpus"
        script.write_text("gpus 2\n")
        for level, gpus, env in (
            (4, 2, {"SONDE_NVML": os.environ["FAKE_NVML"], "SONDE_FAKE_NVML": str(script)}),
            (2, 0, {}),
        ):
            job, url = self.run_job(level, **env)
            start = int(time.time())
            self.assertEqual(self.sonde("put", stdin=self.emitted()).returncode, 0)
            host = os.uname().nodename.split(".")[0]
            missing = () if level == 4 else ("db_size",)
            wanted = 34 - len(missing) * 3 - (0 if gpus else 9)

            def full(drawn):
                return (
                    sum(
                        bool(lines) and all(line["points"] for line in lines)
                        for panels in drawn.values()
                        for lines in panels
                    )
                    == wanted
                )

            until(lambda: full(self.look(url, start, int(time.time()))), "lines in all panels")
            self.check(self.look(url, start, int(time.time())), [host], gpus, missing)
            job.stdin.close()
            self.assertEqual(job.wait(timeout=PATIENCE_S), 0)

    @unittest.skipIf(lab.why_not(), lab.why_not())
    def test_three_hosts(self):
        """On hosts of the cluster lab, each panel has a line for each node, whether the agent or a
        program emits the points."""
        hosts = lab.Lab([SONDE], folders={"grafana": HERE})
        self.addCleanup(hosts.close)
        (hosts.shared / "points").write_text(self.emitted(("n1", "n2", "n3")))
        job = hosts.start(
            "n1",
            *("sonde", "run", "--quiet", "--no-record", "-l", "4", "--hosts=n[1-3]", "--rate=0.1"),
            *("--dragon-compatible", "--view-without-token", "--", "sh", "-c"),
            "date +%s; sonde put </mnt/shared/points; echo $SONDE_URL; sleep 1000",
        )
        start, port = int(job.stdout.readline()), job.stdout.readline().strip().rpartition(":")[2]
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
        names = ["n1", "n2", "n3"]

        def full():
            try:
                self.check(self.look(url, start, int(time.time())), names, 0)
            except AssertionError:
                return False
            return True

        until(full, "a line of each node in all panels")


if __name__ == "__main__":
    unittest.main(verbosity=2)
