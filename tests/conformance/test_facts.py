"""Tests the semantics of OpenTSDB's queries with a table of facts. Each fact is checked with a file
that is being written, a closed file, a file of a killed writer, a file with all points in sealed
blocks, and with two files."""
import math
import unittest

from harness import END, T, Case, Writer

L_TIMES = [T + 30 * i for i in range(1, 301)]
M_TIMES = [T + 10 * i for i in range(300)]
M = {
    "web01": [(t, i + 1) for i, t in enumerate(M_TIMES) if i % 3],
    "web02": [(t, 300 - i) for i, t in enumerate(M_TIMES) if i % 2],
}

# metric → [(tags, points)]
DATA = {
    "l": [({"host": "web01", "dc": "lga"}, [(t, i + 1) for i, t in enumerate(L_TIMES)]),
          ({"host": "web02", "dc": "lga"}, [(t, 300 - i) for i, t in enumerate(L_TIMES)])],
    "lo": [({"host": "web01"}, [(t, i + 1) for i, t in enumerate(L_TIMES)]),
           ({"host": "web02"}, [(t + 15, 300 - i) for i, t in enumerate(L_TIMES)])],
    "m": [({"host": host}, points) for host, points in M.items()],
    "counter": [({"host": "a"}, [(T, 45), (T + 30, 75), (T + 60, 5)])],
    "reset": [({"host": "a"}, [(T, 45), (T + 30, 75), (T + 60, 25)])],
    "uneven": [({"host": "a"}, [(T, 40), (T + 2000, 50), (T + 3600, 40), (T + 3605, 50), (T + 7200, 40), (T + 9200, 50)])],
    "powers": [({"host": "a"}, [(T + 5 * i, 2 ** i) for i in range(11)])],
    "small_powers": [({"host": "a"}, [(T + 5 + 10 * i, 2 ** i) for i in range(6)])],
    "ab": [({"host": "a"}, [(T, 40), (T + 10, 50), (T + 30, 70)]), ({"host": "b"}, [(T + 10, 37), (T + 20, 48)])],
    "ab_gap": [({"host": "a"}, [(T, 40), (T + 30, 70)]), ({"host": "b"}, [(T + 10, 37), (T + 20, 48)])],
    "thousand": [({"host": "a"}, [(T + i, i + 1) for i in range(1000)])],
    "thousand_series": [({"host": f"h{i}"}, [(T, i)]) for i in range(1, 1001)],
    "five": [({"host": f"h{i}"}, [(T, v)]) for i, v in enumerate([5, 2, -1, 400, 3])],
    "dated": [({"host": "a"}, [(1356007362, 1)])],
    "named": [({"host": "ogg-01.ops.ankh.morpork.com"}, [(T, 1)]), ({"host": "ogg-02.ops.ankh.morpork.com"}, [(T, 2)])],
    "lonely": [({"host": "a"}, [(T, 1)]), ({"host": "a", "rank": "0"}, [(T, 2)])],
    "decimal": [({"host": "a"}, [(T, 0.1), (T + 1, 1e300), (T + 2, -2.5e-7), (T + 3, 2.0 ** 63), (T + 4, 1 / 3)])],
    "quarter": [({"host": "a"}, [(T + 0.25, 1), (T + 0.5, 2), (T + 0.75, 3), (T + 1, 4)])],
    "early": [({"host": "a"}, [(T + 10 * i, 10 * i) for i in range(10)])],
}


def each(times, values):
    return {str(t): v for t, v in zip(times, values)}


