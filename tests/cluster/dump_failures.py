"""Tests of the class Cluster (test_cluster.py): dumps and recordings of all nodes, also while
nodes, cables, disks or the aggregator fail."""

import json
import os
import signal
import time
import unittest

from cluster_job import EMITTED, HOSTS, SKEW, TRANSPORT, WAY
from lab import PATIENCE_S, stop_process, until


class DumpFailures:
    def test_a_dump_has_all_data_of_the_job(self):
        self.private("/root/dumped")
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--no-record", "sleep", "1000")
        self.up()
        self.all_answer()
        self.emit()

        def sampled(start, hosts=HOSTS):
            """True if each host has sampled its CPUs since `start`."""
            found = self.ask(f"/api/query?ms&start={start}&m=none:cpu_percent%7Bhost=*%7D")[1]
            return found and [a["tags"]["host"] for a in found] == hosts
        until(lambda: sampled("1h-ago"), "every host has sampled")
        until_ms = int(time.time() * 1000)
        until(lambda: sampled(until_ms + 1), "every host has sampled since")
        path = f"/api/query?ms&start=1h-ago&end={until_ms}&no_annotations&m=none:emitted%7Bhost=*%7D&m=none:cpu_percent%7Bhost=*%7D&m=sum:1s-max:emitted"
        with self.moving():
            done = self.lab.run("n1", "sonde", "dump", "--to", "dumped")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()[1:-1]], HOSTS)
        self.assertEqual(sorted(p.name for p in self.lab.file("n1", "/root/dumped").iterdir()), [f"{h}.sonde" for h in HOSTS])
        live = self.ask(path)[1]
        self.assertEqual([(a["metric"], a["tags"].get("host")) for a in live], [*(("emitted", h) for h in HOSTS), *(("cpu_percent", h) for h in HOSTS), ("emitted", None)])
        self.assertEqual(self.replayed("/root/dumped", path), live)
        # A second dump after the end of one node keeps that node's file and replaces the others.
        before = {h: self.lab.file("n1", f"/root/dumped/{h}.sonde").stat().st_ino for h in HOSTS}
        self.lab.kill("n3")
        self.hears(run, "node n3 is lost")
        until(lambda: self.ask("/sonde/v1/status")[1]["missing"] == ["n3"], "n3 is missing")
        later_ms = int(time.time() * 1000)
        until(lambda: sampled(later_ms, ["n1", "n2"]), "the other hosts have new samples")
        done = self.lab.run("n1", "sonde", "dump", "--to", "/root/dumped")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("no data of node n3: not connected", done.stderr)
        self.assertEqual([self.lab.file("n1", f"/root/dumped/{h}.sonde").stat().st_ino == before[h] for h in HOSTS], [False, False, True])
        self.assertEqual(self.replayed("/root/dumped", path), live)
        self.stop(run)
        self.ssh("--no-record", "true")  # cleans up after the killed node

    def test_a_node_that_dies_in_a_dump(self):
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--no-record", "sleep", "1000")
        self.private("/root/dumped")
        self.up()
        self.all_answer()
        (relay,) = self.lab.processes("n3", "sonde relay ")
        stop_process(relay)
        dump = self.start("sonde", "dump", "--to", "dumped")
        until(lambda: self.ask("/sonde/v1/status")[1]["dump"].get("files") == 2, "the files of the other nodes are complete")
        self.lab.kill("n3")
        out, err = dump.communicate(timeout=PATIENCE_S)
        self.assertEqual(dump.returncode, 4, err)
        self.assertIn("no data of node n3: connection lost", err)
        self.assertEqual([line.split()[0] for line in out.splitlines()[1:-1]], ["n1", "n2"])
        self.assertEqual(sorted(p.name for p in self.lab.file("n1", "/root/dumped").iterdir()), ["n1.sonde", "n2.sonde"])
        self.stop(run)
        self.ssh("--no-record", "true")

    def much_to_dump(self, *environment):
        """Starts a run on three hosts, where n2 has so much data that a dump takes a while."""
        run = self.start("env", *environment, "sonde", "run", "--hosts=n[1-3]", "--no-record", "sleep", "1000")
        self.private("/root/dumped")
        self.up()
        self.all_answer()
        self.settled()
        self.much("n2")
        return run

    def dumping(self, host):
        """Starts a dump and waits until the first data of a host have arrived."""
        folder = self.lab.file("n1", "/root/dumped")
        for unfinished in folder.glob(f"{host}.*.part"):
            unfinished.unlink()
        dump = self.start("sonde", "dump", "--to", "dumped")
        until(lambda: any(folder.glob(f"{host}.*.part")) or dump.poll() is not None, "the dump is under way", pause_s=0.001)
        return dump

    @unittest.skipIf(TRANSPORT == "fabric:shm", "shared memory needs no cable that could be cut")
    def test_a_cable_that_is_cut_in_a_dump(self):
        """The dump gives up the pending reads of the unreachable node. The other nodes' data still
        arrive, and those of the node arrive after it is back."""
        run = self.much_to_dump()
        self.lab.slow("n2", delay_ms=50)
        dump = self.dumping("n2")
        self.lab.partition("n2")
        out, err = dump.communicate(timeout=PATIENCE_S)
        self.assertEqual(dump.returncode, 4, err)
        self.assertIn("no data of node n2: ", err)
        self.assertEqual([line.split()[0] for line in out.splitlines()[1:-1]], ["n1", "n3"])
        self.lab.slow("n2")
        self.lab.heal("n2")
        self.all_answer()
        self.data_over()
        done = self.lab.run("n1", "sonde", "dump", "--to", "dumped")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.stop(run)

    def test_an_aggregator_that_dies_in_a_dump(self):
        """The aggregator is killed during two dumps. Each time, the nodes connect to the next
        aggregator, and their data still arrive."""
        run = self.much_to_dump()
        for _ in range(2):
            dump = self.dumping("n2")
            (pid,) = self.lab.processes("n1", "sonde aggregator ")
            os.kill(pid, signal.SIGKILL)
            dump.communicate(timeout=PATIENCE_S)
            until(lambda: list(self.lab.processes("n1", "sonde aggregator ")) not in ([], [pid]), "another aggregator")
            self.all_answer()
            self.data_over()
        self.stop(run)

    @unittest.skipIf(TRANSPORT != "fabric:shm", "only shared memory has locks")
    def test_an_aggregator_that_dies_while_it_copies(self):
        """It then holds a lock in the memory that it shares with the node's relay, for ever. So the
        relay gives the next aggregator other memory, and the data arrive."""
        file = "/mnt/shared/die-copying"
        run = self.much_to_dump(f"LD_PRELOAD=/mnt/bin/{os.path.basename(SKEW)}", f"DIE_COPYING={file}")
        (pid,) = self.lab.processes("n1", "sonde aggregator ")
        (self.lab.shared / "die-copying").touch()
        dump = self.start("sonde", "dump", "--to", "dumped")
        until(lambda: not (self.lab.shared / "die-copying").exists(), "the aggregator copies")
        dump.communicate(timeout=PATIENCE_S)
        until(lambda: list(self.lab.processes("n1", "sonde aggregator ")) not in ([], [pid]), "another aggregator")
        self.all_answer()
        self.data_over()
        self.stop(run)

    def test_a_dump_onto_a_full_disk(self):
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--no-record", "sleep", "1000")
        self.up()
        self.all_answer()
        self.much("n2")
        self.private("/root/small")
        small = self.lab.run("n1", "sh", "-c", "mkdir /root/small && mount -t tmpfs -o size=4m small /root/small")
        self.addCleanup(self.lab.run, "n1", "umount", "/root/small")
        self.assertEqual(small.returncode, 0, small.stderr)
        with self.moving(1 << 20, hosts=["n2"]):
            done = self.lab.run("n1", "sonde", "dump", "--to", "/root/small")
        self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
        self.assertRegex(done.stderr, "no data of node n2: .*No space left on device")
        there = sorted(p.name for p in self.lab.file("n1", "/root/small").iterdir())
        self.assertEqual(there, ["n1.sonde", "n3.sonde"])
        checked = self.lab.run("n1", "sonde", "inspect", "/root/small")
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        self.stop(run)

    def test_a_dump_by_ssh(self):
        self.private("/root/it's here")
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--no-record", "--dump-node=n3", "--dump-dir=/root/it's here", "sleep", "1000")
        self.up()
        self.all_answer()
        done = self.lab.run("n1", "sonde", "dump")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("n3: mkdir: cannot create directory", done.stderr)
        self.lab.run("n3", "mkdir", "/root/it's here")
        done = self.lab.run("n1", "sonde", "dump", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        folder = f"/root/it's here/sonde-dump-{answer['job']}"
        self.assertEqual([f["path"] for f in answer["files"]], [f"n3:{folder}/{h}.sonde" for h in HOSTS])
        self.assertEqual({p.name: p.stat().st_size for p in self.lab.file("n3", folder).iterdir()}, {f"{f['host']}.sonde": f["bytes"] for f in answer["files"]})
        self.assertEqual(self.lab.run("n3", "sonde", "inspect", folder).returncode, 0)
        # No files are left on the first node.
        (job,) = self.lab.file("n1", "/tmp/sonde-0").iterdir()
        self.assertEqual([p.name for p in job.iterdir() if p.name.startswith("dump")], [])
        self.stop(run)

    def test_every_nodes_recording_is_on_the_first(self):
        """With --record on a private disk of the first node, all data up to the end of each agent
        arrive there."""
        self.private("/root/kept")
        run = self.start("sonde", "run", "--verbose", "--hosts=n[1-3]", "--record=/root/kept", "sleep", "1000")
        self.up()
        self.all_answer()
        self.settled()
        self.emit()
        _, err = self.stop(run)
        self.assertNotIn("on the other nodes", err)
        self.assertEqual(self.brought(err), ["n2", "n3"] if WAY != "tcp" else [], err)
        self.assertEqual(sorted(p.name for p in self.lab.file("n1", "/root/kept").iterdir()), [*(f"{h}.sonde" for h in HOSTS), "run.json"])
        self.assertEqual(self.copies("/root/kept"), ["n2.sonde", "n3.sonde"])
        series = self.series("/root/kept")
        self.assertEqual([series[("emitted", h)] for h in HOSTS], [EMITTED] * 3)
        for host in HOSTS[1:]:
            self.assertFalse(self.lab.file(host, "/root/kept").exists(), host)

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
        self.assertEqual(sorted(p.name for p in self.lab.file("n1", "/root/kept").iterdir()), [*(f"{h}.sonde" for h in four), "run.json"])

    def test_a_recording_that_cannot_be_transferred_stays(self):
        """The recording of n2 stays on n2, because its name is taken in the target folder; n3 has a
        private folder with the target's name."""
        self.private("/root/kept")
        self.lab.run("n1", "sh", "-c", "mkdir /root/kept && echo mine > /root/kept/n2.sonde")
        self.lab.run("n3", "mkdir", "/root/kept")
        done = self.lab.run("n1", "sonde", "run", "--hosts=n[1-3]", "--record=/root/kept", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, "the recording of node n2 could not be brought here: .*n2.sonde already exists")
        self.assertIn("recorded on the other nodes", done.stderr)
        self.assertEqual(self.lab.file("n1", "/root/kept/n2.sonde").read_text(), "mine\n")
        self.assertEqual(sorted(p.name for p in self.lab.file("n1", "/root/kept").iterdir()), [*(f"{h}.sonde" for h in HOSTS), "run.json"])
        self.assertEqual(self.lab.run("n2", "sonde", "inspect", "/root/kept").returncode, 0)
        self.assertEqual(list(self.lab.file("n3", "/root/kept").iterdir()), [])
