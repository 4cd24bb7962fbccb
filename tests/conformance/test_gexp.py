"""Tests /api/query/gexp, which applies functions to queries."""
import math
import unittest

from harness import Case, Writer, END, T

HOSTS = ("a", "b", "c")


class Gexp(Case):
    @classmethod
    def write(cls, folder):
        w = Writer(f"{folder}/one.sonde")
        for n, host in enumerate(HOSTS):
            w.points("used", {"host": host}, [(T + 10 * i, (n + 1) * 10 + i) for i in range(6)])
        w.points("total", {"host": "a"}, [(T + 10 * i, 100) for i in range(6)])
        w.points("total", {"host": "b"}, [(T + 10 * i, 200) for i in range(6)])
        w.points("signed", {"host": "a"}, [(T, -1.5), (T + 10, 2), (T + 20, -3)])
        w.points("falling", {"host": "a"}, [(T, 100), (T + 10, 1)])
        w.points("falling", {"host": "b"}, [(T, 50), (T + 10, 2)])
        w.points("falling", {"host": "c"}, [(T, 10), (T + 10, 3)])
        w.points("rough", {"host": "a"}, [(T, 1), (T + 30, 3)])
        w.points("hour_ago", {"host": "a"}, [(T - 3600 + 10 * i, i) for i in range(6)] + [(T, 7)])
        w.close()

    def ask(self, *expressions, start=T, end=END, **more):
        answer = self.server.get("/api/query/gexp", {"start": start, "end": end, "exp": list(expressions), **more})
        self.assertEqual(answer.status, 200, answer.raw[:1000])
        return answer.json

    def points(self, expression, host=None, **more):
        found = [e for e in self.ask(expression, **more) if host is None or e["tags"].get("host") == host]
        self.assertEqual(len(found), 1, found)
        return {int(t) - T: v for t, v in found[0]["dps"].items()}

    def test_form_is_that_of_query(self):
        [one] = self.ask("scale(sum:used{host=a},10)")
        self.assertEqual((one["metric"], one["tags"], one["aggregateTags"]), ("used", {"host": "a"}, []))
        self.assertEqual(one["dps"], {str(T + 10 * i): 10 * (10 + i) for i in range(6)})
        [one] = self.ask("scale(sum:used{host=a},10)", arrays="", ms="")
        self.assertEqual(one["dps"][0], [T * 1000, 100])
        self.assertEqual(self.server.get("/api/query/gexp", {"start": T, "exp": "absolute(sum:used)", "jsonp": "f"}).raw[:6], b"/**/f(")

    def test_a_query_alone_and_several(self):
        self.assertEqual([e["tags"]["host"] for e in self.ask("none:used{host=a|b}", "scale(sum:used{host=c}, 1e0)")], ["a", "b", "c"])

    def test_functions_of_one_set(self):
        for expression, wanted in (
                ("absolute(sum:signed)", {0: 1.5, 10: 2, 20: 3}),
                ("scale(sum:signed,-0.5)", {0: 0.75, 10: -1, 20: 1.5}),
                ("firstDiff(sum:signed)", {10: 3.5, 20: -5}),
                ("movingAverage(sum:used{host=a},2)", {10: 10.5, 20: 11.5, 30: 12.5, 40: 13.5, 50: 14.5}),
                ("movingAverage(sum:used{host=a},'20s')", {20: 11.5, 30: 12.5, 40: 13.5, 50: 14.5}),
                ("movingAverage(sum:used{host=a}, \"1min\")", {}),
                ("movingAverage(sum:used{host=a},6)", {50: 12.5}),
                ("movingAverage(sum:used{host=a},7)", {}),
                ("timeShift(sum:hour_ago,'1h')", {**{10 * i: i for i in range(6)}, 3600: 7}),
                ("shift(sum:hour_ago,'60m')", {**{10 * i: i for i in range(6)}, 3600: 7}),
                ("scale(scale(absolute(sum:signed),2),3)", {0: 9, 10: 12, 20: 18})):
            with self.subTest(expression):
                self.assertEqual(self.points(expression), wanted)

    def test_highest(self):
        hosts = lambda expression: [e["tags"]["host"] for e in self.ask(expression)]
        self.assertEqual(hosts("highestMax(sum:falling{host=*},2)"), ["a", "b"])
        self.assertEqual(hosts("highestCurrent(sum:falling{host=*},2)"), ["c", "b"])
        self.assertEqual(hosts("highestMax(sum:falling{host=*},9)"), ["a", "b", "c"])

    def test_gaps_are_written_as_the_first_query_fills_them(self):
        for fill, gap in (("nan", {10: "NaN", 20: "NaN"}), ("null", {10: None, 20: None}), ("zero", {10: 0, 20: 0}), ("none", {})):
            self.assertEqual(self.points(f"scale(sum:10s-avg-{fill}:rough,2)", end=T + 30), {0: 2, **gap, 30: 6})

    def test_show_query(self):
        got = self.ask("scale(sum:used{host=*},2)", "sumSeries(max:total{host=a},sum:used{host=a})", show_query="")
        self.assertEqual([(e["query"]["aggregator"], e["query"]["metric"], e["query"]["tags"], e["query"]["index"]) for e in got],
                         [("sum", "used", {"host": "wildcard(*)"}, 0)] * 3 + [("max", "total", {"host": "literal_or(a)"}, 1)])

    def test_alias(self):
        self.assertEqual([e["metric"] for e in self.ask("alias(sum:used{host=*},'use of @host: @hostname@')")],
                         [f"use of {h}: {h}name@" for h in HOSTS])
        [one] = self.ask("alias(sum:used{host=a},plain)")
        # The alias replaces the tags.
        self.assertEqual((one["metric"], one["tags"], one["aggregateTags"]), ("plain", {}, []))

    def test_functions_of_several_sets(self):
        for names, wanted in (
                (("sum", "sumSeries"), {"a": 110, "b": 220, "c": 30}),
                (("diff", "difference", "diffSeries"), {"a": -90, "b": -180, "c": 30}),
                (("multiply", "multiplySeries"), {"a": 1000, "b": 4000, "c": 0}),
                (("divide", "divideSeries"), {"a": 0.1, "b": 0.1})):
            for name in names:
                with self.subTest(name):
                    got = self.ask(f"{name}(sum:used{{host=*}},sum:total{{host=*}})", end=T)
                    self.assertEqual({e["tags"]["host"]: e["dps"][str(T)] for e in got if e["dps"]}, wanted)
                    self.assertEqual({e["metric"] for e in got}, {f"{name}(sum:used{{host=*}},sum:total{{host=*}})"})
        self.assertEqual(self.points("sum(sum:used{host=a},sum:used{host=a},sum:total{host=a})", end=T), {0: 120})

    def test_missing_values_of_a_set_are_0(self):
        """If only one of two sets has a value at a time, the other's value is 0."""
        self.assertEqual(self.points("sum(sum:rough,sum:signed)"), {0: -0.5, 10: 2, 20: -3, 30: 3})

    def test_tags_that_differ_are_aggregated(self):
        [one] = self.ask("sum(sum:used,sum:total)", end=T)
        self.assertEqual((one["tags"], one["aggregateTags"], one["dps"]), ({}, ["host"], {str(T): 60 + 300}))

    def test_options_of_queries_stay(self):
        self.assertEqual(self.points("scale(sum:rate{counter,100,5}:used{host=a},10)"), {10 * i: 1 for i in range(1, 6)})
        self.assertEqual(self.points("scale(sum:20s-sum:used{host=literal_or(a|x)},1)"), {0: 21, 20: 25, 40: 29})
        self.assertEqual(self.points("scale(sum:used{host=regexp(^(a,)?a$)},1)", end=T), {0: 10})

    def test_errors(self):
        for expression, words in (
                ("", "missing"), ("scale(sum:used)", "second argument"), ("scale(sum:used,x)", "number"), ("scale(sum:used,nan)", "number"),
                ("scale(sum:used,1,2)", "too many"), ("scale(sum:used,1", ") is missing"), ("scale(sum:used,1))", "Nothing is expected"),
                ("unheard(sum:used)", "No such function: 'unheard'"), ("scale(,1)", "missing"), ("scale(used,1)", "Invalid m expression"),
                ("sum(sum:used)", "at least two"), ("highestMax(sum:used,0)", "from 1"), ("highestMax(sum:used,1.5)", "whole"),
                ("movingAverage(sum:used,'x')", "a time as"), ("timeShift(sum:used,10)", "a time as"), ("alias(sum:used,'')", "a name"),
                ("scale(bad:used,1)", "No such aggregation function"), ("absolute(" * 40 + "sum:used" + ")" * 40, "nested"),
                ("sum(" + ",".join(["sum:used"] * 27) + ")", "too many"), ("absolute(sum:nobody)", "No such name for 'metrics': 'nobody'"),
                ("timeShift(timeShift(sum:used,'250y'),'250y')", "too long"), ("x" * 200 + "(sum:used)", "No such function")):
            with self.subTest(expression[:50]):
                self.assert_error(self.server.get("/api/query/gexp", {"start": T, "exp": expression}), 400, words)
        self.assert_error(self.server.get("/api/query/gexp", {"exp": "sum:used"}), 400, "Missing start")
        self.assert_error(self.server.get("/api/query/gexp", {"start": T}), 400, "Missing the parameter exp")
        self.assert_error(self.server.get("/api/query/gexp", {"start": T, "end": T - 1, "exp": "sum:used"}), 400, "before start")
        self.assert_error(self.server.get("/api/query/gexp", {"start": T, "exp": ["sum:used"] * 65}), 413, "64 expressions")
        self.assertEqual(self.server.post("/api/query/gexp", "{}").status, 405)


class Bounded(Case):
    arguments = ("query_memory_bytes=3000000",)

    @classmethod
    def write(cls, folder):
        w = Writer(f"{folder}/one.sonde")
        w.points("used", {"host": "a"}, [(T + i, math.sqrt(i)) for i in range(20000)])
        w.close()

    def test_it(self):
        self.assertEqual(self.server.get("/api/query/gexp", {"start": T, "end": END, "exp": "scale(sum:used,1)"}).status, 200)
        deep = "scale(" * 24 + "sum:used" + ",1)" * 24
        self.assert_error(self.server.get("/api/query/gexp", {"start": T, "end": END, "exp": deep}), 413, "query_memory_bytes")
        body = {"time": {"start": T, "end": END, "aggregator": "sum"}, "metrics": [{"id": f"m{i}", "metric": "used"} for i in range(8)]}
        self.assert_error(self.server.post("/api/query/exp", body), 413, "query_memory_bytes")


if __name__ == "__main__":
    unittest.main()
