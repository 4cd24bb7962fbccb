"""Tests of the class Cluster (test_cluster.py): the step of Slurm that the nodes of a run share
(src/launch/step.h), and what of it fails."""

import contextlib
import os
import signal
import time

from cluster_job import CUSTOM, SONDE, moves_no_data
from lab import Lab, PATIENCE_S, continue_process, stop_process, until

# Variables that change how srun treats its tasks and their output.
UNKIND = {"SLURM_KILL_BAD_EXIT": "1", "SLURM_WAIT": "1", "SLURM_LABELIO": "1", "SLURM_UNBUFFEREDIO": "1", "SLURM_NTASKS_PER_NODE": "4", "SLURM_NO_KILL": "off",
          "SLURM_STDOUTMODE": "none", "SLURM_STDERRMODE": "none", "SLURM_STDINMODE": "none"}


class SlurmSteps:
    @contextlib.contextmanager
    def allocated(self, *arguments, meanwhile=lambda: None):
        """Runs `sonde run` in a job that exists during the block, after the block, which can break
        nodes of it, and calls meanwhile(). Yields a list that gets the run's exit code and
        output."""
        go = self.lab.shared / "go"
        go.unlink(missing_ok=True)
        run = self.start("salloc", "--quiet", "-N3", "sh", "-c", 'echo allocated; until [ -e /mnt/shared/go ]; do sleep 0.02; done; exec sonde run "$@"', "-", *arguments)
        self.assertEqual(run.stdout.readline(), "allocated\n")
        done = []
        yield done
        go.touch()
        meanwhile()
        out, err = run.communicate(timeout=PATIENCE_S)
        done += [run.returncode, out, err]

    def in_job(self, *arguments, nodes=3, env=None):
        """Starts `sonde run … sleep 1000` in a job, and waits until all nodes are up."""
        words = [f"{k}={v}" for k, v in (env or {}).items()]
        run = self.start("salloc", "--quiet", f"-N{nodes}", "env", *words, "sonde", "run", *arguments, "sleep", "1000")
        self.up(self.lab.names[:nodes])
        return run

    def slurm_steps(self):
        """Returns the nodes of each step that sonde has made."""
        steps = self.lab.run("n1", "squeue", "--steps", "--noheader", "--format=%j %N").stdout.splitlines()
        return [step.split()[1] for step in steps if step.startswith("sonde ")]

    def kill_node(self, host):
        (pid,) = [pid for pid, text in self.lab.processes(host, "sonde node").items() if "slurmstepd" not in text]
        os.kill(pid, signal.SIGKILL)

    @moves_no_data("nothing is asked or recorded")
    def test_nodes_share_a_step(self):
        run = self.in_job("--no-record", nodes=4)
        self.assertEqual(self.slurm_steps(), ["n[2-4]"])
        self.stop(run)

    @moves_no_data("nothing is asked")
    def test_labels_of_many_tasks(self):
        """srun pads the numbers of tasks in a step of more than ten."""
        hosts = [f"n{i + 1}" for i in range(13)]
        with Lab([SONDE], names=hosts) as lab:
            done = lab.run("n1", "salloc", "--quiet", "-N13", "sonde", "run", "--record", "/mnt/shared/many", "--", "sh", "-c",
                           "echo {sonde:nnodes}; squeue --steps --noheader --format='%j %N' | grep sonde")
            self.assertEqual((done.returncode, done.stdout), (0, "13\nsonde n[2-13]\n"), done.stderr)
            self.assertEqual(sorted(p.stem for p in (lab.shared / "many").glob("*.sonde")), sorted(hosts))

    @moves_no_data("nothing is recorded")
    def test_a_node_where_slurm_hangs(self):
        """Slurm cannot launch the step on it. The other nodes start in another step. The end of the
        run waits neither for Slurm nor for the srun of that node, which hangs here, too."""
        with self.allocated("--no-record", "--stop-timeout=1000", "--", "sh", "-c", "echo {sonde:nodelist}; squeue --steps --noheader --format='%j %N' | grep sonde",
                            meanwhile=lambda: stop_process(min(until(lambda: list(self.lab.processes("n1", "--nodelist n3 ")), "n3 starts alone")))) as done:
            slurmd = list(self.lab.processes("n3", "slurmd -D"))
            for pid in slurmd:
                stop_process(pid)
        for pid in slurmd:
            continue_process(pid)
        self.assertEqual((done[0], done[1].split("\n")[0]), (0, "n1,n2"), done[2])
        self.assertIn("sonde n2", done[1])
        self.assertIn("node n3 has not come up", done[2])
        self.assertNotIn("node n2", done[2])

    @moves_no_data("nothing is recorded")
    def test_a_node_without_sonde(self):
        with self.allocated("--no-record", "--remote-sonde=/tmp/sonde", "--", "echo", "{nodelist}") as done:
            self.assertEqual(self.lab.run("n2", "cp", "/mnt/bin/sonde", "/tmp/sonde").returncode, 0)
        self.lab.run("n2", "rm", "/tmp/sonde")
        self.assertEqual(done[:2], [0, "n1,n2\n"], done[2])
        self.assertRegex(done[2], "node n3 has not come up: .*/tmp/sonde")
        self.assertNotIn("node n2", done[2])

    @moves_no_data("no other node comes up")
    def test_errors_of_nodes_are_named(self):
        """Each node of the step reports its error, which srun knows only as an exit code."""
        done = self.slurm("--no-record", "--run-dir=/mnt/shared", "--", "echo", "{nodelist}")
        self.assertEqual((done.returncode, done.stdout), (0, "n1\n"), done.stderr)
        for host in ("n2", "n3"):
            self.assertRegex(done.stderr, f"node {host} has not come up: .*nodes share it")

    def test_a_killed_node_leaves_the_others(self):
        """srun tells that the node's process has ended, long before the node's time-out. The other
        nodes go on, whatever the environment tells srun."""
        run = self.in_job("--node-timeout=1000", "--record", self.record, env=UNKIND)
        before = self.agents("n2")
        self.kill_node("n3")
        self.hears(run, "node n3 is lost: srun: error: n3: task 1: Killed")
        self.assertEqual(self.lab.run("n2", "sonde", "put", "custom", "1").returncode, 0)
        until(lambda: "n2" in str(self.ask(CUSTOM)[1]), lambda: f"n2 answers: {self.ask(CUSTOM)}")
        self.assertEqual(self.agents("n2"), before)
        _, err = self.stop(run)
        self.assertEqual(run.returncode, 130, err)
        self.assertEqual(self.files(), ["n1.sonde", "n2.sonde", "run.json"], err)
        self.lab.kill("n3")  # the agent of the killed process
        self.lab.run("n3", "sonde", "run", "--no-record", "true")

    @moves_no_data("nothing is asked or recorded")
    def test_a_dead_node_does_not_hold_up_the_end(self):
        """srun waits for a node that has died, and the run does not wait for srun."""
        run = self.in_job("--node-timeout=2", "--no-record")
        self.lab.kill("n3")
        self.hears(run, "node n3 is lost: nothing was heard of it for 2 s")
        began = time.monotonic()
        _, err = self.stop(run)
        self.assertEqual(run.returncode, 130, err)
        print(f"# the end beside a dead node: {time.monotonic() - began:.1f} s", flush=True)
        self.assertNotIn("n2", err)
        self.lab.run("n3", "sonde", "run", "--no-record", "true")

    def test_a_partitioned_node_of_slurm_comes_back(self):
        run = self.in_job("--node-timeout=2", "--record", self.record)
        self.lab.partition("n2")
        self.hears(run, "node n2 is lost: nothing was heard of it for 2 s")
        self.lab.heal("n2")
        self.hears(run, "node n2 is back")
        self.all_answer()
        _, err = self.stop(run)
        self.assertEqual(self.files(), ["n1.sonde", "n2.sonde", "n3.sonde", "run.json"], err)

    @moves_no_data("nothing is asked or recorded")
    def test_a_node_leaves_the_step_it_shares(self):
        """A node that a restart leaves out ends, and the others of its step go on."""
        for name in ("walk", "over"):
            (self.lab.shared / name).unlink(missing_ok=True)
        script = self.script('echo "$SONDE_RESTART $SONDE_NODELIST" >> /mnt/shared/walk\nuntil [ -e /mnt/shared/over ]; do sleep 0.02; done\n')
        run = self.start("salloc", "--quiet", "-N4", "sonde", "run", "--nodes=3", "--resilient", "--no-record", script)
        self.assertEqual(self.walked(1), ["0 n1,n2,n3"])
        before = self.agents("n2")
        self.post("/sonde/v1/reboot", {"hosts": ["n3"]})
        self.assertEqual(self.walked(2)[1], "1 n1,n2,n4")
        until(lambda: not self.ours("n3"), lambda: f"n3 is free: {self.ours('n3')}")
        self.assertEqual((self.agents("n2"), sorted(self.slurm_steps())), (before, ["n4", "n[2-3]"]))
        (self.lab.shared / "over").touch()
        _, err = run.communicate(timeout=PATIENCE_S)
        self.assertEqual(run.returncode, 0, err)

    @moves_no_data("nothing is asked or recorded")
    def test_a_killed_srun_loses_its_nodes(self):
        """Slurm ends the nodes with the job; on a busy machine it kills them. The next run on a
        node cleans up after that."""
        run = self.in_job("--node-timeout=1000", "--no-record")
        self.lab.signal("n1", signal.SIGKILL, "srun --overlap")
        self.hears(run, "node n2 is lost: signal 9 (Killed)")
        self.hears(run, "node n3 is lost: signal 9 (Killed)")
        _, err = self.stop(run)
        self.assertEqual(run.returncode, 130, err)
        until(lambda: not self.ours("n2") and not self.ours("n3"),
              lambda: f"the nodes have ended: {self.ours('n2')} {self.ours('n3')}")
        for host in ("n2", "n3"):
            self.lab.run(host, "sonde", "run", "--no-record", "true")

    @moves_no_data("nothing is asked or recorded")
    def test_nodes_that_do_not_find_their_name_start_alone(self):
        prolog = self.script("unset SLURMD_NODENAME; exec sonde \"$@\"\n")
        run = self.in_job("--no-record", f"--remote-sonde={prolog}")
        self.assertEqual(sorted(self.slurm_steps()), ["n2", "n3"])
        self.stop(run)
