"""Runs over several hosts: in the lab, under its Slurm, over ssh, with Open MPI. A lab serves many
tests; each leaves it unchanged.

LAB_TRANSPORT chooses the transport of nodes' data: tcp (default), fabric:tcp, fabric:shm. With the
last two, tests that move no data of nodes are left out, unless LAB_ALL is set. LAB_COUNT is the
number of parallel labs. Names of tests (Cluster.test_strict) as arguments select tests.

Without root, namespaces or libfabric, the suite is skipped with a message.
"""

import contextlib
import json
import os
import random
import re
import signal
import sys
import time
import unittest
import urllib.parse

from client_commands import ClientCommands
from dumps import Dumps
import parallel_labs
from lab import Lab, skip_if, until, why_not

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup, our child processes would ignore it
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
lab = None


# Another user on a host, while jobs start there: reads every process' /proc, connects to every
# listening port, silently and with data, and prints all that it got.
SPY = """
import os, socket, sys, threading
os.setgroups([]); os.setgid(65534); os.setuid(65534)
seen, knocked = set(), set()
def knock(port, words):
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as s:
            s.settimeout(2)
            s.sendall(words)
            while data := s.recv(65536):
                seen.add(data)
    except OSError:
        pass
threads = []
print("spying", flush=True)
while not os.path.exists(sys.argv[1]):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for name in ("cmdline", "environ", "fd/0", "fd/3"):
            try:
                fd = os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_NONBLOCK)
            except OSError:
                continue
            try:
                seen.add(os.read(fd, 65536))
            except OSError:
                pass
            os.close(fd)
    for table in ("tcp", "tcp6"):
        for line in open("/proc/net/" + table).readlines()[1:]:
            fields = line.split()
            port = int(fields[1].rsplit(":", 1)[1], 16)
            if fields[3] == "0A" and port not in knocked:
                knocked.add(port)
                for words in (b"", b"\\0" * 64):
                    threads.append(threading.Thread(target=knock, args=[port, words]))
                    threads[-1].start()
for t in threads:
    t.join()
print(len(knocked))
for data in seen:
    print(data.hex())
"""


@contextlib.contextmanager
def open_lab():
    global lab
    began = time.monotonic()
    # n4 is for the tree
    with Lab([SONDE, EMITTER, SKEW, PRINT_RANK], names=(*HOSTS, "n4"), transport=TRANSPORT) as lab:
        print(f"# lab up in {time.monotonic() - began:.1f} s", flush=True)
        yield


def moves_no_data(why):
    """A test that does not depend on the transport of nodes' data: once, over TCP, is enough."""
    return unittest.skipIf(TRANSPORT != "tcp" and "LAB_ALL" not in os.environ, f"moves no data: {why}")