# name, m, other parameters, expected dps (a dict, or a list with a dict per series, ordered by
# tags)
FACTS = [
    ("sum", "sum:l", {}, each(L_TIMES, [301] * 300)),
    ("rate", "sum:rate:l{host=web01}", {}, each(L_TIMES[1:], [1 / 30] * 299)),
    ("counter over its maximum", "sum:rate{counter,100}:counter", {}, each([T + 30, T + 60], [1, 1])),
    ("counter reset", "sum:rate{counter,10000,35}:reset", {}, each([T + 30, T + 60], [1, 0])),
    ("counter, resets dropped", "sum:rate{dropcounter}:counter", {}, each([T + 30], [1])),
    ("rate seeds from the point before the range", "sum:rate:early", {"start": T + 50},
     each([T + 10 * i for i in range(5, 10)], [1] * 5)),
    ("buckets are multiples of the interval", "sum:1000s-avg:uneven", {"start": T - 400},
     each([T - 400, T + 1600, T + 3600, T + 6600, T + 8600], [40, 50, 45, 40, 50])),
    ("buckets before the start are dropped", "sum:1000s-avg:uneven", {},
     each([T + 1600, T + 3600, T + 6600, T + 8600], [50, 45, 40, 50])),
    ("10s-sum", "sum:10s-sum:powers", {}, each([T + 10 * i for i in range(6)], [3, 12, 48, 192, 768, 1024])),
    ("0all leaves out the end", "sum:0all-sum:small_powers", {"start": T + 15, "end": T + 45}, each([T + 15], [14])),
    ("1m-avg", "sum:1m-avg:l{host=web01}", {},
     each([T + 60 * i for i in range(151)], [1] + [2 * i + 0.5 for i in range(1, 150)] + [300])),
    ("1m-count", "sum:1m-count:l{host=web01}", {}, each([T + 60 * i for i in range(151)], [1] + [2] * 149 + [1])),
    ("0all-sum", "sum:0all-sum:l{host=web01}", {}, each([T], [45150])),
    # OpenTSDB truncates these values to whole numbers (149, 148 …); sonde computes with doubles.
    ("dev", "dev:l", {}, each(L_TIMES, [abs(2 * i - 301) / 2 for i in range(1, 301)])),
    ("zimsum", "zimsum:lo", {}, each([t + d for t in L_TIMES for d in (0, 15)], [v for i in range(300) for v in (i + 1, 300 - i)])),
    ("sum interpolates", "sum:ab", {}, each([T, T + 10, T + 20, T + 30], [40, 87, 108, 70])),
    ("pfsum holds", "pfsum:ab_gap", {}, each([T, T + 10, T + 20, T + 30], [40, 77, 88, 70])),
    # Quantiles over series of whole numbers are whole numbers; quantiles of a bucket are not.
    ("p50 of a bucket", "sum:0all-p50:thousand", {}, each([T], [500.5])),
    ("p95 of a bucket", "sum:0all-p95:thousand", {}, each([T], [950.95])),
    ("p999 of a bucket", "sum:0all-p999:thousand", {}, each([T], [999.999])),
    ("p50 of series", "p50:thousand_series", {}, each([T], [500])),
    ("p95 of series", "p95:thousand_series", {}, each([T], [950])),
    ("p999 of series", "p999:thousand_series", {}, each([T], [999])),
    ("ep50r7 of a bucket", "sum:0all-ep50r7:thousand", {}, each([T], [500.5])),
    ("median", "median:five", {}, each([T], [3])),
    ("a date", "sum:dated", {"start": "2012/12/20-12:42:42", "end": "2012/12/20-12:42:42"}, each([1356007362], [1])),
    ("a date with a blank", "sum:dated", {"start": "2012/12/20 12:42", "end": "2012/12/20"}, None),
    ("a date in a time zone", "sum:dated", {"start": "2012/12/20-13:42:42", "end": "2012/12/20-13:42:42", "tz": "Europe/Berlin"},
     each([1356007362], [1])),
    ("ms stamps", "sum:dated", {"start": 1356007362000, "end": "1356007362000ms"}, each([1356007362], [1])),
    ("seconds with a fraction", "sum:quarter", {"start": f"{T}.500", "end": f"{T}.500", "ms": ""}, each([T * 1000 + 500], [2])),
    ("wildcard", "sum:named{host=wildcard(ogg*ops*ank*com)}", {}, [each([T], [1]), each([T], [2])]),
    ("wildcard minds case", "sum:named{host=wildcard(Ogg*)}", {}, []),
    ("iwildcard does not", "none:named{host=iwildcard(Ogg*)}", {}, [each([T], [1]), each([T], [2])]),
    ("none", "none:l", {"start": T + 30, "end": T + 30}, [each([T + 30], [1]), each([T + 30], [300])]),
    ("group by", "sum:l{host=*}", {"start": T + 30, "end": T + 30}, [each([T + 30], [1]), each([T + 30], [300])]),
    ("literal_or groups", "sum:l{host=web02|web01}", {"start": T + 30, "end": T + 30}, [each([T + 30], [1]), each([T + 30], [300])]),
    ("behind the second brace nothing groups", "sum:l{}{host=web0*}", {"start": T + 30, "end": T + 30}, each([T + 30], [301])),
    ("not_literal_or", "sum:l{}{host=not_literal_or(web01)}", {"start": T + 30, "end": T + 30}, each([T + 30], [300])),
    ("regexp", "sum:l{}{host=regexp(b0[2-9])}", {"start": T + 30, "end": T + 30}, each([T + 30], [300])),
    ("not_key", "sum:lonely{}{rank=not_key()}", {}, each([T], [1])),
    ("explicit tags", "sum:explicit_tags:lonely{host=a}", {}, each([T], [1])),
    ("numbers read back as the same", "sum:decimal", {}, each([T + i for i in range(5)], [0.1, 1e300, -2.5e-7, 2.0 ** 63, 1 / 3])),
    ("of a second the last point counts", "sum:quarter", {}, each([T, T + 1], [3, 4])),
    ("ms", "sum:quarter", {"ms": ""}, each([T * 1000 + d for d in (250, 500, 750, 1000)], [1, 2, 3, 4])),
    ("both ends count", "sum:early", {"start": T + 10, "end": T + 30}, each([T + 10, T + 20, T + 30], [10, 20, 30])),
    ("nothing there", "sum:early", {"start": T + 1000, "end": T + 2000}, []),
    ("fill zero", "sum:10s-sum-zero:ab_gap{host=a}", {"end": T + 40}, each([T + 10 * i for i in range(5)], [40, 0, 0, 70, 0])),
    ("fill none", "sum:10s-sum:ab_gap{host=a}", {"end": T + 40}, each([T, T + 30], [40, 70])),
    ("fill nan, as text", "sum:10s-sum-nan:ab_gap{host=a}", {"end": T + 40}, each([T + 10 * i for i in range(5)], [40, "NaN", "NaN", 70, "NaN"])),
    ("fill null", "sum:10s-sum-null:ab_gap{host=a}", {"end": T + 40}, each([T + 10 * i for i in range(5)], [40, None, None, 70, None])),
]


