"""Tests `sonde run --trace mpi`: the recorded calls and bytes are exactly those of the program,
under Open MPI and MPICH, from C, Fortran and mpi4py. The rank for which the others wait has the
least time in collectives."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

from traced import Traced

from place import main

HERE = pathlib.Path(__file__).parent
ROUNDS = int(os.environ.get("SONDE_TEST_ROUNDS", 1))
RANKS = 4
# suffix of the compiler → command that starts ranks
MPIS = {"openmpi": ["mpirun.openmpi", "--oversubscribe"], "mpich": ["mpirun.mpich"]}

# (communicator, operation) → calls, bytes of each rank of tests/trace/mpi.c.
ALL = {
    ("world", "isend"): (1, 80), ("world", "irecv"): (1, 0), ("", "waitall"): (1, 0), ("world", "sendrecv"): (1, 80), ("world", "allreduce"): (61, 60 * 8000 + 4),
    ("world", "barrier"): (1, 0), ("world", "bcast"): (1, 40), ("world", "reduce"): (1, 40), ("world", "gather"): (1, 20), ("world", "scatter"): (1, 24),
    ("world", "allgather"): (2, 56), ("world", "alltoall"): (1, 128), ("world", "reduce_scatter"): (1, 40), ("size-2", "bcast"): (1, 8), ("half", "bcast"): (1, 12),
    ("size-4", "bcast"): (1, 16), ("self", "bcast"): (3, 20 + 12 + 20),
}
PING_PONG = [{("world", "send"): (10, 8000), ("world", "recv"): (10, 4000)}, {("world", "send"): (10, 4000), ("world", "recv"): (10, 8000)}, {}, {}]
EXPECTED = [ALL | PING_PONG[rank] | {("world", "allgatherv"): (1, 4 * (rank + 1))} for rank in range(RANKS)]
JUMPS = """
#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>
static jmp_buf before;
static void jump(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    longjmp(before, 1);
}
int main(int argc, char **argv)
{
    MPI_Errhandler handler;
    MPI_Init(&argc, &argv);
    MPI_Comm_create_errhandler(jump, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    if (!setjmp(before))
        MPI_Send(&argc, 1, MPI_INT, 7, 0, MPI_COMM_SELF);
    else
        printf("failed\\n");
    for (int i = 0; i < 5; i++)
        MPI_Barrier(MPI_COMM_SELF);
    MPI_Finalize();
    return 0;
}
"""


class Mpi(Traced):
    def setUp(self):
        super().setUp()
        self.env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}

    def compile(self, compiler, source, *options):
        """Compiles a program; returns its path, or None if the compiler is not installed."""
        if not shutil.which(compiler):
            return None
        program = self.root / f"program.{compiler}"
        done = subprocess.run([compiler, "-O1", *options, str(source), "-o", str(program)], capture_output=True, text=True, cwd=self.root)
        self.assertEqual(done.returncode, 0, done.stderr)
        return program

    def ranks(self, count=RANKS):
        """Returns (communicator, operation) → (calls, bytes) for each rank."""
        found = [{} for _ in range(count)]
        for tags, calls in self.totals["mpi_calls"].items():
            of = dict(tags)
            found[int(of["rank"])][of.get("comm", ""), of["op"]] = (calls, self.totals.get("mpi_bytes", {}).get(tags, 0))
            self.assertGreater(self.totals["mpi_seconds"][tags], 0)
        return found

    def slowest(self):
        """Returns the rank that waited least in collectives."""
        return min(range(RANKS), key=lambda rank: self.sum("mpi_collective_seconds", comm="world", rank=str(rank)))

    def run_c(self, mpi, slow, what="mpi", late_us=5000, file="-"):
        program = self.root / f"program.mpicc.{mpi}"
        if not program.exists() and not self.compile(f"mpicc.{mpi}", HERE / "mpi.c"):
            self.skipTest(f"no {mpi}")
        self.trace(what, *MPIS[mpi], "-n", RANKS, program, slow, late_us, file)

    def check_c(self, mpi):
        for slow in range(ROUNDS):
            slow = (slow + 2) % RANKS
            self.run_c(mpi, slow)
            self.assertEqual(self.ranks(), EXPECTED)
            self.assertEqual(self.slowest(), slow, self.totals["mpi_collective_seconds"])

    def test_open_mpi(self):
        self.check_c("openmpi")

    def test_mpich(self):
        self.check_c("mpich")

    def test_an_error_handler_that_jumps_away(self):
        """The call that never returns does not count; all further calls do."""
        source = self.root / "jumps.c"
        source.write_text(JUMPS)
        found = 0
        for mpi in MPIS:
            program = self.compile(f"mpicc.{mpi}", source)
            if program:
                self.trace("mpi", *MPIS[mpi], "-n", 1, program)
                self.assertEqual((mpi, self.out, self.sum("mpi_calls")), (mpi, "failed\n", 5))
                found += 1
        if not found:
            self.skipTest("no MPI")

    def test_with_io(self):
        """With both libraries, the report names the late rank and the largest file."""
        file = self.work / "check point"
        self.run_c("openmpi", 3, "mpi,io", late_us=25000, file=file)
        self.assertEqual(self.ranks(), EXPECTED)
        self.assertEqual(self.sum("io_file_bytes", file=str(file), op="write", rank="0"), 300 << 20)
        report = self.sonde("report", self.root / "record", "--json")
        found = {finding["kind"]: finding for finding in json.loads(report.stdout)["findings"]}
        self.assertIn("rank 3", found["mpi_waiting"]["title"], found)
        self.assertEqual((found["mpi_waiting"]["sureness"], found["mpi_waiting"]["value"] > 1), ("sure", True))
        self.assertIn(f"{file}, ", found["io_file"]["title"])
        self.assertEqual(found["io_file"]["value"], 300 << 20)
        for kind in ("mpi_waiting", "io_file"):
            asked = self.sonde("query", found[kind]["m"], self.root / "record")
            self.assertEqual((asked.returncode, "rank=3" in asked.stdout or str(file) in asked.stdout), (0, True), asked)

    def test_fortran(self):
        ran = 0
        for mpi, start in MPIS.items():
            for module in ("use mpi", "use mpi_f08"):
                source = self.root / "program.f90"
                source.write_text((HERE / "mpi.f90").read_text().replace("MODULE_USED", module))
                program = self.compile(f"mpif90.{mpi}", source)
                if not program:
                    continue
                with self.subTest(mpi=mpi, module=module):
                    self.trace("mpi", *start, "-n", 2, program)
                    ran += 1
                    of_all = {("world", "allreduce"): (10, 8000)}
                    self.assertEqual(self.ranks(2), [of_all | {("world", "send"): (1, 80)}, of_all | {("world", "recv"): (1, 80)}])
        if not ran:
            self.skipTest("no MPI with Fortran")

    def test_mpi4py(self):
        """The extension module of mpi4py opens the MPI library privately, and its calls are
        traced."""
        python = next((p for p in ("/usr/bin/python3", sys.executable) if subprocess.run([p, "-c", "import mpi4py"], capture_output=True).returncode == 0), None)
        if not python or not shutil.which("mpirun.openmpi"):
            self.skipTest("no mpi4py")
        script = "from mpi4py import MPI; w = MPI.COMM_WORLD; print(w.allreduce(w.rank)); w.Barrier(); w.send(b'x', (w.rank + 1) % 2); w.recv()"
        self.trace("mpi", *MPIS["openmpi"], "-n", 2, python, "-c", script)
        self.assertEqual(sorted(self.out), sorted("1\n1\n"))  # the lines of ranks may mix
        for rank in self.ranks(2):
            self.assertEqual(rank["world", "barrier"], (1, 0))
            self.assertEqual(rank["world", "allreduce"][0] if ("world", "allreduce") in rank else 1, 1)
            self.assertIn(("world", "send"), rank)

    def test_without_mpi(self):
        """A program without MPI is not affected by the library."""
        self.trace("mpi", "sh", "-c", "echo done")
        self.assertEqual((self.out, self.sum("mpi_calls")), ("done\n", 0))


if __name__ == "__main__":
    main()
