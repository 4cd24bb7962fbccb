"""`sonde query` and related commands over one recording with known points; the same live and
closed."""

import csv
import gzip
import io
import json
import os
import random
import re
import subprocess
import urllib.error
import urllib.request

from place import SONDE, Place, main, until

# The points begin at 2023-11-14 22:13:20 UTC: two ranks, a second apart, three points each.
LINES = "".join(f"put loss {1700000000 + i} {value} rank={rank}\n" for rank, values in ((0, (1, 2, 3)), (1, (5, 6, 7))) for i, value in enumerate(values))


class Query(Place):
    def setUp(self):
        super().setUp()
        result = self.sonde("run", "-q", "-l", "1", "--", "sonde", "put", stdin=LINES, env={"SONDE_JOB": "known"})
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def ask(self, *arguments, env=None):
        result = self.sonde("query", *arguments, env=env)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_table(self):
        self.assertEqual(self.ask("sum:loss{rank=*}", "known"), f"""\
time                 loss{{host={self.host()},rank=0}}  loss{{host={self.host()},rank=1}}
2023-11-14 22:13:20  {'1':>{len(self.host()) + 18}}  {'5':>{len(self.host()) + 18}}
2023-11-14 22:13:21  {'2':>{len(self.host()) + 18}}  {'6':>{len(self.host()) + 18}}
2023-11-14 22:13:22  {'3':>{len(self.host()) + 18}}  {'7':>{len(self.host()) + 18}}
""")

    def host(self):
        return os.uname().nodename.split(".")[0]

    def test_json(self):
        (series,) = json.loads(self.ask("sum:loss", "--json", "known"))
        self.assertEqual(series["dps"], {"1700000000000": 6, "1700000001000": 8, "1700000002000": 10})
        self.assertEqual((series["metric"], series["tags"], series["aggregateTags"]), ("loss", {"host": self.host()}, ["rank"]))

    def test_a_name_alone_is_every_series(self):
        self.assertEqual([series["dps"] for series in json.loads(self.ask("loss", "--json", "known"))], [
            {"1700000000000": 1, "1700000001000": 2, "1700000002000": 3}, {"1700000000000": 5, "1700000001000": 6, "1700000002000": 7}])
        (series,) = json.loads(self.ask("loss{rank=literal_or(1|a:b)}", "--json", "known"))
        self.assertEqual(series["tags"], {"host": self.host(), "rank": "1"})
        self.one_line(self.sonde("query", "los", "known"), 1, "no metric 'los'", "did you mean loss?")
        self.one_line(self.sonde("query", "loss{rank", "known"), 2, "Invalid braces behind the metric 'loss'")

    def test_csv(self):
        text = subprocess.run([SONDE, "query", "--csv", "avg:0all-avg:loss{rank=*}", "known"], env=self.env, capture_output=True).stdout
        self.assertEqual(text.count(b"\r\n"), text.count(b"\n"))
        rows = list(csv.reader(io.StringIO(text.decode(), newline="")))
        self.assertEqual(rows[0], ["metric", "host", "rank", "time", "value"])
        self.assertEqual([(row[2], row[4]) for row in rows[1:]], [("0", "2"), ("1", "6")])

    def test_csv_quotes(self):
        self.assertEqual(self.sonde("run", "-q", "-l", "1", "--", "sonde", "put", stdin='m,t=a\\,b"c v=1\n').returncode, 0)
        names = json.loads(self.ask("--list", "--json"))
        rows = list(csv.DictReader(io.StringIO(self.ask("--csv", f"none:{names[0]['metric']}"))))
        self.assertEqual([row["t"] for row in rows], ['a,b"c'])

    def test_range(self):
        def stamps(*arguments, env=None):
            return sorted(int(t) // 1000 - 1700000000 for s in json.loads(self.ask("sum:loss", "--json", "known", *arguments, env=env)) for t in s["dps"])
        self.assertEqual(stamps(), [0, 1, 2])
        self.assertEqual(stamps("--start", "1700000001"), [1, 2])
        self.assertEqual(stamps("--start", "1700000000500", "--end", "1700000001500"), [1])
        self.assertEqual(stamps("--start", "2023/11/14-22:13:22"), [2])
        self.assertEqual(stamps("--start", "2023/11/14-23:13:21", "--end", "2023/11/14-23:13:21", env={"TZ": "Europe/Berlin"}), [1])
        self.assertEqual(stamps("--start", "1h-ago"), [])
        self.one_line(self.sonde("query", "sum:loss", "known", "--start", "1700000002", "--end", "1700000001"), 2, "the end lies before the start")
        self.one_line(self.sonde("query", "sum:loss", "known", "--start", "yesterday"), 2, "--start", "yesterday")

    def test_all_of_it(self):
        """Without --start and --end, no point is left out, whatever the downsampling."""
        for downsample, buckets in (("1s-sum", [6, 8, 10]), ("2s-sum", [14, 10]), ("7s-sum", [6, 18]), ("1h-sum", [24]), ("0all-sum", [24]), ("1dc-sum", [24]), ("1yc-sum", [24]),
                                    ("2s-sum-zero", [14, 10])):
            (series,) = json.loads(self.ask(f"sum:{downsample}:loss", "--json", "known"))
            self.assertEqual(list(series["dps"].values()), buckets, downsample)

    def test_local_times(self):
        self.assertIn("2023-11-14 23:13:20  ", self.ask("sum:loss", "known", env={"TZ": "Europe/Berlin"}))

    def test_list(self):
        text = self.ask("--list", "known")
        self.assertRegex(text.splitlines()[0], r"^series +kind +unit +points +first +last$")
        self.assertRegex(text, rf"loss{{host={self.host()},rank=0}} +gauge +3 +2023-11-14 22:13:20.000 +2023-11-14 22:13:22.000\n")

    def test_paths(self):
        file = next((self.runs / "known").glob("*.sonde"))
        answer = self.ask("sum:loss", "known")
        for path in (file, self.runs / "known", os.path.relpath(file, self.root)):
            self.assertEqual(self.ask("sum:loss", path), answer)
        # Several paths are queried like one recording, so the same file twice changes nothing.
        self.assertEqual(self.ask("sum:loss", file, "known"), answer)

    def test_newest_recording(self):
        self.sonde("run", "-q", "-l", "1", "--", "sonde", "put", "other", "1")
        result = self.sonde("query", "sum:other")
        self.assertEqual((result.returncode, result.stderr), (0, f"sonde: recording {self.newest()}\n"))
        self.assertEqual(self.names("known")["loss"], 6)
        self.assertIn("recording known", self.sonde("query", "--list", env={"SONDE_JOB": "known"}).stderr)

    def newest(self):
        return next(name for name in self.recordings() if name != "known")

    def test_running_job_goes_first(self):
        self.start("run", "-l", "1", "--", "sh", "-c", "sonde put live 1; exec sleep 1000")
        job = self.job()["job"]
        until(lambda: self.names().get("live") == 1, "the live job's point")
        result = self.sonde("query", "sum:live")
        self.assertEqual((result.returncode, result.stderr), (0, f"sonde: running job {job}\n"))
        self.assertEqual(json.loads(self.ask("sum:live", "--json", job))[0]["metric"], "live")

    def test_aliases(self):
        self.sonde("run", "-q", "--", "true")
        answer = json.loads(self.ask("avg:load_average", "--json"))
        self.assertEqual(answer[0]["metric"], "load_average")
        self.assertEqual(list(answer[0]["dps"].values()), list(json.loads(self.ask("avg:load_1m", "--json"))[0]["dps"].values()))

    def asking(self, job):
        """Returns a function that queries the job over HTTP; its result is None while the metric
        does not exist."""
        token = (self.tmp / f"sonde-{os.getuid()}" / job["job"] / "token").read_text().strip()

        def asked(m):
            request = urllib.request.Request(f"{job['url']}/api/query?start=1h-ago&m={m}", headers={"Authorization": f"Bearer {token}"})
            try:
                with urllib.request.urlopen(request) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError:
                return None
        return asked

    def test_requests_are_timed(self):
        # At level 4, with the route as the tag, whatever tags and rank the environment sets for
        # programs.
        self.start("run", "-l", "4", "--", "sleep", "1000", env={"SONDE_TAGS": "phase=one", "SLURM_PROCID": "3"})
        asked = self.asking(self.job())
        answer = until(lambda: asked("none:sonde_request_seconds{}{path=/api/query}"), "the time that a request took")
        self.assertEqual(set(answer[0]["tags"]), {"host", "path"})
        self.assertTrue(all(0 < seconds < 1000 for seconds in answer[0]["dps"].values()), answer)

    def test_requests_are_not_timed_below(self):
        self.start("run", "-l", "3", "--", "sh", "-c", "sonde put live 1; exec sleep 1000")
        asked = self.asking(self.job())
        until(lambda: asked("none:live"), "the program's point")
        self.assertNotIn("sonde_request_seconds", self.names())

    def test_aliases_over_http(self):
        self.start("run", "--", "sleep", "1000")
        asked = self.asking(self.job())
        for name in ("load_average", "used_RAM", "num_running_processes", "cpu_percent"):
            answer = until(lambda: asked(f"avg:{name}"), f"points of {name}")
            self.assertEqual(answer[0]["metric"], name)
            self.assertTrue(answer[0]["dps"])
            self.assertIn(name, self.ask(f"avg:{name}", "--json"))

    def test_a_metric_of_the_catalogue_without_series(self):
        for name in ("gpu_count", "load_average"):
            result = self.sonde("query", f"avg:1s-avg:{name}{{host=*}}", "known")
            self.assertEqual((result.returncode, result.stdout), (0, ""))
            self.assertIn(f"no points of {name} in this range", result.stderr)
            self.assertEqual(json.loads(self.ask(name, "--json", "known")), [])
            self.assertEqual(self.ask(f"sum:{name}", "--csv", "known").split(), ["metric,time,value"])
            self.assertEqual(json.loads(self.ask(f"max:0all-max:{name}", "--json", "--per-span=epoch", "known")), [])

    def test_mistakes(self):
        self.one_line(self.sonde("query", "sum:los", "known"), 1, "no metric 'los'", "did you mean loss?")
        self.one_line(self.sonde("query", "sum:xyzzy", "known"), 1, "no metric 'xyzzy'", "--list")
        self.one_line(self.sonde("query", "summ:loss", "known"), 2, "summ")
        self.one_line(self.sonde("query"), 2, "an expression is missing")
        self.one_line(self.sonde("query", "sum:loss", "nojob"), 1, "'nojob' is not a file, folder, job or address", "recorded: known")
        self.one_line(self.sonde("query", "sum:loss", self.tmp), 1, "no recording", str(self.tmp))
        self.one_line(self.sonde("query", "sum:loss", "--job", "17"), 1, "no job 17")
        self.one_line(self.sonde("query", "sum:loss", "known", "--csv", "--json"), 2, "contradict")
        (self.root / "text.sonde").write_text("this is no recording")
        self.one_line(self.sonde("query", "sum:loss", "text.sonde"), 1, "text.sonde")
        self.one_line(self.sonde("query", "sum:loss", env={"SONDE_RUNS": str(self.root / "none")}), 1, "no job runs here and none is recorded")

    def test_one_bad_file_costs_itself(self):
        (self.runs / "known" / "zzz.sonde").write_text("x" * 10000)
        result = self.sonde("query", "sum:loss", "known")
        self.assertEqual(result.returncode, 0)
        self.assertIn("zzz.sonde", result.stderr)
        self.assertIn("22:13:20", result.stdout)

    def test_into_a_pipe_that_closes(self):
        result = subprocess.run(["sh", "-c", f"'{SONDE}' metrics | head -n 1"], env=self.env, capture_output=True, text=True)
        self.assertEqual((result.stdout.count("\n"), result.stderr), (1, ""))


class Files(Place):
    """`sonde import` and `sonde inspect`."""

    def table(self, name, text):
        opened = gzip.open if name.endswith(".gz") else open
        with opened(self.root / name, "wt") as f:
            f.write(text)
        return self.root / name

    def test_import_and_ask(self):
        rows = "".join(f"{1700000000000000000 + i * 1000000000},{i},{0.5 * i}\n" for i in range(1000))
        for name in ("n1.csv", "n2.csv.gz"):
            result = self.sonde("import", "--format", "wide-csv", self.table(name, "t,loss,rate\n" + rows), "-o", "made/here")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn("2000 values in 2 series, 1000 rows", result.stdout)
        self.assertEqual(self.names(self.root / "made" / "here"), {"loss": 2000, "rate": 2000})
        answer = self.sonde("query", "--json", "sum:0all-sum:loss{host=*}", "made/here")
        self.assertEqual([(s["tags"], list(s["dps"].values())) for s in json.loads(answer.stdout)], [({"host": "n1"}, [499500]), ({"host": "n2"}, [499500])])

    def test_import_mistakes(self):
        table = self.table("n.csv", "t,a\n1,2\nx,3\n2,y\n")
        self.one_line(self.sonde("import", table), 2, "-o DIR is missing")
        self.one_line(self.sonde("import", table, "-o", "out", "--host", "../n"), 2, "--host", "../n")
        self.one_line(self.sonde("import", "--format", "xml", table, "-o", "out"), 2, "'xml' is not one of wide-csv")
        self.one_line(self.sonde("import", "none.csv", "-o", "out"), 1, "none.csv")
        result = self.sonde("import", table, "-o", "out")
        self.assertEqual(result.returncode, 0)
        self.assertIn("1 rows and 1 cells could not be read", result.stderr)
        # the recording exists already
        self.one_line(self.sonde("import", table, "-o", "out"), 1, "out/n.sonde")

    def test_a_table_of_something_else_is_refused(self):
        """Most cells, or most rows, are invalid: no recording is left."""
        text = "".join(f'{i},1,"a, b",{i}\n' for i in range(10))
        for table in (self.table("cells.csv", "t,a,b,c\n" + "".join(f'{i},x,"7, 8",{i}\n' for i in range(10))), self.table("rows.csv", "t,a,b\n" + text + "1,2,3\n")):
            self.one_line(self.sonde("import", table, "-o", "out"), 1, f"cannot import {table}", "is it of another --format?")
        self.one_line(self.sonde("import", "--format", "dask-metrics-csv", self.table("wide.csv", "t,a\n1,2\n"), "-o", "out"), 1, "columns job, dag and timestamp")
        self.assertEqual(list((self.root / "out").iterdir()), [])

    def test_files_of_dask_metrics(self):
        """A series for each GPU, a span for each dag: peaks of spans equal peaks of the rows."""
        seed = int(os.environ.get("SONDE_TEST_SEED") or 3)
        some = random.Random(seed)
        rows, at, peaks = [], (0, 0), {}
        for i in range(400):
            if some.random() < 0.1:
                at = some.randrange(3), some.randrange(4)
            cells = [some.choice(("", str(some.randrange(100)), str(some.randrange(900) / 10))) for _ in range(2)]
            keys = [some.choice(("inc-1", "('sum-3f', 0)", "'a, b'", "x-2")) for _ in range(some.randrange(4))]
            rows.append([*at, f"{1000 + i / 5:.6f}", ", ".join(cells) if any(cells) else "", ", ".join(keys), "x" if i == 7 else ""])
            for metric, values in (("dask_compute_util", cells), ("dask_tasks", [str(len(keys))])):
                for gpu, value in enumerate(values):
                    if value:
                        key = metric, gpu if metric == "dask_compute_util" else None, *at
                        peaks[key] = max(peaks.get(key, 0), float(value))
        text = io.StringIO()
        out = csv.writer(text, lineterminator="\n")
        out.writerows([["job", "dag", "timestamp", "compute-util", "tasks", "my power"], *rows])
        table = self.table("worker_12.csv.gz", text.getvalue())
        os.utime(table, ns=(1_700_000_000 * 10**9, 1_700_000_000 * 10**9))
        result = self.sonde("import", "--format", "dask-metrics-csv", table, "-o", "made")
        self.assertEqual(result.returncode, 0, (seed, result.stderr))
        self.assertIn("0 rows and 1 cells could not be read", result.stderr)
        found = {}
        for metric in ("dask_compute_util", "dask_tasks"):
            answer = self.sonde("query", "--json", "--per-span", "dask_stretch", f"none:0all-max:{metric}", "made")
            for one in json.loads(answer.stdout):
                tags = one["tags"]
                self.assertEqual((tags["worker"], tags["host"]), ("12", "worker_12"))
                key = metric, int(tags["gpu"]) if "gpu" in tags else None, int(tags["job"]), int(tags["dag"])
                found[key] = max(found.get(key, 0), *one["dps"].values())
        self.assertEqual(found, peaks, seed)
        whole = json.loads(self.sonde("query", "--json", "dask_tasks", "made").stdout)[0]["dps"]
        self.assertEqual((len(whole), max(map(int, whole))), (400, 1_700_000_000_000))

    def test_inspect(self):
        self.assertEqual(self.sonde("run", "-q", "-l", "1", "--", "sonde", "put", stdin=LINES, env={"SONDE_JOB": "known"}).returncode, 0)
        result = self.sonde("inspect", "known")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for line in (r"  state +closed, format \d+\.\d+", "  time +2023-11-14 22:13:20.000 to 2023-11-14 22:13:22.000", "  values +6, of them 0 not sealed", "  damage +none"):
            self.assertRegex(result.stdout, line)
        (told,) = json.loads(self.sonde("inspect", "--json", "known").stdout)
        self.assertEqual((told["values"], told["series"], told["damage"]["blocks"], told["first_ns"]), (6, 2, 0, 1700000000000000000))
        self.assertEqual(told["file_bytes"], os.stat(told["path"]).st_size)
        self.assertIn("recording known", self.sonde("inspect").stderr)

    def test_inspect_finds_damage(self):
        rows = "".join(f"{1700000000000000000 + i},{i * i % 977}\n" for i in range(5000))
        self.sonde("import", self.table("n.csv", "t,a\n" + rows), "-o", "out")
        path = self.root / "out" / "n.sonde"
        whole = path.read_bytes()
        # After the header, which has unused parts, all bytes except a few of padding count.
        missed = []
        for at in range(1024, len(whole), 10):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1:])
            if self.sonde("inspect", path).returncode == 0:
                missed.append(at)
        self.assertLess(len(missed), 4, missed)
        path.write_text("no recording at all")
        self.one_line(self.sonde("inspect", path), 1, "n.sonde", "not a sonde file")


