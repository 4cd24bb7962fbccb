"""A query has the same answer from a running job of three hosts, from its recording, and from a new
recording that is imported from an export."""

import csv
import io
import json
import os
import pathlib
import subprocess
import unittest

import lab as labs

SEED = int(os.environ.get("SONDE_TEST_SEED", "7"))
lab = None

# The program for each host: it emits random series with random tags, at random times of the last
# ten seconds. Only grad_norm has extreme values: a sum of them has no correct digits.
EMIT = """
import random, socket, subprocess, sys, time
rng = random.Random(sys.argv[1] + socket.gethostname())
lines, now = [], time.time_ns()
for name in ("loss", "words", "grad_norm"):
    for tags in ("", " rank=0", " rank=1 part=x", " rank=2 part=y"):
        at = now - rng.randrange(10**10)
        for _ in range(rng.randrange(1, 300)):
            at += rng.choice([1, 10**3, rng.randrange(1, 10**8)])
            extreme = name == "grad_norm" and rng.random() < 0.1
            value = rng.choice([0.0, 0.1, -1e-300, 2.0**53, 1.7976931348623157e308]) if extreme else rng.gauss(0, 1)
            lines.append(f"put {name} {min(at, now)} {value!r}{tags}\\n")
subprocess.run(["sonde", "put"], input="".join(lines), text=True, check=True)
subprocess.run(["sonde", "annotate", f"from {socket.gethostname()}", "rank=1"], check=True)
subprocess.run(["sonde", "span", "run", "step", "rank=0", "--", "true"], check=True)
"""

# The program for the first host: it saves answers and an export while the job runs.
ASK = """
import json, os, subprocess, sys, time
seed, questions = sys.argv[1], json.loads(sys.argv[2])
start = time.time_ns() // 10**6 - 60_000
subprocess.run(["srun", "python3", "/mnt/shared/emit.py", seed], check=True)
deadline = time.monotonic() + 300
def sampled():
    text = subprocess.run(["sonde", "query", "--json", "none:cpu_user_seconds_total{host=*}"], capture_output=True, text=True).stdout
    return {s["tags"]["host"] for s in json.loads(text or "[]") if len(s["dps"]) > 2}
while len(sampled()) < 3: assert time.monotonic() < deadline, sampled()
end = time.time_ns() // 10**6
times = ["-s", str(start), "-e", str(end)]
answers = [subprocess.run(["sonde", "query", "--json", *times, asked], capture_output=True, text=True).stdout for asked in questions]
live = subprocess.run(["sonde", "export", "-q", "--metric", "loss,words,grad_norm,cpu_user_seconds_total", *times, "--strict", os.environ["SONDE_JOB"]], capture_output=True, text=True)
json.dump([times, answers, live.stdout, live.returncode, live.stderr], open("/mnt/shared/live.json", "w"))
"""

QUESTIONS = ["none:loss{host=*}", "none:grad_norm", "max:1s-max:grad_norm{rank=*}", "p95:1s-max:words{host=*}", "max:0all-max:words{part=*}", "count:500ms-count:loss", "--spans", "--annotations"]
# Their answers contain sums. The order of additions depends on the blocks of a store, so the last
# digits may differ.
SUMS = ["sum:1s-avg:loss{rank=*}", "avg:1s-avg:rate:words{host=*}", "sum:rate{counter}:cpu_user_seconds_total{host=*}"]


def setUpModule():
    global lab
    lab = labs.Lab([os.environ["SONDE"]])


def tearDownModule():
    if lab:
        lab.close()


def sonde(*arguments):
    done = subprocess.run([os.environ["SONDE"], *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stdout, done.stderr


class Export(unittest.TestCase):
    maxDiff = 2000

    def answers(self, times, folder, questions):
        return [json.loads(sonde("query", "--json", *times, asked, folder)[1]) for asked in questions]

    def assert_same_but_rounding(self, found, wanted):
        for asked, a, b in zip(SUMS, found, wanted, strict=True):
            self.assertEqual([[s["metric"], s["tags"], list(s["dps"])] for s in a], [[s["metric"], s["tags"], list(s["dps"])] for s in b])
            values = [[v for s in answer for v in s["dps"].values()] for answer in (a, b)]
            rounding = 1e-12 * max(map(abs, values[1]))
            for x, y in zip(*values):
                self.assertAlmostEqual(x, y, delta=rounding, msg=asked)

    def test_live_recorded_and_back(self):
        print(f"# SONDE_TEST_SEED={SEED}", flush=True)
        shared = pathlib.Path(lab.shared)
        (shared / "emit.py").write_text(EMIT)
        (shared / "ask.py").write_text(ASK)
        done = lab.run("n1", "salloc", "--quiet", "-N3", "sonde", "run", "--quiet", "-l2", "--record=/mnt/shared/recording", "--",
                       "python3", "/mnt/shared/ask.py", str(SEED), json.dumps(QUESTIONS + SUMS))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        times, live, exported, code, errors = json.loads((shared / "live.json").read_text())
        recording = shared / "recording"
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual({row["host"] for row in csv.DictReader(io.StringIO(exported)) if row["name"] == "loss"}, {"n1", "n2", "n3"})
        selected = ("--metric", "loss,words,grad_norm,cpu_user_seconds_total", *times)
        self.assertEqual(sonde("export", "-q", *selected, recording)[:2], (0, exported))
        live = [json.loads(text) for text in live]
        recorded, sums = self.answers(times, recording, QUESTIONS), self.answers(times, recording, SUMS)
        self.assertTrue(all(recorded + sums), [q for q, a in zip(QUESTIONS + SUMS, recorded + sums) if not a])
        self.assertEqual(live[: len(QUESTIONS)], recorded)
        self.assert_same_but_rounding(live[len(QUESTIONS) :], sums)
        for form, ending, events in (("csv", "csv", True), ("parquet", "parquet", True), ("sqlite", "sqlite", True), ("dragon-sqlite", "db", False), ("tensorboard", "tfevents", False), ("influx", "influx", False), ("openmetrics", "om", False), ("wide-csv", "wide", False)):
            with self.subTest(form):
                file, back = shared / f"out.{ending}", shared / f"back-{form}"
                self.assertEqual(sonde("export", "-q", "-o", file, *(["-f", form] if form in ("dragon-sqlite", "wide-csv") else []), recording), (0, "", ""))
                status, _, errors = sonde("import", "-o", back, file)
                self.assertEqual((status, errors), (0, ""))
                questions = QUESTIONS if events else QUESTIONS[:-2]
                self.assertEqual(self.answers(times, back, questions), recorded[: len(questions)])
                self.assert_same_but_rounding(self.answers(times, back, SUMS), sums)


if __name__ == "__main__":
    labs.skip_if(labs.why_not())
    unittest.main(verbosity=2)
