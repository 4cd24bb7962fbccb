"""Measures the cost of a Monitor for a cluster: with 10,000 small tasks, with tasks that take a
second, and without tasks.

The cost is the processor time of all processes, Dask's and sonde's, with a Monitor compared with
that without it. Both are measured on one cluster, alternating every few tenths of a second, so that
other load on the machine affects both equally:

    block, drawn at random:   with  without  without  with   or   without  with  with  without

In the ratio of a block, linear drifts cancel out. A turn ends when the scheduler has forgotten its
tasks. In a turn `with`, a Monitor is attached and started; in a turn `without`, the Monitor was
removed and its agent has ended. The result is the median of the blocks' ratios. Blocks are added
until its 95 % interval (of order statistics, without an assumption about the noise) is narrower
than WIDTH, or the time is up. Tasks of a second only sleep, because real work would hide the cost
of the Monitor.
"""

import gc
import math
import os
import pathlib
import random
import statistics
import sys
import time

BUILD = pathlib.Path(os.environ["SONDE_BUILD"])
TASKS = 10_000  # times are reported for this number of small tasks
TURN_TASKS = int(os.environ.get("SONDE_BENCH_TASKS", "2500"))
TURN_S = 3  # length of a turn without small tasks
WIDTH = float(os.environ.get("SONDE_BENCH_WIDTH", "0.008"))
SECONDS_MAX = float(os.environ.get("SONDE_BENCH_SECONDS", "120"))
BLOCKS_MIN = 12  # with small tasks
BLOCKS_QUIET = 3  # without small tasks; these blocks hardly differ
CALM_S = 0.05  # the workers finish their work this long after the scheduler
# All values that task_extremes() can report.
TRACKING = ["total-mem", "mem-util", "compute-util", "tasks", "rss"]
sys.path[:0] = [str(BUILD / "bindings/python"), str(BUILD / "python-dask-newest"), str(pathlib.Path(__file__).parent.parent)]
os.environ["PATH"] = f"{BUILD}:{os.environ['PATH']}"
os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2])

from peers import report, say  # noqa: E402


def small(i):
    return i + 1


def descendants():
    """Returns this process and all its descendants."""
    children = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(entry.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue  # the process has just ended
        children.setdefault(parent, []).append(int(entry.parent.name))
    found = [os.getpid()]
    for pid in found:
        found += children.get(pid, [])
    return found


def cpu_s(pids):
    """Returns the processor time of each running process so far."""
    found = {}
    for pid in pids:
        try:
            # The id of the kernel's clock for the processor time of a process.
            found[pid] = time.clock_gettime(~pid << 3 | 2)
        except OSError:
            pass
    return found


def small_tasks(client):
    client.gather(client.map(small, range(TURN_TASKS), pure=False))


def tasks_of_a_second(client):
    client.gather(client.map(time.sleep, [1] * TURN_S * len(client.nthreads()), pure=False))


def nothing(client):
    time.sleep(TURN_S)


def turn(cluster, client, work):
    """Does some work; returns its processor and wall time."""
    gc.collect()
    pids = descendants()
    before, wall = cpu_s(pids), time.perf_counter()
    work(client)
    wall = time.perf_counter() - wall
    while cluster.scheduler.tasks:
        time.sleep(0.001)
    time.sleep(CALM_S)
    after = cpu_s(pids)
    return sum(after[pid] - before[pid] for pid in after if pid in before), wall


class Switched:
    """Adds a Monitor to the cluster and removes it; keeps the times that this took."""

    def __init__(self, client):
        from sonde.dask import Monitor

        self.monitor, self.on = Monitor(client), False
        self.took_s = {True: [], False: []}

    def turn(self, on):
        if on == self.on:
            return
        began = time.perf_counter()
        if on:
            self.monitor.attach(tracking=TRACKING)
            self.monitor.start()
        else:
            self.monitor.shutdown()
        self.took_s[on].append(time.perf_counter() - began)
        self.on = on


def interval(values):
    """Returns the median and its 95 % interval."""
    values = sorted(values)
    outside = max(0, math.floor(len(values) / 2 - 0.98 * math.sqrt(len(values))))
    return statistics.median(values), values[outside], values[-1 - outside]


def ratios(blocks, place):
    return [sum(one[place] for one in block[True]) / sum(one[place] for one in block[False]) for block in blocks]


def middle(blocks, place, on):
    return statistics.median(one[place] for block in blocks for one in block[on])


def block_of(cluster, client, switched, work):
    first, block = random.random() < 0.5, {True: [], False: []}
    for on in (first, not first, not first, first):
        switched.turn(on)
        block[on].append(turn(cluster, client, work))
    return block


def until_narrow(cluster, client, switched):
    blocks, began = [], time.monotonic()
    while not blocks or time.monotonic() - began < SECONDS_MAX:
        blocks.append(block_of(cluster, client, switched, small_tasks))
        _, low, high = interval(ratios(blocks, 0))
        if len(blocks) >= BLOCKS_MIN and high - low < WIDTH:
            break
    return blocks


def measure(cluster, client):
    switched = Switched(client)
    block_of(cluster, client, switched, small_tasks)  # a warm-up, which does not count
    blocks = until_narrow(cluster, client, switched)
    for place, what in enumerate(("cpu", "wall")):
        ratio, low, high = interval(ratios(blocks, place))
        with_it, without = (round(TASKS / TURN_TASKS * middle(blocks, place, on), 4) for on in (True, False))
        report("dask", f"{TASKS} tasks, {what} time", with_it, "s", "without a monitor", without, ratio=round(ratio, 4),
               interval=[round(low, 4), round(high, 4)], blocks=len(blocks))  # fmt: skip
    for work, what in ((tasks_of_a_second, "tasks of 1 s, cpu time"), (nothing, "idle, cpu time")):
        blocks = [block_of(cluster, client, switched, work) for _ in range(BLOCKS_QUIET)]
        with_it, without = (round(100 * middle(blocks, 0, on) / middle(blocks, 1, on), 3) for on in (True, False))
        report("dask", what, with_it, "% of a core", "without a monitor", without)
    switched.turn(False)
    for on, what in ((True, "attach and start"), (False, "shutdown")):
        report("dask", what, round(statistics.median(switched.took_s[on]), 4), "s")


def main():
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        say("Dask is not installed (tools/test installs it)")
        return
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        measure(cluster, client)


if __name__ == "__main__":
    main()
