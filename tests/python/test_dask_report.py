"""The report of a cluster's tasks: sums compared with an oracle, and Chromium's rendering compared
with the recording's numbers. The recordings are generated, without Dask."""

import base64
import gzip
import json
import math
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import time

from program import PACKAGE, Program, main

sys.path.insert(0, PACKAGE)
from sonde.dask import Monitor, _report, _tasks, report  # noqa: E402
from sonde.dask._lives import Life  # noqa: E402

SEED = int(os.environ.get("SONDE_TEST_SEED", "11"))
ROUNDS = max(1, int(float(os.environ.get("SONDE_TEST_ROUNDS", "1"))))
WEB = pathlib.Path(os.environ["SOURCE"], "tests/web")
CLUSTER = "tcp://10.0.0.1:8786"
# as a part of a key, of a worker's name and of a span's name
HOSTILE = "x</script><script>alert(1)</script>"
THREADS = 2
# times are whole microseconds, and a double of milliseconds since the epoch has a resolution of a
# quarter of one
MICROSECOND_MS = 0.002
SECOND_NS = 10**9

EMIT = """
    import json, sys
    import sonde
    from sonde._emit import open_span, span_at
    story = json.load(open(sys.argv[1]))
    of = {"cluster": story["cluster"]}
    begin, end = story["period"]
    settings = json.dumps({"tracking": ["tasks"], "custom": [], "interval_ms": 200, "own_gpus": False})
    span_at("dask_recording", begin, end, {**of, "attached": str(begin), "settings": settings})
    for worker in story["workers"]:
        span_at("dask_worker", begin, end, {**of, **worker})
    job, dag = (sonde.gauge(name, tags=of) for name in ("dask_job", "dask_dag"))
    for time_ns, j, d in story["at"]:
        job.emit(j, time_ns), dag.emit(d, time_ns)
    for one in story["tasks"]:
        tags = {**of, "worker": str(one["worker"]), "key": one["key"]}
        span = open_span("dask_task", tags, None, one["start"])
        for inner in one["inner"]:
            within = open_span(inner["name"], {"file": "a&b"}, span, inner["start"])
            for deeper in inner["inner"]:
                open_span(deeper["name"], {}, within, deeper["start"]).close(None, deeper["end"])
            within.close(None, inner["end"])
        if one["end"] is not None:
            span.close(one["more"], one["end"])
    open_span("elsewhere", {}, None, begin).close(None, end)
"""


