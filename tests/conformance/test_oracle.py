"""Compares sonde's /api/query with a released OpenTSDB, for points and queries from a seed. A rule
of opentsdb/differences.py must explain every difference.

Without Java, recorded answers replace OpenTSDB; `test_oracle.py --record` records new ones.
SONDE_TEST_SEED chooses other queries, SONDE_TEST_ROUNDS more of them.
"""
import collections
import gzip
import json
import os
import pathlib
import random
import re
import shutil
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE / "opentsdb"))

import random_queries  # noqa: E402
from differences import HOUR_MS, RULES, Answer, explain  # noqa: E402
from harness import Server, Writer  # noqa: E402
from server import OpenTSDB, why_not  # noqa: E402

SEED = 1
QUERIES = 2000
RECORDED = HERE / "opentsdb" / "recorded.json.gz"
RECORDED_QUERIES = 500
RECORDED_BYTES_MAX = 4000  # longer answers are not recorded
SERVERS_MAX = 16  # running servers of sonde, each with the points of some rows


def chosen(name, default):
    return int(os.environ.get(name) or default)


def sonde_with(series, rows):
    """Starts a server of sonde with all points, or with those in [rows[0], rows[1]) ms."""
    folder = tempfile.mkdtemp(prefix="sonde-oracle-")
    writer = Writer(f"{folder}/a.sonde")
    for metric in sorted({metric for metric, _, _ in series}):
        writer.metric(metric, "gauge", "-", "")  # so that a metric without points is known, too
    for metric, tags, points in series:
        writer.points(metric, tags, [(ms / 1000, value) for ms, value in points if rows is None or rows[0] <= ms < rows[1]])
    writer.close()
    return folder, Server(folder)


def part_with_points(plan, series):
    """Returns the range of points to which a rule restricts the plan, or None for all points. Hours
    without points are cut off, so that few stores are enough for all plans."""
    rows = plan.get("only_read")
    hours = {ms // HOUR_MS for metric, _, points in series for ms, _ in points if metric == plan["metric"]} if rows else None
    if not hours:
        return None
    first, end = min(hours) * HOUR_MS, (max(hours) + 1) * HOUR_MS
    rows = max(rows[0], first), min(rows[1], end)
    return None if rows == (first, end) else rows


def fill(tsdb, series):
    # OpenTSDB sorts series by the identifiers of their tags, sonde by their names. So the test
    # assigns identifiers in the order of the names.
    values = random_queries.HOSTS + random_queries.DCS + random_queries.GPUS
    for kind, names in (("metric", [*random_queries.METRICS, "days", "young"]), ("tagk", ["dc", "gpu", "host"]), ("tagv", values)):
        status, body = tsdb.request("GET", f"/api/uid/assign?{kind}={','.join(sorted(names))}")
        if status != 200:
            raise RuntimeError(f"OpenTSDB assigns no identifiers: {body[:500]}")
    tsdb.put([{"metric": metric, "timestamp": ms if ms % 1000 else ms // 1000, "value": value, "tags": tags}
              for metric, tags, points in series for ms, value in points])


def record():
    r = random.Random(SEED)
    series, kept = random_queries.series_of(r), []
    with OpenTSDB() as tsdb:
        fill(tsdb, series)
        while len(kept) < RECORDED_QUERIES:
            plan = random_queries.plan_of(r)
            status, body = tsdb.request(*random_queries.request_of(plan))
            if len(body) <= RECORDED_BYTES_MAX:
                kept.append([plan, status, body.decode()])
    text = json.dumps({"series": series, "answers": kept}, separators=(",", ":")).encode()
    RECORDED.write_bytes(gzip.compress(text, 9, mtime=0))


class Oracle(unittest.TestCase):
    maxDiff = None

    def compare(self, seed, series, answers):
        """Compares answers of OpenTSDB, given as (plan, status, body), with those of sonde. Returns
        how often each rule was needed."""
        servers = {}

        def stop(key):
            folder, server = servers.pop(key)
            server.stop()
            shutil.rmtree(folder)

        self.addCleanup(lambda: [stop(key) for key in list(servers)])

        def sonde(rows=None, metric=None):
            if (rows, metric) not in servers:
                if len(servers) == SERVERS_MAX:
                    stop(list(servers)[1])
                servers[rows, metric] = sonde_with([s for s in series if metric in (None, s[0])], rows)
            return servers[rows, metric][1]

        sonde()  # starts the server with all points, which runs until the end

        def ask(plan):
            method, target, body = random_queries.request_of(plan)
            rows = part_with_points(plan, series)
            answer = (sonde(rows, plan["metric"]) if rows else sonde()).request(method, target, body, {"Content-Type": "application/json"})
            return Answer(answer.status, answer.raw)

        seen, unexplained = collections.Counter(), []
        for plan, status, body in answers:
            rules = explain(plan, [points for metric, _, points in series if metric == plan["metric"]], (status, body), ask)
            seen.update(rules or ())
            if rules is None:
                method, target, sent = random_queries.request_of(plan)
                ours = sonde().request(method, target, sent, {"Content-Type": "application/json"})
                unexplained.append(f"{method} {target} {sent or ''}\n  OpenTSDB {status} {body[:600]!r}\n  sonde    {ours.status} {ours.raw[:600]!r}")
        print(f"oracle: seed {seed}, {len(unexplained)} unexplained; needed: {dict(seen)}", file=sys.stderr)
        self.assertEqual(len(unexplained), 0, f"seed {seed}: {len(unexplained)} answers differ, and no rule of differences.py says why:\n" + "\n".join(unexplained[:20]))
        return seen

    def assert_list_is_current(self, seen):
        self.assertEqual([rule.name for rule in RULES if not seen[rule.name]], [], "accepted differences that no query shows any more")

    def test_as_a_released_opentsdb(self):
        if why_not():
            self.skipTest(why_not())
        seed, count = chosen("SONDE_TEST_SEED", SEED), QUERIES * chosen("SONDE_TEST_ROUNDS", 1)
        r = random.Random(seed)
        series = random_queries.series_of(r)
        with OpenTSDB() as tsdb:
            fill(tsdb, series)
            plans = (random_queries.plan_of(r) for _ in range(count))
            seen = self.compare(seed, series, ((plan, *tsdb.request(*random_queries.request_of(plan))) for plan in plans))
        if seed == SEED:
            self.assert_list_is_current(seen)

    def test_the_documentation_lists_these_rules(self):
        text = (HERE / "../../docs/http.md").read_text()
        listed = re.findall(r"^\| `([A-Z_]+)` \|", text[text.index("## Where it differs from OpenTSDB"):], re.MULTILINE)
        self.assertEqual(sorted(listed), sorted(rule.name for rule in RULES))

    def test_as_opentsdb_was_recorded(self):
        recorded = json.loads(gzip.decompress(RECORDED.read_bytes()))
        self.assert_list_is_current(self.compare("recorded", recorded["series"], recorded["answers"]))


if __name__ == "__main__":
    if "--record" in sys.argv:
        record()
    else:
        unittest.main(verbosity=0)
