"""Measures how long a million points take to become a table in Python: from a recording; over HTTP
from a server (`sonde replay`); and from a server whose series have no common time stamps, so that
it has to send all of them. For comparison, the same points come as JSON (http.client and json) and
become the same columns of numbers, as programs did before. A round does each once. The result is
the median of the rounds; `first` is the time in a program that has not read or imported anything
before. The bench also measures a query for one value."""

import array
import contextlib
import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from peers import report, say  # noqa: E402

BUILD = os.environ["SONDE_BUILD"]
SONDE, WRITE = os.path.join(BUILD, "sonde"), os.path.join(BUILD, "tests/conformance/make_store")
SERIES, POINTS, ROUNDS, JSON_ROUNDS = 10, 100_000, 21, 3
T = 1_700_000_000
sys.path[:0] = [os.path.join(BUILD, "bindings/python"), os.path.join(BUILD, "python-site")]


def record(path, apart_ns=0):
    """Records series whose points have the same time stamps, or time stamps `apart_ns` apart."""
    with subprocess.Popen([WRITE, path], stdin=subprocess.PIPE, text=True) as writer:
        for k in range(SERIES):
            value = 50.0
            for i in range(POINTS):
                value += (i * 7919 % 13 - 6) / 10
                writer.stdin.write(f"point load host=n{k} {(T * 10 + i) * 100_000_000 + k * apart_ns} {value:.1f}\n")
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
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder, contextlib.ExitStack() as ends:
        def serve(name, apart_ns):
            path = os.path.join(folder, name)
            record(path, apart_ns)
            server = ends.enter_context(subprocess.Popen([SONDE, "replay", path], stderr=subprocess.PIPE, text=True))
            ends.callback(server.terminate)
            return path, *re.search(r"(http://\S+)/\?token=(\S+)", server.stderr.readline()).groups()

        path, url, token = serve("together.sonde", 0)
        _, apart_url, apart_token = serve("apart.sonde", 1000)
        live = sonde.AnalysisClient(url, token=token)
        clients = {"recording": sonde.AnalysisClient(path), "live": live, "live_apart": sonde.AnalysisClient(apart_url, token=apart_token)}
        rounds = [{name: milliseconds(lambda c=client: table(c)) for name, client in clients.items()} for _ in range(ROUNDS)]
        peer = statistics.median(milliseconds(lambda: as_json(url, token)) for _ in range(JSON_ROUNDS))
        for name in clients:
            taken = [r[name] for r in rounds]
            report("python", f"million_points_{name}", round(statistics.median(taken), 2), "ms", "http+json", round(peer, 1), best=round(min(taken), 2), first=round(taken[0], 2))
        small = []
        for _ in range(300):
            began = time.perf_counter()
            live.query(metric="load", aggregator="max", downsample="0all-max")
            small.append((time.perf_counter() - began) * 1000)
        report("python", "one_value_live", round(statistics.median(small), 3), "ms")


main()
