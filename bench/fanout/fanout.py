"""Measures HTTP queries to many nodes, one after another. `sonde simulate` runs the nodes on this
machine, each with its own file and the real protocol.

all      avg:1s-avg:cpu_percent of the last 5 minutes at 1 Hz, averaged over all nodes: one series
         of 300 points
one      the same query for a single host: one series of 300 points
hosts    the same query for 100 hosts, without averaging over them: 100 series of 300 points
each     avg:10s-avg:cpu_percent{host=*}: a series of 30 points for each node

A time is that from the request to the last byte of the answer, over a connection that stays open.
CPU time is that of all processes of the simulation: both ends of the connections, the nodes' work,
and what they do without questions (each node samples 100 metrics a second). The bytes and the
number of asked nodes are those of the aggregator's connections. The peer transfers the raw points
of the same series and range (with the aggregator "none"), compressed in the same way. The floor of
`all` is bare_tree.c: messages of the same sizes through the same tree, over bare TCP, at both ends
and in as many processes, while the simulation goes on.
"""

import http.client
import json
import os
import subprocess
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from peers import report, say  # noqa: E402

METRIC, SECONDS, HOSTS = "cpu_percent", 300, 100
BUDGET_MS = 100  # for the 99th percentile with 1,000 nodes
WARM_UP = 5
# nodes, fanout, rounds. What a query touches of 200 nodes fits into the nearest caches, that of
# 10,000 nodes does not.
SIZES = [(200, 64, 500), (1000, 1000, 200), (1000, 64, 200), (10000, 64, 20)]


class Server:
    def __init__(self):
        url = urllib.parse.urlsplit(os.environ["SONDE_URL"])
        with open(os.environ["SONDE_TOKEN_FILE"]) as f:
            self.headers = {"Authorization": f"Bearer {f.readline().strip()}"}
        self.http = http.client.HTTPConnection(url.hostname, url.port, timeout=300)
        self.incomplete = 0  # number of answers that lacked nodes

    def get(self, path):
        self.http.request("GET", path, headers=self.headers)
        answer = self.http.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{answer.status}: {body[:200]!r}")
        self.incomplete += answer.headers.get("X-Sonde-Missing") is not None
        return body

    def query(self, expression):
        return self.get(f"/api/query?start={SECONDS}s-ago&no_annotations&m={urllib.parse.quote(expression)}")

    def wire(self):
        """Returns the received and the sent bytes so far, and the number of asked nodes."""
        hub = json.loads(self.get("/sonde/v1/status"))["hub"]
        return *(sum(node[way] for node in hub["nodes"]) for way in ("bytes_in", "bytes_out")), hub["asked"]


def cpu_seconds():
    """Returns the processor time of the simulation, which is this process' parent and its other
    children."""
    first = os.getppid()
    with open(f"/proc/{first}/task/{first}/children") as f:
        processes = {first, *map(int, f.read().split())} - {os.getpid()}
    ticks = 0
    for process in processes:
        with open(f"/proc/{process}/stat") as f:
            fields = f.read().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def busy():
    """Returns the processor time of all processors of the machine so far, in seconds."""
    with open("/proc/stat") as f:
        user, nice, system = map(int, f.readline().split()[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def bare(nodes, fanout, rounds, question, answer):
    """Returns the median time and the processor time of a round over bare TCP, in milliseconds."""
    program = os.path.join(os.environ["SONDE_BUILD"], "bench", "fanout", "bare_tree")
    processes = len(os.sched_getaffinity(0))
    done = subprocess.run([program, *map(str, (nodes, fanout, processes, question, answer, rounds))], check=True, capture_output=True, text=True)
    return map(float, done.stdout.split())


def ask(nodes, fanout, rounds):
    server = Server()
    tree = f"{nodes} nodes, {'directly' if fanout >= nodes - 1 else f'fanout {fanout}'}"
    hosts = "|".join(f"n{i * nodes // HOSTS:05}" for i in range(HOSTS))
    one = f"{{host=n{nodes * 2 // 3:05}}}"
    queries = {"all": f"avg:1s-avg:{METRIC}", "one": f"avg:1s-avg:{METRIC}{one}", "hosts": f"avg:1s-avg:{METRIC}{{host=literal_or({hosts})}}", "each": f"avg:10s-avg:{METRIC}{{host=*}}"}
    raw = {"all": f"none:{METRIC}", "one": f"none:{METRIC}{one}", "hosts": f"none:{METRIC}{{host=literal_or({hosts})}}", "each": f"none:{METRIC}"}
    # The first queries do not count, because caches are empty and, on a busy machine, nodes are
    # late.
    for query in queries.values():
        for _ in range(WARM_UP):
            server.incomplete = 0
            server.query(query)
            if not server.incomplete:
                break
    began, cpu, machine = time.monotonic(), cpu_seconds(), busy()
    time.sleep(4)
    idle = (cpu_seconds() - cpu) / (time.monotonic() - began)
    others = (busy() - machine) / (time.monotonic() - began) - idle
    report("fanout", f"idle, {tree}", round(idle * 1000, 1), "ms CPU a second", others_cpu=round(others, 2))
    for name, query in queries.items():
        server.incomplete = 0
        times, before, cpu = [], server.wire(), cpu_seconds()
        for _ in range(rounds):
            start = time.monotonic_ns()
            server.query(query)
            times.append((time.monotonic_ns() - start) / 1e6)
        cpu = (cpu_seconds() - cpu) * 1000 / rounds
        received, sent, asked = ((now - then) / rounds for now, then in zip(server.wire(), before))
        incomplete = server.incomplete
        before = server.wire()
        server.query(raw[name])
        shipped = sum(server.wire()[:2]) - sum(before[:2])
        floor, floor_cpu = bare(nodes, fanout, rounds, round(sent / asked), round(received / asked)) if name == "all" else (None, None)
        times.sort()
        budget = {"peer": "budget", "peer_value": BUDGET_MS} if nodes == 1000 and name != "each" else {}
        report("fanout", f"{name}, {tree}, median", round(times[len(times) // 2], 2), "ms", floor and "bare TCP", floor, incomplete_answers=incomplete)
        report("fanout", f"{name}, {tree}, 99th percentile", round(times[int(0.99 * (len(times) - 1))], 2), "ms", **budget)
        report("fanout", f"{name}, {tree}, CPU", round(cpu, 1), "ms a query", floor and "bare TCP", floor_cpu)
        report("fanout", f"{name}, {tree}, asked", round(asked, 1), "nodes a query")
        report("fanout", f"{name}, {tree}, on the wire", round((received + sent) / 1024, 1), "KiB", "raw points", round(shipped / 1024, 1))


def main():
    sonde = os.path.join(os.environ["SONDE_BUILD"], "sonde")
    for nodes, fanout, rounds in SIZES:
        began = time.monotonic()
        done = subprocess.run([sonde, "simulate", "--quiet", f"--nodes={nodes}", f"--fanout={fanout}", "--metrics=100", "--rate=1", f"--history={SECONDS}", "--node-deadline=60", "--query-deadline=120",
                               "--", sys.executable, __file__, str(nodes), str(fanout), str(rounds)], check=False)
        if done.returncode:
            say(f"{nodes} nodes with fanout {fanout}: ended with {done.returncode}")
        say(f"{nodes} nodes with fanout {fanout} took {time.monotonic() - began:.0f} s")


if len(sys.argv) > 1:
    ask(*map(int, sys.argv[1:]))
else:
    main()
