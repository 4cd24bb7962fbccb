"""A job of the lab: starts it, queries it, and checks what it leaves behind."""

import contextlib
import json
import os
import random
import re
import signal
import time
import unittest

from lab import until

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
# the name in a status
WAY = {"tcp": "tcp", "fabric:tcp": "fabric:tcp;ofi_rxm", "fabric:shm": "fabric:shm"}[TRANSPORT]
LABS = int(os.environ.get("LAB_COUNT", "3"))
EMITTED = 6000  # random values of about 48 KB, three times the minimum for a fabric


def moves_no_data(why):
    """A test that does not depend on the transport of nodes' data: once, over TCP, is enough."""
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
        # during the test
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
        finally:  # a failed test does not affect the next one
            for host in self.lab.names:
                for pid in self.ours(host):
                    os.kill(pid, signal.SIGKILL)
                self.lab.clear(host, "/tmp", "/dev/shm")
        self.lab.idle()

    def slurm(self, *arguments, nodes=3, host="n1", env=None, timeout=60):
        """salloc … sonde run …"""
        return self.lab.run(host, "salloc", "--quiet", f"-N{nodes}", "sonde", "run", *arguments, env=env, timeout=timeout)

    def ssh(self, *arguments, env=None, timeout=60):
        return self.lab.run("n1", "sonde", "run", "--hosts=n[1-3]", *arguments, env=env, timeout=timeout)

    def start(self, *command):
        process = self.lab.start("n1", *command)
        self.started.append(process)
        return process

    def script(self, text):
        """A command that all hosts can see."""
        path = self.lab.shared / f"{self.id().rsplit('.', 1)[1]}.sh"
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return f"/mnt/shared/{path.name}"

    def warning(self, run):
        """The next line of a run, after its first one."""
        return next(line for line in iter(run.stderr.readline, "") if "shows its page" not in line)

    def hears(self, run, words):
        """The next line of a run, after its first one, and without those in which agents report a
        busy machine."""
        for line in iter(run.stderr.readline, ""):
            if words in line:
                return
            self.assertRegex(line, "shows its page|does not answer and is left out", words)
        self.fail(f"it has ended without a word of: {words}")

    def ours(self, host):
        """The processes on a host, without its services."""
        return {pid: text for pid, text in self.lab.processes(host).items() if not any(word in text for word in SERVICES)}

    def left(self, host):
        """Files in a host's folder of running jobs, and named memory. The base folder of runs
        stays, empty."""
        base = self.lab.file(host, "/tmp/sonde-0")
        return [str(path) for folder in ("/tmp", "/dev/shm") for path in self.lab.file(host, folder).rglob("*") if path != base]

    def nothing_left(self):
        """No process of ours, no file, no memory."""
        def clean():
            return not any(self.ours(host) or self.left(host) for host in self.lab.names)
        until(clean, lambda: f"hosts are clean: {[(h, self.ours(h), self.left(h)) for h in self.lab.names]}")

    def series(self, path):
        """(metric, host) → number of points, in a path of the shared folder."""
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
        """Sends Ctrl-C, and returns the run's output."""
        for pid, text in self.lab.processes("n1", "sonde run").items():
            if "salloc" not in text and "nsenter" not in text:
                os.kill(pid, signal.SIGINT)
        return process.communicate(timeout=60)

    def ask(self, path):
        """(missing, answer) of the job on n1; None while no server answers."""
        asked = self.lab.run("n1", "python3", "-c", ASK, path)
        if asked.returncode != 0:
            return None, None
        status, missing, answer = json.loads(asked.stdout)
        self.assertEqual(status, 200, answer)
        return missing, answer

    def all_answer(self, hosts=HOSTS):
        """Every host has a point of its own in one answer, and no node is missing."""
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
        """Emits this many points of a metric on hosts, through their agents, and waits for all of
        them."""
        lines = "".join(f"emitted {random.random()}\n" for _ in range(points))
        for host in hosts:
            put = self.lab.run(host, "sonde", "put", stdin=lines)
            self.assertEqual(put.returncode, 0, put.stderr)

    def much(self, host):
        """More points than fit into a window, or on a disk of 4 MB."""
        lines = "".join(f"random {int.from_bytes(os.urandom(6), 'big')}\n" for _ in range(500000))
        self.assertEqual(self.lab.run(host, "sonde", "put", stdin=lines).returncode, 0)

    def private(self, folder, hosts=HOSTS):
        """Removes a host's private folder after the test."""
        for host in hosts:
            self.addCleanup(self.lab.run, host, "rm", "-rf", folder)

    def copies(self, folder):
        """Transferred recordings in a folder of n1: they do not show which series were sampled
        together."""
        read = self.lab.run("n1", "sonde", "inspect", "--json", folder)
        self.assertEqual(read.returncode, 0, read.stderr)
        return sorted(os.path.basename(f["path"]) for f in json.loads(read.stdout) if f["sets"] == 0)

    def replayed(self, folder, path):
        """The answer of `sonde replay` with a folder on n1."""
        replay = self.start("sonde", "replay", folder)
        url, token = replay.stderr.readline().split()[1].split("/?token=")
        code = "import json, sys, urllib.request; print(urllib.request.urlopen(urllib.request.Request(sys.argv[1], headers={'Authorization': 'Bearer ' + sys.argv[2]})).read().decode())"
        asked = self.lab.run("n1", "python3", "-c", code, url + path, token)
        for pid in self.lab.processes("n1", "sonde replay"):
            os.kill(pid, signal.SIGTERM)
        replay.communicate(timeout=60)
        self.assertEqual(asked.returncode, 0, asked.stderr)
        return json.loads(asked.stdout)

    def settled(self, way=WAY):
        """Data of n2 and n3 use the expected transport."""
        until(lambda: [self.hub_nodes().get(host, {}).get("transport") for host in ("n2", "n3")] == [way] * 2, lambda: f"data go over {way}: {self.hub_nodes()}")

    @contextlib.contextmanager
    def moving(self, least=EMITTED * 4, way=WAY, hosts=("n2", "n3")):
        """Checks that the block transfers this many bytes from each of these hosts, over the fabric
        if one is used."""
        self.settled(way)
        before = self.moved()
        yield
        after = self.moved()
        for host in hosts:
            moved = after[host] - before[host]
            self.assertTrue(moved > least if way != "tcp" else moved == 0, (host, way, moved))

    def brought(self, err):
        """The hosts whose emitted points reached the first node outside of its connections, from
        the output of a verbose run."""
        moved = re.findall(rf"(\d+) bytes of (n\d) came over {WAY}$", err, re.MULTILINE)
        return sorted(host for count, host in moved if int(count) > EMITTED * 4)

    def data_over(self, way=WAY):
        """The large answers of n2 and n3 use this transport."""
        with self.moving(100000, way):
            self.data_comes()

    def data_comes(self):
        """Large answers of n2 and n3 are complete."""
        metric, now_ms = f"large{time.monotonic_ns()}", int(time.time() * 1000)
        points = "".join(f"put {metric} {now_ms - i} {random.random()}\n" for i in range(20000))
        (self.lab.shared / "points").write_text(points)
        for host in ("n2", "n3"):
            put = self.lab.run(host, "sh", "-c", "sonde put < /mnt/shared/points")
            self.assertEqual(put.returncode, 0, put.stderr)
        path = f"/api/query?start=1h-ago&ms=true&no_annotations&m=none:{metric}"
        until(lambda: sum(len(a["dps"]) for a in self.ask(path)[1] or []) == 40000, "all points are in one answer")
