"""Measures the cost of calls in each language whose compiler is installed, compared with C++: a
point, an addition to a cell, a point above the level of the run, and a span with a number as a tag.
For Octave also a point of a vector of points, compared with a point in C++.

Each program runs under `sonde run` and measures each call in 101 rounds. The result is the median;
it includes the loop itself. R's point of a vector is compared with a point in C++.
"""

import collections
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent / "tests/languages")]
from builds import COMPILERS, Builds, found  # noqa: E402
from peers import report, say  # noqa: E402

BUILD = os.environ["SONDE_BUILD"]
LIBRARY = os.path.join(BUILD, "src/emit/libsonde.a")
PROGRAMS = {"C++": "loops.cpp", "Fortran": "loops.f90", "Rust": "loops.rs", "Go": "loops.go", "Java": "Loops.java", "Julia": "loops.jl",
            "Octave": "loops.m", "R": "loops.R"}


def run(*command):
    subprocess.run(list(map(str, command)), check=True, stdout=sys.stderr)


def measure(source):
    """Builds and runs a program; returns call → median of its nanoseconds."""
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        (program,) = Builds(folder, LIBRARY, run).commands(source)
        command = [os.path.join(BUILD, "sonde"), "run", "-q", "-l", "1", "--no-record", "--", *map(str, program)]
        done = subprocess.run(command, env=os.environ | {"TMPDIR": folder}, check=True, stdout=subprocess.PIPE, text=True)
    rounds = collections.defaultdict(list)
    for line in done.stdout.splitlines():
        name, ns = line.split()
        rounds[name].append(float(ns))
    return {name: statistics.median(ns) for name, ns in rounds.items()}


def main():
    first = {}
    for language, name in PROGRAMS.items():
        source = HERE / name
        compiler = COMPILERS[source.suffix[1:]]
        if not found(compiler):
            say(f"{compiler} is not installed: {language} is left out")
            continue
        costs = measure(source)
        first = first or costs
        for call, ns in costs.items():
            report("languages", f"{call}_{language}", round(ns, 1), "ns", next(iter(PROGRAMS)), round(first.get(call, first["emit"]), 1))


main()
