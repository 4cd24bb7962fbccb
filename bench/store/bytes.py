"""Measures the size of a value on disk in sonde and in other databases, for the recording of a
node, a recording of GPUs and a random walk."""

import csv
import gzip
import os
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from peers import Missing, Prometheus, VictoriaMetrics, report, say  # noqa: E402

SONDE = os.path.join(os.environ["SONDE_BUILD"], "sonde")
DATA = os.environ.get("SONDE_DATA", "")


def node_recording():
    with gzip.open(f"{DATA}/node-10hz.csv.gz", "rt") as f:
        rows = list(csv.reader(f))
    names = rows.pop(0)
    return {name: [float(row[i]) for row in rows] for i, name in enumerate(names) if i}, [int(row[0]) for row in rows]


def gpu_recording():
    """Reads real samples of 8 GPUs: memory in bytes, memory and compute use in percent."""
    columns, stamps = {}, []
    with gzip.open(f"{DATA}/gpu-bdb/worker_0.csv.gz", "rt") as f:
        for row in csv.DictReader(f):
            stamp = int(float(row["timestamp"]) * 1e9) + 1_600_000_000_000_000_000
            if stamps and stamp <= stamps[-1]:
                continue
            stamps.append(stamp)
            for key in ("total-mem", "mem-util", "compute-util"):
                for gpu, value in enumerate(re.split(r",\s*", row[key])):
                    columns.setdefault(f"{key}.{gpu}", []).append(float(value))
    return columns, stamps


def random_walk():
    """Makes ten series of random walks in steps of 0.1, like temperatures, 100 ms apart."""
    source = random.Random(1)
    columns = {}
    for i in range(10):
        tenths = 400
        columns[f"walk.{i}"] = [(tenths := tenths + source.choice((-2, -1, 0, 0, 1, 2))) / 10 for _ in range(20000)]
    return columns, [1_700_000_000_000_000_000 + i * 100_000_000 for i in range(20000)]


def sonde_bytes(columns, stamps):
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        table = os.path.join(folder, "table.csv")
        with open(table, "w") as f:
            f.write(",".join(["ts_ns", *columns]) + "\n")
            for row in zip(stamps, *columns.values()):
                f.write(",".join([str(row[0]), *(repr(v) for v in row[1:])]) + "\n")
        out = os.path.join(folder, "out")
        subprocess.run([SONDE, "import", "--format", "wide-csv", table, "-o", out], check=True, stdout=subprocess.DEVNULL)
        return sum(os.path.getsize(os.path.join(out, name)) for name in os.listdir(out) if name.endswith(".sonde"))


def peer_bytes(peer_class, columns, stamps):
    with peer_class() as peer:
        if peer_class is Prometheus:
            peer.load(columns, stamps)
        else:
            peer.start()
            peer.load(columns, stamps)
        return peer.stored_bytes()


def main():
    for name, source in (("node", node_recording), ("gpu", gpu_recording), ("walk", random_walk)):
        try:
            columns, stamps = source()
        except FileNotFoundError as e:
            say(f"no recording for '{name}' ({e.filename}); skipped")
            continue
        values = len(stamps) * len(columns)
        ours = sonde_bytes(columns, stamps) / values
        for peer_class in (VictoriaMetrics, Prometheus):
            try:
                theirs = peer_bytes(peer_class, columns, stamps) / values
            except Missing as e:
                say(f"{e} is not installed; skipped")
                continue
            report("store", f"bytes_per_value_{name}", round(ours, 4), "B", peer_class.__name__.lower(), round(theirs, 4))


main()
