"""The same two questions over HTTP, asked of sonde, VictoriaMetrics and Prometheus with the same
data: 100 series × 5 minutes at 10 Hz, averages over 1 s, each series by itself and averaged over
all. wrk is the client for all three. sonde is asked twice: for a closed recording, and for one that
its agent has open and goes on writing (`http_each_live`, `http_all_live`). `first_ms` is the time
of the first of all the requests (for "all", the first after those for "each"): all three keep
something for those that follow."""

import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from peers import Missing, Prometheus, VictoriaMetrics, free_port, report, say  # noqa: E402

SONDE = os.path.join(os.environ["SONDE_BUILD"], "sonde")
TOKEN = "a-token-that-only-this-bench-knows"
SERIES, SECONDS, RATE_HZ = 100, 300, 10
START_NS = 1_700_000_000 * 1_000_000_000
CLIENTS = 64
SECONDS_EACH = int(os.environ.get("SONDE_BENCH_SECONDS", "3"))
SECONDS_CROWD = int(os.environ.get("SONDE_BENCH_CROWD_SECONDS", "30"))


def data():
    """Percentages with two decimals that wander, as utilisations do."""
    source = random.Random(7)
    columns = {}
    for i in range(SERIES):
        value, values = 50.0, []
        for _ in range(SECONDS * RATE_HZ):
            value = min(100.0, max(0.0, value + source.uniform(-2, 2)))
            values.append(round(value, 2))
        columns[("load", (("series", f"s{i:03}"),))] = values
    return columns, [START_NS + i * 1_000_000_000 // RATE_HZ for i in range(SECONDS * RATE_HZ)]


class Sonde:
    """A recording made through the agent, served by the aggregator."""
    live = False
    agent = None

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="sonde-bench-")
        self.port = free_port()
        self.process = None

    def load(self, columns, stamps):
        os.chmod(self.folder, 0o700)
        self.agent = subprocess.Popen([SONDE, "agent", f"--folder={self.folder}", "--telemetry-level=1"])
        socket_path = os.path.join(self.folder, "agent.sock")
        give_up = time.monotonic() + 10
        while not os.path.exists(socket_path):
            if time.monotonic() > give_up or self.agent.poll() is not None:
                raise RuntimeError("sonde agent does not come up")
            time.sleep(0.01)
        lines = "".join(f"load {v!r} {t // 1_000_000} series={tags[0][1]}\n" for (_, tags), values in columns.items() for t, v in zip(stamps, values))
        subprocess.run([SONDE, "put"], input=lines.encode(), env=os.environ | {"SONDE_SOCKET": socket_path}, check=True)
        if not self.live:
            self.end_agent()

    def end_agent(self):
        self.agent.terminate()
        self.agent.wait(30)
        self.agent = None

    def start(self):
        with open(os.path.join(self.folder, "token"), "w") as f:
            f.write(TOKEN + "\n")
        os.chmod(f.name, 0o600)
        self.process = subprocess.Popen([SONDE, "aggregator", f"--port={self.port}", f"--token-file={f.name}", "--", self.folder])
        give_up = time.monotonic() + 10
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=5).read()
                return
            except OSError:
                if time.monotonic() > give_up or self.process.poll() is not None:
                    raise RuntimeError("sonde aggregator does not come up")
                time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.terminate()
            self.process.wait(30)
        if self.agent:
            self.end_agent()
        shutil.rmtree(self.folder, ignore_errors=True)


class LiveSonde(Sonde):
    """The same while the agent has it open."""
    live = True


def sonde_urls(port):
    ask = f"http://127.0.0.1:{port}/api/query?start={START_NS // 10**9}&end={START_NS // 10**9 + SECONDS - 1}&token={TOKEN}&m="
    return {"each": ask + urllib.parse.quote("none:1s-avg:load"), "all": ask + urllib.parse.quote("avg:1s-avg:load")}


def prometheus_urls(port):
    # A range selector looks back: the bucket of OpenTSDB's second t is what lies behind t + 1 s.
    ask = (f"http://127.0.0.1:{port}/api/v1/query_range?start={START_NS // 10**9 + 1}&end={START_NS // 10**9 + SECONDS}&step=1&query=")
    return {"each": ask + urllib.parse.quote("avg_over_time(load[1s])"), "all": ask + urllib.parse.quote("avg(avg_over_time(load[1s]))")}


def milliseconds(text):
    number, unit = re.match(r"([\d.]+)(us|ms|s)", text).groups()
    return float(number) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit]


def wrk(url, clients, seconds):
    out = subprocess.run(["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "30s", "--latency", url],
                         check=True, capture_output=True, text=True).stdout
    percentiles = dict(re.findall(r"^\s+(50|99)%\s+(\S+)", out, re.M))
    errors = sum(map(int, re.findall(r"(?:connect|read|write|timeout) (\d+)", out))) + sum(map(int, re.findall(r"Non-2xx.*: (\d+)", out)))
    return {"median_ms": milliseconds(percentiles["50"]), "p99_ms": milliseconds(percentiles["99"]),
            "per_s": float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1)), "errors": errors}


def main():
    if not shutil.which("wrk"):
        say("wrk is not installed; skipped")
        return
    columns, stamps = data()
    results = {}
    for name, make, urls in (("sonde", Sonde, sonde_urls), ("sonde_live", LiveSonde, sonde_urls), ("victoriametrics", VictoriaMetrics, prometheus_urls), ("prometheus", Prometheus, prometheus_urls)):
        try:
            with make() as server:
                if isinstance(server, VictoriaMetrics):
                    server.start()
                    server.load(columns, stamps)
                else:
                    server.load(columns, stamps)
                    server.start()
                for question, url in urls(server.port).items():
                    began = time.monotonic()
                    body = urllib.request.urlopen(url, timeout=60).read()
                    first_ms = round((time.monotonic() - began) * 1e3, 2)
                    results[name, question] = wrk(url, 1, SECONDS_EACH) | {"bytes": len(body), "first_ms": first_ms}
                    if name == "sonde":
                        crowd = wrk(url, CLIENTS, SECONDS_CROWD)
                        report("query", f"http_{question}_{CLIENTS}_clients", crowd["per_s"], "answers/s", p99_ms=crowd["p99_ms"], errors=crowd["errors"])
        except Missing as e:
            say(f"{e} is not installed; skipped")
    for (name, question), theirs in results.items():
        ours = results["sonde", question]
        if name in ("sonde", "sonde_live"):
            report("query", f"http_{question}{name.removeprefix('sonde')}", theirs["median_ms"], "ms", bytes=theirs["bytes"], first_ms=theirs["first_ms"],
                   errors=theirs["errors"])
        else:
            report("query", f"http_{question}", ours["median_ms"], "ms", name, theirs["median_ms"], bytes=theirs["bytes"], first_ms=theirs["first_ms"],
                   errors=theirs["errors"])


main()
