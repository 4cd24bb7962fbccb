"""What Grafana's OpenTSDB data source (13.0) asks, and what it reads of the answers.

Its backend posts one query at a time with times in whole seconds and neither msResolution nor globalAnnotations. The interval of the
downsampling follows from the range and the width of the panel.
"""
import os
import random
import unittest

from harness import Case, T, Writer

RANGE_S = 300
SEED, ROUNDS = int(os.environ.get("SONDE_TEST_SEED") or 1), int(os.environ.get("SONDE_TEST_ROUNDS") or 1)
# Grafana rounds the range divided by the width: below the first number of ms to the second.
ROUNDED = [(10, 1), (15, 10), (35, 20), (75, 50), (150, 100), (350, 200), (750, 500), (1500, 1000), (3500, 2000), (7500, 5000)]


def downsampling(width_px, range_s=RANGE_S):
    ms = next(to for below, to in ROUNDED if range_s * 1000 / width_px < below)
    return f"{ms}ms" if ms < 1000 else f"{ms // 1000}s"


class DataSource(Case):
    @classmethod
    def write(cls, folder):
        writer = Writer(f"{folder}/a.sonde")
        # 100 a second, all of it in the middle of each second.
        writer.points("steps_total", {"host": "a"}, [(T + i / 10, 100 * ((i + 5) // 10)) for i in range(10 * RANGE_S + 1)])
        r, total = random.Random(SEED), 0
        points = []
        for i in range(20 * RANGE_S):
            total += r.choice([0, 0, 1, 50])
            if r.random() < 0.5:
                points.append((T + i / 20, total))
        writer.points("noise_total", {"host": "a"}, points[::2])
        writer.points("noise_total", {"host": "b"}, points[1::2])
        writer.close()

    def ask(self, arrays=True, **query):
        answer = self.server.post("/api/query" + ("?arrays=true" if arrays else ""), {"start": T, "end": T + RANGE_S, "queries": [query]})
        self.assertEqual(answer.status, 200, answer.raw)
        return answer.json

    def test_intervals_of_panels(self):
        self.assertEqual([downsampling(px) for px in (300, 500, 2000)], ["1s", "500ms", "200ms"])

    def test_a_rate_is_that_of_the_whole_second(self):
        for px in (300, 500, 700, 2000, 4000, 40000):
            for arrays in (True, False):
                got = self.ask(arrays, metric="steps_total", aggregator="sum", downsample=f"{downsampling(px)}-avg", rate=True, rateOptions={"counter": True, "dropResets": True})
                dps = got[0]["dps"] if arrays else got[0]["dps"].items()
                # The last bucket holds one point, not a whole second.
                values = [v for _, v in dps][:-1]
                self.assertGreaterEqual(len(values), RANGE_S - 2)
                self.assertEqual(set(values), {100}, (px, arrays))

    def test_less_than_a_second_is_a_second(self):
        """In every way to ask, and however the values are put together."""
        r = random.Random(SEED)
        for _ in range(20 * ROUNDS):
            aggregator, function = r.choice(["sum", "avg", "max", "none"]), r.choice(["avg", "sum", "min", "count", "last"])
            fill, rate, ms = r.choice(["", "-zero", "-nan", "-none"]), r.choice(["", "rate:", "rate{counter}:"]), r.choice([1, 10, 20, 50, 100, 200, 500, 999])
            start = T + r.randrange(RANGE_S - 20)

            def both(form, ask=self.query, **more):
                return [[(e["tags"], e["dps"]) for e in ask(form.replace("INTERVAL", f"{interval}-{function}{fill}"), start, start + 20, **more)] for interval in (f"{ms}ms", "1s")]
            m = f"{aggregator}:INTERVAL:{rate}noise_total"
            with self.subTest(seed=SEED, m=m, ms=ms, start=start):
                fine, whole = both(m)
                self.assertTrue(whole and whole[0][1])
                self.assertEqual(fine, whole)
                fine, whole = both(f"scale({m},2)", self.gexp)
                self.assertEqual(fine, whole)
                # With time stamps in ms every bucket has its own.
                fine, whole = both(m, ms="")
                self.assertNotEqual(fine, whole)

    def gexp(self, exp, start, end):
        answer = self.server.get("/api/query/gexp", {"start": start, "end": end, "exp": exp})
        self.assertEqual(answer.status, 200, answer.raw)
        return answer.json

    def test_two_intervals_in_one_request(self):
        """Each is answered: they are not the same query, and show_query says how each was understood."""
        got = self.server.get("/api/query", f"start={T}&m=sum:500ms-avg:steps_total&m=sum:1s-avg:steps_total&m=sum:500ms-avg:steps_total&show_query").json
        self.assertEqual([(e["query"]["index"], e["query"]["downsample"]) for e in got], [(0, "1s-avg"), (1, "1s-avg")])
        calendar = self.server.get("/api/query", {"start": T, "end": T + 9, "m": "sum:500ms-avg:steps_total", "use_calendar": ""}).json
        self.assertEqual(list(calendar[0]["dps"].values()), list(got[0]["dps"].values())[:10])


if __name__ == "__main__":
    unittest.main()
