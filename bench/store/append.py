"""Compares the speed of appending: bench_store in turn with Prometheus' own in-process bench
(promtool tsdb bench write)."""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from peers import report, say  # noqa: E402

BENCH = os.path.join(os.environ["SONDE_BUILD"], "bench/store/bench_store")
ROUNDS, SERIES, SCRAPES = 3, 1000, 6000


def prometheus_per_s():
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        series = os.path.join(folder, "series.json")
        with open(series, "w") as f:
            for i in range(SERIES):
                f.write(json.dumps({"__name__": f"metric_{i % 50}", "host": "n1", "series": str(i)}) + "\n")
        out = subprocess.run(["promtool", "tsdb", "bench", "write", f"--out={folder}/data", f"--metrics={SERIES}", f"--scrapes={SCRAPES}", series],
                             check=True, capture_output=True, text=True)
        return float(re.search(r"samples/sec: (\S+)", out.stdout + out.stderr).group(1))


def ours():
    figures = {}
    for what in ("rows", "points"):
        for line in subprocess.run([BENCH, what], check=True, capture_output=True, text=True).stdout.splitlines():
            row = json.loads(line)
            if row["metric"].startswith("append_"):
                figures[row["metric"]] = row["value"]
    return figures


def main():
    if not shutil.which("promtool"):
        say("promtool is not installed; skipped")
        return
    rounds = [(ours(), prometheus_per_s() / 1e6) for _ in range(ROUNDS)]
    theirs = statistics.median(r[1] for r in rounds)
    for metric in rounds[0][0]:
        report("store", metric, round(statistics.median(r[0][metric] for r in rounds), 1), "M values/s", "prometheus", round(theirs, 2))


main()
