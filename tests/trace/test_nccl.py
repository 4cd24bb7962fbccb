"""`sonde run --trace nccl`: operations, bytes, the time on the GPU and spans are those that NCCL
reported; odd calls do no harm. NCCL itself needs a GPU, so a program calls the library in the order
that NCCL documents."""

import json
import os
import subprocess

from traced import Traced

from place import main

LIBRARY = os.environ["LIBRARY_NCCL"]
CALLS = os.environ["NCCL_CALLS"]
RANKS = 8
ROUNDS = 50


class Nccl(Traced):
    def by_rank(self, metric, op):
        return {int(dict(tags)["comm_rank"]): value for tags, value in self.totals[metric].items() if dict(tags)["op"] == op}

    def test_all_reduce_over_8_ranks(self):
        slow = 5
        self.trace("nccl", CALLS, "ranks", RANKS, ROUNDS, slow)
        self.assertEqual(self.out, "done\n")
        every = range(RANKS)
        self.assertEqual(self.by_rank("nccl_calls", "AllReduce"), dict.fromkeys(every, ROUNDS))
        self.assertEqual(self.by_rank("nccl_bytes", "AllReduce"), dict.fromkeys(every, 4000000 * ROUNDS))
        self.assertEqual({dict(tags)["comm"] for tags in self.totals["nccl_calls"]}, {"data parallel"})
        # The rank with the least time is the one that the others wait for.
        seconds = self.by_rank("nccl_seconds", "AllReduce")
        for rank in every:
            self.assertAlmostEqual(seconds[rank], ROUNDS * (0.001 if rank == slow else 0.006), 9)
        for op, ranks in (("Send", every[1::2]), ("Recv", every[::2])):
            self.assertEqual(self.by_rank("nccl_calls", op), dict.fromkeys(ranks, ROUNDS))
            self.assertEqual(self.by_rank("nccl_bytes", op), dict.fromkeys(ranks, 80 * ROUNDS))
            for value in self.by_rank("nccl_seconds", op).values():
                self.assertAlmostEqual(value, ROUNDS * 0.0005, 9)
        self.assertEqual((self.sum("nccl_uncounted"), self.sum("nccl_untimed")), (0, 0))
        spans = [span for span in self.spans() if span["name"] == "AllReduce" and span["tags"]["comm_rank"] == str(slow)]
        self.assertEqual([span["end_ns"] - span["start_ns"] for span in spans], [1000000] * ROUNDS)
        tags = {key: value for key, value in spans[0]["tags"].items() if key != "host"}
        self.assertEqual(tags, {"comm": "data parallel", "comm_rank": str(slow), "bytes": "4000000", "algorithm": "RING", "protocol": "LL128"})
        self.assertEqual(len(self.spans()), 2 * RANKS * ROUNDS)

    def test_the_rank_that_the_others_wait_for(self):
        """The late rank has the shortest operations; it is named, the waiting one is not."""
        late, punctual = 1, 0
        self.trace("nccl", "sh", "-c", f'for rank in {late} {punctual}; do RANK=$rank WORLD_SIZE=2 "$0" rank 2 300 {late} $rank & done; wait', CALLS)
        report = json.loads(self.sonde("report", self.root / "record", "--json").stdout)
        found = {finding["kind"]: finding for finding in report["findings"]}
        self.assertEqual(list(found), ["nccl_waiting"])
        self.assertIn(f"NCCL's collectives wait for rank {late}: 1.5 s", found["nccl_waiting"]["title"])
        self.assertEqual(found["nccl_waiting"]["sureness"], "sure")
        asked = self.sonde("query", found["nccl_waiting"]["m"], self.root / "record")
        self.assertIn(f"rank={late}", asked.stdout, asked)
        (row,) = (row for row in report["spans"] if row["name"] == "AllReduce")
        self.assertEqual((row["count"], row.get("slowest"), row.get("imbalance")), (2 * 300, None, None))

    def test_spans_have_a_limit(self):
        self.trace("nccl", CALLS, "ranks", 1, 10010)
        # The program does nothing else, so the ring may be full.
        self.assertEqual(len(self.spans()) + self.sum("sonde_dropped_total"), 2 * 10000)
        self.assertEqual(self.by_rank("nccl_calls", "AllReduce"), {0: 10010})
        self.assertAlmostEqual(self.by_rank("nccl_seconds", "AllReduce")[0], 10010 * 0.006, 6)

    def test_operations_without_an_end(self):
        """They are counted; those that find no place are named."""
        self.trace("nccl", CALLS, "lost", 1500)
        self.assertEqual((self.sum("nccl_calls", op="AllGather"), self.sum("nccl_uncounted")), (1500, 1500 - 1024))
        self.assertEqual((self.sum("nccl_seconds"), self.spans()), (0, []))

    def test_odd_calls(self):
        self.trace("nccl", CALLS, "odd")
        self.assertEqual(self.out, "done\n")
        self.assertEqual({dict(tags)["op"]: value for tags, value in self.totals["nccl_calls"].items()}, {"other": 2})
        self.assertEqual(self.sum("nccl_bytes", comm="size-1"), 4000000)
        self.assertLess(self.sum("nccl_seconds"), 1)
        self.assertEqual([span["name"] for span in self.spans()], ["other"])

    def test_another_plugin(self):
        """NCCL loads one plugin only, and that of the user stays."""
        self.trace("nccl", "sh", "-c", "echo $NCCL_PROFILER_PLUGIN", NCCL_PROFILER_PLUGIN="mine",
                   stderr="sonde: warning: --trace nccl is not used: NCCL_PROFILER_PLUGIN is set already, and names one library only\n")
        self.assertEqual(self.out, "mine\n")

    def test_outside_of_a_job(self):
        done = subprocess.run([CALLS, "odd"], env=self.env | {"NCCL_PROFILER_PLUGIN": LIBRARY}, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, "mask 0\ndone\n")

    def test_only_its_interface_is_visible(self):
        names = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True).stdout.split()[2::3]
        self.assertEqual(names, ["ncclProfiler_v4"])


if __name__ == "__main__":
    main()
