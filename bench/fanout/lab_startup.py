"""Measures the time that `sonde run` on the nodes of a Slurm job adds to `srun true`, in the lab of
tests/cluster. Without root, it is skipped with a message."""

import os
import pathlib
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent / "tests/cluster")]
from lab import Lab, why_not  # noqa: E402
from peers import report, say  # noqa: E402

SONDE = os.path.join(os.environ["SONDE_BUILD"], "sonde")
ROUNDS, NODES = 7, 3


def main():
    reason = why_not()
    if reason:
        say(f"the start over several nodes is left out: {reason}")
        return
    lab = Lab([SONDE])
    try:
        def seconds(*command):
            start = time.monotonic()
            done = lab.run("n1", "salloc", "--quiet", f"-N{NODES}", *command)
            if done.returncode:
                raise RuntimeError(done.stderr)
            return time.monotonic() - start
        pairs = [(seconds("sonde", "run", "--no-record", "--quiet", "srun", "--overlap", "true"), seconds("srun", "true")) for _ in range(ROUNDS)]
        ours, bare = (statistics.median(side) * 1000 for side in zip(*pairs))
        report("fanout", f"sonde run srun true, {NODES} nodes under Slurm", round(ours), "ms", "srun true", round(bare), over_ms=round(ours - bare))
    finally:
        lab.close()


main()
