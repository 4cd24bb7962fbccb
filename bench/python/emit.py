"""Measures the cost of a call in a Python program: by handle, by name, and at level 0. For
comparison, it measures prometheus_client's gauge, and an HTTP POST per point.

The program runs under `sonde run`. A round runs every loop once, so that disturbances affect all
loops. The result is the median of the rounds. Figures include the loop itself, except for `net`,
from which the time of an empty loop in the same rounds is subtracted.
"""

import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from peers import report  # noqa: E402

BUILD = os.environ["SONDE_BUILD"]
ROUNDS, CALLS, POSTS = 31, 20000, 50


def rounds_of(loops):
    """Runs the loops; returns the median nanoseconds per call of each."""
    times = {name: [] for name in loops}
    for _ in range(ROUNDS):
        for name, (loop, calls) in loops.items():
            r = range(calls)
            start = time.perf_counter_ns()
            loop(r)
            times[name].append((time.perf_counter_ns() - start) / calls)
            time.sleep(0.002)  # the agent drains the ring meanwhile
    return {name: statistics.median(t) for name, t in times.items()}


def loops():
    import contextvars
    import threading

    import sonde

    variable = contextvars.ContextVar("variable", default=None)
    telemetry = sonde.Telemetry()
    above = sonde.gauge("above", level=4)
    loss, steps = sonde.gauge("loss"), sonde.counter("steps_total")
    two = sonde.group([sonde.gauge("a"), sonde.gauge("b")])

    def empty(r):
        for _ in r:
            pass

    def handle(r):
        for _ in r:
            loss(0.5)

    def handle_above(r):
        for _ in r:
            above(0.5)

    def count(r):
        for _ in r:
            steps()

    def name(r):
        emit = sonde.emit
        for _ in r:
            emit("named", 0.5)

    def dragon(r):
        for _ in r:
            telemetry.add_data("dragon", 0.5)

    def dragon_above(r):
        for _ in r:
            telemetry.add_data("dragon", 0.5, telemetry_level=4)

    def tagged(r):
        emit = sonde.emit
        for _ in r:
            emit("tagged", 0.5, rank=3)

    def group(r):
        for _ in r:
            two(0.5, 0.25)

    def log(r):
        for i in r:
            sonde.log({"a": 0.5, "b": 0.25}, step=i)

    def span(r):
        for _ in r:
            with sonde.span("s"):
                pass

    # The floor of a span: the interpreter's time for a new object in a with statement, and for the
    # context variable that makes spans nest correctly.
    def with_block(r):
        for _ in r:
            with threading.Lock():
                pass

    def context_set(r):
        for _ in r:
            variable.set(None)

    found = {"empty_loop": (empty, CALLS), "handle": (handle, CALLS), "handle_above": (handle_above, CALLS), "counter": (count, CALLS), "name": (name, CALLS), "name_and_tag": (tagged, CALLS),
             "add_data": (dragon, CALLS), "add_data_above": (dragon_above, CALLS),
             "group_of_2": (group, CALLS), "log_of_2": (log, CALLS), "span": (span, CALLS // 20),
             "with_block": (with_block, CALLS // 20), "context_set": (context_set, CALLS // 20)}
    try:
        import prometheus_client
    except ImportError:
        print("bench: prometheus_client is not installed (python3-prometheus-client): left out", file=sys.stderr)
    else:
        gauge = prometheus_client.Gauge("loss", "a loss")

        def prometheus(r):
            for _ in r:
                gauge.set(0.5)

        found["prometheus_client"] = (prometheus, CALLS)
    if os.environ.get("SONDE_URL"):
        address = urllib.parse.urlsplit(os.environ["SONDE_URL"])
        connection = http.client.HTTPConnection(address.hostname, address.port)
        with open(os.environ["SONDE_TOKEN_FILE"]) as f:
            headers = {"Authorization": "Bearer " + f.read().strip(), "Content-Type": "application/json"}

        def post(r):
            for _ in r:
                connection.request("POST", "/api/put", json.dumps({"metric": "posted", "timestamp": int(time.time()), "value": 0.5}), headers)
                connection.getresponse().read()

        found["http_post"] = (post, POSTS)
    return found


def main():
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        environment = os.environ | {"TMPDIR": folder, "PYTHONPATH": os.path.join(BUILD, "bindings/python")}
        for level in (1, 0):
            command = [os.path.join(BUILD, "sonde"), "run", "-q", "-l", str(level), "--no-record", "--", sys.executable, __file__, "inside"]
            done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
            ns = json.loads(done.stdout)
            peers = {name: ns.pop(name) for name in ("prometheus_client", "http_post") if name in ns}
            loop = ns.pop("empty_loop")
            report("python", f"empty_loop_level_{level}", round(loop, 1), "ns")
            floor = ns.pop("with_block") + ns.pop("context_set") - loop
            peers_of = {"handle": peers, "name": peers, "span": {"with statement": floor}} if level else {}
            for name in ns:
                for peer, value in peers_of.get(name, {}).items() or [(None, None)]:
                    report("python", f"{name}_level_{level}", round(ns[name], 1), "ns", peer, value and round(value, 1), net=round(ns[name] - loop, 1))


if sys.argv[1:] == ["inside"]:
    print(json.dumps(rounds_of(loops())))
elif os.path.isdir(os.path.join(BUILD, "bindings/python/sonde")):
    main()
else:
    print("bench: the Python package was not built (python3-dev): left out", file=sys.stderr)
