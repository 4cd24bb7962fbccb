"""Another user of the same machine attacks a job's HTTP server. The bench measures the effect on
legitimate queries and on the job itself.

The attackers keep up to 10,000 connections open, as far as the server lets them, of mixed kinds:
silent, half a request line, slow headers, half a body, an endless telnet line, one wrong token
after another, large and compressed bodies to the open route, noise, a TLS hello. They open closed
connections again, at most CONNECTS_A_SECOND. They connect from 127.0.0.1, as another uid if this
runs as root.

At the same time, the job's own user sends 20 queries a second, every other one on a new connection,
and a loop of arithmetic represents the job's work. The bench has three phases: undisturbed; during
an attack on another server, which closes each connection after a second (`elsewhere` shows the cost
of the attackers' own processor time); during the attack on the job's server.

$SONDE_BENCH_SECONDS is the length of each phase (default 10; the promise is for 300),
$SONDE_BENCH_CONNECTIONS the number of connections. The bench uses only loopback, and ends by
itself.
"""
import collections
import http.client
import json
import os
import random
import resource
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from peers import report, say  # noqa: E402

SONDE = os.path.join(os.environ["SONDE_BUILD"], "sonde")
SECONDS = float(os.environ.get("SONDE_BENCH_SECONDS", "10"))
COUNT = int(os.environ.get("SONDE_BENCH_CONNECTIONS", "10000"))
CONNECTS_A_SECOND, QUERIES_A_SECOND, OTHER_UID = 1000, 20, 65534
QUERY = "/api/query?start=1m-ago&no_annotations&m=" + urllib.parse.quote("avg:1s-avg:cpu_percent")


# ---------------------------------------------------------------- the other user

