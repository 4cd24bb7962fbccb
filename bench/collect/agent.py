"""Measures the cost of a running agent: the processor time of all its threads as a share of a core,
its memory without mapped files, and the slow-down of a loop of fixed work. In the same seconds it
measures bare preads of the same files at the same rate, and collectd, for comparison.

The lower bound: at 1 Hz, a second of the agent is 18 preads, one write to wake the thread that owns
the store, an appended row, and 4 statfs in separate threads: 25 to 30 system calls in all (strace).
At this rate all caches are cold, so a bare pread of the same files costs 1.3 to 1.5 times as much
as at 10 Hz, and waking three threads costs as much as the preads. At 10 Hz the agent takes 1.1 to
1.4 times the bare preads."""

import glob
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from peers import report, say  # noqa: E402

BUILD = os.environ["SONDE_BUILD"]
STRETCHES = 3
STRETCH_S = float(os.environ.get("SONDE_BENCH_STRETCH", "10"))
WARM_UP_S = 3
PAIRS = int(os.environ.get("SONDE_BENCH_PAIRS", "200"))
DRAWS = 2000
LOOP_S = 0.1  # a loop of this length contains a sample at 10 Hz
SETTLE_S = 0.02  # after SIGCONT, the agent catches up; this work is not measured
COLLECTD = """
Hostname "bench"
FQDNLookup false
Interval {rate}
BaseDir "{folder}"
PIDFile "{folder}/pid"
TypesDB "/usr/share/collectd/types.db"
ReadThreads 1
WriteThreads 1
LoadPlugin cpu
LoadPlugin memory
LoadPlugin load
LoadPlugin interface
LoadPlugin disk
LoadPlugin vmem
LoadPlugin swap
LoadPlugin processes
LoadPlugin csv
<Plugin csv>
DataDir "{folder}/csv"
</Plugin>
<Plugin vmem>
Verbose true
</Plugin>
"""


def cpu_ns(pid):
    return sum(int(open(path).read().split()[0]) for path in glob.glob(f"/proc/{pid}/task/*/schedstat"))


def beside_files_kib(pid):
    """Returns the resident memory without pages that are mapped from files. The kernel can evict
    those at any time; they contain the recording."""
    fields = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status") if ":" in line)
    return int(fields["RssAnon"].split()[0])


class Running:
    """A running program, used as a context."""

    def __init__(self, command):
        self.folder = tempfile.TemporaryDirectory(prefix="sonde-bench-")
        self.process = subprocess.Popen(command(self.folder.name), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGCONT)
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()


def agent(level, rate_s):
    return lambda folder: [f"{BUILD}/sonde", "agent", f"--folder={folder}/run", f"--telemetry-level={level}", f"--rate={rate_s}", "--job=bench"]


def preads(rate_s):
    return lambda folder: [f"{BUILD}/bench/collect/bench_collect", "preads", str(rate_s)]


def collectd(rate_s):
    def command(folder):
        path = os.path.join(folder, "collectd.conf")
        with open(path, "w") as f:
            f.write(COLLECTD.format(rate=rate_s, folder=folder))
        return [shutil.which("collectd") or "/usr/sbin/collectd", "-f", "-C", path]
    return command


def shares(pids):
    """Measures processes over the same periods; returns the median of each, in percent of a
    core."""
    each = [[] for _ in pids]
    for _ in range(STRETCHES):
        before, begun = [cpu_ns(pid) for pid in pids], time.monotonic_ns()
        time.sleep(STRETCH_S)
        passed = time.monotonic_ns() - begun
        for i, pid in enumerate(pids):
            each[i].append(100 * (cpu_ns(pid) - before[i]) / passed)
    return [round(statistics.median(one), 4) for one in each]


