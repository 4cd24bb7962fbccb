"""The servers for the benches of HTTP queries: sonde with a closed recording, sonde with a
recording that its agent is still writing, VictoriaMetrics without and with its cache of answers,
and Prometheus. Also the addresses of the same queries in each server's language, and the clients:
wrk, and one for a single answer."""

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request

from peers import Prometheus, VictoriaMetrics, free_port, write_openmetrics

SONDE = os.path.join(os.environ["SONDE_BUILD"], "sonde")
TOKEN = "a-token-that-only-this-bench-knows"


def tag_words(tags):
    return " ".join(f"{key}={value}" for key, value in tags)


class Sonde:
    """`sonde replay` of a closed recording, which an agent has made."""
    live = False
    command = "replay"
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
        # The points are in the order of time, as a program emits them.
        lines = "".join(f"load {values[i]!r} {t // 1_000_000} {tag_words(tags)}\n" for i, t in enumerate(stamps) for (_, tags), values in columns.items())
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
        self.process = subprocess.Popen([SONDE, self.command, f"--port={self.port}", f"--token-file={f.name}", "--", self.folder])
        give_up = time.monotonic() + 10
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=5).read()
                return
            except OSError:
                if time.monotonic() > give_up or self.process.poll() is not None:
                    raise RuntimeError("sonde aggregator does not come up")
                time.sleep(0.02)

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(30)
        self.process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        if self.agent:
            self.end_agent()
        shutil.rmtree(self.folder, ignore_errors=True)


class LiveSonde(Sonde):
    """A job's server: an aggregator that serves a recording which the agent still has open."""
    live = True
    command = "aggregator"


class ImportedSonde(Sonde):
    """`sonde replay` of recordings that `sonde import` has made, one for each host."""

    def load(self, columns, stamps):
        text = os.path.join(self.folder, "openmetrics")
        write_openmetrics(text, columns, stamps)
        subprocess.run([SONDE, "import", "--format=openmetrics", f"--output={self.folder}", text], check=True, stdout=subprocess.DEVNULL)
        os.remove(text)
        os.chmod(self.folder, 0o700)


class CachingVictoriaMetrics(VictoriaMetrics):
    """With its cache of answers."""

    def command(self):
        return [word for word in super().command() if word != "-search.disableCache"]


def evict(folder):
    """Writes the files of a folder to the disk and drops them from the page cache."""
    for where, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(where, name), "rb") as f:
                os.fsync(f.fileno())
                os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def percentages(source, count):
    """Returns slowly varying percentages with two decimals, like utilisations."""
    value, values = 50.0, []
    for _ in range(count):
        value = min(100.0, max(0.0, value + source.uniform(-2, 2)))
        values.append(round(value, 2))
    return values


def sonde_query(m, start, seconds):
    """Returns the address of a query in [start, start + seconds)."""
    return f"/api/query?start={start}&end={start + seconds - 1}&token={TOKEN}&m={urllib.parse.quote(m)}"


def prometheus_query(query, start, seconds, step):
    """Returns the address of the same. A range selector looks back, so the bucket that begins at t
    in OpenTSDB is the range before t + step."""
    return f"/api/v1/query_range?start={start + step}&end={start + seconds}&step={step}&query={urllib.parse.quote(query)}"


def sonde_path(question, start, seconds, panel=None):
    """Returns the address of a query for the metric `load` in [start, start + seconds): averages
    over 1 s of each series ("each"; only of the panel, if given) or over all series ("all"), or
    maxima over 60 s of each series ("maxima")."""
    query = {"each": "none:1s-avg:load", "all": "avg:1s-avg:load", "maxima": "none:60s-max:load"}[question]
    tags = "{panel=%s}" % panel if panel else ""
    return sonde_query(query + tags, start, seconds)


def prometheus_path(question, start, seconds, panel=None):
    load = 'load{panel="%s"}' % panel if panel else "load"
    step, query = {"each": (1, f"avg_over_time({load}[1s])"), "all": (1, f"avg(avg_over_time({load}[1s]))"),
                   "maxima": (60, f"max_over_time({load}[60s])")}[question]
    return prometheus_query(query, start, seconds, step)


SERVERS = (("sonde", Sonde, sonde_path), ("sonde_live", LiveSonde, sonde_path),
           ("victoriametrics", VictoriaMetrics, prometheus_path), ("victoriametrics_cached", CachingVictoriaMetrics, prometheus_path),
           ("prometheus", Prometheus, prometheus_path))


def serve(server, columns, stamps):
    """Loads the data into a server and starts it, in the order that the server needs."""
    if isinstance(server, VictoriaMetrics):
        server.start()
        server.load(columns, stamps)
    else:
        server.load(columns, stamps)
        server.start()


def answer_ms(port, path):
    """Returns the time until an answer is complete. The client costs little: urllib's took a third
    of sonde's first answers."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        buffer = bytearray(1 << 20)
        began = time.monotonic()
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n".encode())
        size = connection.recv_into(buffer)
        if not buffer.startswith(b"HTTP/1.1 200 "):
            raise RuntimeError(f"{path}: {bytes(buffer[:size])}")
        while size:
            size = connection.recv_into(buffer)
        return (time.monotonic() - began) * 1e3


def milliseconds(text):
    number, unit = re.match(r"([\d.]+)(us|ms|s)", text).groups()
    return round(float(number) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit], 3)


# A script for wrk: each request takes the next path of the file, and after the last the first.
PATHS_IN_TURN = """
local paths = {}
for path in io.lines(os.getenv("SONDE_BENCH_PATHS")) do paths[#paths + 1] = path end
local turn = 0
request = function()
    turn = turn % #paths + 1
    return wrk.format("GET", paths[turn])
end
"""


def wrk(port, paths, clients, seconds):
    """Requests the paths in turn, with this number of parallel clients."""
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        script, list_of_paths = os.path.join(folder, "turn.lua"), os.path.join(folder, "paths")
        with open(script, "w") as f:
            f.write(PATHS_IN_TURN)
        with open(list_of_paths, "w") as f:
            f.write("\n".join(paths) + "\n")
        out = subprocess.run(["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "30s", "--latency", "-s", script, f"http://127.0.0.1:{port}"],
                             check=True, capture_output=True, text=True, env=os.environ | {"SONDE_BENCH_PATHS": list_of_paths}).stdout
    percentiles = dict(re.findall(r"^\s+(50|99)%\s+(\S+)", out, re.M))
    errors = sum(map(int, re.findall(r"(?:connect|read|write|timeout) (\d+)", out))) + sum(map(int, re.findall(r"Non-2xx.*: (\d+)", out)))
    return {"median_ms": milliseconds(percentiles["50"]), "p99_ms": milliseconds(percentiles["99"]),
            "per_s": float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1)), "errors": errors}
