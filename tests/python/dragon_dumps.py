"""Compares answers of the original from its databases with sonde's from recordings of its dumps.

dragon_original.sh --dump runs it:

    dragon … dragon_dumps.py write ANSWERS.json
    python3 dragon_dumps.py compare ANSWERS.json RECORDINGS
"""

import importlib
import json
import sys
import time

OWN = {"dumped %": None, "dumped_rank": "rank", "dumped_text": "name"}
NODE = ["load_average", "used_RAM", "cpu_percent", "num_running_processes", "def_pool_utilization"]
ROUNDS = 20


def ask(client, now):
    return {metric: client.get_data(metric, tags=tag, start_time=now - 100) for metric, tag in [*OWN.items(), *((m, None) for m in NODE)]}


def write(path):
    t = importlib.import_module("dragon.telemetry")
    telemetry, client = t.Telemetry(), t.AnalysisClient()
    client.connect(timeout=300)
    now = int(time.time())
    for i in range(ROUNDS):
        telemetry.add_data("dumped %", 1 / (i + 1), timestamp=now - ROUNDS + i)
        telemetry.add_data("dumped_rank", i, timestamp=now - i % 5, tagk="rank", tagv=i % 3)
        telemetry.add_data("dumped_text", "0.5", tagk="name", tagv="a b")
    for _ in range(2):
        time.sleep(3)
        assert client.db_dump()[0]["result"]["status"] == "success"
    with open(path, "w") as out:
        json.dump({"now": now, "answers": ask(client, now)}, out)
    telemetry.shutdown()


def compare(path, recordings):
    with open(path) as file:
        written = json.load(file)
    with importlib.import_module("sonde").AnalysisClient(recordings) as client:
        found = ask(client, written["now"])
    for metric, wanted in written["answers"].items():
        if metric in NODE:  # the node's metrics continued after the dump
            last = max(found[metric][0]["dps"])
            wanted = [{**series, "dps": {t: v for t, v in series["dps"].items() if t < last}} for series in wanted]
            found[metric] = [{**series, "dps": {t: v for t, v in series["dps"].items() if t < last}} for series in found[metric]]
        order = lambda series: json.dumps(series["tags"])  # noqa: E731
        assert sorted(found[metric], key=order) == sorted(wanted, key=order), (metric, found[metric], wanted)
        assert wanted[0]["dps"], metric
    print(f"{len(found)} metrics alike")


if __name__ == "__main__":
    {"write": write, "compare": compare}[sys.argv[1]](*sys.argv[2:])