def cost(level, rate_s):
    with Running(agent(level, rate_s)) as ours, Running(preads(rate_s)) as bare, Running(collectd(rate_s)) as other:
        time.sleep(WARM_UP_S)
        has_collectd = other.process.poll() is None
        pids = [ours.pid, bare.pid] + ([other.pid] if has_collectd else [])
        share, *peers = shares(pids)
        name = f"agent_level_{level}_at_{1 / rate_s:.0f}_hz"
        report("collect", name, share, "percent of a core", "pread", peers[0])
        if has_collectd:
            report("collect", name, share, "percent of a core", "collectd", peers[1])
            report("collect", f"{name}_memory", beside_files_kib(ours.pid), "KiB beside mapped files", "collectd", beside_files_kib(other.pid))
        else:
            say("collectd is not installed: left out")
            report("collect", f"{name}_memory", beside_files_kib(ours.pid), "KiB beside mapped files")


def cost_of_processes():
    """Measures the additional cost of sampling the job's processes, at the default rates of `sonde
    run`. In the same seconds it measures an agent whose job has no processes, for comparison."""
    for count in (4, 64):
        sleepers = [subprocess.Popen(["sleep", "1000"], env=os.environ | {"SONDE_JOB": "bench"}) for _ in range(count)]
        try:
            with Running(agent(2, 1)) as with_them, Running(lambda folder: agent(2, 1)(folder)[:-1] + ["--job=other"]) as without:
                time.sleep(WARM_UP_S * 2)
                share, bare = shares([with_them.pid, without.pid])
        finally:
            for sleeper in sleepers:
                sleeper.kill()
                sleeper.wait()
        report("collect", f"agent_level_2_at_1_hz_with_{count}_processes", share, "percent of a core", "agent without them", bare)


def work(rounds):
    """Runs the loop; returns its wall and processor time, in ns."""
    value = 1
    wall, cpu = time.monotonic_ns(), time.thread_time_ns()
    for _ in range(rounds):
        value = (value * 48271) % 2147483647
    return time.monotonic_ns() - wall, time.thread_time_ns() - cpu


def quietest_core():
    """Measures for a second; returns the core that was idle longest."""
    def idle():
        return {int(line.split()[0][3:]): int(line.split()[4]) for line in open("/proc/stat") if line.startswith("cpu") and line[3].isdigit()}
    before = idle()
    time.sleep(1)
    after = idle()
    return max(os.sched_getaffinity(0), key=lambda core: after.get(core, 0) - before.get(core, 0))


def bootstrap(differences):
    """Returns the 95 % interval of the median by resampling, without an assumption about the
    noise."""
    medians = sorted(statistics.median(random.choices(differences, k=len(differences))) for _ in range(DRAWS))
    return round(medians[int(0.025 * DRAWS)], 3), round(medians[int(0.975 * DRAWS)], 3)


def slow_down():
    """Runs a loop of fixed work on the agent's core, in turn with a running and with a stopped
    agent, in random order. Reports the median of the pairs' differences and its interval. The
    difference in processor time is the cost of cold caches and of the kernel. That in wall time
    also includes the agent's own time, and other programs on that core, which affect both
    equally."""
    core, everywhere = quietest_core(), os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})  # the agent inherits the core
    rounds = 20000
    while min(work(rounds)[1] for _ in range(3)) < LOOP_S * 1e9:
        rounds = rounds * 5 // 4
    with Running(agent(2, 0.1)) as ours:
        time.sleep(WARM_UP_S)
        differences = {"wall": [], "cpu": []}
        for _ in range(PAIRS):
            took = {}
            for runs in random.sample((True, False), 2):
                ours.process.send_signal(signal.SIGCONT if runs else signal.SIGSTOP)
                time.sleep(SETTLE_S)
                took[runs] = work(rounds)
            for i, clock in enumerate(differences):
                differences[clock].append(100 * (took[True][i] / took[False][i] - 1))
    os.sched_setaffinity(0, everywhere)
    for clock, each in differences.items():
        least, most = bootstrap(each)
        report("collect", f"slow_down_of_a_loop_beside_the_agent_at_10_hz_{clock}", round(statistics.median(each), 3), "percent",
               least=least, most=most, pairs=PAIRS, core=core)


def main():
    for level in (2, 4):
        for rate_s in (1, 0.1):
            cost(level, rate_s)
    cost_of_processes()
    slow_down()


main()