def kinds():
    """Returns the first bytes of each kind of connection, and the bytes that it then repeats."""
    wrong = b"GET /api/version HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %064d\r\n\r\n" % 0
    return [(b"", b""), (b"POST /api/query HT", b""), (b"GET / HTTP/1.1\r\nX: ", b"a"), (b"POST /api/token HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{", b" "),
            (b"put ", b"a" * 100), (wrong, wrong * 4), (b"POST /api/token HTTP/1.1\r\nHost: x\r\nContent-Length: 16000000\r\n\r\n", b" " * 1000),
            (b"POST /api/token HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 1000\r\n\r\n\x1f\x8b\x08", b"\0" * 100),
            (random.Random(1).randbytes(200), b"\0" * 200), (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\0" * 30)]


class Hostile:
    def __init__(self, port):
        self.port, self.random, self.kinds = port, random.Random(1), kinds()
        self.selector, self.open, self.made = selectors.DefaultSelector(), {}, 0

    def connect(self):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(("127.0.0.1", self.port))
        first, again = self.random.choice(self.kinds)
        self.open[s] = [first, again]
        self.selector.register(s, selectors.EVENT_READ | selectors.EVENT_WRITE)
        self.made += 1

    def close(self, s):
        self.selector.unregister(s)
        del self.open[s]
        s.close()

    def turn(self, s, events):
        try:
            if events & selectors.EVENT_READ and not s.recv(4096):
                return self.close(s)
            if events & selectors.EVENT_WRITE:
                state = self.open[s]
                if state[0]:
                    s.send(state[0])
                    state[0] = b""
                self.selector.modify(s, selectors.EVENT_READ)
        except BlockingIOError:
            pass
        except OSError:
            self.close(s)

    def trickle(self):
        for s in self.random.sample(list(self.open), min(len(self.open), 50)):
            try:
                if self.open[s][1]:
                    s.send(self.open[s][1])
            except BlockingIOError:
                pass
            except OSError:
                self.close(s)

    def run(self, seconds):
        end = time.monotonic() + seconds
        due = time.monotonic()
        while (now := time.monotonic()) < end:
            while due < now and len(self.open) < COUNT:
                self.connect()
                due += 1 / CONNECTS_A_SECOND
            due = max(due, now - 0.1)
            for key, events in self.selector.select(0.01):
                if key.fileobj in self.open:
                    self.turn(key.fileobj, events)
            self.trickle()
        return self.made


class Decoy(threading.Thread):
    """A server in the attackers' process that closes each connection after a second."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1000)
        self.port = self.listener.getsockname()[1]

    def run(self):
        taken = collections.deque()
        while True:
            readable, _, _ = select.select([self.listener], [], [], 0.1)
            if readable:
                taken.append((time.monotonic(), self.listener.accept()[0]))
            while taken and taken[0][0] < time.monotonic() - 1:
                taken.popleft()[1].close()


def attack(port):
    if not port:
        decoy = Decoy()
        decoy.start()
        port = decoy.port
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit, 2 * COUNT + 100) if limit != resource.RLIM_INFINITY else 2 * COUNT + 100, limit))
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(OTHER_UID, OTHER_UID, OTHER_UID)
        os.setresuid(OTHER_UID, OTHER_UID, OTHER_UID)
    print(Hostile(port).run(SECONDS), flush=True)


# ---------------------------------------------------------------- the job

class Client(threading.Thread):
    """Sends queries. Like other HTTP clients, it reopens a connection that the server closed while
    it was idle."""

    def __init__(self, url, token):
        super().__init__()
        self.address, self.headers = (url.hostname, url.port), {"Authorization": f"Bearer {token}"}
        self.times, self.failed, self.end = [], 0, threading.Event()

    def ask(self, connection):
        began = time.monotonic()
        connection.request("GET", QUERY, headers=self.headers)
        answer = connection.getresponse()
        answer.read()
        self.times.append(time.monotonic() - began)
        self.failed += answer.status != 200

    def run(self):
        kept = http.client.HTTPConnection(*self.address, timeout=60)
        for i in range(10**9):
            if self.end.wait(1 / QUERIES_A_SECOND):
                break
            new = http.client.HTTPConnection(*self.address, timeout=60)
            try:
                self.ask(new if i % 2 else kept)
            except (OSError, http.client.HTTPException):
                self.failed += 1
                kept.close()
            new.close()
        kept.close()


def work(seconds):
    """Computes for some seconds; prints the number of rounds per second of CPU time."""
    end, rounds, cpu = time.monotonic() + seconds, 0, time.process_time()
    while time.monotonic() < end:
        sum(i * i for i in range(1000))
        rounds += 1
    print(rounds / (time.process_time() - cpu))


def aggregator():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline") as f:
                words = f.read().split("\0")
            with open(f"/proc/{pid}/stat") as f:
                parent = int(f.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if words[:2] == ["sonde", "aggregator"] and parent == os.getppid():
            return int(pid)
    raise RuntimeError("the process of the aggregator was not found")


def peak_bytes(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM"))


def measure(url, token):
    client = Client(url, token)
    client.start()
    speed = float(subprocess.run([sys.executable, __file__, "--work"], stdout=subprocess.PIPE, text=True, check=True).stdout)
    client.end.set()
    client.join()
    times = sorted(client.times)
    return {"p50_ms": 1e3 * times[len(times) // 2], "p99_ms": 1e3 * times[len(times) * 99 // 100], "failed": client.failed, "asked": len(times), "speed": speed}


def beside_attack(url, token, port):
    """Returns the result of `measure` during an attack on the port, and the number of connections.
    With port 0, the attack is on the attackers' own server."""
    child = subprocess.Popen([sys.executable, __file__, "--attack", str(port)], stdout=subprocess.PIPE, text=True)
    try:
        return measure(url, token), int(child.communicate(timeout=60)[0])
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGKILL)
            child.wait()


def command():
    url = urllib.parse.urlsplit(os.environ["SONDE_URL"])
    with open(os.environ["SONDE_TOKEN_FILE"]) as f:
        token = f.readline().strip()
    pid = aggregator()
    time.sleep(3)  # so that there are data for queries
    alone = measure(url, token)
    before = peak_bytes(pid)
    elsewhere, _ = beside_attack(url, token, 0)
    beside, made = beside_attack(url, token, url.port)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
    connection.request("GET", "/sonde/v1/status", headers={"Authorization": f"Bearer {token}"})
    counts = json.loads(connection.getresponse().read())["connections"]
    connection.close()
    for percentile in ("p50", "p99"):
        of = f"{percentile}_ms"
        report("hostile", f"query_{percentile}", round(beside[of], 2), "ms", "elsewhere", round(elsewhere[of], 2))
    report("hostile", "query_p50", round(beside["p50_ms"], 2), "ms", "undisturbed", round(alone["p50_ms"], 2))
    report("hostile", "query_p99", round(beside["p99_ms"], 2), "ms", "undisturbed", round(alone["p99_ms"], 2), asked=beside["asked"], failed=beside["failed"], connections=made,
           seconds=SECONDS, other_uid=os.geteuid() == 0)
    report("hostile", "aggregator_peak", peak_bytes(pid), "bytes", "undisturbed", before, counts=counts)
    for name, peer in (("elsewhere", elsewhere), ("undisturbed", alone)):
        report("hostile", "job_speed", round(beside["speed"]), "rounds a CPU second", name, round(peer["speed"]))


def main():
    if sys.argv[1:2] == ["--attack"]:
        attack(int(sys.argv[2]))
    elif sys.argv[1:2] == ["--work"]:
        work(SECONDS)
    elif sys.argv[1:2] == ["--command"]:
        command()
    else:
        say(f"{COUNT} hostile connections, three times {SECONDS:g} s")
        subprocess.run([SONDE, "run", "-q", "--no-record", "-l", "2", "--", sys.executable, __file__, "--command"], check=True)


if __name__ == "__main__":
    main()
