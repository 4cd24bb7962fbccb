"""Makes points and queries from a seed, in the forms that OpenTSDB's clients use."""
import json
from urllib.parse import quote

T = 1356998400
SPAN = 900  # seconds with points
LONG_SPAN = 4 * 3600  # seconds with points of the metric "long", which has several rows in OpenTSDB
DAY = 86400
# The times of the metrics "days" and "young", which are for calendar intervals.
DAYS_FROM, YOUNG_FROM, DAYS_TO = T - 150 * DAY, T + 20 * DAY, T + 300 * DAY
HOSTS, DCS, GPUS = ["web01", "web02", "db01"], ["lga", "sjc"], ["0", "1"]
AGGREGATORS = ["sum", "min", "max", "avg", "dev", "count", "first", "last", "median", "mult", "diff", "zimsum", "mimmin", "mimmax", "pfsum", "squareSum", "none",
               "p50", "p75", "p90", "p95", "p99", "p999", "ep50r3", "ep90r3", "ep50r7", "ep95r7"]
DOWNSAMPLERS = [a for a in AGGREGATORS if a not in ("none", "mult", "diff")] + ["diff"]
INTERVALS = ["500ms", "1s", "5s", "7s", "10s", "30s", "1m", "5m", "1h", "0all"]
CALENDARS = {"m": [5, 7, 90], "h": [1, 5, 6, 12, 36], "d": [1, 2, 3, 5, 10], "w": [1, 2, 3], "n": [1, 2, 3, 5, 7], "y": [1, 2]}
UNIT_S = {"m": 60, "h": 3600, "d": DAY, "w": 7 * DAY, "n": 30 * DAY, "y": 365 * DAY}
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Sydney", "America/St_Johns"]
FILLS = ["", "", "none", "nan", "null", "zero"]
PATTERNS = {
    "host": ["literal_or(web01|db01)", "iliteral_or(WEB01)", "not_literal_or(web01)", "not_iliteral_or(DB01|web02)", "wildcard(web*)", "wildcard(*)", "iwildcard(WEB*)",
             "regexp(web0[12])", "regexp(^db)", "*", "web01", "web01|db01", "web*", "nobody"],
    "dc": ["literal_or(lga)", "wildcard(*)", "regexp(l.a|s.c)", "*", "lga", "lga|sjc"],
    "gpu": ["literal_or(0|1)", "wildcard(*)", "not_key()", "*", "0"],
}
UNKNOWN_KEY = {"rack": ["literal_or(a|b)", "not_literal_or(a)", "wildcard(*)", "*", "a", "regexp(a.*)"]}


def number(value):
    """Returns the number as OpenTSDB stores it: a whole number unchanged, another one as a
    float."""
    return value if isinstance(value, int) else round(value * 8) / 8


