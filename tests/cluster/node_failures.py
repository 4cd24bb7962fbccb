"""Tests of the class Cluster (test_cluster.py): lost nodes, agents and launchers, signals, and
restarts of the command on other nodes."""

import json
import os
import signal

from cluster_job import HOSTS, moves_no_data
from lab import PATIENCE_S, until


class NodeFailures:
    def test_a_partitioned_node_is_named_and_comes_back(self):
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--node-timeout=2", "--record", self.record, "sleep", "1000")
        self.up()
        self.lab.partition("n2")
        self.hears(run, "node n2 is lost: nothing was heard of it for 2 s")
        self.lab.heal("n2")
        self.hears(run, "node n2 is back")
        _, err = self.stop(run)
        self.assertEqual(self.files(), ["n1.sonde", "n2.sonde", "n3.sonde", "run.json"], err)

    def test_killed_node_is_named_at_once(self):
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--no-record", "sleep", "1000")
        self.up()
        self.lab.kill("n3")
        self.hears(run, "node n3 is lost")
        self.stop(run)
        self.assertEqual(run.returncode, 130)
        # The next `sonde node` on a host cleans up after a killed one.
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
            for pid, text in self.lab.processes("n1", "sonde run").items():
                if "salloc" not in text:
                    os.kill(pid, signal.SIGKILL)
            run.communicate(timeout=PATIENCE_S)
            until(lambda: not any(self.ours(host) for host in HOSTS), lambda: f"all gone: {[self.ours(host) for host in HOSTS]}")
            # The next run on the first node removes the run folder of the killed launcher.
            self.assertEqual(self.lab.run("n1", "sonde", "run", "--no-record", "true").returncode, 0)
            self.nothing_left()

    def test_signals_end_everything(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            run = self.start("sonde", "run", "--hosts=n[1-3]", "--no-record", "sleep", "1000")
            self.up()
            (launcher,) = self.lab.processes("n1", "sonde run")
            os.kill(launcher, number)
            run.communicate(timeout=PATIENCE_S)
            self.assertEqual(run.returncode, code)
            self.nothing_left()

    def walk(self, *, attempts):
        """Returns a command that records the number and the nodes of each attempt. It sleeps in all
        attempts but the last one."""
        return self.script(f'echo "$SONDE_RESTART $SONDE_NODELIST" >> /mnt/shared/walk\n[ $SONDE_RESTART = {attempts - 1} ] && exit 0\nsleep 1000\n')

    def walked(self, lines):
        path = self.lab.shared / "walk"
        until(lambda: path.exists() and path.read_text().count("\n") >= lines, lambda: f"{lines} attempts: {path.read_text() if path.exists() else 'none'}")
        return path.read_text().splitlines()

    def test_resilient_walk(self):
        """A run uses two of three nodes. One is lost, and the reserve replaces it. The reserve is
        lost, too, and the first node continues alone."""
        (self.lab.shared / "walk").unlink(missing_ok=True)
        run = self.start("salloc", "--quiet", "-N3", "sonde", "run", "--nodes=2", "--node-timeout=3", "--resilient", "--exhaust-resources", "--record", self.record, self.walk(attempts=3))
        self.assertEqual(self.walked(1), ["0 n1,n2"])
        self.assertEqual(self.agents("n3"), [])
        self.lab.kill("n2")
        self.assertEqual(self.walked(2)[1], "1 n1,n3")
        self.assertTrue(self.agents("n3"))
        self.lab.kill("n3")
        self.assertEqual(self.walked(3)[2], "2 n1")
        out, err = run.communicate(timeout=PATIENCE_S)
        self.assertEqual(run.returncode, 0, err)
        self.assertIn("node n2 is lost", err)
        self.assertIn("starting it again on 2 nodes", err)
        self.assertIn("starting it again on 1 node", err)
        self.assertIn("n1.sonde", self.files())
        swept = self.ssh("--quiet", "--no-record", "true")  # cleans up after the killed nodes
        self.assertEqual((swept.returncode, swept.stderr), (0, ""))
        recorded = json.loads((self.lab.shared / "test_resilient_walk" / "run.json").read_text())
        self.assertEqual((recorded["host"], recorded["exit_code"]), ("n1", 0))

    @moves_no_data("nothing is asked or recorded")
    def test_resilient_without_reserves_gives_up(self):
        run = self.start("sonde", "run", "--hosts=n[1-2]", "--resilient", "--no-record", "sleep", "1000")
        self.up(["n1", "n2"])
        self.lab.kill("n2")
        _, err = run.communicate(timeout=PATIENCE_S)
        self.assertEqual(run.returncode, 1, err)
        self.assertIn("--exhaust-resources goes on with fewer", err)
        self.lab.run("n2", "sonde", "run", "--no-record", "true")

    def test_a_partitioned_node_is_left_behind(self):
        (self.lab.shared / "walk").unlink(missing_ok=True)
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--nodes=2", "--resilient", "--node-timeout=2", "--no-record", self.walk(attempts=2))
        self.assertEqual(self.walked(1), ["0 n1,n2"])
        self.lab.partition("n2")
        self.assertEqual(self.walked(2)[1], "1 n1,n3")
        _, err = run.communicate(timeout=PATIENCE_S)
        self.assertEqual(run.returncode, 0, err)
        self.lab.heal("n2")
        # `sonde node` on n2 would end by itself when it notices the end of the launcher: when its
        # connection closes, or after a timeout. The test does not wait for that.
        self.lab.signal("n2", signal.SIGTERM, "sonde node")

    @moves_no_data("nothing is asked or recorded")
    def test_a_command_that_fails_with_its_node_is_restarted(self):
        """The command fails before the launcher knows that a node is lost. The launcher waits until
        it knows, then restarts the command."""
        (self.lab.shared / "walk").unlink(missing_ok=True)
        (self.lab.shared / "fail").unlink(missing_ok=True)
        script = self.script('echo "$SONDE_RESTART $SONDE_NODELIST" >> /mnt/shared/walk\n[ $SONDE_RESTART = 1 ] && exit 0\n'
                             'until [ -e /mnt/shared/fail ]; do sleep 0.02; done\nexit 1\n')
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--nodes=2", "--resilient", "--node-timeout=2", "--no-record", script)
        self.walked(1)
        self.lab.partition("n2")
        (self.lab.shared / "fail").touch()
        self.assertEqual(self.walked(2), ["0 n1,n2", "1 n1,n3"])
        _, err = run.communicate(timeout=PATIENCE_S)
        self.assertEqual(run.returncode, 0, err)
        self.lab.heal("n2")
        self.lab.signal("n2", signal.SIGTERM, "sonde node")

    @moves_no_data("the command ends at once, nothing is recorded")
    def test_restart_by_exit_code(self):
        script = self.script('echo "$SONDE_RESTART"\n[ $SONDE_RESTART = 2 ] && exit 3\nexit 42\n')
        done = self.ssh("--no-record", "--restart-on-exit=42", script)
        self.assertEqual((done.returncode, done.stdout), (3, "0\n1\n2\n"), done.stderr)
        done = self.ssh("--no-record", "--restart-on-exit=42", "--max-restarts=1", script)
        self.assertEqual((done.returncode, done.stdout), (42, "0\n1\n"), done.stderr)

    @moves_no_data("it is about the command's processes")
    def test_a_restart_leaves_nothing_of_the_last_attempt(self):
        """All processes that a script had started have ended before the script is restarted."""
        (self.lab.shared / "walk").unlink(missing_ok=True)
        script = self.script('[ $SONDE_RESTART = 1 ] && { pgrep -f "sleep 99[9]" && echo left; exit 0; }\n'
                             'sleep 999 &\nsetsid sleep 999 &\necho up >> /mnt/shared/walk\nwait\n')
        run = self.start("sonde", "run", "--hosts=n[1-2]", "--resilient", "--exhaust-resources", "--no-record", script)
        self.walked(1)
        self.lab.kill("n2")
        out, err = run.communicate(timeout=PATIENCE_S)
        self.assertEqual((run.returncode, out), (0, ""), err)
        self.lab.run("n2", "sonde", "run", "--no-record", "true")
