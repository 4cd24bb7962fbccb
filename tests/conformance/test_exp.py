"""Tests /api/query/exp, which computes formulas of metrics."""
import json
import unittest

from harness import Case, Writer, T


def metric(id, name, **more):
    return {"id": id, "metric": name, "filter": "f1", **more}


def by_host(**more):
    return [{"id": "f1", "tags": [{"type": "wildcard", "tagk": "host", "filter": "*", "groupBy": True}], **more}]


class Exp(Case):
    @classmethod
    def write(cls, folder):
        w = Writer(f"{folder}/one.sonde")
        for n, host in enumerate(("web01", "web02", "web03")):
            w.points("sys.a", {"host": host, "dc": f"dc{n}"}, [(T, n + 1), (T + 60, n + 10), (T + 180, n + 100)])
        for n, host in enumerate(("web01", "web02")):
            w.points("sys.b", {"host": host, "dc": "x"}, [(T, 10), (T + 60, 20), (T + 180, n)])
        w.points("late", {"host": "web01"}, [(T + 60, 5)])
        w.close()

    def ask(self, metrics, expressions=(), time=None, filters=None, **more):
        body = {"time": {"start": T, "end": T + 600, "aggregator": "sum", **(time or {})}, "filters": by_host() if filters is None else filters,
                "metrics": metrics, "expressions": [{"id": f"e{i}", "expr": e} if isinstance(e, str) else e for i, e in enumerate(expressions)], **more}
        return self.server.post("/api/query/exp", body)

    def outputs(self, *arguments, **more):
        answer = self.ask(*arguments, **more)
        self.assertEqual(answer.status, 200, answer.raw[:1000])
        return answer.json["outputs"]

    def rows(self, *arguments, **more):
        [output] = self.outputs(*arguments, **more)
        return [[row[0] // 1000 - T, *row[1:]] for row in output["dps"]]

    def test_the_whole_answer(self):
        wanted = [{"id": "e", "alias": "both"}, {"id": "a"}]
        answer = self.ask([metric("a", "sys.a")], [{"id": "e", "expr": "a * 2"}], outputs=wanted).json
        self.assertEqual(answer["query"]["outputs"], wanted)
        self.assertEqual([(o["id"], o.get("alias"), o["dps"][0][1:]) for o in answer["outputs"]], [("e", "both", [2, 4, 6]), ("a", None, [1, 2, 3])])
        # dc differs between a and b, so it is an aggregated tag of their combination.
        self.assertEqual(self.ask([metric("a", "sys.a"), metric("b", "sys.b")],
                                  [{"id": "e", "expr": "a + b", "join": {"operator": "intersection", "useQueryTags": True}}],
                                  filters=[{"id": "f1", "tags": [{"type": "literal_or", "tagk": "host", "filter": "web01", "groupBy": True}]}]).json["outputs"],
                         [{"id": "e", "dps": [[T * 1000, 11], [(T + 60) * 1000, 30], [(T + 180) * 1000, 100]],
                           "dpsMeta": {"firstTimestamp": T * 1000, "lastTimestamp": (T + 180) * 1000, "setCount": 3, "series": 1},
                           "meta": [{"index": 0, "metrics": ["timestamp"]},
                                    {"index": 1, "metrics": ["sys.a", "sys.b"], "commonTags": {"host": "web01"}, "aggregatedTags": ["dc"], "dps": 3}]}])

    def test_union_and_intersection(self):
        metrics = [metric("a", "sys.a"), metric("b", "sys.b", fillPolicy={"policy": "scalar", "value": 1000})]
        for operator, wanted in (("intersection", [0, 11, 12]), ("union", [0, 11, 12, 1003])):
            with self.subTest(operator):
                self.assertEqual(self.rows(metrics, [{"id": "e", "expr": "a+b", "join": {"operator": operator, "useQueryTags": True}}])[0], wanted)
        self.assertEqual(self.rows(metrics, [{"id": "e", "expr": "a+b", "join": {"useQueryTags": True}}])[0], wanted)

    def test_operators(self):
        one = [{"id": "f1", "tags": [{"type": "literal_or", "tagk": "host", "filter": "web02", "groupBy": True}]}]
        for text, wanted in (("a", 2), ("-a", -2), ("a - b", -8), ("a * b", 20), ("b / a", 5), ("b % 3", 1), ("a + b * 2", 22), ("(a + b) * 2", 24),
                             ("a < b", 1), ("a > b", 0), ("a <= 2", 1), ("a >= 2.5", 0), ("a == 2", 1), ("a != 2", 0), ("a > 1 && b > 1", 1),
                             ("a > 5 || b > 5", 1), ("!(a > 1)", 0), ("10 - 3 - 2 + a", 7), ("1e1 * a", 20), ("a > 1 == b > 1", 1), (" a\n+ .5 ", 2.5)):
            with self.subTest(text):
                self.assertEqual(self.rows([metric("a", "sys.a"), metric("b", "sys.b")],
                                           [{"id": "e", "expr": text, "join": {"useQueryTags": True}}], filters=one)[0], [0, wanted])

    def test_a_missing_value_makes_the_result_nan(self):
        """The results of comparisons become NaN, too."""
        metrics = [metric("a", "sys.a", fillPolicy={"policy": "nan"}), metric("late", "late", fillPolicy={"policy": "nan"})]
        for text, before, at in (("a + late", "NaN", 15), ("late < 1", "NaN", 0), ("!late", "NaN", 0), ("late || 1", "NaN", 1), ("a / (late - 5)", "NaN", 0), ("a % (late - 5)", "NaN", 0)):
            with self.subTest(text):
                rows = self.rows(metrics, [{"id": "e", "expr": text, "join": {"operator": "intersection", "useQueryTags": True}}])
                if "a" not in text.replace("late", ""):
                    rows = [[0, "NaN"], *rows]
                self.assertEqual(rows[:2], [[0, before], [60, at]])

    def test_fill_policies(self):
        for policy, wanted in (({"policy": "zero"}, 0), ({"policy": "nan"}, "NaN"), ({"policy": "null"}, None), ({"policy": "scalar", "value": "42"}, 42),
                               ({"policy": "scalar", "value": -1.5}, -1.5)):
            with self.subTest(policy):
                time = {"downsampler": {"interval": "1m", "aggregator": "avg", "fillPolicy": policy}, "end": T + 240}
                self.assertEqual(self.rows([metric("b", "sys.b")], time=time), [[0, 10, 10], [60, 20, 20], [120, wanted, wanted], [180, 0, 1], [240, wanted, wanted]])
        self.assertEqual(self.rows([metric("b", "sys.b")], time={"downsampler": {"interval": "1m", "aggregator": "avg"}}),
                         [[0, 10, 10], [60, 20, 20], [180, 0, 1]])

    def test_formulas_of_formulas(self):
        outputs = self.outputs([metric("a", "sys.a")], [{"id": "e3", "expr": "e2 * 2"}, {"id": "e2", "expr": "e1 + a"}, {"id": "e1", "expr": "a * 10"}])
        self.assertEqual([(o["id"], o["dps"][0][1:]) for o in outputs], [("e3", [22, 44, 66]), ("e2", [11, 22, 33]), ("e1", [10, 20, 30])])
        self.assertEqual(outputs[0]["meta"][1]["metrics"], ["sys.a"])

    def test_metrics_alone_and_rate(self):
        self.assertEqual(self.rows([metric("a", "sys.a")], time={"rate": True}), [[60, 9 / 60, 9 / 60, 9 / 60], [180, .75, .75, .75]])
        self.assertEqual(self.rows([{"id": "a", "metric": "sys.a"}], filters=[]), [[0, 6], [60, 33], [180, 303]])
        self.assertEqual(self.rows([metric("a", "sys.a", aggregator="max")], filters=[{"id": "f1"}]), [[0, 3], [60, 12], [180, 102]])

    def test_no_intersection(self):
        filters = [{"id": f, "tags": [{"type": "literal_or", "tagk": "host", "filter": host, "groupBy": True}]} for f, host in (("f1", "web01"), ("f2", "web02"))]
        body = {"time": {"start": T, "end": T + 300, "aggregator": "sum"}, "filters": filters,
                "metrics": [{"id": "a", "metric": "sys.a", "filter": "f1"}, {"id": "b", "metric": "sys.b", "filter": "f2"}],
                "expressions": [{"id": "e", "expr": "a + b", "join": {"operator": "intersection"}}]}
        self.assert_error(self.server.post("/api/query/exp", body), 400, "No intersections found")
        body["expressions"][0]["join"]["operator"] = "union"
        self.assertEqual(self.server.post("/api/query/exp", body).status, 200)

    def test_nothing_found(self):
        [output] = self.outputs([metric("a", "sys.a")], time={"start": T - 1000, "end": T - 900})
        self.assertEqual((output["dps"], output["dpsMeta"]), ([], {"firstTimestamp": 0, "lastTimestamp": 0, "setCount": 0, "series": 0}))

    def test_errors(self):
        a = metric("a", "sys.a")
        for words, arguments, more in (
                ("missing at character 4", ([a], ["a +"]), {}), ("An operator is expected", ([a], ["a a"]), {}), ("expected at character 1 of the expression: '* a'", ([a], ["* a"]), {}),
                (") is missing", ([a], ["(a"]), {}), ("A number is not understood", ([a], ["a + 1x"]), {}), ("operands and operators", ([a], ["+".join(["a"] * 3000)]), {}),
                ("nested", ([a], ["(" * 100 + "a" + ")" * 100]), {}), ("uses no metric", ([a], ["1 + 1"]), {}), ("bytes", ([a], ["a" * 20000]), {}),
                ("which no metric or expression has", ([a], ["a + z"]), {}), ("refers to itself", ([a], ["e1", "e0"]), {}), ("refers to itself", ([a], ["e0 + a"]), {}),
                ("used twice", ([a, a],), {}), ("used twice", ([a], [{"id": "a", "expr": "a"}]), {}), ("The id 'a b'", ([metric("a b", "sys.a")],), {}),
                ("has no expr", ([a], [{"id": "e"}]), {}), ("No filter has the id", ([{**a, "filter": "f9"}],), {}), ("No such join", ([a], [{"id": "e", "expr": "a", "join": {"operator": "outer"}}]), {}),
                ("Unrecognized fill policy: odd", ([{**a, "fillPolicy": {"policy": "odd"}}],), {}), ("needs a value", ([{**a, "fillPolicy": {"policy": "scalar"}}],), {}),
                ("takes no such value", ([{**a, "fillPolicy": {"policy": "nan", "value": 3}}],), {}), ("of an output", ([a],), {"outputs": [{"id": "q"}]}),
                ("Missing 'metrics'", ([],), {}), ("must be an array", ({"a": 1},), {}), ("interval and aggregator", ([a],), {"time": {"downsampler": {"interval": "1m"}}}),
                ("'expressions' may have 64", ([a], ["a"] * 65), {}), ("Unrecognized fill policy: x", ([a],), {"time": {"downsampler": {"interval": "1m", "aggregator": "avg-x"}}}),
                ("timeOffset", ([{**a, "timeOffset": "1h-ago"}],), {}), ("Missing the aggregation", ([a],), {"time": {"aggregator": None}}),
                ("Missing start", ([a],), {"time": {"start": None}}), ("No such filter", ([a],), {"filters": [{"id": "f1", "tags": [{"type": "x", "tagk": "h", "filter": "*"}]}]}),
                ("No such name for 'metrics': 'nobody'", ([metric("a", "nobody")],), {})):
            with self.subTest(words, arguments=str(arguments)[:100]):
                self.assert_error(self.ask(*arguments, **more), 400, words)
        for body, words in (("", "Missing request content"), ("[]", "JSON object"), ("{", "not valid JSON"), ("{}", "Missing 'time'"), ("[" * 100000, "not valid JSON"),
                            (json.dumps({"time": {"start": T, "end": T - 1, "aggregator": "sum"}, "metrics": [{"id": "a", "metric": "sys.a"}]}), "before its start")):
            with self.subTest(body[:50]):
                self.assert_error(self.server.post("/api/query/exp", body), 400, words)
        self.assertEqual(self.server.get("/api/query/exp").status, 405)

    def test_ambiguous_series(self):
        """A join is refused if its tags do not distinguish the series of a metric."""
        self.assert_error(self.ask([metric("a", "sys.a", aggregator="none")], [{"id": "e", "expr": "a", "join": {"useQueryTags": True}}],
                                   filters=[{"id": "f1", "tags": [{"type": "not_key", "tagk": "rack", "filter": "", "groupBy": True}]}]), 400, "same tags in the join")


if __name__ == "__main__":
    unittest.main()