class Cluster(ClientCommands, Dumps, unittest.TestCase):
    maxDiff = None
    hosts = HOSTS
    lab = property(lambda self: lab)

    def setUp(self):
        self.record = f"/mnt/shared/{self.id().rsplit('.', 1)[1]}"
        self.started = []

    def tearDown(self):
        for host in lab.names:
            lab.heal(host)
            lab.slow(host)
        # during the test
        failed = any(process.poll() is None for process in self.started)
        for host in HOSTS if failed else []:
            lab.kill(host)
        for process in self.started:
            process.kill()
            process.communicate()
        lab.run("n1", "scancel", "--user=root")
        try:
            if not failed:
                self.nothing_left()
        finally:  # a failed test does not affect the next one
            for host in lab.names:
                for pid in self.ours(host):
                    os.kill(pid, signal.SIGKILL)
                lab.clear(host, "/tmp", "/dev/shm")
        lab.idle()

    # ---- running

    def slurm(self, *arguments, nodes=3, host="n1", env=None, timeout=60):
        """salloc … sonde run …"""
        return lab.run(host, "salloc", "--quiet", f"-N{nodes}", "sonde", "run", *arguments, env=env, timeout=timeout)

    def ssh(self, *arguments, env=None, timeout=60):
        return lab.run("n1", "sonde", "run", "--hosts=n[1-3]", *arguments, env=env, timeout=timeout)

    def start(self, *command):
        process = lab.start("n1", *command)
        self.started.append(process)
        return process

    def script(self, text):
        """A command that all hosts can see."""
        path = lab.shared / f"{self.id().rsplit('.', 1)[1]}.sh"
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

    # ---- checking

    def ours(self, host):
        """The processes on a host, without its services."""
        return {pid: text for pid, text in lab.processes(host).items() if not any(word in text for word in SERVICES)}

    def left(self, host):
        """Files in a host's folder of running jobs, and named memory. The base folder of runs
        stays, empty."""
        base = lab.file(host, "/tmp/sonde-0")
        return [str(path) for folder in ("/tmp", "/dev/shm") for path in lab.file(host, folder).rglob("*") if path != base]

    def nothing_left(self):
        """No process of ours, no file, no memory."""
        def clean():
            return not any(self.ours(host) or self.left(host) for host in lab.names)
        until(clean, lambda: f"hosts are clean: {[(h, self.ours(h), self.left(h)) for h in lab.names]}")

    def series(self, path):
        """(metric, host) → number of points, in a path of the shared folder."""
        listed = lab.run("n1", "sonde", "query", "--list", "--json", path)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        return {(s["metric"], s["tags"].get("host")): s["points"] for s in json.loads(listed.stdout)}

    def files(self):
        return sorted(p.name for p in (lab.shared / self.record.rsplit("/", 1)[1]).iterdir())

    def agents(self, host):
        return [pid for pid, text in lab.processes(host, "sonde agent ").items()]

    def up(self, hosts=HOSTS):
        """Waits until the command runs, which requires all agents."""
        until(lambda: "sleep 1000" in lab.processes("n1").values(), lambda: f"the command runs: {[self.ours(h) for h in HOSTS]}")
        for host in hosts:
            self.assertTrue(self.agents(host), host)

    def stop(self, process):
        """Sends Ctrl-C, and returns the run's output."""
        for pid, text in lab.processes("n1", "sonde run").items():
            if "salloc" not in text and "nsenter" not in text:
                os.kill(pid, signal.SIGINT)
        return process.communicate(timeout=60)

    def ask(self, path):
        """(missing, answer) of the job on n1; None while no server answers."""
        asked = lab.run("n1", "python3", "-c", ASK, path)
        if asked.returncode != 0:
            return None, None
        status, missing, answer = json.loads(asked.stdout)
        self.assertEqual(status, 200, answer)
        return missing, answer

    def all_answer(self, hosts=HOSTS):
        """Every host has a point of its own in one answer, and no node is missing."""
        for i, host in enumerate(hosts):
            put = lab.run(host, "sonde", "put", "custom", str(i))
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
            put = lab.run(host, "sonde", "put", stdin=lines)
            self.assertEqual(put.returncode, 0, put.stderr)

    def much(self, host):
        """More points than fit into a window, or on a disk of 4 MB."""
        lines = "".join(f"random {int.from_bytes(os.urandom(6), 'big')}\n" for _ in range(500000))
        self.assertEqual(lab.run(host, "sonde", "put", stdin=lines).returncode, 0)

    def private(self, folder, hosts=HOSTS):
        """Removes a host's private folder after the test."""
        for host in hosts:
            self.addCleanup(lab.run, host, "rm", "-rf", folder)

    def copies(self, folder):
        """Transferred recordings in a folder of n1: they do not show which series were sampled
        together."""
        read = lab.run("n1", "sonde", "inspect", "--json", folder)
        self.assertEqual(read.returncode, 0, read.stderr)
        return sorted(os.path.basename(f["path"]) for f in json.loads(read.stdout) if f["sets"] == 0)

    def replayed(self, folder, path):
        """The answer of `sonde replay` with a folder on n1."""
        replay = self.start("sonde", "replay", folder)
        url, token = replay.stderr.readline().split()[1].split("/?token=")
        code = "import json, sys, urllib.request; print(urllib.request.urlopen(urllib.request.Request(sys.argv[1], headers={'Authorization': 'Bearer ' + sys.argv[2]})).read().decode())"
        asked = lab.run("n1", "python3", "-c", code, url + path, token)
        for pid in lab.processes("n1", "sonde replay"):
            os.kill(pid, signal.SIGTERM)
        replay.communicate(timeout=60)
        self.assertEqual(asked.returncode, 0, asked.stderr)
        return json.loads(asked.stdout)

    # ---- several nodes in one answer

    def test_one_answer_of_all_nodes_under_slurm(self):
        run = self.start("salloc", "--quiet", "-N3", "sonde", "run", "--no-record", "sleep", "1000")
        self.up()
        self.all_answer()
        self.data_over()
        self.assertEqual([n["host"] for n in self.ask("/sonde/v1/nodes")[1]["nodes"]], HOSTS)
        # The job's key is a secret.
        (folder,) = lab.file("n1", "/tmp/sonde-0").iterdir()
        key = (folder / "key").read_bytes().hex()
        for host in HOSTS:
            self.assertFalse([text for text in lab.processes(host).values() if key in text], host)
        # When an aggregator dies, the nodes find the next one.
        (pid,) = lab.processes("n1", "sonde aggregator ")
        os.kill(pid, signal.SIGKILL)
        until(lambda: list(lab.processes("n1", "sonde aggregator ")) not in ([], [pid]), "another aggregator")
        self.all_answer()
        self.data_over()
        self.stop(run)

    def hub_nodes(self):
        """host → the hub's data about it."""
        answer = self.ask("/sonde/v1/status")[1]
        return {n["host"]: n for n in answer["hub"]["nodes"]} if answer else {}

    def moved(self):
        """host → bytes of n2 and n3 outside of their connections."""
        nodes = self.hub_nodes()
        return {host: nodes[host]["transport_bytes"] for host in ("n2", "n3")}

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
        (lab.shared / "points").write_text(points)
        for host in ("n2", "n3"):
            put = lab.run(host, "sh", "-c", "sonde put < /mnt/shared/points")
            self.assertEqual(put.returncode, 0, put.stderr)
        path = f"/api/query?start=1h-ago&ms=true&no_annotations&m=none:{metric}"
        until(lambda: sum(len(a["dps"]) for a in self.ask(path)[1] or []) == 40000, "all points are in one answer")

    def test_one_answer_of_all_nodes_over_ssh(self):
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--no-record", "sleep", "1000")
        self.up()
        self.all_answer()
        self.data_over()
        # A relay that dies is started again.
        (pid,) = lab.processes("n2", "sonde relay ")
        os.kill(pid, signal.SIGKILL)
        self.hears(run, "node n2: the relay has ended (signal 9 (Killed)); starting it again")
        self.all_answer()
        # A missing node is reported within a request's timeout, and is back afterwards.
        lab.partition("n2")
        missing, answer = self.ask(CUSTOM)
        self.assertIn(missing, ("n2 (late)", "n2 (not connected)"))
        self.assertEqual([a["tags"]["host"] for a in answer], ["n1", "n3"])
        lab.heal("n2")
        self.all_answer()
        self.data_over()
        # On every node, sonde open leads to the first one, where the server is.
        for node in ("n1", "n3"):
            opened = lab.run(node, "env", "SSH_CONNECTION=a b c d", "sonde", "open")
            self.assertEqual(opened.returncode, 0, opened.stderr)
            self.assertRegex(opened.stdout, r"^http://127\.0\.0\.1:(\d+)/\?token=\w+\non another machine, there first: ssh -NL \1:127\.0\.0\.1:\1 n1\n$")
        self.assertIn(" n1\n", lab.run("n3", "sonde", "open").stdout)
        # A client without the key does not count as a node.
        port = self.ask("/sonde/v1/status")[1]["hub"]["port"]
        job = self.ask("/sonde/v1/status")[1]["job"]
        lab.run("n3", "sh", "-c", "umask 077; head -c 32 /dev/zero > /tmp/wrong-key; mkdir /tmp/nothing")
        self.started.append(lab.start("n3", "timeout", "60", "sonde", "relay", "--key-file=/tmp/wrong-key", f"--parent=10.77.0.11:{port}", "--host=n3", f"--job={job}", "/tmp/nothing"))
        until(lambda: self.ask("/sonde/v1/status")[1]["hub"]["refused_key"] > 0, "a wrong key is refused and counted")
        self.all_answer()
        for pid in lab.processes("n3", "wrong-key"):
            os.kill(pid, signal.SIGKILL)
        lab.run("n3", "rm", "-r", "/tmp/wrong-key", "/tmp/nothing")
        self.stop(run)

    def test_a_tree(self):
        """With a fanout of 2, the fourth node is reached through the second one; if that is
        missing, directly."""
        four = [*HOSTS, "n4"]
        run = self.start("sonde", "run", "--hosts=n[1-4]", "--fanout=2", "--node-timeout=2", "--node-deadline=5", "--no-record", "sleep", "1000")
        self.up(four)
        self.all_answer(four)

        def connected():
            return {n["host"]: (n["connected"], n.get("via")) for n in self.ask("/sonde/v1/status")[1]["hub"]["nodes"]}
        behind = {"n2": (True, None), "n3": (True, None), "n4": (False, "n2")}
        until(lambda: connected() == behind, lambda: f"n4 is behind n2: {connected()}")
        self.data_over()
        # A missing relay affects its children only for a short time: n4 counts as missing until the
        # launcher has informed it.
        lab.partition("n2")
        missing, _ = self.ask(CUSTOM)
        self.assertIn(missing, ("n2 (late), n4 (late: its relay is missing)", "n2 (late)", "n2 (not connected)"))
        until(lambda: self.ask(CUSTOM)[0] in ("n2 (late)", "n2 (not connected)"), lambda: f"n4 answers without n2: {self.ask(CUSTOM)} {connected()}")
        until(lambda: [a["tags"]["host"] for a in self.ask(CUSTOM)[1]] == ["n1", "n3", "n4"], "the other three answer")
        lab.heal("n2")
        self.all_answer(four)
        until(lambda: connected() == behind, lambda: f"n4 is behind n2 again: {connected()}")
        # A relay that dies is started again, and its children reconnect.
        (pid,) = lab.processes("n2", "sonde relay ")
        os.kill(pid, signal.SIGKILL)
        self.all_answer(four)
        until(lambda: connected() == behind, lambda: f"n4 is behind n2 again: {connected()}")
        self.data_over()
        self.stop(run)

    def asked(self, m):
        """The nodes that the hub asks for this, and the answer."""
        def questions():
            return {host: n["questions"] for host, n in self.hub_nodes().items()}
        before = questions()
        missing, answer = self.ask("/api/query?start=1h-ago&no_annotations&m=" + urllib.parse.quote(m))
        self.assertIsNone(missing)
        return sorted(host for host, count in questions().items() if count > before[host]), answer

    def test_only_who_can_have_it_is_asked(self):
        """n1 asks n2 and n3 directly, and n4 through n2."""
        four = [*HOSTS, "n4"]
        run = self.start("sonde", "run", "--hosts=n[1-4]", "--fanout=2", "--no-record", "sleep", "1000")
        self.up(four)
        self.all_answer(four)
        until(lambda: self.asked("max:custom{host=n1}")[0] == [], "all have told whose series they hold")
        for hosts, asked in [("*", ["n2", "n3"]), ("n1", []), ("n2", ["n2"]), ("n3", ["n3"]), ("literal_or(n1|n3)", ["n3"]), ("n4", ["n2"]), ("regexp([34]$)", ["n2", "n3"])]:
            self.assertEqual(self.asked(f"max:custom{{host={hosts}}}")[0], asked, hosts)
        # A point with the host n1, put on n3, and on n4 behind its relay: found a moment later.
        for value, (host, asked) in enumerate([("n3", ["n3"]), ("n4", ["n2", "n3"])]):
            put = lab.run(host, "sonde", "put", "custom", str(100 + value), "host=n1", f"on={host}")
            self.assertEqual(put.returncode, 0, put.stderr)
            until(lambda: [max(a["dps"].values()) for a in self.asked("max:custom{host=n1}")[1]] == [100 + value], "it is found")
            self.assertEqual(self.asked("max:custom{host=n1}")[0], asked)
        # After all nodes were asked once, it is always found.
        for i in range(3):
            for host in ("n3", "n4"):
                lab.run(host, "sonde", "put", "custom", "1", f"host=x{i}", f"by={host}")
                until(lambda: len(self.asked(f"none:custom{{by={host}}}")[1]) > i, "it is there")
                self.assertEqual(len(self.asked(f"max:custom{{by={host},host=x{i}}}")[1]), 1)
        self.stop(run)

    @unittest.skipUnless(TRANSPORT == "tcp", "needs hosts that share no memory")
    def test_shared_memory_reaches_as_far_as_the_machine(self):
        """libfabric's shm: nodes that share memory with the hub use it; the others' data come over
        TCP, with a message that gives the reason."""
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--no-record", "--transport=fabric:shm", "sleep", "1000")
        self.up()
        self.all_answer()
        until(lambda: all(self.hub_nodes().get(host, {}).get("transport_problem") for host in ("n2", "n3")), lambda: f"no memory is shared: {self.hub_nodes()}")
        self.data_over("tcp")
        (folder,) = lab.file("n1", "/tmp/sonde-0").iterdir()
        status = self.ask("/sonde/v1/status")[1]
        lab.run("n1", "mkdir", "/tmp/beside")
        self.started.append(lab.start("n1", "timeout", "60", "sonde", "relay", f"--key-file=/tmp/sonde-0/{folder.name}/key", f"--parent=10.77.0.11:{status['hub']['port']}", "--host=beside",
                                      f"--job={status['job']}", "--transport=fabric:shm", "/tmp/beside"))
        until(lambda: self.hub_nodes().get("beside", {}).get("transport") == "fabric:shm", lambda: f"memory is shared: {self.hub_nodes()}")
        for pid, text in lab.processes("n1", "--host=beside").items():
            if not text.startswith("timeout "):  # which ends by itself
                os.kill(pid, signal.SIGTERM)
        lab.run("n1", "rmdir", "/tmp/beside")
        out, err = self.stop(run)
        self.assertIn("data of n2 come over TCP, not over fabric:shm: ", err)

    @moves_no_data("there is none")
    def test_a_transport_that_is_not_there(self):
        done = self.ssh("--no-record", "--transport=fabric:cxi", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("--transport=fabric:cxi: libfabric's provider cxi cannot be used here", done.stderr)
        done = self.ssh("--no-record", "--transport=carrier-pigeon", "true")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("it is auto, tcp, fabric or fabric:PROVIDER", done.stderr)

    @moves_no_data("it asks for statuses")
    def test_a_restart_is_asked_for_over_http(self):
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--nodes=2", "--resilient", "--no-record", "sh", "-c", "echo $SONDE_NODELIST; exec sleep 1000")
        self.assertEqual(run.stdout.readline(), "n1,n2\n")
        until(lambda: self.ask("/sonde/v1/status")[1]["missing"] == [], "n2 is connected")
        asked = lab.run("n1", "python3", "-c", ASK.replace("headers=", "data=b'{\"hosts\":[\"n2\"]}', headers="), "/sonde/v1/reboot")
        self.assertEqual(json.loads(asked.stdout)[2]["hosts"], ["n2"], asked.stderr)
        self.assertEqual(run.stdout.readline(), "n1,n3\n")
        # Its replacement is asked, and the other node does not count as missing.
        until(lambda: self.ask("/sonde/v1/status")[1]["missing"] == [] and [n["host"] for n in self.ask("/sonde/v1/nodes")[1]["nodes"]] == ["n1", "n3"], "n3 is in its place")
        self.up(["n1", "n3"])
        self.stop(run)

    @moves_no_data("it is about pings")
    def test_a_clock_that_is_off_is_warned_of_once(self):
        """n2's clock is 250 ms ahead."""
        skewed = self.script(f'[ $(hostname) = n2 ] && export SKEW_MS=250 LD_PRELOAD=/mnt/bin/{os.path.basename(SKEW)}\nexec /mnt/bin/sonde "$@"\n')
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--no-record", f"--remote-sonde={skewed}", "sleep", "1000")
        self.assertRegex(self.warning(run), r"the clock of node n2 is 0\.2[0-9]+ s ahead of this one's")
        self.up()
        nodes = {n["host"]: n for n in self.ask("/sonde/v1/status")[1]["hub"]["nodes"]}
        self.assertLess(abs(nodes["n2"]["clock_offset_seconds"] - 0.25), 0.02 + nodes["n2"]["clock_offset_error_seconds"])
        metrics = lab.run("n1", "python3", "-c", ASK.replace("json.loads(answer.read())", "answer.read().decode()"), "/metrics").stdout
        self.assertRegex(metrics, r'clock_offset_seconds\{host=\\"n2\\"\} 0\.2')
        # A new connection later, without another message.
        (pid,) = lab.processes("n2", "sonde relay ")
        os.kill(pid, signal.SIGKILL)
        self.hears(run, "the relay has ended")
        self.all_answer()
        until(lambda: "clock_offset_seconds" in next(n for n in self.ask("/sonde/v1/status")[1]["hub"]["nodes"] if n["host"] == "n2"), "its clock is known again")
        _, err = self.stop(run)
        self.assertNotIn("clock", err)

    # ---- dumps

    def test_a_dump_is_the_job_in_files(self):
        self.private("/root/dumped")
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--no-record", "sleep", "1000")
        self.up()
        self.all_answer()
        self.emit()

        def sampled(start, hosts=HOSTS):
            """The hosts have had samples of their CPUs since then."""
            found = self.ask(f"/api/query?ms&start={start}&m=none:cpu_percent%7Bhost=*%7D")[1]
            return found and [a["tags"]["host"] for a in found] == hosts
        until(lambda: sampled("1h-ago"), "every host has sampled")
        until_ms = int(time.time() * 1000)
        until(lambda: sampled(until_ms + 1), "every host has sampled since")
        path = f"/api/query?ms&start=1h-ago&end={until_ms}&no_annotations&m=none:emitted%7Bhost=*%7D&m=none:cpu_percent%7Bhost=*%7D&m=sum:1s-max:emitted"
        with self.moving():
            done = lab.run("n1", "sonde", "dump", "--to", "dumped")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()[1:-1]], HOSTS)
        self.assertEqual(sorted(p.name for p in lab.file("n1", "/root/dumped").iterdir()), [f"{h}.sonde" for h in HOSTS])
        live = self.ask(path)[1]
        self.assertEqual([(a["metric"], a["tags"].get("host")) for a in live], [*(("emitted", h) for h in HOSTS), *(("cpu_percent", h) for h in HOSTS), ("emitted", None)])
        self.assertEqual(self.replayed("/root/dumped", path), live)
        # A second one, after one of the nodes has ended: its file stays, the others' are new.
        before = {h: lab.file("n1", f"/root/dumped/{h}.sonde").stat().st_ino for h in HOSTS}
        lab.kill("n3")
        self.hears(run, "node n3 is lost")
        until(lambda: self.ask("/sonde/v1/status")[1]["missing"] == ["n3"], "n3 is missed")
        later_ms = int(time.time() * 1000)
        until(lambda: sampled(later_ms, ["n1", "n2"]), "there is something new")
        done = lab.run("n1", "sonde", "dump", "--to", "/root/dumped")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("no data of node n3: not connected", done.stderr)
        self.assertEqual([lab.file("n1", f"/root/dumped/{h}.sonde").stat().st_ino == before[h] for h in HOSTS], [False, False, True])
        self.assertEqual(self.replayed("/root/dumped", path), live)
        self.stop(run)
        self.ssh("--no-record", "true")  # cleans up after the killed node

    def test_a_node_that_dies_in_a_dump(self):
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--no-record", "sleep", "1000")
        self.private("/root/dumped")
        self.up()
        self.all_answer()
        (relay,) = lab.processes("n3", "sonde relay ")
        os.kill(relay, signal.SIGSTOP)
        dump = self.start("sonde", "dump", "--to", "dumped")
        until(lambda: self.ask("/sonde/v1/status")[1]["dump"].get("files") == 2, "the others are through")
        lab.kill("n3")
        out, err = dump.communicate(timeout=60)
        self.assertEqual(dump.returncode, 4, err)
        self.assertIn("no data of node n3: connection lost", err)
        self.assertEqual([line.split()[0] for line in out.splitlines()[1:-1]], ["n1", "n2"])
        self.assertEqual(sorted(p.name for p in lab.file("n1", "/root/dumped").iterdir()), ["n1.sonde", "n2.sonde"])
        self.stop(run)
        self.ssh("--no-record", "true")

    def much_to_dump(self):
        """A run over three hosts, where n2 has so much data that a dump takes a while."""
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--no-record", "sleep", "1000")
        self.private("/root/dumped")
        self.up()
        self.all_answer()
        self.settled()
        self.much("n2")
        return run

    def dumping(self, host):
        """Starts a dump and waits until some of a host's data have arrived, shortly before all of
        them."""
        folder = lab.file("n1", "/root/dumped")
        for unfinished in folder.glob(f"{host}.*.part"):
            unfinished.unlink()
        dump = self.start("sonde", "dump", "--to", "dumped")
        until(lambda: any(folder.glob(f"{host}.*.part")) or dump.poll() is not None, "the dump is under way", pause_s=0.001)
        return dump

    @unittest.skipIf(TRANSPORT == "fabric:shm", "memory has no cable")
    def test_a_cable_that_is_cut_in_a_dump(self):
        """The node's pending reads are given up; the other nodes' data arrive as before, and its
        own as well after it is back."""
        run = self.much_to_dump()
        lab.slow("n2", delay_ms=50)
        dump = self.dumping("n2")
        lab.partition("n2")
        out, err = dump.communicate(timeout=60)
        self.assertEqual(dump.returncode, 4, err)
        self.assertIn("no data of node n2: ", err)
        self.assertEqual([line.split()[0] for line in out.splitlines()[1:-1]], ["n1", "n3"])
        lab.slow("n2")
        lab.heal("n2")
        self.all_answer()
        self.data_over()
        done = lab.run("n1", "sonde", "dump", "--to", "dumped")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.stop(run)

    def test_an_aggregator_that_dies_in_a_dump(self):
        """Twice: whatever it was doing at that moment, the nodes connect to the next one, and their
        data arrive as before."""
        run = self.much_to_dump()
        for _ in range(2):
            dump = self.dumping("n2")
            (pid,) = lab.processes("n1", "sonde aggregator ")
            os.kill(pid, signal.SIGKILL)
            dump.communicate(timeout=60)
            until(lambda: list(lab.processes("n1", "sonde aggregator ")) not in ([], [pid]), "another aggregator")
            self.all_answer()
            self.data_over()
        self.stop(run)

    def test_a_dump_onto_a_full_disk(self):
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--no-record", "sleep", "1000")
        self.up()
        self.all_answer()
        self.much("n2")
        self.private("/root/small")
        small = lab.run("n1", "sh", "-c", "mkdir /root/small && mount -t tmpfs -o size=4m small /root/small")
        self.addCleanup(lab.run, "n1", "umount", "/root/small")
        self.assertEqual(small.returncode, 0, small.stderr)
        with self.moving(1 << 20, hosts=["n2"]):
            done = lab.run("n1", "sonde", "dump", "--to", "/root/small")
        self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
        self.assertRegex(done.stderr, "no data of node n2: .*No space left on device")
        there = sorted(p.name for p in lab.file("n1", "/root/small").iterdir())
        self.assertEqual(there, ["n1.sonde", "n3.sonde"])
        checked = lab.run("n1", "sonde", "inspect", "/root/small")
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        self.stop(run)

    def test_a_dump_by_ssh(self):
        self.private("/root/it's here")
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--no-record", "--dump-node=n3", "--dump-dir=/root/it's here", "sleep", "1000")
        self.up()
        self.all_answer()
        done = lab.run("n1", "sonde", "dump")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("n3: mkdir: cannot create directory", done.stderr)
        lab.run("n3", "mkdir", "/root/it's here")
        done = lab.run("n1", "sonde", "dump", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        folder = f"/root/it's here/sonde-dump-{answer['job']}"
        self.assertEqual([f["path"] for f in answer["files"]], [f"n3:{folder}/{h}.sonde" for h in HOSTS])
        self.assertEqual({p.name: p.stat().st_size for p in lab.file("n3", folder).iterdir()}, {f"{f['host']}.sonde": f["bytes"] for f in answer["files"]})
        self.assertEqual(lab.run("n3", "sonde", "inspect", folder).returncode, 0)
        # No files are left on the first node.
        (job,) = lab.file("n1", "/tmp/sonde-0").iterdir()
        self.assertEqual([p.name for p in job.iterdir() if p.name.startswith("dump")], [])
        self.stop(run)

    # ---- recordings

    def test_every_nodes_recording_is_on_the_first(self):
        """All data up to the agents' ends are there, with --record on a private disk of the first
        node."""
        self.private("/root/kept")
        run = self.start("sonde", "run", "--verbose", "--hosts=n[1-3]", "--record=/root/kept", "sleep", "1000")
        self.up()
        self.all_answer()
        self.settled()
        self.emit()
        _, err = self.stop(run)
        self.assertNotIn("on the other nodes", err)
        self.assertEqual(self.brought(err), ["n2", "n3"] if WAY != "tcp" else [], err)
        self.assertEqual(sorted(p.name for p in lab.file("n1", "/root/kept").iterdir()), [*(f"{h}.sonde" for h in HOSTS), "run.json"])
        self.assertEqual(self.copies("/root/kept"), ["n2.sonde", "n3.sonde"])
        series = self.series("/root/kept")
        self.assertEqual([series[("emitted", h)] for h in HOSTS], [EMITTED] * 3)
        for host in HOSTS[1:]:
            self.assertFalse(lab.file(host, "/root/kept").exists(), host)

    def test_recordings_come_through_a_tree(self):
        """A relay stays until its children's recordings have arrived."""
        four = [*HOSTS, "n4"]
        self.private("/root/kept", four)
        run = self.start("sonde", "run", "--verbose", "--hosts=n[1-4]", "--fanout=2", "--record=/root/kept", "sleep", "1000")
        self.up(four)
        self.all_answer(four)
        self.settled()
        self.emit(hosts=four)
        _, err = self.stop(run)
        self.assertNotIn("on the other nodes", err)
        self.assertEqual(self.brought(err), ["n2", "n3"] if WAY != "tcp" else [], err)
        self.assertEqual(sorted(p.name for p in lab.file("n1", "/root/kept").iterdir()), [*(f"{h}.sonde" for h in four), "run.json"])

    def test_a_recording_that_cannot_come_stays(self):
        """Another file has the name of n2's; n3 has a private folder of that name."""
        self.private("/root/kept")
        lab.run("n1", "sh", "-c", "mkdir /root/kept && echo mine > /root/kept/n2.sonde")
        lab.run("n3", "mkdir", "/root/kept")
        done = lab.run("n1", "sonde", "run", "--hosts=n[1-3]", "--record=/root/kept", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, "the recording of node n2 could not be brought here: .*n2.sonde is there already")
        self.assertIn("recorded on the other nodes", done.stderr)
        self.assertEqual(lab.file("n1", "/root/kept/n2.sonde").read_text(), "mine\n")
        self.assertEqual(sorted(p.name for p in lab.file("n1", "/root/kept").iterdir()), [*(f"{h}.sonde" for h in HOSTS), "run.json"])
        self.assertEqual(lab.run("n2", "sonde", "inspect", "/root/kept").returncode, 0)
        self.assertEqual(list(lab.file("n3", "/root/kept").iterdir()), [])

    # ---- tunnels

    def answers(self, host, port):
        asked = lab.run(host, "python3", "-c", f"import urllib.request; print(urllib.request.urlopen('http://localhost:{port}/healthz', timeout=5).read())")
        return "ok" in asked.stdout

    @moves_no_data("it is about HTTP")
    def test_a_reverse_tunnel(self):
        # Both addresses of localhost there, because ssh needs only one.
        taken = lab.start("n2", "python3", "-c", "import signal, socket; a = [socket.create_server((i[4][0], 5151), family=i[0]) for i in "
                          "socket.getaddrinfo(None, 5151, type=socket.SOCK_STREAM)]; print('up', flush=True); signal.pause()")
        self.started.append(taken)
        self.assertEqual(taken.stdout.readline(), "up\n")
        run = self.start("sonde", "run", "--no-record", "--remote-tunnel-node=n2", "--remote-tunnel-port=5151", "sleep", "1000")
        # The port is taken there: reported once, and tried again.
        self.assertRegex(self.warning(run), "the tunnel from n2 is not open: .*port.* 5151")
        for pid in lab.processes("n2", "signal.pause"):
            os.kill(pid, signal.SIGKILL)
        until(lambda: self.answers("n2", 5151), "the tunnel is open")
        # A tunnel that ends is opened again.
        (ssh,) = lab.processes("n1", "ssh -N")
        os.kill(ssh, signal.SIGKILL)
        until(lambda: list(lab.processes("n1", "ssh -N")) not in ([], [ssh]) and self.answers("n2", 5151), "the tunnel is open again")
        _, err = self.stop(run)
        self.assertNotIn("tunnel", err)
        self.assertFalse(lab.processes("n1", "ssh -N"))
        until(lambda: not self.answers("n2", 5151), "the tunnel is gone with its job")

    @moves_no_data("it is about HTTP")
    def test_a_tunnel_goes_with_a_killed_launcher(self):
        run = self.start("sonde", "run", "--no-record", "--remote-tunnel-node=n2", "--remote-tunnel-port=5152", "sleep", "1000")
        until(lambda: self.answers("n2", 5152), "the tunnel is open")
        (launcher,) = lab.processes("n1", "sonde run")
        os.kill(launcher, signal.SIGKILL)
        run.communicate(timeout=60)
        until(lambda: not lab.processes("n1", "ssh -N"), "the tunnel is gone")
        for pid in lab.processes("n1", "sleep 1000"):
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(lab.run("n1", "sonde", "run", "--no-record", "true").returncode, 0)

    def post(self, path, body):
        asked = lab.run("n1", "python3", "-c", ASK.replace("headers=", f"data={json.dumps(body).encode()!r}, headers="), path)
        self.assertEqual(asked.returncode, 0, asked.stderr)
        return json.loads(asked.stdout)[2]

    @moves_no_data("a few points, and what is told to agents")
    def test_collectors_run_on_every_node(self):
        """Also on a node that is swapped in, and after a restart of the agent; a stopped one runs
        nowhere."""
        def where(metric="where"):
            """host → the process"""
            found = self.ask(f"/sonde/v1/series?match={metric}&latest")[1].get("series", [])
            return {s["tags"]["host"]: s["value"] for s in found}

        run = self.start("sonde", "run", "--hosts=n[1-3]", "--nodes=2", "--resilient", "--listen=0.0.0.0", "--no-record", "sh", "-c", "echo $SONDE_NODELIST; exec sleep 1000")
        self.assertEqual(run.stdout.readline(), "n1,n2\n")
        # Refused over the network, so the first node sends the request itself.
        url = lab.run("n1", "sh", "-c", "cat /tmp/sonde-*/*/job.json").stdout
        url = json.loads(url)["url"]
        self.assertIn("http://n1:", url)
        other = ASK.replace("headers=", "data=b'{\"name\":\"c\",\"command\":\"sleep 1000\"}', headers=").replace('json.load(open(folder + "/job.json"))["url"]', repr(url))
        asked = lab.run("n2", "python3", "-c", other, "/sonde/v1/collectors")
        self.assertEqual(json.loads(asked.stdout)[0], 403, asked)
        self.assertEqual(self.post("/sonde/v1/collectors", {"name": "a", "command": "while echo where $$; do sleep 0.1; done"}), {"asked": "collector", "name": "a"})
        self.post("/sonde/v1/collectors", {"name": "b", "command": "while echo other $$; do sleep 0.1; done"})
        until(lambda: set(where()) == set(where("other")) == {"n1", "n2"}, lambda: f"points of both nodes: {where()}")
        self.post("/sonde/v1/collectors", {"name": "b"})
        first = where()["n1"]
        self.post("/sonde/v1/reboot", {"hosts": ["n2"]})
        self.assertEqual(run.stdout.readline(), "n1,n3\n")
        until(lambda: "n3" in where(), lambda: f"points of the node that was swapped in: {where()}")
        self.assertNotIn("n3", where("other"))
        self.assertEqual(where()["n1"], first)  # it was not restarted
        before = where()["n3"]
        os.kill(self.agents("n3")[0], signal.SIGKILL)
        until(lambda: where().get("n3", before) != before, lambda: f"the new agent of n3 runs it: {where()}")
        self.stop(run)

    # ---- Slurm

    @moves_no_data("all nodes share the recording's folder")
    def test_salloc_points_land_in_the_file_of_their_node(self):
        script = self.script('ls $SONDE_SOCKET $SONDE_TOKEN_FILE >/dev/null && cat $SONDE_HOSTFILE | tr "\\n" " " && sonde put seen_by_$(hostname) 1\n')
        began = time.monotonic()
        done = self.slurm("--record", self.record, "--", "srun", "--overlap", "--ntasks-per-node=1", "--label", script)
        took = time.monotonic() - began
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.splitlines()), [f"{i}: n1 n2 n3 " for i in range(3)])
        self.assertEqual(self.files(), ["n1.sonde", "n2.sonde", "n3.sonde", "run.json"])
        series = self.series(self.record)
        for host in HOSTS:
            self.assertEqual([key for key in series if key[0] == f"seen_by_{host}"], [(f"seen_by_{host}", host)])
            self.assertGreater(series[("cpu_percent", host)], 0)
        self.assertNotIn("recorded on the other nodes", done.stderr)
        self.assertEqual(self.copies(self.record), [])  # a shared folder needs no copies
        bare = time.monotonic()
        lab.run("n1", "salloc", "--quiet", "-N3", "srun", "true")
        print(f"# salloc sonde run srun: {took:.2f} s; salloc srun true: {time.monotonic() - bare:.2f} s", flush=True)

    @moves_no_data("all nodes share the recording's folder")
    def test_libsonde_in_srun_tasks(self):
        done = self.slurm("--record", self.record, "--", "srun", "--overlap", "--ntasks-per-node=1", "timeout", "1", "emitter")
        self.assertEqual(done.stdout.count("up\n"), 3, done.stderr)
        series = self.series(self.record)
        for host in HOSTS:
            self.assertGreater(series.get(("tick", host), 0), 0, series)

    @moves_no_data("all nodes share the recording's folder")
    def test_sbatch(self):
        script = lab.shared / "batch.sh"
        script.write_text(f"#!/bin/sh\n#SBATCH -N3 --wait --output=/mnt/shared/batch.out\nsonde run --record {self.record} -- srun --overlap sonde put batched 1\n")
        done = lab.run("n1", "sbatch", "/mnt/shared/batch.sh")
        self.assertEqual(done.returncode, 0, done.stderr + (lab.shared / "batch.out").read_text())
        series = self.series(self.record)
        self.assertEqual(sorted(key for key in series if key[0] == "batched"), [("batched", host) for host in HOSTS])

    @moves_no_data("all nodes share the recording's folder")
    def test_slurm_ends_the_job(self):
        """Like scancel and the time limit: SIGTERM to all steps, later SIGKILL. The recorded data
        is there."""
        script = lab.shared / "batch.sh"
        script.write_text(f"#!/bin/sh\n#SBATCH -N3 --output=/mnt/shared/batch.out\nexec sonde run --record {self.record} sleep 1000\n")
        submitted = lab.run("n1", "sbatch", "--parsable", "/mnt/shared/batch.sh")
        self.assertEqual(submitted.returncode, 0, submitted.stderr)
        self.up()
        self.assertEqual(lab.run("n1", "scancel", submitted.stdout.strip()).returncode, 0)
        self.nothing_left()
        self.assertEqual({host for name, host in self.series(self.record) if name == "cpu_percent"}, set(HOSTS))
        files = json.loads(lab.run("n1", "sonde", "inspect", "--json", self.record).stdout)
        self.assertEqual([file["state"] for file in files], ["closed"] * 3)

    @moves_no_data("all nodes share the recording's folder")
    def test_login_node(self):
        """salloc on a machine outside of the job: the command runs there, and all nodes have
        agents."""
        done = lab.run("n1", "salloc", "--quiet", "-N2", "--nodelist=n2,n3", "sonde", "run", "--record", self.record, "sh", "-c",
                       "hostname; echo {sonde:nodelist}; srun --overlap sonde put where 1")
        self.assertEqual((done.returncode, done.stdout), (0, "n1\nn2,n3\n"), done.stderr)
        self.assertIn("none of the job's nodes", done.stderr)
        series = self.series(self.record)
        self.assertEqual(sorted(key for key in series if key[0] == "where"), [("where", "n2"), ("where", "n3")])

    @moves_no_data("all nodes share the recording's folder")
    def test_mpirun_is_the_command(self):
        done = self.slurm("--record", self.record, "--", "mpirun", "-n", "6", "--map-by", "ppr:2:node", "sh", "-c", "sonde put ranks_of_$(hostname) $OMPI_COMM_WORLD_RANK")
        self.assertEqual(done.returncode, 0, done.stderr)
        series = self.series(self.record)
        for host in HOSTS:
            self.assertIn((f"ranks_of_{host}", host), series)

    @moves_no_data("the start is the same")
    def test_token_and_key_are_seen_by_nobody_else(self):
        """They are sent to the nodes on the standard input of srun: other users of the hosts see
        nothing of it, wherever they look or connect."""
        for host in HOSTS[:2]:
            lab.run(host, "rm", "-f", "/tmp/over")
        spies = [lab.start(host, "python3", "-c", SPY, "/tmp/over") for host in HOSTS[:2]]
        for spy in spies:
            self.assertEqual(spy.stdout.readline(), "spying\n")
        run = self.start("salloc", "--quiet", "-N3", "sonde", "run", "--no-record", "sleep", "1000")
        try:
            until(lambda: "sleep 1000" in lab.processes("n1").values(), "the command runs")
            self.assertTrue(all(self.agents(host) for host in HOSTS))
            (folder,) = [path for base in lab.file("n1", "/tmp").glob("sonde-*") for path in base.iterdir()]
            token, key = (folder / "token").read_text().strip(), (folder / "key").read_bytes()
            self.stop(run)
        finally:
            for host in HOSTS[:2]:
                lab.run(host, "touch", "/tmp/over")
            said = [spy.communicate(timeout=60)[0].splitlines() for spy in spies]
            for host in HOSTS[:2]:
                lab.run(host, "rm", "-f", "/tmp/over")
        self.assertEqual((len(token), len(key)), (64, 32))
        for ports, *seen in said:
            self.assertGreater(int(ports), 1)
            everything = b"\0".join(bytes.fromhex(line) for line in seen)
            self.assertIn(b"sonde\0agent\0", everything)  # it did look
            for secret in (token.encode(), key, key.hex().encode()):
                self.assertNotIn(secret, everything)

    @moves_no_data("no run begins")
    def test_ranks_of_real_launchers(self):
        """The rank that libsonde finds, under srun and mpirun and a stand-in for torchrun."""
        torchrun = lab.shared / "torchrun.py"
        torchrun.write_text("import os, subprocess, sys\n"
                            "for local in range(2):\n"
                            "    rank = 2 * int(os.environ['SLURM_PROCID']) + local\n"
                            "    subprocess.run(sys.argv[1:], env=os.environ | {'RANK': str(10 + rank), 'LOCAL_RANK': str(local), 'WORLD_SIZE': '16'}, check=True)\n")
        self.addCleanup(torchrun.unlink)
        program, mpirun = "/mnt/bin/print_rank", "mpirun --oversubscribe"
        for command, expected in ((f"srun -N3 -n3 {program}", ["0", "1", "2"]),
                                  (f"srun -N3 -n3 sh -c '{program}; true'", ["0", "1", "2"]),
                                  (f"{mpirun} -n 3 {program}", ["0", "1", "2"]),
                                  (f"srun -N1 -n1 {mpirun} --mca plm isolated --host localhost:3 -n 3 {program}", ["0", "1", "2"]),
                                  (f"{program}", ["none"]),
                                  (f"srun -N2 -n2 python3 /mnt/shared/torchrun.py {program}", ["10", "11", "12", "13"]),
                                  (f"RANK=9 WORLD_SIZE=16 srun -N3 -n3 {program}", ["0", "1", "2"])):
            batch = self.script(f"{command} > /mnt/shared/ranks.out 2> /mnt/shared/ranks.err\n")
            done = lab.run("n1", "sbatch", "--quiet", "--wait", "-N3", "-D", "/mnt/shared", "-o", "/dev/null", batch)
            self.assertEqual(done.returncode, 0, (lab.shared / "ranks.err").read_text())
            self.assertEqual(sorted((lab.shared / "ranks.out").read_text().split()), expected, command)

    @moves_no_data("no run begins")
    def test_copies_are_refused_with_advice(self):
        for command in (["mpirun", "-n", "2", "sonde", "run", "true"], ["salloc", "--quiet", "-N2", "srun", "-n2", "sonde", "run", "true"]):
            done = lab.run("n1", *command)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(done.stderr.count("sonde run mpirun"), 1, done.stderr)

    # ---- ssh

    def test_ssh_placeholders_and_recordings_of_private_disks(self):
        done = self.ssh("--", "sh", "-c", "echo '{sonde:nodelist}|{sonde:hosts}|{sonde:nnodes}|{sonde:hostfile}|{x}'; cat {sonde:hostfile}; for h in {sonde:hosts}; do ssh $h \"SONDE_SOCKET=$SONDE_SOCKET /mnt/bin/sonde put by_ssh 1\"; done",
                        env={"SONDE_JOB": "over-ssh"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "n1,n2,n3|n1 n2 n3|3|/tmp/sonde-0/over-ssh/hostfile|{x}\nn1\nn2\nn3\n")
        kept = "/root/.local/state/sonde/runs/over-ssh"
        self.assertNotIn("recorded on the other nodes", done.stderr)
        # Everything is on the first node, and nothing is left on the others.
        self.assertEqual(sorted(p.name for p in lab.file("n1", kept).iterdir()), [*(f"{host}.sonde" for host in HOSTS), "run.json"])
        series = self.series("over-ssh")
        for host in HOSTS:
            self.assertGreater(series[("by_ssh", host)], 0)
            self.assertGreater(series[("cpu_percent", host)], 0)
        for host in HOSTS[1:]:
            self.assertFalse(lab.file(host, kept).exists(), host)

    @moves_no_data("the command ends at once, nothing is recorded")
    def test_hostfile_and_pbs(self):
        (lab.shared / "hosts").write_text("n1 slots=2\nn3:2\n\n# n2\nn1\n")
        for arguments, env in ((["--hostfile=/mnt/shared/hosts"], {}), ([], {"PBS_NODEFILE": "/mnt/shared/hosts", "PBS_JOBID": "7.lab"})):
            done = lab.run("n1", "sonde", "run", "--no-record", *arguments, "echo", "{nodelist}", "{nnodes}", env=env)
            self.assertEqual((done.returncode, done.stdout), (0, "n1,n3 2\n"), done.stderr)

    @moves_no_data("the command ends at once, nothing is recorded")
    def test_a_name_twice(self):
        """The address of a node whose name is in the list, too: one node."""
        done = lab.run("n1", "sonde", "run", "--no-record", "--hosts=n1,n2,10.77.0.12", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, "node (n2|10.77.0.12) has not come up")

    # ---- hosts that do not start

    @moves_no_data("the command ends at once, nothing is recorded")
    def test_a_dead_host_is_named_and_the_run_goes_on(self):
        for start in (self.ssh, self.slurm):
            lab.partition("n3")
            done = start("--no-record", "--", "sh", "-c", "echo {sonde:nodelist}")
            lab.heal("n3")
            self.assertEqual((done.returncode, done.stdout), (0, "n1,n2\n"), done.stderr)
            self.assertIn("node n3 has not come up", done.stderr)

    @moves_no_data("no run begins")
    def test_strict(self):
        done = lab.run("n1", "sonde", "run", "--strict", "--hosts=n1,n9,n2", "echo", "begun")
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertIn("n9 did not come up, and the run is --strict", done.stderr)

    @moves_no_data("no other node comes up")
    def test_no_sonde_there(self):
        done = self.ssh("--no-record", "--remote-sonde=/nowhere/sonde", "--", "echo", "{nodelist}")
        self.assertEqual((done.returncode, done.stdout), (0, "n1\n"), done.stderr)
        self.assertIn("node n2 has not come up", done.stderr)
        self.assertIn("/nowhere/sonde", done.stderr)

    @moves_no_data("no other node comes up")
    def test_a_run_folder_that_nodes_share(self):
        done = self.ssh("--no-record", "--run-dir=/mnt/shared", "--", "echo", "{nodelist}")
        self.assertEqual((done.returncode, done.stdout), (0, "n1\n"), done.stderr)
        self.assertIn("nodes share it", done.stderr)

    def test_a_slow_host(self):
        lab.slow("n2", delay_ms=50, loss_percent=5)
        pinged = lab.run("n1", "python3", "-c", CONNECT_TIME, "10.77.0.12")
        self.assertGreater(float(pinged.stdout), 0.09, "the link is slow: there and back")
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--record", self.record, "sleep", "1000")
        self.up()
        self.all_answer()
        self.settled()
        self.data_comes()
        _, err = self.stop(run)
        self.assertEqual(self.files(), ["n1.sonde", "n2.sonde", "n3.sonde", "run.json"], err)
        self.assertNotIn("lost", err)

    # ---- failures during the job

    def test_partition_is_named_and_over_when_it_heals(self):
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--node-timeout=2", "--record", self.record, "sleep", "1000")
        self.up()
        lab.partition("n2")
        self.hears(run, "node n2 is lost: nothing was heard of it for 2 s")
        lab.heal("n2")
        self.hears(run, "node n2 is back")
        _, err = self.stop(run)
        self.assertEqual(self.files(), ["n1.sonde", "n2.sonde", "n3.sonde", "run.json"], err)

    def test_killed_node_is_named_at_once(self):
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--no-record", "sleep", "1000")
        self.up()
        lab.kill("n3")
        self.hears(run, "node n3 is lost")
        self.stop(run)
        self.assertEqual(run.returncode, 130)
        # The next `sonde node` there cleans up after a killed one.
        self.assertEqual(self.ssh("--no-record", "true").returncode, 0)

    def test_killed_agent_is_started_again(self):
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--record", self.record, "sleep", "1000")
        self.up()
        (pid,) = self.agents("n2")
        os.kill(pid, signal.SIGKILL)
        self.hears(run, "node n2: the agent has ended (signal 9 (Killed)); starting it again")
        until(lambda: self.agents("n2") not in ([], [pid]), "another agent")
        self.stop(run)
        self.assertEqual(self.files(), ["n1.sonde", "n2.sonde", "n3.sonde", "run.json"])

    def test_killed_launcher_leaves_nothing(self):
        for command in (["sonde", "run", "--hosts=n[1-3]"], ["salloc", "--quiet", "-N3", "sonde", "run"]):
            run = self.start(*command, "--no-record", "sleep", "1000")
            self.up()
            for pid, text in lab.processes("n1", "sonde run").items():
                if "salloc" not in text:
                    os.kill(pid, signal.SIGKILL)
            run.communicate(timeout=60)
            until(lambda: not any(self.ours(host) for host in HOSTS), lambda: f"all gone: {[self.ours(host) for host in HOSTS]}")
            # The next run on the first node, which is this one, cleans up its run folder.
            self.assertEqual(lab.run("n1", "sonde", "run", "--no-record", "true").returncode, 0)
            self.nothing_left()

    def test_signals_end_everything(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            run = self.start("sonde", "run", "--hosts=n[1-3]", "--no-record", "sleep", "1000")
            self.up()
            (launcher,) = lab.processes("n1", "sonde run")
            os.kill(launcher, number)
            run.communicate(timeout=60)
            self.assertEqual(run.returncode, code)
            self.nothing_left()

    # ---- restarts

    def walk(self, *, attempts):
        """A command that records how often it has run and on which nodes, sleeps in all but the
        last attempt, and ends when its pipe is closed."""
        return self.script(f'echo "$SONDE_RESTART $SONDE_NODELIST" >> /mnt/shared/walk\n[ $SONDE_RESTART = {attempts - 1} ] && exit 0\nsleep 1000\n')

    def walked(self, lines):
        path = lab.shared / "walk"
        until(lambda: path.exists() and path.read_text().count("\n") >= lines, lambda: f"{lines} attempts: {path.read_text() if path.exists() else 'none'}")
        return path.read_text().splitlines()

    def test_resilient_walk(self):
        """Two of three nodes; one is lost: the reserve replaces it; that is lost, too: the first
        node continues alone."""
        (lab.shared / "walk").unlink(missing_ok=True)
        run = self.start("salloc", "--quiet", "-N3", "sonde", "run", "--nodes=2", "--node-timeout=3", "--resilient", "--exhaust-resources", "--record", self.record, self.walk(attempts=3))
        self.assertEqual(self.walked(1), ["0 n1,n2"])
        self.assertEqual(self.agents("n3"), [])
        lab.kill("n2")
        self.assertEqual(self.walked(2)[1], "1 n1,n3")
        self.assertTrue(self.agents("n3"))
        lab.kill("n3")
        self.assertEqual(self.walked(3)[2], "2 n1")
        out, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 0, err)
        self.assertIn("node n2 is lost", err)
        self.assertIn("starting it again on 2 nodes", err)
        self.assertIn("starting it again on 1 node", err)
        self.assertIn("n1.sonde", self.files())
        swept = self.ssh("--quiet", "--no-record", "true")  # cleans up after the killed nodes
        self.assertEqual((swept.returncode, swept.stderr), (0, ""))
        told = json.loads((lab.shared / "test_resilient_walk" / "run.json").read_text())
        self.assertEqual((told["host"], told["exit_code"]), ("n1", 0))

    @moves_no_data("nothing is asked or recorded")
    def test_resilient_without_reserves_gives_up(self):
        run = self.start("sonde", "run", "--hosts=n[1-2]", "--resilient", "--no-record", "sleep", "1000")
        self.up(["n1", "n2"])
        lab.kill("n2")
        _, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 1, err)
        self.assertIn("--exhaust-resources goes on with fewer", err)
        lab.run("n2", "sonde", "run", "--no-record", "true")

    def test_a_partitioned_node_is_left_behind(self):
        (lab.shared / "walk").unlink(missing_ok=True)
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--nodes=2", "--resilient", "--node-timeout=2", "--no-record", self.walk(attempts=2))
        self.assertEqual(self.walked(1), ["0 n1,n2"])
        lab.partition("n2")
        self.assertEqual(self.walked(2)[1], "1 n1,n3")
        _, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 0, err)
        lab.heal("n2")
        # Its node ends when it notices the end of the launcher, by the connection or, without that,
        # by a timeout.
        for pid in lab.processes("n2", "sonde node"):
            os.kill(pid, signal.SIGTERM)

    @moves_no_data("nothing is asked or recorded")
    def test_a_failure_because_of_a_lost_node_is_the_nodes(self):
        """The command fails before the launcher knows that a node is lost: it finds that out first,
        then restarts the command."""
        (lab.shared / "walk").unlink(missing_ok=True)
        (lab.shared / "fail").unlink(missing_ok=True)
        script = self.script('echo "$SONDE_RESTART $SONDE_NODELIST" >> /mnt/shared/walk\n[ $SONDE_RESTART = 1 ] && exit 0\n'
                             'until [ -e /mnt/shared/fail ]; do sleep 0.02; done\nexit 1\n')
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--nodes=2", "--resilient", "--node-timeout=2", "--no-record", script)
        self.walked(1)
        lab.partition("n2")
        (lab.shared / "fail").touch()
        self.assertEqual(self.walked(2), ["0 n1,n2", "1 n1,n3"])
        _, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 0, err)
        lab.heal("n2")
        for pid in lab.processes("n2", "sonde node"):
            os.kill(pid, signal.SIGTERM)

    @moves_no_data("the command ends at once, nothing is recorded")
    def test_restart_by_exit_code(self):
        script = self.script('echo "$SONDE_RESTART"\n[ $SONDE_RESTART = 2 ] && exit 3\nexit 42\n')
        done = self.ssh("--no-record", "--restart-on-exit=42", script)
        self.assertEqual((done.returncode, done.stdout), (3, "0\n1\n2\n"), done.stderr)
        done = self.ssh("--no-record", "--restart-on-exit=42", "--max-restarts=1", script)
        self.assertEqual((done.returncode, done.stdout), (42, "0\n1\n"), done.stderr)

    @moves_no_data("it is about the command's processes")
    def test_a_restart_leaves_nothing_of_the_last_attempt(self):
        """The srun that a script had started has ended before the script is started again."""
        (lab.shared / "walk").unlink(missing_ok=True)
        script = self.script('[ $SONDE_RESTART = 1 ] && { pgrep -f "sleep 99[9]" && echo left; exit 0; }\n'
                             'sleep 999 &\nsetsid sleep 999 &\necho up >> /mnt/shared/walk\nwait\n')
        run = self.start("sonde", "run", "--hosts=n[1-2]", "--resilient", "--exhaust-resources", "--no-record", script)
        self.walked(1)
        lab.kill("n2")
        out, err = run.communicate(timeout=60)
        self.assertEqual((run.returncode, out), (0, ""), err)
        lab.run("n2", "sonde", "run", "--no-record", "true")


if __name__ == "__main__":
    skip_if(why_not(TRANSPORT))
    sys.exit(parallel_labs.run("__main__", open_lab, LABS, sys.argv[1:]))
