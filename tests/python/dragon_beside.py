"""A program of Dragon's, with its import changed, inside of Dragon's runtime: processes of a pool emit, and the program asks.

    sonde run -l 2 -- dragon -s dragon_beside.py              (dragon_original.sh --beside)
"""

import multiprocessing as mp
import time

import dragon  # noqa: F401: the start method

from sonde import AnalysisClient, Telemetry

TASKS = 16
SETTLE_S = 30.0


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
    client.connect(timeout=60)
    deadline = time.monotonic() + SETTLE_S
    found = []
    while len(found) < TASKS + 1 and time.monotonic() < deadline:
        found = client.get_data(["in_pool", "outside"], tags=None)
    by_task = {series["tags"]["task"]: list(series["dps"].values()) for series in client.get_data("in_pool", tags="task")}
    assert by_task == {number: [number / 2] for number in range(TASKS)}, by_task
    policies = __import__("sonde").CollectorGroup("m").generate_policies()
    assert len(policies) == 1, policies
    print(f"level {telemetry.level}, {len(found)} series", flush=True)


if __name__ == "__main__":
    main()
