"""Tests /metrics: a strict parser of OpenMetrics reads it, and a real Prometheus if installed."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

from harness import TOKEN, Case, T, Writer, until

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (-?[0-9.e+-]+|NaN|[+-]Inf) ([0-9]+\.[0-9]{{3}})$")


def parse(text):
    """Returns family → {type, unit, help, samples: {labels: (value, time)}}. Everything that the
    standard does not allow is an error."""
    families, current = {}, None
    lines = text.split("\n")
    if lines[-2:] != ["# EOF", ""]:
        raise ValueError("the text does not end with # EOF")
    for line in lines[:-2]:
        head = re.fullmatch(rf"# (HELP|TYPE|UNIT) ({NAME}) (.*)", line)
        if head:
            what, name, value = head.groups()
            if current is None or current["name"] != name:
                if name in families:
                    raise ValueError(f"{name} is there twice: {line}")
                current = families[name] = {"name": name, "samples": {}}
            if what in current or current["samples"]:
                raise ValueError(f"repeated, or after samples: {line}")
            if what == "TYPE" and value not in ("gauge", "counter"):
                raise ValueError(line)
            if what == "UNIT" and not name.endswith("_" + value):
                raise ValueError(line)
            current[what] = value
            continue
        sample = SAMPLE.fullmatch(line)
        if not sample:
            raise ValueError(f"not a sample: {line}")
        name, labels, value, t = sample.groups()
        if name != current["name"] + ("_total" if current["TYPE"] == "counter" else ""):
            raise ValueError(f"not a sample of {current['name']}: {line}")
        keys = re.findall(r'([a-zA-Z_][a-zA-Z0-9_]*)="', re.sub(r"\\.", "", labels or ""))
        if len(keys) != len(set(keys)) or labels in current["samples"]:
            raise ValueError(f"a repeated sample: {line}")
        current["samples"][labels] = (float(value), float(t))
    return families


class Text(Case):
    @classmethod
    def write(cls, folder):
        for node in ("a", "b"):
            writer = Writer(f"{folder}/{node}.sonde")
            writer.metric("cpu_user_seconds_total", "counter", "seconds", 'Time "in" programs\\all of it.')
            writer.metric("memory_used_bytes", "gauge", "bytes", "Memory.")
            writer.metric("speed", "gauge", "km/h", "A unit that is no name.")
            writer.metric("requests", "counter", "-", "")
            writer.points("cpu_user_seconds_total", {"host": node}, [(T, 1), (T + 10.5, 12.5)])
            writer.points("memory_used_bytes", {"host": node}, [(T, 4096)])
            writer.points("speed", {"host": node}, [(T, -1e300)])
            writer.points("requests", {"host": node}, [(T, 3)])
            writer.points("odd", {"host": node}, [(T, float("nan") if node == "a" else float("inf"))])
            writer.close()
        writer = Writer(f"{folder}/c.sonde")
        writer.metric("backwards_total", "counter", "-", "No counter at all.")
        writer.points("backwards_total", {"host": "c"}, [(T, -1)])
        writer.points("net.in-rate", {"host": "c", "if.name": 'a"b\\c', "if-name": "x", "if_name": "y"}, [(T, 1)])
        writer.points("net_in.rate", {"host": "c"}, [(T, 2)])
        writer.points("9lives", {}, [(T, 9)])
        writer.points("grün", {"host": "ü"}, [(T, 1)])
        writer.close()

    def test_all_of_it(self):
        answer = self.server.get("/metrics")
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.headers["Content-Type"], "application/openmetrics-text; version=1.0.0; charset=utf-8")
        families = parse(answer.raw.decode())
        cpu = families["cpu_user_seconds"]
        self.assertEqual((cpu["TYPE"], cpu["UNIT"], cpu["HELP"]), ("counter", "seconds", 'Time \\"in\\" programs\\\\all of it.'))
        self.assertEqual(cpu["samples"], {'host="a"': (12.5, T + 10.5), 'host="b"': (12.5, T + 10.5)})
        self.assertEqual((families["memory_used_bytes"]["TYPE"], families["memory_used_bytes"]["UNIT"]), ("gauge", "bytes"))
        self.assertNotIn("UNIT", families["speed"])
        self.assertEqual(families["requests"]["samples"]['host="a"'], (3, T))
        odd = families["odd"]["samples"]
        self.assertTrue(odd['host="a"'][0] != odd['host="a"'][0] and odd['host="b"'][0] == float("inf"))
        self.assertEqual(families["backwards"]["samples"], {})
        self.assertEqual(families["_9lives"]["samples"], {None: (9, T)})
        self.assertEqual(families["gr__n"]["samples"], {'host="ü"': (1, T)})
        self.assertEqual(families["net_in_rate"]["samples"], {'host="c",if_name="x",if_name_="a\\"b\\\\c",if_name__="y"': (1, T)})
        other = [f for f in families if f.startswith("net_in_rate_")]
        self.assertEqual([families[f]["samples"] for f in other], [{'host="c"': (2, T)}])

    def test_token(self):
        self.assertEqual(self.server.get("/metrics", token=False).status, 401)
        self.assertEqual(self.server.post("/metrics", "{}").status, 405)


@unittest.skipUnless(shutil.which("prometheus"), "Prometheus is not installed: only the parser above has read the text")
class Prometheus(Case):
    """A Prometheus scrapes the server of a live file and returns the written value."""

    @classmethod
    def write(cls, folder):
        cls.writer = Writer(f"{folder}/a.sonde")
        cls.writer.metric("steps_total", "counter", "-", "Steps.")
        cls.writer.points("steps_total", {"host": "a"}, [(time.time(), 41)])
        cls.writer.points("loss", {"host": "a", "rank": "3"}, [(time.time(), 0.25)])
        cls.writer.sync()
        cls.addClassCleanup(cls.writer.close)

    def test_scrape(self):
        place = tempfile.mkdtemp(prefix="sonde-prometheus-")
        self.addCleanup(shutil.rmtree, place)
        with open(f"{place}/token", "w") as f:
            f.write(TOKEN)
        with open(f"{place}/config.yml", "w") as f:
            json.dump({"scrape_configs": [{"job_name": "sonde", "scrape_interval": "200ms", "scrape_timeout": "200ms",
                                           "authorization": {"credentials_file": f"{place}/token"},
                                           "static_configs": [{"targets": [f"127.0.0.1:{self.server.port}"]}]}]}, f)
        with open(f"{place}/log", "w") as log:
            process = subprocess.Popen(["prometheus", f"--config.file={place}/config.yml", f"--storage.tsdb.path={place}/data",
                                        "--web.listen-address=127.0.0.1:0", "--log.level=debug"], stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)

        def said(pattern):
            with open(f"{place}/log") as f:
                return re.search(pattern, f.read())

        def wait(condition, words):
            def look():
                self.assertIsNone(process.poll(), "Prometheus has ended")
                return condition()
            return until(look, words)

        port = wait(lambda: own_port(process.pid), "Prometheus listens")

        def asked(query):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})) as answer:
                    return json.load(answer)["data"]["result"]
            except OSError:
                return None
        got = wait(lambda: asked("steps_total"), "a scrape")
        self.assertEqual((got[0]["metric"]["host"], got[0]["value"][1]), ("a", "41"))
        self.writer.points("steps_total", {"host": "a"}, [(time.time(), 42)])
        self.writer.sync()
        wait(lambda: asked("steps_total == 42"), "the next value")
        self.assertEqual(asked("loss")[0]["metric"]["rank"], "3")
        self.assertIsNone(said("Append failed|unexpected"))


def own_port(pid):
    """Returns the port on which the process listens."""
    inodes = set()
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{fd}"))
            inodes |= {found.group(1)} if found else set()
    except OSError:
        return None
    with open("/proc/net/tcp") as f:
        for line in f.readlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in inodes:
                return int(words[1].split(":")[1], 16)
    return None


if __name__ == "__main__":
    unittest.main()