def series_of(random):
    """Returns [(metric, tags, [(ms, value)])]: gauges, counters, irregular and sparse series, whole
    and mixed numbers, times with fractions of a second."""
    made = []

    def add(metric, tags, times, value):
        made.append((metric, tags, [(t, number(value(i))) for i, t in enumerate(times)]))

    for host in HOSTS:
        for dc in DCS:
            tags = {"host": host, "dc": dc}
            shift = random.choice([0, 0, 5])
            add("cpu", tags, [1000 * (T + shift + t) for t in range(0, SPAN, 10) if random.random() < 0.9], lambda i: random.uniform(-50, 100))
            total = random.randrange(1000)

            def count(i):
                nonlocal total
                total = random.randrange(100) if random.random() < 0.05 else total + random.randrange(500)
                return total
            add("bytes", tags, [1000 * (T + t) for t in range(0, SPAN, 15)], count)
            add("whole", tags, sorted(1000 * (T + random.randrange(SPAN)) for _ in range(40)), lambda i: random.randrange(-100, 1000))
            add("fine", tags, [1000 * T + 250 * t for t in range(random.randrange(4), 4 * 120, random.choice([1, 2, 3]))], lambda i: random.gauss(10, 5))
    for host in HOSTS:
        add("sparse", {"host": host}, sorted(1000 * (T + random.randrange(SPAN)) for _ in range(4)), lambda i: random.uniform(0, 10))
        add("mixed", {"host": host}, [1000 * (T + t) for t in range(0, SPAN, 20)], lambda i: random.choice([random.randrange(100), random.uniform(0, 100)]))
        add("long", {"host": host}, sorted(1000 * (T + random.randrange(LONG_SPAN)) for _ in range(random.choice([6, 60, 400]))), lambda i: random.uniform(0, 10))
        add("days", {"host": host}, [1000 * t for t in range(DAYS_FROM + random.randrange(DAY), DAYS_TO, 9 * 3600 + random.randrange(600))], lambda i: random.randrange(80) / 8)
        for gpu in GPUS:
            add("lone", {"host": host, "gpu": gpu}, [1000 * (T + t) for t in range(0, SPAN, 30)], lambda i: random.uniform(0, 1))
    add("young", {"host": "web01"}, [1000 * t for t in range(YOUNG_FROM + random.randrange(DAY), DAYS_TO, 11 * 3600)], lambda i: random.randrange(80) / 8)
    add("lone", {"host": "web01"}, [1000 * (T + t) for t in range(0, SPAN, 60)], lambda i: random.uniform(0, 1))
    # Each series keeps one value per time stamp, because the test does not cover duplicates.
    return [(metric, tags, sorted(dict(points).items())) for metric, tags, points in made]


METRICS = ["cpu", "bytes", "whole", "fine", "sparse", "mixed", "lone", "long"]


