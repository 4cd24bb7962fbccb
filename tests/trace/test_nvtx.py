"""`sonde run --trace nvtx`: ranges and marks are exactly those of the program; odd calls neither
harm the program nor count as something else."""

import os
import subprocess
import sys

from traced import Traced

from place import main

LIBRARY = os.environ["LIBRARY_NVTX"]
CALLS = os.environ["NVTX_CALLS"]
WIDE = "inner é€\U0001f600"
PROGRAM = """
import nvtx
for i in range(3):
    with nvtx.annotate("step", domain="solver"):
        with nvtx.annotate("kernel"):
            pass
nvtx.mark("half", domain="solver")
shared = nvtx.start_range("shared")
nvtx.end_range(shared)
print("done")
"""


class Nvtx(Traced):
    RINGS = {"SONDE_RING_BYTES": str(4 << 20)}  # room for all spans, even if the agent reads late

    def ranges(self):
        return {(dict(tags)["range"], dict(tags).get("domain")): n for tags, n in self.totals["nvtx_ranges"].items()}

    def test_calls(self):
        self.trace("nvtx", CALLS, **self.RINGS)
        self.assertEqual(self.out, "done\n")
        self.assertEqual(self.ranges(), {("outer", None): 1, (WIDE, None): 1, ("step", "physics"): 1, ("unknown", None): 1, ("shared", None): 1,
                                         ("many", None): 1024, ("deep", None): 64, ("often", None): 12000})
        self.assertEqual(self.sum("nvtx_uncounted"), 1100 - 1024 + 100 - 64)
        self.assertGreater(min(self.totals["nvtx_range_seconds"].values()), 0)
        marks = {(dict(tags)["mark"], dict(tags).get("domain")): n for tags, n in self.totals["nvtx_marks"].items()}
        self.assertEqual(marks, {("step", "physics"): 1, ("half", None): 1})
        spans = {span["id"]: span for span in self.spans() if span["name"] in ("outer", WIDE, "step")}
        around = {span["name"]: spans[span["parent"]]["name"] if span["parent"] in spans else None for span in spans.values()}
        self.assertEqual(around, {"outer": None, WIDE: "outer", "step": WIDE})
        self.assertEqual(sum(span["name"] == "often" for span in self.spans()), 10000)

    def test_names_that_differ_in_numbers(self):
        """The number of a range's step or operation makes no series of its own."""
        self.trace("nvtx", CALLS, "numbered", **self.RINGS)
        self.assertEqual(self.out, "done\n")
        expected = {"aten::mm, seq = #, op_id = #, sizes = [[#, #], []]": 1000, "step #": 484, "block#.mlp#": 284, "sm90": 5, "lr=-#.#e": 3, "= #": 1}
        expected |= {f"step {i}": 1 for i in range(16)} | {f"layer {i}": 1 for i in range(12)} | {f"block{i}.mlp{7 * i}": 1 for i in range(16)}
        self.assertEqual(self.ranges(), {(name, None): n for name, n in expected.items()})
        self.assertEqual({span["name"] for span in self.spans()}, set(expected))

    def test_forks_while_another_thread_adds_a_name(self):
        """A forked child has a copy of a lock that a thread of its parent held, and does not wait
        for it."""
        self.trace("nvtx", CALLS, "forks")
        self.assertEqual(self.out, "200 children ended\n")

    def test_the_python_package(self):
        """With the real NVTX, which the package nvtx contains."""
        venv = self.root / "venv"
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        pip = subprocess.run([venv / "bin/python", "-m", "pip", "-q", "--disable-pip-version-check", "install", "--no-deps", "--only-binary", ":all:", "nvtx"],
                             capture_output=True)
        if pip.returncode:
            self.skipTest("the package nvtx cannot be installed")
        self.trace("nvtx", venv / "bin/python", "-c", PROGRAM)
        self.assertEqual(self.out, "done\n")
        self.assertEqual(self.ranges(), {("step", "solver"): 3, ("kernel", None): 3, ("shared", None): 1})
        self.assertEqual(self.sum("nvtx_marks", mark="half", domain="solver"), 1)
        steps = {span["id"] for span in self.spans() if span["name"] == "step"}
        self.assertEqual({span["parent"] for span in self.spans() if span["name"] == "kernel"}, steps)

    def test_the_library_of_the_user_is_used(self):
        warned = "sonde: warning: --trace nvtx is not used: NVTX_INJECTION64_PATH is set already, and names one library only\n"
        self.trace("nvtx", "sh", "-c", "echo $NVTX_INJECTION64_PATH", stderr=warned, NVTX_INJECTION64_PATH="/a.so")
        self.assertEqual(self.out, "/a.so\n")

    def test_outside_of_a_job(self):
        done = subprocess.run([CALLS], env=self.env | {"NVTX_INJECTION64_PATH": LIBRARY}, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "off\n", ""))

    def test_only_its_interface_is_visible(self):
        names = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True).stdout.split()[2::3]
        self.assertEqual(names, ["InitializeInjectionNvtx2"])


if __name__ == "__main__":
    main()
