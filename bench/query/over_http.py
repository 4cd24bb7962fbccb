"""Measures the queries of a dashboard over HTTP, with the same data in sonde, VictoriaMetrics and
Prometheus: 100 series at 10 Hz for an hour, written as single points. The queries compute averages
over 1 s, of each series and over all series. Two consecutive requests never have the same window,
except in `again`:

- `random`: windows of 300 s at random places; `sliding`: a window of 300 s that moves on by 5 s;
- `whole`: the hour as maxima of 60 s; `again`: the same window of 300 s each time;
- `first`: the first answer after the start of a server whose files are not in the page cache;
  `first_warm`: in the page cache;
- `refresh`: 20 panels of 5 series each; the window moves on by 5 s after each set of 20.

sonde is measured twice: with a closed recording, and with one that its agent has open (`…_live`).
VictoriaMetrics is measured without its cache of answers (-search.disableCache) and with it
(victoriametrics_cached); Prometheus has none. wrk is the client of all servers, with one connection
or, for random windows, also with 8 and 64."""

import os
import random
import shutil
import statistics
import sys
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from peers import Missing, report, say  # noqa: E402
from served import SERVERS, answer_ms, evict, percentages, serve, wrk  # noqa: E402

SERIES, SECONDS, RATE_HZ, WINDOW = 100, int(os.environ.get("SONDE_BENCH_HISTORY_SECONDS", "3600")), 10, 300
START = 1_700_000_000
SECONDS_EACH = int(os.environ.get("SONDE_BENCH_SECONDS", "3"))
SECONDS_CROWD = int(os.environ.get("SONDE_BENCH_CROWD_SECONDS", "10"))
CROWDS, FIRST_ROUNDS, PANELS = (8, 64), 15, 20


def data():
    source = random.Random(7)
    columns = {}
    for i in range(SERIES):
        columns[("load", (("panel", f"p{i % PANELS:02}"), ("series", f"s{i:03}")))] = percentages(source, SECONDS * RATE_HZ)
    return columns, [START * 1_000_000_000 + i * 1_000_000_000 // RATE_HZ for i in range(SECONDS * RATE_HZ)]


def starts(seed):
    source = random.Random(seed)
    return [START + source.randrange(SECONDS - WINDOW) for _ in range(4000)]


def questions(path):
    """Returns name of the measurement → paths that are requested in turn."""
    sliding = range(START, START + SECONDS - WINDOW, 5)
    asked = {}
    for fold in ("each", "all"):
        asked[f"{fold}_random"] = [path(fold, start, WINDOW) for start in starts(fold)]
        asked[f"{fold}_sliding"] = [path(fold, start, WINDOW) for start in sliding]
        asked[f"{fold}_again"] = [path(fold, START + SECONDS // 2, WINDOW)]
    asked["whole"] = [path("maxima", START, SECONDS)]
    asked["refresh"] = [path("each", start, WINDOW, f"p{panel:02}") for start in sliding for panel in range(PANELS)]
    return asked


def processor_ms(process):
    """Returns the processor time of all threads of a server, also of those that have ended."""
    clock = ~process.pid << 3 | 2  # as clock_getcpuclockid(3) makes it
    return time.clock_gettime(clock) * 1e3


def first(server, paths, cold):
    """Measures the first answer after the start of a server. Its files are not in the page cache if
    `cold`."""
    took, used = [], []
    for path in paths[:FIRST_ROUNDS]:
        server.stop()
        if cold:
            evict(server.folder)
        server.start()
        before_ms = processor_ms(server.process)
        took.append(answer_ms(server.port, path))
        used.append(processor_ms(server.process) - before_ms)
    return {"median_ms": round(statistics.median(took), 2), "max_ms": round(max(took), 2), "processor_ms": round(statistics.median(used), 2)}


def measure(name, server, path):
    results = {}
    for question, paths in questions(path).items():
        size = len(urllib.request.urlopen(f"http://127.0.0.1:{server.port}{paths[0]}", timeout=60).read())
        results[question] = wrk(server.port, paths, 1, SECONDS_EACH) | {"bytes": size}
        if name != "sonde_live" and question.endswith("random"):
            for clients in CROWDS:
                results[f"{question}_{clients}_clients"] = wrk(server.port, paths, clients, SECONDS_CROWD) | {"bytes": size}
    if name != "sonde_live":
        for fold in ("each", "all"):
            windows = [path(fold, start, WINDOW) for start in starts(fold)]
            results[f"{fold}_first"] = first(server, windows, True)
            results[f"{fold}_first_warm"] = first(server, windows, False)
    return results


def main():
    if not shutil.which("wrk"):
        say("wrk is not installed; skipped")
        return
    columns, stamps = data()
    results = {}
    for name, make, path in SERVERS:
        try:
            with make() as server:
                serve(server, columns, stamps)
                results[name] = measure(name, server, path)
        except Missing as e:
            say(f"{e} is not installed; skipped")
    without_peers = not set(results) - {"sonde", "sonde_live"}
    for name, answers in results.items():
        for question, theirs in answers.items():
            ours = results["sonde"][question]
            more = {key: value for key, value in theirs.items() if key != "median_ms"}
            if name == "sonde_live":
                report("query", f"http_{question}_live", theirs["median_ms"], "ms", **more)
            elif name == "sonde":
                if without_peers:
                    report("query", f"http_{question}", ours["median_ms"], "ms", **more)
            else:
                own = {f"own_{key}": ours[key] for key in ("p99_ms", "max_ms", "processor_ms", "per_s") if key in ours}
                report("query", f"http_{question}", ours["median_ms"], "ms", name, theirs["median_ms"], **own, **more)


main()
