"""A merge sort that divides its list among more and more processes, until telemetry shows that a
node has enough of them.

    sonde run --telemetry-level=2 examples/merge_sort.py
    salloc --nodes=4 --exclusive sonde run --telemetry-level=2 examples/merge_sort.py

The program divides every list among the nodes of the job. On each node, it halves the part between
two processes, and so on. An AnalysisClient watches `num_running_processes` of every node. When a
node runs PROCESSES more than at the beginning, the program sets an event on all nodes, and they
sort the remaining lists without dividing them. It needs level 2, because sonde does not count
processes below that.

For each list, the program prints the duration, and for each node the maximum number of processes
and the length of the last undivided list (the cut-off).
"""

import argparse
import multiprocessing
import random
import sys
import threading
import time
from heapq import merge

from on_nodes import Place, Processes, flag, nodes
from sonde import AnalysisClient, Telemetry

DEPTH_MAX = 6  # maximum depth of divisions: 127 processes per node
fork = multiprocessing.get_context("fork")


def get_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--min-size", type=int, default=100_000, help="length of the first list (default 100,000)")
    parser.add_argument("--max-size", type=int, default=1_000_000, help="length of the last list (default 1,000,000)")
    parser.add_argument("--increment", type=int, default=100_000, help="difference between the lengths of consecutive lists (default 100,000)")
    parser.add_argument("--limit", type=int, default=32, metavar="PROCESSES", help="maximum of additional processes on a node (default 32)")
    parser.add_argument("--pause", type=float, default=1.0, metavar="SECONDS", help="pause before each division, so that telemetry can follow (default 1)")
    args = parser.parse_args()
    if not 0 < args.min_size <= args.max_size or args.increment < 1:
        parser.error("the first list has one element at least, the last one as many, and each is longer than the one before")
    return args


# ---------------------------------------------------------------- sorting, on each node


def sort_into(values, result, pause, depth):
    if flag().is_set() or len(values) < 2 or depth == DEPTH_MAX:
        Telemetry().add_data("merge_cutoff", len(values))
        result.put(sorted(values))
        return
    time.sleep(pause)
    half, halves = len(values) // 2, fork.SimpleQueue()
    processes = [fork.Process(target=sort_into, args=(part, halves, pause, depth + 1)) for part in (values[:half], values[half:])]
    for process in processes:
        process.start()
    result.put(list(merge(halves.get(), halves.get())))
    for process in processes:
        process.join()


def sort(work):
    values, pause = work
    result = fork.SimpleQueue()
    process = fork.Process(target=sort_into, args=(values, result, pause, 0))
    process.start()
    values = result.get()
    process.join()
    return values


# ---------------------------------------------------------------- watching, on the first node


class Watch(threading.Thread):
    """Counts the processes of each node, and calls `stop` once when a node has too many."""

    def __init__(self, before, limit, stop):
        super().__init__(daemon=True)
        self.most = {}
        self._before, self._limit, self._stop_it = before, limit, stop
        self._start = time.time()
        self._over = threading.Event()

    def run(self):
        with AnalysisClient() as client:
            while True:
                for series in client.get_data("num_running_processes", start_time=self._start):
                    host, most = series["tags"]["host"], max(series["dps"].values(), default=0)
                    self.most[host] = most
                    if most - self._before.setdefault(host, most) > self._limit:
                        self._stop_it()
                        self._stop_it = lambda: None
                if self._over.wait(0.1):
                    return

    def end(self):
        self._over.set()
        self.join()


def processes_now(client, hosts):
    """Waits until every node has counted its processes."""
    while True:
        newest = {s["tags"]["host"]: list(s["dps"].values())[-1] for s in client.get_data("num_running_processes") if s["dps"]}
        if len(newest) >= len(hosts):
            return newest
        time.sleep(0.1)


def cutoffs(client, start):
    """Returns the newest cut-off of each node. The answer contains all points that a process has
    emitted before the query, even if the process has ended."""
    newest = {}
    for series in client.get_data("merge_cutoff", start_time=start):
        if series["dps"]:
            second, length = max((int(second), length) for second, length in series["dps"].items())
            host = series["tags"]["host"]
            newest[host] = max(newest.get(host, (0, 0)), (second, length))
    return {host: length for host, (_, length) in newest.items()}


def main():
    args = get_args()
    telemetry = Telemetry()
    if telemetry.level < 2:
        sys.exit("merge_sort.py needs level 2 or higher, because sonde counts processes only then: sonde run --telemetry-level=2 examples/merge_sort.py")
    data = [random.randrange(args.max_size) for _ in range(args.max_size)]
    hosts = nodes()
    client = AnalysisClient()
    client.connect(timeout=60)
    before = processes_now(client, hosts)
    print("    List Size    Time (seconds)    Hostname    Processes    Cutoff", flush=True)
    for size in range(args.min_size, args.max_size + 1, args.increment):
        start = time.time()
        with Processes([Place(host) for host in hosts]) as processes:
            watch = Watch(before, args.limit, processes.set_flag)
            watch.start()
            began = time.perf_counter()
            parts = processes.map(sort, [(data[i:size:len(hosts)], args.pause) for i in range(len(hosts))])
            result = list(merge(*parts))
            took = time.perf_counter() - began
            watch.end()
        if result != sorted(data[:size]):
            sys.exit("the list is not sorted")
        last = cutoffs(client, start)
        for host in sorted(before):
            # "-" means that the list took less time than the interval between two counts.
            most = f"{watch.most[host]:.0f}" if host in watch.most else "-"
            print(f"{size:13d}    {took:14.6f}    {host:8}    {most:>9}    {last[host]:6.0f}", flush=True)
    print(f"All available telemetry metrics: {sorted(client.get_metrics())}", flush=True)
    telemetry.finalize()


if __name__ == "__main__":
    main()
