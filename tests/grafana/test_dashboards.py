"""Every panel of every dashboard, asked through Grafana's OpenTSDB data source.

The browser's half are Grafana's own packages (npm): variables, interpolation, intervals, legends. The data source is an
installed one where GRAFANA_PLUGIN names its folder; else stand-ins, which two tests compare with what was recorded
of an installed one. `test_dashboards.py --record` writes those records anew.
"""
import collections
import gzip
import http.client
import itertools
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "cli"), str(HERE.parent / "conformance")]

import backend  # noqa: E402
import packages  # noqa: E402
from harness import TOKEN, Server, Writer  # noqa: E402
from packages import bundle, moment, why_not  # noqa: E402
from place import Place, until  # noqa: E402

SEED = 1
RECORDED = HERE / "recorded.json.gz"
RECORDED_REQUESTS = 300
DASHBOARDS = pathlib.Path(os.environ["SONDE_DASHBOARDS"])
PLUGIN = os.environ.get("GRAFANA_PLUGIN")
NAMES = ("job", "node", "gpu", "custom")
HIGH_RATE = 100  # a second


def chosen(name, default):
    return int(os.environ.get(name) or default)


def load(name):
    return json.loads((DASHBOARDS / f"{name}.json").read_text())


class Browser:
    """Grafana's packages in a process of their own, and the data source's browser half in it."""

    def __init__(self, module="-"):
        self.folder = tempfile.mkdtemp(prefix="sonde-grafana-")
        os.symlink(packages.FOLDER / "node_modules", f"{self.folder}/node_modules")
        bundle("drive.mjs", f"{self.folder}/drive.mjs", "--platform=node", "--format=esm", "--main-fields=module,main", "--conditions=import",
               f"--inject:{HERE}/browser.mjs", "--external:jsdom", "--banner:js=import{createRequire as made}from'module';const require=made(import.meta.url);")
        self.said = open(f"{self.folder}/said", "w+")
        self.process = subprocess.Popen(["node", f"{self.folder}/drive.mjs", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said, text=True)

    def look(self, base, dashboard, start, end, width=500, **variables):
        """What a person would see of it. Ranges are in seconds, and panels `width` pixels wide."""
        asked = {"base": base, "dashboard": dashboard, "range": {"from": moment(start), "to": moment(end)}, "width": width, "chosen": variables}
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"failed": "it ended"}
        if "failed" in answer:
            self.said.seek(0)
            raise AssertionError(f"{answer['failed']}\n{self.said.read()[-2000:]}")
        return answer

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=60)
        self.said.close()
        shutil.rmtree(self.folder)


def source(settings, plugin=PLUGIN):
    """The data source's other half, as a server."""
    return backend.Plugin(plugin, settings) if plugin else backend.stand_in(settings)


def browser(plugin=PLUGIN):
    return Browser(f"{plugin}/module.js" if plugin else "-")


class Sonde:
    """A server of sonde's, asked without Grafana."""

    def __init__(self, url, token):
        self.url, self.token = url, token
        self.known = {}

    def get(self, path, **parameters):
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=60)
        try:
            connection.request("GET", f"{path}?{urlencode(parameters, quote_via=quote)}", headers={"Authorization": f"Bearer {self.token}"})
            answer = connection.getresponse()
            text = answer.read()
            return json.loads(text) if answer.status == 200 else None
        finally:
            connection.close()

    def series(self, metric, start, end):
        """(tags, how many different seconds have a point), of each series. The range is over: it is asked once."""
        if (metric, start, end) not in self.known:
            answer = self.get("/api/query", start=start, end=end, m=f"none:1s-avg:{metric}", arrays="true")
            self.known[metric, start, end] = [(e["tags"], len(e["dps"])) for e in answer or []]
        return self.known[metric, start, end]


