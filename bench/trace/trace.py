"""Measures the cost of `sonde run --trace` with pairs of loops, with and without the library, each
in its own job. Loops of MPI calls run under each MPI whose compiler is installed, on two
processors."""

import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from peers import report  # noqa: E402

HERE = pathlib.Path(__file__).parent
SONDE = os.path.join(os.environ["SONDE_BUILD"], "sonde")
PAIRS = 7
# Reads all files once for each line of its input.
READS = """
import os, sys, time
folder = sys.argv[1]
def read():
    for i in range(10000):
        with open(f"{folder}/{i}", "rb") as f:
            f.read()
read()
print(0, flush=True)
for _ in sys.stdin:
    begin = time.process_time()
    read()
    print((time.process_time() - begin) * 1e9 / 10000, flush=True)
"""
# Calls of a function that has no spans any more.
PYTHON = """
import time
def plain():
    pass
def loop():
    for _ in range(200000):
        plain()
loop()
begin = time.process_time()
loop()
print((time.process_time() - begin) * 1e9 / 200000)
"""


def job(trace, command):
    options = ["--trace", trace] if trace else []
    return [SONDE, "run", "--quiet", "--no-record", "-l", "1", *options, "--", *map(str, command)]


def report_pairs(name, pairs, **limits):
    ours, bare = (statistics.median(side) for side in zip(*pairs))
    over = statistics.median(a - b for a, b in pairs)
    report("trace", name, round(ours, 1), "ns", "not traced", round(bare, 1),
           over_ns=round(over, 1), over_percent=round(100 * over / bare, 2), **limits)


def run(environment, trace, command):
    done = subprocess.run(job(trace, command), env=environment, check=True, capture_output=True,
                          text=True)
    return float(done.stdout)


def compare(name, environment, trace, command, limit_ns):
    pairs = [[run(environment, one, command) for one in (trace, None)] for _ in range(PAIRS)]
    report_pairs(name, pairs, limit_ns=limit_ns)


def measure_in_turn(programs):
    """Makes each program measure once. Returns their figures."""
    figures = []
    for program in programs:
        program.stdin.write("\n")
        program.stdin.flush()
        figures.append(float(program.stdout.readline()))
    return figures


def compare_in_turn(name, environment, trace, command, limit_percent):
    """Compares programs that run at the same time and measure in turn. So other work on the machine
    changes both figures of a pair. Some processes are faster than others, so many are measured."""
    processes, rounds, pairs = 16, 8, []
    for _ in range(processes):
        programs = [subprocess.Popen(job(one, command), env=environment, text=True,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                    for one in (trace, None)]
        for program in programs:
            program.stdout.readline()  # it is ready
        for i in range(rounds):
            figures = measure_in_turn(programs if i % 2 else programs[::-1])
            pairs.append(figures if i % 2 else figures[::-1])
        for program in programs:
            program.stdin.close()
            program.wait()
    report_pairs(name, pairs, limit_percent=limit_percent)


def main():
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        environment = os.environ | {"TMPDIR": folder, "SONDE_RUNS": os.path.join(folder, "runs")}
        environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        calls = os.path.join(folder, "calls")
        subprocess.run(["cc", "-O2", HERE / "calls.c", "-o", calls], check=True)
        compare("io_pread", environment, "io", [calls, "pread", 500000], limit_ns=100)
        compare("io_fwrite", environment, "io", [calls, "fwrite", 5000000], limit_ns=100)
        files = os.path.join(folder, "files")
        os.mkdir(files)
        for i in range(10000):
            pathlib.Path(files, str(i)).write_bytes(b"x" * 4096)
        compare_in_turn("io_python_reads_a_file", environment, "io",
                        [sys.executable, "-c", READS, files], limit_percent=2)
        for name, chosen in (("not_chosen", "none"), ("chosen", "__main__.plain")):
            compare(f"python_{name}", environment | {"SONDE_TRACE_PYTHON": chosen}, "python",
                    [sys.executable, "-c", PYTHON], limit_ns=2000)
        kokkos = os.path.join(folder, "kokkos")
        subprocess.run(["cc", "-O2", HERE / "kernels.c", "-o", kokkos, "-ldl"], check=True)
        for what in ("kernel", "region"):
            compare(f"kokkos_{what}", environment, "kokkos", [kokkos, what, 1000000], limit_ns=200)
        nccl = os.path.join(folder, "nccl")
        subprocess.run(["cc", "-O2", HERE / "collectives.c", "-o", nccl, "-ldl"], check=True)
        compare("nccl_collective", environment, "nccl", [nccl, "collective", 500000], limit_ns=500)
        cuda, cupti = os.path.join(folder, "cuda"), os.path.join(folder, "libcupti.so")
        source = HERE.parents[1] / "src"
        subprocess.run(["cc", "-O2", f"-I{source}", HERE / "launches.c", "-o", cuda, "-ldl"],
                       check=True)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", f"-I{source}", "-D_GNU_SOURCE",
                        HERE.parents[1] / "tests/trace/cupti_library.c", source / "base/clock.c",
                        "-o", cupti], check=True)
        compare("cuda_kernel", environment | {"SONDE_CUPTI": cupti}, "cuda",
                [cuda, "kernel", 500000], limit_ns=500)
        nvtx = os.path.join(folder, "nvtx")
        subprocess.run(["cc", "-O2", HERE / "ranges.c", "-o", nvtx, "-ldl"], check=True)
        for what in ("push", "start"):
            compare(f"nvtx_{what}", environment, "nvtx", [nvtx, what, 1000000], limit_ns=200)
        openmp = os.path.join(folder, "openmp")
        built = ["clang", "-O2", "-fopenmp", HERE / "regions.c", "-o", openmp]
        if shutil.which("clang") and subprocess.run(built, capture_output=True).returncode == 0:
            for what in ("region", "barrier"):
                compare(f"omp_{what}", environment, "omp", [openmp, what, 500000], limit_ns=200)
        else:
            print("bench: no OpenMP of clang", file=sys.stderr)
        for mpi in ("openmpi", "mpich"):
            if not shutil.which(f"mpicc.{mpi}"):
                print(f"bench: no {mpi}", file=sys.stderr)
                continue
            program = os.path.join(folder, mpi)
            subprocess.run([f"mpicc.{mpi}", "-O2", HERE / "messages.c", "-o", program], check=True)
            for what, ranks in (("self", 1), ("ping_pong", 2), ("allreduce", 2)):
                loop = [f"mpirun.{mpi}", "-n", ranks, program, what, 500000]
                compare(f"mpi_{mpi}_{what}", environment, "mpi", loop, limit_ns=100)


main()
