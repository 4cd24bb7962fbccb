"""The differences between sonde's answers and those of OpenTSDB 2.4.1. Each is a rule that
reproduces the difference.

A rule changes the request to sonde, or the interpretation of the two answers. The answers must then
be equal. explain() searches for the fewest rules that together make the answers equal. docs/http.md
lists the rules under the same names.
"""
import datetime
import itertools
import json
import math
import zoneinfo

HOUR_MS = 3600 * 1000
GAPS = (None, "NaN")
WHOLE_METRICS = ("bytes", "whole", "mixed")


class Answer:
    """An answer: its status, and its groups, {(tags, aggregateTags) as text: [(stamp, value)]},
    without groups that have no points."""

    def __init__(self, status, raw):
        self.status = status
        self.groups = {}
        self.documented = None  # another answer of sonde, for rule EP
        if status != 200:
            return
        for series in json.loads(raw, object_pairs_hook=_object):
            points = [(int(t), v) for t, v in series["dps"]]
            if points:
                self.groups[json.dumps([dict(series["tags"]), sorted(series["aggregateTags"])], sort_keys=True)] = points


def _object(pairs):
    """Makes a dict of a JSON object, but leaves points as pairs, because they may repeat a key."""
    names = {name for name, _ in pairs}
    return dict(pairs) if names & {"metric", "error"} else pairs


def _last_of_each(points):
    kept = {}
    for t, value in points:
        if t not in kept or value not in GAPS or kept[t] in GAPS:
            kept[t] = value
    return sorted(kept.items())


def _close(a, b, slack):
    if a in GAPS or b in GAPS:
        return a == b
    a, b = float(a), float(b)
    return a == b or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) or abs(a - b) <= slack


def alike(theirs, ours, slack=0):
    if theirs.status != ours.status or set(theirs.groups) != set(ours.groups):
        return False
    for key, points in theirs.groups.items():
        other = ours.groups[key]
        if [t for t, _ in points] != [t for t, _ in other]:
            return False
        if not all(_close(a, b, slack) for (_, a), (_, b) in zip(points, other)):
            return False
    return True


DAY_MS = 24 * HOUR_MS
UNITS_MS = {"ms": 1, "s": 1000, "m": 60 * 1000, "h": HOUR_MS, "d": DAY_MS, "w": 7 * DAY_MS, "n": 30 * DAY_MS, "y": 365 * DAY_MS}


def interval_ms(plan):
    """Returns the interval of the plan's downsampling, ignoring calendars; None without
    downsampling, and for 0all."""
    written = plan["downsample"][0] if plan["downsample"] else "0all"
    digits = written.rstrip("acdlmhnswy")
    return int(digits) * UNITS_MS[written[len(digits):].rstrip("c")] if digits != "0" else None


def rows_of(plan):
    """Returns [first, end) of the hours that OpenTSDB reads, in ms, computed as in
    TsdbQuery.getScanStartTimeSeconds() and getScanEndTimeSeconds()."""
    start, end, interval = plan["start"] // 1000, plan["end"] // 1000 + 1, interval_ms(plan)
    if interval:
        start -= 1000 * start % interval // 1000
        end += (interval - 1000 * end % interval) // 1000
    hour = HOUR_MS // 1000
    end = end if interval and end % hour == 0 else end - end % hour + hour
    return 1000 * (start - start % hour), 1000 * end


def calendar(plan):
    """Returns (count, unit, zone) of the plan's calendar interval, or None if it has none."""
    written = plan["downsample"][0] if plan["downsample"] else ""
    return (int(written[:-2]), written[-2], zoneinfo.ZoneInfo(plan["zone"])) if written.endswith("c") else None


