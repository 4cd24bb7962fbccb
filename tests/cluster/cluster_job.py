"""Functions for tests of the lab: start a job, query it, and check that it leaves nothing
behind."""

import contextlib
import json
import os
import random
import re
import signal
import time
import unittest

from lab import PATIENCE_S, each, until

SONDE = os.environ["SONDE"]
EMITTER = os.environ["EMITTER"]
SKEW = os.environ["SKEW"]
PRINT_RANK = os.environ["PRINT_RANK"]
HOSTS = ["n1", "n2", "n3"]
# Queries the job that runs on a host: prints status, X-Sonde-Missing and the answer.
ASK = """
import glob, json, sys, urllib.error, urllib.request
folder = glob.glob("/tmp/sonde-*/*/job.json")[0].rsplit("/", 1)[0]
request = urllib.request.Request(json.load(open(folder + "/job.json"))["url"] + sys.argv[1], headers={"Authorization": "Bearer " + open(folder + "/token").read().strip()})
try:
    answer = urllib.request.urlopen(request, timeout=50)
except urllib.error.HTTPError as error:
    answer = error
print(json.dumps([answer.status, answer.headers.get("X-Sonde-Missing"), json.loads(answer.read())]))
"""
CONNECT_TIME = "import socket, sys, time; t = time.monotonic(); socket.create_connection((sys.argv[1], 22), 30); print(time.monotonic() - t)"
CUSTOM = "/api/query?start=1h-ago&no_annotations&m=max:custom%7Bhost=*%7D"
SERVICES = ("munged", "slurmd", "slurmctld", "sshd:", "host.py", "slurmstepd")
TRANSPORT = os.environ.get("LAB_TRANSPORT", "tcp")
# The name of the transport in the status of a node.
WAY = {"tcp": "tcp", "fabric:tcp": "fabric:tcp;ofi_rxm", "fabric:shm": "fabric:shm"}[TRANSPORT]
LABS = int(os.environ.get("LAB_COUNT", "3"))
EMITTED = 6000  # random values of about 48 KB, three times the minimum for a fabric


def moves_no_data(why):
    """Marks a test that does not depend on the transport of nodes' data: it runs only over TCP."""
    return unittest.skipIf(TRANSPORT != "tcp" and "LAB_ALL" not in os.environ, f"moves no data: {why}")


