"""Tests sonde's own HTTP interface: lists, points by column, events, streams of new points, and the
OpenAPI document."""
import http.client
import json
import struct
import tempfile
import time
import unittest

try:
    import pyarrow
    import pyarrow.ipc
except ImportError:
    pyarrow = None

from harness import END, NS, PATIENCE_S, T, TOKEN, Case, Job, Server, Writer, until


class Native(Case):
    arguments = ("alias=other:cpu",)

    @classmethod
    def write(cls, folder):
        for host in ("a", "b"):
            writer = Writer(f"{folder}/{host}.sonde")
            writer.metric("cpu", "gauge", "percent", "Busy.")
            writer.metric("steps", "counter", "-", "")
            writer.points("cpu", {"host": host}, [(T, 1), (T + 0.25, float("nan")), (T + 1, 3)])
            writer.points("steps", {"host": host, "rank": "0"}, [(T, 7)])
            writer.span(1, 0, T, T + 100, {"job": "x"}, "epoch")
            writer.span(2, 1, T + 10, None, {"job": "x", "rank": "1"}, "step")
            writer.annotation(T + 5, {"rank": "1"}, f"of {host}")
            writer.close()

    def ask(self, path, **parameters):
        answer = self.server.get("/sonde/v1/" + path, parameters)
        self.assertEqual(answer.status, 200, answer.raw)
        return answer.json

    def test_nodes(self):
        node = {"host": "node1", "job": "test", "state": "closed", "series": 2, "first_ns": T * NS, "last_ns": (T + 1) * NS}
        self.assertEqual(self.ask("nodes"), {"nodes": [node, node]})

    def test_status(self):
        counted = self.ask("status")
        self.assertEqual([counted["points"]] + [f["points"] for f in counted["files"]], [8, 4, 4])
        rest = self.ask("status", points="false")
        self.assertEqual(["points" in part for part in (rest, *rest["files"])], [False] * 3)
        for part, whole in zip((rest, *rest["files"]), (counted, *counted["files"])):
            self.assertEqual([(key, part[key]) for key in ("series", "first_ns", "last_ns", "damage")], [(key, whole[key]) for key in ("series", "first_ns", "last_ns", "damage")])

    def test_metrics(self):
        cpu = {"name": "cpu", "kind": "gauge", "unit": "percent", "help": "Busy.", "level": 1}
        steps = {"name": "steps", "kind": "counter", "unit": "", "help": "", "level": 1}
        self.assertEqual(self.ask("metrics"), {"metrics": [cpu, steps]})
        self.assertEqual(self.ask("metrics", q="pu"), {"metrics": [cpu]})

    def test_series(self):
        got = self.ask("series")
        self.assertEqual(got["total"], 4)
        self.assertEqual([(s["metric"], s["tags"]) for s in got["series"]],
                         [("cpu", {"host": "a"}), ("cpu", {"host": "b"}), ("steps", {"host": "a", "rank": "0"}), ("steps", {"host": "b", "rank": "0"})])
        self.assertNotIn("value", got["series"][0])
        for match in ("cpu{host=b}", "*{host=b}", "other{host=b}"):
            latest = self.ask("series", match=match, latest="", limit=1)["series"]
            self.assertEqual([(s["metric"], s["t_ns"], s["value"]) for s in latest], [("cpu", (T + 1) * NS, 3)])
        self.assertEqual(self.ask("series", match="nothing"), {"total": 0, "series": []})
        self.assert_error(self.server.get("/sonde/v1/series", "match={host=a}"), 400, "metric is missing")
        self.assert_error(self.server.get("/sonde/v1/series", "limit=x"), 400, "limit")

    def test_query(self):
        body = {"start": T, "end": END, "queries": [{"metric": "cpu", "aggregator": "none", "filters": [
            {"type": "literal_or", "tagk": "host", "filter": "a", "groupBy": True}]}, {"metric": "steps", "aggregator": "sum"}]}
        got = self.server.post("/sonde/v1/query", body).json
        self.assertEqual(got["series"][0], {"query": 0, "metric": "cpu", "kind": "gauge", "unit": "percent", "tags": {"host": "a"}, "aggregate_tags": [],
                                            "source_series": 1, "t_ns": [T * NS, T * NS + NS // 4, (T + 1) * NS], "values": [1, None, 3]})
        self.assertEqual((got["series"][1]["query"], got["series"][1]["values"], got["series"][1]["aggregate_tags"]), (1, [14], ["host"]))
        self.assertEqual(got["points"], 4)
        for body, words in (("", "Missing"), ("{", "JSON"), ({"start": T, "queries": [{"metric": "no", "aggregator": "sum"}]}, "No such name"),
                            ({"start": T, "delete": True, "queries": [{"metric": "cpu", "aggregator": "sum"}]}, "Deleting")):
            self.assert_error(self.server.post("/sonde/v1/query", body), 400, words)

    def test_spans(self):
        got = self.ask("spans")["spans"]
        self.assertEqual(len(got), 4)
        self.assertEqual(got[0], {"name": "epoch", "start_ns": T * NS, "end_ns": (T + 100) * NS, "id": 1, "parent": 0, "node": "node1", "tags": {"job": "x"}})
        self.assertNotIn("end_ns", got[1])
        self.assertEqual([s["id"] for s in self.ask("spans", name="step")["spans"]], [2, 2])
        self.assertEqual([s["id"] for s in self.ask("spans", tag="rank=*", limit=1)["spans"]], [2])
        self.assertEqual(self.ask("spans", start=T + 200, name="epoch"), {"spans": []})
        self.assertEqual([s["id"] for s in self.ask("spans", end=T + 1)["spans"]], [1, 1])
        for parameters in ("start=then", f"start={T}&end={T - 1}", "tag=x", "limit=-1"):
            self.assert_error(self.server.get("/sonde/v1/spans", parameters), 400, "")

    def test_annotations(self):
        got = self.ask("annotations")["annotations"]
        self.assertEqual(got[0], {"text": "of a", "t_ns": (T + 5) * NS, "node": "node1", "tags": {"rank": "1"}})
        self.assertEqual(self.ask("annotations", tag="rank=2"), {"annotations": []})
        self.assertEqual(self.ask("annotations", start=T + 6), {"annotations": []})


class Document(Case):
    """The OpenAPI document lists exactly the existing routes."""

    def test_against_the_server(self):
        document = self.server.get("/sonde/v1/openapi.json").json
        self.assertEqual(document["openapi"], "3.1.0")
        for path, operations in document["paths"].items():
            for method in ("get", "post", "put", "delete"):
                if path == "/sonde/v1/stream" and method == "get":
                    continue  # the answer would never end
                answer = self.server.request(method.upper(), path, "" if method != "get" else None)
                with self.subTest(f"{method} {path}"):
                    self.assertEqual(answer.status != 405, method in operations)
                    self.assertNotEqual(answer.status, 404)
            for operation in operations.values():
                needs = operation.get("security") != []
                self.assertEqual(self.server.request("GET", path, token=False).status == 401, needs)
                self.assertTrue(operation["summary"] and operation["responses"])
                for parameter in operation.get("parameters", []):
                    self.assertEqual((parameter["in"], parameter["schema"]), ("query", {"type": "string"}))

    def test_needed_parameters_are_needed(self):
        for path, operations in self.server.get("/sonde/v1/openapi.json").json["paths"].items():
            if any(p["required"] for p in operations.get("get", {}).get("parameters", [])):
                self.assertEqual(self.server.get(path).status, 400, path)


@unittest.skipIf(pyarrow is None, "pyarrow is not installed")
class Arrow(Case):
    """Answers of /sonde/v1/query as Arrow tables, read with Arrow's own library."""
    arguments = ("query_memory_bytes=16000000",)

    @classmethod
    def write(cls, folder):
        w = Writer(f"{folder}/a.sonde")
        w.points("cpu", {"host": "a", "time": "x"}, [(T + i, i / 3) for i in range(5)])
        w.points("cpu", {"host": "b", "gpu": "0"}, [(T + i, i) for i in range(3)])
        w.points("cpu", {"host": "c"}, [(T + 50, float("nan")), (T + 60.5, 1e300)])
        w.points("mem", {"host": "bcd\u00e4"}, [(T, 1), (T + 4, -1)])
        w.points("long", {"host": "a"}, [(T + i, i * i) for i in range(70000)])
        w.points("long", {"host": "b"}, [(T + i, i * i) for i in range(70000)])
        w.close()

    def ask(self, queries, target="/sonde/v1/query?format=arrow", headers=None, **more):
        return self.server.post(target, {"start": T, "end": END, "queries": queries, **more}, headers)

    def table(self, *arguments, **more):
        answer = self.ask(*arguments, **more)
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (200, "application/vnd.apache.arrow.stream"), answer.raw[:500])
        table = pyarrow.ipc.open_stream(answer.raw).read_all()
        table.validate(full=True)
        return table

    def test_same_as_json(self):
        queries = [{"metric": "cpu", "aggregator": "none"}, {"metric": "mem", "aggregator": "sum", "downsample": "1s-sum-nan"}, {"metric": "long", "aggregator": "sum"}]
        wanted = []
        for s in self.ask(queries, "/sonde/v1/query").json["series"]:
            wanted += [(t, v, s["query"], s["metric"], *(s["tags"].get(key) for key in ("gpu", "host", "time"))) for t, v in zip(s["t_ns"], s["values"])]
        for more in ({}, {"target": "/sonde/v1/query", "headers": {"Accept": "application/vnd.apache.arrow.stream"}}):
            table = self.table(queries, **more)
            self.assertEqual(table.schema.names, ["time", "value", "query", "metric", "gpu", "host", "tag.time"])
            self.assertEqual([str(f.type) for f in table.schema][:5], ["timestamp[ns, tz=UTC]", "double", "int32", *["dictionary<values=string, indices=int32, ordered=0>"] * 2])
            got = zip(table["time"].cast("int64").to_pylist(), *(table[name].to_pylist() for name in table.schema.names[1:]))
            got = [(t, None if v != v else v, *rest) for t, v, *rest in got]
            # assertEqual() would search for hours for the shortest description of so many
            # differences.
            wrong = [i for i, (g, w) in enumerate(zip(got, wanted)) if g != w]
            if wrong or len(got) != len(wanted):
                self.fail(f"{len(got)} rows, wanted {len(wanted)}; {len(wrong)} differ" + (f", the first in row {wrong[0]}: {got[wrong[0]]}, wanted {wanted[wrong[0]]}" if wrong else ""))
            self.assertEqual([table[name].null_count for name in ("time", "value", "query", "metric")], [0] * 4)

    def test_nothing(self):
        table = self.table([{"metric": "cpu", "aggregator": "sum"}], start=T - 20, end=T - 10)
        self.assertEqual((table.num_rows, table.schema.names), (0, ["time", "value", "query", "metric"]))

    def test_errors(self):
        self.assert_error(self.ask([{"metric": "nobody", "aggregator": "sum"}]), 400, "No such name for 'metrics': 'nobody'")
        self.assert_error(self.ask([{"metric": "long", "aggregator": "none"}] * 40), 413, "query_memory_bytes")
        self.assert_error(self.ask([{"metric": "cpu", "aggregator": "none"}], "/sonde/v1/query?format=xml"), 400, "json, arrow or binary")
        self.assert_error(self.server.post("/sonde/v1/query?format=arrow", ""), 400, "Missing request content")


class Binary(Case):
    """Answers of /sonde/v1/query?format=binary, read as docs/http.md describes them."""

    @classmethod
    def write(cls, folder):
        w = Writer(f"{folder}/a.sonde")
        w.metric("steps", "counter", "steps", "")
        w.points("cpu", {"host": "a", "x": "\u00e4"}, [(T + i, i / 3) for i in range(5)])
        w.points("cpu", {"host": "b"}, [(T, float("nan")), (T + 60.5, 1e300)])
        w.points("steps", {"host": "a"}, [(T + i, i) for i in range(3000)])
        # c, d and e have one point at another time than a and b; e ends earlier.
        for host, late, count in (("a", 0, 100), ("b", 0, 100), ("c", 1, 100), ("d", 1, 100), ("e", 1, 99)):
            w.points("together", {"host": host}, [(T + i + late * (i == 50) / 4, i) for i in range(count)])
        w.close()

    def read(self, raw):
        at = 0

        def take(size):
            nonlocal at
            at += size
            self.assertLessEqual(at, len(raw))
            return raw[at - size:at]

        def number():
            value, shift = 0, 0
            while True:
                byte = take(1)[0]
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    return value

        def word():
            return int.from_bytes(take(8), "little")

        def text():
            return take(number()).decode()
        self.assertEqual(take(8), b"sonde c2")
        found, points, self.shared = [], 0, []
        while size := word():
            end = at + size
            s = {"query": number(), "metric": text()}
            kind, unit = take(1)[0], text()
            if kind:
                s |= {"kind": ["gauge", "counter"][kind - 1], "unit": unit}
            s["tags"] = {text(): text() for _ in range(number())}
            s["aggregate_tags"] = [text() for _ in range(number())]
            s["source_series"] = number()
            if take(1)[0]:
                s["estimated"] = True
            self.assertEqual(at, end)
            self.assertEqual(take(-at % 8).strip(b"\0"), b"")
            count = word()
            self.shared.append(bool(count >> 63))
            count &= (1 << 63) - 1
            s["t_ns"] = found[-1]["t_ns"] if self.shared[-1] else list(struct.unpack(f"<{count}q", take(8 * count)))
            self.assertEqual(len(s["t_ns"]), count)
            s["values"] = [None if v != v else v for v in struct.unpack(f"<{count}d", take(8 * count))]
            found.append(s)
            points += count
        self.assertEqual((word(), word()), (len(found), points))
        read = word()
        self.assertEqual(at, len(raw))
        return {"series": found, "points": points, "points_read": read}

    def test_same_as_json(self):
        for queries in ([{"metric": "cpu", "aggregator": "none"}, {"m": "avg:10s-avg:steps{host=*}"}, {"metric": "cpu", "aggregator": "sum", "downsample": "1s-sum-nan"}],
                        [{"m": "none:together"}, {"m": "none:together{host=e}"}], [{"m": "sum:cpu{host=nobody}"}]):
            body = {"start": T, "end": END, "queries": queries}
            answer = self.server.post("/sonde/v1/query?format=binary", body)
            self.assertEqual((answer.status, answer.headers["Content-Type"]), (200, "application/vnd.sonde.columns"))
            self.assertEqual(self.read(answer.raw), self.server.post("/sonde/v1/query", body).json)

    def test_times_of_series_sampled_together_come_once(self):
        answer = self.server.post("/sonde/v1/query?format=binary", {"start": T, "end": END, "queries": [{"m": "none:together"}, {"m": "none:together{host=e}"}]})
        self.read(answer.raw)
        self.assertEqual(self.shared, [False, True, False, True, False, False])

    def test_errors(self):
        for body, words in (("", "Missing"), ({"start": T, "queries": [{"m": "none:nobody"}]}, "No such name"), ({"start": T, "queries": [{"m": "x"}]}, "Invalid m"),
                            ({"start": T, "queries": [{"m": 3}]}, "'m' must be")):
            self.assert_error(self.server.post("/sonde/v1/query?format=binary", body), 400, words)


class PerSpan(Case):
    """Queries for one value per span, as described in docs/query.md."""

    @classmethod
    def write(cls, folder):
        for k, host in enumerate("ab"):
            w = Writer(f"{folder}/{host}.sonde")
            w.points("memory", {"host": host}, [(T + i, 100 * k + i) for i in range(100)])
            for rank in range(2):
                w.points("loss", {"host": host, "rank": str(2 * k + rank)}, [(T + i, 1000 * (2 * k + rank) + i) for i in range(100)])
                w.span(10 + rank, 0, T + 10, T + 20, {"host": host, "rank": str(2 * k + rank)}, "epoch")
                w.span(20 + rank, 0, T + 20, T + 30 + rank, {"host": host, "rank": str(2 * k + rank)}, "epoch")
            if host == "a":
                w.span(1, 0, T, T + 50, {"host": "a", "phase": "train"}, "job")
                w.span(2, 0, T + 50, None, {"host": "a", "phase": "test"}, "job")
                w.span(3, 0, T + 60, T + 60, {"host": "a", "phase": "none"}, "job")
                w.span(4, 0, T - 5, T + 3, {"host": "a", "phase": "before"}, "job")
                for i in range(10001):
                    w.span(100 + i, 0, T + i, T + i + 1, {}, "many")
            w.close()

    def ask(self, query, start=T, end=T + 98, path="/sonde/v1/query"):
        answer = self.server.post(path, {"start": start, "end": end, "queries": [query]})
        self.assertEqual(answer.status, 200, answer.raw)
        return answer.json

    def values(self, query, **more):
        return [(s["tags"], list(zip([t // NS - T for t in s["t_ns"]], s["values"]))) for s in self.ask(query, **more)["series"]]

    def test_of_all_nodes(self):
        """A span of the driver covers every node. An open span extends to the end of the range,
        which is inclusive. A span without points has no value."""
        got = self.values({"metric": "memory", "aggregator": "none", "downsample": "0all-max", "spans": {"name": "job"}})
        self.assertEqual(got, [({"host": "a", "phase": "train"}, [(0, 49)]), ({"host": "b", "phase": "train"}, [(0, 149)]),
                               ({"host": "a", "phase": "test"}, [(50, 98)]), ({"host": "b", "phase": "test"}, [(50, 198)])])
        [series] = self.ask({"m": "sum:0all-max:memory", "spans": {"name": "job", "tags": {"phase": "train"}}})["series"]
        self.assertEqual((series["tags"], series["aggregate_tags"], series["values"], series["source_series"]), ({"phase": "train"}, ["host"], [198], 2))

    def test_tags_that_both_have_are_equal(self):
        got = self.values({"metric": "loss", "aggregator": "none", "downsample": "0all-avg", "spans": {"name": "epoch"}})
        self.assertEqual(got, [({"host": "ab"[r // 2], "rank": str(r)}, [(10, 1000 * r + 14.5), (20, 1000 * r + 24.5 + r % 2 / 2)]) for r in range(4)])

    def test_of_the_spans_node(self):
        spans = {"name": "epoch", "tags": {"rank": "*", "host": "b"}}
        got = self.values({"metric": "memory", "aggregator": "none", "downsample": "0all-diff", "spans": spans | {"node": True}})
        self.assertEqual(got, [({"host": "b", "rank": "2"}, [(10, 9), (20, 9)]), ({"host": "b", "rank": "3"}, [(10, 9), (20, 10)])])
        got = self.values({"metric": "memory", "aggregator": "none", "downsample": "0all-count", "spans": spans})
        self.assertEqual([tags for tags, _ in got], [{"host": h, "rank": r} for h in "ab" for r in "23"])

    def test_the_start_says_which(self):
        self.assertEqual(self.values({"metric": "memory", "aggregator": "sum", "downsample": "0all-first", "spans": {"name": "job"}}, start=T + 1, end=T + 49), [])
        got = self.values({"metric": "memory", "aggregator": "sum", "downsample": "0all-max", "spans": {"name": "job", "tags": {"phase": "*"}}}, start=T - 9, end=T + 20)
        self.assertEqual(got, [({"phase": "before"}, [(-5, 104)]), ({"phase": "train"}, [(0, 140)])])

    def test_limit(self):
        many = {"metric": "memory", "aggregator": "sum", "downsample": "0all-max", "spans": {"name": "many"}}
        answer = self.server.post("/sonde/v1/query", {"start": T, "end": T + 20000, "queries": [many]})
        self.assert_error(answer, 413, "limit spans")
        self.assertEqual(len(self.ask(many, start=T + 1, end=T + 10000)["series"][0]["t_ns"]), 99)

    def test_over_opentsdb(self):
        [series] = self.ask({"metric": "memory", "aggregator": "sum", "downsample": "0all-max", "spans": {"name": "job", "tags": {"phase": "train"}}}, path="/api/query")
        self.assertEqual((series["dps"], series["tags"]), ({str(T): 198}, {"phase": "train"}))

    def test_nothing(self):
        self.assertEqual(self.values({"metric": "memory", "aggregator": "sum", "downsample": "0all-max", "spans": {"name": "nobody"}}), [])

    def test_errors(self):
        good = {"metric": "memory", "aggregator": "sum", "downsample": "0all-max", "spans": {"name": "job"}}
        for change, words in (({"downsample": "1s-max"}, "0all-FUNCTION"), ({"downsample": None}, "0all-FUNCTION"), ({"rate": True}, "no rate"), ({"spans": "job"}, "'spans' must be"),
                              ({"spans": {}}, "needs the name"), ({"spans": {"name": "job", "tags": {"k": 1}}}, "must be strings"), ({"metric": "no"}, "No such name")):
            answer = self.server.post("/sonde/v1/query", {"start": T, "queries": [good | change]})
            self.assert_error(answer, 400, words)


class Events:
    """A client of /sonde/v1/stream."""

    def __init__(self, server, target):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
        self.connection.request("GET", "/sonde/v1/stream?" + target, headers={"Authorization": f"Bearer {TOKEN}"})
        self.response = self.connection.getresponse()

    def next(self):
        kind, data = None, None
        while True:
            line = self.response.readline().decode()
            if not line:
                return None
            if line.startswith("event: "):
                kind = line[7:].strip()
            elif line.startswith("data: "):
                data = json.loads(line[6:])
            elif line == "\n" and kind:
                return kind, data

    def close(self):
        self.response.close()  # closes the socket, too
        self.connection.close()


class Findings(Case):
    """Recordings of four ranks of a program, in which rank 3 ends in different ways."""

    def found(self, ends, step=1.003, others=240):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        for rank in range(4):
            writer = Writer(f"{folder}/n{rank}.sonde", host=f"n{rank}")
            values = ends.get("values", others) if rank == 3 else others
            tags = {"host": f"n{rank}", "rank": str(rank)}
            writer.points("step_seconds", tags, [(T + k * step, 1 + k * (rank + 3) % 7 / 100) for k in range(values)])
            last = ends.get("node", others) if rank == 3 else others
            writer.points("cpu_percent", {"host": f"n{rank}"}, [(T + k * step, 50) for k in range(last)])
            writer.close()
        server = Server(folder)
        self.addCleanup(server.stop)
        return server.get("/sonde/v1/findings").json["findings"]

    def test_silent(self):
        (one,) = self.found({"values": 150})
        self.assertEqual({k: one[k] for k in ("metric", "tags", "state", "values", "others", "since_ns")},
                         {"metric": "step_seconds", "tags": {"host": "n3", "rank": "3"}, "state": "silent", "values": 150,
                          "others": 240, "since_ns": round((T + 149 * 1.003) * 1000) * 1_000_000})
        self.assertNotIn("factor", one)
        self.assertGreater(one["until_ns"], one["since_ns"])

    def test_not_silent(self):
        for name, found in (("as many values as the others", self.found({})),
                            ("its node ended, too", self.found({"values": 150, "node": 150})),
                            ("samples by the clock", self.found({"values": 150}, step=1.0))):
            self.assertEqual(found, [], name)


    def compared(self, length_s, **tags):
        """Four ranks with a span each second; those of rank 3 take twice as long. Returns the
        members that were found, and the number of measures."""
        folder = self.enterContext(tempfile.TemporaryDirectory())
        for rank in range(4):
            writer = Writer(f"{folder}/n{rank}.sonde", host=f"n{rank}")
            for k in range(40):
                length = length_s * (1 + (k + rank) % 5 / 100) * (2 if rank == 3 else 1)
                writer.span(k + 1, 0, T + k, T + k + length, {"rank": str(rank), **tags}, "work")
            writer.close()
        server = Server(folder)
        self.addCleanup(server.stop)
        answer = server.get("/sonde/v1/findings").json
        return [(one["tags"], one["state"]) for one in answer["findings"]], len(answer["measures"])

    def test_slow_spans(self):
        self.assertEqual(self.compared(0.2), ([({"host": "n3", "rank": "3"}, "slow")], 1))
        self.assertEqual(self.compared(0.02), ([({"host": "n3", "rank": "3"}, "slow")], 1))

    def test_spans_that_take_hardly_any_time(self):
        self.assertEqual(self.compared(0.002), ([], 0))

    def test_the_members_of_a_collective_wait_for_each_other(self):
        self.assertEqual(self.compared(0.2, comm="world"), ([], 0))


class Stream(Case):
    @classmethod
    def write(cls, folder):
        cls.writer = Writer(f"{folder}/a.sonde")
        cls.writer.points("loss", {"host": "a", "rank": "0"}, [(T, 1), (T + 1, 2)])
        cls.writer.sync()
        cls.addClassCleanup(cls.writer.close)

    def append(self, rank, *points):
        self.writer.points("loss", {"host": "a", "rank": rank}, points)
        self.writer.sync()

    def test_points_as_they_come(self):
        events = Events(self.server, f"m=loss{{rank=*}}&since={T}")
        self.addCleanup(events.close)
        self.assertEqual((events.response.status, events.response.headers["Content-Type"]), (200, "text/event-stream; charset=UTF-8"))
        self.assertEqual(events.next(), ("series", {"id": 0, "metric": "loss", "tags": {"host": "a", "rank": "0"}}))
        self.assertEqual(events.next(), ("points", {"id": 0, "t_ns": [T * NS, (T + 1) * NS], "values": [1, 2]}))
        now = int(time.time())
        self.append("1", (now, 5))
        self.assertEqual(events.next(), ("series", {"id": 1, "metric": "loss", "tags": {"host": "a", "rank": "1"}}))
        self.assertEqual(events.next(), ("points", {"id": 1, "t_ns": [now * NS], "values": [5]}))
        self.append("1", (now + 1, 6))
        self.assertEqual(events.next(), ("points", {"id": 1, "t_ns": [(now + 1) * NS], "values": [6]}))
        # A later client gets only later points of its selection.
        later = Events(self.server, "m=loss{rank=7}")
        self.addCleanup(later.close)
        self.append("8", (now + 3600, 1))
        self.append("7", (now + 3600, 9))
        self.assertEqual(later.next(), ("series", {"id": 0, "metric": "loss", "tags": {"host": "a", "rank": "7"}}))
        self.assertEqual(later.next()[1]["values"], [9])

    def test_in_columns(self):
        """With format=binary, the stream has sizes, each followed by an answer as of a query. Its
        first size is 0, which means no new points."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S)
        self.addCleanup(connection.close)
        now = int(time.time())
        connection.request("GET", f"/sonde/v1/stream?format=binary&m=columns{{k=*}}&m=loss{{rank=0}}&since={T}", headers={"Authorization": f"Bearer {TOKEN}"})
        response = connection.getresponse()
        self.assertEqual((response.status, response.headers["Content-Type"]), (200, "application/vnd.sonde.stream"))

        def piece():
            while True:
                size = int.from_bytes(response.read(8), "little")
                if size:
                    return Binary.read(self, response.read(size))["series"]
        self.assertEqual(int.from_bytes(response.read(8), "little"), 0)
        [loss] = piece()
        self.assertEqual((loss["metric"], loss["kind"], loss["tags"], loss["t_ns"], loss["values"]),
                         ("loss", "gauge", {"host": "a", "rank": "0"}, [T * NS, (T + 1) * NS], [1, 2]))
        self.writer.metric("columns", "counter", "widgets", "")
        for i, value in enumerate((0.1, float("inf"), 1e300)):
            self.writer.points("columns", {"k": "x"}, [(now + i, value)])
            self.writer.sync()
            [one] = piece()
            self.assertEqual((one["metric"], one["kind"], one["unit"], one["tags"], one["values"]), ("columns", "counter", "widgets", {"k": "x"}, [value]))

    def test_mistakes(self):
        for target in ("", "m=", "m=loss&format=json", "m=loss{", "m=loss&since=then", "&".join(["m=a"] * 17)):
            self.assert_error(self.server.get("/sonde/v1/stream", target), 400, "")

    def wait_for_the_end_of_streams(self):
        """Waits until the server has closed the streams whose clients have left. It does so at the
        latest when it writes to them."""
        until(lambda: next(s["value"] for s in self.server.get("/api/stats").json if s["metric"] == "sonde.streams") == "0", "no stream is left")

    def test_limit(self):
        self.wait_for_the_end_of_streams()  # of other tests
        open_ones = []
        for _ in range(64):
            open_ones.append(Events(self.server, "m=nothing"))
            self.addCleanup(open_ones[-1].close)
            self.assertEqual(open_ones[-1].response.status, 200)
        self.assert_error(self.server.get("/sonde/v1/stream", "m=nothing"), 503, "streams")
        for one in open_ones:
            one.close()
        self.wait_for_the_end_of_streams()
        one = Events(self.server, f"m=loss&since={T}")
        self.assertEqual(one.response.status, 200)
        one.close()


class StreamAtTheEnd(unittest.TestCase):
    def test_the_server_ends_with_streams_open(self):
        job = Job(level=2)
        events = Events(job.server, "m=cpu_percent")
        self.assertEqual(events.next()[0], "series")
        self.assertEqual(events.next()[0], "points")
        job.stop()
        while events.next():
            pass
        events.close()


if __name__ == "__main__":
    unittest.main()