@unittest.skipIf(why_not(), why_not())
class Panels(Place):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser()
        cls.addClassCleanup(cls.browser.close)

    def tearDown(self):
        self.doCleanups()  # servers, which Place would wait for
        super().tearDown()

    def grafana(self, url, token, **more):
        self.sonde_server = Sonde(url, token)
        server = source(backend.settings(url, token, **more))
        self.addCleanup(server.close)
        return server.url

    def expected_lines(self, dashboard, panel, start, end, hosts=None):
        """The legends of a panel, from sonde's own series."""
        target = panel["targets"][0]
        tags = [f["tagk"] for f in target["filters"]]
        needed = 2 if target["shouldComputeRate"] else 1  # a rate is between two points
        found = [t for t, seconds in self.sonde_server.series(target["metric"], start, end)
                 if all(tag in t for tag in tags) and seconds >= needed and (hosts is None or t["host"] in hosts)]
        return sorted({" ".join({"gpu": f"GPU {t[tag]}"}.get(tag, t[tag]) for tag in tags) or panel["title"] for t in found})

    def check(self, base, name, start, end, width=500, **variables):
        """Looks at a dashboard. No panel has an error; each has the lines that it must have."""
        dashboard = load(name)
        seen = self.browser.look(base, dashboard, start, end, width, **variables)
        panels = [p for p in dashboard["panels"] if p["type"] != "row"]
        self.assertEqual([(p["title"], p["errors"]) for p in seen["panels"] if p["errors"] or p["state"] != "Done"], [], name)
        self.assertEqual({k: v for k, v in seen["variables"].items() if v.get("error")}, {}, name)
        expected, drawn = {}, {}
        for panel in seen["panels"]:
            model = panels[0] if name == "custom" else next(p for p in panels if f"panel-{p['id']}" == panel["key"])
            if name == "custom":
                model = json.loads(json.dumps(model).replace("$metric", panel["title"]))
            expected[panel["key"]] = self.expected_lines(dashboard, model, start, end, variables.get("host"))
            drawn[panel["key"]] = sorted(line["name"] for line in panel["lines"])
            self.assertTrue(all(line["points"] for line in panel["lines"]), (name, panel["title"]))
            self.assertTrue(all(start - 1 <= t / 1000 <= end for line in panel["lines"] for t, _ in line["points"]), (name, panel["title"]))
        self.assertEqual(drawn, expected, name)
        return seen

    def check_all(self, base, start, end, hosts, gpus=0, notes=()):
        """All dashboards; what is drawn, as (dashboard, panel) → lines."""
        drawn = {}
        for name in NAMES:
            metrics = {"metric": ["load_1m", "cpu_percent"]} if name == "custom" else {}
            seen = self.check(base, name, start, end, **metrics)
            drawn.update({(name, p["title"]): p["lines"] for p in seen["panels"]})
            self.assertEqual([note["text"] for note in seen["annotations"]], list(notes), name)
            self.assertTrue(all(start <= note["time"] / 1000 <= end for note in seen["annotations"]), seen["annotations"])
            if name in ("node", "custom"):
                self.assertEqual(seen["variables"]["host"]["options"], hosts)
                some = self.check(base, name, start, end, host=hosts[:1], **metrics)
                self.assertEqual({line["name"] for p in some["panels"] for line in p["lines"]}, set(hosts[:1]))
            if name == "gpu":
                self.assertEqual(seen["variables"]["host"]["options"], hosts if gpus else [])
        for name, panel in (("job", "nodes"), ("job", "CPU, mean of the nodes"), ("node", "load_1m"), ("node", "cpu_user_seconds per second"), ("custom", "cpu_percent")):
            self.assertTrue(drawn[name, panel], (name, panel))
        self.assertEqual({v for _, v in drawn["job", "nodes"][0]["points"]}, {len(hosts)})
        self.assertEqual([line["name"] for line in drawn["gpu", "gpu_utilization_percent"]], [f"{h} GPU {g}" for h in hosts for g in range(gpus)])
        self.assertEqual(bool(drawn["job", "GPUs, mean utilization"]), bool(gpus))
        return drawn

    def run_job(self, level, **env):
        """A job that waits for its input to end. Its address, its token, its folder once it is over."""
        job = subprocess.Popen([os.environ["SONDE"], "run", "--quiet", "-l", str(level), "--token-file", str(self.root / "token"), "--rate", "0.1", "--",
                                "sh", "-c", 'echo "$SONDE_URL"; sonde annotate noted; cat'], env={**self.env, **env}, cwd=self.root, text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.started.append(job)
        return job, job.stdout.readline().strip(), (self.root / "token").read_text().strip()

    def look_at_a_job(self, level, gpus, **env):
        begun = int(time.time())
        job, url, token = self.run_job(level, **env)
        base = self.grafana(url, token)
        # The range that is looked at grows no more.
        until(lambda: any(p["timestamp"] >= (begun + 5) * 1000 for p in self.sonde_server.get("/api/query/last", timeseries="load_1m") or []), "5 s of the job")
        (host,) = {tags["host"] for tags, _ in self.sonde_server.series("load_1m", begun, begun + 4)}
        live = self.check_all(base, begun, begun + 4, [host], gpus, ["noted"])
        job.stdin.close()
        self.assertEqual(job.wait(timeout=60), 0)
        (run,) = self.runs.iterdir()
        replay = self.start("replay", "--token-file", self.root / "token", "--verbose", run)
        line = next(line for line in replay.stderr if "http://" in line)
        url = line[line.index("http://"):].split("/?")[0].strip()
        self.assertEqual(self.check_all(self.grafana(url, token), begun, begun + 4, [host], gpus, ["noted"]), live)

    def test_a_job_without_gpus_and_its_replay(self):
        self.look_at_a_job(2, 0)

    def test_a_job_with_gpus_and_its_replay(self):
        self.look_at_a_job(3, 2, SONDE_NVML=os.environ["FAKE_NVML"], SONDE_FAKE_NVML=os.environ["GPU_SCRIPT"])

    def test_three_nodes(self):
        """Simulated ones: each has a store of its own, and answers over the network's protocol."""
        simulation = subprocess.Popen([os.environ["SONDE"], "simulate", "--quiet", "--nodes=3", "--metrics=232", "--history=60", "--token-file", str(self.root / "token"), "--",
                                       "sh", "-c", 'echo "$SONDE_URL"; cat'], env=self.env, cwd=self.root, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.started.append(simulation)
        url = simulation.stdout.readline().strip()
        base = self.grafana(url, (self.root / "token").read_text().strip())
        now = int(time.time())
        gpus = len({t["gpu"] for t, _ in self.sonde_server.series("gpu_up", now - 40, now - 10)})
        self.assertGreater(gpus, 0)
        self.check_all(base, now - 40, now - 10, ["n00000", "n00001", "n00002"], gpus)
        simulation.stdin.close()
        self.assertEqual(simulation.wait(timeout=60), 0)

    def counter(self, step_s, amounts):
        """A server of five minutes of a counter to which these amounts are added in turn. Its data source's address, start and end."""
        end = int(time.time()) // 10 * 10
        writer = Writer(str(self.root / "a.sonde"))
        writer.metric("disk_read_bytes_total", "counter", "bytes", "x")
        count = round(310 / step_s)
        totals = itertools.accumulate(itertools.islice(itertools.cycle(amounts), count))
        writer.points("disk_read_bytes_total", {"host": "node1"}, [(end - 310 + i * step_s, float(total)) for i, total in enumerate(totals)])
        writer.close()
        server = Server(str(self.root))
        self.addCleanup(server.stop)
        return self.grafana(f"http://127.0.0.1:{server.port}", TOKEN), end - 300, end

    def test_a_rate_is_right_at_every_width(self):
        """A counter that grows by 1 and by 99 in turn, twice a second: 100 a second."""
        base, start, end = self.counter(0.5, [1, 99])
        for width, interval in ((300, "1s"), (500, "1s"), (2000, "1s"), (100, "2s")):
            seen = self.browser.look(base, load("node"), start, end, width)
            (panel,) = [p for p in seen["panels"] if p["metric"] == "disk_read_bytes_total"]
            (line,) = panel["lines"]
            self.assertEqual((line["name"], panel["interval"], {round(v, 6) for _, v in line["points"][1:-1]}), ("node1", interval, {HIGH_RATE}))
            self.assertGreater(len(line["points"]), 140 if interval == "2s" else 290)
        seen = self.browser.look(base, load("job"), start, end, 500)
        (panel,) = [p for p in seen["panels"] if p["title"] == "read from disks"]
        self.assertEqual({round(v, 6) for _, v in panel["lines"][0]["points"][1:-1]}, {HIGH_RATE})

    def test_a_token_is_a_header_or_a_password_or_in_the_address(self):
        """Also "Save & test", and what variables and editors ask for."""
        writer = Writer(str(self.root / "a.sonde"))
        now = int(time.time())
        writer.points("load_1m", {"host": "node1"}, [(now - 5 + i, 1.0) for i in range(5)])
        writer.close()
        server = Server(str(self.root))
        self.addCleanup(server.stop)
        url = f"http://127.0.0.1:{server.port}"
        for made in (backend.settings(url, TOKEN), backend.settings(url, TOKEN, basic=True), backend.settings(f"http://grafana:{TOKEN}@127.0.0.1:{server.port}")):
            data_source = source(made)
            try:
                self.assertEqual(self.ask(data_source.url, "/api/datasources/uid/sonde/health")[0], 200)
                for path, words in (("api/suggest?type=metrics&q=load", ["load_1m"]), ("api/search/lookup?type=key&metric=load_1m", ["host"])):
                    self.assertEqual(self.ask(data_source.url, backend.RESOURCES + path), (200, words))
                self.assertIn("regexp", self.ask(data_source.url, f"{backend.RESOURCES}api/config/filters")[1])
                self.assertIn("p99", self.ask(data_source.url, f"{backend.RESOURCES}api/aggregators")[1])
                seen = self.browser.look(data_source.url, load("custom"), now - 5, now, metric=["load_1m"])
                self.assertEqual([line["name"] for line in seen["panels"][0]["lines"]], ["node1"])
            finally:
                data_source.close()

    @staticmethod
    def ask(base, path):
        connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=60)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or "null")
        finally:
            connection.close()


