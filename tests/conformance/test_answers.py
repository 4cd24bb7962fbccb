"""Tests the forms of answers, and the requests of real clients."""
import gzip
import json
import os
import re
import unittest
import zlib

from harness import END, T, Case, Server, Writer, strict_json


class Answers:
    """Tests that run both for a file that is still being written and for a closed one."""
    state = "closed"
    arguments = ("job=job7", "alias=cpu_load:cpu")

    @classmethod
    def fill(cls, folder):
        writer = Writer(f"{folder}/node1.sonde")
        for host, offset in (("a", 0), ("b", 100)):
            writer.points("cpu", {"host": host, "dc": "x"}, [(T + 10 * i, offset + i) for i in range(60)])
        writer.points("gaps", {"host": "a"}, [(T, 1.5), (T + 60, 2.5)])
        writer.points("odd", {"host": "a"}, [(T, 1), (T + 1, float("nan")), (T + 2, float("inf")), (T + 3, float("-inf")), (T + 4, 5)])
        writer.points("big", {"host": "a"}, [(T + i, i + 0.125) for i in range(20000)])
        writer.points("cpu.user", {"host": "a", "core": "0"}, [(T, 1)])
        writer.points("disk", {"host": "a", "mount": '/a"b\\c'}, [(T, 1)])
        writer.points("old", {"host": "a"}, [(1000, 1)])
        writer.annotation(T + 5, {}, "the run begins")
        writer.annotation(T + 7, {"host": "b"}, "node b is slow")
        return writer

    def post_query(self, body, parameters="", status=200):
        answer = self.server.post("/api/query" + parameters, body)
        self.assertEqual(answer.status, status, answer.raw[:1000])
        return answer.json

    # ---- forms

    def test_object_and_array(self):
        dps = {str(T + 10 * i): i for i in range(60)}
        self.assertEqual(self.query("sum:cpu{host=a}")[0]["dps"], dps)
        rows = [[T + 10 * i, i] for i in range(60)]
        for value in ("", "true", "false"):
            self.assertEqual(self.query("sum:cpu{host=a}", arrays=value)[0]["dps"], rows)
        body = {"start": T, "end": END, "queries": [{"metric": "cpu", "aggregator": "sum", "tags": {"host": "a"}}]}
        self.assertEqual(self.post_query(body, "?arrays=true")[0]["dps"], rows)
        self.assertEqual(self.post_query(body)[0]["dps"], dps)

    def test_order_of_keys(self):
        answer = self.server.get("/api/query", {"start": T, "end": END, "m": "sum:cpu{host=*}", "show_query": "", "show_tsuids": "",
                                                "global_annotations": "", "show_stats": ""})
        for element in answer.json:
            self.assertEqual(list(element), ["metric", "tags", "aggregateTags", "query", "tsuids", "annotations", "globalAnnotations",
                                             "dps", "stats"])

    def test_nothing_unasked(self):
        answer = self.query("sum:gaps", no_annotations="")
        self.assertEqual(list(answer[0]), ["metric", "tags", "aggregateTags", "dps"])
        self.assertEqual(len(answer), 1)

    def test_gaps_are_left_out(self):
        for m in ("sum:gaps", "sum:10s-avg:gaps", "sum:10s-avg-none:gaps"):
            self.assertEqual(self.query(m)[0]["dps"], {str(T): 1.5, str(T + 60): 2.5})
        # A value that is not a number is a gap in both forms.
        self.assertEqual(self.query("sum:odd")[0]["dps"], {str(T): 1, str(T + 4): 5})
        self.assertEqual(self.query("sum:odd", arrays="")[0]["dps"], [[T, 1], [T + 4, 5]])

    def test_requested_gaps_have_two_elements(self):
        for fill, value in (("nan", "NaN"), ("null", None), ("zero", 0)):
            rows = self.query(f"sum:10s-avg-{fill}:gaps", end=T + 70, arrays="")[0]["dps"]
            self.assertEqual(rows, [[T, 1.5]] + [[T + 10 * i, value] for i in range(1, 6)] + [[T + 60, 2.5], [T + 70, value]])

    def test_empty_is_a_list(self):
        for answer in (self.server.get("/api/query", {"start": T, "end": END, "m": "sum:old"}),
                       self.server.get("/api/query", {"start": T, "end": END, "m": "sum:cpu{host=nobody}"})):
            self.assertEqual((answer.status, answer.raw), (200, b"[]"))

    def test_tag_values_are_text(self):
        self.assertEqual(self.query("sum:cpu.user")[0]["tags"], {"core": "0", "host": "a"})
        self.assertEqual(self.query("sum:disk")[0]["tags"], {"host": "a", "mount": '/a"b\\c'})
        self.assertEqual(self.query("sum:cpu{host=nobody|a}")[0]["tags"], {"dc": "x", "host": "a"})

    def test_several_queries(self):
        got = self.server.get("/api/query", f"start={T}&end={END}&m=sum:gaps&m=max:cpu&show_query").json
        self.assertEqual([(e["metric"], e["query"]["index"], e["query"]["aggregator"]) for e in got], [("gaps", 0, "sum"), ("cpu", 1, "max")])

    def test_show_query(self):
        body = {"start": T, "end": END, "showQuery": True, "queries": [
            {"metric": "cpu", "aggregator": "sum"},
            {"metric": "cpu", "aggregator": "avg", "downsample": "20s-max-nan", "rate": True, "explicitTags": True,
             "rateOptions": {"counter": True, "counterMax": 100, "resetValue": 5},
             "filters": [{"type": "wildcard", "tagk": "host", "filter": "*", "groupBy": True},
                         {"type": "literal_or", "tagk": "dc", "filter": "x", "groupBy": False}]}]}
        got = self.post_query(body)
        plain = {"aggregator": "sum", "metric": "cpu", "tsuids": None, "downsample": None, "rate": False, "filters": [], "rateOptions": None,
                 "tags": {}, "explicitTags": False, "index": 0}
        self.assertEqual(got[0]["query"], plain)
        for element in got[1:]:
            query = element["query"]
            self.assertEqual(list(query), list(plain))
            self.assertEqual((query["downsample"], query["rate"], query["explicitTags"], query["index"]), ("20s-max-nan", True, True, 1))
            self.assertEqual(query["tags"], {"host": "wildcard(*)"})
            self.assertEqual(query["rateOptions"], {"counter": True, "counterMax": 100, "resetValue": 5, "dropResets": False})
            self.assertIn({"tagk": "host", "filter": "*", "group_by": True, "type": "wildcard"}, query["filters"])
            self.assertIn({"tagk": "dc", "filter": "x", "group_by": False, "type": "literal_or"}, query["filters"])

    def test_show_query_names_every_filter(self):
        for kind in self.server.get("/api/config/filters").json:
            m = f"sum:cpu{{host={kind}({'' if kind == 'not_key' else '*' if 'wildcard' in kind else 'a'})}}"
            for element in self.query(m, show_query=""):
                self.assertEqual([f["type"] for f in element["query"]["filters"]], [kind])

    def test_configuration(self):
        self.assertEqual(self.server.get("/api/config").json["tsd.core.auto_create_metrics"], "true")
        self.assertEqual(self.server.get("/api/config").json["tsd.mode"], "ro")

    def test_summary(self):
        got = self.query("sum:gaps", show_summary="")
        self.assertEqual(len(got), 2)
        self.assertEqual(list(got[1]), ["statsSummary"])
        self.assertEqual(got[1]["statsSummary"]["pointsEmitted"], 2)

    def test_tsuids(self):
        got = {e["tags"]["host"]: e["tsuids"] for e in self.query("sum:cpu{host=*}", show_tsuids="")}
        found = self.server.get("/api/search/lookup", {"m": "cpu"}).json["results"]
        self.assertEqual(got, {r["tags"]["host"]: [r["tsuid"]] for r in found})
        self.assertNotEqual(got["a"], got["b"])
        return {host: tsuids[0] for host, tsuids in got.items()}

    def test_queries_by_tsuid(self):
        tsuids = self.test_tsuids()
        for chosen, m in (("a", "sum:cpu{}{host=a}"), ("b", "sum:cpu{}{host=b}"), ("ab", "sum:cpu"), ("ba", "sum:cpu")):
            names = [tsuids[host] for host in chosen]
            expected = self.query(m)
            answer = self.server.get("/api/query", {"start": T, "end": END, "tsuid": f"sum:{','.join(names)}"})
            self.assertEqual((answer.status, answer.json), (200, expected))
            query = {"aggregator": "sum", "metric": "nobody", "tsuids": [name.upper() for name in names]}
            self.assertEqual(self.post_query({"start": T, "end": END, "queries": [query]}), expected)
        self.assertEqual(self.server.get("/api/query", {"start": T, "end": END, "tsuid": f"max:20s-sum:rate:{tsuids['a']}"}).json,
                         self.query("max:20s-sum:rate:cpu{}{host=a}"))
        both = self.server.get("/api/query", f"start={T}&end={END}&m=sum:gaps&tsuid=none:{tsuids['a']},{tsuids['b']}&show_query").json
        self.assertEqual([(e["metric"], e["tags"].get("host")) for e in both][1:], [("cpu", "a"), ("cpu", "b")])
        self.assertEqual(both[1]["query"]["tsuids"], [tsuids["a"], tsuids["b"]])
        self.assertEqual(self.server.get("/api/query", {"start": T, "tsuid": "sum:" + "0" * 32}).json, [])
        gaps = self.query("sum:gaps", show_tsuids="")[0]["tsuids"][0]
        self.assert_error(self.server.get("/api/query", {"start": T, "tsuid": f"sum:{gaps},{tsuids['a']}"}), 400, "did not share the same metric")
        self.assert_error(self.server.post("/sonde/v1/query", {"start": T, "queries": [{"aggregator": "sum", "tsuids": [gaps]}]}), 400, "/api/query")
        self.assert_error(self.server.post("/api/query", {"start": T, "queries": [{"aggregator": "sum", "tsuids": []}]}), 400, "Missing the metric or tsuids")
        self.assert_error(self.server.post("/api/query", {"start": T, "queries": [{"aggregator": "sum", "tsuids": [1]}]}), 400, "array of strings")

    def test_annotations(self):
        begins = {"startTime": T + 5, "endTime": 0, "description": "the run begins", "notes": "", "custom": {}}
        slow = {"startTime": T + 7, "endTime": 0, "description": "node b is slow", "notes": "", "custom": {"host": "b"}}

        def without_tsuid(annotations):
            return [{k: v for k, v in a.items() if k != "tsuid"} for a in annotations]
        a, b = self.query("sum:cpu{host=*}")
        self.assertEqual(without_tsuid(a["annotations"]), [begins])
        self.assertEqual(without_tsuid(b["annotations"]), [begins, slow])
        self.assertNotIn("globalAnnotations", a)
        # An aggregate of a query without a filter on host covers all hosts, even if only one host
        # has such series. So its annotations are those of all hosts.
        whole, single = self.query("sum:gaps"), self.query("none:gaps")
        self.assertEqual(whole[0]["tags"], single[0]["tags"])
        self.assertEqual(without_tsuid(whole[0]["annotations"]), [begins, slow])
        for m in ("none:gaps", "sum:gaps{host=*}", "sum:gaps{}{host=a}"):
            self.assertEqual(without_tsuid(self.query(m)[0]["annotations"]), [begins], m)
        body = {"start": T, "end": END, "globalAnnotations": True, "queries": [{"aggregator": "sum", "metric": "cpu"}]}
        self.assertEqual(self.post_query(body)[0]["globalAnnotations"], [begins, slow])
        # The range has no annotations.
        self.assertNotIn("annotations", self.query("sum:cpu", start=T + 8)[0])
        self.assertNotIn("annotations", self.query("sum:cpu", no_annotations="")[0])

    def test_jsonp(self):
        answer = self.server.get("/api/query", {"start": T, "end": END, "m": "sum:gaps", "jsonp": "draw", "no_annotations": ""})
        self.assertIn("javascript", answer.headers["Content-Type"])
        inner = re.fullmatch(rb"/\*\*/draw\((.*)\)", answer.raw)
        self.assertEqual(strict_json(inner[1])[0]["metric"], "gaps")
        self.assert_error(self.server.get("/api/version", {"jsonp": "alert(1);f"}), 400, "jsonp")

    def test_another_name(self):
        got = self.query("sum:cpu_load{host=a}", show_query="")
        self.assertEqual((got[0]["metric"], got[0]["query"]["metric"]), ("cpu_load", "cpu_load"))
        self.assertEqual(got[0]["dps"], self.query("sum:cpu{host=a}")[0]["dps"])
        found = self.server.get("/api/search/lookup", {"m": "cpu_load"}).json
        self.assertEqual((found["metric"], found["totalResults"]), ("cpu_load", 2))
        self.assert_error(self.server.get("/api/query", {"start": T, "m": "sum:cpu_lode"}), 400, "No such name for 'metrics': 'cpu_lode'")

    def test_versions_of_the_path(self):
        for path in ("/api/version", "/api/v1/version", "/api/version/"):
            self.assertEqual(self.server.get(path).json["version"], "2.4.0")
        self.assert_error(self.server.get("/api/v2/version"), 501, "version")
        self.assert_error(self.server.get("/api/v1"), 404, "Endpoint not found")
        self.assert_error(self.server.get("/api/v1/v1/version"), 404, "Endpoint not found")

    def test_unknown_paths_and_methods(self):
        for path in ("/api/nothing", "/api", "/sonde", "/api/query/x", "/../etc/passwd", "/%2e%2e/etc/passwd"):
            self.assert_error(self.server.get(path), 404, "Endpoint not found")
        for method, path, allow in (("DELETE", "/api/query", "GET, HEAD, POST"), ("PUT", "/api/suggest", "GET, HEAD, POST"),
                                    ("POST", "/sonde/v1/status", "GET, HEAD"), ("BREW", "/api/version", "GET, HEAD, POST")):
            answer = self.server.request(method, path)
            self.assert_error(answer, 405, "Method not allowed")
            self.assertEqual(answer.headers["Allow"], allow)

    def test_head(self):
        answer = self.server.request("HEAD", "/api/version")
        self.assertEqual((answer.status, answer.raw), (200, b""))
        self.assertGreater(int(answer.headers["Content-Length"]), 0)

    def test_delete_is_refused(self):
        body = {"start": T, "end": END, "delete": True, "queries": [{"metric": "cpu", "aggregator": "sum"}]}
        self.assert_error(self.server.post("/api/query", body), 400, "Deleting data is not enabled")

    # ---- compression

    def test_gzip(self):
        target = f"/api/query?start={T}&end={END}&m=sum:big"
        plain = self.server.get(target)
        self.assertIsNone(plain.headers["Content-Encoding"])
        for accept in ("gzip", "deflate, gzip;q=0.5"):
            packed = self.server.get(target, headers={"Accept-Encoding": accept})
            self.assertEqual(packed.headers["Content-Encoding"], "gzip")
            self.assertEqual(gzip.decompress(packed.raw), plain.raw)
        for accept in ("identity", "gzip;q=0", "br"):
            self.assertIsNone(self.server.get(target, headers={"Accept-Encoding": accept}).headers["Content-Encoding"])
        self.assertIsNone(self.server.get("/api/version", headers={"Accept-Encoding": "gzip"}).headers["Content-Encoding"])

    def test_compressed_request(self):
        body = json.dumps({"start": T, "end": END, "queries": [{"metric": "gaps", "aggregator": "sum"}]}).encode()
        for encoding, packed in (("gzip", gzip.compress(body)), ("deflate", zlib.compress(body))):
            answer = self.server.post("/api/query", packed, {"Content-Encoding": encoding})
            self.assertEqual(answer.json[0]["metric"], "gaps")
        self.assert_error(self.server.post("/api/query", body, {"Content-Encoding": "gzip"}), 400, "inflated")
        self.assert_error(self.server.post("/api/query", body, {"Content-Encoding": "br"}), 415, "br")
        bomb = gzip.compress(bytes(64 << 20))
        self.assertLess(len(bomb), 1 << 20)
        self.assert_error(self.server.post("/api/query", bomb, {"Content-Encoding": "gzip"}), 413, "body_bytes")

    # ---- Grafana's three clients

    def test_client_a(self):
        body = {"start": T * 1000, "queries": [
            {"metric": "cpu", "aggregator": "sum", "rate": True,
             "rateOptions": {"counter": True, "counterMax": 100, "resetValue": 5, "dropResets": False}, "downsample": "20s-avg-nan",
             "filters": [{"type": "literal_or", "tagk": "host", "filter": "a|b", "groupBy": True}], "explicitTags": False}],
            "msResolution": False, "globalAnnotations": True, "showQuery": True, "end": T * 1000 + 600001}
        got = self.post_query(body)
        self.assertEqual([e["tags"]["host"] for e in got], ["a", "b"])
        for element in got:
            self.assertEqual(element["query"]["index"], 0)  # the client needs it in every element
            self.assertTrue(all(len(t) == 10 for t in element["dps"]))
        # A request in ms, with the older form of tags, and without an end.
        body = {"start": T * 1000, "queries": [{"metric": "cpu", "aggregator": "sum", "tags": []}], "msResolution": True, "globalAnnotations": True}
        got = self.post_query(body)
        self.assertEqual(got[0]["dps"][str(T * 1000 + 10000)], 102)
        # The client's query for annotations, and its test of the data source.
        body = {"start": T * 1000, "queries": [{"aggregator": "sum", "metric": "cpu"}], "msResolution": False, "globalAnnotations": True, "end": END * 1000}
        self.assertEqual([a["description"] for a in self.post_query(body)[0]["globalAnnotations"]], ["the run begins", "node b is slow"])
        answer = self.server.get("/api/suggest", "type=metrics&q=cpu&max=1000")
        self.assertEqual((answer.status, answer.json), (200, ["cpu", "cpu.user"]))

    def test_client_b(self):
        query = {"metric": "cpu", "aggregator": "avg", "tags": {"host": "*"}}
        expected = self.post_query({"start": T, "end": END, "queries": [query]})
        self.assertEqual(len(expected), 2)
        for start, end in ((T * 1000, END * 1000), (str(T), str(END)), (str(T * 1000), str(END * 1000))):
            self.assertEqual(self.post_query({"start": start, "end": end, "queries": [query]}), expected)
        # OpenTSDB answers a repeated query of a request once.
        self.assertEqual(self.post_query({"start": T, "end": END, "queries": [query, query]}), expected)
        other = {**query, "aggregator": "max"}
        self.assertEqual(len(self.post_query({"start": T, "end": END, "queries": [query, other, query]})), 4)
        self.assertEqual(self.post_query({"start": T, "end": "", "queries": [query]}), expected)

    def test_client_c(self):
        body = {"start": T, "end": END, "queries": [
            {"aggregator": "sum", "downsample": "20s-avg", "explicitTags": True, "filters": [], "metric": "cpu", "rate": True,
             "rateOptions": {"counter": False, "dropResets": True}, "tags": {"host": "*", "dc": "x"}}]}
        got = self.post_query(body, "?arrays=true")
        self.assertEqual([e["tags"]["host"] for e in got], ["a", "b"])
        for element in got:
            self.assertTrue(element["dps"])
            for row in element["dps"]:
                self.assertEqual(len(row), 2)
                self.assertIsInstance(row[0], int)
                self.assertAlmostEqual(row[1], 0.1)
        # The client's greatest counterMax, a fraction, and 0.
        for most in (1.8446744073709552e19, 100.5, 0):
            body["queries"][0]["rateOptions"] = {"counter": True, "counterMax": most, "resetValue": 0}
            self.assertEqual(len(self.post_query(body)), 2)
        # Annotations come from a plain query; the health check expects exactly 200.
        body = {"start": T, "end": END, "queries": [{"aggregator": "sum", "metric": "cpu"}]}
        self.assertEqual([a["startTime"] for a in self.post_query(body)[0]["annotations"]], [T + 5, T + 7])
        self.assertEqual(self.server.get("/api/suggest", "q=cpu&type=metrics").status, 200)

    # ---- metadata

    def test_suggest(self):
        rows = [
            ("type=metrics&q=cpu", ["cpu", "cpu.user"]),
            ("type=metrics&q=cpu&max=1", ["cpu"]),
            ("type=metrics&q=pu", []),
            ("q=cpu", ["cpu", "cpu.user"]),
            ("type=metrics", ["big", "cpu", "cpu.user", "disk", "gaps", "odd", "old"]),
            ("type=tagk&q=", ["core", "dc", "host", "mount"]),
            ("type=tagv&q=a", ["a"]),
        ]
        for parameters, expected in rows:
            with self.subTest(parameters):
                self.assertEqual(self.server.get("/api/suggest", parameters).json, expected)
        self.assertEqual(self.server.post("/api/suggest", {"type": "metrics", "q": "cpu", "max": 1}).json, ["cpu"])
        for parameters, message in (("type=nope", "nope"), ("type=metrics&max=foo", "foo"), ("type=metrics&max=-1", "-1")):
            self.assert_error(self.server.get("/api/suggest", parameters), 400, message)

    def lookup(self, m, **parameters):
        answer = self.server.get("/api/search/lookup", {"m": m, **parameters})
        self.assertEqual(answer.status, 200, answer.raw)
        return answer.json

    def test_lookup(self):
        got = self.lookup("cpu", limit=1000)
        self.assertEqual(list(got), ["type", "metric", "tags", "limit", "time", "results", "startIndex", "totalResults"])
        self.assertEqual((got["type"], got["metric"], got["tags"], got["limit"], got["startIndex"], got["totalResults"]), ("LOOKUP", "cpu", [], 1000, 0, 2))
        self.assertEqual([(r["metric"], r["tags"]) for r in got["results"]], [("cpu", {"dc": "x", "host": "a"}), ("cpu", {"dc": "x", "host": "b"})])
        self.assertEqual(self.lookup("cpu{host=*}")["tags"], [{"key": "host", "value": "*"}])

        def hosts(m, **parameters):
            return [r["tags"]["host"] for r in self.lookup(m, **parameters)["results"]]
        rows = [
            ("cpu{host=*}", ["a", "b"]), ("cpu{host=a}", ["a"]), ("cpu{host=a,host=b}", ["a", "b"]), ("cpu{host=*,host=a}", ["a", "b"]),
            ("cpu{host=a,host=*}", ["a", "b"]), ("cpu{host=*,dc=x}", ["a", "b"]), ("cpu{core=*}", []), ("gaps{host=b}", []),
            ("{core=0}", ["a"]), ("*{core=0}", ["a"]), ("cpu{host=}", ["a", "b"]), ("cpu{=b}", ["b"]), ("{=0}", ["a"]), ("cpu{host=,=b}", ["b"]),
        ]
        for m, expected in rows:
            with self.subTest(m):
                self.assertEqual(hosts(m), expected)
        self.assertEqual(len(hosts("cpu", limit=1)), 1)
        self.assertEqual(len(hosts("cpu", limit=0)), 2)
        body = {"metric": "cpu", "tags": [{"key": "host", "value": "b"}], "limit": 10}
        self.assertEqual(self.server.post("/api/search/lookup", body).json["results"][0]["tags"], {"dc": "x", "host": "b"})
        for tags, expected in (([{"key": "host", "value": None}], ["a", "b"]), ([{"key": "host"}], ["a", "b"]), ([{"key": None, "value": "b"}], ["b"])):
            got = self.server.post("/api/search/lookup", {"metric": "cpu", "tags": tags}).json
            self.assertEqual([r["tags"]["host"] for r in got["results"]], expected)
            self.assertEqual(got["tags"], [{"key": tags[0]["key"], "value": tags[0].get("value")}])
        self.assertEqual(len(self.server.post("/api/search/lookup", {"metric": None, "tags": [{"key": "core", "value": "0"}]}).json["results"]), 1)
        for m, message in (("nope", "'nope'"), ("cpu{nokey=*}", "'nokey'"), ("cpu{host=nobody}", "'nobody'")):
            self.assert_error(self.server.get("/api/search/lookup", {"m": m}), 404, message)
        for target in ("/api/search/lookup", "/api/search/lookup?m=cpu{", "/api/search/lookup?m=cpu{host}", "/api/search/lookup?m=cpu{=}", "/api/search/lookup?m=cpu&limit=x"):
            self.assert_error(self.server.get(target), 400, "")

    def test_aggregators_and_filters(self):
        names = self.server.get("/api/aggregators").json
        for name in ("none sum min max avg median mult dev diff count first last squareSum zimsum mimmin mimmax pfsum p25 p50 p75 p90 p95 p99 p999 "
                     "ep50r3 ep999r7").split():
            self.assertIn(name, names)
            self.query(f"{name}:gaps")  # each listed aggregator works
        filters = self.server.get("/api/config/filters").json
        self.assertEqual(set(filters), {"literal_or", "iliteral_or", "not_literal_or", "not_iliteral_or", "wildcard", "iwildcard", "regexp", "not_key", "equal_or_absent"})
        for entry in filters.values():
            self.assertEqual(list(entry), ["examples", "description"])

    # ---- sonde's own routes

    def test_status(self):
        got = self.server.get("/sonde/v1/status").json
        self.assertEqual((got["job"], got["level"], got["files_unreadable"], got["files_left_out"]), ("job7", 2, 0, 0))
        self.assertRegex(got["version"], r"^\d+\.\d+\.\d+")
        self.assertGreaterEqual(got["uptime_seconds"], 0)
        self.assertGreater(got["memory_bytes"], 0)
        self.assertEqual(got["limits"], {"connections": 256, "connections_per_client": 128, "query_deadline_seconds": 30, "node_deadline_seconds": 2, "query_memory_bytes": 256 << 20, "total_memory_bytes": 1 << 30})
        workers = got["workers"]
        self.assertGreaterEqual(workers["threads"], 1)
        self.assertEqual((workers["running"], workers["refused_slow"], workers["refused_memory"]), (1, 0, 0))
        self.assertGreater(self.server.get("/sonde/v1/status").json["workers"]["answered"], workers["answered"])
        file, = got["files"]
        self.assertEqual((file["state"], file["host"], file["job"], file["series"], file["metrics"]), (self.state, "node1", "test", 8, 7))
        self.assertEqual(file["points"], 2 * 60 + 2 + 5 + 20000 + 3)
        self.assertEqual((file["first_ns"], file["last_ns"]), (1000 * 10 ** 9, (T + 19999) * 10 ** 9))
        self.assertEqual(file["damage"], {"blocks": 0, "bytes": 0, "first": ""})
        self.assertEqual((got["series"], got["points"], got["first_ns"], got["last_ns"]), (8, file["points"], file["first_ns"], file["last_ns"]))

    def test_the_documentation_lists_the_routes(self):
        paths = list(json.loads(self.server.get("/sonde/v1/openapi.json").raw)["paths"])
        self.assertIn("/api/query", paths)
        for path in paths:
            self.assertNotEqual(self.server.get(path).status, 404)
        with open(os.path.join(os.path.dirname(__file__), "../../docs/http.md")) as f:
            documented = re.findall(r"^\| `(/[^`]*)` \| [A-Z]", f.read(), re.M)
        self.assertEqual(sorted(paths), sorted(documented))


