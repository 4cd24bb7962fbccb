"""Measures the time from the start of `sonde replay` until it has answered its first query, with
recordings of 1, 10 and 100 GiB, one file a GiB, as killed writers leave them: the names of the
metrics (`replay_up`) and, of 1 GiB, a window of 300 s at a random place (`replay_window_up`). For
comparison, it measures an empty recording, which shows the cost of starting a process and a server.

SONDE_BENCH_GIB files are written (2 if unset). The others are hard links to them, because sonde
reads each anew; so without a large disk only the page cache is shared. `cold_ms` is measured with
no file in the page cache."""

import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from peers import report, say  # noqa: E402
from served import evict  # noqa: E402

BUILD = os.environ["SONDE_BUILD"]
SONDE, WRITE = os.path.join(BUILD, "sonde"), os.path.join(BUILD, "bench/store/bench_store")
WRITTEN, SIZES, ROUNDS, WINDOW_S = int(os.environ.get("SONDE_BENCH_GIB", "2")), (1, 10, 100), 5, 300
# The time of the points of bench_store's file.
START, SECONDS = 1_700_000_000, 1_160_000


def names():
    return "/api/suggest?type=metrics"


def window():
    start = START + random.randrange(SECONDS - WINDOW_S)
    return f"/api/query?start={start}&end={start + WINDOW_S - 1}&m=avg:1s-avg:metric"


def up_ms(path, question, least_bytes):
    """Measures from the start of the process to the end of the answer."""
    began = time.monotonic()
    process = subprocess.Popen([SONDE, "replay", path], stderr=subprocess.PIPE, text=True)
    try:
        url, token = re.search(r"(http://\S+)/\?token=(\S+)", process.stderr.readline()).groups()
        request = urllib.request.Request(url + question(), headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            if len(answer.read()) < least_bytes:
                raise RuntimeError("the answer is too short")
        return (time.monotonic() - began) * 1000
    finally:
        process.terminate()
        process.wait(60)
        process.stderr.close()


def measure(metric, folder, small, question, least_bytes, gib):
    evict(folder)
    cold_ms = up_ms(folder, question, least_bytes)
    up_ms(folder, question, least_bytes)
    rounds = [(up_ms(folder, question, least_bytes), up_ms(small, names, len("[]"))) for _ in range(ROUNDS)]
    report("query", metric, round(statistics.median(ours for ours, _ in rounds), 1), "ms",
           "empty_recording", round(statistics.median(theirs for _, theirs in rounds), 1), gib=gib, gib_written=min(gib, WRITTEN), cold_ms=round(cold_ms, 1))


def main():
    folder = tempfile.mkdtemp(prefix="sonde-bench-")
    try:
        free = shutil.disk_usage(folder).free
        if free < (WRITTEN + 4) << 30:
            say(f"replay_up: {folder} has no room for {WRITTEN} GiB, skipped")
            return
        large, small = os.path.join(folder, "large"), os.path.join(folder, "small")
        os.mkdir(large)
        os.mkdir(small)
        subprocess.run([SONDE, "run", "-q", "-l", "1", "--record", small, "--", "true"], check=True)
        for gib in SIZES:
            for i in range(len(os.listdir(large)), gib):
                path = os.path.join(large, f"node{i}.sonde")
                if i < WRITTEN:
                    subprocess.run([WRITE, "write", path], check=True, stdout=subprocess.DEVNULL)
                else:
                    os.link(os.path.join(large, f"node{i % WRITTEN}.sonde"), path)
            measure("replay_up", large, small, names, len('["metric"]'), gib)
            if gib == 1:
                measure("replay_window_up", large, small, window, WINDOW_S * len('"1700000000":1'), gib)
    finally:
        shutil.rmtree(folder)


main()
