"""How long a program waits for its own write: from before it emits a point to the answer that has it, by query() and by `sonde query` as a subprocess.

Beside it, in the same rounds, what such a question costs at least: the same client's request that reads no data (`/healthz`), and a subprocess that does nothing
(`sonde version`). `questions` is how many it takes until the point is in the answer: 1 when writes are read back.
"""

import csv
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from peers import report  # noqa: E402

BUILD = os.environ["SONDE_BUILD"]
SONDE = os.path.join(BUILD, "src/cli/sonde")
ROUNDS, COMMANDS = 2000, 50


def timed(function):
    start = time.perf_counter_ns()
    result = function()
    return time.perf_counter_ns() - start, result


def by_command(metric):
    said = subprocess.run([SONDE, "query", "--csv", metric], capture_output=True, text=True).stdout
    return [float(row["value"]) for row in csv.DictReader(io.StringIO(said))]


def measure(emit, last, nothing, rounds):
    """Nanoseconds of each write with its answer, of each bare request, and questions a write."""
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


def program():
    import sonde

    socket = os.environ.pop("SONDE_SOCKET")
    outside = sonde.AnalysisClient()  # one that knows no agent
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
            except sonde.ClientError:  # not there yet
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
    folder = tempfile.mkdtemp(prefix="sonde-bench-")
    env = os.environ | {"PYTHONPATH": os.path.join(BUILD, "bindings/python"), "SONDE_RUNS": folder, "TMPDIR": folder}
    done = subprocess.run([SONDE, "run", "--quiet", "-l", "1", "--no-record", "--", sys.executable, __file__, "program"], env=env, stdout=subprocess.PIPE, text=True)
    subprocess.run(["rm", "-r", folder])
    done.check_returncode()
    for name, (own, bare, questions) in json.loads(done.stdout).items():
        peer = "bare command" if name == "command" else "bare HTTP request"
        for cut, words in ((50, "p50"), (99, "p99")):
            value, floor = (statistics.quantiles(times, n=100)[cut - 1] / 1000 for times in (own, bare))
            report("readback", f"own {name} to answer, {words}", round(value, 1), "us", peer, round(floor, 1), questions=round(questions, 3))


if __name__ == "__main__":
    program() if sys.argv[1:] == ["program"] else main()
