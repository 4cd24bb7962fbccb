"""A program's emitted values are in the answer to the next query, from any client and in any form:
50 of 50 times, without a delay."""

import pathlib
import sys

from program import Program, main
from place import SONDE
import waiting

TIMES = 50

# How a program stops another process.
WAITING = f"""
sys.path.insert(0, {str(pathlib.Path(waiting.__file__).parent)!r})
from waiting import continue_process, stop_process
"""

# The beginning of all programs here.
BEGIN = f"""
import json, os, subprocess, sys, threading
import sonde
from sonde import AnalysisClient, Telemetry

TIMES = {TIMES}
client = AnalysisClient()
client.connect()
telemetry = Telemetry()

def values(found):
    return [value for series in found for _, value in series]

def report(name, right):
    print(f"{{name}} {{sum(right)}}/{{len(right)}}", flush=True)
"""


class ReadBack(Program):
    def right(self, text, names, **how):
        """Runs the program, which counts how often each kind of query returns its value."""
        said = self.run_it(BEGIN + text, **how).splitlines()
        self.assertEqual(said, [f"{name} {TIMES}/{TIMES}" for name in names], self.said)


class OwnPoints(ReadBack):
    def test_add_data(self):
        self.right("""
def last(metric):
    found = client.get_data(metric)
    return found and list(found[0]["dps"].values())[-1]

right = []
for i in range(TIMES):
    telemetry.add_data("data", i)
    right.append(last("data") == i)
report("get_data", right)

right = []
for i in range(TIMES):
    telemetry.add_data("queried", i)
    right.append(values(client.query("queried")) == list(range(i + 1)))
report("query", right)

right = []
for i in range(TIMES):
    telemetry.add_data("peak", i)
    right.append(values(client.peaks("peak")) == [i])
report("peaks", right)

right = []
for i in range(TIMES):
    telemetry.add_data(f"named.{i}", i)
    right.append(f"named.{i}" in client.get_metrics())
report("get_metrics", right)
        """, ["get_data", "query", "peaks", "get_metrics"])

    def test_every_kind_of_emitting(self):
        self.right("""
gauge, cell, counter, total = sonde.gauge("gauge"), sonde.gauge("cell"), sonde.counter("counter"), sonde.counter("total")
group = sonde.group([sonde.gauge("left"), sonde.gauge("right")])
ways = {name: [] for name in ("emit", "gauge", "set", "counter", "add", "row", "log", "span", "open", "annotation")}
for i in range(TIMES):
    sonde.emit("by.name", i)
    ways["emit"].append(values(client.query("by.name"))[-1:] == [i])
    gauge(i)
    ways["gauge"].append(values(client.query("gauge"))[-1:] == [i])
    cell.set(i)
    ways["set"].append(values(client.query("cell"))[-1:] == [i])
    counter.emit(i)
    ways["counter"].append(values(client.query("counter"))[-1:] == [i])
    total.add(2)
    ways["add"].append(values(client.query("total"))[-1:] == [2 * i + 2])
    group(i, -i)
    ways["row"].append(values(client.query("left"))[-1:] + values(client.query("right"))[-1:] == [i, -i])
    sonde.log({"loss": i}, step=i)
    ways["log"].append(values(client.query("loss"))[-1:] == [i])
    with sonde.span("epoch", number=i):
        found = client.spans("epoch", tags={"number": i})
        ways["open"].append(len(found) == 1 and "end_ns" not in found[0])
    found = client.spans("epoch", tags={"number": i})
    ways["span"].append(len(found) == 1 and "end_ns" in found[0])
    sonde.annotate(f"note {i}")
    ways["annotation"].append([a["text"] for a in client.annotations()][-1:] == [f"note {i}"])
for name, right in ways.items():
    report(name, right)
        """, ["emit", "gauge", "set", "counter", "add", "row", "log", "span", "open", "annotation"])

    def test_a_recording_of_the_running_job(self):
        self.right("""
here = AnalysisClient(os.path.dirname(os.environ["SONDE_SOCKET"]))
total, right = sonde.counter("total"), []
for i in range(TIMES):
    telemetry.add_data("data", i)
    total.add()
    right.append(values(here.query("data")) == list(range(i + 1)) and values(here.query("total"))[-1:] == [i + 1])
report("folder", right)
        """, ["folder"])

    def test_watch(self):
        """Each point arrives once, in order; the first one too, although the watch has only just
        begun."""
        self.right("""
seen, all_seen = [], threading.Event()
def take(series, time_ns, value):
    seen.append(value)
    if len(seen) == TIMES:
        all_seen.set()
watch = client.watch("watched", None, take)
for i in range(TIMES):
    telemetry.add_data("watched", i)
all_seen.wait(60)
watch.stop()
report("watch", [value == i for i, value in enumerate(seen)])
        """, ["watch"])

    def test_dump(self):
        """The dump contains the last point before it; a program that ends right after a point loses
        nothing."""
        folder = self.root / "dumped"
        folder.mkdir()
        text = """
import pathlib
right = []
for i in range(TIMES):
    telemetry.add_data("data", i)
    answer = client.db_dump()
    (path,) = pathlib.Path(sys.argv[1]).iterdir()
    right.append(all(a["result"]["status"] == "success" for a in answer) and values(AnalysisClient(path).query("data")) == list(range(i + 1)))
report("db_dump", right)
        """
        self.write(BEGIN + text)
        result = self.sonde("run", "--quiet", "-l", 1, "--dump-dir", folder, "--", sys.executable, self.program, folder)
        self.assertEqual(result.stdout, f"db_dump {TIMES}/{TIMES}\n", result.stderr)


