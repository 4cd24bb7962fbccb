"""`sonde run --trace omp`: regions and barriers are exactly those of the program; the thread that
the others wait for has the least time."""

import pathlib
import shutil
import subprocess
import os

from traced import Traced

from place import main

SOURCE = pathlib.Path(__file__).parent / "omp.c"
LIBRARY = os.environ["LIBRARY_OMP"]
REPEATED = int(os.environ.get("SONDE_TEST_ROUNDS", 1))
THREADS = 4
ROUNDS = 30
LATE_US = 5000


class Omp(Traced):
    def setUp(self):
        super().setUp()
        self.program = self.root / "program"
        if not shutil.which("clang"):
            self.skipTest("no clang: tools/deps test")
        done = subprocess.run(["clang", "-fopenmp", "-g", "-O1", SOURCE, "-o", self.program], capture_output=True, text=True)
        if done.returncode and ("omp.h" in done.stderr or "-lomp" in done.stderr):
            self.skipTest("clang has no OpenMP: install libomp-dev")
        self.assertEqual(done.returncode, 0, done.stderr)

    def by(self, key, metric):
        return {dict(tags)[key]: value for tags, value in self.totals.get(metric, {}).items()}

    def regions(self):
        """What the line of each region in the source says → its tag"""
        lines = SOURCE.read_text().splitlines()
        found = {}
        for region in self.by("region", "omp_regions"):
            file, _, address = region.partition("+")
            self.assertEqual(file, "program")
            place = subprocess.run(["addr2line", "-e", self.program, address], capture_output=True, check=True, text=True).stdout
            number = int(place.split(":")[1].split()[0])
            found[lines[number - 1].rpartition("// ")[2]] = region
        return found

    def test_regions_and_barriers(self):
        for slow in range(REPEATED):
            slow = (slow + 2) % THREADS
            self.trace("omp", self.program, ROUNDS, slow, LATE_US, 0)
            self.assertEqual(self.out, f"{4950 * ROUNDS}\n4\n")
            regions = self.regions()
            self.assertEqual(set(regions), {"of the rounds", "outer", "inner"})
            counts = self.by("region", "omp_regions")
            self.assertEqual({name: counts[tag] for name, tag in regions.items()}, {"of the rounds": ROUNDS, "outer": 1, "inner": 2})
            # The barrier, the loop and the end of each round; the ends of the nested regions.
            waits = self.by("thread", "omp_barrier_waits")
            self.assertEqual(waits, {"0": 3 * ROUNDS + 3, "1": 3 * ROUNDS + 3, "2": 3 * ROUNDS, "3": 3 * ROUNDS})
            self.assertEqual(self.sum("omp_uncounted_waits"), 0)

            seconds = self.by("thread", "omp_barrier_seconds")
            self.assertEqual(min(seconds, key=seconds.get), str(slow), seconds)
            late = ROUNDS * LATE_US / 1e6
            round_region = regions["of the rounds"]
            whole = self.by("region", "omp_region_seconds")[round_region]
            waited = self.by("region", "omp_region_wait_seconds")
            self.assertGreaterEqual(whole, late)
            self.assertGreaterEqual(waited[round_region], (THREADS - 1) * late)
            self.assertLessEqual(waited[round_region], THREADS * whole)
            self.assertAlmostEqual(sum(waited.values()), sum(seconds.values()), 6)

    def test_idle_workers(self):
        """Workers that are idle for a hundred regions: no wait is longer than its region, and each
        one is counted, or counted as uncounted."""
        self.trace("omp", self.program, 0, 0, 0, 5)
        self.assertEqual(self.out, "0\n220\n")
        waits = sum(self.by("thread", "omp_barrier_waits").values())
        self.assertEqual(waits + self.sum("omp_uncounted_waits"), 5 * THREADS + 100 * 2)
        self.assertGreaterEqual(waits, 4 * THREADS + 100 * 2)
        (tag,) = self.regions().values()
        self.assertEqual(self.by("region", "omp_regions")[tag], 105)
        self.assertLessEqual(self.by("region", "omp_region_wait_seconds")[tag], THREADS * self.by("region", "omp_region_seconds")[tag])

    def test_many_regions(self):
        """The first 64 have series of their own."""
        source = self.root / "many.c"
        one = "\n#pragma omp parallel num_threads(2)\n    { }\n"
        source.write_text("int main(void)\n{" + 70 * one + "    return 0;\n}\n")
        program = self.root / "many"
        subprocess.run(["clang", "-fopenmp", source, "-o", program], check=True)
        self.trace("omp", program)
        counts = self.by("region", "omp_regions")
        self.assertEqual((len(counts), counts["other"], sum(counts.values())), (65, 6, 70))

    def test_other_tools(self):
        """A tool of the user comes first, and the runtime takes the first that accepts."""
        self.trace("omp", "sh", "-c", "echo $OMP_TOOL_LIBRARIES", OMP_TOOL_LIBRARIES="/a.so")
        self.assertEqual(self.out, f"/a.so:{LIBRARY}\n")
        self.trace("omp,io", self.program, 1, 0, 0, 0, OMP_TOOL="disabled")
        self.assertEqual((self.out, self.by("region", "omp_regions")), ("4950\n4\n", {}))

    def test_outside_of_a_job(self):
        done = subprocess.run([self.program, "1", "0", "0", "0"], env=self.env | {"OMP_TOOL_LIBRARIES": LIBRARY}, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "4950\n4\n", ""))

    def test_no_symbol_but_the_start(self):
        names = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True).stdout.split()[2::3]
        self.assertEqual(names, ["ompt_start_tool"])


if __name__ == "__main__":
    main()