def aggregated(function, fill):
    """Aggregates M in the simplest way: at each time stamp, it applies the function to the values
    of all series."""
    result = {}
    for t in sorted({t for points in M.values() for t, _ in points}):
        values = [v for v in (fill(points, t) for points in M.values()) if v is not None]
        if values:
            result[str(t)] = function(values)
    return result


def linear(points, t):
    for (t0, v0), (t1, v1) in zip(points, points[1:]):
        if t0 <= t <= t1:
            return v0 + (v1 - v0) * (t - t0) / (t1 - t0)
    return None


def previous(points, t):
    if not points[0][0] <= t <= points[-1][0]:
        return None
    return [v for at, v in points if at <= t][-1]


def zero(points, t):
    return dict(points).get(t, 0)


def only(points, t):
    return dict(points).get(t)


def mean(values):
    return sum(values) / len(values)


def deviation(values):
    return math.sqrt(mean([(v - mean(values)) ** 2 for v in values]))


ON_M = [
    ("sum", sum, linear), ("min", min, linear), ("max", max, linear), ("avg", mean, linear), ("dev", deviation, linear),
    ("diff", lambda v: v[-1] - v[0], linear), ("mult", math.prod, linear),
    ("zimsum", sum, zero), ("squareSum", lambda v: sum(x * x for x in v), zero),
    ("mimmin", min, only), ("mimmax", max, only), ("pfsum", sum, previous),
]


