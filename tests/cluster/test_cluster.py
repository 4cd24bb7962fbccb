"""Runs over several hosts: the lab's, under its Slurm, over ssh, with Open MPI. One lab serves all tests; each leaves it as it was.

Where there is no root or no namespaces the suite is skipped with a word.
"""

import json
import os
import signal
import sys
import time
import unittest

from lab import Lab, until, why_not

SONDE = os.environ["SONDE"]
EMITTER = os.environ["EMITTER"]
HOSTS = ["n1", "n2", "n3"]
# Asks the job that runs on a host: prints status, X-Sonde-Missing and the answer.
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
CUSTOM = "/api/query?start=1h-ago&no_annotations&m=max:custom%7Bhost=*%7D"
SERVICES = ("munged", "slurmd", "slurmctld", "sshd:", "host.py", "slurmstepd")
lab = None


def setUpModule():
    global lab
    began = time.monotonic()
    lab = Lab([SONDE, EMITTER], names=(*HOSTS, "n4"))  # n4 is for the tree
    print(f"# lab up in {time.monotonic() - began:.1f} s", flush=True)


def tearDownModule():
    lab.close()


class Cluster(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.record = f"/mnt/shared/{self.id().rsplit('.', 1)[1]}"
        self.started = []

    def tearDown(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        for host in lab.names:
            lab.heal(host)
            lab.slow(host)
        lab.run("n1", "scancel", "--user=root")
        try:
            self.nothing_left()
        finally:  # one that fails does not spoil the next
            for host in lab.names:
                for pid in self.ours(host):
                    os.kill(pid, signal.SIGKILL)
                lab.run(host, "sh", "-c", "rm -rf /tmp/*")
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
        """A command that all hosts see."""
        path = lab.shared / f"{self.id().rsplit('.', 1)[1]}.sh"
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return f"/mnt/shared/{path.name}"

    # ---- looking

    def ours(self, host):
        """What runs on a host beside its services."""
        return {pid: text for pid, text in lab.processes(host).items() if not any(word in text for word in SERVICES)}

    def nothing_left(self):
        """No process of ours, and nothing in any host's folder of running jobs."""
        def clean():
            return not any(self.ours(host) or list(lab.file(host, "/tmp").iterdir()) for host in lab.names)
        until(clean, lambda: f"hosts are clean: {[(h, self.ours(h), [str(p) for p in lab.file(h, '/tmp').rglob('*')]) for h in HOSTS]}")

    def series(self, path):
        """(metric, host) → points, of what a path of the shared folder holds."""
        listed = lab.run("n1", "sonde", "query", "--list", "--json", path)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        return {(s["metric"], s["tags"].get("host")): s["points"] for s in json.loads(listed.stdout)}

    def files(self):
        return sorted(p.name for p in (lab.shared / self.record.rsplit("/", 1)[1]).iterdir())

    def agents(self, host):
        return [pid for pid, text in lab.processes(host, "sonde agent ").items()]

    def up(self, hosts=HOSTS):
        """Waits until the command runs, which is when all agents do."""
        until(lambda: "sleep 1000" in lab.processes("n1").values(), lambda: f"the command runs: {[self.ours(h) for h in HOSTS]}")
        for host in hosts:
            self.assertTrue(self.agents(host), host)

    def stop(self, process):
        """Ctrl-C, and what the run has said."""
        for pid, text in lab.processes("n1", "sonde run").items():
            if "salloc" not in text and "nsenter" not in text:
                os.kill(pid, signal.SIGINT)
        return process.communicate(timeout=60)

    def ask(self, path):
        """(missing, answer) of the job on n1; None where nobody answers yet."""
        asked = lab.run("n1", "python3", "-c", ASK, path)
        if asked.returncode != 0:
            return None, None
        status, missing, answer = json.loads(asked.stdout)
        self.assertEqual(status, 200, answer)
        return missing, answer

    def all_answer(self, hosts=HOSTS):
        """Every host has a point of its own in one answer, and nobody is missing in it."""
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

    # ---- several nodes in one answer

    def test_one_answer_of_all_nodes_under_slurm(self):
        run = self.start("salloc", "--quiet", "-N3", "sonde", "run", "--no-record", "sleep", "1000")
        self.up()
        self.all_answer()
        self.assertEqual([n["host"] for n in self.ask("/sonde/v1/nodes")[1]["nodes"]], HOSTS)
        # The job's key is a secret.
        (folder,) = lab.file("n1", "/tmp/sonde-0").iterdir()
        key = (folder / "key").read_bytes().hex()
        for host in HOSTS:
            self.assertFalse([text for text in lab.processes(host).values() if key in text], host)
        # An aggregator that dies is found again by the nodes.
        (pid,) = lab.processes("n1", "sonde aggregator ")
        os.kill(pid, signal.SIGKILL)
        until(lambda: list(lab.processes("n1", "sonde aggregator ")) not in ([], [pid]), "another aggregator")
        self.all_answer()
        self.stop(run)

    def test_one_answer_of_all_nodes_over_ssh(self):
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--no-record", "sleep", "1000")
        self.up()
        self.all_answer()
        # A relay that dies is started again.
        (pid,) = lab.processes("n2", "sonde relay ")
        os.kill(pid, signal.SIGKILL)
        self.assertIn("node n2: the relay has ended (signal 9 (Killed)); starting it again", run.stderr.readline())
        self.all_answer()
        # Who is away is named, within the time that a question has, and is there again afterwards.
        lab.partition("n2")
        missing, answer = self.ask(CUSTOM)
        self.assertIn(missing, ("n2 (late)", "n2 (not connected)"))
        self.assertEqual([a["tags"]["host"] for a in answer], ["n1", "n3"])
        lab.heal("n2")
        self.all_answer()
        # Who does not have the key is not taken for a node.
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
        """With a fanout of 2 the fourth node is asked through the second; when that is away, directly."""
        four = [*HOSTS, "n4"]
        run = self.start("sonde", "run", "--hosts=n[1-4]", "--fanout=2", "--node-timeout=2", "--node-deadline=5", "--no-record", "sleep", "1000")
        self.up(four)
        self.all_answer(four)

        def connected():
            return {n["host"]: (n["connected"], n.get("via")) for n in self.ask("/sonde/v1/status")[1]["hub"]["nodes"]}
        behind = {"n2": (True, None), "n3": (True, None), "n4": (False, "n2")}
        until(lambda: connected() == behind, lambda: f"n4 is behind n2: {connected()}")
        # A relay that is away takes nobody with it for long: where the launcher has not told n4 yet, that one is named.
        lab.partition("n2")
        missing, _ = self.ask(CUSTOM)
        self.assertIn(missing, ("n2 (late), n4 (late: its relay is missing)", "n2 (late)", "n2 (not connected)"))
        until(lambda: self.ask(CUSTOM)[0] in ("n2 (late)", "n2 (not connected)"), lambda: f"n4 answers without n2: {self.ask(CUSTOM)} {connected()}")
        until(lambda: [a["tags"]["host"] for a in self.ask(CUSTOM)[1]] == ["n1", "n3", "n4"], "the other three answer")
        lab.heal("n2")
        self.all_answer(four)
        until(lambda: connected() == behind, lambda: f"n4 is behind n2 again: {connected()}")
        # One that dies is started again, and its children come back.
        (pid,) = lab.processes("n2", "sonde relay ")
        os.kill(pid, signal.SIGKILL)
        self.all_answer(four)
        until(lambda: connected() == behind, lambda: f"n4 is behind n2 again: {connected()}")
        self.stop(run)

    def test_a_restart_is_asked_for_over_http(self):
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--nodes=2", "--resilient", "--no-record", "sh", "-c", "echo $SONDE_NODELIST; exec sleep 1000")
        self.assertEqual(run.stdout.readline(), "n1,n2\n")
        until(lambda: self.ask("/sonde/v1/status")[1]["missing"] == [], "n2 is connected")
        asked = lab.run("n1", "python3", "-c", ASK.replace("headers=", "data=b'{\"hosts\":[\"n2\"]}', headers="), "/sonde/v1/reboot")
        self.assertEqual(json.loads(asked.stdout)[2]["hosts"], ["n2"], asked.stderr)
        self.assertEqual(run.stdout.readline(), "n1,n3\n")
        # The node in its place is asked, the other one is not missed.
        until(lambda: self.ask("/sonde/v1/status")[1]["missing"] == [] and [n["host"] for n in self.ask("/sonde/v1/nodes")[1]["nodes"]] == ["n1", "n3"], "n3 is in its place")
        self.up(["n1", "n3"])
        self.stop(run)

    # ---- Slurm

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
        bare = time.monotonic()
        lab.run("n1", "salloc", "--quiet", "-N3", "srun", "true")
        print(f"# salloc sonde run srun: {took:.2f} s; salloc srun true: {time.monotonic() - bare:.2f} s", flush=True)

    def test_libsonde_in_srun_tasks(self):
        done = self.slurm("--record", self.record, "--", "srun", "--overlap", "--ntasks-per-node=1", "timeout", "1", "emitter")
        self.assertEqual(done.stdout.count("up\n"), 3, done.stderr)
        series = self.series(self.record)
        for host in HOSTS:
            self.assertGreater(series.get(("tick", host), 0), 0, series)

    def test_sbatch(self):
        script = lab.shared / "batch.sh"
        script.write_text(f"#!/bin/sh\n#SBATCH -N3 --wait --output=/mnt/shared/batch.out\nsonde run --record {self.record} -- srun --overlap sonde put batched 1\n")
        done = lab.run("n1", "sbatch", "/mnt/shared/batch.sh")
        self.assertEqual(done.returncode, 0, done.stderr + (lab.shared / "batch.out").read_text())
        series = self.series(self.record)
        self.assertEqual(sorted(key for key in series if key[0] == "batched"), [("batched", host) for host in HOSTS])

    def test_login_node(self):
        """salloc on a machine that is none of the job's: the command runs there, and all nodes have agents."""
        done = lab.run("n1", "salloc", "--quiet", "-N2", "--nodelist=n2,n3", "sonde", "run", "--record", self.record, "sh", "-c",
                       "hostname; echo {nodelist}; srun --overlap sonde put where 1")
        self.assertEqual((done.returncode, done.stdout), (0, "n1\nn2,n3\n"), done.stderr)
        self.assertIn("none of the job's nodes", done.stderr)
        series = self.series(self.record)
        self.assertEqual(sorted(key for key in series if key[0] == "where"), [("where", "n2"), ("where", "n3")])

    def test_mpirun_is_the_command(self):
        done = self.slurm("--record", self.record, "--", "mpirun", "-n", "6", "--map-by", "ppr:2:node", "sh", "-c", "sonde put ranks_of_$(hostname) $OMPI_COMM_WORLD_RANK")
        self.assertEqual(done.returncode, 0, done.stderr)
        series = self.series(self.record)
        for host in HOSTS:
            self.assertIn((f"ranks_of_{host}", host), series)

    def test_copies_are_refused_with_advice(self):
        for command in (["mpirun", "-n", "2", "sonde", "run", "true"], ["salloc", "--quiet", "-N2", "srun", "-n2", "sonde", "run", "true"]):
            done = lab.run("n1", *command)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(done.stderr.count("sonde run mpirun"), 1, done.stderr)

    # ---- ssh

    def test_ssh_placeholders_and_recordings_of_private_disks(self):
        done = self.ssh("--", "sh", "-c", "echo '{nodelist}|{hosts}|{nnodes}|{hostfile}|{x}'; cat {hostfile}; for h in {hosts}; do ssh $h \"SONDE_SOCKET=$SONDE_SOCKET /mnt/bin/sonde put by_ssh 1\"; done",
                        env={"SONDE_JOB": "over-ssh"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "n1,n2,n3|n1 n2 n3|3|/tmp/sonde-0/over-ssh/hostfile|{x}\nn1\nn2\nn3\n")
        kept = "/root/.local/state/sonde/runs/over-ssh"
        self.assertIn(f"recorded on the other nodes: n2:{kept}/n2.sonde, n3:{kept}/n3.sonde", done.stderr)
        for host in HOSTS:
            self.assertEqual(sorted(p.name for p in lab.file(host, kept).iterdir()), [f"{host}.sonde", "run.json"])
            listed = lab.run(host, "sonde", "query", "--list", "over-ssh")
            self.assertIn("by_ssh", listed.stdout)

    def test_hostfile_and_pbs(self):
        (lab.shared / "hosts").write_text("n1 slots=2\nn3:2\n\n# n2\nn1\n")
        for arguments, env in ((["--hostfile=/mnt/shared/hosts"], {}), ([], {"PBS_NODEFILE": "/mnt/shared/hosts", "PBS_JOBID": "7.lab"})):
            done = lab.run("n1", "sonde", "run", "--no-record", *arguments, "echo", "{nodelist}", "{nnodes}", env=env)
            self.assertEqual((done.returncode, done.stdout), (0, "n1,n3 2\n"), done.stderr)

    def test_a_name_twice(self):
        """The address of a node that has a name in the list, too: one node."""
        done = lab.run("n1", "sonde", "run", "--no-record", "--hosts=n1,n2,10.77.0.12", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, "node (n2|10.77.0.12) has not come up")

    # ---- hosts that do not come up

    def test_a_dead_host_is_named_and_the_run_goes_on(self):
        for start in (self.ssh, self.slurm):
            lab.partition("n3")
            done = start("--no-record", "--", "sh", "-c", "echo {nodelist}")
            lab.heal("n3")
            self.assertEqual((done.returncode, done.stdout), (0, "n1,n2\n"), done.stderr)
            self.assertIn("node n3 has not come up", done.stderr)

    def test_strict(self):
        done = lab.run("n1", "sonde", "run", "--strict", "--hosts=n1,n9,n2", "echo", "begun")
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertIn("n9 did not come up, and the run is --strict", done.stderr)

    def test_no_sonde_there(self):
        done = self.ssh("--no-record", "--remote-sonde=/nowhere/sonde", "--", "echo", "{nodelist}")
        self.assertEqual((done.returncode, done.stdout), (0, "n1\n"), done.stderr)
        self.assertIn("node n2 has not come up", done.stderr)
        self.assertIn("/nowhere/sonde", done.stderr)

    def test_a_run_folder_that_nodes_share(self):
        done = self.ssh("--no-record", "--run-dir=/mnt/shared", "--", "echo", "{nodelist}")
        self.assertEqual((done.returncode, done.stdout), (0, "n1\n"), done.stderr)
        self.assertIn("nodes share it", done.stderr)

    def test_a_slow_host(self):
        if not lab.slow("n2", delay_ms=50, loss_percent=5):
            self.skipTest("this kernel cannot slow a network down (sch_netem)")
        done = self.ssh("--record", self.record, "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("n2.sonde", self.files() if "has not come up" not in done.stderr else ["n2.sonde"])

    # ---- what goes wrong while it runs

    def test_partition_is_named_and_over_when_it_heals(self):
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--node-timeout=2", "--record", self.record, "sleep", "1000")
        self.up()
        lab.partition("n2")
        said = [until(run.stderr.readline, "a word")]
        self.assertIn("node n2 is lost: nothing was heard of it for 2 s", said[0])
        lab.heal("n2")
        self.assertIn("node n2 is back", run.stderr.readline())
        _, err = self.stop(run)
        self.assertEqual(self.files(), ["n1.sonde", "n2.sonde", "n3.sonde", "run.json"], err)

    def test_killed_node_is_named_at_once(self):
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--no-record", "sleep", "1000")
        self.up()
        lab.kill("n3")
        self.assertIn("node n3 is lost", run.stderr.readline())
        self.stop(run)
        self.assertEqual(run.returncode, 130)
        # What a killed `sonde node` leaves is tidied up by the next one there.
        self.assertEqual(self.ssh("--no-record", "true").returncode, 0)

    def test_killed_agent_is_started_again(self):
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--record", self.record, "sleep", "1000")
        self.up()
        (pid,) = self.agents("n2")
        os.kill(pid, signal.SIGKILL)
        self.assertIn("node n2: the agent has ended (signal 9 (Killed)); starting it again", run.stderr.readline())
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
            # The first node's run folder is left to the next run on it, which this is.
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
        """A command that writes down how often it has run and on what, sleeps in all but the last attempt, and ends when nobody wants it any more."""
        return self.script(f'echo "$SONDE_RESTART $SONDE_NODELIST" >> /mnt/shared/walk\n[ $SONDE_RESTART = {attempts - 1} ] && exit 0\nsleep 1000\n')

    def walked(self, lines):
        path = lab.shared / "walk"
        until(lambda: path.exists() and path.read_text().count("\n") >= lines, lambda: f"{lines} attempts: {path.read_text() if path.exists() else 'none'}")
        return path.read_text().splitlines()

    def test_resilient_walk(self):
        """Two of three nodes; one is lost: the reserve comes in; that is lost, too: the first node goes on alone."""
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
        self.ssh("--no-record", "true")  # sweeps what the killed nodes have left

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
        # Its node ends when it hears that nobody is there; what the connection does not tell it, its patience does.
        for pid in lab.processes("n2", "sonde node"):
            os.kill(pid, signal.SIGTERM)

    def test_a_failure_because_of_a_lost_node_is_the_nodes(self):
        """The command fails before the launcher knows that a node is gone: it finds out first, then starts it again."""
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

    def test_restart_by_exit_code(self):
        script = self.script('echo "$SONDE_RESTART"\n[ $SONDE_RESTART = 2 ] && exit 3\nexit 42\n')
        done = self.ssh("--no-record", "--restart-on-exit=42", script)
        self.assertEqual((done.returncode, done.stdout), (3, "0\n1\n2\n"), done.stderr)
        done = self.ssh("--no-record", "--restart-on-exit=42", "--max-restarts=1", script)
        self.assertEqual((done.returncode, done.stdout), (42, "0\n1\n"), done.stderr)

    def test_a_restart_leaves_nothing_of_the_last_attempt(self):
        """The srun that a script had started is gone before the script is started again."""
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
    reason = why_not()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main(verbosity=2)
