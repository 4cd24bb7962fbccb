"""What a Monitor costs a cluster: 10,000 small tasks with it and without it, in turns on one cluster, so that a busy machine is busy for both. CPU time of scheduler and workers, and wall time."""

import json
import os
import pathlib
import statistics
import sys

BUILD = pathlib.Path(os.environ["SONDE_BUILD"])
PAIRS = int(os.environ.get("SONDE_BENCH_PAIRS", "8"))
TASKS = int(os.environ.get("SONDE_BENCH_TASKS", "10000"))
sys.path[:0] = [str(BUILD / "bindings/python"), str(BUILD / "python-dask-newest")]
os.environ["PATH"] = f"{BUILD / 'src/cli'}:{os.environ['PATH']}"
os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2])


def small(i):
    return i + 1


def cpu_s(client):
    import time

    return sum(client.run(time.process_time).values()) + client.run_on_scheduler(time.process_time)


def once(client):
    import time

    cpu, wall = cpu_s(client), time.perf_counter()
    futures = client.map(small, range(TASKS), pure=False)
    client.gather(futures)
    wall = time.perf_counter() - wall
    del futures
    return cpu_s(client) - cpu, wall


def main():
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        print("bench: Dask is not here (tools/test installs it)", file=sys.stderr)
        return
    from sonde.dask import Monitor

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        monitor = Monitor(client)
        once(client)
        pairs = []
        for pair in range(PAIRS):
            measured = {}
            for monitored in (True, False) if pair % 2 else (False, True):
                if monitored:
                    monitor.attach(tracking=["total-mem", "mem-util", "compute-util", "tasks"])
                    monitor.start()
                measured[monitored] = once(client)
                if monitored:
                    monitor.shutdown()
            pairs.append(measured)
    for place, what in enumerate(("cpu", "wall")):
        with_it, without = (statistics.median(pair[monitored][place] for pair in pairs) for monitored in (True, False))
        ratio = statistics.median(pair[True][place] / pair[False][place] for pair in pairs)
        print(json.dumps({"bench": "dask", "metric": f"{TASKS} tasks, {what} time", "value": with_it, "unit": "s", "peer": "without a monitor", "peer_value": without, "ratio": round(ratio, 4)}))


if __name__ == "__main__":
    main()
