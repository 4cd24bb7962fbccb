"""Several nodes' data in one answer: an aggregator with a hub, relays beside it, each over a folder of its own. Processes as `sonde run` starts them."""
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request
from urllib.error import HTTPError
from urllib.parse import quote

from harness import T, Writer, strict_json

SONDE = os.environ["SONDE"]
PATIENCE_S = 60
NODES = ["n1", "n2", "n3"]


def until(condition, words):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"never came true: {words}")
        time.sleep(0.02)


class Process:
    """One that is held by a control descriptor."""

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
        self.control.shutdown(socket.SHUT_RDWR)
        self.control.close()
        return self.process.wait(timeout=PATIENCE_S)


class Nodes(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.ends = [self.place.cleanup]
        self.key = self.write_key("key", bytes(range(32)))
        self.token = os.path.join(self.place.name, "token")
        with open(self.token, "w") as f:
            f.write("test-token\n")
        self.writers = {}
        for i, host in enumerate(NODES):
            os.mkdir(os.path.join(self.place.name, host))
            w = self.writers[host] = Writer(os.path.join(self.place.name, host, f"{host}.sonde"), "j")
            w.metric("loss", "gauge", "-", "Loss.")
            w.points("loss", {"host": host, "k": str(i)}, [(T + s, 10 * (i + 1) + s) for s in range(5)])
            w.points(f"only_{host}", {"host": host}, [(T, i)])
            w.annotation(T + i, {"at": host}, f"note of {host}")
            w.span(i + 1, 0, T, T + 2, {"at": host}, "step")
            w.sync()
        self.ends += [w.close for w in self.writers.values()]
        self.aggregator = Process("aggregator", "--key-file", self.key, "--hub-listen=127.0.0.1", "--host=n1", "--expect=n2,n3", "--job=j", "--token-file", self.token,
                                  os.path.join(self.place.name, "n1"))
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
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers={"Authorization": "Bearer test-token"},
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

    def test_the_native_face(self):
        self.all_up()
        nodes, _ = self.get("/sonde/v1/nodes")
        self.assertEqual([(n["host"], n["job"], n["state"], n["series"]) for n in nodes["nodes"]], [(h, "j", "live", 2) for h in NODES])
        self.assertEqual(nodes["missing"], [])
        self.assertEqual([m["name"] for m in self.get("/sonde/v1/metrics")[0]["metrics"]], ["loss", "only_n1", "only_n2", "only_n3"])
        self.assertEqual([(s["tags"]["host"], s["value"]) for s in self.get("/sonde/v1/series?match=loss&latest")[0]["series"]], [("n1", 14), ("n2", 24), ("n3", 34)])
        answer, _ = self.get("/sonde/v1/query", {"start": T - 1, "end": T + 60, "queries": [{"metric": "only_n2", "aggregator": "sum"}]})
        self.assertEqual([(s["metric"], s["kind"], s["values"]) for s in answer["series"]], [("only_n2", "gauge", [1])])
        self.assertEqual([(s["node"], s["name"]) for s in self.get("/sonde/v1/spans?name=step")[0]["spans"]], [(h, "step") for h in NODES])
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
        # It comes, stands still, goes on, and ends.
        relay = self.relay("n2")
        until(lambda: "node n2 up" in self.aggregator.said, "n2 is up")
        self.assertEqual(self.get(self.QUERY + quote("sum:1s-sum:loss"))[1], "n3 (not connected)")
        os.kill(relay.process.pid, signal.SIGSTOP)
        answer, missing = self.get(self.QUERY + quote("sum:1s-sum:loss") + "&m=" + quote("max:loss"))
        self.assertEqual(missing, "n2 (late), n3 (not connected)")
        self.assertEqual([a["dps"][str(T)] for a in answer], [10, 10])
        os.kill(relay.process.pid, signal.SIGCONT)
        until(lambda: self.get(self.QUERY + quote("sum:1s-sum:loss"))[1] == "n3 (not connected)", "n2 answers again")
        self.assertEqual(self.relays.pop("n2").close(), 0)
        until(lambda: "node n2 lost" in self.aggregator.said, "n2 is lost")
        # A node that is no longer of the job is not missed; a new one is.
        self.aggregator.tell("exclude n2,n3")
        self.aggregator.tell("expect n4")
        until(lambda: self.get(self.QUERY + quote("sum:1s-sum:loss"))[1] == "n4 (not connected)", "n4 is expected")

    def test_the_stream_says_whom_it_does_not_follow(self):
        self.all_up()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/sonde/v1/stream?m=loss", headers={"Authorization": "Bearer test-token"})
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            self.assertEqual(answer.headers["X-Sonde-Missing"], "n2 (not streamed), n3 (not streamed)")

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
        os.kill(self.relays["n2"].process.pid, signal.SIGSTOP)
        self.ends.append(lambda: os.kill(self.relays["n2"].process.pid, signal.SIGCONT))
        before = self.get("/sonde/v1/status")[0]["hub"]
        with socket.create_connection(("127.0.0.1", self.port)) as client:
            client.sendall(f"GET {self.QUERY}sum:loss HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAuthorization: Bearer test-token\r\n\r\n".encode())
            until(lambda: self.get("/sonde/v1/status")[0]["hub"]["questions"] > before["questions"], "it is asked")
        until(lambda: self.get("/sonde/v1/status")[0]["hub"]["cancelled"] > before["cancelled"], "it is cancelled")

    def test_a_restart_is_asked_for(self):
        self.assertEqual(self.ask("/sonde/v1/reboot", {"hosts": ["n2"]})[0], 501)
        own = Process("aggregator", "--restarts", "--token-file", self.token, os.path.join(self.place.name, "n1"))
        self.ends.append(own.close)
        self.port = int(own.first.split()[1])
        self.assertEqual(self.get("/sonde/v1/reboot", {"hosts": ["n2", "n3"]})[0], {"asked": "reboot", "hosts": ["n2", "n3"]})
        self.assertEqual(self.get("/sonde/v1/reboot?hosts=n4", {})[0]["hosts"], ["n4"])
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/api/reboot", headers={"Authorization": "Bearer test-token"}, data=b"hostnames=a%2Cb&h_uids=")
        with urllib.request.urlopen(request) as answer:
            self.assertEqual(json.loads(answer.read())["hosts"], ["a", "b"])
        for body in ({"hosts": ["n2\nreboot n3"]}, {"hosts": ["a b"]}, {"hosts": ["x" * 5000]}):
            self.assertIn(self.ask("/sonde/v1/reboot", body)[0], (400, 413))
        until(lambda: len(own.said) == 3, "three are passed on")
        self.assertEqual(own.said, ["reboot n2,n3", "reboot n4", "reboot a,b"])

    def test_a_collector_is_asked_for(self):
        self.assertEqual(self.ask("/sonde/v1/collectors", {"name": "a", "command": "x"})[0], 501)  # it has no agent
        own = Process("aggregator", "--socket", os.path.join(self.place.name, "none"), "--token-file", self.token, os.path.join(self.place.name, "n1"))
        self.ends.append(own.close)
        self.port = int(own.first.split()[1])
        self.assertEqual(self.get("/sonde/v1/collectors", {"name": "a-1", "command": " exec ./mine  -x ", "input": "YQ==", "rate": 5, "timeout": "0.5", "per_gpu": 1})[0],
                         {"asked": "collector", "name": "a-1"})
        self.get("/sonde/v1/collectors", {"name": "a-1"})
        until(lambda: len(own.said) == 2, "two are passed on")
        self.assertEqual(own.said, ["collector a-1 per_gpu input=YQ== rate=5 timeout=0.5 exec ./mine  -x", "collector a-1"])

    def test_without_the_key_there_is_no_hub(self):
        refused = subprocess.run([SONDE, "aggregator", "--expect=n2", self.place.name], capture_output=True, text=True)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("--key-file", refused.stderr)


if __name__ == "__main__":
    unittest.main()
