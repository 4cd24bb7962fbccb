"""The account of the soak: compares the data that the programs emitted with the recordings.

The value of every point and the length of every span encode the program and the number in the
program's sequence (emitter.c). So the account finds lost, duplicated and damaged points and spans.
For a counter it checks the total: the last recorded value is the sum of all additions by the
programs of its slot.
"""

import array
import collections
import csv
import datetime
import json
import socket
import struct
import subprocess
import urllib.request

POINTS_SHIFT, SPANS_SHIFT = 24, 20
SPANS_LIMIT = 1000000  # spans in an answer of /sonde/v1/spans with limit=0
# After the kill of an agent, the next one has found the host's programs within this time.
AWAY_S = 15
KINDS = ("points", "spans")

Life = collections.namedtuple(
    "Life",
    "slot generation host kind killed signalled ended points_begun points adds_begun adds spans_begun spans dropped",
)


def lives(folder, hosts):
    """Returns all programs with their accounts. A program without an account ended before it
    emitted anything."""
    found = []
    for host in hosts:
        for line in (folder / f"lives-{host}").read_text().splitlines():
            life = json.loads(line)
            path = folder / f"{life['slot']}-{life['generation']}"
            numbers = (
                struct.unpack("=8Q", path.read_bytes())
                if path.exists() and path.stat().st_size == 64
                else (0,) * 8
            )
            found.append(
                Life(
                    life["slot"],
                    life["generation"],
                    host,
                    life["kind"],
                    life["killed"],
                    life["signalled"],
                    life["ended"],
                    *numbers[:-1],
                )
            )
    return found


