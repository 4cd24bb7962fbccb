"""Tests answers with the data of several nodes: an aggregator with a hub, and relays, each with its
own folder. They are the processes that `sonde run` starts."""
import json
import os
import socket
import subprocess
import tempfile
import threading
import unittest
import urllib.request
from urllib.error import HTTPError
from urllib.parse import quote

from harness import PATIENCE_S, T, Writer, continue_process, stop_process, strict_json, until

SONDE = os.environ["SONDE"]
NODES = ["n1", "n2", "n3"]
TOKEN = "a-token-of-this-test-and-no-other"


class Process:
    """A process that ends with its control descriptor."""

    def __init__(self, *arguments):
        self.control, theirs = socket.socketpair()
        self.process = subprocess.Popen([SONDE, *map(str, arguments[:1]), f"--control-fd={theirs.fileno()}", *map(str, arguments[1:])], pass_fds=[theirs.fileno()])
        theirs.close()
        self.lines = self.control.makefile("r")
        self.first = self.lines.readline().strip()
        self.said = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for line in self.lines:
            self.said.append(line.strip())

    def tell(self, line):
        self.control.sendall(line.encode() + b"\n")

    def close(self):
        continue_process(self.process.pid)  # if a test has failed while it stood still
        self.control.shutdown(socket.SHUT_RDWR)
        self.control.close()
        return self.process.wait(timeout=PATIENCE_S)