class Others(ReadBack):
    def test_command_that_the_program_starts(self):
        """`sonde query` opens the file itself; it finds the points and the cells of the program
        that has started it, also through a shell."""
        self.right(f"""
import csv, io
def ask(metric, *, shell=False):
    command = [{SONDE!r}, "query", "--csv", metric]
    said = subprocess.run("; ".join([" ".join(command), "true"]) if shell else command, shell=shell, capture_output=True, text=True)
    return [float(row["value"]) for row in csv.DictReader(io.StringIO(said.stdout))]

gauge, total = sonde.gauge("gauge"), sonde.counter("total")
points, cells = [], []
for i in range(TIMES):
    gauge(i)
    total.add()
    points.append(ask("gauge") == list(range(i + 1)))
    cells.append(ask("total", shell=i % 2 == 1)[-1:] == [i + 1])
report("points", points)
report("cells", cells)
        """, ["points", "cells"])

    def test_another_process(self):
        """Values that a process has emitted before it prints a line are in another one's answer."""
        self.right("""
child = subprocess.Popen([sys.executable, "-c", '''
import sys
import sonde
gauge = sonde.gauge("told", tags={"rank": 1})
for line in sys.stdin:
    gauge(int(line))
    print("emitted", flush=True)
'''], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
right = []
for i in range(TIMES):
    print(i, file=child.stdin, flush=True)
    child.stdout.readline()
    right.append(values(client.query("told")) == list(range(i + 1)))
child.stdin.close()
child.wait()
report("told", right)
        """, ["told"])

    def test_a_process_that_has_just_begun(self):
        """The process emits its first point right after its HELLO, and has ended before the
        query."""
        self.right("""
right = []
for i in range(TIMES):
    if os.fork() == 0:
        sonde.gauge("first", tags={"number": i})(i)
        os._exit(0)
    os.wait()
    right.append(values(client.query(metric="first", tags={"number": i})) == [i])
report("first", right)
        """, ["first"])

    def test_threads_that_ask_at_once(self):
        self.right("""
right = []
def work(number):
    gauge = sonde.gauge("threads", tags={"number": number})
    for i in range(TIMES // 5):
        gauge(i)
        right.append(values(client.query(metric="threads", tags={"number": number})) == list(range(i + 1)))
threads = [threading.Thread(target=work, args=(n,)) for n in range(5)]
for t in threads: t.start()
for t in threads: t.join()
report("threads", right)
        """, ["threads"])

    def test_a_forked_child_asks_on(self):
        """The child uses the parent's client, which has connections to aggregator and agent;
        neither process reads the other's answers."""
        self.right("""
total, right = sonde.counter("total"), []
telemetry.add_data("data", -1)
values(client.query("data"))
for i in range(TIMES // 2):
    there, here = os.pipe()
    if os.fork() == 0:
        sonde.gauge("child", tags={"number": i})(i)
        sonde.counter("children").add()
        os.write(here, b"y" if values(client.query(metric="child", tags={"number": i})) == [i] and values(client.query("children"))[-1] == i + 1 else b"n")
        os._exit(0)
    total.add()
    right.append(values(client.query("total"))[-1:] == [i + 1])
    right.append(os.read(there, 1) == b"y")
    os.wait()
    os.close(there), os.close(here)
report("children", right)
        """, ["children"])


