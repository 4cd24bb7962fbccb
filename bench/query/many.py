"""Measures queries of many small things, in sonde (`sonde replay`), VictoriaMetrics without its
cache of answers, and Prometheus. Two consecutive requests are never equal.

- `recordings_100_…`: 100 recordings, each of one host, with 10 series at 1 Hz for an hour. Averages
  over 1 s in windows of 300 s at random places: over all hosts, 10 averages (`all`) or one of them
  (`one`); of a host, each of its 10 series (`host`). `first` is the first `one` after the start of
  a server. `recordings_1000_…`: 1,000 such recordings of 10 minutes.
- `million_…`: a million series, 100 metrics of 10,000 devices each, with 5 points each. The names
  of the metrics (`metrics`), the devices that begin with a text (`prefix`), the devices of a metric
  (`devices`), the series of a device (`device`), the points of a series (`points`), the average
  over the 10,000 series of a metric (`average`). `first` is the first `points` after the start of a
  server."""

import os
import random
import shutil
import statistics
import sys
import urllib.request
from urllib.parse import quote

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from peers import Missing, Prometheus, VictoriaMetrics, report, say  # noqa: E402
from served import TOKEN, ImportedSonde, answer_ms, serve, wrk  # noqa: E402
from served import percentages, prometheus_query, sonde_query  # noqa: E402

START, WINDOW = 1_700_000_000, 300
RECORDINGS, ITEMS = ((100, 3600), (1000, 600)), 10  # hosts, seconds
METRICS, DEVICES, POINTS, STEP = 100, 10_000, 5, 10
SECONDS_EACH = int(os.environ.get("SONDE_BENCH_SECONDS", "3"))
PATHS, FIRST_ROUNDS = 1000, 5
SERVERS = (("sonde", ImportedSonde), ("victoriametrics", VictoriaMetrics), ("prometheus", Prometheus))


def recordings(hosts, seconds):
    source = random.Random(7)
    columns = {}
    for host in range(hosts):
        for item in range(ITEMS):
            columns[("load", (("host", f"h{host:03}"), ("item", f"i{item}")))] = percentages(source, seconds)
    return columns, [(START + i) * 1_000_000_000 for i in range(seconds)]


def million():
    source = random.Random(8)
    columns = {(f"m{metric:02}", (("device", f"d{device:04}"),)): [source.randrange(1000) / 10 for _ in range(POINTS)]
               for metric in range(METRICS) for device in range(DEVICES)}
    return columns, [(START + i * STEP) * 1_000_000_000 for i in range(POINTS)]


def questions_of_recordings(ours, hosts, seconds):
    """Returns name of the question → paths that are requested in turn."""
    source = random.Random(9)
    draws = [(START + source.randrange(seconds - WINDOW), source.randrange(ITEMS), source.randrange(hosts)) for _ in range(PATHS)]

    def paths(m, query):
        tags = [(start, {"item": f"i{item}", "host": f"h{host:03}"}) for start, item, host in draws]
        return [sonde_query(m % one, start, WINDOW) if ours else prometheus_query(query % one, start, WINDOW, 1) for start, one in tags]
    return {"all": paths("avg:1s-avg:load{item=*}", "avg by (item) (avg_over_time(load[1s]))"),
            "one": paths("avg:1s-avg:load{item=%(item)s}", 'avg(avg_over_time(load{item="%(item)s"}[1s]))'),
            "host": paths("none:1s-avg:load{host=%(host)s}", 'avg_over_time(load{host="%(host)s"}[1s])')}


def questions_of_million(ours):
    source = random.Random(10)
    draws = [(f"m{source.randrange(METRICS):02}", f"d{source.randrange(DEVICES):04}") for _ in range(PATHS)]
    seconds = POINTS * STEP
    times, token = f"start={START}&end={START + seconds}", f"token={TOKEN}"
    if ours:
        return {"metrics": [f"/api/suggest?type=metrics&max={METRICS + i}&{token}" for i, _ in enumerate(draws)],
                "prefix": [f"/api/suggest?type=tagv&max={DEVICES}&q={device[:3]}&{token}" for _, device in draws],
                "devices": [f"/api/search/lookup?limit=0&{token}&m=" + quote(metric + "{device=*}") for metric, _ in draws],
                "device": [f"/api/search/lookup?limit=0&{token}&m=" + quote("{device=%s}" % device) for _, device in draws],
                "points": [sonde_query("none:%s{device=%s}" % draw, START, seconds) for draw in draws],
                "average": [sonde_query(f"avg:10s-avg:{metric}", START, seconds) for metric, _ in draws]}
    return {"metrics": [f"/api/v1/label/__name__/values?start={START - i}&end={START + seconds}" for i, _ in enumerate(draws)],
            "prefix": [f"/api/v1/label/device/values?{times}&match[]=" + quote('{device=~"%s.*"}' % device[:3]) for _, device in draws],
            "devices": [f"/api/v1/label/device/values?{times}&match[]={metric}" for metric, _ in draws],
            "device": [f"/api/v1/series?{times}&match[]=" + quote('{device="%s"}' % device) for _, device in draws],
            "points": [prometheus_query('avg_over_time(%s{device="%s"}[10s])' % draw, START, seconds, STEP) for draw in draws],
            "average": [prometheus_query(f"avg(avg_over_time({metric}[10s]))", START, seconds, STEP) for metric, _ in draws]}


def measure(server, questions, first):
    results = {}
    for question, paths in questions.items():
        size = len(urllib.request.urlopen(f"http://127.0.0.1:{server.port}{paths[0]}", timeout=600).read())
        results[question] = wrk(server.port, paths, 1, SECONDS_EACH) | {"bytes": size}
    took = []
    for path in questions[first][:FIRST_ROUNDS]:
        server.stop()
        server.start()
        took.append(answer_ms(server.port, path))
    results["first"] = {"median_ms": statistics.median(took), "max_ms": max(took)}
    return results


def compare(name, data, questions, first):
    columns, stamps = data
    ours = {}
    for peer, make in SERVERS:
        try:
            with make() as server:
                serve(server, columns, stamps)
                results = measure(server, questions(peer == "sonde"), first)
        except Missing as e:
            say(f"{e} is not installed; skipped")
            continue
        ours = ours or results
        for question, theirs in results.items():
            own, more = ours[question], {key: round(value, 2) for key, value in theirs.items() if key != "median_ms"}
            if peer == "sonde":
                report("query", f"{name}_{question}", round(own["median_ms"], 3), "ms", **more)
            else:
                report("query", f"{name}_{question}", round(own["median_ms"], 3), "ms", peer, round(theirs["median_ms"], 3), **more)


def main():
    if not shutil.which("wrk"):
        say("wrk is not installed; skipped")
        return
    for hosts, seconds in RECORDINGS:
        compare(f"recordings_{hosts}", recordings(hosts, seconds), lambda ours: questions_of_recordings(ours, hosts, seconds), "one")
    compare("million", million(), questions_of_million, "points")


main()