class Machine(Place):
    def test_doctor(self):
        result = self.sonde("doctor")
        lines = result.stdout.splitlines()
        self.assertGreaterEqual(len(lines), 8)
        order = ["missing", "no", "ok", "absent"]
        for line in lines:
            self.assertRegex(line, r"^(ok|no|missing|absent) {1,7} \S")
        verdicts = [line.split()[0] for line in lines]
        self.assertEqual(verdicts, sorted(verdicts, key=order.index))
        self.assertLessEqual(verdicts.count("absent"), 1)
        self.assertNotIn("perf", result.stdout)  # nothing of sonde reads the processor's counters
        self.assertEqual(result.returncode, 1 if any(line.startswith("missing") for line in lines) else 0)
        self.nothing_left()

    def test_sources_that_are_missing_say_why(self):
        """Few machines have both fans and Lustre; existing ones are not listed."""
        rows = json.loads(self.sonde("metrics", "--json").stdout)
        missing = {row["source"]: row["missing"] for row in rows if row["missing"]}
        self.assertEqual([name for name in ("cpu", "load", "memory", "sonde") if name in missing], [])
        table, doctor = self.sonde("metrics").stdout, self.sonde("doctor").stdout
        self.assertRegex(doctor, r"(?m)^ok +node metrics +.*\bcpu, memory\b")
        for source, why in missing.items():
            if source != "gpu":
                self.assertRegex(table, rf"\n  {source} +{re.escape(why)}\n")
                self.assertRegex(doctor, rf"(?m)^(no +{source} +{re.escape(why)}|absent +hardware +.*\b{source}\b.*)$")
        if not os.path.isdir("/proc/fs/lustre") and not os.path.isdir("/sys/fs/lustre"):
            self.assertIn("Lustre", missing["lustre"])

    def test_doctor_finds_what_is_missing(self):
        result = self.sonde("doctor", env={"TMPDIR": "/nowhere"})
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"\Amissing +run folder +.*/nowhere.*TMPDIR")
        result = self.sonde("doctor", env={"SONDE_RUNS": "/proc/x"})
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"\Amissing +recordings +/proc/x")
        result = self.sonde("doctor", env={"SONDE_SOCKET": "/nowhere/job/agent.sock"})
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"\Amissing +job +/nowhere/job is not here.*bind")

    def test_metrics(self):
        text = self.sonde("metrics").stdout
        self.assertRegex(text, r"\ncpu_percent +gauge +percent +2 +\S")
        self.assertIn("Also: load_average.", text)
        rows = {row["name"]: row for row in json.loads(self.sonde("metrics", "--json").stdout)}
        self.assertEqual((rows["memory_used_percent"]["unit"], rows["memory_used_percent"]["aliases"]), ("percent", "used_RAM"))

    def test_agent_and_aggregator_by_hand(self):
        folder = self.root / "folder"
        agent = self.start("agent", "--folder", folder, "--rate", "0.05")
        until(lambda: self.sonde("put", "--socket", folder / "agent.sock", "loss", "1").returncode == 0, "the agent listens")
        aggregator = self.start("aggregator", folder)
        line = aggregator.stderr.readline()
        self.assertRegex(line, r"^sonde: http://127\.0\.0\.1:\d+/\?token=[0-9a-f]{64}\n$")
        for process in (agent, aggregator):
            process.terminate()
            self.assertEqual(self.ends(process)[0], 0)
        self.assertEqual(self.names(folder)["loss"], 1)
        self.assertGreater(self.names(folder)["memory_used_bytes"], 0)

    def test_agent_mistakes(self):
        self.one_line(self.sonde("agent"), 2, "--folder=DIR is missing")
        self.one_line(self.sonde("agent", "--folder", "/proc/x"), 1, "/proc/x")
        self.one_line(self.sonde("aggregator", self.root / "none"), 1, "none")


if __name__ == "__main__":
    main()