class Facts:
    """Tests that run for every kind of file."""

    def check(self, got, expected):
        self.assertEqual(list(got), sorted(got, key=int), "stamps ascend")
        self.assertEqual(set(got), set(expected))
        for t, value in expected.items():
            if isinstance(value, (int, float)):
                self.assertAlmostEqual(got[t], value, delta=abs(value) * 1e-12, msg=f"at {t}")
            else:
                self.assertEqual(got[t], value, f"at {t}")

    def test_facts(self):
        for name, m, parameters, expected in FACTS:
            with self.subTest(name):
                if expected is None:
                    answer = self.server.get("/api/query", {"start": T, "end": END, "m": m, **parameters})
                    self.assert_error(answer, 400, "")  # the end is before the start
                    continue
                got = self.query(m, **parameters)
                expected = [expected] if isinstance(expected, dict) else expected
                self.assertEqual(len(got), len(expected), got)
                for series, dps in zip(got, expected):
                    self.check(series["dps"], dps)

    def test_aggregators_on_two_uneven_series(self):
        for name, function, fill in ON_M:
            with self.subTest(name):
                self.check(self.query(f"{name}:m")[0]["dps"], aggregated(function, fill))

    def test_tags(self):
        self.assertEqual([(s["metric"], s["tags"], s["aggregateTags"]) for s in self.query("sum:l")], [("l", {"dc": "lga"}, ["host"])])
        self.assertEqual([(s["tags"], s["aggregateTags"]) for s in self.query("sum:l{host=*}")],
                         [({"dc": "lga", "host": "web01"}, []), ({"dc": "lga", "host": "web02"}, [])])
        # Tags are an object, even if there are none.
        self.assertEqual([(s["tags"], s["aggregateTags"]) for s in self.query("sum:five")], [({}, ["host"])])
        # A key that some of the aggregated series lack stays in the tags.
        self.assertEqual([(s["tags"], s["aggregateTags"]) for s in self.query("sum:lonely")], [({"host": "a", "rank": "0"}, [])])

    def test_every_point_is_counted(self):
        status = self.server.get("/sonde/v1/status").json
        self.assertEqual(status["points"] - getattr(self, "grown", 0), sum(len(points) for series in DATA.values() for _, points in series))

    def test_a_series_is_found_once(self):
        for metric, series in DATA.items():
            found = self.server.get("/api/search/lookup", {"m": metric, "limit": 0}).json["results"]
            self.assertEqual(len(found), len(series))

    def test_errors(self):
        for parameters, message in [
            ({"m": "sum:10m-avg-badbadbad:l"}, "Unrecognized fill policy: badbadbad"),
            ({"m": "sum:10m-none:l"}, ""),
            ({"m": "nope:l"}, "nope"),
            ({"m": "sum:l{host=wildcard(web)}"}, ""),
            ({"m": "sum"}, ""),
            ({"m": "sum:unheard.of"}, "No such name for 'metrics': 'unheard.of'"),
            ({"m": "sum:l", "start": ""}, "start"),
            ({"m": "sum:l", "start": "yesterday"}, ""),
            ({"m": "sum:l", "start": END, "end": T}, "end"),
            ({}, "m"),
        ]:
            with self.subTest(str(parameters)):
                self.assert_error(self.server.get("/api/query", {"start": T, "end": END, **parameters}), 400, message)


def fill(folder):
    writer = Writer(f"{folder}/node1.sonde")
    for metric, series in DATA.items():
        for tags, points in series:
            writer.points(metric, tags, points)
    return writer


class Closed(Facts, Case):
    @classmethod
    def write(cls, folder):
        fill(folder).close()


class Live(Facts, Case):
    @classmethod
    def write(cls, folder):
        cls.writer = fill(folder)
        cls.addClassCleanup(cls.writer.close)
        cls.writer.sync()

    def test_new_points_and_series_show_at_once(self):
        for i in range(3):
            self.writer.points("growing", {"host": f"h{i}"}, [(T + i, i)])
            self.writer.sync()
            type(self).grown = i + 1
            self.assertEqual(self.query("zimsum:growing")[0]["dps"], {str(T + k): k for k in range(i + 1)})

    def test_state(self):
        self.assertEqual([f["state"] for f in self.server.get("/sonde/v1/status").json["files"]], ["live"])


class Sealed(Facts, Case):
    @classmethod
    def write(cls, folder):
        cls.writer = fill(folder)
        cls.addClassCleanup(cls.writer.close)
        cls.writer.seal()
        cls.writer.sync()


class Crashed(Facts, Case):
    @classmethod
    def write(cls, folder):
        fill(folder).crash()

    def test_state(self):
        self.assertEqual([f["state"] for f in self.server.get("/sonde/v1/status").json["files"]], ["crashed"])


class Spread(Facts, Case):
    """Every other point is in a second file, as with several runs or nodes. A query reads all files
    as one."""
    @classmethod
    def write(cls, folder):
        writers = [Writer(f"{folder}/node{i}.sonde") for i in range(2)]
        for metric, series in DATA.items():
            for tags, points in series:
                for i, writer in enumerate(writers):
                    writer.points(metric, tags, points[i::2])
        for writer in writers:
            writer.close()


if __name__ == "__main__":
    unittest.main()
