"""`sonde run --trace cuda`: kernels, copies, waits and busy time are those that CUPTI reports; a
program whose GPU cannot be traced runs as ever. A library stands in for CUPTI; with a GPU and
PyTorch, real work is compared with CUDA's own events."""

import json
import os
import subprocess
import sys

from traced import Traced

from place import main

LIBRARY = os.environ["LIBRARY_CUDA"]
CALLS = os.environ["CUDA_CALLS"]
CUPTI = os.environ["CUPTI_LIBRARY"]
FILL = "at::native::vectorized_elementwise_kernel<FillFunctor>"
# Knows its own numbers of kernels, copies and waits, and the time between two of CUDA's events.
REAL = """
import time, torch
x = torch.zeros(1 << 20, device="cuda")
host, pinned = torch.zeros(1 << 20), torch.zeros(1 << 20, pin_memory=True)
a = torch.randn(4096, 4096, device="cuda")
torch.mm(a, a)
torch.cuda.synchronize()
time.sleep(1.5)  # what came before is in other buffers
begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
begin.record()
for _ in range(100):
    torch.mm(a, a)
end.record()
end.synchronize()
for _ in range(1000):
    x.erfinv_()
for _ in range(50):
    x.copy_(host)
for _ in range(30):
    x.copy_(pinned, non_blocking=True)
for _ in range(20):
    host.copy_(x)
for _ in range(7):
    torch.cuda.synchronize()
print(begin.elapsed_time(end) / 1e3)
"""


def has_gpu():
    code = "import torch, sys; sys.exit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


