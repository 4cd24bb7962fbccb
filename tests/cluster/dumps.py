"""Tests of the class Cluster (test_cluster.py): second dumps, and recordings of nodes that leave
early."""

import json
import os
import random
import signal
import time

from lab import PATIENCE_S, continue_process, stop_process, until


class Dumps:
    def dump(self, to):
        """Runs `sonde dump`; returns host → the result for the host's file."""
        done = self.lab.run("n1", "sonde", "dump", "--to", to, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return {f["host"]: f for f in json.loads(done.stdout)["files"]}

    def put(self, host, metric, count):
        """Emits `count` points, one a millisecond, the newest now."""
        now_ms = int(time.time() * 1000)
        lines = "".join(f"put {metric} {now_ms - i} {random.random()}\n" for i in range(count, 0, -1))
        done = self.lab.run(host, "sonde", "put", stdin=lines)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_second_dump_moves_what_is_new(self):
        """A second dump transfers only new data, also from a node behind a relay. It repairs a
        damaged copy. The recordings replace the copies at the end of the run."""
        four = [*self.hosts, "n4"]
        self.private("/root/kept", four)
        self.private("/root/fresh", four)
        run = self.start("sonde", "run", "--hosts=n[1-4]", "--fanout=2", "--telemetry-level=1", "--record=/root/kept", "sleep", "1000")
        self.up(four)
        self.all_answer(four)
        until(lambda: {n["host"]: n.get("via") for n in self.ask("/sonde/v1/status")[1]["hub"]["nodes"]} == {"n2": None, "n3": None, "n4": "n2"}, "n4 is behind n2")
        for host in four:
            self.put(host, "many", 30000)
        first = self.dump("/root/kept")
        self.assertEqual({f["state"] for f in first.values()}, {"copied"})
        for host in four:
            self.put(host, "late", 100)
        # The counters of the connections agree that little was transferred.
        before = self.hub_nodes()["n2"]
        second = self.dump("/root/kept")
        after = self.hub_nodes()["n2"]
        for host in four:
            self.assertEqual((second[host]["state"], second[host]["points"] < 2000), ("updated", True), second[host])
            self.assertLess(second[host]["new_bytes"], first[host]["new_bytes"] / 10, host)
        both = sum(after[way] - before[way] for way in ("bytes_in", "bytes_out", "transport_bytes"))
        self.assertLess(both, (first["n2"]["new_bytes"] + first["n4"]["new_bytes"]) / 4)
        # A part of n3's copy is overwritten.
        path = self.lab.file("n1", "/root/kept/n3.sonde")
        with path.open("r+b") as file:
            file.seek(path.stat().st_size // 2)
            file.write(os.urandom(4096))
        third = self.dump("/root/kept")
        self.assertLess(third["n2"]["new_bytes"], first["n2"]["new_bytes"] / 10)
        self.assertEqual(third["n3"]["state"], "updated")
        self.assertEqual({f["state"] for f in self.dump("/root/fresh").values()}, {"copied"})
        query = "/api/query?ms&start=1h-ago&no_annotations&m=none:many%7Bhost=*%7D&m=none:late%7Bhost=*%7D&m=sum:many"
        self.assertEqual(self.replayed("/root/kept", query), self.replayed("/root/fresh", query))
        self.assertEqual(self.lab.run("n1", "sonde", "inspect", "/root/kept").returncode, 0)
        # The end of the run replaces copies with recordings.
        for host in four:
            self.put(host, "last", 10)
        _, err = self.stop(run)
        self.assertNotIn("on the other nodes", err)
        self.assertEqual(sorted(p.name for p in self.lab.file("n1", "/root/kept").iterdir()), [*(f"{h}.sonde" for h in four), "run.json"])
        series = self.series("/root/kept")
        self.assertEqual([[series[(metric, h)] for h in four] for metric in ("many", "late", "last")], [[30000] * 4, [100] * 4, [10] * 4])

    def test_a_dump_into_a_shared_folder_is_no_obstacle(self):
        """If all nodes share the recording's folder, a node's own file replaces its copy there: at
        once for a node that leaves, at the end of the run for the others."""
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--nodes=2", "--resilient", "--record", self.record, "sleep", "1000")
        self.up(["n1", "n2"])
        self.all_answer(["n1", "n2"])
        self.assertEqual({f["state"] for f in self.dump(self.record).values()}, {"copied"})
        self.assertEqual(self.copies(self.record), ["n1.sonde", "n2.sonde"])
        self.post("/sonde/v1/reboot", {"hosts": ["n2"]})
        until(lambda: self.copies(self.record) == ["n1.sonde"], "n2 has moved its file there")
        until(lambda: self.agents("n3"), "n3 has replaced n2")
        self.all_answer(["n1", "n3"])
        _, err = self.stop(run)
        self.assertNotIn("on the other nodes", err)
        self.assertNotIn("not kept", err)
        self.assertEqual(self.files(), [*(f"{h}.sonde" for h in self.hosts), "run.json"])
        self.assertEqual(self.copies(self.record), [])

    def test_nodes_that_leave_bring_their_recordings(self):
        """One node is excluded. One falls silent, is left out, and comes back later. One is killed
        and reported."""
        four = [*self.hosts, "n4"]
        self.private("/root/kept", four)
        (self.lab.shared / "walk").unlink(missing_ok=True)
        run = self.start("sonde", "run", "--hosts=n[1-4]", "--nodes=2", "--resilient", "--exhaust-resources", "--node-timeout=3", "--telemetry-level=1", "--record=/root/kept", self.walk(attempts=4))

        def here(host):
            until(lambda: self.lab.file("n1", f"/root/kept/{host}.sonde").exists(), f"the recording of {host} is here")
            until(lambda: not self.agents(host), f"nothing runs on {host} any more")

        def seen(attempt, hosts):
            for host in hosts:
                put = self.lab.run(host, "sonde", "put", f"attempt{attempt}", "1")
                self.assertEqual(put.returncode, 0, put.stderr)
        self.assertEqual(self.walked(1), ["0 n1,n2"])
        self.all_answer(["n1", "n2"])
        seen(0, ["n1", "n2"])
        # The aggregator dies before it has n2's file; the next one gets the request again.
        (relay,) = self.lab.processes("n2", "sonde relay ")
        (aggregator,) = self.lab.processes("n1", "sonde aggregator ")
        stop_process(relay)
        self.post("/sonde/v1/reboot", {"hosts": ["n2"]})
        self.assertEqual(self.walked(2)[1], "1 n1,n3")
        until(lambda: not self.agents("n2"), "n2's file is closed")
        os.kill(aggregator, signal.SIGKILL)
        until(lambda: list(self.lab.processes("n1", "sonde aggregator ")) not in ([], [aggregator]), "another aggregator")
        continue_process(relay)
        here("n2")
        self.all_answer(["n1", "n3"])
        self.assertNotIn("n2", self.hub_nodes())
        seen(1, ["n1", "n3"])
        self.lab.partition("n3")
        self.assertEqual(self.walked(3)[2], "2 n1,n4")
        self.lab.heal("n3")
        here("n3")
        self.all_answer(["n1", "n4"])
        seen(2, ["n1", "n4"])
        self.lab.kill("n4")
        _, err = run.communicate(timeout=PATIENCE_S)
        self.assertEqual(run.returncode, 0, err)
        self.assertEqual(self.walked(4)[3], "3 n1")
        self.assertIn("where the recording of node n4 is, it has not said", err)
        self.assertNotIn("node n2 is", err.replace("node n2 is up", ""))
        self.assertNotIn("recorded on the other nodes", err)
        self.assertEqual(sorted(p.name for p in self.lab.file("n1", "/root/kept").iterdir()), ["n1.sonde", "n2.sonde", "n3.sonde", "run.json"])
        query = "/api/query?start=1h-ago&no_annotations&" + "&".join(f"m=none:attempt{i}%7Bhost=*%7D" for i in range(2)) + "&m=none:attempt2"
        self.assertEqual([(a["metric"], a["tags"]["host"]) for a in self.replayed("/root/kept", query)],
                         [("attempt0", "n1"), ("attempt0", "n2"), ("attempt1", "n1"), ("attempt1", "n3"), ("attempt2", "n1")])
        for host in ("n2", "n3"):
            self.assertFalse(self.lab.file(host, "/root/kept").exists(), host)
        # This run cleans up after the killed node.
        self.lab.run("n4", "sonde", "run", "--no-record", "true")

    def test_a_leaving_node_keeps_a_file_that_cannot_be_transferred(self):
        self.private("/root/kept")
        (self.lab.shared / "walk").unlink(missing_ok=True)
        self.lab.run("n1", "sh", "-c", "mkdir /root/kept && echo mine > /root/kept/n2.sonde")
        run = self.start("salloc", "--quiet", "-N3", "sonde", "run", "--nodes=2", "--resilient", "--telemetry-level=1", "--record=/root/kept", self.walk(attempts=2))
        self.assertEqual(self.walked(1), ["0 n1,n2"])
        self.all_answer(["n1", "n2"])
        self.post("/sonde/v1/reboot", {"hosts": ["n2"]})
        _, err = run.communicate(timeout=PATIENCE_S)
        self.assertEqual(run.returncode, 0, err)
        self.assertRegex(err, "the recording of node n2 could not be brought here: .*n2.sonde already exists")
        self.assertIn("recorded on the other nodes: n2:/root/kept/n2.sonde", err)
        self.assertEqual(self.lab.file("n1", "/root/kept/n2.sonde").read_text(), "mine\n")
        self.assertEqual(self.lab.run("n2", "sonde", "inspect", "/root/kept").returncode, 0)
        self.assertEqual(sorted(p.name for p in self.lab.file("n1", "/root/kept").iterdir()), ["n1.sonde", "n2.sonde", "n3.sonde", "run.json"])
