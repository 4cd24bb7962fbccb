"""Tests the requests of Grafana's OpenTSDB data source (13.0) and its interpretation of answers.

Its backend posts one query at a time with times in whole seconds, and without msResolution and
globalAnnotations. It computes the interval of the downsampling from the range and the width of the
panel.
"""
import os
import random
import unittest

from harness import Case, T, Writer

RANGE_S = 300
SEED, ROUNDS = int(os.environ.get("SONDE_TEST_SEED") or 1), int(os.environ.get("SONDE_TEST_ROUNDS") or 1)
# Grafana divides the range by the width and rounds: a value in ms below the first number of a pair
# becomes the second number.
ROUNDED = [(10, 1), (15, 10), (35, 20), (75, 50), (150, 100), (350, 200), (750, 500), (1500, 1000), (3500, 2000), (7500, 5000)]


def downsampling(width_px, range_s=RANGE_S):
    ms = next(to for below, to in ROUNDED if range_s * 1000 / width_px < below)
    return f"{ms}ms" if ms < 1000 else f"{ms // 1000}s"


class DataSource(Case):
    @classmethod
    def write(cls, folder):
        writer = Writer(f"{folder}/a.sonde")
        # The counter rises by 100 in the middle of each second.
        writer.points("steps_total", {"host": "a"}, [(T + i / 10, 100 * ((i + 5) // 10)) for i in range(10 * RANGE_S + 1)])
        r, total = random.Random(SEED), 0
        points = []
        for i in range(20 * RANGE_S):
            total += r.choice([0, 0, 1, 50])
            if r.random() < 0.5:
                points.append((T + i / 20, total))
        writer.points("noise_total", {"host": "a"}, points[::2])
        writer.points("noise_total", {"host": "b"}, points[1::2])
        writer.close()

    def ask(self, arrays=True, **query):
        answer = self.server.post("/api/query" + ("?arrays=true" if arrays else ""), {"start": T, "end": T + RANGE_S, "queries": [query]})
        self.assertEqual(answer.status, 200, answer.raw)
        return answer.json

    def test_intervals_of_panels(self):
        self.assertEqual([downsampling(px) for px in (300, 500, 2000)], ["1s", "500ms", "200ms"])

    def test_a_rate_is_that_of_the_whole_second(self):
        for px in (300, 500, 700, 2000, 4000, 40000):
            for arrays in (True, False):
                got = self.ask(arrays, metric="steps_total", aggregator="sum", downsample=f"{downsampling(px)}-avg", rate=True, rateOptions={"counter": True, "dropResets": True})
                dps = got[0]["dps"] if arrays else got[0]["dps"].items()
                # The last bucket has one point, not a whole second.
                values = [v for _, v in dps][:-1]
                self.assertGreaterEqual(len(values), RANGE_S - 2)
                self.assertEqual(set(values), {100}, (px, arrays))

    def test_less_than_a_second_is_a_second(self):
        """An interval below 1 s counts as 1 s in every kind of request, with every aggregation."""
        r = random.Random(SEED)
        for _ in range(20 * ROUNDS):
            aggregator, function = r.choice(["sum", "avg", "max", "none"]), r.choice(["avg", "sum", "min", "count", "last"])
            fill, rate, ms = r.choice(["", "-zero", "-nan", "-none"]), r.choice(["", "rate:", "rate{counter}:"]), r.choice([1, 10, 20, 50, 100, 200, 500, 999])
            start = T + r.randrange(RANGE_S - 20)

            def both(form, ask=self.query, **more):
                return [[(e["tags"], e["dps"]) for e in ask(form.replace("INTERVAL", f"{interval}-{function}{fill}"), start, start + 20, **more)] for interval in (f"{ms}ms", "1s")]
            m = f"{aggregator}:INTERVAL:{rate}noise_total"
            with self.subTest(seed=SEED, m=m, ms=ms, start=start):
                fine, whole = both(m)
                self.assertTrue(whole and whole[0][1])
                self.assertEqual(fine, whole)
                fine, whole = both(f"scale({m},2)", self.gexp)
                self.assertEqual(fine, whole)
                # With time stamps in ms, an interval below 1 s is used as it is.
                fine, whole = both(m, ms="")
                self.assertNotEqual(fine, whole)

    def gexp(self, exp, start, end):
        answer = self.server.get("/api/query/gexp", {"start": start, "end": end, "exp": exp})
        self.assertEqual(answer.status, 200, answer.raw)
        return answer.json

    def test_two_intervals_in_one_request(self):
        """Queries that differ are all answered; show_query returns each parsed query."""
        got = self.server.get("/api/query", f"start={T}&m=sum:500ms-avg:steps_total&m=sum:1s-avg:steps_total&m=sum:500ms-avg:steps_total&show_query").json
        self.assertEqual([(e["query"]["index"], e["query"]["downsample"]) for e in got], [(0, "1s-avg"), (1, "1s-avg")])
        calendar = self.server.get("/api/query", {"start": T, "end": T + 9, "m": "sum:500ms-avg:steps_total", "use_calendar": ""}).json
        self.assertEqual(list(calendar[0]["dps"].values()), list(got[0]["dps"].values())[:10])


class Empty(Case):
    """A built-in metric without series in this job, such as gpu_count without GPUs, gives an empty
    panel and no error."""
    @classmethod
    def write(cls, folder):
        writer = Writer(f"{folder}/a.sonde")
        writer.points("load_1m", {"host": "a"}, [(T + i, i) for i in range(10)])
        writer.close()

    def ask(self, *queries, more=None):
        return self.server.post("/api/query?arrays=true", {"start": T, "end": T + 9, "queries": [{"aggregator": "sum", **q} for q in queries], **(more or {})})

    def assert_empty(self, answer, json=()):
        self.assertEqual((answer.status, answer.json), (200, list(json) if isinstance(json, tuple) else json), answer.raw)

    def test_queries(self):
        for name in ("gpu_count", "DevicePowerUsage"):
            self.assert_empty(self.ask({"metric": name}))
            self.assert_empty(self.ask({"metric": name, "downsample": "1s-avg-zero", "filters": [{"tagk": "gpu", "type": "wildcard", "filter": "*", "groupBy": True}]}))
            self.assert_empty(self.ask({"metric": name, "rate": True, "explicitTags": True}, more={"showQuery": True, "showTSUIDs": True}))
            for m in (f"sum:{name}", f"none:1s-max:rate:{name}{{host=*}}"):
                self.assert_empty(self.server.get("/api/query", {"start": T, "m": m}))
                self.assert_empty(self.server.get("/api/query/gexp", {"start": T, "exp": f"scale({m},2)"}))
            self.assert_empty(self.server.get("/api/query/last", {"timeseries": f"{name}{{gpu=0}}"}))
            self.assert_empty(self.server.post("/api/query/last", {"queries": [{"metric": name}]}))

    def test_beside_others(self):
        got = self.ask({"metric": "load_1m"}, {"metric": "gpu_count"}, {"metric": "load_1m", "aggregator": "max"}).json
        self.assertEqual([e["metric"] for e in got], ["load_1m", "load_1m"])
        got = self.server.get("/api/query", f"start={T}&m=sum:gpu_count&m=sum:load_1m&show_summary").json
        self.assertEqual([e.get("metric") for e in got], ["load_1m", None])
        got = self.server.get("/api/query/gexp", f"start={T}&exp=scale(sum:gpu_count,2)&exp=scale(sum:load_1m,2)").json
        self.assertEqual([e["metric"] for e in got], ["load_1m"])
        got = self.server.get("/api/query/last", "timeseries=gpu_count&timeseries=load_1m").json
        self.assertEqual([e["value"] for e in got], ["9"])

    def test_formulas(self):
        def formula(expression, *metrics):
            body = {"time": {"start": str(T), "end": str(T + 9), "aggregator": "sum"}, "metrics": [{"id": f"m{i}", "metric": m} for i, m in enumerate(metrics)],
                    "expressions": [{"id": "e", "expr": expression}], "outputs": [{"id": "e"}]}
            return self.server.post("/api/query/exp", body)
        one = formula("m0 * 2", "gpu_count")
        self.assertEqual((one.status, one.json["outputs"][0]["dps"]), (200, []))
        # Such a metric acts like one whose series have no points in this range.
        two = formula("m0 + m1", "load_1m", "DevicePowerUsage")
        self.assertEqual(two.status, 200, two.raw)
        self.assertEqual([row[1] for row in two.json["outputs"][0]["dps"]], list(range(10)))

    def test_lookups_and_suggestions(self):
        for m in ("gpu_count", "gpu_count{host=*}", "DevicePowerUsage{host=*,gpu=0}", "gpu_count{=nobody}"):
            answer = self.server.get("/api/search/lookup", {"m": m, "limit": 1000})
            self.assertEqual((answer.status, answer.json["results"], answer.json["totalResults"]), (200, [], 0), m)
        answer = self.server.post("/api/search/lookup", {"metric": "gpu_count", "tags": [{"key": "gpu", "value": "*"}]})
        self.assertEqual((answer.status, answer.json["results"]), (200, []))
        # Suggestions contain only existing names.
        self.assert_empty(self.server.get("/api/suggest", "type=metrics"), ["load_1m", "load_average"])
        self.assertEqual(self.server.get("/api/suggest", "type=metrics&q=load_a").json, ["load_average"])
        self.assertEqual(self.server.get("/api/suggest", "type=metrics&q=load&max=1").json, ["load_1m"])
        self.assertEqual(self.server.get("/sonde/v1/metrics", "q=load_av").json["metrics"][0]["aliases"], ["load_average"])
        self.assert_empty(self.server.get("/api/suggest", "type=metrics&q=gpu"))

    def test_the_native_face(self):
        body = {"start": T, "queries": [{"metric": "gpu_count", "aggregator": "none"}, {"m": "sum:load_1m"}]}
        got = self.server.post("/sonde/v1/query", body).json
        self.assertEqual([(s["query"], s["metric"]) for s in got["series"]], [(1, "load_1m")])
        for form in ("arrow", "binary"):
            self.assertEqual(self.server.post(f"/sonde/v1/query?format={form}", body).status, 200)
        got = self.server.get("/sonde/v1/series", "match=gpu_count{gpu=0}&latest").json
        self.assertEqual((got["total"], got["series"]), (0, []))

    def test_a_name_that_nobody_knows_is_a_mistake(self):
        words = "No such name for 'metrics': 'gpu_cout'"
        self.assert_error(self.ask({"metric": "gpu_cout"}, {"metric": "other"}), 400, words)
        beside = self.ask({"metric": "gpu_cout"}, {"metric": "load_1m"}, {"metric": "no one"})
        self.assertEqual((beside.status, [e["metric"] for e in beside.json]), (200, ["load_1m"]))
        self.assertEqual(beside.headers["X-Sonde-Unknown"], "gpu_cout, no?one")
        self.assert_error(self.server.get("/api/query", {"start": T, "m": "sum:gpu_cout"}), 400, words)
        self.assert_error(self.server.get("/api/query/gexp", {"start": T, "exp": "scale(sum:gpu_cout,2)"}), 400, words)
        self.assert_error(self.server.get("/api/query/last", "timeseries=gpu_cout"), 400, words)
        self.assert_error(self.server.get("/api/search/lookup", {"m": "gpu_cout"}), 404, words)
        self.assert_error(self.server.get("/api/search/lookup", {"m": "load_1m{gpu=*}"}), 404, "No such name for 'tagk': 'gpu'")
        self.assert_error(self.server.post("/sonde/v1/query", {"start": T, "queries": [{"m": "sum:gpu_cout"}]}), 400, words)


if __name__ == "__main__":
    unittest.main()