def story(r, workers, tasks):
    """Random activity of a cluster for some seconds, in whole nanoseconds."""
    begin = (int(time.time()) - 60) * SECOND_NS
    free = {(w, t): begin + r.randrange(10**7) for w in range(workers) for t in range(THREADS)}
    told = []
    for number in range(tasks):
        worker, thread = r.randrange(workers), r.randrange(THREADS)
        prefix = r.choice(["inc", "read-parquet", "('sum", HOSTILE, "a", "b", "c", "d", "e", "f"])
        token = f"{r.getrandbits(128):032x}"
        key = f"('sum-{token}', {number})" if prefix.startswith("(") else f"{prefix}-{token}"
        start = free[worker, thread] + r.choice([0, 40_000, 9_000_000])
        end = start + int(r.choice([30_000, 2_000_000, 80_000_000]) * (0.5 + r.random()))
        free[worker, thread] = end
        third = (end - start) // 3
        inner = [{"name": "load" + HOSTILE, "start": start + 1000, "end": start + third, "inner": [{"name": "parse", "start": start + 2000, "end": start + third // 2}]}]
        more = r.choice([{"nbytes": str(r.randrange(1 << 40))}, {"error": "1"}, {}])
        told.append({"worker": worker, "key": key, "start": start, "end": end, "more": more, "inner": inner if prefix == "inc" else []})
    last = max(free.values()) + 1_000_000
    for one in told[-2:]:
        one["end"], one["inner"] = None, []  # their process ends first
    # the last one has no tasks
    names = [f"<b>w{number}</b>" if number == 0 else str(number) for number in range(workers + 1)]
    lives = [
        {"worker": str(number), "name": name, "address": f"tcp://{number}", "worker_host": "n1", "pid": "1", "joined_ns": str(begin)} for number, name in enumerate(names)
    ]
    at = [[begin + (last - begin) * place // 8, place // 4, place % 4] for place in range(8)]
    return {"cluster": CLUSTER, "period": [begin, last], "workers": lives, "at": at, "tasks": sorted(told, key=lambda one: one["start"])}


def prefix_of(key):
    return "sum" if key.startswith("('sum") else re.sub(r"-[0-9a-f]{32}$", "", key)


def sums(told):
    """Computes the result of task_prefixes() in another way."""
    rows = []
    for prefix in {prefix_of(one["key"]) for one in told}:
        mine = [one for one in told if prefix_of(one["key"]) == prefix]
        seconds = sorted((one["end"] - one["start"]) / 1e9 for one in mine if one["end"] is not None)
        sizes = [int(one["more"]["nbytes"]) for one in mine if one["end"] is not None and "nbytes" in one["more"]]
        rows.append({
            "prefix": prefix, "count": len(mine), "seconds": math.fsum(seconds), "mean": statistics.mean(seconds),
            "p95": seconds[math.ceil(0.95 * len(seconds)) - 1], "nbytes": sum(sizes) if sizes else None,
            "errors": sum(one["end"] is not None and "error" in one["more"] for one in mine), "unfinished": len(mine) - len(seconds),
        })  # fmt: skip
    return sorted(rows, key=lambda row: (-row["seconds"], row["prefix"]))


def in_ns(rows):
    """Returns sum and mean in whole nanoseconds over all tasks, without rounding."""
    return [row | {"seconds": round(row["seconds"] * 1e9), "mean": round(row["mean"] * (row["count"] - row["unfinished"]) * 1e9)} for row in rows]


def data_of(path):
    """Returns the contents of a report."""
    text = pathlib.Path(path).read_text()
    return json.loads(gzip.decompress(base64.b64decode(re.search(r'id="data">([\w+/=]*)<', text)[1])))


class Reports(Program):
    def recorded(self, told):
        (self.root / "story.json").write_text(json.dumps(told))
        self.run_it(EMIT, arguments=[self.root / "story.json"])
        return max(self.root.glob("recording-*"), key=lambda folder: int(folder.name.rpartition("-")[2]))

    def drawn(self, *files):
        result = subprocess.run(["node", WEB / "draw_report.mjs", *files], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if result.returncode == 77:
            self.skipTest(result.stdout.strip())
        self.assertEqual(result.returncode, 0, result.stderr)
        seen = json.loads(result.stdout)
        for file in files:
            one = seen[str(file)]
            # no messages on the console, and no violations of the policy
            self.assertEqual(one["said"], [], file)
            self.assertEqual([url for url in one["asked"] if not url.startswith(("file:", "data:"))], [], file)
            self.assertEqual(one["violations"], [], file)
        return [seen[str(file)] for file in files]

    def test_sums(self):
        """Recordings from a seed, compared with an oracle."""
        for number in range(ROUNDS):
            with self.subTest(seed=SEED + number):
                r = random.Random(SEED + number)
                told = story(r, r.randrange(1, 5), r.randrange(40, 200))
                found = Monitor.from_recording(self.recorded(told)).task_prefixes()
                self.assertEqual(in_ns(found), in_ns(sums(told["tasks"])))

    def test_drawn(self):
        """Lanes, colours, sums and words in a browser match the recording, whatever names it
        has."""
        told = story(random.Random(SEED), 3, 300)
        folder = self.recorded(told)
        first, second = self.root / "a folder" / "run.html", self.root / "run.html"
        self.assertEqual(report(folder, first, CLUSTER), str(first))
        asked = [sys.executable, "-m", "sonde.dask", "report"]
        said = subprocess.run([*asked, folder, second], env=self.env, stdout=subprocess.PIPE, text=True, check=True)
        self.assertEqual(said.stdout, f"{second}\n")
        self.assertEqual(first.read_bytes(), second.read_bytes())
        wrong = subprocess.run([*asked, folder, second, "--cluster", "tcp://elsewhere"], env=self.env, stderr=subprocess.PIPE, text=True)
        self.assertEqual((wrong.returncode, "say which with cluster=" in wrong.stderr), (1, True), wrong.stderr)
        self.assertNotIn("alert(1)", first.read_text())
        for seen in self.drawn(first, second):  # light and dark
            self.look_at_lanes(told, seen)
            self.look_at_words(told, seen, folder)
            self.look_at_sums(told, seen)
            self.look_at_keys(seen)

    def look_at_lanes(self, told, seen):
        tasks = {one["key"]: one for one in told["tasks"]}
        self.assertEqual(sorted({row["worker"] for row in seen["whole"]["rows"]}), [0, 1, 2, 3])
        drawn = {}
        for row in seen["whole"]["rows"]:
            ends = 0
            for box in row["boxes"]:
                one = tasks[box["key"]]
                self.assertEqual(one["worker"], row["worker"])
                self.assertAlmostEqual(box["from"], one["start"] / 1e6, delta=MICROSECOND_MS)
                if one["end"] is not None:
                    self.assertAlmostEqual(box["to"], one["end"] / 1e6, delta=MICROSECOND_MS)
                self.assertGreaterEqual(box["from"], ends)  # tasks do not overlap
                ends = box["to"]
                drawn[box["key"]] = box
        lanes_of = [sum(row["worker"] == worker for row in seen["whole"]["rows"]) for worker in range(4)]
        self.assertEqual(lanes_of, [THREADS, THREADS, THREADS, 1])
        binned = sum(one["tasks"] for row in seen["whole"]["rows"] for one in row["bins"])
        self.assertEqual(len(drawn) + binned, len(tasks))
        self.assertGreater(binned, 0)
        self.assertIn(f"; {binned} of them are narrower than a pixel", seen["about"])
        pixel_ms = (seen["whole"]["range"]["to"] - seen["whole"]["range"]["from"]) / self.width(seen)
        for key in set(tasks) - set(drawn):
            if tasks[key]["end"] is None:
                continue  # it ends with its process
            self.assertLess((tasks[key]["end"] - tasks[key]["start"]) / 1e6, pixel_ms + MICROSECOND_MS)
        # Wheel: zooms in, and the point below the pointer stays.
        whole, near = seen["whole"]["range"], seen["zoomed"]["range"]
        self.assertLess(near["to"] - near["from"], 0.5 * (whole["to"] - whole["from"]))
        self.assertTrue(whole["from"] <= near["from"] < near["to"] <= whole["to"])
        self.assertEqual([(one["job"], one["dag"]) for one in seen["whole"]["stretches"]], [(place // 4, place % 4) for place in range(8)])

    def width(self, seen):
        [box] = [box for row in seen["whole"]["rows"] for box in row["boxes"] if box["w"] == max(b["w"] for r in seen["whole"]["rows"] for b in r["boxes"])]
        return box["w"] / (box["to"] - box["from"]) * (seen["whole"]["range"]["to"] - seen["whole"]["range"]["from"])

    def look_at_words(self, told, seen, folder):
        tasks = {one["key"]: one for one in told["tasks"]}
        self.assertEqual(seen["title"], f"sonde: {folder.name}")
        self.assertIn("4 workers", seen["header"])
        self.assertIn("300 tasks", seen["header"])
        # the page's own scripts: no name was interpreted as an element
        self.assertEqual(seen["elements"], 2)
        swatches = dict(seen["legend"])
        for (key, words), pixel in zip(seen["some"], seen["pixels"]):
            one = tasks[key]
            self.assertIn(key, words)
            self.assertIn("<b>w0</b>" if one["worker"] == 0 else f"worker\n{one['worker']}", words)
            for word in ("start", "duration", "cluster at", "job "):
                self.assertIn(word, words)
            self.assertEqual("output" in words, one["end"] is not None and "nbytes" in one["more"], words)
            self.assertEqual("failed" in words, one["end"] is not None and "error" in one["more"], words)
            self.assertEqual("load" + HOSTILE in words, bool(one["inner"]))
            swatch = swatches.get(prefix_of(key))
            if swatch and "error" not in one["more"] and one["end"] is not None:
                self.assertLess(max(abs(a - int(b)) for a, b in zip(pixel, re.findall(r"\d+", swatch))), 40, (key, pixel, swatch))
        count, words = seen["bin"]
        self.assertIn(f"{count} tasks of this pixel", words)

    def look_at_sums(self, told, seen):
        wanted = sums(told["tasks"])
        self.assertEqual([row[0] for row in seen["table"]], [row["prefix"] for row in wanted])
        self.assertEqual([[row[1], *row[6:]] for row in seen["table"]], [[str(row["count"]), str(row["errors"]), str(row["unfinished"])] for row in wanted])
        end = told["period"][1]
        spent = {}
        for one in told["tasks"]:
            spent.setdefault(prefix_of(one["key"]), []).append(((one["end"] or end) - one["start"]) / 1e6)
        flame = seen["orders"]["prefix"]
        self.assertEqual(flame[0]["path"], ["all tasks"])
        for piece in flame:
            if len(piece["path"]) == 2:
                mine = spent[piece["path"][1]]
                # Tasks that were open at the end end with their process in the recording.
                self.assertAlmostEqual(piece["ms"], sum(mine), delta=len(mine) * MICROSECOND_MS + 1e-6 if wanted_is_whole(told, piece["path"][1]) else sum(mine))
        loads = [inner for one in told["tasks"] for inner in one["inner"]]
        [load] = [piece for piece in flame if piece["path"][1:] == ["inc", "load" + HOSTILE]]
        ms = sum((one["end"] or end) - one["start"] for one in loads) / 1e6
        whole = all(one["end"] is not None for one in loads)
        self.assertAlmostEqual(load["ms"], ms, delta=len(loads) * MICROSECOND_MS if whole else ms)
        [parse] = [piece for piece in flame if piece["path"][1:] == ["inc", "load" + HOSTILE, "parse"]]
        self.assertEqual(parse["count"], len(loads))
        for order, first in (("worker › prefix", {"worker <b>w0</b>", "worker 1", "worker 2"}), ("job › prefix", {"job 0", "job 1"})):
            self.assertEqual({piece["path"][1] for piece in seen["orders"][order] if len(piece["path"]) == 2}, first)
        keys = [piece["path"][2] for piece in seen["orders"]["prefix › key"] if len(piece["path"]) == 3 and not piece["more"]]
        self.assertTrue(keys and set(keys) <= {one["key"] for one in told["tasks"]})
        self.assertGreater(len(seen["clicked"][1]["path"]), 1)
        # the element fills the width
        self.assertEqual((seen["clicked"][0]["w"], seen["clicked"][1]["w"]), (1, 1))
        self.assertEqual(seen["unclicked"], flame)

    def look_at_keys(self, seen):
        whole = seen["whole"]["range"]
        self.assertEqual(seen["again"], whole)
        length = whole["to"] - whole["from"]
        self.assertAlmostEqual(seen["plus"]["to"] - seen["plus"]["from"], 0.8 * length, delta=1e-6 * length)
        self.assertGreater(seen["right"]["from"], seen["plus"]["from"])
        self.assertLess(seen["dragged"]["to"] - seen["dragged"]["from"], 0.25 * length)
        self.assertTrue(seen["first"] and seen["next"] and seen["first"] != seen["next"])
        self.assertIsNone(seen["left"])
        self.assertIn(seen["theme"], ("light", "dark"))
        self.assertTrue(seen["fits"])

    def test_large_and_empty(self):
        """100,000 tasks of 64 workers: none is left out, and the file is small enough to send."""
        r = random.Random(SEED)
        now = int(time.time()) * SECOND_NS
        lives = [Life(number, f"node{number // 8}-{number % 8}", "", "n", 1, None, now, now) for number in range(64)]
        tasks = []
        for number in range(100_000):
            start = now + number // 64 * 40_000_000 + r.randrange(10_000_000)
            tasks.append(_tasks.Task(number % 64, f"work-{r.getrandbits(128):032x}", start, start + r.randrange(1, 29_000_000), True, False, 28, number + 1))
        tasks.sort(key=lambda task: task.start_ns)
        end = max(task.end_ns for task in tasks)
        found = {"cluster": CLUSTER, "periods": [(now, end)], "lives": lives, "at": [(now, 0, 0)], "tasks": tasks, "inner": []}
        large = _report.write(self.root / "large.html", found, "large")
        self.assertLess(os.path.getsize(large), 6 << 20)
        self.assertEqual(len(data_of(large)["tasks"]["key"]), 100_000)
        empty = _report.write(self.root / "empty.html", found | {"tasks": [], "at": []}, "empty")
        of_large, of_empty = self.drawn(large, empty)
        rows = of_large["whole"]["rows"]
        self.assertEqual([row["worker"] for row in rows], list(range(64)))
        self.assertEqual(sum(len(row["boxes"]) + sum(one["tasks"] for one in row["bins"]) for row in rows), 100_000)
        wanted = sum(task.end_ns - task.start_ns for task in tasks) / 1e6
        self.assertAlmostEqual(of_large["orders"]["prefix"][1]["ms"], wanted, delta=100_000 * MICROSECOND_MS)
        nearer = of_large["zoomed"]["range"]
        self.assertLess(nearer["to"] - nearer["from"], 0.5 * (of_large["whole"]["range"]["to"] - of_large["whole"]["range"]["from"]))
        for row in rows[:4]:  # a pixel shows the share of its time with tasks
            for one in row["bins"]:
                self.assertTrue(0 < one["busy"] <= 1)
        self.assertIn("No tasks", of_empty["empty"])

    def test_the_page_is_what_its_sources_make(self):
        made = subprocess.run([sys.executable, os.path.join(os.environ["SOURCE"], "web/report.py"), os.environ["BUILD"], "--check"], stderr=subprocess.PIPE, text=True)
        if made.returncode == 77:
            self.skipTest(made.stderr)
        self.assertEqual(made.returncode, 0, made.stderr)


def wanted_is_whole(told, prefix):
    return all(one["end"] is not None for one in told["tasks"] if prefix_of(one["key"]) == prefix)


if __name__ == "__main__":
    main()