# The stand-ins, against what was recorded of an installed data source.

def random_query(r):
    query = {"refId": "A", "metric": r.choice(["m", "disk_read_bytes_total"]), "aggregator": r.choice(["sum", "avg", "p99", "none"]),
             "intervalMs": r.choice([1, 200, 500, 999, 1000, 1500, 2000, 59_000, 60_000, 90_000, 3_600_000, 5_400_000, 86_400_000, 200_000_000]), "maxDataPoints": 500}
    if r.random() < 0.8:
        query.update(downsampleAggregator=r.choice(["avg", "max"]), downsampleInterval=r.choice(["", "", "5s", "0.5s", "1.25s", ".5s", "1m"]),
                     downsampleFillPolicy=r.choice(["", "none", "none", "zero", "nan"]))
    if r.random() < 0.3:
        query["disableDownsampling"] = r.random() < 0.7
    if r.random() < 0.5:
        query.update(shouldComputeRate=r.random() < 0.8, isCounter=r.random() < 0.6, counterMax=r.choice(["", "100", "1.8446744073709552e19", "x"]),
                     counterResetValue=r.choice(["", "0", "35", "x"]))
    if r.random() < 0.5:
        query["filters"] = [{"tagk": "host", "type": "regexp", "filter": "^(.*)$", "groupBy": True}] if r.random() < 0.7 else []
    if r.random() < 0.3:
        query["tags"] = r.choice([{}, {"host": "*"}, {"host": "a|b", "gpu": "0"}])
    if r.random() < 0.2:
        query["explicitTags"] = r.random() < 0.5
    return query