def text_of_time(ms, form):
    return {"s": str(ms // 1000), "ms": str(ms), "dot": f"{ms // 1000}.{ms % 1000:03}"}[form]


def filters_of(random, get):
    """Returns random filters as [(key, pattern, True if the filter groups)]. A filter in a short
    form always groups."""
    made = []
    patterns = PATTERNS if random.random() < 0.97 else UNKNOWN_KEY
    for key in random.sample(sorted(patterns), random.choice([0, 0, 1, 1, 2]) if patterns is PATTERNS else 1):
        pattern = random.choice(patterns[key])
        made.append((key, pattern, "(" not in pattern or random.random() < (0.8 if get else 0.5)))
    return made


def downsample_of(random):
    if random.random() < 0.3:
        return None
    return (random.choice(INTERVALS), random.choice(DOWNSAMPLERS), random.choice(FILLS))


def calendar_of(random, metric):
    """Returns a downsampling with a calendar interval, and the begin and end of a range of at most
    40 such intervals. For the metric "young", the range begins before its first point."""
    unit = random.choice(sorted(CALENDARS))
    count = random.choice(CALENDARS[unit])
    start = random.randrange(DAYS_FROM, DAYS_TO) if metric == "days" else max(YOUNG_FROM - random.randrange(1, 20 * count * UNIT_S[unit]), DAYS_FROM - 3 * 365 * DAY)
    return (f"{count}{unit}c", random.choice(DOWNSAMPLERS), random.choice(["", "none"])), start, start + random.randrange(1, 40 * count * UNIT_S[unit])


def rate_of(random):
    if random.random() < 0.7:
        return None
    options = {}
    if random.random() < 0.5:
        options["counter"] = True
        if random.random() < 0.5:
            options["counterMax"] = random.choice([1000, 65535, 2**32 - 1])
            if random.random() < 0.5:
                options["resetValue"] = random.choice([10, 1000])
        if random.random() < 0.3:
            options["dropResets"] = True
    return options


def rate_words(options):
    if not options:
        return "rate"
    if options.get("dropResets"):
        return "rate{dropcounter}"
    words = ["counter"] + [str(options[k]) for k in ("counterMax", "resetValue") if k in options]
    return "rate{" + ",".join(words) + "}"


def plan_of(random):
    """Returns the plan of a random request; request_of() writes the request."""
    metric = random.choice(METRICS) if random.random() < 0.92 else random.choice(["days", "young"])
    span = LONG_SPAN if metric == "long" else SPAN
    start = 1000 * T + random.choice([0, 0, 1000 * random.randrange(-60, span), random.randrange(1000 * span)])
    end = start + random.choice([1000 * span, 1000 * random.randrange(1, span), 1000 * random.randrange(1, 60), random.randrange(1, 60000)])
    downsample, zone = downsample_of(random), None
    if metric in ("days", "young"):
        downsample, start, end = calendar_of(random, metric)
        start, end = 1000 * start, 1000 * end
    get = random.random() < 0.5
    if metric in ("days", "young"):
        # OpenTSDB accepts a time zone for intervals only in bodies.
        zone = "UTC" if get else random.choice(ZONES)
    times = [random.choice(["s", "ms", "dot"] if get else ["s", "ms"]) for _ in range(2)]
    if random.random() < 0.01:  # a range whose end is its start
        end, times = start, times[:1] * 2
    start, end = (ms // 1000 * 1000 if form == "s" else ms for ms, form in zip((start, end), times))
    return {"get": get, "start": start, "end": end, "times": times, "metric": metric, "aggregator": random.choice(AGGREGATORS),
            "downsample": downsample, "zone": zone, "rate": rate_of(random) if zone is None else None, "explicit": random.random() < 0.1, "filters": filters_of(random, get),
            "order": random.random(), "flags": [flag for flag in ("ms", "arrays") if random.random() < 0.4]}


def m_of(plan):
    def braces(filters):
        return "{" + ",".join(f"{key}={pattern}" for key, pattern, _ in filters) + "}"
    options = ["-".join(plan["downsample"]).rstrip("-").replace("--", "-")] if plan["downsample"] else []
    options += [rate_words(plan["rate"])] if plan["rate"] is not None else []
    options += ["explicit_tags"] if plan["explicit"] else []
    if plan["order"] < 0.5:
        options.reverse()
    grouping, plain = ([f for f in plan["filters"] if f[2] == groups] for groups in (True, False))
    tags = braces(grouping) + (braces(plain) if plain else "") if plan["filters"] else ""
    return ":".join([plan["aggregator"], *options, plan["metric"] + tags])


def body_of(plan):
    query = {"metric": plan["metric"], "aggregator": plan["aggregator"]}
    if plan["downsample"]:
        query["downsample"] = "-".join(plan["downsample"]).rstrip("-").replace("--", "-")
    if plan["rate"] is not None:
        query["rate"] = True
        if plan["rate"]:
            query["rateOptions"] = plan["rate"]
    if plan["explicit"]:
        query["explicitTags"] = True
    for key, pattern, groups in plan["filters"]:
        kind, _, rest = pattern.partition("(")
        if rest:
            query.setdefault("filters", []).append({"type": kind, "tagk": key, "filter": rest[:-1], "groupBy": groups})
        else:
            query.setdefault("tags", {})[key] = pattern
    start, end = (plan[key] // 1000 if form == "s" else plan[key] for key, form in zip(("start", "end"), plan["times"]))
    return {"start": start, "end": end, "queries": [query], **({"msResolution": True} if "ms" in plan["flags"] else {}),
            **({"timezone": plan["zone"]} if plan["zone"] else {})}


def request_of(plan):
    """Returns the plan's request as (method, target, body)."""
    if not plan["get"]:
        return "POST", "/api/query" + ("?arrays" if "arrays" in plan["flags"] else ""), json.dumps(body_of(plan))
    start, end = (text_of_time(plan[key], form) for key, form in zip(("start", "end"), plan["times"]))
    return "GET", f"/api/query?start={start}&end={end}&m={quote(m_of(plan))}" + "".join(f"&{flag}" for flag in plan["flags"]), None