class Nodes(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.ends = [self.place.cleanup]
        self.key = self.write_key("key", bytes(range(32)))
        self.token = os.path.join(self.place.name, "token")
        with open(os.open(self.token, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.write(TOKEN + "\n")
        self.writers = {}
        for i, host in enumerate(NODES):
            os.mkdir(os.path.join(self.place.name, host))
            w = self.writers[host] = Writer(os.path.join(self.place.name, host, f"{host}.sonde"), "j", host)
            w.metric("loss", "gauge", "-", "Loss.")
            w.points("loss", {"host": host, "k": str(i)}, [(T + s, 10 * (i + 1) + s) for s in range(5)])
            w.points(f"only_{host}", {"host": host}, [(T, i)])
            w.annotation(T + i, {"at": host}, f"note of {host}")
            w.span(i + 1, 0, T, T + 2, {"at": host}, "step")
            w.sync()
        self.ends += [w.close for w in self.writers.values()]
        self.aggregator = Process("aggregator", "--key-file", self.key, "--hub-listen=127.0.0.1", "--host=n1", "--expect=n2,n3", "--job=j", "--token-file", self.token,
                                  "--socket", os.path.join(self.place.name, "agent.sock"), os.path.join(self.place.name, "n1"))
        self.ends.append(self.aggregator.close)
        word, port, hub_port = self.aggregator.first.split()
        self.assertEqual(word, "ready")
        self.port, self.hub_port = int(port), int(hub_port)
        self.relays = {}

    def tearDown(self):
        for end in reversed(self.ends):
            end()

    def write_key(self, name, key):
        path = os.path.join(self.place.name, name)
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as f:
            f.write(key)
        return path

    def relay(self, host, key=None):
        relay = Process("relay", "--key-file", key or self.key, f"--parent=127.0.0.1:{self.hub_port}", f"--host={host}", "--job=j", os.path.join(self.place.name, host))
        self.relays[host] = relay
        self.ends.append(lambda: self.relays.pop(host).close() if host in self.relays else None)
        self.assertEqual(relay.first, "ready")
        return relay

    def all_up(self):
        for host in ("n2", "n3"):
            self.relay(host)
        until(lambda: {"node n2 up", "node n3 up"} <= set(self.aggregator.said), f"nodes come up: {self.aggregator.said}")

    def ask(self, path, body=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers={"Authorization": f"Bearer {TOKEN}"},
                                         data=json.dumps(body).encode() if body is not None else None)
        try:
            answer = urllib.request.urlopen(request, timeout=PATIENCE_S)
        except HTTPError as error:
            answer = error
        with answer:
            return answer.status, answer.headers.get("X-Sonde-Missing"), answer.read()

    def get(self, path, body=None):
        status, missing, raw = self.ask(path, body)
        self.assertEqual(status, 200, raw)
        return strict_json(raw), missing

    QUERY = f"/api/query?start={T - 1}&end={T + 60}&m="

    def test_every_face_answers_for_all_nodes(self):
        self.all_up()
        answer, missing = self.get(self.QUERY + quote("sum:1s-sum:loss"))
        self.assertIsNone(missing)
        self.assertEqual(answer[0]["dps"], {str(T + s): 60 + 3 * s for s in range(5)})
        self.assertEqual([n["description"] for n in answer[0]["annotations"] if "description" in n], [f"note of {h}" for h in NODES])
        answer, _ = self.get("/api/query", {"start": T - 1, "end": T + 60, "queries": [
            {"metric": "loss", "aggregator": "max", "filters": [{"type": "wildcard", "tagk": "host", "filter": "*", "groupBy": True}]}, {"metric": "only_n3", "aggregator": "sum"}]})
        self.assertEqual([(a["metric"], a["tags"]["host"], a["dps"][str(T)]) for a in answer], [("loss", "n1", 10), ("loss", "n2", 20), ("loss", "n3", 30), ("only_n3", "n3", 2)])
        self.assertEqual(self.get("/api/suggest?type=metrics&q=only")[0], ["only_n1", "only_n2", "only_n3"])
        self.assertEqual(self.get("/api/suggest?type=tagv&q=n")[0], NODES)
        self.assertEqual([(s["metric"], s["value"]) for s in self.get("/api/query/last?resolve&timeseries=loss")[0]], [("loss", "14"), ("loss", "24"), ("loss", "34")])
        self.assertEqual([r["tags"]["host"] for r in self.get("/api/search/lookup?m=" + quote("loss{host=*}"))[0]["results"]], NODES)
        self.assertEqual(self.get("/api/search/lookup?m=" + quote("only_n2{host=n2}"))[0]["totalResults"], 1)
        self.assertEqual(self.ask("/api/search/lookup?m=nowhere")[0], 404)
        self.assertEqual(self.ask(self.QUERY + quote("sum:nowhere"))[0], 400)
        gexp, _ = self.get(f"/api/query/gexp?start={T - 1}&end={T + 60}&exp=" + quote("scale(sum:1s-sum:loss,2)"))
        self.assertEqual(gexp[0]["dps"][str(T)], 120)

    def questions(self):
        return {n["host"]: n["questions"] for n in self.get("/sonde/v1/status")[0]["hub"]["nodes"]}

    def asked(self, path, body=None):
        """Sends a request; returns the nodes that the hub asked, the answer, and the missing
        nodes."""
        before = self.questions()
        answer, missing = self.get(path, body)
        return sorted(host for host, count in self.questions().items() if count > before[host]), answer, missing

    def test_only_nodes_that_can_have_the_data_are_asked(self):
        def query(m):
            return self.QUERY.replace("?", "?no_annotations&") + quote(m)

        def filtered(kind, text):
            return {"start": T - 1, "end": T + 60, "noAnnotations": True,
                    "queries": [{"metric": "loss", "aggregator": "none", "filters": [{"type": kind, "tagk": "host", "filter": text}]}]}
        self.all_up()
        until(lambda: not self.asked(query("sum:loss{host=n1}"))[0], "the hub knows the hosts in the series of each node")
        for path, body, asked, hosts in [
                (query("none:loss"), None, ["n2", "n3"], NODES),
                (query("none:loss{host=n2}"), None, ["n2"], ["n2"]),
                (query("none:loss{host=literal_or(n1|n3)}"), None, ["n3"], ["n1", "n3"]),
                (query("none:loss{}{host=not_literal_or(n3)}"), None, ["n2"], ["n1", "n2"]),
                ("/api/query", filtered("regexp", "3$"), ["n3"], ["n3"]),
                ("/sonde/v1/query", filtered("wildcard", "*2"), ["n2"], ["n2"]),
                ("/api/query/last?resolve&timeseries=" + quote("loss{host=n3}"), None, ["n3"], ["n3"]),
                ("/sonde/v1/series?match=" + quote("loss{host=n2}"), None, ["n2"], ["n2"]),
                ("/api/search/lookup?m=" + quote("loss{host=n1}"), None, [], ["n1"])]:
            with self.subTest(path, body=body):
                got, answer, missing = self.asked(path, body)
                series = answer.get("series", answer.get("results")) if isinstance(answer, dict) else answer
                self.assertEqual((got, [s["tags"]["host"] for s in series], missing), (asked, hosts, None))
        self.assertEqual(self.asked("/sonde/v1/query", {"start": T - 1, "end": T + 60, "queries": [{"m": "sum:only_n3{host=n3}"}]})[0], ["n3"])
        # A metric that only other nodes have is no error; one that no node knows is.
        self.assertEqual(self.get(query("sum:only_n3{host=n2}")), ([], None))
        self.assertEqual(self.ask(query("sum:nowhere{host=n2}"))[0], 400)
        # A point with the tag host=n2 in the store of n3 is found at once if the relay of n3 learns
        # of it. In a job, `sonde node` passes this message on from the agent.
        self.writers["n3"].points("loss", {"host": "n2", "k": "9"}, [(T, 7)])
        self.writers["n3"].sync()
        self.relays["n3"].tell("hosts")
        until(lambda: len(self.get(query("none:loss{host=n2}"))[0]) == 2, "it is found")
        # Once a query to all nodes has found a series, a query for its host finds it, too, even if
        # the relay was not told of it.
        for i in range(3):
            self.writers["n2"].points(f"late{i}", {"host": f"x{i}"}, [(T, i)])
            self.writers["n2"].sync()
            self.assertEqual(len(self.get(query(f"sum:late{i}"))[0]), 1)
            asked, answer, _ = self.asked(query(f"sum:late{i}{{host=x{i}}}"))
            self.assertEqual((asked, len(answer)), (["n2"], 1))
        # A node that is not connected counts as missing if it may have the requested series.
        self.relays.pop("n3").close()
        until(lambda: self.get(query("none:loss"))[1] == "n3 (not connected)", "n3 is missing")
        self.assertEqual(self.get(query("none:loss{host=n1}"))[1], None)
        self.assertEqual(self.get(query("none:loss{host=n2}"))[1], "n3 (not connected)")

    def test_an_expression_asks_each_node_once(self):
        self.all_up()
        before = self.questions()
        times = f"start={T - 1}&end={T + 60}"
        answer, _ = self.get(f"/api/query/gexp?{times}&exp=" + quote("diffSeries(sum:1s-sum:loss,sum:1s-min:loss{host=*})")
                             + "&exp=" + quote("timeShift(sum:1s-max:loss,'1s')"))
        self.assertEqual([(s["metric"], s["dps"].get(str(T + 1))) for s in answer if not s["metric"].startswith("diff")], [("loss", 60)])
        self.assertEqual({h: n - before[h] for h, n in self.questions().items()}, {"n2": 1, "n3": 1})
        before = self.questions()
        answer, _ = self.get("/api/query/exp", {
            "time": {"start": str(T), "end": str(T + 60), "aggregator": "sum", "downsampler": {"interval": "1s", "aggregator": "sum"}},
            "metrics": [{"id": "a", "metric": "loss", "aggregator": "sum"}, {"id": "b", "metric": "loss", "aggregator": "max"}, {"id": "c", "metric": "only_n3"}],
            "expressions": [{"id": "e", "expr": "a - b"}]})
        self.assertEqual(answer["outputs"][0]["dps"][:2], [[T * 1000, 30], [(T + 1) * 1000, 32]])
        self.assertEqual({h: n - before[h] for h, n in self.questions().items()}, {"n2": 1, "n3": 1})

    def test_the_native_face(self):
        self.all_up()
        nodes, _ = self.get("/sonde/v1/nodes")
        self.assertEqual([(n["host"], n["job"], n["state"], n["series"]) for n in nodes["nodes"]], [(h, "j", "live", 2) for h in NODES])
        self.assertEqual(nodes["missing"], [])
        self.assertEqual([m["name"] for m in self.get("/sonde/v1/metrics")[0]["metrics"]], ["loss", "only_n1", "only_n2", "only_n3"])
        asked, own, _ = self.asked("/sonde/v1/metrics?own")
        self.assertEqual((asked, own["partial"], [m["name"] for m in own["metrics"]]), ([], True, ["loss", "only_n1"]))
        self.assertEqual([(s["tags"]["host"], s["value"]) for s in self.get("/sonde/v1/series?match=loss&latest")[0]["series"]], [("n1", 14), ("n2", 24), ("n3", 34)])
        answer, _ = self.get("/sonde/v1/query", {"start": T - 1, "end": T + 60, "queries": [{"metric": "only_n2", "aggregator": "sum"}]})
        self.assertEqual([(s["metric"], s["kind"], s["values"]) for s in answer["series"]], [("only_n2", "gauge", [1])])
        self.assertEqual([(s["node"], s["name"]) for s in self.get("/sonde/v1/spans?name=step")[0]["spans"]], [(h, "step") for h in NODES])
        per_span = {"m": "none:0all-max:loss", "spans": {"name": "step"}}
        answer, _ = self.get("/sonde/v1/query", {"start": T, "end": T + 60, "queries": [per_span, per_span | {"spans": {"name": "step", "node": True}}]})
        every = [(0, {"at": at, "host": host, "k": str(k)}, [10 * (k + 1) + 1]) for at in NODES for k, host in enumerate(NODES)]
        own = [(1, {"at": host, "host": host, "k": str(k)}, [10 * (k + 1) + 1]) for k, host in enumerate(NODES)]
        self.assertEqual([(s["query"], s["tags"], s["values"]) for s in answer["series"]], every + own)
        self.assertEqual([(a["node"], a["text"]) for a in self.get("/sonde/v1/annotations?tag=at=n3")[0]["annotations"]], [("n3", "note of n3")])
        status, missing, text = self.ask("/metrics")
        for i, host in enumerate(NODES):
            self.assertIn(f'loss{{host="{host}",k="{i}"}} {10 * (i + 1) + 4} '.encode(), text)
        status, _ = self.get("/sonde/v1/status")
        self.assertEqual([(n["host"], n["connected"]) for n in status["hub"]["nodes"]], [("n2", True), ("n3", True)])
        self.assertEqual(status["missing"], [])
        until(lambda: b'clock_offset_seconds{host="n2"}' in self.ask("/metrics")[2], "the clock of n2 is known")
        self.assertLess(abs(self.get("/sonde/v1/status")[0]["hub"]["nodes"][0]["clock_offset_seconds"]), 10)

    def test_who_is_missing_is_named(self):
        answer, missing = self.get(self.QUERY + quote("sum:1s-sum:loss"))
        self.assertEqual(missing, "n2 (not connected), n3 (not connected)")
        self.assertEqual(answer[0]["dps"][str(T)], 10)
        self.assertEqual([m["host"] for m in self.get("/sonde/v1/nodes")[0]["missing"]], ["n2", "n3"])
        self.assertEqual(self.get("/sonde/v1/status")[0]["missing"], ["n2", "n3"])
        for path in ("/api/suggest?type=metrics", "/api/query/last?timeseries=loss", "/api/search/lookup?m=loss", "/sonde/v1/metrics", "/sonde/v1/series", "/sonde/v1/spans",
                     "/sonde/v1/annotations", "/metrics"):
            self.assertEqual(self.ask(path)[1], "n2 (not connected), n3 (not connected)", path)
        # An unknown metric is no error while nodes are missing, because they may have it.
        for path in (self.QUERY + "sum:only_n2", "/api/query/last?timeseries=only_n2"):
            self.assertEqual(self.get(path), ([], "n2 (not connected), n3 (not connected)"))
        self.assertEqual(self.get("/api/search/lookup?m=only_n2{host=*}")[0]["results"], [])
        # A relay connects, is stopped, continues, and ends.
        relay = self.relay("n2")
        until(lambda: "node n2 up" in self.aggregator.said, "n2 is up")
        self.assertEqual(self.get(self.QUERY + quote("sum:1s-sum:loss"))[1], "n3 (not connected)")
        stop_process(relay.process.pid)
        answer, missing = self.get(self.QUERY + quote("sum:1s-sum:loss") + "&m=" + quote("max:loss"))
        self.assertEqual(missing, "n2 (late), n3 (not connected)")
        self.assertEqual([a["dps"][str(T)] for a in answer], [10, 10])
        continue_process(relay.process.pid)
        until(lambda: self.get(self.QUERY + quote("sum:1s-sum:loss"))[1] == "n3 (not connected)", "n2 answers again")
        self.assertEqual(self.relays.pop("n2").close(), 0)
        until(lambda: "node n2 lost" in self.aggregator.said, "n2 is lost")
        # An excluded node no longer counts as missing; a node that is now expected does.
        self.aggregator.tell("exclude n2,n3")
        self.aggregator.tell("expect n4")
        until(lambda: self.get(self.QUERY + quote("sum:1s-sum:loss"))[1] == "n4 (not connected)", "n4 is expected")

    def test_a_metric_of_a_node_that_has_left(self):
        """A metric that only a former node had gives an empty panel. A metric that no node ever had
        is an error."""
        self.all_up()
        only = self.QUERY + "sum:only_n2"
        self.assertEqual(self.get(only)[0][0]["tags"], {"host": "n2"})
        self.aggregator.tell("exclude n2")
        until(lambda: self.get(only)[0] == [], "n2 is no longer asked")
        self.assertEqual(self.get(only), ([], None))
        self.assertEqual(self.get("/api/query/last?timeseries=only_n2"), ([], None))
        self.assertEqual(self.get("/api/search/lookup?m=only_n2{host=*}")[0]["results"], [])
        for path in (self.QUERY + "sum:only_n9", "/api/query/last?timeseries=only_n9"):
            self.assertEqual(self.ask(path)[0], 400)
        self.assertEqual(self.ask("/api/search/lookup?m=only_n9")[0], 404)

    def test_the_stream_follows_all_nodes(self):
        self.relay("n2")
        until(lambda: "node n2 up" in self.aggregator.said, "n2 is up")
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/sonde/v1/stream?since={T}&m=" + quote("loss{k=*}"), headers={"Authorization": f"Bearer {TOKEN}"})
        heard, lines = [], urllib.request.urlopen(request, timeout=PATIENCE_S)
        self.ends.append(lines.close)

        def listen():
            kind = None
            try:
                for line in lines:
                    word, _, rest = line.decode().strip().partition(": ")
                    kind = rest if word == "event" else kind
                    if word == "data":
                        heard.append((kind, json.loads(rest)))
            except (OSError, AttributeError, ValueError):
                pass  # the stream is closed
        threading.Thread(target=listen, daemon=True).start()

        def points():
            """Returns host → values, in the order of arrival."""
            names = {event["id"]: event["tags"]["host"] for kind, event in heard if kind == "series"}
            out = {}
            for kind, event in list(heard):
                if kind == "points":
                    out.setdefault(names[event["id"]], []).extend(event["values"])
            return out

        def said(kind):
            return [event for name, event in heard if name == kind]
        until(lambda: points() == {"n1": [10, 11, 12, 13, 14], "n2": [20, 21, 22, 23, 24]}, f"both nodes' points: {heard}")
        until(lambda: said("missing") == [{"host": "n3", "reason": "not connected"}], f"n3 is named: {heard}")
        # Each new point of each node arrives once.
        for i, host in enumerate(NODES):
            self.writers[host].points("loss", {"host": host, "k": str(i)}, [(T + 5, i)])
            self.writers[host].sync()
        until(lambda: points() == {"n1": [10, 11, 12, 13, 14, 0], "n2": [20, 21, 22, 23, 24, 1]}, "the new points")
        # The stream gets the earlier points of a new node. A stopped node is reported, does not
        # delay the others, and loses no points.
        self.relay("n3")
        until(lambda: points().get("n3") == [30, 31, 32, 33, 34, 2], "n3's points")
        until(lambda: said("back") == [{"host": "n3"}], "n3 is back")
        stop_process(self.relays["n2"].process.pid)
        until(lambda: {"host": "n2", "reason": "late"} in said("missing"), "n2 is late")
        for i, host in enumerate(NODES):
            self.writers[host].points("loss", {"host": host, "k": str(i)}, [(T + 6, 100 + i)])
            self.writers[host].sync()
        until(lambda: points()["n1"][-1] == 100 and points()["n3"][-1] == 102, "the others go on")
        continue_process(self.relays["n2"].process.pid)
        until(lambda: points()["n2"] == [20, 21, 22, 23, 24, 1, 101], "n2's points")
        self.assertIn({"host": "n2"}, said("back"))
        self.assertEqual(points()["n1"], [10, 11, 12, 13, 14, 0, 100])

    def test_the_deadline_of_nodes(self):
        own = Process("aggregator", "--key-file", self.key, "--hub-listen=127.0.0.1", "--host=n1", "--expect=n2", "--job=j", "--token-file", self.token, "--node-deadline=0.2",
                      os.path.join(self.place.name, "n1"))
        self.ends.append(own.close)
        _, self.port, self.hub_port = (int(word) if word.isdigit() else word for word in own.first.split())
        relay = self.relay("n2")
        until(lambda: "node n2 up" in own.said, "n2 is up")
        stop_process(relay.process.pid)
        self.assertEqual(self.get("/sonde/v1/status")[0]["limits"]["node_deadline_seconds"], 0.2)
        answer, missing = self.get(self.QUERY + quote("sum:1s-sum:loss"))
        self.assertEqual((missing, answer[0]["dps"][str(T)]), ("n2 (late)", 10))

    def test_a_wrong_key_is_refused_and_counted(self):
        self.relay("n2", self.write_key("wrong", bytes(32)))
        until(lambda: self.get("/sonde/v1/status")[0]["hub"]["refused_key"] > 0, "the wrong key is counted")
        self.assertEqual(self.get("/sonde/v1/status")[0]["missing"], ["n2", "n3"])
        loose = self.write_key("loose", bytes(32))
        os.chmod(loose, 0o644)
        refused = Process("relay", "--key-file", loose, f"--parent=127.0.0.1:{self.hub_port}", "--host=n3", "--job=j", self.place.name)
        self.assertTrue(refused.first.startswith("error "), refused.first)
        self.assertEqual(refused.close(), 1)

    def test_who_hangs_up_ends_the_question(self):
        self.all_up()
        stop_process(self.relays["n2"].process.pid)
        before = self.get("/sonde/v1/status")[0]["hub"]
        with socket.create_connection(("127.0.0.1", self.port)) as client:
            client.sendall(f"GET {self.QUERY}sum:loss HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
            until(lambda: self.get("/sonde/v1/status")[0]["hub"]["questions"] > before["questions"], "it is asked")
        until(lambda: self.get("/sonde/v1/status")[0]["hub"]["cancelled"] > before["cancelled"], "it is cancelled")

    def test_questions_at_the_same_time_share_connections(self):
        self.all_up()
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(self.get(self.QUERY + quote("sum:1s-sum:loss")))) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([(answer[0]["dps"][str(T)], missing) for answer, missing in answers], [(60, None)] * 16)
        self.assertEqual([n["connections"] for n in self.get("/sonde/v1/status")[0]["hub"]["nodes"]], [1, 1])

    def test_a_restart_is_asked_for(self):
        self.assertEqual(self.ask("/sonde/v1/reboot", {"hosts": ["n2"]})[0], 501)
        own = Process("aggregator", "--restarts", "--token-file", self.token, os.path.join(self.place.name, "n1"))
        self.ends.append(own.close)
        self.port = int(own.first.split()[1])
        self.assertEqual(self.get("/sonde/v1/reboot", {"hosts": ["n2", "n3"]})[0], {"asked": "reboot", "hosts": ["n2", "n3"]})
        self.assertEqual(self.get("/sonde/v1/reboot?hosts=n4", {})[0]["hosts"], ["n4"])
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/api/reboot", headers={"Authorization": f"Bearer {TOKEN}"}, data=b"hostnames=a%2Cb&h_uids=")
        with urllib.request.urlopen(request) as answer:
            self.assertEqual(json.loads(answer.read())["hosts"], ["a", "b"])
        for body in ({"hosts": ["n2\nreboot n3"]}, {"hosts": ["a b"]}, {"hosts": ["x" * 5000]}):
            self.assertIn(self.ask("/sonde/v1/reboot", body)[0], (400, 413))
        until(lambda: len(own.said) == 3, "three are passed on")
        self.assertEqual(own.said, ["reboot n2,n3", "reboot n4", "reboot a,b"])

    def dumped(self, folder):
        """Returns the answers of `sonde replay` with a folder of copies."""
        replay = Process("aggregator", "--token-file", self.token, folder)
        self.ends.append(replay.close)
        self.port, port = int(replay.first.split()[1]), self.port
        try:
            return self.get(self.QUERY + quote("sum:1s-sum:loss") + "&m=" + quote("none:loss{host=*}") + "&global_annotations")[0]
        finally:
            self.port = port

    def test_a_dump_is_the_job_in_files(self):
        self.all_up()
        to = os.path.join(self.place.name, "to")
        answer, missing = self.get("/sonde/v1/dump", {"to": to})
        self.assertEqual([(f["host"], f["path"], f["state"], f["points"], f["message"]) for f in answer["files"]], [(h, f"{to}/{h}.sonde", "copied", 6, "") for h in NODES])
        self.assertEqual([f["bytes"] for f in answer["files"]], [os.path.getsize(f["path"]) for f in answer["files"]])
        self.assertEqual((answer["job"], answer["to"], answer["missing"], missing), ("j", to, [], None))
        self.assertEqual(oct(os.stat(to).st_mode & 0o777), "0o700")
        self.assertEqual(self.dumped(to), self.get(self.QUERY + quote("sum:1s-sum:loss") + "&m=" + quote("none:loss{host=*}") + "&global_annotations")[0])
        # A second dump writes only new data.
        before = {h: os.stat(f"{to}/{h}.sonde").st_ino for h in NODES}
        self.writers["n2"].points("loss", {"host": "n2", "k": "1"}, [(T + 5, 25)])
        self.writers["n2"].sync()
        answer, _ = self.get("/sonde/v1/dump", {"to": to})
        self.assertEqual([f["state"] for f in answer["files"]], ["unchanged", "updated", "unchanged"])
        self.assertEqual([os.stat(f"{to}/{h}.sonde").st_ino == before[h] for h in NODES], [True, False, True])
        self.assertEqual(sorted(os.listdir(to)), [f"{h}.sonde" for h in NODES])
        self.assertEqual(self.dumped(to)[0]["dps"][str(T + 5)], 25)
        # A dump of a part of the time needs another folder than that of all time.
        answer, _ = self.get("/sonde/v1/dump", {"to": to, "since": "10m"})
        self.assertEqual({f["state"] for f in answer["files"]}, {"failed"})
        self.assertIn("a copy of all time", answer["files"][0]["message"])
        answer, _ = self.get("/sonde/v1/dump", {"to": to + "2", "since": str(T + 2)})
        self.assertEqual([f["points"] for f in answer["files"]], [3, 4, 3])
        self.assertFalse(self.get("/sonde/v1/status")[0]["dump"]["running"])

    def test_what_a_dump_cannot_have_is_named(self):
        self.relay("n2")
        until(lambda: "node n2 up" in self.aggregator.said, "n2 is up")
        to = os.path.join(self.place.name, "to")
        answer, missing = self.get("/sonde/v1/dump", {"to": to})
        self.assertEqual([f["host"] for f in answer["files"]], ["n1", "n2"])
        self.assertEqual(answer["missing"], [{"host": "n3", "reason": "not connected"}])
        self.assertEqual(missing, "n3 (not connected)")
        # Invalid folders and times, and the folder of the job itself, are refused.
        for body, words in (({}, b"to is missing"), ({"to": "to"}, b"absolute path"), ({"to": "/nowhere/at/all"}, b"cannot make the folder"), ({"to": to, "since": "ten"}, b"Invalid time"),
                            ({"to": "/" + "x" * 5000}, b"too long")):
            status, _, raw = self.ask("/sonde/v1/dump", body)
            self.assertEqual(status, 400, raw)
            self.assertIn(words, raw)
        own = os.path.join(self.place.name, "n1")
        self.assertIn(b"the job's own folder", self.ask("/sonde/v1/dump", {"to": own})[2])
        self.assertEqual(os.listdir(own), ["n1.sonde"])

    def test_sonde_dump_shows_how_far_it_is_and_names_who_is_not_there(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("SONDE")} | {"SONDE_URL": f"http://127.0.0.1:{self.port}", "SONDE_TOKEN_FILE": self.token}
        to = os.path.join(self.place.name, "to")
        self.relay("n2")
        until(lambda: "node n2 up" in self.aggregator.said, "n2 is up")
        done = subprocess.run([SONDE, "dump", "--to", to], env=env, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (4, "sonde: error: no data of node n3: not connected\n"))
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()[:-1]], ["node", "n1", "n2"])
        # On a terminal, a slow dump shows its progress.
        self.relay("n3")
        until(lambda: "node n3 up" in self.aggregator.said, "n3 is up")
        stop_process(self.relays["n2"].process.pid)
        ours, theirs = os.openpty()
        dump = subprocess.Popen([SONDE, "dump", "--to", to + "2"], env=env, stdout=subprocess.PIPE, stderr=theirs, text=True)
        os.close(theirs)
        shown = b""
        while b"2 of 3 nodes, 12 points" not in shown:
            shown += os.read(ours, 4096)
        continue_process(self.relays["n2"].process.pid)
        out, _ = dump.communicate(timeout=PATIENCE_S)
        os.close(ours)
        self.assertEqual((dump.returncode, [line.split()[0] for line in out.splitlines()[:-1]]), (0, ["node", *NODES]))

    def test_one_dump_at_a_time_and_who_hangs_up_ends_it(self):
        self.all_up()
        to = os.path.join(self.place.name, "to")
        stop_process(self.relays["n2"].process.pid)
        body = json.dumps({"to": to}).encode()
        with socket.create_connection(("127.0.0.1", self.port)) as client:
            client.sendall(f"POST /sonde/v1/dump HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            until(lambda: self.get("/sonde/v1/status")[0]["dump"].get("files") == 2, "two files are there")
            dump = self.get("/sonde/v1/status")[0]["dump"]
            self.assertEqual((dump["running"], dump["to"], dump["nodes"], dump["points"]), (True, to, 3, 12))
            status, _, raw = self.ask("/sonde/v1/dump", {"to": to + "2"})
            self.assertEqual(status, 503, raw)
            self.assertIn(b"being made already", raw)
        until(lambda: not self.get("/sonde/v1/status")[0]["dump"]["running"], "it has ended")
        self.assertEqual(sorted(os.listdir(to)), ["n1.sonde", "n3.sonde"])

    def test_a_collector_is_asked_for(self):
        bare = Process("aggregator", "--token-file", self.token, os.path.join(self.place.name, "n1"))
        self.ends.append(bare.close)
        self.port = int(bare.first.split()[1])
        # An aggregator without an agent runs no collectors.
        self.assertEqual(self.ask("/sonde/v1/collectors", {"name": "a", "command": "x"})[0], 501)
        own = Process("aggregator", "--socket", os.path.join(self.place.name, "none"), "--token-file", self.token, os.path.join(self.place.name, "n1"))
        self.ends.append(own.close)
        self.port = int(own.first.split()[1])
        self.assertEqual(self.get("/sonde/v1/collectors", {"name": "a-1", "command": " exec ./mine  -x ", "input": "YQ==", "rate": 5, "timeout": "0.5", "per_gpu": 1})[0],
                         {"asked": "collector", "name": "a-1"})
        self.get("/sonde/v1/collectors", {"name": "a-1"})
        # A command that begins with NAME=VALUE sets a variable, not an option of the collector.
        self.get("/sonde/v1/collectors", {"name": "a-2", "command": "rate=5 ./mine"})
        until(lambda: len(own.said) == 3, "three are passed on")
        self.assertEqual(own.said, ["collector a-1 per_gpu input=YQ== rate=5 timeout=0.5 -- exec ./mine  -x", "collector a-1", "collector a-2 -- rate=5 ./mine"])

    def test_without_the_key_there_is_no_hub(self):
        refused = subprocess.run([SONDE, "aggregator", "--expect=n2", self.place.name], capture_output=True, text=True)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("--key-file", refused.stderr)


if __name__ == "__main__":
    unittest.main()