class Recorded(Answers, Case):
    @classmethod
    def write(cls, folder):
        cls.fill(folder).close()


class Live(Answers, Case):
    state = "live"

    @classmethod
    def write(cls, folder):
        writer = cls.fill(folder)
        cls.addClassCleanup(writer.close)
        writer.sync()


class Dragon(Case):
    """The unchanged dashboards of the Dragon Telemetry Service get a series per host, whatever
    their groupBy says."""
    arguments = ("dragon=1",)
    query_body = {"start": T, "end": END, "queries": [
        {"aggregator": "sum", "downsampleAggregator": "avg", "downsampleFillPolicy": "none",
         "filters": [{"filter": "*", "groupBy": False, "tagk": "host", "type": "wildcard"}], "metric": "load_average"}]}

    @classmethod
    def write(cls, folder):
        writer = Writer(f"{folder}/node1.sonde")
        for host in ("a", "b"):
            writer.points("load_average", {"host": host}, [(T, 1)])
        writer.close()

    def test_wildcards_group(self):
        self.assertEqual([e["tags"] for e in self.server.post("/api/query", self.query_body).json], [{"host": "a"}, {"host": "b"}])
        self.assertEqual([e["tags"] for e in self.query("sum:load_average{}{host=*}")], [{"host": "a"}, {"host": "b"}])

    def test_each_host_whatever_the_filter(self):
        """Panels use literal_or(*) or no filter; both select each host."""
        for kind in ("iliteral_or", "literal_or", "iwildcard", None):
            query = {"aggregator": "sum", "metric": "load_average"}
            if kind:
                query["filters"] = [{"filter": "*", "groupBy": False, "tagk": "host", "type": kind}]
            got = self.server.post("/api/query", {"start": T, "end": END, "queries": [query]}).json
            self.assertEqual([e["tags"] for e in got], [{"host": "a"}, {"host": "b"}], kind)
        self.assertEqual([e["tags"] for e in self.query("sum:load_average")], [{"host": "a"}, {"host": "b"}])

    def test_no_name_is_a_mistake(self):
        self.assertEqual(self.query("sum:nobody_knows"), [])

    def test_suggest_finds_in_the_middle(self):
        self.assertEqual(self.server.get("/api/suggest", "type=metrics&q=average").json, ["load_average"])

    def test_not_unless_asked(self):
        other = Server(self.folder)
        self.addCleanup(other.stop)
        self.assertEqual([e["tags"] for e in other.post("/api/query", self.query_body).json], [{}])
        self.assertEqual(other.get("/api/suggest", "type=metrics&q=average").json, [])


