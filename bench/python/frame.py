"""One million points as a table in Python: of a recording, and of a server (`sonde replay`) over HTTP. Beside it: the same as JSON (http.client and json), made into the same columns
of numbers, which is what programs did before. A round does each once; the median of the rounds counts. And what a query of one value takes."""

import array
import http.client
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from peers import report, say  # noqa: E402

BUILD = os.environ["SONDE_BUILD"]
SONDE, WRITE = os.path.join(BUILD, "src/cli/sonde"), os.path.join(BUILD, "tests/conformance/make_store")
SERIES, POINTS, ROUNDS, JSON_ROUNDS = 10, 100_000, 21, 3
T = 1_700_000_000
sys.path[:0] = [os.path.join(BUILD, "bindings/python"), os.path.join(BUILD, "python-site")]


def record(path):
    with subprocess.Popen([WRITE, path], stdin=subprocess.PIPE, text=True) as writer:
        for k in range(SERIES):
            value = 50.0
            for i in range(POINTS):
                value += (i * 7919 % 13 - 6) / 10
                writer.stdin.write(f"point load host=n{k} {(T * 10 + i) * 100_000_000} {value:.1f}\n")
    if writer.returncode:
        raise RuntimeError("make_store failed")


def as_json(url, token):
    where = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname, where.port)
    body = json.dumps({"start": T, "queries": [{"metric": "load", "aggregator": "none"}]})
    connection.request("POST", "/sonde/v1/query", body, {"Authorization": f"Bearer {token}"})
    series = json.loads(connection.getresponse().read())["series"]
    connection.close()
    times, values = array.array("q"), array.array("d")
    for s in series:
        times.extend(s["t_ns"])
        values.extend(s["values"])
    return len(values)


def milliseconds(call):
    began = time.perf_counter()
    rows = call()
    taken = (time.perf_counter() - began) * 1000
    if rows != SERIES * POINTS:
        raise RuntimeError(f"{rows} points")
    return taken


def table(client):
    frame = client.frame("load")
    try:
        return frame.to_arrow().num_rows
    except ImportError:
        return sum(s.count for s in client.query("load"))


def main():
    import sonde

    if not os.path.exists(WRITE):
        say("frame: tests are not built, skipped")
        return
    folder = tempfile.mkdtemp(prefix="sonde-bench-")
    server = None
    try:
        path = os.path.join(folder, "n.sonde")
        record(path)
        server = subprocess.Popen([SONDE, "replay", path], stderr=subprocess.PIPE, text=True)
        url, token = re.search(r"(http://\S+)/\?token=(\S+)", server.stderr.readline()).groups()
        recorded, live = sonde.AnalysisClient(path), sonde.AnalysisClient(url, token=token)
        rounds = [(milliseconds(lambda: table(recorded)), milliseconds(lambda: table(live))) for _ in range(ROUNDS)]
        peer = statistics.median(milliseconds(lambda: as_json(url, token)) for _ in range(JSON_ROUNDS))
        for name, column in (("million_points_recording", 0), ("million_points_live", 1)):
            report("python", name, round(statistics.median(r[column] for r in rounds), 2), "ms", "http+json", round(peer, 1), best=round(min(r[column] for r in rounds), 2))
        small = []
        for _ in range(300):
            began = time.perf_counter()
            live.query(metric="load", aggregator="max", downsample="0all-max")
            small.append((time.perf_counter() - began) * 1000)
        report("python", "one_value_live", round(statistics.median(small), 3), "ms")
    finally:
        if server:
            server.terminate()
            server.wait(60)
            server.stderr.close()
        shutil.rmtree(folder)


main()
