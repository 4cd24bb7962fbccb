"""Tests of the class Cluster (test_cluster.py): query commands on the nodes of running jobs. They
compare the output of commands with the responses over HTTP."""

import csv
import io
import json
import os
import signal
import time
import unittest

from lab import PATIENCE_S, until

AROUND = ("SONDE_URL", "SONDE_TOKEN_FILE", "SONDE_SOCKET", "SONDE_JOB", "SONDE_RUN_DIR", "SONDE_NODELIST")


# Marks tests that do not depend on the transport of nodes' data; they run over TCP only.
once = unittest.skipIf(os.environ.get("LAB_TRANSPORT", "tcp") != "tcp" and "LAB_ALL" not in os.environ, "moves no data: clients on other nodes use TCP")


class ClientCommands:
    def around(self, job="sleep 1000"):
        """Returns sonde's variables in the environment of a job's command."""
        (pid,) = self.running(job)
        return dict(line.split("=", 1) for line in open(f"/proc/{pid}/environ").read().split("\0") if line.startswith(AROUND))

    def running(self, command):
        """Returns the processes on n1 whose whole command line is this command."""
        return [pid for pid, text in self.lab.processes("n1", command).items() if text == command]

    def sonde(self, host, *arguments, env=None, code=0, err=""):
        """Runs sonde on a host and returns its output; checks its exit code, and its stderr without
        the line about the target."""
        done = self.lab.run(host, "sonde", *arguments, env=env)
        said = [line for line in done.stderr.splitlines() if not line.startswith("sonde: running job")]
        self.assertEqual((done.returncode, "\n".join(said)), (code, err), (host, arguments, done.stderr, done.stdout))
        return done.stdout

    def each_way(self, env):
        """Returns pairs of a host and an environment: the first node and another one; without and
        with the job's environment. Without it, a command finds the job by its run folder."""
        return (("n1", None), ("n1", env), ("n3", None), ("n3", env))

    def steps(self, slow):
        """Emits a value per node and round, 10 s apart; one node becomes slow."""
        begin = int(time.time()) - 1000
        for i, host in enumerate(self.hosts):
            lines = "".join(f"put step_seconds {begin + 10 * r} {(1 + 0.01 * ((7 * r + 3 * i) % 5)) * (2 if host == slow and r >= 20 else 1)}\n" for r in range(40))
            self.assertEqual(self.lab.run(host, "sonde", "put", stdin=lines).returncode, 0)

    def test_commands_answer_for_all_nodes(self):
        self.check_commands()

    @once
    def test_commands_answer_where_the_server_listens_on_all_addresses(self):
        self.check_commands("--listen=0.0.0.0")

    def check_commands(self, *options):
        run = self.start("sonde", "run", "--hosts=n[1-3]", *options, "--telemetry-level=1", "--no-record", "sleep", "1000")
        self.up()
        self.all_answer()
        env = self.around()
        self.steps("n2")
        self.sonde("n3", "annotate", "rate halved", "rank=3", env=env)
        _, points = self.ask("/api/query?ms&start=1h-ago&no_annotations&m=max:custom%7Bhost=*%7D")
        _, average = self.ask("/api/query?ms&start=1h-ago&no_annotations&m=max:10s-max:step_seconds")
        _, notes = self.ask("/sonde/v1/annotations?limit=0")
        self.assertEqual([n["text"] for n in notes["annotations"]], ["rate halved"])
        for host, around in self.each_way(env):
            self.assertEqual(json.loads(self.sonde(host, "query", "--json", "max:custom{host=*}", env=around)), points)
            self.assertEqual(json.loads(self.sonde(host, "query", "--json", "max:10s-max:step_seconds", env=around)), average)
            listed = json.loads(self.sonde(host, "query", "--list", "--json", env=around))
            self.assertEqual({s["tags"]["host"]: s["points"] for s in listed if s["metric"] == "step_seconds"}, dict.fromkeys(self.hosts, 40))
            self.assertEqual(json.loads(self.sonde(host, "query", "--annotations", "--json", env=around)), notes["annotations"])
            (tag,) = json.loads(self.sonde(host, "query", "--tags=custom", "--json", env=around))
            self.assertEqual((tag["key"], tag["values"], tag["examples"]), ("host", 3, list(self.hosts)))
            found = json.loads(self.sonde(host, "detect", "--json", "step_seconds", env=around, code=3))
            self.assertEqual({m["member"]: m["state"] for m in found["members"]}, {"host=n1": "good", "host=n2": "slow", "host=n3": "good"})
            (job,) = json.loads(self.sonde(host, "status", "--json", env=around))
            self.assertIn("3 nodes  level 1 ", self.sonde(host, "top", "--once", env=around))
            # A tunnel through another node would not reach the server.
            self.assertEqual(job["tunnel"] != "", host == "n1" and not options, job)
            self.assertEqual(([n["host"] for n in job["nodes"]], job["missing"]), (list(self.hosts), ""))
            self.assertGreaterEqual(job["points"], 3 * 41)
        self.stop(run)

    def test_a_missing_node_is_named(self):
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--telemetry-level=1", "--no-record", "sleep", "1000")
        self.up()
        self.all_answer()
        env = self.around()
        self.steps("n3")
        self.lab.partition("n2")
        until(lambda: self.ask("/sonde/v1/nodes")[0] == "n2 (not connected)", "n2 is missing")
        missing = "sonde: missing in the answer: n2 (not connected)"
        for host, around in self.each_way(env):
            answer = json.loads(self.sonde(host, "query", "--json", "max:custom{host=*}", env=around, err=missing))
            self.assertEqual([s["tags"]["host"] for s in answer], ["n1", "n3"])
            self.sonde(host, "query", "--strict", "max:custom{host=*}", env=around, err=missing, code=4)
            # This query needs no data of the missing node.
            self.sonde(host, "query", "--strict", "max:custom{host=n1}", env=around)
            listed = json.loads(self.sonde(host, "query", "--list", "--json", "--strict", env=around, err=missing, code=4))
            self.assertEqual({s["tags"]["host"] for s in listed if s["metric"] == "custom"}, {"n1", "n3"})
            self.sonde(host, "detect", "--strict", "step_seconds", env=around, err=missing, code=4)
            self.sonde(host, "detect", "step_seconds", env=around, err=missing, code=3)
            exported = self.sonde(host, "export", "-q", "--metric", "custom", env=around, err=missing.replace("answer", "export"))
            self.assertEqual({row["host"] for row in csv.DictReader(io.StringIO(exported))}, {"n1", "n3"})
            self.sonde(host, "export", "-q", "--metric", "custom", "--strict", env=around, err=missing.replace("answer", "export"), code=4)
            (job,) = json.loads(self.sonde(host, "status", "--json", env=around, err=missing))
            self.assertEqual(([n["host"] for n in job["nodes"]], job["missing"]), (["n1", "n3"], "n2 (not connected)"))
            self.sonde(host, "status", "--strict", env=around, err=missing, code=4)
        self.lab.heal("n2")
        self.all_answer()
        self.stop(run)

    def socket(self, host, *arguments, uid=0):
        """Sends a request through the socket in a host's run folder; returns (status, answer)."""
        path = next((f"/tmp/sonde-0/{p.parent.name}/http.sock" for p in self.lab.file(host, "/tmp/sonde-0").glob("*/http.sock")), "/none")
        asked = self.lab.run(host, "setpriv", f"--reuid={uid}", "--clear-groups", "curl", "-sS", "-w", "\\n%{http_code}", "--unix-socket", path, *arguments)
        body, _, status = asked.stdout.rpartition("\n")
        return int(status), body or asked.stderr

    @once
    def test_the_way_to_the_first_node(self):
        """The socket in a run folder takes only permitted requests of the job's own user, and
        forwards them to the first node."""
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--telemetry-level=1", "--no-record", "sleep", "1000")
        self.up()
        self.all_answer()
        nodes = "http://127.0.0.1:4242/sonde/v1/nodes"
        status, body = self.socket("n3", nodes)
        self.assertEqual((status, [n["host"] for n in json.loads(body)["nodes"]]), (200, list(self.hosts)))
        self.assertEqual(self.lab.run("n1", "ls", *(f"/tmp/sonde-0/{p.name}" for p in self.lab.file("n1", "/tmp/sonde-0").iterdir())).stdout.count("http.sock"), 0)
        # Another user cannot enter the folder; if the folder is open, the socket refuses the user.
        status, body = self.socket("n3", nodes, uid=65534)
        self.assertEqual(status, 0, body)
        self.lab.run("n3", "sh", "-c", "chmod 755 /tmp/sonde-0 /tmp/sonde-0/*; chmod 777 /tmp/sonde-0/*/http.sock")
        status, body = self.socket("n3", nodes, uid=65534)
        self.assertEqual((status, json.loads(body)["error"]["message"]), (503, "only the job's own user may use this socket"))
        self.lab.run("n3", "sh", "-c", "chmod 700 /tmp/sonde-0 /tmp/sonde-0/*")
        # The first node trusts such a request neither as a local program's nor as one of a foreign
        # web page.
        status, body = self.socket("n3", "-d", '{"script":"rate=1 echo 1"}', "http://127.0.0.1:4242/sonde/v1/collectors")
        self.assertEqual((status, json.loads(body)["error"]["message"]), (403, "only programs on this machine may send this request"))
        for header in ("Origin: http://evil.example", "Sec-Fetch-Site: cross-site", "Host: evil.example"):
            self.assertEqual(self.socket("n3", "-H", header, nodes)[0], 403, header)
        # A killed relay is restarted and makes the socket again.
        self.lab.signal("n3", signal.SIGKILL, "sonde relay ")
        until(lambda: self.socket("n3", nodes)[0] == 200, "the next relay leads there")
        # A node that cannot reach the first node says so.
        self.lab.partition("n3")
        status, body = self.socket("n3", nodes)
        self.assertEqual(status, 503, body)
        self.assertRegex(json.loads(body)["error"]["message"], "this node does not reach the job's first node at .* port [0-9]+: ")
        asked = self.lab.run("n3", "sonde", "query", "--list")
        self.assertEqual((asked.returncode, "this node does not reach the job's first node" in asked.stderr), (1, True), asked.stderr)
        self.lab.heal("n3")
        self.all_answer()
        self.assertEqual(self.socket("n3", nodes)[0], 200)
        self.stop(run)

    @once
    def test_another_node_asks_for_a_restart(self):
        """A program on another node has the permissions that the control token gives to another
        machine."""
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--nodes=2", "--resilient", "--telemetry-level=1", "--no-record", "sh", "-c", "echo $SONDE_NODELIST; exec sleep 1000")
        self.assertEqual(run.stdout.readline(), "n1,n2\n")
        until(lambda: self.socket("n2", "http://127.0.0.1/sonde/v1/nodes")[0] == 200, "n2 reaches the first node")
        status, body = self.socket("n2", "-d", '{"hosts":["n2"]}', "http://127.0.0.1/sonde/v1/reboot")
        self.assertEqual(status, 200, body)
        self.assertEqual(run.stdout.readline(), "n1,n3\n")
        self.stop(run)

    @once
    def test_a_step_of_slurm_asks_on_every_node(self):
        script = self.script("""sonde put custom 1
until [ "$(sonde query --json 'max:custom{host=*}' 2>/dev/null | grep -oE '"host": ?"n[0-9]"' | sort -u | wc -l)" = 3 ]; do sleep 0.1; done
sonde query --list --strict >/dev/null && echo $(hostname) has all
""")
        done = self.slurm("--telemetry-level=1", "--record", self.record, "--", "srun", "--overlap", "--ntasks-per-node=1", script)
        self.assertEqual((done.returncode, sorted(done.stdout.splitlines())), (0, [f"{host} has all" for host in self.hosts]), done.stderr)

    @once
    def test_a_node_behind_a_relay_reaches_the_first_one(self):
        four = [*self.hosts, "n4"]
        run = self.start("sonde", "run", "--hosts=n[1-4]", "--fanout=2", "--telemetry-level=1", "--node-timeout=2", "--no-record", "sleep", "1000")
        self.up(four)
        self.all_answer(four)
        answer = json.loads(self.sonde("n4", "query", "--strict", "--json", "max:custom{host=*}"))
        self.assertEqual([s["tags"]["host"] for s in answer], four)
        # When n2, the relay of n4, is cut off, n4 reaches the first node without it.
        self.lab.partition("n2")
        until(lambda: (self.ask("/sonde/v1/nodes")[0] or "").startswith("n2 ("), "n2 is missing")
        until(lambda: [s["tags"]["host"] for s in json.loads(self.lab.run("n4", "sonde", "query", "--json", "max:custom{host=*}").stdout)] == ["n1", "n3", "n4"], "the others answer")
        self.lab.heal("n2")
        self.all_answer(four)
        self.stop(run)

    def test_two_jobs_at_once(self):
        for name, seconds in (("one", "1001"), ("two", "1002")):
            self.start("env", f"SONDE_JOB={name}", "sonde", "run", "--hosts=n[1-3]", "--telemetry-level=1", "--no-record", "sleep", seconds)
            # The jobs start one after the other, because they are listed in that order.
            until(lambda seconds=seconds: self.running(f"sleep {seconds}"), f"the command of {name} runs")
        for i, job in enumerate(("one", "two")):
            for host in self.hosts:
                put = self.lab.run(host, "sonde", "put", "custom", str(i), env={"SONDE_SOCKET": f"/tmp/sonde-0/{job}/agent.sock"})
                self.assertEqual(put.returncode, 0, put.stderr)

        def answers(job):
            asked = self.lab.run("n1", "sonde", "query", "--json", "max:0all-max:custom{host=*}", "--job", job)
            return {s["tags"]["host"]: max(s["dps"].values()) for s in json.loads(asked.stdout)} if asked.returncode == 0 else None
        for i, job in enumerate(("one", "two")):
            until(lambda: answers(job) == dict.fromkeys(self.hosts, i), lambda: f"all of {job} answer: {answers(job)}")
        both = json.loads(self.sonde("n1", "query", "--json", "max:0all-max:custom{host=*}", "one", "two"))
        self.assertEqual([(s["tags"]["job"], s["tags"]["host"], max(s["dps"].values())) for s in both], [(job, host, i) for i, job in enumerate(("one", "two")) for host in self.hosts])
        (second,) = json.loads(self.sonde("n1", "query", "--json", "max:0all-max:custom{job=two}", "one", "two"))
        self.assertEqual((second["tags"], second["aggregateTags"]), ({"job": "two"}, ["host"]))
        listed = json.loads(self.sonde("n1", "query", "--list", "--json", "one", "two"))
        self.assertEqual(sorted((s["tags"]["job"], s["tags"]["host"]) for s in listed if s["metric"] == "custom"), [(job, host) for job in ("one", "two") for host in self.hosts])
        self.sonde("n1", "query", "--list", "--job", "oone", code=1, err="sonde: error: there is no job oone, neither running nor recorded; running: two, one; did you mean one?")
        for pid in self.running("sleep 1001") + self.running("sleep 1002"):
            os.kill(pid, signal.SIGTERM)
        for process in self.started:
            process.communicate(timeout=PATIENCE_S)