def random_answer(r, version):
    """(status, body) of an OpenTSDB: mostly good, and all the traps."""
    if r.random() < 0.1:
        return r.choice([(400, '{"error":{"code":400,"message":"no"}}'), (404, "{}"), (500, ""), (503, "busy"), (204, ""), (200, ""), (200, "[]"), (200, "null"), (200, "{}"), (200, "[1]")])

    def spoken():
        return r.choice(["1", "2.5", "-0.25", "1e3", "12345678901"]) if r.random() < 0.97 else r.choice(["null", '"NaN"', "NaN", "1e400", "true", "[]"])
    elements = []
    for _ in range(r.choice([0, 1, 1, 2, 3])):
        tags = r.choice(['{"host":"a"}', '{"host":"a","gpu":"0"}', "{}", "{}", "null"]) if r.random() < 0.97 else r.choice(['{"gpu":0}', "[]"])
        times = sorted(r.sample(range(1000, 1020), r.randrange(6)))
        as_array = (version == 4) == (r.random() < 0.97)
        dps = f"[{','.join(f'[{t},{spoken()}]' for t in times)}]" if as_array else f"{{{','.join(f'{json.dumps(str(t))}:{spoken()}' for t in times)}}}"
        notes = '"annotations":[{"tsuid":"00","startTime":1003,"endTime":0,"description":"d","notes":""},{"startTime":1004.75}],' if r.random() < 0.2 else ""
        globals_ = '"globalAnnotations":[{"startTime":1369141261,"description":"g","custom":{"k":"v"}}],' if r.random() < 0.1 else ""
        elements.append(f'{{"metric":"m","tags":{tags},"aggregateTags":{r.choice(["[]", "[]", json.dumps(["dc"])])},{notes}{globals_}"dps":{dps}}}')
    return 200, f"[{','.join(elements)}]"


