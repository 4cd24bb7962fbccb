"""Measures the time that `sonde run` adds to a command that does nothing: for the start, the
telemetry of the node, the recording and the summary."""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from peers import report  # noqa: E402

SONDE = os.path.join(os.environ["SONDE_BUILD"], "sonde")
PAIRS = 15


def milliseconds(command, environment):
    start = time.monotonic_ns()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (time.monotonic_ns() - start) / 1e6


def processor_ms():
    """Returns the processor time of all ended processes that this one has started."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1e3


def main():
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        environment = os.environ | {"TMPDIR": folder, "SONDE_RUNS": os.path.join(folder, "runs")}
        for level in (0, 2):
            before_ms = processor_ms()
            pairs = [(milliseconds([SONDE, "run", "-l", str(level), "--", "true"], environment), milliseconds(["true"], environment))
                     for _ in range(PAIRS)]
            ours, bare = (statistics.median(side) for side in zip(*pairs))
            used_ms = round((processor_ms() - before_ms) / PAIRS, 2)
            report("run", f"run_true_level_{level}", round(ours, 2), "ms", "true", round(bare, 2), over_ms=round(ours - bare, 2), processor_ms=used_ms)


main()
