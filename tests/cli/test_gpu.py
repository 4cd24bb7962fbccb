"""GPUs from the library to the answer: a run with the fake NVIDIA library, queried by sonde's names
and by those of other systems."""

import gzip
import json
import os
import pathlib
import urllib.request

from place import Place, main, until

LIBRARY = os.environ["FAKE_NVML"]
DATA = pathlib.Path(os.environ["GPU_DATA"])


class Gpu(Place):
    def script(self, *lines):
        path = self.root / "gpus.txt"
        path.write_text("".join(line + "\n" for line in lines))
        return {"SONDE_NVML": LIBRARY, "SONDE_FAKE_NVML": str(path)}

    def answers(self, question, *where):
        """Returns gpu → values, in the order of time."""
        result = self.sonde("query", "--json", question, *where)
        self.assertEqual(result.returncode, 0, result.stderr)
        return {series["tags"].get("gpu"): [value for _, value in sorted(series["dps"].items())] for series in json.loads(result.stdout)}

    def test_by_name_and_alias(self):
        env = self.script("gpus 2", "set 1 utilization 99", "set 1 power 512250", "set 1 memory_used 64424509440")
        process = self.start("run", "-q", "-l", "3", "--", "sleep", "1000", env=env)
        self.job()
        until(lambda: self.names().get("gpu_utilization_percent", 0) >= 4, "two samples of two GPUs")
        # While the job runs,
        self.assertEqual({gpu: set(v) for gpu, v in self.answers("avg:gpu_utilization_percent{gpu=*}").items()}, {"0": {42}, "1": {99}})
        self.assertEqual(set(self.answers("max:gpu_utilization_percent")[None]), {99})
        process.terminate()
        self.ends(process)
        # and afterwards, also by the names of other dashboards.
        for question, expected in (("DeviceUtilization", (42, 99)), ("DeviceMemoryUtilization", (25, 75)), ("DevicePowerUsage", (350.5, 512.25))):
            answers = self.answers(f"avg:{question}{{gpu=*}}")
            self.assertEqual((set(answers["0"]), set(answers["1"])), ({expected[0]}, {expected[1]}), question)
        self.nothing_left()

    def test_dragon_names_over_http(self):
        process = self.start("run", "-q", "-l", "4", "--", "sleep", "1000", env=self.script("gpus 2", "set 1 utilization 99"))
        job = self.job()
        until(lambda: self.names().get("gpu_utilization_percent", 0) >= 4 and self.names().get("sonde_store_megabytes"), "samples")
        token = (self.tmp / f"sonde-{os.getuid()}" / job["job"] / "token").read_text().strip()

        def ask(metric, *tags):
            """A query like Dragon's dashboards, with a filter for each tag: tags → values."""
            question = {"start": "1h-ago", "queries": [{
                "aggregator": "sum", "downsample": "1s-avg", "metric": metric,
                "filters": [{"type": "wildcard", "tagk": tag, "filter": "*", "groupBy": True} for tag in tags]}]}
            request = urllib.request.Request(f"{job['url']}/api/query", json.dumps(question).encode(), {"Authorization": f"Bearer {token}"})
            with urllib.request.urlopen(request) as answer:
                return {tuple(series["tags"][tag] for tag in tags[1:]): set(series["dps"].values()) for series in json.load(answer)}

        for metric in ("load_average", "used_RAM", "cpu_percent", "num_running_processes", "db_size"):
            self.assertTrue(ask(metric, "host")[()], metric)
        self.assertEqual(ask("DeviceUtilization", "host", "gpu"), {("0",): {42}, ("1",): {99}})
        self.assertEqual(ask("DeviceMemoryUtilization", "host", "gpu"), {("0",): {25}, ("1",): {25}})
        self.assertEqual(ask("DevicePowerUsage", "host", "gpu"), {("0",): {350.5}, ("1",): {350.5}})
        process.terminate()
        self.ends(process)
        self.nothing_left()

    def test_top(self):
        """Eight GPUs fit on a usual screen, live and recorded."""
        process = self.start("run", "-q", "-l", "3", "--", "sleep", "1000", env=self.script("gpus 8", "set 5 utilization 99", "set 5 power 512250"))
        self.job()
        until(lambda: self.names().get("gpu_power_watts", 0) >= 16, "two samples of eight GPUs")

        def check():
            lines = self.sonde("top", "--once", "--show", "gpus").stdout.splitlines()
            rows = {line.split()[2]: line for line in lines if " gpu " in line}
            self.assertEqual(list(rows), [str(gpu) for gpu in range(8)], lines)
            self.assertTrue(all(len(line) <= 80 for line in lines), lines)
            for gpu, line in rows.items():
                self.assertEqual(line.split()[3], "99.0" if gpu == "5" else "42.0", line)
                self.assertIn(" 512 " if gpu == "5" else " 350 ", line)

        check()
        process.terminate()
        self.ends(process)
        check()
        self.nothing_left()

    def test_doctor_says_who_answers(self):
        # The output names the first working library, and the reason why each of the others does not
        # work.
        lines = self.sonde("doctor", env=self.script("gpus 3", "fail 1 handle 4")).stdout.splitlines()
        line = next(line for line in lines if "NVIDIA GPUs" in line)
        self.assertRegex(line, r"^ok .* 2 answer, asked through nvml; GPU 1: no permission")
        lines = self.sonde("doctor", env={"SONDE_NVML": "/no/libnvidia-ml.so.1", "SONDE_ROCM_SMI": "/no/librocm.so", "SONDE_LEVEL_ZERO": "/no/libze.so"}).stdout
        self.assertRegex(lines, r"no +NVIDIA GPUs +no NVIDIA library: /no/libnvidia-ml.so.1: cannot open")
        self.assertRegex(lines, r" AMD GPUs +(no ROCm SMI: /no/librocm.so: cannot open|[0-9]+ answer, asked through sysfs)")
        self.assertRegex(lines, r" Intel GPUs +(no Level Zero: /no/libze.so: cannot open|[0-9]+ answer, asked through sysfs)")

    def test_below_level_3_it_is_not_touched(self):
        env = {"SONDE_NVML": str(self.root / "no-such-library.so")}
        for level in ("2", "3"):
            result = self.sonde("run", "-q", "-l", level, "--", "true", env=env)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
        result = self.sonde("run", "-q", "-l", "2", "--", "sleep", "1", env=self.script("gpus 1", "block init"))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.nothing_left()

    def test_a_gpu_that_hangs_delays_nothing(self):
        process = self.start("run", "-l", "3", "--", "sleep", "2", env=self.script("gpus 2", "block 1"))
        code, _, errors = self.ends(process)
        self.assertEqual(code, 0)
        self.assertIn("NVIDIA GPU 1 has not answered for", errors)
        (job,) = self.recordings()
        self.assertGreaterEqual(len(self.answers("avg:gpu_power_watts{gpu=*}", job)["0"]), 2)
        up = self.answers("avg:gpu_up{gpu=*}", job)
        self.assertEqual((set(up["0"]), set(up["1"])), ({1}, {0}))
        self.assertGreaterEqual(len(self.answers("avg:load_1m", job)[None]), 3)
        self.nothing_left()

    def test_a_recorded_node(self):
        files = sorted(DATA.glob("worker_*.csv.gz")) if DATA.is_dir() else []
        if not files:
            self.skipTest(f"no recordings of GPUs in {DATA}")
        rows = []
        with gzip.open(files[0], "rt") as file:
            next(file)
            for line in file:
                memory, activity, utilization = (list(map(int, field.split(","))) for field in line.rstrip("\n").rstrip('"').split('"')[1::2])
                rows.append(list(zip(utilization, activity, memory)))
                self.assertEqual(len(rows[-1]), 8)
        start = next(i for i, row in enumerate(rows) if any(gpu[0] for gpu in row))
        rows = rows[start:start + 50]
        table = self.root / "play.txt"
        table.write_text("".join(" ".join(f"{u} {a} {m}" for u, a, m in row) + "\n" for row in rows))
        process = self.start("run", "-q", "-l", "3", "--", "sleep", "1000", env=self.script("gpus 8", "set * memory_total 85899345920", f"play {table}"))
        self.job()
        until(lambda: self.names().get("gpu_utilization_percent", 0) >= 8 * 5, "five samples of eight GPUs")
        process.terminate()
        self.ends(process)
        for metric, column in (("gpu_utilization_percent", 0), ("gpu_memory_activity_percent", 1), ("gpu_memory_used_bytes", 2)):
            for gpu, values in self.answers(f"avg:{metric}{{gpu=*}}").items():
                # The first row was used by the sample that tests the GPU's functions.
                expected = [row[int(gpu)][column] for row in rows[1:1 + len(values)]]
                self.assertEqual(values[:len(expected)], expected, (metric, gpu))
        self.nothing_left()


if __name__ == "__main__":
    main()
