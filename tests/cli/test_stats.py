"""`sonde stats` and `sonde peaks`, compared with an oracle: exact sums of fractions over the
recorded points."""

import csv
import gzip
import io
import json
import math
import os
import pathlib
import random
import re
import sys
from fractions import Fraction

from place import Place, main

LIBRARY, EMITTER = os.environ["SONDE_LIBRARY"], os.environ["FORMAT_EMITTER"]
GPU_DATA = pathlib.Path(os.environ["GPU_DATA"])
SEED = int(os.environ.get("SONDE_TEST_SEED") or 20)
ROUNDS = int(os.environ.get("SONDE_TEST_ROUNDS") or 1)
START_MS = 1_700_000_000_000
MS = 1_000_000


def quantile(values, part):
    """R-6: interpolates at rank p (n + 1)."""
    values = sorted(values)
    rank = Fraction(part) * (len(values) + 1)
    below = min(max(math.floor(rank), 1), len(values))
    above = min(max(math.ceil(rank), 1), len(values))
    low, high = Fraction(values[below - 1]), Fraction(values[above - 1])
    return float(low + (rank - math.floor(rank)) * (high - low))


def integral(points, rate=False):
    """As in the docs: distances above twice the usual one are gaps; the usual distance is the class
    of the median."""
    def number(distance):
        power = distance.bit_length() - 1
        return 8 * power + ((distance << 3 >> power) & 7)

    steps = [(t - before, v if rate else (Fraction(v) + Fraction(u)) / 2) for (before, u), (t, v) in zip(points, points[1:])]
    if not steps:
        return None, 0
    usual = sorted(number(step) for step, _ in steps)[(len(steps) - 1) // 2]
    kept = [(step, height) for step, height in steps if number(step) <= usual + 8]
    return float(sum(step * Fraction(height) for step, height in kept) / 10**9), sum(step for step, _ in kept)


def expected(series):
    """Returns the statistics of several lists of points together."""
    points = sorted(point for one in series for point in one)
    values = [v for _, v in points]
    mean = sum(map(Fraction, values)) / len(values)
    areas = [integral(one) for one in series]
    known = [area for area, covered in areas if covered]
    return {
        "series": len(series), "count": len(values), "mean": float(mean),
        "deviation": math.sqrt(sum((Fraction(v) - mean) ** 2 for v in values) / len(values)),
        "min": min(values), "max": max(values),
        "min_ns": next(t for t, v in points if v == min(values)), "max_ns": next(t for t, v in points if v == max(values)),
        "p50": quantile(values, "0.5"), "p95": quantile(values, "0.95"), "p99": quantile(values, "0.99"),
        "first_ns": points[0][0], "last_ns": points[-1][0],
        "integral": sum(known) if known else None, "covered_ns": sum(covered for _, covered in areas), "estimated": False,
    }


class Stats(Place):
    def rows(self, command, *arguments, env=None):
        result = self.sonde(command, "--json", *arguments, env=env)
        self.assertEqual(result.returncode, 0, (SEED, result.stderr))
        return json.loads(result.stdout)

    def agrees(self, row, series, words):
        for key, value in expected(series).items():
            if isinstance(value, float):
                self.assertTrue(math.isclose(row[key], value, rel_tol=1e-12, abs_tol=1e-12), (SEED, words, key, row[key], value))
            else:
                self.assertEqual(row[key], value, (SEED, words, key))
        self.assertIn((row["last_ns"], row["last"]), [one[-1] for one in series], (SEED, words))

    def points(self, some):
        """Makes (rank, gpu) → points at distinct milliseconds, with gaps and equal values."""
        series = {}
        for rank in range(some.randrange(1, 4)):
            for gpu in range(some.randrange(1, 3)):
                t, points = START_MS + some.randrange(500), []
                step = some.choice((1, 10, 100))
                for _ in range(some.choice((1, 2, 3, 20, 60))):
                    t += step * some.choice((1, 1, 1, 1, 2, 3, 50))
                    points.append((t * MS, some.choice((0.0, -1.5, float(some.randrange(10)), some.uniform(-1e6, 1e6)))))
                series[rank, gpu] = points
        return series

    def spans(self, some):
        return sorted({(START_MS + some.randrange(3000)) * MS: (some.randrange(1, 900) * MS, some.randrange(3)) for _ in range(12)}.items())

    def run_once(self, some, job):
        series, spans = self.points(some), self.spans(some)
        puts, lines = self.root / "puts", self.root / "lines"
        puts.write_text("".join(f"put power {t // MS} {v!r} rank={rank} gpu={gpu}\n" for (rank, gpu), points in series.items() for t, v in points))
        lines.write_text("".join(f"span {start} {start + length} step rank={rank} n={i}\n" for i, (start, (length, rank)) in enumerate(spans)))
        # The node itself is not recorded (-l 1), so only the test's own points count.
        questions = {"each": ("stats", "power"), "rank": ("stats", "power", "--by", "rank"), "span": ("stats", "power", "--per-span", "step"),
                     "all": ("stats", "power", "--per-span", "step", "--by", "span"), "peaks": ("peaks", "power", "--by", "gpu")}
        asked = "".join(f" && sonde {command} --json {' '.join(words)} > {self.root}/{name}" for name, (command, *words) in questions.items())
        result = self.sonde("run", "-q", "-l", "1", "--", "sh", "-c", f"sonde put < {puts} && {sys.executable} {EMITTER} {LIBRARY} < {lines}{asked}", env={"SONDE_JOB": job})
        self.assertEqual(result.returncode, 0, (SEED, result.stderr))
        answers = {}
        for name, (command, *words) in questions.items():
            answers[name] = self.rows(command, *words, job)
            self.assertEqual(answers[name], json.loads((self.root / name).read_text()), (SEED, name, "live and recorded"))
        self.assertEqual(len(answers["each"]), len(series))
        for row in answers["each"]:
            self.agrees(row, [series[int(row["tags"]["rank"]), int(row["tags"]["gpu"])]], "each")
        self.assertEqual([row["tags"] for row in answers["rank"]], [{"rank": str(rank)} for rank in sorted({rank for rank, _ in series})])
        for row in answers["rank"]:
            self.agrees(row, [points for (rank, _), points in series.items() if rank == int(row["tags"]["rank"])], "by rank")
        within = {}
        for i, (start, (length, rank)) in enumerate(spans):
            for (of, gpu), points in series.items():
                inside = [(t, v) for t, v in points if start <= t < start + length]
                if of == rank and inside:
                    within[i, gpu] = inside
        self.assertEqual({(int(row["tags"]["n"]), int(row["tags"]["gpu"])) for row in answers["span"]}, set(within), SEED)
        self.assertEqual([row["span_start_ns"] for row in answers["span"]], sorted(row["span_start_ns"] for row in answers["span"]))
        for row in answers["span"]:
            i = int(row["tags"]["n"])
            self.agrees(row, [within[i, int(row["tags"]["gpu"])]], "span")
            self.assertEqual((row["span_start_ns"], row["span_end_ns"]), (spans[i][0], spans[i][0] + spans[i][1][0]))
        if within:
            (row,) = answers["all"]
            self.agrees(row, list(within.values()), "all spans")
        for row in answers["peaks"]:
            points = {key: points for key, points in series.items() if key[1] == int(row["tags"]["gpu"])}
            peak, at = max(((v, -t) for one in points.values() for t, v in one))
            self.assertEqual((row["max"], row["max_ns"]), (peak, -at), SEED)
            self.assertIn((-at, peak), points[int(row["max_tags"]["rank"]), int(row["max_tags"]["gpu"])])

    def test_random(self):
        some = random.Random(SEED)
        for i in range(2 * ROUNDS):
            self.run_once(some, f"random{i}")

    def test_hosts_and_slices(self):
        """Two hosts, with more points than one slice has."""
        for host, begin in (("a", 0), ("b", 7)):
            table = self.root / f"{host}.csv"
            table.write_text("t,busy\n" + "".join(f"{START_MS * MS + i * MS},{(i * 31 + begin) % 1009}\n" for i in range(140_000)))
            self.assertEqual(self.sonde("import", table, "-o", "out").returncode, 0)
        points = {host: [(START_MS * MS + i * MS, float((i * 31 + begin) % 1009)) for i in range(140_000)] for host, begin in (("a", 0), ("b", 7))}
        for row in self.rows("stats", "busy", "out"):
            values = [v for _, v in points[row["tags"]["host"]]]
            self.assertEqual((row["count"], row["p50"], row["p99"], row["covered_ns"]), (140_000, quantile(values, "0.5"), quantile(values, "0.99"), 139_999 * MS))
            self.assertTrue(math.isclose(row["mean"], sum(values) / len(values), rel_tol=1e-12))
            self.assertTrue(math.isclose(row["integral"], (sum(values) - values[0] / 2 - values[-1] / 2) / 1000, rel_tol=1e-12))
        # buckets that a boundary between slices would divide
        sums = [row for row in self.rows("stats", "none:7ms-sum:busy{host=a}", "out")]
        buckets = {}
        for t, v in points["a"]:
            buckets[t // (7 * MS)] = buckets.get(t // (7 * MS), 0) + v
        first = START_MS * MS // (7 * MS)
        whole = [v for at, v in buckets.items() if at > first or START_MS % 7 == 0]
        self.assertEqual((sums[0]["count"], sums[0]["max"], sums[0]["min"]), (len(whole), max(whole), min(whole)))

    def test_rates_become_amounts(self):
        """The integral of a counter's rate is the counter's growth; the counter itself has no
        integral."""
        table = self.root / "n.csv"
        table.write_text("t,sent\n" + "".join(f"{START_MS * MS + i * 10**9},{i * i}\n" for i in range(50)))
        self.sonde("import", table, "-o", "out")
        (row,) = self.rows("stats", "none:rate:sent", "out")
        self.assertEqual((row["rate"], row["count"], row["integral"], row["covered_ns"]), (True, 49, 49 * 49 - 1, 48 * 10**9))

    def test_table_csv_and_wrong_words(self):
        table = self.root / "n.csv"
        table.write_text(f"t,loss\n{START_MS * MS},1\n{(START_MS + 1000) * MS},3\n")
        self.sonde("import", table, "-o", "out")
        titles, row = self.sonde("stats", "loss", "out").stdout.splitlines()
        self.assertEqual(titles.split(), "series count mean deviation min p50 p95 p99 max last integral covered".split())
        self.assertEqual(re.split("  +", row.strip()), ["loss{host=n}", "2", "2", "1", "1", "2", "3", "3", "3", "3", "2s", "1.0s"])
        titles, row = self.sonde("peaks", "loss", "out").stdout.splitlines()
        self.assertEqual(re.split("  +", row.strip()), ["loss{host=n}", "3", "2023-11-14 22:13:21.000", "{host=n}"])
        (row,) = csv.DictReader(io.StringIO(self.sonde("stats", "--csv", "loss", "out").stdout, newline=""))
        self.assertEqual((row["metric"], row["host"], row["mean"], row["integral"], row["integral_unit"], row["covered_seconds"]), ("loss", "n", "2", "2", "seconds", "1.000000000"))
        (row,) = csv.DictReader(io.StringIO(self.sonde("peaks", "--csv", "*", "out").stdout, newline=""))
        self.assertEqual((row["peak"], row["time"], row["place"]), ("3", "2023-11-14T22:13:21.000000000Z", "host=n"))
        self.one_line(self.sonde("stats", "los", "out"), 1, "no metric 'los'", "did you mean loss?")
        self.one_line(self.sonde("stats", "loss{", "out"), 2, "Invalid braces")
        self.one_line(self.sonde("stats", "loss,", "out"), 2, "an expression is empty")
        self.one_line(self.sonde("peaks", "loss", "--by", "a,,b", "out"), 2, "--by takes")
        self.one_line(self.sonde("stats", "loss", "--json", "--csv", "out"), 2, "contradict")
        self.one_line(self.sonde("stats", "loss", "-s", "2000000000", "out"), 0, "no points in this range")

    def test_files_that_cannot_be_read(self):
        """Unreadable files are named, and the others are used; with --strict, the exit code says
        so."""
        table = self.root / "good.csv"
        table.write_text("t,a\n" + "".join(f"{START_MS * MS + i * MS},{i}\n" for i in range(5000)))
        self.sonde("import", table, "-o", "out")
        whole = (self.root / "out" / "good.sonde").read_bytes()
        newer = whole[:8] + bytes([0xff]) + whole[9:]
        files = {"foreign": b"no recording at all\n" * 100, "cut": whole[:len(whole) // 2], "newer": newer}
        for name, content in files.items():
            with self.subTest(name):
                path = self.root / "out" / f"{name}.sonde"
                path.write_bytes(content)
                for command in ("stats", "peaks"):
                    loose, strict = (self.sonde(command, "a{host=good}", "--json", *flags, "out") for flags in ((), ("--strict",)))
                    self.assertEqual((loose.returncode, strict.returncode), (0, 4), (name, loose.stderr))
                    self.assertEqual([(row["max"], row["count"]) for row in json.loads(loose.stdout)], [(4999, 5000)], name)
                    self.assertIn(f"missing in the answer: {name}.sonde (unreadable: ", loose.stderr)
                path.unlink()
        # damages the points, or their descriptions
        for at in range(len(whole) - 200, len(whole), 20):
            (self.root / "out" / "good.sonde").write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1:])
            query, stats = (self.sonde(command, "a", "--strict", "out") for command in ("query", "stats"))
            self.assertEqual(stats.returncode, query.returncode, (at, stats.stderr, query.stderr))
            self.assertEqual(*([line for line in one.stderr.splitlines() if not line.startswith("sonde: no points")] for one in (stats, query)))
        # As for every command, an empty file counts as one of an agent that has just started.
        (self.root / "out" / "good.sonde").write_bytes(b"")
        self.one_line(self.sonde("stats", "a", "out"), 1, "there is no recording (*.sonde) in out")

    def test_peaks_of_published_jobs(self):
        """The peaks of each job, worker and GPU equal those of the CSV rows, for each metric."""
        sources = [GPU_DATA / f"worker_{worker}.csv.gz" for worker in range(2)]
        if not all(source.exists() for source in sources):
            self.skipTest(f"there is no {sources[0]}")
        peaks = {}
        for worker, source in enumerate(sources):
            with gzip.open(source, "rt", newline="") as file:
                for row in csv.DictReader(file):
                    for metric in ("total-mem", "mem-util", "compute-util"):
                        for gpu, cell in enumerate(row[metric].split(",")):
                            if cell.strip():
                                key = metric, row["job"], f"worker_{worker}", str(gpu)
                                peaks[key] = max(peaks.get(key, -math.inf), float(cell))
        self.assertEqual({(job, worker) for _, job, worker, _ in peaks}, {(job, f"worker_{worker}") for _, job, _, _ in peaks for worker in range(2)})
        self.assertEqual(len({job for _, job, _, _ in peaks}), 27)
        found = {}
        for source in sources:
            result = self.sonde("import", "--format", "dask-metrics-csv", source, "-o", "out")
            self.assertEqual(result.returncode, 0, result.stderr)
        for metric in ("total-mem", "mem-util", "compute-util"):
            for row in self.rows("peaks", f"dask_{metric.replace('-', '_')}", "--per-span", "dask_stretch", "--by", "job,host,gpu", "out"):
                found[metric, row["tags"]["job"], row["tags"]["host"], row["tags"]["gpu"]] = row["max"]
        self.assertEqual(found, peaks)

main()