def random_case(r):
    version = r.choice([4, 4, 3, 1])
    case = {"version": version, "way": r.choice(["header", "password", "address", "query"]), "packed": r.random() < 0.3}
    if r.random() < 0.75:
        case["request"] = {"from": str(r.randrange(10**12)), "to": str(10**12 + r.randrange(10**9)), "queries": [random_query(r)]}
        case["upstream"] = random_answer(r, version)
    else:
        case["resource"] = r.choice(["api/suggest?type=metrics&q=cpu&max=1000", "api/suggest?q=&type=tagk", "api/aggregators", "api/config/filters",
                                     "api/search/lookup?type=key&metric=m", "api/search/lookup?type=keyvalue&metric=m&keys=host", "api/search/lookup?type=keyvalue&metric=m&keys=host%2C%20gpu%3D0",
                                     "api/search/lookup?type=keyvalue&metric=m&keys=", "api/search/lookup?type=key", "api/search/lookup?metric=m", "health"])
        found = '{"type":"LOOKUP","results":[{"tsuid":"1","metric":"m","tags":{"host":"b","gpu":"0"}},{"tsuid":"2","tags":{"host":"a"}}]}'
        good = {"suggest": '["cpu_percent"]', "aggregators": '["sum","avg"]', "filters": '{"wildcard":{"examples":"x"},"regexp":{}}', "lookup": found}
        case["upstream"] = (200, next((v for k, v in good.items() if k in case["resource"]), "[]"))
        if "lookup" in case["resource"] and r.random() < 0.3:
            case["upstream"] = (404, '{"error":{"code":404,"message":"no"}}')
    return case


class Sources:
    """Data sources in front of an OpenTSDB that answers each with what its case says."""

    def __init__(self, plugin):
        self.plugin, self.sources = plugin, {}
        self.server = backend.Listener(self.upstream)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for data_source in self.sources.values():
            data_source.close()
        self.server.close()

    def upstream(self, method, path, query, body, headers):
        self.asked.append([method, headers["Authorization"], path, sorted(parse_qsl(query)), json.loads(body, parse_int=float) if body else None])
        status, text = self.case["upstream"]
        packed = self.case["packed"] and status == 200
        return status, gzip.compress(text.encode()) if packed else text.encode(), *([("Content-Encoding", "gzip")] if packed else [])

    def source(self, version, way):
        if (version, way) not in self.sources:
            url = self.server.url
            made = {"header": (url, "t"), "password": (url, "t", version, True), "address": (url.replace("//", "//u:t@"),), "query": (f"{url}?token=t",)}[way]
            self.sources[version, way] = source({**backend.settings(*made), "jsonData": {**backend.settings(*made)["jsonData"], "tsdbVersion": version}}, self.plugin)
        return self.sources[version, way]

    def outcome(self, case):
        """What the data source asks its OpenTSDB, and what it makes of the answer."""
        self.case, self.asked = case, []
        connection = http.client.HTTPConnection(urlsplit(self.source(case["version"], case["way"]).url).netloc, timeout=60)
        try:
            if "request" in case:
                connection.request("POST", "/api/ds/query", json.dumps(case["request"]))
            else:
                connection.request("GET", "/api/datasources/uid/sonde/health" if case["resource"] == "health" else backend.RESOURCES + case["resource"])
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if "request" in case:
            (result,) = json.loads(text)["results"].values()
            # Of errors only this one's text is seen by a person who looks at a panel.
            error = result.get("error", "")
            return {"asked": self.asked, "error": error if "request failed" in error else bool(error), "frames": result.get("frames") or []}
        read = json.loads(text) if answer.status == 200 and case["resource"] != "health" else None
        return {"asked": self.asked, "status": answer.status if self.asked else "refused", "text": read}


