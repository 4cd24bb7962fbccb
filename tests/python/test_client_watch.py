"""Watches of a query: new points as they arrive, from a job or a growing recording."""

import contextlib
import json
import os
import time
import urllib.error
import urllib.request

from client_place import Asking
from place import main, until

import sonde


class Watching(Asking):
    def test_reacts(self):
        """Every point that meets the condition is reported once, and no earlier one; an exception
        of the callback does not end the watch."""
        out = json.loads(self.run_it("""
            import logging
            logging.disable(logging.CRITICAL)
            m = sonde.gauge("load", tags={"rank": 3})
            m(99)
            client = sonde.AnalysisClient()
            client.connect(timeout=300)
            while "load" not in client.get_metrics(): time.sleep(0.01)
            seen, every, raised, first = [], [], [], []
            def act(series, time_ns, value):
                seen.append([series.metric, series.tags["rank"], value, time.time_ns() - time_ns])
            def bad(series, time_ns, value):
                raised.append(value)
                raise ValueError
            watches = [client.watch("load{rank=*}", "> 90", act), client.watch("load{rank=3}", None, lambda s, t, v: every.append(v)),
                       client.watch("load", lambda v: v % 2 == 1, bad), client.watch("load{rank=4}", "> 0", act), client.watch("not_yet", ">= 1", lambda s, t, v: first.append(v))]
            for i in range(85, 96): m(i); time.sleep(0.01)
            sonde.emit("not_yet", 1)
            while len(every) < 11 or len(seen) < 5 or len(raised) < 6 or not first: time.sleep(0.01)
            alive = [w.alive for w in watches]
            for w in watches: w.stop()
            m(100)
            print(json.dumps([seen, every, raised, first, alive, [w.alive for w in watches], [repr(w.error) for w in watches]]))
        """))
        seen, every, raised, first, alive, after, errors = out
        self.assertEqual([s[:3] for s in seen], [["load", "3", v] for v in range(91, 96)])
        self.assertEqual((every, raised, first), (list(range(85, 96)), [85, 87, 89, 91, 93, 95], [1]))
        self.assertEqual((alive, after, errors), ([True] * 5, [False] * 5, ["None"] * 5))

    def test_goes_on_behind_an_outage(self):
        self.start_job("-l", "1", "--no-record")
        [job] = json.loads(self.sonde("status", "--json").stdout)
        client = sonde.AnalysisClient()
        client.connect(timeout=300)
        seen = []
        with client.watch("x", None, lambda series, t, value: seen.append(value)) as watch:
            self.assertEqual(self.sonde("put", "x", "1").returncode, 0)
            until(lambda: seen == [1], "the first point")
            [aggregator] = self.alive("aggregator --")
            os.kill(aggregator, 9)
            self.assertEqual(self.sonde("put", "x", "2").returncode, 0)
            until(lambda: seen == [1, 2], "the point of the outage")
            self.assertTrue(watch.alive)
        self.assertTrue(job["url"])

    def answered(self, client):
        """Returns the number of requests that the job's workers have answered."""
        return json.loads(client._open().ask("/sonde/v1/status"))["workers"]["answered"]

    def test_a_stream_brings_the_points(self):
        """No queries are sent while the stream is open; the points equal those of a query."""
        self.start_job()
        with sonde.AnalysisClient() as client:
            seen = []
            with client.watch("x{k=*}", None, lambda series, t, value: seen.append((series.metric, series.kind, series.tags["k"], value))):
                self.sonde("put", "x", "0", "k=a")
                until(lambda: seen, "the first point")  # the stream is open, or will be at once
                self.sonde("put", "x", "1", "k=a")
                until(lambda: len(seen) == 2, "the second point")
                before = self.answered(client)
                for i, value in enumerate(("2", "inf", "-inf", "1e300", "0.1")):
                    self.sonde("put", stdin=f"x {value} k=b\n")
                    until(lambda: len(seen) == 3 + i, f"the point {value}")
                self.assertEqual(self.answered(client) - before, 1)
        self.assertEqual(seen, [("x", "gauge", k, v) for k, v in (("a", 0), ("a", 1), ("b", 2), ("b", float("inf")), ("b", float("-inf")), ("b", 1e300), ("b", 0.1))])

    def test_what_a_stream_cannot_follow_is_asked_for(self):
        """A stream cannot follow several values, patterns and rates; nor can it follow a job that
        accepts no further streams."""
        url = self.start_job()
        with sonde.AnalysisClient() as client, contextlib.ExitStack() as ends:
            seen = {}
            token = next((self.tmp / f"sonde-{os.getuid()}").glob("*/token")).read_text().strip()
            for _ in range(64):
                answer = urllib.request.urlopen(urllib.request.Request(f"{url}/sonde/v1/stream?m=y", headers={"Authorization": f"Bearer {token}"}))
                ends.callback(answer.close)
            with self.assertRaises(urllib.error.HTTPError):
                urllib.request.urlopen(urllib.request.Request(f"{url}/sonde/v1/stream?m=y", headers={"Authorization": f"Bearer {token}"}))
            selections = ("x{k=a|b}", "x{k=*b}", "x{k=*}", "rate:x{k=b}")
            for selection in selections:
                ends.enter_context(client.watch(selection, None, lambda series, t, value, s=selection: seen.setdefault(s, []).append(value)))
            now_ms = time.time_ns() // 1_000_000
            self.sonde("put", stdin=f"put x {now_ms - 1000} 3 k=a\nput x {now_ms - 1000} 5 k=b\nput x {now_ms} 9 k=b\n")
            until(lambda: {s: sorted(v) for s, v in seen.items()} == {"x{k=a|b}": [3, 5, 9], "x{k=*b}": [5, 9], "x{k=*}": [3, 5, 9], "rate:x{k=b}": [4]},
                  lambda: f"all points: {seen}")

    def test_ends_with_words_when_it_cannot_go_on(self):
        url = self.start_job()
        client = sonde.AnalysisClient(url)
        client.connect(timeout=300)
        with self.assertLogs("sonde", "ERROR") as logged:
            watch = client.watch("x", None, print)
            client.close()
            until(lambda: not watch.alive, "the watch to end")
        self.assertIsInstance(watch.error, sonde.ClientError)
        self.assertIn("closed", logged.output[0])

    def test_of_a_folder(self):
        """A growing run folder is watched like a job."""
        self.start_job()
        [folder] = (self.tmp / f"sonde-{os.getuid()}").iterdir()
        until(lambda: list(folder.glob("*.sonde")), "the node's file")
        seen = []
        with sonde.AnalysisClient(folder) as client, client.watch("x", "== 7", lambda series, t, value: seen.append(value)):
            self.sonde("put", "x", "7")
            until(lambda: seen == [7], "the point")


if __name__ == "__main__":
    main()
