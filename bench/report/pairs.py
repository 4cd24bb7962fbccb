"""Runs `sonde compare` on 200 pairs of synthetic runs (SONDE_BENCH_PAIRS), with and without a
change of one span by 3 %. Counts the changes that it finds, and those that it reports by mistake.

The noise is that of tests/unit/report/test_difference.c, "steps of a training": log-normal
durations that are correlated with their neighbours, outliers of 2 to 10 times the duration, and a
warm-up. Each run is a recording of two spans, of which `load` never changes. The seed is fixed, so
the figures are the same each time.
"""

import json
import math
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from peers import report  # noqa: E402

SONDE = os.path.join(os.environ["SONDE_BUILD"], "sonde")
PAIRS = int(os.environ.get("SONDE_BENCH_PAIRS", 200))
STEPS, CHANGE, START_NS, NS = 2000, 0.03, 1_790_000_000 * 10**9, 10**9
SPREAD, ALIKE, OUTLIERS, WARM_UP = 0.05, 0.6, 0.01, 0.03


def durations(draw, seconds):
    state, fresh = draw.gauss(0, 1), math.sqrt(1 - ALIKE * ALIKE)
    for i in range(STEPS):
        state = ALIKE * state + fresh * draw.gauss(0, 1)
        part = i / STEPS
        value = seconds * math.exp(SPREAD * state)
        value *= draw.uniform(2, 10) if draw.random() < OUTLIERS else 1
        yield value * (1 + 2 * (1 - part / WARM_UP) if part < WARM_UP else 1)


def make_run(folder, draw, step_s):
    table, at = folder.with_suffix(".csv"), START_NS
    with table.open("w") as out:
        out.write("time_ns,end_ns,kind,name,host,id\n")
        for i, (load, step) in enumerate(zip(durations(draw, 0.02), durations(draw, step_s))):
            for k, (name, length) in enumerate((("load", load), ("step", step))):
                end = at + round(length * NS)
                out.write(f"{at},{end},span,{name},n1,{2 * i + k + 1}\n")
                at = end
    subprocess.run([SONDE, "import", "--format", "csv", "-o", folder, table], check=True, stdout=subprocess.DEVNULL)
    table.unlink()


def verdicts(before, after):
    done = subprocess.run([SONDE, "compare", "--json", before, after], check=True, stdout=subprocess.PIPE)
    return {d["name"]: d["verdict"] for d in json.loads(done.stdout)["differences"]}


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sonde-bench-pairs-"))
    draw, found, false = random.Random(3), 0, 0
    try:
        for _ in range(PAIRS):
            runs = [folder / name for name in ("before", "same", "slower")]
            for run, step_s in zip(runs, (0.1, 0.1, 0.1 * (1 + CHANGE))):
                make_run(run, draw, step_s)
            same, slower = verdicts(runs[0], runs[1]), verdicts(runs[0], runs[2])
            found += slower["step"] == "slower"
            false += any(verdict != "same" for verdict in same.values())
            for run in runs:
                shutil.rmtree(run)
        for metric, count, limit in (("changes of 3 % found", found, 0.95), ("runs without a change, but with a verdict", false, 0.01)):
            report("report", metric, round(count / PAIRS, 4), "share", "the limit", limit, pairs=PAIRS)
    finally:
        shutil.rmtree(folder)


main()
