"""Measures what programs cost that emit from many threads or processes of a node: 16 threads at
full rate, 1,000 processes, 10,000 short processes a minute. Each pair is the same program in a job
and without one. Every point that a program emits is recorded or counted as dropped; the bench fails
if one is missing."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from peers import report  # noqa: E402

BUILD = os.environ["SONDE_BUILD"]
SONDE = os.path.join(BUILD, "sonde")
EMITTER = os.path.join(BUILD, "bench/programs/emitter")
THREADS, THREAD_SECONDS = 16, 5
CROWD, CROWD_RATE, CROWD_SECONDS = 1000, 10, 10
SHORT, SHORT_EACH_SECOND, SHORT_POINTS = 2000, 10000 / 60, 10
FAST = 3000
PAIRS = 3


def memory_used():
    with open("/proc/meminfo") as f:
        rows = dict(line.split(":") for line in f)
    kinds = ("AnonPages", "Shmem", "PageTables", "KernelStack", "SUnreclaim")  # no caches of files
    return sum(int(rows[kind].split()[0]) for kind in kinds) * 1024


class Peak:
    """The most memory of the machine in use during a `with` block, beyond that at its begin."""

    def __enter__(self):
        self.begin, self.most, self.ends = memory_used(), 0, threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self):
        while not self.ends.wait(0.05):
            self.most = max(self.most, memory_used() - self.begin)

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()


def bare(*command):
    with Peak() as peak:
        said = json.loads(subprocess.run([EMITTER, *map(str, command)], check=True, capture_output=True, text=True).stdout)
    return said | {"memory": peak.most}


def asked(record, expression):
    done = subprocess.run([SONDE, "query", "--json", "--start", "0", expression, record], capture_output=True, text=True)
    values = [value for series in json.loads(done.stdout or "[]") for value in series["dps"].values()]
    return sum(values)


def in_job(folder, *command):
    record = os.path.join(folder, f"record-{time.monotonic_ns()}")
    job = [SONDE, "run", "--quiet", "-l", "4", "--collect", "load", "--record", record, "--", EMITTER, *map(str, command)]
    with Peak() as peak:
        said = json.loads(subprocess.run(job, check=True, stdout=subprocess.PIPE, text=True).stdout)
    figures = {"recorded": "sum:0all-count:bench_points", "lost": "sum:0all-max:sonde_dropped_total",
               "agent_memory": "max:0all-max:sonde_agent_memory_bytes", "agent_seconds": "sum:0all-max:sonde_agent_cpu_seconds_total"}
    return said | {name: asked(record, expression) for name, expression in figures.items()} | {"memory": peak.most}


def check(name, emitted, job):
    if job["recorded"] + job["lost"] != emitted:
        sys.exit(f"bench: {name}: {emitted} points emitted, {job['recorded']:.0f} recorded, {job['lost']:.0f} counted as dropped")


def threads(folder):
    """All processors are busy with the program's threads, so the agent gets only a share of one,
    and points are lost; what matters is that the loss is known, and what a call costs."""
    jobs = [in_job(folder, "threads", THREADS, THREAD_SECONDS, "put") for _ in range(PAIRS)]
    for job in jobs:
        check("threads", job["calls"], job)
    for name, value, unit in (("threads_put_recorded", lambda j: j["recorded"] / j["seconds"] / 1e6, "Mpoints/s"),
                              ("threads_put_call", lambda j: j["processor_seconds"] / j["calls"] * 1e9, "ns"),
                              ("threads_put_lost", lambda j: 100 * j["lost"] / j["calls"], "percent"),
                              ("threads_put_agent_memory", lambda j: j["agent_memory"] / 2**20, "MiB")):
        report("programs", name, round(statistics.median(map(value, jobs)), 2), unit)
    ns = [[run["processor_seconds"] / run["calls"] * 1e9 for run in (in_job(folder, "threads", THREADS, 2, "add"), bare("threads", THREADS, 2, "add"))]
          for _ in range(PAIRS)]
    ours, without = (statistics.median(side) for side in zip(*ns))
    report("programs", "threads_add_call", round(ours, 2), "ns", "without a job", round(without, 2))


def crowd(folder):
    command = ("crowd", CROWD, CROWD_RATE, CROWD_SECONDS)
    pairs = [(in_job(folder, *command), bare(*command)) for _ in range(PAIRS)]
    for job, _ in pairs:
        check("crowd", CROWD * CROWD_RATE * CROWD_SECONDS, job)
    median = statistics.median
    report("programs", "crowd_lost", max(job["lost"] for job, _ in pairs), "points")
    report("programs", "crowd_memory_each", round(median(job["memory"] for job, _ in pairs) / CROWD / 1024, 1), "KiB", "without a job",
           round(median(without["memory"] for _, without in pairs) / CROWD / 1024, 1))
    report("programs", "crowd_agent_memory", round(median(job["agent_memory"] for job, _ in pairs) / 2**20, 2), "MiB")
    report("programs", "crowd_agent_share", round(median(100 * job["agent_seconds"] / job["seconds"] for job, _ in pairs), 2), "percent of a core")
    report("programs", "crowd_processor_each", round(median(job["processor_seconds"] for job, _ in pairs) / CROWD * 1e3, 3), "ms", "without a job",
           round(median(without["processor_seconds"] for _, without in pairs) / CROWD * 1e3, 3))


def short(folder):
    for name, count, rate in (("short_10000_a_minute", SHORT, SHORT_EACH_SECOND), ("short_two_at_a_time", FAST, 0)):
        command = ("short", count, rate, SHORT_POINTS)
        pairs = [(in_job(folder, *command), bare(*command)) for _ in range(PAIRS)]
        for job, _ in pairs:
            check(name, count * SHORT_POINTS, job)
        ours, without = ([statistics.median(run[key] for run in side) / count * 1e3 for key in ("processor_seconds", "seconds")] for side in zip(*pairs))
        report("programs", f"{name}_lost", max(job["lost"] for job, _ in pairs), "points")
        report("programs", f"{name}_processor_each", round(ours[0], 3), "ms", "without a job", round(without[0], 3))
        if not rate:
            report("programs", f"{name}_elapsed_each", round(ours[1], 3), "ms", "without a job", round(without[1], 3))
        report("programs", f"{name}_agent_share", round(statistics.median(100 * job["agent_seconds"] / job["seconds"] for job, _ in pairs), 2), "percent of a core")


def main():
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        os.environ |= {"TMPDIR": folder, "SONDE_RUNS": os.path.join(folder, "runs")}
        threads(folder)
        crowd(folder)
        short(folder)


main()
