"""Peers: the programs with which benches compare sonde. Each runs on a free loopback port, with its
data in its own folder.

A peer that is not installed raises Missing; the bench then prints a message and continues.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request


class Missing(Exception):
    """The peer is not installed."""


def say(text):
    print(f"bench: {text}", file=sys.stderr)


def report(bench, metric, value, unit, peer=None, peer_value=None, **more):
    """Prints a measurement as a line with a JSON object. `ratio` is value divided by peer_value."""
    line = {"bench": bench, "metric": metric, "value": value, "unit": unit}
    if peer is not None:
        line |= {"peer": peer, "peer_value": peer_value, "ratio": round(value / peer_value, 4) if peer_value else None}
    print(json.dumps(line | more), flush=True)


def folder_bytes(path):
    return sum(os.path.getsize(os.path.join(where, name)) for where, _, names in os.walk(path) for name in names)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def identity(column):
    """Returns the name of a column, in a form that all peers accept, and its tags. A column is
    "name" or ("name", {"tag": "value"})."""
    name, tags = column if isinstance(column, tuple) else (column, ())
    return re.sub(r"[^a-zA-Z0-9_]", "_", name), {"host": "n1"} | dict(tags)


def write_openmetrics(path, columns, stamps_ns):
    """Writes {column: [values]} as OpenMetrics, whose times are milliseconds here."""
    times = [f"{t // 1_000_000 / 1000:.3f}" for t in stamps_ns]
    with open(path, "w") as f:
        declared = None
        for column, values in columns.items():
            name, tags = identity(column)
            if name != declared:
                f.write(f"# TYPE {name} gauge\n")
                declared = name
            labels = ",".join(f'{key}="{value}"' for key, value in tags.items())
            f.writelines(f"{name}{{{labels}}} {v!r} {t}\n" for t, v in zip(times, values))
        f.write("# EOF\n")


class Server:
    """A peer that serves HTTP, used as a context."""

    program = ready_path = None

    def __init__(self):
        if not shutil.which(self.program):
            raise Missing(self.program)
        self.folder = tempfile.mkdtemp(prefix="sonde-bench-")
        self.port = free_port()
        self.process = None

    def command(self):
        raise NotImplementedError

    def start(self):
        log = open(os.path.join(self.folder, "log"), "ab")
        self.process = subprocess.Popen([self.program, *self.command()], stdout=log, stderr=log)
        give_up = time.monotonic() + 30
        while True:
            try:
                self.get(self.ready_path)
                return
            except OSError:
                if time.monotonic() > give_up or self.process.poll() is not None:
                    raise RuntimeError(f"{self.program} does not come up: {self.folder}/log")
                time.sleep(0.05)

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(30)
            self.process = None

    def get(self, path, body=None):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", data=body, timeout=600) as answer:
            return answer.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class VictoriaMetrics(Server):
    program = "victoria-metrics"
    ready_path = "/health"

    def command(self):
        return [f"-storageDataPath={self.folder}/data", f"-httpListenAddr=127.0.0.1:{self.port}", "-retentionPeriod=100y",
                "-search.disableCache"]

    def load(self, columns, stamps_ns):
        """Loads {column: [values]}. The peer stores time stamps in milliseconds."""
        stamps = [t // 1_000_000 for t in stamps_ns]
        lines = []
        for column, values in columns.items():
            name, tags = identity(column)
            lines.append(json.dumps({"metric": {"__name__": name} | tags, "values": values, "timestamps": stamps}))
        self.get("/api/v1/import", "\n".join(lines).encode())
        self.get("/internal/force_flush")
        self.get("/internal/force_merge")
        # The peer merges in the background. The bench waits until all rows are in parts on disk and
        # no merge is running.
        rows = len(columns) * len(stamps_ns)
        give_up = time.monotonic() + 60
        while time.monotonic() < give_up:
            metrics = self.get("/metrics").decode()
            stored = sum(int(v) for v in re.findall(r'^vm_rows\{type="storage/(?:small|big)"\} (\d+)', metrics, re.M))
            active = sum(int(v) for v in re.findall(r"^vm_active_merges\{.*\} (\d+)", metrics, re.M))
            if stored >= rows and not active:
                return
            time.sleep(0.2)
        raise RuntimeError("victoria-metrics did not merge its parts within a minute")

    def stored_bytes(self):
        """Returns the size of blocks and index, without caches. load() has waited until all rows
        are on disk, so the peer need not be stopped, which could make it panic."""
        return folder_bytes(f"{self.folder}/data/data") + folder_bytes(f"{self.folder}/data/indexdb")


class Prometheus(Server):
    program = "prometheus"
    ready_path = "/-/ready"

    def command(self):
        config = os.path.join(self.folder, "prometheus.yml")
        with open(config, "w") as f:
            f.write("global: {}\n")
        return [f"--config.file={config}", f"--storage.tsdb.path={self.folder}/data", "--storage.tsdb.retention.time=100y",
                f"--web.listen-address=127.0.0.1:{self.port}"]

    def load(self, columns, stamps_ns):
        """Makes blocks before start(). The peer stores time stamps in milliseconds."""
        text = os.path.join(self.folder, "openmetrics")
        write_openmetrics(text, columns, stamps_ns)
        subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", text, f"{self.folder}/data"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.remove(text)

    def stored_bytes(self):
        self.stop()
        return folder_bytes(f"{self.folder}/data")
