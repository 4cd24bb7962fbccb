"""Measures the time that `sonde run` on the nodes of a Slurm job adds to `srun true`, and the
memory of its srun processes on the first node, in the lab of tests/cluster. Without root, it is
skipped with a message.
"""

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
ROUNDS, NODES, MANY = 7, 3, 33


def many_nodes():
    """Measures until the command begins on many nodes. The peer is the start of a task on each."""
    with Lab([SONDE], names=tuple(f"n{i + 1}" for i in range(MANY))) as lab:
        def begin(*command):
            """Returns the seconds until the command has written a line, and the bytes that the
            processes of its srun use then."""
            start = time.monotonic()
            run = lab.start("n1", "salloc", "--quiet", f"-N{MANY}", *command)
            run.stdout.readline()
            seconds, used, count = time.monotonic() - start, 0, 0
            for pid in lab.processes("n1", "srun --overlap"):
                rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
                used += 1024 * int(rollup.split("\nPss:", 1)[1].split()[0])
                count += 1
            run.communicate()
            if run.returncode:
                raise RuntimeError(" ".join(command))
            return seconds, used, count
        pairs = [(begin("sonde", "run", "--no-record", "--quiet", "sh", "-c", "echo; sleep 1"), begin("srun", "sh", "-c", "echo; sleep 1")) for _ in range(ROUNDS)]
        (ours, used, count), (bare, _, _) = (map(statistics.median, zip(*side)) for side in zip(*pairs))
        report("fanout", f"the command begins, {MANY} nodes under Slurm", round(ours * 1000), "ms", "first output of srun", round(bare * 1000), over_ms=round((ours - bare) * 1000))
        report("fanout", f"srun on the first node, {MANY} nodes under Slurm", round(used / 1e6, 1), "MB", processes=count)


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
    many_nodes()


main()
