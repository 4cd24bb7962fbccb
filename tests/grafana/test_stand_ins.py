"""Tests that the stand-ins behave like an installed data source, which was recorded.

`test_stand_ins.py --record` makes a new record of the data source in $GRAFANA_PLUGIN. If this
variable is set, two tests also compare that data source with the record, and a third test compares
it with the stand-ins in random cases. SONDE_TEST_SEED and SONDE_TEST_ROUNDS determine the cases and
their number.
"""

import collections
import gzip
import http.client
import json
import os
import pathlib
import random
import sys
import unittest
from urllib.parse import parse_qsl, urlsplit

import backend
from backend import PATIENCE_S
from data_source import PLUGIN, browser, source
from packages import why_not

HERE = pathlib.Path(__file__).resolve().parent
SEED = 1
RECORDED = HERE / "recorded.json.gz"
RECORDED_REQUESTS = 300
# [dashboard, width in pixels, values of variables]: examples of every feature of dashboards.
RECORDED_DASHBOARDS = HERE / "dashboards.json"


def chosen(name, default):
    return int(os.environ.get(name) or default)


def random_query(r):
    query = {
        "refId": "A",
        "metric": r.choice(["m", "disk_read_bytes_total"]),
        "aggregator": r.choice(["sum", "avg", "p99", "none"]),
        "intervalMs": r.choice(
            [
                1,
                200,
                500,
                999,
                1000,
                1500,
                2000,
                59_000,
                60_000,
                90_000,
                3_600_000,
                5_400_000,
                86_400_000,
                200_000_000,
            ]
        ),
        "maxDataPoints": 500,
    }
    if r.random() < 0.8:
        query.update(
            downsampleAggregator=r.choice(["avg", "max"]),
            downsampleInterval=r.choice(["", "", "5s", "0.5s", "1.25s", ".5s", "1m"]),
            downsampleFillPolicy=r.choice(["", "none", "none", "zero", "nan"]),
        )
    if r.random() < 0.3:
        query["disableDownsampling"] = r.random() < 0.7
    if r.random() < 0.5:
        query.update(
            shouldComputeRate=r.random() < 0.8,
            isCounter=r.random() < 0.6,
            counterMax=r.choice(["", "100", "1.8446744073709552e19", "x"]),
            counterResetValue=r.choice(["", "0", "35", "x"]),
        )
    if r.random() < 0.5:
        query["filters"] = (
            [{"tagk": "host", "type": "regexp", "filter": "^(.*)$", "groupBy": True}]
            if r.random() < 0.7
            else []
        )
    if r.random() < 0.3:
        query["tags"] = r.choice([{}, {"host": "*"}, {"host": "a|b", "gpu": "0"}])
    if r.random() < 0.2:
        query["explicitTags"] = r.random() < 0.5
    return query


def random_answer(r, version):
    """Returns (status, body) of a made-up OpenTSDB: mostly valid answers, and all pitfalls."""
    if r.random() < 0.1:
        return r.choice(
            [
                (400, '{"error":{"code":400,"message":"no"}}'),
                (404, "{}"),
                (500, ""),
                (503, "busy"),
                (204, ""),
                (200, ""),
                (200, "[]"),
                (200, "null"),
                (200, "{}"),
                (200, "[1]"),
            ]
        )

    def spoken():
        return (
            r.choice(["1", "2.5", "-0.25", "1e3", "12345678901"])
            if r.random() < 0.97
            else r.choice(["null", '"NaN"', "NaN", "1e400", "true", "[]"])
        )

    elements = []
    for _ in range(r.choice([0, 1, 1, 2, 3])):
        tags = (
            r.choice(['{"host":"a"}', '{"host":"a","gpu":"0"}', "{}", "{}", "null"])
            if r.random() < 0.97
            else r.choice(['{"gpu":0}', "[]"])
        )
        times = sorted(r.sample(range(1000, 1020), r.randrange(6)))
        as_array = (version == 4) == (r.random() < 0.97)
        dps = (
            f"[{','.join(f'[{t},{spoken()}]' for t in times)}]"
            if as_array
            else f"{{{','.join(f'{json.dumps(str(t))}:{spoken()}' for t in times)}}}"
        )
        notes = (
            '"annotations":[{"tsuid":"00","startTime":1003,"endTime":0,"description":"d","notes":""},'
            '{"startTime":1004.75}],'
            if r.random() < 0.2
            else ""
        )
        globals_ = (
            '"globalAnnotations":[{"startTime":1369141261,"description":"g","custom":{"k":"v"}}],'
            if r.random() < 0.1
            else ""
        )
        aggregated = r.choice(["[]", "[]", '["dc"]'])
        elements.append(
            f'{{"metric":"m","tags":{tags},"aggregateTags":{aggregated},'
            f'{notes}{globals_}"dps":{dps}}}'
        )
    return 200, f"[{','.join(elements)}]"