def hours_of_day(ms, zone):
    return datetime.datetime.fromtimestamp(ms // 1000, zone).hour


def add(ms, count, unit, zone):
    """Adds an interval to a time, as java.util.Calendar does: days and longer units follow the
    zone's clocks, shorter ones the elapsed time."""
    if unit in "hm":
        return ms + count * UNITS_MS[unit]
    local = datetime.datetime.fromtimestamp(ms // 1000, zone).replace(tzinfo=None)
    if unit in "dw":
        local += datetime.timedelta(days=count * (7 if unit == "w" else 1))
    else:
        months = 12 * local.year + local.month - 1 + count * (12 if unit == "y" else 1)
        local = local.replace(year=months // 12, month=months % 12 + 1)
    return 1000 * int(local.replace(tzinfo=zone).timestamp())


def round_down(ms, count, unit, zone):
    """Returns the begin of the calendar interval, computed as in DateTime.previousInterval()."""
    local = datetime.datetime.fromtimestamp(ms // 1000, zone).replace(tzinfo=None, minute=0, second=0)
    if unit == "w":
        local, count = local.replace(hour=0) - datetime.timedelta(days=local.isoweekday() % 7), 1
    elif unit in "dny":
        local = local.replace(hour=0, day=1, month=1)
    elif unit == "h":
        local = local.replace(hour=0, day=local.day if 24 % count == 0 else 1)
    elif 60 % count:
        local = local.replace(hour=0)
    at = 1000 * int(local.replace(tzinfo=zone).timestamp())
    while True:
        following = add(at, count, unit, zone)
        if following > ms:
            return at
        at = following


def read_of(plan):
    """Returns [first, end) of the points that OpenTSDB uses in the hours of rows_of(): from the
    first whole interval on, as in Downsampler.seekInterval()."""
    first, end = rows_of(plan)
    if calendar(plan):
        at = round_down(first, *calendar(plan))
        return at if at == first else add(at, *calendar(plan)), end
    return first + -first % (interval_ms(plan) or 1), end


class Rule:
    def applies(self, plan, theirs):
        raise NotImplementedError

    def request(self, plan):
        return plan

    def theirs(self, plan, answer):
        pass

    def ours(self, plan, answer, ask, request):
        pass

    def reconcile(self, plan, theirs, ours):
        """May change both answers before they are compared."""

    def slack(self, plan):
        return 0


class Instant(Rule):
    """OpenTSDB refuses a range whose start is its end."""
    name = "INSTANT"

    def applies(self, plan, theirs):
        return theirs.status == 400 and plan["start"] == plan["end"]

    def reconcile(self, plan, theirs, ours):
        if ours.status == 200:
            theirs.status, ours.groups = 200, {}


class Refused(Rule):
    """OpenTSDB rejects not_key() (it finds no filter of that name), and unknown tag keys and
    literal values."""
    name = "REFUSED"

    def applies(self, plan, theirs):
        return theirs.status in (400, 500) and any(key == "rack" or p == "not_key()" or "nobody" in p for key, p, _ in plan["filters"])

    def reconcile(self, plan, theirs, ours):
        if ours.status == 200:
            theirs.status, ours.groups = 200, {}


class Seconds(Rule):
    """For several points in one second, OpenTSDB repeats the key. sonde answers the last point, and
    takes downsampling intervals below 1 s for 1 s."""
    name = "SECONDS"

    def applies(self, plan, theirs):
        fine = "ms" not in plan["flags"] and (interval_ms(plan) or 1000) < 1000
        return fine or any(len({t for t, _ in points}) < len(points) for points in theirs.groups.values())

    def request(self, plan):
        return {**plan, "flags": sorted({*plan["flags"], "ms"}), "repeats": True}


class Rows(Rule):
    """OpenTSDB reads the rows of the hours that the range touches, from the first whole interval
    on. It uses no other points, however near they are.

    sonde interpolates to points up to an hour outside the range, and computes a rate's first value
    from a point of any age.
    """
    name = "ROWS"

    def applies(self, plan, theirs):
        first, end = read_of(plan)
        return theirs.status == 200 and any(not first <= t < end for points in plan["points"] for t, _ in points)

    def request(self, plan):
        return {**plan, "only_read": read_of(plan)}


class Names(Rule):
    """OpenTSDB lists and fills all series of the rows that it reads. sonde lists only the series
    with a value in the answer."""
    name = "NAMES"

    @staticmethod
    def fills(plan):
        return bool(plan["downsample"]) and plan["downsample"][2] in ("nan", "null", "zero")

    def applies(self, plan, theirs):
        # OpenTSDB lists a series with one point, which has no rate.
        if theirs.status != 200 or plan["rate"] is not None:
            return theirs.status == 200
        if calendar(plan):
            return True
        interval, whole = interval_ms(plan) or 1, bool(plan["downsample"]) and plan["downsample"][0] == "0all"
        first, end = rows_of(plan)
        return any(any(first <= t < end for t, _ in points) and
                   not any(plan["start"] <= t - t % interval <= plan["end"] - whole for t, _ in points) for points in plan["points"])

    def request(self, plan):
        """Extends the range to the rows. This does not change the values of a filled series,
        because it is never interpolated."""
        return self.over_rows(plan, plan) if self.fills(plan) and plan["downsample"][0] != "0all" else plan

    @staticmethod
    def over_rows(plan, asked):
        first, end = rows_of(plan)
        return {**asked, "start": first, "end": end - 1, "times": ["ms", "ms"], "flags": sorted({*asked["flags"], "ms"})}

    def ours(self, plan, answer, ask, request):
        for key, points in list(answer.groups.items()):
            unit = 1 if "ms" in request["flags"] else 1000
            answer.groups[key] = [(t, v) for t, v in points if plan["start"] // unit <= t <= plan["end"] // unit]
            if not answer.groups[key]:
                del answer.groups[key]
        whole = ask(self.over_rows(plan, {**request, "downsample": None, "rate": None, "only_read": rows_of(plan)}))
        named = {}
        for key, points in answer.groups.items():
            tags, aggregated = json.loads(key)
            for other in whole.groups:
                other_tags, other_aggregated = json.loads(other)
                if other_tags.items() <= tags.items() and set(aggregated) <= set(other_aggregated) and tags.keys() - other_tags.keys() <= set(other_aggregated):
                    named[other] = points
        answer.groups = named


class Anchor(Rule):
    """OpenTSDB counts the calendar intervals of each series from the first point that it reads.
    sonde counts the intervals of all series from the hour in which it begins to read.

    Only the time stamps are compared, because different intervals have different values.
    """
    name = "ANCHOR"

    @staticmethod
    def chain_of(plan, points):
        """Returns the begin of OpenTSDB's first interval of a series; None if it has no points."""
        first, end = read_of(plan)
        read = [t for t, _ in points if first <= t < end]
        return round_down(read[0], *calendar(plan)) if read else None

    def stamps(self, plan):
        """Returns a set per series with the begins of OpenTSDB's intervals: the first one, even if
        it is outside the range, and the others up to the end of the range."""
        made = []
        for at in {self.chain_of(plan, points) for points in plan["points"]} - {None}:
            stamps = {at}
            while (at := add(at, *calendar(plan))) <= plan["end"]:
                stamps.add(at)
            made.append(stamps)
        return made

    def applies(self, plan, theirs):
        if theirs.status != 200 or not calendar(plan):
            return False
        count, unit, zone = calendar(plan)
        chains = self.stamps(plan)
        at, ours = round_down(rows_of(plan)[0], count, unit, zone), set()
        while at <= max((max(stamps) for stamps in chains), default=at - 1):
            ours.add(at)
            at = add(at, count, unit, zone)
        if unit == "h" and 24 % count == 0:  # sonde begins anew at each midnight
            ours = {at for at in ours if hours_of_day(at, zone) % count == 0}
        return any(stamps - ours for stamps in chains)

    def reconcile(self, plan, theirs, ours):
        unit_ms = 1 if "ms" in plan["flags"] else 1000
        known = {at // unit_ms for stamps in self.stamps(plan) for at in stamps}
        if all(t in known for points in theirs.groups.values() for t, _ in points):
            ours.groups = theirs.groups


class Estimated(Rule):
    """ep50r3 … ep999r7 of numbers that are not whole are computed like p50 … p999 in OpenTSDB."""
    name = "EP"

    def applies(self, plan, theirs):
        return plan["aggregator"].startswith("ep") or bool(plan["downsample"]) and plan["downsample"][1].startswith("ep")

    @staticmethod
    def plain(name):
        return name[1:-2] if name.startswith("ep") else name

    def request(self, plan):
        interval, function, fill = plan["downsample"] or (None, None, None)
        return {**plan, "aggregator": self.plain(plan["aggregator"]), "downsample": (interval, self.plain(function), fill) if interval else None}

    def ours(self, plan, answer, ask, request):
        if plan["metric"] in WHOLE_METRICS and not plan["downsample"] and plan["rate"] is None:
            answer.documented = ask({**request, "aggregator": plan["aggregator"]})
            _stamp_as_asked(plan, request, answer.documented)

    def reconcile(self, plan, theirs, ours):
        """If the values at a time are whole numbers, OpenTSDB answers a whole number, computed as
        documented."""
        for key, points in ours.groups.items() if ours.documented else ():
            documented, whole = dict(ours.documented.groups.get(key, [])), {t for t, v in theirs.groups.get(key, []) if isinstance(v, int)}
            ours.groups[key] = [(t, documented.get(t, v) if t in whole else v) for t, v in points]


class Integers(Rule):
    """OpenTSDB computes with whole numbers, also interpolated ones, if whole numbers were stored.

    sonde does so only for p50 … p999, and whenever the values are whole, because it stores 4 and
    4.0 alike.
    """
    name = "INTEGERS"

    def applies(self, plan, theirs):
        quantile = plan["aggregator"][0] in "pe" and plan["aggregator"] != "pfsum"
        return not plan["downsample"] and plan["rate"] is None and (quantile or plan["metric"] in WHOLE_METRICS)

    def slack(self, plan):
        series = 6 if plan["metric"] in WHOLE_METRICS else 1
        return {"mult": math.inf, "squareSum": series * 2000, "dev": 2}.get(plan["aggregator"], series)


def _gaps_of(theirs, ours):
    """Puts gaps into sonde's answer wherever OpenTSDB's answer has gaps."""
    for key, points in theirs.groups.items():
        own = ours.groups.get(key, [])
        if [t for t, _ in own] == [t for t, _ in points]:
            ours.groups[key] = [(t, their_value if their_value in GAPS else v) for (_, their_value), (t, v) in zip(points, own)]


class NotSkipped(Rule):
    """For first, last, mult and diff, OpenTSDB treats the NaN of a fill policy as a value; sonde
    skips it."""
    name = "NAN"

    def applies(self, plan, theirs):
        return plan["aggregator"] in ("first", "last", "mult", "diff") and bool(plan["downsample"]) and plan["downsample"][2] in ("nan", "null")

    def reconcile(self, plan, theirs, ours):
        _gaps_of(theirs, ours)


class FirstRate(Rule):
    """OpenTSDB takes each series as 0 in 1970, so the first rate is that since 1970. It holds until
    the second point or bucket of the series."""
    name = "FIRST_RATE"

    def applies(self, plan, theirs):
        return plan["rate"] is not None

    def reconcile(self, plan, theirs, ours):
        interval = interval_ms(plan) or 1
        first, end = read_of(plan)
        until = 0  # the latest among the second points of all series
        for points in plan["points"]:
            buckets = {ms // interval: value for ms, value in points if first <= ms < end}
            stamps = sorted(buckets)
            # With dropResets, a fall has no rate. Whether a bucket falls is unknown here.
            drops = plan["rate"].get("dropResets")
            values = [0] + [buckets[stamp] for stamp in stamps]
            rates = [stamp for stamp, a, b in zip(stamps, values, values[1:]) if not drops or not plan["downsample"] and b >= a]
            second = rates[1] if len(rates) > 1 else math.inf
            until = max(until, second * interval)
        if "ms" not in plan["flags"]:
            until = math.ceil(until / 1000) if until < math.inf else until
        for key in set(theirs.groups) | set(ours.groups):
            ours.groups[key] = [p for p in theirs.groups.get(key, []) if p[0] < until] + [p for p in ours.groups.get(key, []) if p[0] >= until]
            if not ours.groups[key]:
                del ours.groups[key]


class GapsOfRates(Rule):
    """The rate after a gap is NaN in OpenTSDB, but the change over the gap in sonde. Aggregates of
    such rates differ, too."""
    name = "GAPS"

    def applies(self, plan, theirs):
        return plan["rate"] is not None and bool(plan["downsample"]) and plan["downsample"][2] in ("nan", "null")

    def reconcile(self, plan, theirs, ours):
        if plan["aggregator"] != "none":
            ours.groups = theirs.groups
            return
        # OpenTSDB answers no gap at the first time stamp, where no rate exists.
        for key, points in theirs.groups.items():
            stamps = {t for t, _ in points}
            ours.groups[key] = [(t, v) for t, v in ours.groups.get(key, []) if t in stamps or v not in GAPS]
        _gaps_of(theirs, ours)


class Explicit(Rule):
    """OpenTSDB respects explicit tags only together with filters."""
    name = "EXPLICIT"

    def applies(self, plan, theirs):
        return plan["explicit"] and not plan["filters"]

    def request(self, plan):
        return {**plan, "explicit": False}


RULES = [Seconds(), Rows(), Names(), Anchor(), Estimated(), Integers(), NotSkipped(), FirstRate(), GapsOfRates(), Explicit(), Refused(), Instant()]


def _stamp_as_asked(plan, request, ours):
    """Converts time stamps to seconds if a rule, not the plan, requested milliseconds. Keeps the
    last point of each second, as sonde does, or all if the rule repeats keys."""
    if "ms" in plan["flags"] or "ms" not in request["flags"]:
        return
    for key, points in ours.groups.items():
        seconds = [(t // 1000, v) for t, v in points]
        ours.groups[key] = seconds if request.get("repeats") else _last_of_each(seconds)


def explain(plan, points, theirs_raw, ask):
    """Returns the names of the fewest rules that make the answers equal: () if they are equal
    without rules, None if no rules make them equal.

    `points` has [(ms, value)] of each series of the metric, `theirs_raw` is OpenTSDB's (status,
    body), ask(plan) returns sonde's Answer.
    """
    plan = {**plan, "points": points}
    applicable = [rule for rule in RULES if rule.applies(plan, Answer(*theirs_raw))]
    for count in range(len(applicable) + 1):
        for rules in itertools.combinations(applicable, count):
            theirs, request = Answer(*theirs_raw), plan
            for rule in rules:
                rule.theirs(plan, theirs)
                request = rule.request(request)
            ours = ask(request)
            for rule in rules:
                rule.ours(plan, ours, ask, request)
            _stamp_as_asked(plan, request, ours)
            for rule in rules:
                rule.reconcile(plan, theirs, ours)
            if alike(theirs, ours, max((rule.slack(plan) for rule in rules), default=0)):
                return tuple(rule.name for rule in rules)
    return None