class Agents(ReadBack):
    """Both the agent and the program are children of the launcher."""

    FIND = """
def agents():
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            name = open(f"/proc/{pid}/comm").read().strip()
            parent = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if name == "sonde-agent" and parent == os.getppid():
            found.append(pid)
    return found
    """

    def test_one_that_stands_still_holds_up_no_question(self):
        """The answer contains all data of the file, and the incomplete drain is counted. When the
        agent continues, an answer contains all points."""
        said = self.run_it(BEGIN + self.FIND + WAITING + """
telemetry.add_data("data", 0)
print(values(client.query("data")))
(agent,) = agents()
stop_process(agent)
telemetry.add_data("data", 1)
answers = [values(client.query("data")) for _ in range(TIMES)]
def late():
    return json.loads(client._open().ask("/sonde/v1/status"))["drains"]["late"]
print(answers == [[0]] * TIMES, late() == TIMES)
continue_process(agent)
before = None
while values(client.query("data")) != [0, 1] or before != late():
    before = late()
telemetry.add_data("data", 2)
print(values(client.query("data")))
        """).splitlines()
        self.assertEqual(said, ["[0.0]", "True True", "[0.0, 1.0, 2.0]"])

    def test_one_that_is_replaced(self):
        """A query at the moment when the agent ends waits for the next agent, or is answered
        without it; afterwards nothing is missing."""
        said = self.run_it(BEGIN + self.FIND + """
import signal
total = sonde.counter("total")
for i in range(5):
    telemetry.add_data("data", 2 * i)
    (agent,) = agents()
    os.kill(agent, signal.SIGKILL)
    telemetry.add_data("data", 2 * i + 1)
    total.add()
    client.query("data")
    while len(agents()) != 1 or agents() == [agent]:
        pass
    while values(client.query("data")) != list(range(2 * i + 2)) or values(client.query("total"))[-1:] != [i + 1]:
        pass
right = []
for i in range(TIMES):
    telemetry.add_data("after", i)
    right.append(values(client.query("after")) == list(range(i + 1)))
report("after", right)
        """).splitlines()
        self.assertEqual(said, [f"after {TIMES}/{TIMES}"])


class Cost(ReadBack):
    def test_the_past_is_not_asked_for(self):
        said = self.run_it(BEGIN + """
import time
def requests():
    return json.loads(client._open().ask("/sonde/v1/status"))["drains"]["requests"]
telemetry.add_data("data", 1)
client.query("data")
before = requests()
for _ in range(TIMES):
    client.query("data", end=time.time() - 10)
    client.spans(end=time.time() - 10)
print(requests() - before)
for _ in range(TIMES):
    client.query("data")
print(requests() - before)
status = json.loads(client._open().ask("/sonde/v1/status"))["drains"]
stats = {s["metric"]: int(s["value"]) for s in json.loads(client._open().ask("/api/stats"))}
print([stats["sonde.drains"], stats["sonde.requests.drained"], stats["sonde.requests.drained_late"]] == [status["requests"], status["questions"], status["late"]])
        """).splitlines()
        self.assertEqual(said, ["0", str(TIMES), "True"])

    def test_cells_are_recorded_when_they_have_changed(self):
        """Queries alone add nothing to the recording: an untouched cell has only the points of the
        sampling rate."""
        said = self.run_it(BEGIN + """
total = sonde.counter("total")
total.add()
for _ in range(20 * TIMES):
    client.query("total")
found = values(client.query("total"))
print(set(found), len(found) < 10 * TIMES)
        """).splitlines()
        self.assertEqual(said, ["{1.0} True"])


if __name__ == "__main__":
    main()
