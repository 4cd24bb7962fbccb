"""Measures how long a Python program takes from the start of the interpreter to its first point:
pairs of programs in a job. One imports sonde and emits a point, the other one does nothing."""

import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from peers import report  # noqa: E402

BUILD = os.environ["SONDE_BUILD"]
PAIRS = 41
POINT = "import sonde; sonde.gauge('first')(1.0); assert sonde.level() == 1"


def milliseconds(program):
    start = time.monotonic_ns()
    subprocess.run([sys.executable, "-c", program], check=True)
    return (time.monotonic_ns() - start) / 1e6


def measure():
    milliseconds(POINT)  # writes the compiled modules
    pairs = [(milliseconds(POINT), milliseconds("pass")) for _ in range(PAIRS)]
    over = statistics.median(point - nothing for point, nothing in pairs)
    bare = statistics.median(nothing for _, nothing in pairs)
    report("python", "first_point", round(over, 2), "ms", "interpreter", round(bare, 2), limit_ms=10)


def main():
    with tempfile.TemporaryDirectory(prefix="sb-") as folder:
        environment = os.environ | {"PYTHONPATH": f"{BUILD}/bindings/python", "TMPDIR": folder}
        command = [f"{BUILD}/sonde", "run", "--quiet", "--no-record", "-l", "1", "--",
                   sys.executable, __file__, "measure"]
        sys.exit(subprocess.run(command, env=environment).returncode)


measure() if len(sys.argv) > 1 else main()
