"""`sonde report`: text, JSON and HTML of recordings from a seed, compared with the numbers of
`sonde query`; and with missing, empty, truncated or running data."""

import html.parser
import json
import os
import pathlib
import random
import re
import subprocess
import time

from place import Place, main, until

GOLDEN = pathlib.Path(__file__).parent / "golden"
SECOND = 10**9
START = 1_795_400_000  # seconds; a multiple of every bucket in these tests
GIB = 2**30
SEED = int(os.environ.get("SONDE_TEST_SEED") or 20)
ROUNDS = int(os.environ.get("SONDE_TEST_ROUNDS") or 1)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


class Recording:
    """Points of one host for tests/conformance/make_store."""

    def __init__(self, folder, host, job="seeded"):
        folder.mkdir(parents=True, exist_ok=True)
        self.path, self.host, self.job, self.lines = folder / f"{host}.sonde", host, job, []
        self.ids = 0

    def metric(self, name, kind, unit):
        self.lines.append(f"metric {name} {kind} {unit or '-'} help")

    def point(self, name, second, value, **tags):
        tags = ",".join(f"{k}={v}" for k, v in sorted(({"host": self.host} | tags).items()))
        self.lines.append(f"point {name} {tags} {int((START + second) * SECOND)} {value!r}")

    def span(self, name, begin, end, parent=0, **tags):
        self.ids += 1
        tags = ",".join(f"{k}={v}" for k, v in sorted(({"host": self.host} | tags).items()))
        end = int((START + end) * SECOND) if end is not None else "-"
        # Ids are unique only within a recording: on another host, the same id stands for another
        # span.
        number = self.ids + int(self.host[1:])
        self.lines.append(f"span {number} {parent} {int((START + begin) * SECOND)} {end} {tags} {name}")
        return number

    def write(self):
        done = subprocess.run([os.environ["MAKE_STORE"], self.path, self.job, self.host], input="".join(line + "\n" for line in self.lines), text=True, capture_output=True)
        assert done.returncode == 0, done.stderr


def write_run(folder, seconds, **more):
    about = {"name": "baseline", "tags": {"lr": "0.01"}, "nodes": 2, "git": {"commit": "8c8d4a9912345678", "branch": "main"}} | more.pop("about", {})
    run = {"format": "sonde run 1", "job": "seeded", "host": "n0", "command": "train.py --lr 0.01", "level": 3, "rate": 10,
           "start_ns": START * SECOND, "end_ns": (START + seconds) * SECOND, "exit_code": 0, "about": about} | more
    path = folder / "run.json"
    path.write_text(json.dumps({k: v for k, v in run.items() if v is not None}))
    path.chmod(0o600)


