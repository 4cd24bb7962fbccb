"""`sonde run --trace roctx`: ranges and marks are exactly those of the program; ROCTX' library, if
the program has it, gets every call."""

import os
import subprocess

from traced import Traced

from place import main

LIBRARY = os.environ["LIBRARY_ROCTX"]
CALLS = os.environ["ROCTX_CALLS"]
CALLS_WITH_LIBRARY = os.environ["ROCTX_CALLS_WITH_LIBRARY"]
STARTS = 1 + 1100
# The library gets the id of every range. The program stops the first range twice, and also passes
# an unknown id.
STOPPED = sum(range(STARTS + 1)) + 1 + 12345
TOLD = f"marks 1, pushes {2 + 12000}, pops {4 + 12000}, starts {STARTS}, stopped {STOPPED}\n"


class Roctx(Traced):
    RINGS = {"SONDE_RING_BYTES": str(4 << 20)}  # room for all spans, even if the agent reads late

    def check(self):
        self.assertEqual({dict(tags)["range"]: n for tags, n in self.totals["roctx_ranges"].items()},
                         {"outer": 1, "inner": 1, "unknown": 1, "shared": 1, "many": 1024, "often": 12000})
        self.assertEqual(self.sum("roctx_uncounted"), 1100 - 1024)
        self.assertGreater(min(self.totals["roctx_range_seconds"].values()), 0)
        self.assertEqual({tags: n for tags, n in self.totals["roctx_marks"].items() if dict(tags)["mark"] == "half"}.popitem()[1], 1)
        spans = {span["name"]: span for span in self.spans()}
        self.assertEqual(spans["inner"]["parent"], spans["outer"]["id"])
        self.assertEqual(sum(span["name"] == "often" for span in self.spans()), 10000)

    def test_calls(self):
        self.trace("roctx", CALLS, **self.RINGS)
        self.assertEqual(self.out, "-1 0 1 1 0 0\n")
        self.check()

    def test_the_library_gets_every_call(self):
        """Its results are the program's."""
        self.trace("roctx", CALLS_WITH_LIBRARY, **self.RINGS)
        self.assertEqual(self.out, "8 7 7 8 8 7\n" + TOLD)
        self.check()

    def test_outside_of_a_job(self):
        for program, said in ((CALLS, "-1 -1 -1 -1 -1 -1\n"), (CALLS_WITH_LIBRARY, "8 7 7 8 8 7\n" + TOLD)):
            done = subprocess.run([program], env=self.env | {"LD_PRELOAD": LIBRARY}, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, said, ""))

    def test_only_its_interface_is_visible(self):
        names = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True).stdout.split()[2::3]
        self.assertEqual(sorted(names), ["roctxMarkA", "roctxRangePop", "roctxRangePushA", "roctxRangeStartA", "roctxRangeStop"])


if __name__ == "__main__":
    main()
