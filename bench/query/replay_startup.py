"""Measures the time until `sonde replay` has answered its first query, with two recordings of 1 GiB
each, as killed writers leave them (SONDE_BENCH_GIB sets their number). For comparison, it measures
an empty recording, which shows the cost of starting a process and a server."""

import os
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

BUILD = os.environ["SONDE_BUILD"]
SONDE, WRITE = os.path.join(BUILD, "sonde"), os.path.join(BUILD, "bench/store/bench_store")
GIB, ROUNDS = int(os.environ.get("SONDE_BENCH_GIB", "2")), 5


def up_ms(path):
    """Measures from the start of the process to the end of an answer that needs all data."""
    began = time.monotonic()
    process = subprocess.Popen([SONDE, "replay", path], stderr=subprocess.PIPE, text=True)
    try:
        url, token = re.search(r"(http://\S+)/\?token=(\S+)", process.stderr.readline()).groups()
        request = urllib.request.Request(url + "/api/suggest?type=metrics", headers={"Authorization": f"Bearer {token}"})
        if urllib.request.urlopen(request, timeout=60).status != 200:
            raise RuntimeError("no answer")
        return (time.monotonic() - began) * 1000
    finally:
        process.terminate()
        process.wait(60)
        process.stderr.close()


def main():
    folder = tempfile.mkdtemp(prefix="sonde-bench-")
    try:
        free = shutil.disk_usage(folder).free
        if free < (GIB + 4) << 30:
            say(f"replay_up: {folder} has no room for {GIB} GiB, skipped")
            return
        large, small = os.path.join(folder, "large"), os.path.join(folder, "small")
        os.mkdir(large)
        os.mkdir(small)
        for i in range(GIB):
            subprocess.run([WRITE, "write", os.path.join(large, f"node{i}.sonde")], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([SONDE, "run", "-q", "-l", "1", "--record", small, "--", "true"], check=True)
        size = sum(os.stat(os.path.join(large, name)).st_blocks * 512 for name in os.listdir(large))
        first = up_ms(large)
        rounds = [(up_ms(large), up_ms(small)) for _ in range(ROUNDS)]
        report("query", "replay_up", statistics.median(ours for ours, _ in rounds), "ms", "empty_recording", statistics.median(theirs for _, theirs in rounds),
               gib_on_disk=round(size / (1 << 30), 2), first_ms=round(first, 1))
    finally:
        shutil.rmtree(folder)


main()