FRAME = {"schema": {"name": "m", "refId": "A", "meta": {"type": "timeseries-multi", "typeVersion": [0, 1], "custom": {"tagKeys": ["host"]}},
                    "fields": [{"name": "Time", "type": "time", "typeInfo": {"frame": "time.Time"}},
                               {"name": "m", "type": "number", "typeInfo": {"frame": "float64"}, "labels": {}}]}, "data": {"values": [[1_700_000_000_000, 1_700_000_001_000], [1, 2]]}}


def looks(plugin):
    """What the browser's half asks, and what is seen, of dashboards in which there is some of everything."""
    asked = []

    def answer(method, path, query, body, _):
        if path.startswith(backend.RESOURCES):
            asked.append([path[len(backend.RESOURCES):], sorted(parse_qsl(query))])
            return (200, b'["a","b"]') if "metric%3Db" not in query else (400, b"[]")
        request = json.loads(body)
        asked.append([path, request])
        results = {}
        for q in request["queries"]:
            frames = []
            for host in ("a", "b"):
                frame = json.loads(json.dumps(FRAME))
                frame["schema"]["name"] = frame["schema"]["fields"][1]["name"] = q["metric"]
                frame["schema"]["fields"][1]["labels"] = {"host": host, "gpu": "0"}
                frame["schema"]["meta"]["custom"]["annotations"] = [{"description": f"note of {host}", "startTime": 1_700_000_000.5}]
                frames.append(frame)
            results[q["refId"]] = {"status": 200, "frames": frames}
        return 200, json.dumps({"results": results}).encode()

    models = json.loads(RECORDED_DASHBOARDS.read_text())
    server, seen = backend.Listener(answer), []
    driven = browser(plugin)
    try:
        for model, width, variables in models:
            begun = len(asked)
            look = driven.look(server.url, model, 1_700_000_000, 1_700_000_300, width, **variables)
            seen.append({"look": look, "asked": sorted(asked[begun:], key=lambda a: json.dumps(a, sort_keys=True))})
    finally:
        driven.close()
        server.close()
    return json.loads(json.dumps(seen))


RECORDED_DASHBOARDS = HERE / "dashboards.json"


def record():
    r = random.Random(SEED)
    cases = [random_case(r) for _ in range(RECORDED_REQUESTS)]
    with Sources(PLUGIN) as sources:
        kept = {"backend": [[case, sources.outcome(case)] for case in cases], "browser": looks(PLUGIN)}
    RECORDED.write_bytes(gzip.compress(json.dumps(kept, separators=(",", ":")).encode(), 9, mtime=0))


class StandIns(unittest.TestCase):
    maxDiff = 3000

    def test_the_backend_does_as_was_recorded(self):
        kinds = collections.Counter()
        with Sources(PLUGIN) as sources:
            for case, expected in json.loads(gzip.decompress(RECORDED.read_bytes()))["backend"]:
                self.assertEqual(json.loads(json.dumps(sources.outcome(case))), expected, case)
                kinds[str(expected.get("error", expected.get("status")))] += 1
        self.assertGreaterEqual(len(kinds), 6, kinds)

    @unittest.skipIf(why_not(), why_not())
    def test_the_browsers_half_does_as_was_recorded(self):
        self.assertEqual(looks(PLUGIN), json.loads(gzip.decompress(RECORDED.read_bytes()))["browser"])

    @unittest.skipUnless(PLUGIN, "GRAFANA_PLUGIN names no installed data source")
    def test_the_backend_does_as_the_installed_one(self):
        seed = chosen("SONDE_TEST_SEED", SEED + 1)
        r = random.Random(seed)
        with Sources(None) as ours, Sources(PLUGIN) as theirs:
            for _ in range(RECORDED_REQUESTS * chosen("SONDE_TEST_ROUNDS", 1)):
                case = random_case(r)
                self.assertEqual(ours.outcome(case), theirs.outcome(case), f"SONDE_TEST_SEED={seed}: {case}")


if __name__ == "__main__":
    if "--record" in sys.argv:
        record()
    else:
        unittest.main(verbosity=2)