class Recorded:
    """The contents of the recordings: (slot, generation) → the numbers of the program's points and
    spans, in the order of time; slot → the last value of the slot's counter."""

    def __init__(self, sonde, recording):
        self.numbers = {kind: collections.defaultdict(lambda: array.array("q")) for kind in KINDS}
        self.damaged = []
        self.cells = {
            row["slot"]: float(row["value"]) for row in self._query(sonde, recording, "soak_cell")
        }  # rows come in the order of time, so the last value remains
        for slot in self.cells:  # a query a slot, because all points of an hour exceed its limit
            for row in self._query(sonde, recording, f"none:soak_points{{slot={slot}}}"):
                self._take("points", slot, float(row["value"]), POINTS_SHIFT)
        for slot, length in self._spans(sonde, recording):
            self._take("spans", slot, length, SPANS_SHIFT)
        self.series = collections.defaultdict(list)  # host → (seconds, series in its file)
        for row in self._query(sonde, recording, "sonde_series"):
            at = datetime.datetime.fromisoformat(row["time"][:19])
            self.series[row["host"]].append((at.timestamp(), float(row["value"])))
        last = {
            f"{row['cause']} on {row['host']}": int(float(row["value"]))
            for row in self._query(sonde, recording, "sonde_dropped_total")
        }
        # The last agents reported these drops.
        self.reported_drops = {cause: count for cause, count in last.items() if count}

    def _take(self, kind, slot, value, shift):
        if value != int(value) or value < 0:
            self.damaged.append(f"{kind} of slot {slot}: {value!r}")
        else:
            self.numbers[kind][slot, int(value) >> shift].append(int(value) & ((1 << shift) - 1))

    def _query(self, sonde, recording, metric):
        process = subprocess.Popen(
            [sonde, "query", "--csv", metric, recording], stdout=subprocess.PIPE, text=True
        )
        yield from csv.DictReader(process.stdout)
        if process.wait() != 0:
            raise RuntimeError(f"sonde query {metric} {recording} ended with {process.returncode}")

    def _spans(self, sonde, recording):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        replay = subprocess.Popen(
            [sonde, "replay", "--port", port, recording],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            url, token = replay.stderr.readline().split()[1].split("/?token=")
            request = urllib.request.Request(
                url + "/sonde/v1/spans?name=soak_span&limit=0",
                headers={"Authorization": "Bearer " + token},
            )
            with urllib.request.urlopen(request) as answer:
                spans = json.load(answer)["spans"]
        finally:
            replay.terminate()
            replay.communicate()
        if len(spans) >= SPANS_LIMIT:
            raise RuntimeError(f"the recording has more spans than fit into an answer ({SPANS_LIMIT})")
        for span in spans:
            yield span["tags"]["slot"], span["end_ns"] - span["start_ns"]


def held(life, kind, numbers):
    """Checks one program's points or spans. Returns the list of missing ones, and three counts:
    duplicates, recorded ones that it never began to emit, and emitted ones."""
    done, begun = (
        (life.points, life.points_begun) if kind == "points" else (life.spans, life.spans_begun)
    )
    seen = collections.Counter(numbers)
    missing = [n for n in range(done) if n not in seen]
    return missing, sum(seen.values()) - len(seen), sum(n >= begun for n in seen), done


def is_tail(missing, done):
    return (
        bool(missing) and missing[-1] == done - 1 and missing[-1] - missing[0] == len(missing) - 1
    )


def ended_unattended(life, kills):
    """True if the program ended while no agent ran, so that nothing read its last points."""
    return any(
        host == life.host and at - 1 <= life.ended and life.signalled <= at + AWAY_S
        for host, at in kills
    )


def settle(recorded, programs, kills):
    """Makes the account: totals by name, and a line for each program or slot with an error."""
    total, wrong = collections.Counter(programs=len(programs)), []
    adds, unattended_adds = collections.Counter(), collections.Counter()
    for life in programs:
        where = f"slot {life.slot} generation {life.generation} ({life.kind} on {life.host}, {'killed' if life.killed else 'ended'})"
        missing_in_all = 0
        unattended = ended_unattended(life, kills)
        tails = 0
        for kind in KINDS:
            missing, doubled, foreign, done = held(
                life, kind, recorded.numbers[kind].pop((life.slot, life.generation), ())
            )
            tail = unattended and is_tail(missing, done)
            tails += tail
            total.update(
                {
                    f"{kind}_emitted": done,
                    f"{kind}_stored": done - len(missing),
                    f"{kind}_doubled": doubled,
                    f"{kind}_damaged": foreign,
                    f"{kind}_unattended": len(missing) if tail else 0,
                    f"{kind}_missing": 0 if tail else len(missing),
                }
            )
            missing_in_all += 0 if tail else len(missing)
            if doubled or foreign:
                wrong.append(f"{where}: {doubled} {kind} doubled, {foreign} that it never emitted")
            if tail:
                wrong.append(
                    f"{where}: its last {len(missing)} {kind} went with it while its agent was away"
                )
        total["dropped"] += life.dropped
        if missing_in_all != life.dropped:
            wrong.append(f"{where}: {missing_in_all} missing, {life.dropped} counted as dropped")
            total["unaccounted"] += max(0, missing_in_all - life.dropped)
            total["overcounted"] += max(0, life.dropped - missing_in_all)
        adds[life.slot] += life.adds
        if tails:
            unattended_adds[life.slot] += life.adds_begun
        adds[life.slot, "killed"] += life.adds_begun - life.adds
    for kind in KINDS:
        for (slot, generation), numbers in recorded.numbers[kind].items():
            total[f"{kind}_damaged"] += len(numbers)
            wrong.append(
                f"{len(numbers)} {kind} of slot {slot}, generation {generation}, which no program had"
            )
    for slot in sorted({life.slot for life in programs}, key=int):
        stored = recorded.cells.get(slot, 0)
        total["adds_emitted"] += adds[slot]
        total["adds_stored"] += int(stored)
        if stored > adds[slot] + adds[slot, "killed"]:
            total["adds_doubled"] += int(stored - adds[slot])
            wrong.append(
                f"slot {slot}: {stored - adds[slot]:g} additions to its counter doubled, of {adds[slot]}"
            )
        elif stored < adds[slot]:
            lost = int(adds[slot] - stored)
            kind = "adds_unattended" if lost <= unattended_adds[slot] else "adds_missing"
            total[kind] += lost
            wrong.append(f"slot {slot}: {lost} additions to its counter missing, of {adds[slot]}")
    wrong += [f"damaged: {words}" for words in recorded.damaged]
    total["points_damaged"] += len(recorded.damaged)
    return total, wrong


BAD = (
    "unaccounted",
    "overcounted",
    "points_doubled",
    "points_damaged",
    "spans_doubled",
    "spans_damaged",
    "adds_doubled",
    "adds_missing",
)
