"""A program of Dragon with a changed import, inside of Dragon's runtime: processes of a pool emit,
and the program queries.

    sonde run -l 2 -- dragon -s dragon_beside.py              (dragon_original.sh --beside)
"""

import multiprocessing as mp
import time

import dragon  # noqa: F401: the start method

import sonde
from dragon.native.machine import Node, System
from sonde import AnalysisClient, CollectorGroup, Telemetry

TASKS = 16
SETTLE_S = 30.0


class Count(CollectorGroup):
    @staticmethod
    def collector_test(collector_args):
        (counter,) = collector_args
        with counter.get_lock():
            counter.value += 1
        return 8


def work(number):
    Telemetry().add_data("in_pool", number / 2, tagk="task", tagv=number)
    return number


def main():
    mp.set_start_method("dragon")
    telemetry = Telemetry()
    with mp.Pool(2) as pool:
        assert pool.map(work, range(TASKS)) == list(range(TASKS))
    telemetry.add_data("outside", 2.5)
    client = AnalysisClient()
    client.connect(timeout=300)
    deadline = time.monotonic() + SETTLE_S
    found = []
    while len(found) < TASKS + 1 and time.monotonic() < deadline:
        found = client.get_data(["in_pool", "outside"], tags=None)
    by_task = {series["tags"]["task"]: list(series["dps"].values()) for series in client.get_data("in_pool", tags="task")}
    assert by_task == {number: [number / 2] for number in range(TASKS)}, by_task
    huid = System().nodes[0]
    assert sonde._analysis._hosts_of([huid]) == Node(huid).hostname, huid
    policies = CollectorGroup("m").generate_policies()
    assert len(policies) == 1, policies
    counter = mp.Value("i", 0)
    group = Count("counted", collection_rate=0.1, collector_args=(counter,))
    group.start()
    while counter.value < 3 and time.monotonic() < deadline:
        pass
    group.stop()
    assert counter.value >= 3, counter.value
    print(f"level {telemetry.level}, {len(found)} series, counted", flush=True)


if __name__ == "__main__":
    main()
