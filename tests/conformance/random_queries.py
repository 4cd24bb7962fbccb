"""Points and queries from a seed, in the forms that OpenTSDB's clients write them."""
import json
from urllib.parse import quote

T = 1356998400
SPAN = 900  # s that have points
HOSTS, DCS, GPUS = ["web01", "web02", "db01"], ["lga", "sjc"], ["0", "1"]
AGGREGATORS = ["sum", "min", "max", "avg", "dev", "count", "first", "last", "median", "mult", "diff", "zimsum", "mimmin", "mimmax", "pfsum", "squareSum", "none",
               "p50", "p75", "p90", "p95", "p99", "p999", "ep50r3", "ep90r3", "ep50r7", "ep95r7"]
DOWNSAMPLERS = [a for a in AGGREGATORS if a not in ("none", "mult", "diff")] + ["diff"]
INTERVALS = ["500ms", "1s", "5s", "7s", "10s", "30s", "1m", "5m", "1h", "0all"]
FILLS = ["", "", "-none", "-nan", "-null", "-zero"]
PATTERNS = {
    "host": ["literal_or(web01|db01)", "iliteral_or(WEB01)", "not_literal_or(web01)", "not_iliteral_or(DB01|web02)", "wildcard(web*)", "wildcard(*)", "iwildcard(WEB*)",
             "regexp(web0[12])", "regexp(^db)", "*", "web01", "web01|db01", "web*", "nobody"],
    "dc": ["literal_or(lga)", "wildcard(*)", "regexp(l.a|s.c)", "*", "lga", "lga|sjc"],
    "gpu": ["literal_or(0|1)", "wildcard(*)", "not_key()", "*", "0"],
}


def number(value):
    """As OpenTSDB keeps it: whole numbers as such, others as floats."""
    return value if isinstance(value, int) else round(value * 8) / 8


def series_of(random):
    """[(metric, tags, [(ms, value)])]: gauges, counters, irregular, sparse, whole and mixed numbers, sub-second times."""
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
        for gpu in GPUS:
            add("lone", {"host": host, "gpu": gpu}, [1000 * (T + t) for t in range(0, SPAN, 30)], lambda i: random.uniform(0, 1))
    add("lone", {"host": "web01"}, [1000 * (T + t) for t in range(0, SPAN, 60)], lambda i: random.uniform(0, 1))
    # One value a time stamp: which of two wins is not the question here.
    return [(metric, tags, sorted(dict(points).items())) for metric, tags, points in made]


METRICS = ["cpu", "bytes", "whole", "fine", "sparse", "mixed", "lone"]


def time_of(random, ms):
    return random.choice([str(ms // 1000), str(ms), f"{ms // 1000}.{ms % 1000:03}"])


def filters_of(random, group):
    chosen = random.sample(sorted(PATTERNS), random.choice([0, 0, 1, 1, 2]))
    return {key: random.choice([p for p in PATTERNS[key] if group or "(" in p]) for key in chosen}


def braces(filters):
    return "{" + ",".join(f"{k}={v}" for k, v in filters.items()) + "}" if filters else ""


def downsample_of(random):
    if random.random() < 0.3:
        return None
    return f"{random.choice(INTERVALS)}-{random.choice(DOWNSAMPLERS)}{random.choice(FILLS)}"


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
    if options is None:
        return None
    if not options:
        return "rate"
    if options.get("dropResets"):
        return "rate{dropcounter}"
    words = ["counter"] + [str(options[k]) for k in ("counterMax", "resetValue") if k in options]
    return "rate{" + ",".join(words) + "}"


def query_of(random):
    """(method, target, body, what): one request; `what` is its plan, for the list of accepted differences."""
    start = 1000 * T + random.choice([0, 0, 1000 * random.randrange(-60, SPAN), random.randrange(1000 * SPAN)])
    end = start + random.choice([1000 * SPAN, 1000 * random.randrange(1, SPAN), 1000 * random.randrange(1, 60), random.randrange(1, 60000)])
    metric, aggregator = random.choice(METRICS), random.choice(AGGREGATORS)
    downsample, rate = downsample_of(random), rate_of(random)
    explicit = random.random() < 0.1
    flags = [flag for flag in ("ms", "arrays") if random.random() < 0.4]
    what = {"metric": metric, "aggregator": aggregator, "downsample": downsample, "rate": rate, "explicit": explicit, "flags": flags, "start": start, "end": end}
    if random.random() < 0.5:
        grouping, plain = filters_of(random, True), filters_of(random, False) if random.random() < 0.3 else {}
        rest = [part for part in (downsample, rate_words(rate), "explicit_tags" if explicit else None) if part]
        random.shuffle(rest)
        m = ":".join([aggregator, *rest, metric + braces(grouping) + (("{}" if not grouping else "") + braces(plain) if plain else "")])
        what["m"] = m
        target = f"/api/query?start={time_of(random, start)}&end={time_of(random, end)}&m={quote(m)}" + "".join(f"&{flag}" for flag in flags)
        return "GET", target, None, what
    query = {"metric": metric, "aggregator": aggregator}
    if downsample:
        query["downsample"] = downsample
    if rate is not None:
        query["rate"] = True
        if rate:
            query["rateOptions"] = rate
    if explicit:
        query["explicitTags"] = True
    filters = []
    for key, pattern in filters_of(random, True).items():
        kind, _, rest = pattern.partition("(")
        if rest:
            filters.append({"type": kind, "tagk": key, "filter": rest[:-1], "groupBy": random.random() < 0.5})
        else:
            query.setdefault("tags", {})[key] = pattern
    if filters:
        query["filters"] = filters
    body = {"start": random.choice([start // 1000, start]), "end": random.choice([end // 1000, end]), "queries": [query]}
    what["start"], what["end"] = (1000 * t if t < 10**11 else t for t in (body["start"], body["end"]))
    if "ms" in flags:
        body["msResolution"] = True
    what["body"] = body
    return "POST", "/api/query" + ("?arrays" if "arrays" in flags else ""), json.dumps(body), what
