"""Tests of the class Cluster (test_cluster.py): starts of jobs under Slurm, over ssh, with Open
MPI, and from files of hosts."""

import json
import os
import signal
import time

from cluster_job import ASK, CONNECT_TIME, HOSTS, moves_no_data
from lab import PATIENCE_S, until

# A program of another user on a host where a job starts: it reads /proc of each process, connects
# to each listening port, with and without sending data, and prints everything that it read.
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


class Launchers:
    def post(self, path, body):
        asked = self.lab.run("n1", "python3", "-c", ASK.replace("headers=", f"data={json.dumps(body).encode()!r}, headers="), path)
        self.assertEqual(asked.returncode, 0, asked.stderr)
        return json.loads(asked.stdout)[2]

    @moves_no_data("only a few points and messages to agents")
    def test_collectors_run_on_every_node(self):
        """A collector also runs on a replacement node and after a restart of the agent. A stopped
        collector runs nowhere."""
        def where(metric="where"):
            """Returns host → the collector's process id, which the collector emits as its value."""
            found = self.ask(f"/sonde/v1/series?match={metric}&latest")[1].get("series", [])
            return {s["tags"]["host"]: s["value"] for s in found}

        run = self.start("sonde", "run", "--hosts=n[1-3]", "--nodes=2", "--resilient", "--listen=0.0.0.0", "--no-record", "sh", "-c", "echo $SONDE_NODELIST; exec sleep 1000")
        self.assertEqual(run.stdout.readline(), "n1,n2\n")
        # The request is refused over the network, so the first node itself has to send it.
        url = self.lab.run("n1", "sh", "-c", "cat /tmp/sonde-*/*/job.json").stdout
        url = json.loads(url)["url"]
        self.assertIn("http://n1:", url)
        other = ASK.replace("headers=", "data=b'{\"name\":\"c\",\"command\":\"sleep 1000\"}', headers=").replace('json.load(open(folder + "/job.json"))["url"]', repr(url))
        asked = self.lab.run("n2", "python3", "-c", other, "/sonde/v1/collectors")
        self.assertEqual(json.loads(asked.stdout)[0], 403, asked)
        self.assertEqual(self.post("/sonde/v1/collectors", {"name": "a", "command": "while echo where $$; do sleep 0.1; done"}), {"asked": "collector", "name": "a"})
        self.post("/sonde/v1/collectors", {"name": "b", "command": "while echo other $$; do sleep 0.1; done"})
        until(lambda: set(where()) == set(where("other")) == {"n1", "n2"}, lambda: f"points of both nodes: {where()}")
        self.post("/sonde/v1/collectors", {"name": "b"})
        first = where()["n1"]
        self.post("/sonde/v1/reboot", {"hosts": ["n2"]})
        self.assertEqual(run.stdout.readline(), "n1,n3\n")
        until(lambda: "n3" in where(), lambda: f"points of the replacement node: {where()}")
        self.assertNotIn("n3", where("other"))
        self.assertEqual(where()["n1"], first)  # the collector was not restarted
        before = where()["n3"]
        os.kill(self.agents("n3")[0], signal.SIGKILL)
        until(lambda: where().get("n3", before) != before, lambda: f"the new agent of n3 runs the collector: {where()}")
        self.stop(run)

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
        self.lab.run("n1", "salloc", "--quiet", "-N3", "srun", "true")
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
        script = self.lab.shared / "batch.sh"
        script.write_text(f"#!/bin/sh\n#SBATCH -N3 --wait --output=/mnt/shared/batch.out\nsonde run --record {self.record} -- srun --overlap sonde put batched 1\n")
        done = self.lab.run("n1", "sbatch", "/mnt/shared/batch.sh")
        self.assertEqual(done.returncode, 0, done.stderr + (self.lab.shared / "batch.out").read_text())
        series = self.series(self.record)
        self.assertEqual(sorted(key for key in series if key[0] == "batched"), [("batched", host) for host in HOSTS])

    @moves_no_data("all nodes share the recording's folder")
    def test_slurm_ends_the_job(self):
        """scancel, like the time limit, sends SIGTERM to all steps, and SIGKILL later. The
        recording keeps its data."""
        script = self.lab.shared / "batch.sh"
        script.write_text(f"#!/bin/sh\n#SBATCH -N3 --output=/mnt/shared/batch.out\nexec sonde run --record {self.record} sleep 1000\n")
        submitted = self.lab.run("n1", "sbatch", "--parsable", "/mnt/shared/batch.sh")
        self.assertEqual(submitted.returncode, 0, submitted.stderr)
        self.up()
        self.assertEqual(self.lab.run("n1", "scancel", submitted.stdout.strip()).returncode, 0)
        self.nothing_left()
        self.assertEqual({host for name, host in self.series(self.record) if name == "cpu_percent"}, set(HOSTS))
        files = json.loads(self.lab.run("n1", "sonde", "inspect", "--json", self.record).stdout)
        self.assertEqual([file["state"] for file in files], ["closed"] * 3)

    @moves_no_data("all nodes share the recording's folder")
    def test_login_node(self):
        """salloc is called on a machine outside the job: the command runs there, and all nodes of
        the job have agents."""
        done = self.lab.run("n1", "salloc", "--quiet", "-N2", "--nodelist=n2,n3", "sonde", "run", "--record", self.record, "sh", "-c",
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
        """The nodes receive token and key on the standard input of srun. Other users of the hosts
        find them neither in /proc nor at any port."""
        for host in HOSTS[:2]:
            self.lab.run(host, "rm", "-f", "/tmp/over")
        spies = [self.lab.start(host, "python3", "-c", SPY, "/tmp/over") for host in HOSTS[:2]]
        for spy in spies:
            self.assertEqual(spy.stdout.readline(), "spying\n")
        run = self.start("salloc", "--quiet", "-N3", "sonde", "run", "--no-record", "sleep", "1000")
        try:
            until(lambda: "sleep 1000" in self.lab.processes("n1").values(), "the command runs")
            self.assertTrue(all(self.agents(host) for host in HOSTS))
            (folder,) = [path for base in self.lab.file("n1", "/tmp").glob("sonde-*") for path in base.iterdir()]
            token, key = (folder / "token").read_text().strip(), (folder / "key").read_bytes()
            self.stop(run)
        finally:
            for host in HOSTS[:2]:
                self.lab.run(host, "touch", "/tmp/over")
            said = [spy.communicate(timeout=PATIENCE_S)[0].splitlines() for spy in spies]
            for host in HOSTS[:2]:
                self.lab.run(host, "rm", "-f", "/tmp/over")
        self.assertEqual((len(token), len(key)), (64, 32))
        for ports, *seen in said:
            self.assertGreater(int(ports), 1)
            everything = b"\0".join(bytes.fromhex(line) for line in seen)
            self.assertIn(b"sonde\0agent\0", everything)  # the spy has read command lines
            for secret in (token.encode(), key, key.hex().encode()):
                self.assertNotIn(secret, everything)

    @moves_no_data("no run begins")
    def test_ranks_of_real_launchers(self):
        """libsonde finds the rank under srun, mpirun, and a stand-in for torchrun."""
        torchrun = self.lab.shared / "torchrun.py"
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
            done = self.lab.run("n1", "sbatch", "--quiet", "--wait", "-N3", "-D", "/mnt/shared", "-o", "/dev/null", batch)
            self.assertEqual(done.returncode, 0, (self.lab.shared / "ranks.err").read_text())
            self.assertEqual(sorted((self.lab.shared / "ranks.out").read_text().split()), expected, command)

    @moves_no_data("no run begins")
    def test_copies_are_refused_with_advice(self):
        for command in (["mpirun", "-n", "2", "sonde", "run", "true"], ["salloc", "--quiet", "-N2", "srun", "-n2", "sonde", "run", "true"]):
            done = self.lab.run("n1", *command)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(done.stderr.count("sonde run mpirun"), 1, done.stderr)

    def test_ssh_placeholders_and_recordings_of_private_disks(self):
        done = self.ssh("--", "sh", "-c", "echo '{sonde:nodelist}|{sonde:hosts}|{sonde:nnodes}|{sonde:hostfile}|{x}'; cat {sonde:hostfile}; for h in {sonde:hosts}; do ssh $h \"SONDE_SOCKET=$SONDE_SOCKET /mnt/bin/sonde put by_ssh 1\"; done",
                        env={"SONDE_JOB": "over-ssh"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "n1,n2,n3|n1 n2 n3|3|/tmp/sonde-0/over-ssh/hostfile|{x}\nn1\nn2\nn3\n")
        kept = "/root/.local/state/sonde/runs/over-ssh"
        self.assertNotIn("recorded on the other nodes", done.stderr)
        # All recordings are on the first node, and none is left on the others.
        self.assertEqual(sorted(p.name for p in self.lab.file("n1", kept).iterdir()), [*(f"{host}.sonde" for host in HOSTS), "run.json"])
        series = self.series("over-ssh")
        for host in HOSTS:
            self.assertGreater(series[("by_ssh", host)], 0)
            self.assertGreater(series[("cpu_percent", host)], 0)
        for host in HOSTS[1:]:
            self.assertFalse(self.lab.file(host, kept).exists(), host)

    @moves_no_data("the command ends at once, nothing is recorded")
    def test_hostfile_and_pbs(self):
        (self.lab.shared / "hosts").write_text("n1 slots=2\nn3:2\n\n# n2\nn1\n")
        for arguments, env in ((["--hostfile=/mnt/shared/hosts"], {}), ([], {"PBS_NODEFILE": "/mnt/shared/hosts", "PBS_JOBID": "7.lab"})):
            done = self.lab.run("n1", "sonde", "run", "--no-record", *arguments, "echo", "{nodelist}", "{nnodes}", env=env)
            self.assertEqual((done.returncode, done.stdout), (0, "n1,n3 2\n"), done.stderr)

    @moves_no_data("the command ends at once, nothing is recorded")
    def test_a_name_twice(self):
        """A list with a node's name and its address counts as one node."""
        done = self.lab.run("n1", "sonde", "run", "--no-record", "--hosts=n1,n2,10.77.0.12", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, "node (n2|10.77.0.12) has not come up")

    @moves_no_data("the command ends at once, nothing is recorded")
    def test_a_dead_host_is_named_and_the_run_goes_on(self):
        for start in (self.ssh, self.slurm):
            self.lab.partition("n3")
            done = start("--no-record", "--", "sh", "-c", "echo {sonde:nodelist}")
            self.lab.heal("n3")
            self.assertEqual((done.returncode, done.stdout), (0, "n1,n2\n"), done.stderr)
            self.assertIn("node n3 has not come up", done.stderr)

    @moves_no_data("no run begins")
    def test_strict(self):
        done = self.lab.run("n1", "sonde", "run", "--strict", "--hosts=n1,n9,n2", "echo", "begun")
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertIn("n9 did not come up, and the run is --strict", done.stderr)

    @moves_no_data("no other node comes up")
    def test_no_sonde_on_the_nodes(self):
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
        self.lab.slow("n2", delay_ms=50, loss_percent=5)
        pinged = self.lab.run("n1", "python3", "-c", CONNECT_TIME, "10.77.0.12")
        self.assertGreater(float(pinged.stdout), 0.09, "the link is slow: there and back")
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--record", self.record, "sleep", "1000")
        self.up()
        self.all_answer()
        self.settled()
        self.data_comes()
        _, err = self.stop(run)
        self.assertEqual(self.files(), ["n1.sonde", "n2.sonde", "n3.sonde", "run.json"], err)
        self.assertNotIn("lost", err)