def random_case(r):
    version = r.choice([4, 4, 3, 1])
    case = {
        "version": version,
        "way": r.choice(["header", "password", "address", "query"]),
        "packed": r.random() < 0.3,
    }
    if r.random() < 0.75:
        case["request"] = {
            "from": str(r.randrange(10**12)),
            "to": str(10**12 + r.randrange(10**9)),
            "queries": [random_query(r)],
        }
        case["upstream"] = random_answer(r, version)
    else:
        case["resource"] = r.choice(
            [
                "api/suggest?type=metrics&q=cpu&max=1000",
                "api/suggest?q=&type=tagk",
                "api/aggregators",
                "api/config/filters",
                "api/search/lookup?type=key&metric=m",
                "api/search/lookup?type=keyvalue&metric=m&keys=host",
                "api/search/lookup?type=keyvalue&metric=m&keys=host%2C%20gpu%3D0",
                "api/search/lookup?type=keyvalue&metric=m&keys=",
                "api/search/lookup?type=key",
                "api/search/lookup?metric=m",
                "health",
            ]
        )
        found = (
            '{"type":"LOOKUP","results":[{"tsuid":"1","metric":"m","tags":{"host":"b","gpu":"0"}},'
            '{"tsuid":"2","tags":{"host":"a"}}]}'
        )
        good = {
            "suggest": '["cpu_percent"]',
            "aggregators": '["sum","avg"]',
            "filters": '{"wildcard":{"examples":"x"},"regexp":{}}',
            "lookup": found,
        }
        case["upstream"] = (200, next((v for k, v in good.items() if k in case["resource"]), "[]"))
        if "lookup" in case["resource"] and r.random() < 0.3:
            case["upstream"] = (404, '{"error":{"code":404,"message":"no"}}')
    return case


class Sources:
    """Data sources for an OpenTSDB that answers with the data of the current case."""

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
        self.asked.append(
            [
                method,
                headers["Authorization"],
                path,
                sorted(parse_qsl(query)),
                json.loads(body, parse_int=float) if body else None,
            ]
        )
        status, text = self.case["upstream"]
        packed = self.case["packed"] and status == 200
        return (
            status,
            gzip.compress(text.encode()) if packed else text.encode(),
            *([("Content-Encoding", "gzip")] if packed else []),
        )

    def source(self, version, way):
        if (version, way) not in self.sources:
            url = self.server.url
            made = {
                "header": (url, "t"),
                "password": (url, "t", version, True),
                "address": (url.replace("//", "//u:t@"),),
                "query": (f"{url}?token=t",),
            }[way]
            self.sources[version, way] = source(
                {
                    **backend.settings(*made),
                    "jsonData": {**backend.settings(*made)["jsonData"], "tsdbVersion": version},
                },
                self.plugin,
            )
        return self.sources[version, way]

    def outcome(self, case):
        """Returns the data source's request to its OpenTSDB, and the frames that it makes of the
        answer."""
        self.case, self.asked = case, []
        connection = http.client.HTTPConnection(
            urlsplit(self.source(case["version"], case["way"]).url).netloc, timeout=PATIENCE_S
        )
        try:
            if "request" in case:
                connection.request("POST", "/api/ds/query", json.dumps(case["request"]))
            else:
                connection.request(
                    "GET",
                    (
                        "/api/datasources/uid/sonde/health"
                        if case["resource"] == "health"
                        else backend.RESOURCES + case["resource"]
                    ),
                )
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if "request" in case:
            (result,) = json.loads(text)["results"].values()
            # Only the text of this error appears on a panel; other errors need not be equal.
            error = result.get("error", "")
            return {
                "asked": self.asked,
                "error": error if "request failed" in error else bool(error),
                "frames": result.get("frames") or [],
            }
        read = json.loads(text) if answer.status == 200 and case["resource"] != "health" else None
        return {
            "asked": self.asked,
            "status": answer.status if self.asked else "refused",
            "text": read,
        }


FRAME = {
    "schema": {
        "name": "m",
        "refId": "A",
        "meta": {
            "type": "timeseries-multi",
            "typeVersion": [0, 1],
            "custom": {"tagKeys": ["host"]},
        },
        "fields": [
            {"name": "Time", "type": "time", "typeInfo": {"frame": "time.Time"}},
            {"name": "m", "type": "number", "typeInfo": {"frame": "float64"}, "labels": {}},
        ],
    },
    "data": {"values": [[1_700_000_000_000, 1_700_000_001_000], [1, 2]]},
}


def looks(plugin):
    """Returns the requests of the frontend for the recorded dashboards, and what a person sees."""
    asked = []

    def answer(method, path, query, body, _):
        if path.startswith(backend.RESOURCES):
            asked.append([path[len(backend.RESOURCES) :], sorted(parse_qsl(query))])
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
                frame["schema"]["meta"]["custom"]["annotations"] = [
                    {"description": f"note of {host}", "startTime": 1_700_000_000.5}
                ]
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
            seen.append(
                {
                    "look": look,
                    "asked": sorted(asked[begun:], key=lambda a: json.dumps(a, sort_keys=True)),
                }
            )
    finally:
        driven.close()
        server.close()
    return json.loads(json.dumps(seen))


def record():
    r = random.Random(SEED)
    cases = [random_case(r) for _ in range(RECORDED_REQUESTS)]
    with Sources(PLUGIN) as sources:
        kept = {
            "backend": [[case, sources.outcome(case)] for case in cases],
            "browser": looks(PLUGIN),
        }
    RECORDED.write_bytes(
        gzip.compress(json.dumps(kept, separators=(",", ":")).encode(), 9, mtime=0)
    )


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
        self.assertEqual(
            looks(PLUGIN), json.loads(gzip.decompress(RECORDED.read_bytes()))["browser"]
        )

    @unittest.skipUnless(PLUGIN, "GRAFANA_PLUGIN does not name an installed data source")
    def test_the_backend_does_as_the_installed_one(self):
        seed = chosen("SONDE_TEST_SEED", SEED + 1)
        r = random.Random(seed)
        with Sources(None) as ours, Sources(PLUGIN) as theirs:
            for _ in range(RECORDED_REQUESTS * chosen("SONDE_TEST_ROUNDS", 1)):
                case = random_case(r)
                self.assertEqual(
                    ours.outcome(case), theirs.outcome(case), f"SONDE_TEST_SEED={seed}: {case}"
                )


if __name__ == "__main__":
    if "--record" in sys.argv:
        record()
    else:
        unittest.main(verbosity=2)
