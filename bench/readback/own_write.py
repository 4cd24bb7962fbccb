"""Measures the time until a program reads its own write: from the begin of the emitting call to the
end of the answer that has the point, by query() and by `sonde query` as a subprocess.

In the same rounds, the bench measures the minimum cost of such a query, for comparison: a request
of the same client that reads no data (`/healthz`), and a subprocess that does nothing (`sonde
version`). `questions` is the number of queries until the answer contains the point. It is 1 if the
first query after a write returns the point.

With SONDE_BENCH_DRAGON=yes, get_data() is also compared with that of the Dragon Telemetry Service;
tests/python/dragon_original.sh installs it (60 MB).
"""

import csv
import importlib
import io
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from peers import report, say  # noqa: E402

BUILD = os.environ.get("SONDE_BUILD", "")
SONDE = os.path.join(BUILD, "sonde")
ORIGINAL = pathlib.Path(__file__).parents[2] / "tests/python/dragon_original.sh"
ROUNDS, COMMANDS, DATA = 2000, 50, 200


def timed(function):
    start = time.perf_counter_ns()
    result = function()
    return time.perf_counter_ns() - start, result


def by_command(metric):
    said = subprocess.run([SONDE, "query", "--csv", metric], capture_output=True, text=True).stdout
    return [float(row["value"]) for row in csv.DictReader(io.StringIO(said))]


def measure(emit, last, nothing, rounds):
    """Measures in rounds; returns the nanoseconds of each write with its answer, the nanoseconds of
    each bare request, and the number of queries per write."""
    own, bare, questions = [], [], 0
    for i in range(rounds):
        start = time.perf_counter_ns()
        emit(i)
        questions += 1
        while last() != i:
            questions += 1
        own.append(time.perf_counter_ns() - start)
        bare.append(timed(nothing)[0])
    return own, bare, questions / rounds


def by_get_data(package, path):
    """Measures add_data() and get_data(), in the same way for sonde and for Dragon. get_data()
    returns the last point of a second."""
    telemetry = importlib.import_module(package)
    emitter, client = telemetry.Telemetry(), telemetry.AnalysisClient()
    client.connect(timeout=60)
    start = int(time.time())

    def last():
        found = client.get_data("own_write", start_time=start)
        points = found[0]["dps"] if found else {}
        return points[max(points, key=int)] if points else None

    own, _, questions = measure(lambda i: emitter.add_data("own_write", i), last, lambda: None, DATA)
    pathlib.Path(path).write_text(json.dumps([own, questions]))
    emitter.shutdown()


def percentiles(times):
    cuts = statistics.quantiles(times, n=100)
    return {"p50": round(cuts[49] / 1000, 1), "p99": round(cuts[98] / 1000, 1)}


def in_job(folder, *arguments):
    env = os.environ | {"PYTHONPATH": os.path.join(BUILD, "bindings/python"), "SONDE_RUNS": folder, "TMPDIR": folder}
    command = [SONDE, "run", "--quiet", "-l", "1", "--no-record", "--", sys.executable, __file__, *arguments]
    return subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout


def beside_dragon(folder):
    ours, theirs = (pathlib.Path(folder) / name for name in ("sonde.json", "dragon.json"))
    in_job(folder, "get_data", "sonde", ours)
    (own, questions), peer = json.loads(ours.read_text()), {}
    if os.environ.get("SONDE_BENCH_DRAGON") == "yes" and ORIGINAL.exists():
        subprocess.run([ORIGINAL, __file__, "get_data", "dragon.telemetry", theirs], stdout=sys.stderr)
    if theirs.exists():
        times, their_questions = json.loads(theirs.read_text())
        peer = percentiles(times)
        say(f"Dragon's answers had the point after {their_questions:.3f} questions")
    else:
        say("without the Dragon Telemetry Service: SONDE_BENCH_DRAGON=yes installs it")
    for words, value in percentiles(own).items():
        report("readback", f"add_data to get_data, {words}", value, "us", *(["dragon", peer[words]] if peer else []), questions=round(questions, 3))


def program():
    import sonde

    socket = os.environ.pop("SONDE_SOCKET")
    outside = sonde.AnalysisClient()  # a client that does not know the agent
    outside.connect()
    os.environ["SONDE_SOCKET"] = socket
    client = sonde.AnalysisClient()
    client.connect()
    gauge, total = sonde.gauge("loss"), sonde.counter("steps_total")
    added = iter(range(ROUNDS))

    def last(metric):
        def ask():
            try:
                found = client.query(metric, start=time.time() - 1)
            except sonde.ClientError:  # the metric does not exist yet
                return None
            return found[0].values[-1] if len(found) and len(found[0].values) else None
        return ask

    def nothing():
        outside._open().ask("/healthz")

    figures = {
        "point": measure(gauge, last("loss"), nothing, ROUNDS),
        "counter": measure(lambda i: total.add(1) if next(added) else total.add(0.5), lambda: round((last("steps_total")() or 0) - 0.5), nothing, ROUNDS // 4),
        "command": measure(gauge, lambda: (by_command("loss") or [None])[-1], lambda: subprocess.run([SONDE, "version"], capture_output=True), COMMANDS),
    }
    print(json.dumps(figures))


def main():
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        for name, (own, bare, questions) in json.loads(in_job(folder, "program")).items():
            peer, floor = "bare command" if name == "command" else "bare HTTP request", percentiles(bare)
            for words, value in percentiles(own).items():
                report("readback", f"own {name} to answer, {words}", value, "us", peer, floor[words], questions=round(questions, 3))
        beside_dragon(folder)


if __name__ == "__main__":
    if sys.argv[1:2] == ["get_data"]:
        by_get_data(*sys.argv[2:])
    elif sys.argv[1:] == ["program"]:
        program()
    else:
        main()