class Cuda(Traced):
    RINGS = {"SONDE_RING_BYTES": str(4 << 20), "SONDE_CUPTI": CUPTI}  # room for all spans

    def by(self, metric, *keys):
        """Returns the totals by the values of these tags."""
        return {tuple(dict(tags).get(key) for key in keys): value for tags, value in self.totals.get(metric, {}).items()}

    def assert_close(self, got, expected):
        self.assertEqual(set(got), set(expected))
        for key, value in expected.items():
            self.assertAlmostEqual(got[key], value, 6, key)

    def reasons(self):
        lines = self.sonde("query", "--annotations", self.root / "record").stdout
        return [line for line in lines.splitlines() if "--trace cuda records nothing" in line]

    def test_known_work(self):
        self.trace("cuda", CALLS, "known", **self.RINGS)
        self.assertEqual(self.out, "done\n")
        kernels = {(FILL,): 1000, ("gemm",): 30, ("unknown",): 1, ("never",): 1, ("backwards",): 1, ("elsewhere",): 1}
        self.assertEqual(self.by("cuda_kernels", "kernel"), kernels)
        self.assert_close(self.by("cuda_kernel_seconds", "kernel"), {(FILL,): 1, ("gemm",): 30, ("unknown",): 0.25, ("elsewhere",): 1})
        self.assert_close(self.by("cuda_busy_seconds", "gpu"), {("0",): 0.5005 + 0.25, ("1",): 10})
        places = {("host to device", "pageable"): (5000, 2.5), ("host to device", "pinned"): (500, 1.25), ("device to host", "pageable"): (50, 0.625),
                  ("device to device", None): (5 << 20, 5), ("other", None): (35, 5), ("GPU to GPU", None): (25, 5), ("set", None): (250, 5)}
        self.assertEqual(self.by("cuda_copies", "direction", "memory"), dict.fromkeys(places, 5))
        self.assertEqual(self.by("cuda_copy_bytes", "direction", "memory"), {place: size for place, (size, _) in places.items()})
        self.assert_close(self.by("cuda_copy_seconds", "direction", "memory"), {place: seconds for place, (_, seconds) in places.items()})
        self.assertEqual(self.by("cuda_waits", "for"), {("event",): 5, ("stream",): 5, ("device",): 5})
        self.assert_close(self.by("cuda_wait_seconds", "for"), {("event",): 2.5, ("stream",): 1.25, ("device",): 0.625})
        self.assertEqual((self.sum("cuda_lost"), self.sum("cuda_untimed")), (42, 2))
        spans = [span for span in self.spans() if span["name"] == "gemm"]
        self.assertEqual(({span["tags"]["gpu"] for span in spans}, len(spans)), ({"1"}, 30))
        self.assertEqual({span["end_ns"] - span["start_ns"] for span in spans}, {10**9})

    def test_report(self):
        """It has all kernels, although only some have spans, and the copies of pageable memory."""
        self.trace("cuda", "sh", "-c", '"$0" names 300; "$0" known; sonde put loss 1', CALLS, **self.RINGS)
        report = json.loads(self.sonde("report", self.root / "record", "--json").stdout)
        kernels = {row["name"]: (row["count"], row["total_seconds"]) for row in report["kernels"]}
        self.assertEqual(len(kernels), 263)
        self.assertEqual((kernels["gemm"], kernels["other"]), ((30, 30), (132, 132)))
        self.assertEqual([row["name"] for row in report["kernels"]][:2], ["other", "gemm"])
        self.assertAlmostEqual(sum(row["share"] for row in report["kernels"]), 1)
        self.assertEqual({row["name"] for row in report["spans"] if not row["name"].startswith("copy ")}, {"set memory"})
        found = {finding["title"].partition(" take ")[0]: finding for finding in report["findings"]}
        self.assertEqual(set(found), {"copies from pageable memory to GPUs"})  # others: below 1 s
        (finding,) = found.values()
        self.assertEqual((finding["kind"], finding["value"]), ("cuda_pageable", 2.5))
        asked = self.sonde("query", finding["m"], self.root / "record")
        self.assertIn("2.5", asked.stdout, asked)
        # The user's own metrics come first.
        self.assertEqual([row["metric"] for row in report["metrics"] if row["metric"] == "loss" or "cuda" in row["metric"]][0], "loss")
        text = self.sonde("report", self.root / "record").stdout
        self.assertRegex(text, r"GPU KERNELS .*\nother\n +132 +1 +132 ")
        self.assertIn("and 253 names more", text)
        page = self.root / "report.html"
        self.assertEqual(self.sonde("report", self.root / "record", "--output", page).returncode, 0)
        self.assertIn("<tr><td>gemm<td>30<td>1<td>30<td>", page.read_text())

    def test_many_names(self):
        """256 names have series of their own, and all kernels are counted."""
        for names in (300, 5000):
            self.trace("cuda", CALLS, "names", names, **self.RINGS)
            counts = self.by("cuda_kernels", "kernel")
            self.assertEqual((sum(counts.values()), len(counts), counts[("kernel_0",)]), (3 * names, 257, 3))
            self.assertEqual(counts[("other",)], 3 * (names - 256))
            self.assertAlmostEqual(self.sum("cuda_kernel_seconds"), 3 * names)

    def test_spans_have_a_limit(self):
        self.trace("cuda", CALLS, "names", 6000, **self.RINGS)
        self.assertEqual(len([span for span in self.spans() if span["name"] == "other"]) + self.sum("sonde_dropped_total"), 1000)

    def test_a_child_leaves_its_parents_records_alone(self):
        self.trace("cuda", CALLS, "fork", **self.RINGS)
        self.assertEqual((self.out, self.by("cuda_kernels", "kernel")), ("done\n", {("before",): 1, ("after",): 1}))

    def test_a_killed_program(self):
        """Its full buffers are kept."""
        done = self.sonde("run", "--quiet", "-l", 1, "--trace", "cuda", "--record", self.root / "record", "--", CALLS, "killed", env=self.RINGS)
        self.assertEqual(done.returncode, 137)
        asked = self.sonde("query", "--json", "--start", 0, "sum:0all-max:cuda_kernels", self.root / "record")
        self.assertIn("1213", asked.stdout)  # of 216 bytes in 256 KiB

    def test_without_cupti(self):
        """The reason is among the annotations; the program runs as without tracing."""
        empty = self.root / "empty.so"
        subprocess.run(["cc", "-shared", "-o", empty, "-x", "c", "/dev/null"], check=True)
        for library, reason in (("/no/libcupti.so", "CUPTI was not found"), (empty, "CUPTI lacks cuptiActivityRegisterCallbacks")):
            self.trace("cuda", CALLS, SONDE_CUPTI=str(library))
            self.assertEqual((self.out, [reason in line for line in self.reasons()]), ("done\n", [True]), self.reasons())
            self.assertNotIn("cuda_kernels", self.totals)

    def test_the_library_of_the_user_is_used(self):
        warned = "sonde: warning: --trace cuda is not used: CUDA_INJECTION64_PATH is set already, and names one library only\n"
        self.trace("cuda", "sh", "-c", "echo $CUDA_INJECTION64_PATH", stderr=warned, CUDA_INJECTION64_PATH="/a.so")
        self.assertEqual(self.out, "/a.so\n")

    def test_outside_of_a_job(self):
        env = self.env | {"CUDA_INJECTION64_PATH": LIBRARY, "SONDE_CUPTI": CUPTI}
        done = subprocess.run([CALLS, "known"], env=env, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "off\n", ""))

    def test_only_its_interface_is_visible(self):
        names = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True).stdout.split()[2::3]
        self.assertEqual(names, ["InitializeInjection"])

    def test_a_real_gpu(self):
        if not has_gpu():
            self.skipTest("no GPU of NVIDIA with PyTorch")
        self.trace("cuda", sys.executable, "-c", REAL)
        counts, seconds = self.by("cuda_kernels", "kernel"), self.by("cuda_kernel_seconds", "kernel")
        (erfinv,) = (name for (name,) in counts if "erfinv" in name)
        (product,) = (name for name, count in counts.items() if count == 101)
        self.assertEqual(counts[(erfinv,)], 1000)
        self.assertAlmostEqual(seconds[product] * 100 / 101, float(self.out), delta=0.05 * float(self.out))
        copies = self.by("cuda_copy_bytes", "direction", "memory")
        self.assertEqual(copies[("host to device", "pinned")], 30 * 4 << 20)
        self.assertEqual(copies[("device to host", "pageable")], 20 * 4 << 20)
        self.assertGreaterEqual(copies[("host to device", "pageable")], 50 * 4 << 20)
        self.assertGreaterEqual(self.by("cuda_waits", "for")[("device",)], 8)
        self.assertEqual((self.sum("cuda_lost"), self.sum("cuda_untimed")), (0, 0))


if __name__ == "__main__":
    main()