class Tsuids(Case):
    @classmethod
    def write(cls, folder):
        writer = Writer(f"{folder}/one.sonde")
        for host in "abc":
            for gpu in "01":
                writer.points("power", {"host": host, "gpu": gpu}, [(T, 10 * "abc".index(host) + int(gpu))])
        writer.points("power", {"host": "a|b", "gpu": "0"}, [(T, 100)])
        writer.points("power", {"host": "a"}, [(T, 1000)])
        writer.close()

    def test_several_have_to_be_all_combinations(self):
        tsuids = {(e["tags"]["host"], e["tags"].get("gpu")): e["tsuids"][0] for e in self.query("none:power", show_tsuids="")}
        for chosen, expected in (("a0", 0), ("a0 a1", 1), ("a0 b0 c0", 30), ("a0 a1 c0 c1", 42), ("a0 b1", None), ("a0 a1 b0", None)):
            with self.subTest(chosen):
                names = ",".join(tsuids[word[0], word[1]] for word in chosen.split())
                answer = self.server.get("/api/query", {"start": T, "end": T + 1, "tsuid": f"sum:{names}"})
                if expected is None:
                    self.assert_error(answer, 400, "ask for them one by one")
                else:
                    self.assertEqual([e["dps"] for e in answer.json], [{str(T): expected}])
        for one, expected in ((("a", None), 1000), (("a|b", "0"), 100)):
            answer = self.server.get("/api/query", {"start": T, "end": T + 1, "tsuid": f"sum:{tsuids[one]}"})
            self.assertEqual([e["dps"] for e in answer.json], [{str(T): expected}])
        several = f"sum:{tsuids['a', '0']},{tsuids['a|b', '0']}"
        self.assert_error(self.server.get("/api/query", {"start": T, "end": T + 1, "tsuid": several}), 400, "one by one")


if __name__ == "__main__":
    unittest.main()