def training(folder, seed=1, seconds=1800):
    """Two hosts with 4 GPUs each. GPUs 2 and 3 of n1 stop after 10 minutes, the memory of n0 grows,
    the step loads data for 30 % of its time, rank 1 is slow."""
    rng = random.Random(seed)
    for number, host in enumerate(("n0", "n1")):
        r = Recording(folder, host)
        for name, kind, unit in (("cpu_percent", "gauge", "percent"), ("cpu_count", "gauge", ""), ("cpu_core_max_percent", "gauge", "percent"),
                                 ("job_cpu_seconds_total", "counter", "seconds"), ("job_resident_bytes", "gauge", "bytes"), ("memory_total_bytes", "gauge", "bytes"),
                                 ("memory_used_bytes", "gauge", "bytes"), ("cgroup_memory_limit_bytes", "gauge", "bytes"), ("gpu_utilization_percent", "gauge", "percent"),
                                 ("gpu_power_watts", "gauge", "watts"), ("gpu_energy_joules_total", "counter", "joules"), ("gpu_memory_used_bytes", "gauge", "bytes"),
                                 ("gpu_memory_total_bytes", "gauge", "bytes"), ("network_receive_bytes_total", "counter", "bytes"),
                                 ("energy_joules_total", "counter", "joules"), ("loss", "gauge", "")):
            r.metric(name, kind, unit)
        for t in range(0, seconds, 10):
            r.point("cpu_percent", t, round(20 + rng.random() * 5, 3))
            r.point("cpu_count", t, 64)
            r.point("cpu_core_max_percent", t, 60)
            r.point("job_cpu_seconds_total", t, round(12.5 * t, 3))
            r.point("job_resident_bytes", t, int((6 + (8 * t / seconds if host == "n0" else 0)) * GIB + rng.random() * 2**20))
            r.point("memory_used_bytes", t, 20 * GIB)
            r.point("memory_total_bytes", t, 512 * GIB)
            r.point("cgroup_memory_limit_bytes", t, 256 * GIB)
            r.point("network_receive_bytes_total", t, 1000 * t, interface="eth0")
            r.point("network_receive_bytes_total", t, 10**9 * t, interface="lo")
            r.point("energy_joules_total", t, 200 * t, zone="package-0")
            r.point("energy_joules_total", t, 20 * t, zone="package-0/dram")
            r.point("energy_joules_total", t, 50 * t, zone="package-0/core")
            for gpu in range(4):
                busy = not (host == "n1" and gpu >= 2 and t >= 600)
                r.point("gpu_utilization_percent", t, round(60 + rng.random() * 10, 2) if busy else 0, gpu=gpu)
                r.point("gpu_power_watts", t, 400 if busy else 60, gpu=gpu)
                r.point("gpu_memory_used_bytes", t, 30 * GIB, gpu=gpu)
                r.point("gpu_memory_total_bytes", t, 80 * GIB, gpu=gpu)
            r.point("loss", t, round(2 / (1 + t / 100), 4), rank=number)
        for step in range(seconds // 20):
            length = 9 + rng.random() + (6 if host == "n1" else 0)
            begin = step * 20
            outer = r.span("step", begin, begin + length, rank=number)
            r.span("load batch", begin, begin + 0.3 * length, outer, rank=number)
        r.write()
    write_run(folder, seconds)
    return folder


class Tags(html.parser.HTMLParser):
    """Collects the references of a page, and checks that its elements match."""

    def __init__(self):
        super().__init__()
        self.links, self.texts, self.names = [], [], []

    def handle_starttag(self, tag, attributes):
        self.names.append(tag)
        self.links += [v for k, v in attributes if k in ("src", "href", "xlink:href") and v]

    def handle_data(self, data):
        self.texts.append(data)


class Report(Place):
    def report(self, *arguments, code=0):
        done = self.sonde("report", *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def data(self, *arguments):
        return json.loads(self.report("--json", *arguments).stdout)

    def value(self, expression, *where):
        """Returns the sum over all series, which have a single value each."""
        done = self.sonde("query", "--json", expression, *where)
        self.assertEqual(done.returncode, 0, done.stderr)
        return sum(next(iter(s["dps"].values())) for s in json.loads(done.stdout))

    def series(self, r, metric):
        return next(m["series"] for m in r["metrics"] if m["metric"] == metric)

    def kinds(self, r):
        return [f["kind"] for f in r["findings"]]

    # ---- golden

    def test_text_of_a_recording_from_a_seed(self):
        folder = training(self.root / "train")
        text = self.report(folder).stdout
        golden = GOLDEN / "report.txt"
        shown = text.replace(str(folder), "FOLDER")
        if os.environ.get("UPDATE_GOLDEN"):
            golden.write_text(shown)
        self.assertEqual(shown, golden.read_text())
        for line in text.splitlines():
            if not line.startswith("    $ "):
                self.assertLessEqual(len(line), 80, line)

    # ---- numbers

    def test_numbers_are_those_of_query(self):
        folder = training(self.root / "train")
        r = self.data("--co2", "400", folder)
        all_of = ("--start", str(START), "--end", str(START + 1800))
        for metric in ("cpu_percent", "job_resident_bytes", "gpu_utilization_percent", "loss"):
            for key, function in (("mean", "avg"), ("peak", "max"), ("points", "count")):
                mine = sum(s[key] for s in self.series(r, metric))
                self.assertAlmostEqual(mine / self.value(f"none:0all-{function}:{metric}", *all_of, folder), 1, 9, (metric, key))
        use = {u["resource"]: u for u in r["use"]}
        growth = self.value("none:0all-diff:job_cpu_seconds_total", *all_of, folder)
        seconds = (r["to_ns"] - r["from_ns"]) / SECOND
        self.assertAlmostEqual(use["cpu"]["mean"], growth / seconds, 9)
        self.assertEqual(use["cpu"]["total"], 128)
        # the limits, because those are below the nodes' totals
        self.assertEqual(use["memory"]["total"], 512 * GIB)
        self.assertEqual((use["gpu"]["total"], use["gpu_memory"]["total"]), (8, 8 * 80 * GIB))
        self.assertLess(use["network_in"]["mean"], 2001)  # without the loopback interface
        self.assertEqual([s["part"] for s in self.series(r, "network_receive_bytes_total")], ["eth0", "eth0"])
        # The packages and their memory count once, because the cores are a part of the package.
        self.assertAlmostEqual(r["energy"]["nodes_joules"], 2 * 220 * 1790, 6)
        power = self.value("none:0all-avg:gpu_power_watts", *all_of, folder)
        self.assertAlmostEqual(r["energy"]["gpus_joules"], power * seconds, 3)
        total = r["energy"]["nodes_joules"] + r["energy"]["gpus_joules"]
        self.assertAlmostEqual(r["energy"]["grams_co2"], total / 3.6e6 * 400, 6)

    def test_energy_alone(self):
        """A recording of nothing but energy, as an import may be, has its line, too."""
        table = self.root / "energy.csv"
        table.write_text('time_ns,"energy_joules_total{zone=package-0}"\n' + "".join(f"{(START + i) * SECOND},{150 * i}\n" for i in range(3601)))
        self.assertEqual(self.sonde("import", "-o", self.root / "energy", "--host", "n1", table).returncode, 0)
        self.assertIn("\nUSE\nenergy            150.0 Wh (processors and memory); 0.057 kg CO2\n", self.report("--co2", "380", self.root / "energy").stdout)
        page = self.root / "energy.html"
        self.report("--co2", "380", "-o", page, self.root / "energy")
        self.assertIn("<h2>Use of the nodes</h2><p>Energy: 150.0 Wh (processors and memory), 0.057 kg CO<sub>2</sub> at 380 g/kWh</p>", page.read_text())

    def test_spans_are_those_of_the_list(self):
        folder = training(self.root / "train")
        listed = json.loads(self.sonde("query", "--spans=step", "--json", folder).stdout)
        lengths = sorted((s["end_ns"] - s["start_ns"]) / SECOND for s in listed)
        step = next(s for s in self.data(folder)["spans"] if s["name"] == "step")
        self.assertEqual(step["count"], len(lengths))
        self.assertAlmostEqual(step["mean_seconds"], sum(lengths) / len(lengths), 9)
        self.assertAlmostEqual(step["max_seconds"], lengths[-1], 9)
        self.assertAlmostEqual(step["p50_seconds"], (lengths[len(lengths) // 2 - 1] + lengths[len(lengths) // 2]) / 2, 9)
        means = [sum(v) / len(v) for v in ([(s["end_ns"] - s["start_ns"]) / SECOND for s in listed if s["tags"]["host"] == h] for h in ("n0", "n1"))]
        self.assertAlmostEqual(step["imbalance"], max(means) / (sum(means) / 2), 9)
        self.assertEqual((step["slowest"], step["inner"]), ("host=n1,rank=1", "load batch"))
        self.assertAlmostEqual(step["inner_share"], 0.3, 6)

    def test_calls_that_a_tracer_has_only_counted(self):
        """A tracer records 10,000 spans of a name in a process. Its metrics have all calls, so the
        count, the mean and the share of the report are those of all calls."""
        folder = self.root / "traced"
        for number, calls in enumerate((30000, 10500)):
            r = Recording(folder, f"n{number}")
            r.metric("nvtx_ranges", "counter", "")
            r.metric("nvtx_range_seconds", "counter", "seconds")
            r.metric("cpu_percent", "gauge", "percent")
            for t in range(0, 101, 10):
                r.point("nvtx_ranges", t, calls * t // 100, range="often", domain="d")
                r.point("nvtx_range_seconds", t, calls * t / 100 * 0.002, range="often", domain="d")
                r.point("nvtx_ranges", t, 50 * t // 100, range="rare")
                r.point("nvtx_range_seconds", t, 50 * t / 100 * 0.5, range="rare")
                r.point("cpu_percent", t, 50)
            for i in range(10000):
                r.span("often", i * 0.0033, i * 0.0033 + 0.001, rank=number, domain="d")
            for i in range(50):
                r.span("rare", i * 2, i * 2 + 0.5, rank=number)
            r.write()
        write_run(folder, 100)
        spans = {s["name"]: s for s in self.data(folder)["spans"]}
        often, rare = spans["often"], spans["rare"]
        self.assertEqual((often["count"], often["recorded"], rare["count"], rare.get("recorded")), (40500, 20000, 100, None))
        self.assertAlmostEqual(often["total_seconds"], 81, 6)
        self.assertAlmostEqual(often["mean_seconds"], 0.002, 9)
        self.assertAlmostEqual(often["p50_seconds"], 0.001, 6)
        self.assertAlmostEqual(often["share"] / (81 / 2 / 100), 1, 1)
        self.assertAlmostEqual(rare["mean_seconds"], 0.5, 6)
        stats = {s["name"]: s for s in json.loads(self.sonde("stats", "--spans", "--json", folder).stdout)}
        self.assertEqual((stats["often"]["count"], stats["often"]["recorded"]), (40500, 20000))
        self.assertEqual(self.sonde("stats", "--spans", folder).stderr, "sonde: p50, p95 and max of often are of its first 20000 spans\n")
        early = json.loads(self.sonde("stats", "--spans", "--json", "-s", str(START), "-e", str(START + 50), folder).stdout)
        self.assertEqual({s["name"]: (s["count"], s.get("recorded")) for s in early}, {"often": (20000, None), "rare": (52, None)})
        self.assertIn("p50, p95 and max are of the first 20000", self.report(folder).stdout)
        page = self.root / "p.html"
        self.report("-o", page, folder)
        self.assertIn("<td>40500 (quantiles: the first 20000)<td>", page.read_text())

    def test_processors_within_spans(self):
        """The same as the sum over all samples, of which each is the mean of the 10 s before it."""
        folder = training(self.root / "train")
        listed = json.loads(self.sonde("query", "--spans=step", "--json", folder).stdout)
        use = {one["tags"]["host"]: one["dps"] for one in json.loads(self.sonde("query", "--json", "none:cpu_percent{host=*}", folder).stdout)}
        parts = []  # (part of the sample's interval that spans cover, sample)
        for host, points in use.items():
            own = [(one["start_ns"], one["end_ns"]) for one in listed if one["tags"]["host"] == host]
            for time_ms, value in points.items():
                end = int(time_ms) * (SECOND if len(time_ms) < 12 else 10**6)
                covered = sum(max(0, min(end, to) - max(end - 10 * SECOND, start)) for start, to in own)
                parts.append((covered / (10 * SECOND), value))
        self.assertEqual(len(parts), 360)
        step = next(s for s in self.data(folder)["spans"] if s["name"] == "step")
        self.assertAlmostEqual(step["cpu_percent"], sum(part * value for part, value in parts) / sum(part for part, _ in parts), 6)
        self.assertAlmostEqual(step["cpu_percent_outside"], sum((1 - part) * value for part, value in parts) / sum(1 - part for part, _ in parts), 6)

    def test_spans_are_those_of_stats(self):
        """One table serves both, and its quantiles are those of `sonde stats` (R-6)."""
        folder = training(self.root / "train")
        spans = self.data(folder)["spans"]
        # without the figures that come from metrics
        plain = [{k: v for k, v in s.items() if k != "gpu_idle" and not k.startswith("cpu_")} for s in spans]
        self.assertEqual(json.loads(self.sonde("stats", "--spans", "--json", folder).stdout), plain)
        self.assertEqual(json.loads(self.sonde("stats", "--spans=step", "--json", folder).stdout), [{k: v for k, v in s.items() if not k.startswith("inner")} for s in plain if s["name"] == "step"])
        table = self.root / "n.csv"  # has the lengths as points of a metric
        lengths = [s["end_ns"] - s["start_ns"] for s in json.loads(self.sonde("query", "--spans=step", "--json", folder).stdout)]
        table.write_text("t,length\n" + "".join(f"{i + START},{length / SECOND!r}\n" for i, length in enumerate(lengths)))
        self.sonde("import", table, "-o", "out")
        (points,) = json.loads(self.sonde("stats", "--json", "length", "out").stdout)
        step = next(s for s in spans if s["name"] == "step")
        for mine, theirs in (("count", "count"), ("mean_seconds", "mean"), ("p50_seconds", "p50"), ("p95_seconds", "p95"), ("max_seconds", "max")):
            self.assertAlmostEqual(step[mine], points[theirs], 9, mine)
        titles, *rows = self.sonde("stats", "--spans", folder).stdout.splitlines()
        self.assertEqual(re.split("  +", titles.strip()), ["span", "count", "mean s", "p50 s", "p95 s", "max s", "total s", "share", "members", "imbalance", "slowest"])
        self.assertEqual([row.split("  ")[0] for row in rows], ["step", "load batch"])
        self.assertEqual(self.sonde("stats", "--spans", "--csv", folder).stdout.splitlines()[0].split(",")[:4], ["span", "count", "unfinished", "mean_seconds"])
        (early,) = json.loads(self.sonde("stats", "--spans=step", "--json", "-s", str(START), "-e", str(START + 59), folder).stdout)
        self.assertEqual(early["count"], 6)
        self.one_line(self.sonde("stats", "--spans", "--by", "host", folder), 2, "--spans takes neither")
        self.one_line(self.sonde("stats", "--spans=nobody", folder), 0, "no spans in this range")

    def test_findings_and_their_evidence(self):
        folder = training(self.root / "train")
        r = self.data(folder)
        found = {f["kind"]: f for f in r["findings"]}
        self.assertIn("GPUs 2 and 3 of n1 idle after 00:10:00", found["gpu_idle"]["title"])
        self.assertRegex(found["memory_request"]["title"], r"used 5 % of 256.0 GiB of memory: ask for 24G")
        self.assertIn("on n0", found["memory_growth"]["title"])
        self.assertIn("'load batch'", found["gpu_waits"]["title"])
        # The step contains its part, so the finding names only the step.
        self.assertEqual([f["span"] for f in r["findings"] if f["kind"] == "straggler"], ["step"])
        self.assertIn("host=n1,rank=1", found["straggler"]["title"])
        self.assertIn("the same in 'load batch', within it", found["straggler"]["evidence"])
        # Each command of a finding runs, and shows the finding's figure.
        for f in r["findings"]:
            done = subprocess.run(["sh", "-c", f["query"]], env=self.env, capture_output=True, text=True, cwd=self.root)
            self.assertEqual(done.returncode, 0, (f["query"], done.stderr))
            self.assertTrue(done.stdout, f["query"])
        idle = json.loads(subprocess.run(["sh", "-c", found["gpu_idle"]["query"] + " --json"], env=self.env, capture_output=True, text=True).stdout)
        self.assertEqual([(s["tags"]["host"], s["tags"]["gpu"], *s["dps"].values()) for s in idle], [("n1", "2", 0), ("n1", "3", 0)])

    # ---- the page

    def test_page_is_one_file(self):
        folder = training(self.root / "train")
        done = self.report("-o", "report.html", folder)
        page = (self.root / "report.html").read_text()
        tags = Tags()
        tags.feed(page)
        self.assertEqual([link for link in tags.links if not link.startswith("data:")], [])
        self.assertNotIn("script", tags.names)
        self.assertNotIn("url(", page)
        for words in ("train.py --lr 0.01", "GPUs 2 and 3 of n1 idle after 00:10:00", "load batch"):
            self.assertIn(words, "".join(tags.texts))
        self.assertGreater(tags.names.count("svg"), 5)
        self.assertGreaterEqual(tags.names.count("img"), 2)
        self.assertEqual(done.stdout, "")
        self.assertIn("wrote report.html", done.stderr)

    def test_names_cannot_break_out_of_the_page(self):
        folder = training(self.root / "train", seconds=120)
        bad = "<script>alert(1)</script>&\"'\x1b[31m"
        write_run(folder, 120, command=bad, about={"name": bad[:60], "note": bad, "tags": {"k": bad}})
        self.report("-o", "report.html", folder)
        page = (self.root / "report.html").read_text()
        self.assertNotIn("<script", page)
        self.assertNotIn("\x1b", page + self.report(folder).stdout)

    # ---- missing data

    def test_short_run(self):
        done = self.sonde("run", "--", "sh", "-c", "echo loss 0.5 | sonde put; sleep 1")
        self.assertEqual(done.returncode, 0, done.stderr)
        r = self.data("last")
        self.assertEqual((r["findings"], r["state"], r["exit_code"]), ([], "ended", 0))
        self.assertEqual([s["mean"] for s in self.series(r, "loss")], [0.5])
        self.assertIn("FINDINGS", self.report("last").stdout)
        self.report("-o", "short.html", "last")

    def test_running_job(self):
        job = self.start("run", "--", "sh", "-c", "echo loss 0.5 | sonde put; touch ready; exec sleep 300")
        until((self.root / "ready").exists, "the program runs")
        r = self.data()
        self.assertEqual((r["state"], "exit_code" in r, [s["mean"] for s in self.series(r, "loss")]), ("running", False, [0.5]))
        self.assertIn("it runs", self.report().stdout)
        job.terminate()
        self.ends(job)

    def test_no_gpu_no_spans(self):
        folder = self.root / "plain"
        r = Recording(folder, "n0")
        for t in range(100):
            r.point("cpu_percent", t, 50.0)
        r.write()
        data = self.data(folder)
        self.assertEqual((data["spans"], data["stragglers"], data["energy"], data["state"]), ([], [], {}, "unknown"))
        self.assertNotIn("exit_code", data)
        self.report("-o", "plain.html", folder)
        self.assertNotIn("nan", self.report(folder).stdout.lower())
        self.assertNotIn("nan", (self.root / "plain.html").read_text().lower().replace("finan", ""))

    def test_empty(self):
        folder = self.root / "empty"
        Recording(folder, "n0").write()
        self.assertIn("has no points", self.report(folder).stdout)
        self.assertEqual(self.data(folder)["findings"], [])
        self.report("-o", "empty.html", folder)
        self.assertIn("no points", (self.root / "empty.html").read_text())
        self.assertEqual(self.sonde("report", self.root / "nowhere").returncode, 1)

    def test_truncated_file(self):
        folder = training(self.root / "train", seconds=600)
        path = folder / "n1.sonde"
        whole = path.read_bytes()
        for size in (100, 4096, len(whole) // 2):
            path.write_bytes(whole[:size])
            done = self.sonde("report", "--json", folder)
            self.assertEqual(done.returncode, 0, (size, done.stderr))
            r = json.loads(done.stdout)
            self.assertIn("n0", [n["host"] for n in r["nodes"]])
            self.assertTrue("n1" in done.stderr or r["damaged_blocks"] or len(self.series(r, "cpu_percent")) == 2, (size, done.stderr))
            self.assertEqual(self.sonde("report", "--strict", folder).returncode, 4 if "missing" in done.stderr else 0)

    # ---- files that cannot be read

    def broken(self, folder):
        """Puts one file of each kind that cannot be read beside n0 and n1; returns their names."""
        whole = (folder / "n1.sonde").read_bytes()
        header = bytearray(whole[:64])
        # the version; the checksum is the one that a writer of that version would store
        header[8] += 1
        header[60:64] = crc32c(bytes(header[:60])).to_bytes(4, "little")
        middle = len(whole) // 2
        files = {"zero": b"", "foreign": b"no recording at all\n" * 100, "cut": whole[:40], "newer": bytes(header) + whole[64:], "corrupt": whole[:16] + bytes(40) + whole[56:],
                 "block": whole[:middle] + bytes(b ^ 0x55 for b in whole[middle:middle + 2000]) + whole[middle + 2000:]}
        # a young empty file would belong to an agent that is about to start
        hour_ago = time.time() - 3600
        for name, content in files.items():
            (folder / f"{name}.sonde").write_bytes(content)
            os.utime(folder / f"{name}.sonde", (hour_ago, hour_ago))
        return sorted(set(files) - {"block"})

    def test_files_that_cannot_be_read(self):
        """report, stats, peaks, compare and ls name the files and use the others; with --strict the
        exit code says so."""
        folder = training(self.runs / "seeded", seconds=600)
        good = {path.name: path.read_bytes() for path in folder.glob("n*.sonde")}
        spans = json.loads(self.sonde("stats", "--spans", "--json", folder).stdout)
        points = json.loads(self.sonde("stats", "--json", "cpu_percent{host=n0}", folder).stdout)
        bad = self.broken(folder)
        (folder / "block.sonde").unlink()
        for words in (("report", "--json"), ("stats", "--json", "cpu_percent{host=n0}"), ("peaks", "--json", "cpu_percent"), ("stats", "--json", "--spans"), ("compare", folder), ("ls", "--json", "--columns", "cpu_percent.count")):
            where = () if words[0] == "ls" else (folder,)
            loose, strict = (self.sonde(*words, *more, *where) for more in ((), ("--strict",)))
            self.assertEqual((loose.returncode, strict.returncode), (0, 4), (words, loose.stderr))
            self.assertEqual(loose.stdout, strict.stdout)
            for name in bad:
                self.assertIn(f"{name}.sonde (unreadable: ", loose.stderr, words)
            if words[0] == "report":
                r = json.loads(loose.stdout)
                self.assertEqual(([n["host"] for n in r["nodes"]], len(self.series(r, "cpu_percent"))), (["n0", "n1"], 2))
            elif words[0] == "ls":
                self.assertEqual([run["cpu_percent.count"] for run in json.loads(loose.stdout)], [120])
            elif words[-1] == "--spans":
                self.assertEqual(json.loads(loose.stdout), spans)
            elif words[0] == "stats":
                self.assertEqual(json.loads(loose.stdout), points)
        self.assertRegex(self.sonde("stats", "cpu_percent", folder).stderr, r"format version 3\.\d+; this program reads 2")
        # In a file with a damaged block, the block's points are missing, and all others are used.
        self.broken(folder)
        for name in bad:
            (folder / f"{name}.sonde").unlink()
        (folder / "block.sonde").rename(folder / "n1.sonde")
        done = self.sonde("report", "--json", folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("n1", done.stderr)
        self.assertEqual(self.sonde("report", "--strict", folder).returncode, 4)
        for name, content in good.items():
            (folder / name).write_bytes(content)
        self.assertEqual(self.sonde("report", "--strict", folder).stderr, "")

    def test_random_damage(self):
        """Whatever has happened to the file of n1, each command ends by itself and uses n0
        unchanged. With --strict, it exits with 4 exactly if it names a file. If no command names
        the damaged file, it has the points of the intact one, or, if it was truncated, the first of
        them."""
        some = random.Random(SEED)
        folder = training(self.runs / "seeded", seconds=300)
        whole = (folder / "n1.sonde").read_bytes()

        def count(path):
            rows = json.loads(self.sonde("stats", "--json", "cpu_percent", path).stdout)
            return sum(row["count"] for row in rows if row["tags"]["host"] == "n1")

        def of_n0(command, text):
            rows = json.loads(text)
            if command == "report":
                return [s for m in rows["metrics"] if m["metric"] == "cpu_percent" for s in m["series"] if s["host"] == "n0"]
            return [row for row in rows if row["tags"].get("host") == "n0"]

        commands = (("report", "--json"), ("stats", "--json", "cpu_percent"), ("peaks", "--json", "cpu_percent"), ("compare", "--metric", "cpu_percent", folder), ("ls", "--json", "--columns", "cpu_percent.count"))
        good = {words[0]: of_n0(words[0], self.sonde(*words, folder).stdout) for words in commands[:3]}
        self.assertTrue(all(good.values()))
        for damage in range(6 * ROUNDS):
            at, size = some.randrange(len(whole)), some.choice((1, 8, 400))
            cut = some.random() < 0.4
            content = whole[:at] if cut else whole[:at] + bytes(b ^ some.randrange(1, 256) for b in whole[at:at + size]) + whole[at + size:]
            (folder / "n1.sonde").write_bytes(content)
            named = False
            for words in commands:
                where = () if words[0] == "ls" else (folder,)
                loose, strict = (self.sonde(*words, *more, *where) for more in ((), ("--strict",)))
                hint = (SEED, damage, at, size, cut, words, loose.stderr)
                self.assertEqual((loose.returncode, strict.returncode), (0, 4 if "n1" in loose.stderr else 0), hint)
                self.assertEqual(loose.stdout, strict.stdout, hint)
                if words[0] in good:
                    self.assertEqual(of_n0(words[0], loose.stdout), good[words[0]], hint)
                named |= "n1" in loose.stderr
            if not named:
                points = count(folder)
                self.assertTrue(points <= 30 if cut else points == 30, (SEED, damage, at, size, cut, points))
        (folder / "n1.sonde").write_bytes(whole)
        self.assertEqual(count(folder), 30)

    def test_several_recordings_of_a_node(self):
        """A node counts once, whatever the number of its files."""
        folder = training(self.root / "train", seconds=600)
        (folder / "n1.sonde").rename(folder / "n1-2.sonde")
        other = Recording(self.root / "other", "n1")
        other.point("cpu_percent", 700, 50.0)
        other.write()
        (self.root / "other" / "n1.sonde").rename(folder / "n1.sonde")
        r = self.data(folder)
        self.assertEqual([(n["host"], n["last_ns"]) for n in r["nodes"]], [("n0", (START + 590) * SECOND), ("n1", (START + 700) * SECOND)])

    def test_several_runs_are_refused(self):
        training(self.root / "runs" / "a", seconds=60)
        training(self.root / "runs" / "b", seconds=60)
        done = self.sonde("report", self.root / "runs")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("a report covers one run", done.stderr)

    def test_options_that_contradict(self):
        self.one_line(self.sonde("report", "--json", "--text"), 2, "choose one")
        self.one_line(self.sonde("report", "--brief", "-o", "x"), 2, "--brief")

    def test_file_that_cannot_be_written(self):
        folder = training(self.root / "train", seconds=60)
        self.one_line(self.sonde("report", "-o", "none/x.html", folder), 1, "cannot write none/x.html")

    def test_a_page_without_a_job_is_called_like_its_recording(self):
        (self.root / "t.csv").write_text("time_ns,name,value,host\n1,loss,2,n1\n")
        self.assertEqual(self.sonde("import", "-o", "bought", "t.csv").returncode, 0)
        self.assertEqual(self.sonde("report", "-o", "page.html", "bought").returncode, 0)
        page = (self.root / "page.html").read_text()
        self.assertIn("<h1>bought</h1>", page)
        self.assertRegex(page, "<title>[^<]*bought")

    def test_brief(self):
        folder = training(self.root / "train")
        lines = self.report("--brief", folder).stdout.splitlines()
        self.assertRegex(lines[0], r"sonde: GPU \d+ %; GPU memory \d+ %; energy .*Wh \(processors, memory and GPUs\)")
        self.assertEqual(len(lines), 3)
        for line in lines[1:]:
            self.assertTrue(line.startswith("sonde: found: "), line)

    def test_brief_finds_what_the_report_finds(self):
        """It asks for less, so each kind of finding is tried."""
        first, half = (lambda t: t < 150), 150
        cases = {
            "idle_end": {"job_cpu_seconds_total": lambda t: 4 * min(t, half)},
            "gpu_unused": {"gpu_utilization_percent": lambda t: 0.01 * (t % 20)},
            "gpu_idle": {"gpu_utilization_percent": lambda t: 90 if first(t) else 0, "cpu_percent": lambda t: 50},
            "gpu_throttled": {"gpu_throttle_thermal": lambda t: t // 10 % 2},
            "one_core": {"job_cpu_seconds_total": lambda t: t, "cpu_core_max_percent": lambda t: 95, "cpu_count": lambda t: 16},
            "cpu_limit": {"job_cpu_seconds_total": lambda t: 3 * t, "cgroup_throttled_seconds_total": lambda t: t},
            "memory_request": {"job_resident_bytes": lambda t: 12 * GIB, "cgroup_memory_limit_bytes": lambda t: 200 * GIB, "memory_total_bytes": lambda t: 256 * GIB},
            "memory_growth": {"memory_used_bytes": lambda t: (4 + t / 10) * GIB},
            "out_of_memory": {"oom_kills_total": lambda t: t // 200},
            "memory_pressure": {"pressure_memory_some_seconds_total": lambda t: 0.5 * t, "swapped_in_bytes_total": lambda t: 1e6 * t, "swapped_out_bytes_total": lambda t: 1e6 * t},
            "disk": {"pressure_io_some_seconds_total": lambda t: 0.5 * t, "cpu_iowait_seconds_total": lambda t: 3 * t, "cpu_count": lambda t: 16},
        }
        for kind, metrics in cases.items():
            r = Recording(self.root / kind, "n0", kind)
            for name, at in metrics.items():
                counter, tag = name.endswith("_total"), {"gpu": 0} if name.startswith("gpu") else {}
                r.metric(name, "counter" if counter else "gauge", "")
                for t in range(0, 300, 10):
                    r.point(name, t, at(t), **tag)
            r.write()
            found = [f for f in self.data(self.root / kind)["findings"] if f["sureness"] != "possible"]
            self.assertIn(kind, [f["kind"] for f in found], kind)
            brief = self.report("--brief", self.root / kind).stdout.splitlines()
            self.assertEqual([line for line in brief if "found:" in line], [f"sonde: found: {f['title']}" for f in found[:2]], kind)

    def test_brief_of_many_nodes(self):
        """Of more than 1,024 nodes it describes 1,024, evenly spread, and says so."""
        times = range(0, 300, 10)
        for count in (1024, 1500):
            lines = ["time_ns,kind,name,value,host\n"]
            for n in range(count):
                # The kernel kills a process on the first node, on the last one, and on the one
                # before it, which is in no sample.
                killed = n in (0, count - 2, count - 1)
                lines += [f"{(START + t) * SECOND},counter,oom_kills_total,{int(killed and t >= 200)},n{n}\n" for t in times]
            table, folder = self.root / f"{count}.csv", self.root / f"many-{count}"
            table.write_text("".join(lines))
            self.assertEqual(self.sonde("import", "-o", folder, table).returncode, 0)
            self.assertEqual(len(list(folder.glob("*.sonde"))), count)
            brief = self.report("--brief", folder).stdout
            found = next(f for f in self.data(folder)["findings"] if f["kind"] == "out_of_memory")
            self.assertIn(f"3 processes were killed because memory ran out on n0, n{count - 2} and n{count - 1}", found["title"])
            if count <= 1024:
                self.assertEqual(brief, f"sonde: found: {found['title']}\n")
            else:
                self.assertEqual(brief, f"sonde: found: 2 processes were killed because memory ran out on n0 and n{count - 1} (on 1024 of {count} nodes)\n")

    def test_the_rate_of_a_counter_does_not_fall_at_the_end(self):
        """The run ends within the last bucket, which therefore has no rate."""
        for seconds in (1500, 1502, 1504):
            folder, page = self.root / f"counting-{seconds}", self.root / "page.html"
            folder.mkdir()
            r = Recording(folder, "n0")
            r.metric("samples_total", "counter", "")
            for t in range(seconds):
                r.point("samples_total", t, 10 * t)
            r.write()
            self.assertEqual(self.report("-o", page, folder).returncode, 0)
            figure = page.read_text().split("<figcaption>samples_total", 1)[1].split("</figure>", 1)[0]
            line = re.search(r'<path class="l [^"]*" d="([^"]*)"', figure)[1]
            heights = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", line)]
            self.assertGreater(len(heights), 100)
            self.assertLess(max(heights) - min(heights), 0.2, seconds)

    # ---- the end of `sonde run`

    def finish_together(self, *runs):
        """Runs jobs of 10 s, all at the same time, with points of two minutes before, in which no
        process used the GPU. Each run consists of its options and additions to its environment.
        Returns the runs' exit codes and their lines on stderr."""
        lines = self.root / "lines"
        now = int(time.time()) * 1000
        lines.write_text("".join(f"put gpu_utilization_percent {now - 1000 * age} 0 gpu=0\n" for age in range(120, 0, -1)))
        command = ["--", "sh", "-c", f"sonde put < {lines}; sleep 10.1; exit 7"]
        started = [self.start("run", "-l", "1", *options, *command, env=more) for options, more in runs]
        return [(code, err.splitlines()) for code, _, err in map(self.ends, started)]

    def test_lines_at_the_end_of_a_run(self):
        with_lines, not_kept, quiet, without, by_environment, stuck = self.finish_together(
            ([], {}), (["--no-record"], {}), (["-q"], {}), (["--no-report"], {}), ([], {"SONDE_NO_REPORT": "1"}),
            ([], {"LD_PRELOAD": os.environ["STUCK_REPORT"]} if "STUCK_REPORT" in os.environ else {"SONDE_NO_REPORT": "1"}))
        self.assertEqual([code for code, _ in (with_lines, not_kept, quiet, without, by_environment, stuck)], [7] * 6)
        expected = ["sonde: GPU 0.0 %", "sonde: found: GPU 0 never used"]
        for code, lines in (with_lines, not_kept):
            at = next(i for i, line in enumerate(lines) if line.startswith(expected[0]))
            self.assertIn(expected[1], lines[at + 1])
            self.assertLessEqual(len(lines) - at, 4, lines)
        for code, lines in (quiet, without, by_environment, stuck):
            self.assertEqual([line for line in lines if line.startswith(tuple(expected))], [])
        self.assertEqual(quiet[1], [])
        # The run's own lines appear, and tearDown finds no process.
        self.assertIn("try: sonde open", stuck[1][-1])


if __name__ == "__main__":
    main()