class ClusterJob:
    """Starts, queries and checks a job of the lab. A subclass has the attribute `lab`."""

    maxDiff = None
    hosts = HOSTS

    def setUp(self):
        self.record = f"/mnt/shared/{self.id().rsplit('.', 1)[1]}"
        self.started = []

    def tearDown(self):
        for host in self.lab.names:
            self.lab.heal(host)
            self.lab.slow(host)
        # If a process still runs, the test has failed.
        failed = any(process.poll() is None for process in self.started)
        for host in HOSTS if failed else []:
            self.lab.kill(host)
        for process in self.started:
            process.kill()
            process.communicate()
        self.lab.run("n1", "scancel", "--user=root")
        try:
            if not failed:
                self.nothing_left()
        finally:  # so that a failed test does not affect the next one
            for host in self.lab.names:
                each(lambda pid: os.kill(pid, signal.SIGKILL), self.ours(host))
                self.lab.clear(host, "/tmp", "/dev/shm")
        self.lab.idle()

    def slurm(self, *arguments, nodes=3, host="n1", env=None):
        """Runs salloc … sonde run …"""
        return self.lab.run(host, "salloc", "--quiet", f"-N{nodes}", "sonde", "run", *arguments, env=env)

    def ssh(self, *arguments, env=None):
        return self.lab.run("n1", "sonde", "run", "--hosts=n[1-3]", *arguments, env=env)

    def start(self, *command):
        process = self.lab.start("n1", *command)
        self.started.append(process)
        return process

    def script(self, text):
        """Makes a script that all hosts can see; returns its path on the hosts."""
        path = self.lab.shared / f"{self.id().rsplit('.', 1)[1]}.sh"
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return f"/mnt/shared/{path.name}"

    def warning(self, run):
        """Returns the next line of a run's stderr, without the one that shows the page's
        address."""
        return next(line for line in iter(run.stderr.readline, "") if "shows its page" not in line)

    def hears(self, run, words):
        """Waits for a line with these words on a run's stderr. Before it, only the line with the
        page's address and reports of a busy machine may appear."""
        for line in iter(run.stderr.readline, ""):
            if words in line:
                return
            self.assertRegex(line, "shows its page|does not answer and is left out", words)
        self.fail(f"the run has ended without the message: {words}")

    def ours(self, host):
        """Returns the processes on a host, without its services."""
        return {pid: text for pid, text in self.lab.processes(host).items() if not any(word in text for word in SERVICES)}

    def left(self, host):
        """Returns the files in a host's /tmp, and its named shared memory. The empty base folder of
        runs stays and does not count."""
        base = self.lab.file(host, "/tmp/sonde-0")
        return [str(path) for folder in ("/tmp", "/dev/shm") for path in self.lab.file(host, folder).rglob("*") if path != base]

    def nothing_left(self):
        """Waits until no process of ours, no file and no shared memory is left."""
        def clean():
            return not any(self.ours(host) or self.left(host) for host in self.lab.names)
        until(clean, lambda: f"hosts are clean: {[(h, self.ours(h), self.left(h)) for h in self.lab.names]}")

    def series(self, path):
        """Returns (metric, host) → number of points, for a recording in the shared folder."""
        listed = self.lab.run("n1", "sonde", "query", "--list", "--json", path)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        return {(s["metric"], s["tags"].get("host")): s["points"] for s in json.loads(listed.stdout)}

    def files(self):
        return sorted(p.name for p in (self.lab.shared / self.record.rsplit("/", 1)[1]).iterdir())

    def agents(self, host):
        return [pid for pid, text in self.lab.processes(host, "sonde agent ").items()]

    def up(self, hosts=HOSTS):
        """Waits until the command runs, which requires all agents."""
        until(lambda: "sleep 1000" in self.lab.processes("n1").values(), lambda: f"the command runs: {[self.ours(h) for h in HOSTS]}")
        for host in hosts:
            self.assertTrue(self.agents(host), host)

    def stop(self, process):
        """Sends SIGINT to the run, as Ctrl-C does; returns its output."""
        runs = self.lab.processes("n1", "sonde run").items()
        # A process that the run was about to start has another name now, or has ended.
        each(lambda pid: os.kill(pid, signal.SIGINT), [pid for pid, text in runs if "salloc" not in text and "nsenter" not in text])
        return process.communicate(timeout=PATIENCE_S)

    def ask(self, path):
        """Sends a request to the job on n1; returns (missing nodes, answer), or (None, None) while
        no server answers."""
        asked = self.lab.run("n1", "python3", "-c", ASK, path)
        if asked.returncode != 0:
            return None, None
        status, missing, answer = json.loads(asked.stdout)
        self.assertEqual(status, 200, answer)
        return missing, answer

    def all_answer(self, hosts=HOSTS):
        """Emits a point on each host, and waits until one answer contains all of them and no node
        is missing."""
        for i, host in enumerate(hosts):
            put = self.lab.run(host, "sonde", "put", "custom", str(i))
            self.assertEqual(put.returncode, 0, put.stderr)
        seen = []

        def all_there():
            missing, answer = self.ask(CUSTOM)
            seen[:] = [missing, answer]
            return answer and missing is None and len(answer) == len(hosts)
        until(all_there, lambda: f"all hosts are in one answer: {seen} {[self.ours(h) for h in hosts]}")
        self.assertEqual([(a["tags"]["host"], max(a["dps"].values())) for a in seen[1]], [(host, i) for i, host in enumerate(hosts)])

    def emit(self, points=EMITTED, hosts=HOSTS):
        """Emits this many points on each host, through its agent."""
        lines = "".join(f"emitted {random.random()}\n" for _ in range(points))
        for host in hosts:
            put = self.lab.run(host, "sonde", "put", stdin=lines)
            self.assertEqual(put.returncode, 0, put.stderr)

    def much(self, host):
        """Emits more points than fit into a window, or on a disk of 4 MB."""
        lines = "".join(f"random {int.from_bytes(os.urandom(6), 'big')}\n" for _ in range(500000))
        self.assertEqual(self.lab.run(host, "sonde", "put", stdin=lines).returncode, 0)

    def private(self, folder, hosts=HOSTS):
        """Removes a private folder of each host after the test."""
        for host in hosts:
            self.addCleanup(self.lab.run, host, "rm", "-rf", folder)

    def copies(self, folder):
        """Returns the recordings in a folder of n1 that were transferred there. Unlike an agent's
        own file, such a copy has no sets (series that were sampled together)."""
        read = self.lab.run("n1", "sonde", "inspect", "--json", folder)
        self.assertEqual(read.returncode, 0, read.stderr)
        return sorted(os.path.basename(f["path"]) for f in json.loads(read.stdout) if f["sets"] == 0)

    def replayed(self, folder, path):
        """Runs `sonde replay` with a folder on n1; returns its answer to a request."""
        replay = self.start("sonde", "replay", folder)
        url, token = replay.stderr.readline().split()[1].split("/?token=")
        code = "import json, sys, urllib.request; print(urllib.request.urlopen(urllib.request.Request(sys.argv[1], headers={'Authorization': 'Bearer ' + sys.argv[2]})).read().decode())"
        asked = self.lab.run("n1", "python3", "-c", code, url + path, token)
        self.lab.signal("n1", signal.SIGTERM, "sonde replay")
        replay.communicate(timeout=PATIENCE_S)
        self.assertEqual(asked.returncode, 0, asked.stderr)
        return json.loads(asked.stdout)

    def settled(self, way=WAY):
        """Waits until the data of n2 and n3 use the expected transport."""
        until(lambda: [self.hub_nodes().get(host, {}).get("transport") for host in ("n2", "n3")] == [way] * 2, lambda: f"data go over {way}: {self.hub_nodes()}")

    @contextlib.contextmanager
    def moving(self, least=EMITTED * 4, way=WAY, hosts=("n2", "n3")):
        """Checks that the block transfers more than `least` bytes from each host over the fabric,
        or none if the transport is TCP."""
        self.settled(way)
        before = self.moved()
        yield
        after = self.moved()
        for host in hosts:
            moved = after[host] - before[host]
            self.assertTrue(moved > least if way != "tcp" else moved == 0, (host, way, moved))

    def brought(self, err):
        """Reads the output of a verbose run; returns the hosts whose emitted points reached the
        first node over the fabric."""
        moved = re.findall(rf"(\d+) bytes of (n\d) came over {WAY}$", err, re.MULTILINE)
        return sorted(host for count, host in moved if int(count) > EMITTED * 4)

    def data_over(self, way=WAY):
        """Checks that large answers of n2 and n3 use this transport."""
        with self.moving(100000, way):
            self.data_comes()

    def data_comes(self):
        """Waits until large answers of n2 and n3 are complete."""
        metric, now_ms = f"large{time.monotonic_ns()}", int(time.time() * 1000)
        points = "".join(f"put {metric} {now_ms - i} {random.random()}\n" for i in range(20000))
        (self.lab.shared / "points").write_text(points)
        for host in ("n2", "n3"):
            put = self.lab.run(host, "sh", "-c", "sonde put < /mnt/shared/points")
            self.assertEqual(put.returncode, 0, put.stderr)
        path = f"/api/query?start=1h-ago&ms=true&no_annotations&m=none:{metric}"
        until(lambda: sum(len(a["dps"]) for a in self.ask(path)[1] or []) == 40000, "all points are in one answer")
