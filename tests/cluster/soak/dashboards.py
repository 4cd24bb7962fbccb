"""The dashboards of the soak: HTTP clients that request random metrics, ranges and pages of the
running job until SIGTERM.

    dashboards.py SEED COUNT

At the end it prints one JSON object: the number of requests by status, the bytes of responses, the
number of responses that lack a node, and the first failures.
"""

import collections
import glob
import json
import pathlib
import random
import signal
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "common"))
from waiting import PATIENCE_S  # noqa: E402

PAGES = (
    "/metrics",
    "/sonde/v1/status",
    "/sonde/v1/nodes",
    "/sonde/v1/spans?limit=1000",
    "/sonde/v1/series?latest",
    "/api/search/lookup?m=cpu_percent%7Bhost=*%7D",
    "/api/suggest?type=metrics&max=1000",
    "/sonde/v1/annotations?limit=1000",
)
AGGREGATORS = ("sum", "avg", "max", "min", "count", "dev", "p95", "none")
FAILURES_KEPT = 20
# All dashboards rest at the end of each minute, so that no request is pending for a moment. If the
# memory at that moment grows from minute to minute, it is a leak.
EVERY_S, REST_S = 60, 15

stopping = threading.Event()
totals = {"statuses": collections.Counter(), "bytes": 0, "missing": 0, "failures": []}
lock = threading.Lock()


class Job:
    def __init__(self):
        (path,) = glob.glob("/tmp/sonde-*/*/job.json")
        self.url = json.loads(pathlib.Path(path).read_text())["url"]
        self.token = (pathlib.Path(path).parent / "token").read_text().strip()

    def ask(self, path):
        request = urllib.request.Request(
            self.url + path, headers={"Authorization": "Bearer " + self.token}
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                body = answer.read()
                self.tell(path, answer.status, len(body), "X-Sonde-Missing" in answer.headers)
                return body
        except urllib.error.HTTPError as error:
            self.tell(path, error.code, 0, False, error.read(300).decode(errors="replace"))
        except OSError as error:
            self.tell(path, type(error).__name__, 0, False, str(error))
        return None

    def tell(self, path, status, size, missing, words=None):
        with lock:
            totals["statuses"][status] += 1
            totals["bytes"] += size
            totals["missing"] += missing
            if words and len(totals["failures"]) < FAILURES_KEPT:
                totals["failures"].append(f"{path}: {status} {words}")


def query(chance, metrics):
    """Returns the query of a random panel: a metric, a range, a downsampling. Only short ranges may
    have no downsampling."""
    length = chance.choice((10, 60, 300, 3600))
    begin = length + chance.choice((0, 0, 30, 600))
    downsample = (
        chance.choice(("1s-avg:", "10s-max:", "1m-p99:", "5s-avg-zero:"))
        if length > 60 or chance.random() < 0.7
        else ""
    )
    m = (
        f"{chance.choice(AGGREGATORS)}:{downsample}{chance.choice(('', '', 'rate:'))}{chance.choice(metrics)}"
        + chance.choice(("", "{host=*}", "{host=n2}"))
    )
    return "/api/query?" + urllib.parse.urlencode(
        {
            "start": f"{begin}s-ago",
            "end": f"{begin - length}s-ago" if begin > length else "now",
            "m": m,
        }
    )


def dashboard(job, chance):
    metrics = None
    while not stopping.is_set():
        if metrics is None or chance.random() < 0.02:
            metrics = json.loads(job.ask("/api/suggest?type=metrics&max=10000") or "[]") or None
        elif chance.random() < 0.3:
            job.ask(chance.choice(PAGES))
        else:
            job.ask(query(chance, metrics))
        stopping.wait(chance.uniform(0, 0.5))
        into_s = time.monotonic() % EVERY_S
        if into_s > EVERY_S - REST_S:
            stopping.wait(EVERY_S - into_s)


def main():
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    job = Job()
    threads = [
        threading.Thread(target=dashboard, args=(job, random.Random(f"{sys.argv[1]} {number}")))
        for number in range(int(sys.argv[2]))
    ]
    for thread in threads:
        thread.start()
    while not stopping.is_set():
        time.sleep(0.1)
    for thread in threads:
        thread.join()
    print(json.dumps(totals), flush=True)


main()
