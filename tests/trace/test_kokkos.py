"""`sonde run --trace kokkos`: kernels, regions, copies and memory are exactly those of the program;
odd calls neither harm the program nor count as something else."""

import os
import pathlib
import subprocess

from traced import Traced

from place import main

SOURCE = pathlib.Path(__file__).parent / "kokkos.cpp"
LIBRARY = os.environ["LIBRARY_KOKKOS"]
CALLS = os.environ["KOKKOS_CALLS"]
INCLUDES = ("/usr/include/trilinos", "/usr/include/kokkos")
ROUNDS = 10
SERIES = 256


class Kokkos(Traced):
    def by(self, key, metric):
        return {dict(tags)[key]: value for tags, value in self.totals.get(metric, {}).items()}

    def test_a_program(self):
        """With a real Kokkos."""
        include = next((folder for folder in INCLUDES if os.path.exists(folder + "/Kokkos_Core.hpp")), None)
        if not include:
            self.skipTest("no Kokkos: tools/deps test")
        program = self.root / "program"
        built = subprocess.run(["g++", "-O1", "-w", "-std=c++14", "-I", include, SOURCE, "-ltrilinos_kokkoscore", "-o", program], capture_output=True, text=True)
        self.assertEqual(built.returncode, 0, built.stderr)
        bare = subprocess.run([program, str(ROUNDS)], capture_output=True, text=True)
        self.trace("kokkos", program, ROUNDS)
        self.assertEqual(self.out, bare.stdout)
        kernels = {(dict(tags)["kernel"], dict(tags).get("kind")): n for tags, n in self.totals["kokkos_kernels"].items()}
        known = {("fill", "for"), ("sum up", "reduce"), ("scan", "scan")}
        self.assertEqual({name: kernels[name] for name in known}, dict.fromkeys(known, ROUNDS))
        self.assertEqual(len(kernels), SERIES + 1)
        own = [name for name in kernels if name[0].startswith("Kokkos::")]
        self.assertEqual(sum(kernels.values()), 3 * ROUNDS + 300 + sum(kernels[name] for name in own))
        self.assertGreater(min(self.totals["kokkos_kernel_seconds"].values()), 0)
        self.assertEqual(self.by("region", "kokkos_regions"), {"outer": 1, "round": ROUNDS})
        seconds = self.by("region", "kokkos_region_seconds")
        self.assertGreaterEqual(seconds["outer"], seconds["round"])
        self.assertEqual((self.sum("kokkos_copies", **{"from": "Host", "to": "Host"}), self.sum("kokkos_copy_bytes")), (ROUNDS, 8000 * ROUNDS))
        # Both views were freed.
        self.assertEqual(self.sum("kokkos_allocated_bytes") - self.sum("kokkos_memory_bytes"), 16000)
        spans = {span["id"]: span["name"] for span in self.spans()}
        around = [(span["name"], spans.get(span["parent"])) for span in self.spans()]
        self.assertEqual(sorted(around), [("outer", None)] + [("round", "outer")] * ROUNDS)

    def test_odd_calls(self):
        self.trace("kokkos", CALLS, "odd")
        self.assertEqual(self.out, "0\n")  # no additional fences
        kernels = {(dict(tags)["kernel"], dict(tags)["kind"]): n for tags, n in self.totals["kokkos_kernels"].items()}
        # A character is not cut.
        self.assertEqual(kernels, {("unknown", "for"): 1, ("x" * 199, "scan"): 1, ("many", "reduce"): 1024})
        self.assertEqual(self.sum("kokkos_uncounted"), 1500 - 1024)
        self.assertEqual((self.by("region", "kokkos_regions"), self.by("fence", "kokkos_fences")), ({"deep": 64}, {"end": 1}))
        self.assertEqual((self.by("to", "kokkos_copies"), self.sum("kokkos_copy_bytes")), ({"f" * 64: 1}, 7))
        self.assertEqual(self.by("space", "kokkos_memory_bytes"), {"f" * 64: 5})

    def test_threads(self):
        """Threads that meet new names at the same time lose none; a region has at most 10,000
        spans (each thread may add one that others add, too)."""
        rings = str(4 << 20)  # room for all spans, even if the agent reads late
        self.trace("kokkos", CALLS, "threads", 8, 3000, SONDE_RING_BYTES=rings)
        kernels = self.by("kernel", "kokkos_kernels")
        self.assertEqual((len(kernels), sum(kernels.values())), (SERIES + 1, 8 * 3000))
        self.assertEqual({n for name, n in kernels.items() if name != "other"}, {8 * 10})
        self.assertEqual(self.by("region", "kokkos_regions"), {"region": 8 * 3000})
        spans = len(self.spans())
        self.assertGreaterEqual(spans, 10000)
        self.assertLess(spans, 10000 + 8)

    def test_other_tools(self):
        """A tool of the user comes first, and Kokkos loads only the first."""
        self.trace("kokkos", "sh", "-c", "echo $KOKKOS_TOOLS_LIBS $KOKKOS_PROFILE_LIBRARY", KOKKOS_TOOLS_LIBS="/a.so")
        self.assertEqual(self.out, f"/a.so;{LIBRARY} {LIBRARY}\n")

    def test_outside_of_a_job(self):
        done = subprocess.run([CALLS, "odd"], env=self.env | {"KOKKOS_TOOLS_LIBS": LIBRARY}, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "0\n", ""))

    def test_only_its_interface_is_visible(self):
        names = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True).stdout.split()[2::3]
        self.assertTrue(names and all(name.startswith("kokkosp_") for name in names), names)


if __name__ == "__main__":
    main()
