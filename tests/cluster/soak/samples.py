"""Samples the memory, descriptors and threads of each process of sonde every second, and computes
the slope of the memory. The memory is the process' own (RssAnon), without mapped files and shared
memory.

The slope is computed from the minimum of every minute, in which the dashboards rest for 15 s.
Pending requests, and freed memory that malloc returns within 10 s, raise the memory above that
minimum only for a while; a leak raises the minimum. A growing recording raises it, too, because
readers keep data about it. To tell the two apart, a process with a long life is compared with the
process that follows it."""

import math
import os
import pathlib
import statistics

LONG_BLOCKS = 10  # in a life of this length, growth differs from a warm-up
WARM_UP_S = 60  # of each process, whose caches, tables and scratch buffers fill
WARM_UP_BLOCKS = 4  # more of a long life, until programs and requests of all kinds have come
BLOCK_S = 60  # seconds for one value of the slope: the dashboards rest once in them
GROWTH_MAX = 64  # KiB a minute; a slope that is certainly higher is a leak
NOISE_MAX = 1024  # KiB a minute; with a larger uncertainty, the slope is unknown
BOUNDS = {"agent": 16, "aggregator": 64, "relay": 32}  # MiB; the default limits of each role
DESCRIPTORS_MAX, THREADS_MAX = 16, 4  # maximum increase from the beginning to the end
EDGE = 10  # number of samples for the median at the beginning and the end


class Process:
    """One process, from its first sample to its end."""

    def __init__(self, pid, role, host):
        self.pid, self.role, self.host = pid, role, host
        self.samples = []  # (seconds, KiB, descriptors, threads)

    def sample(self, now_s):
        """Takes a sample; returns False if the process has ended."""
        folder = pathlib.Path(f"/proc/{self.pid}")
        try:
            status = dict(
                line.split(":", 1) for line in (folder / "status").read_text().splitlines()
            )
            self.samples.append(
                (
                    now_s,
                    int(status["RssAnon"].split()[0]),
                    len(os.listdir(folder / "fd")),
                    int(status["Threads"]),
                )
            )
        except (OSError, KeyError):  # a zombie has no memory
            return False
        return True

    def warm(self):
        return [s for s in self.samples if s[0] >= self.samples[0][0] + WARM_UP_S]


def role_of(command):
    """Returns agent, aggregator, relay, node or run; None for other programs."""
    words = command.split()
    return words[1] if len(words) > 1 and os.path.basename(words[0]) == "sonde" else None


class Sampler:
    """Finds the processes of the lab's hosts and samples them."""

    def __init__(self, lab):
        self.lab, self.running, self.ended = lab, {}, []

    def find(self):
        for host in self.lab.names:
            for pid, command in self.lab.processes(host, "sonde ").items():
                role = role_of(command)
                if pid not in self.running and role:
                    self.running[pid] = Process(pid, role, host)

    def sample(self, now_s):
        for pid, process in list(self.running.items()):
            if not process.sample(now_s):
                self.ended.append(self.running.pop(pid))

    def pid_of(self, role, host):
        """Returns the process id, or None if no such process runs now."""
        return next(
            (p.pid for p in self.running.values() if (p.role, p.host) == (role, host)), None
        )

    def groups(self):
        """Returns (role, host) → its processes, in the order of time."""
        found = {}
        for process in [*self.ended, *self.running.values()]:
            if process.samples:
                found.setdefault((process.role, process.host), []).append(process)
        return {key: sorted(found[key], key=lambda p: p.samples[0][0]) for key in sorted(found)}


def blocks(samples):
    """Returns (minutes, minimum KiB) for every complete block of BLOCK_S."""
    found = {}
    for at, kib, *_ in samples:
        found.setdefault(int((at - samples[0][0]) // BLOCK_S), []).append((at / 60, kib))
    whole = [block for block in found.values() if len(block) >= BLOCK_S / 2]
    return [(statistics.fmean(at for at, _ in block), min(kib for _, kib in block)) for block in whole]


def slope(processes):
    """Returns (KiB a minute, half of the width of its 95 % interval) for consecutive processes, or
    None if they are too short. Least squares with one slope for all and a level for each. If long
    lives exist, only they count, without their first minutes: in a life of three minutes, not all
    kinds of programs and requests have come."""
    xx = xy = yy = 0.0
    free = -1  # degrees of freedom: values minus levels minus one for the slope
    lives = [blocks(process.warm()) for process in processes]
    long = [life[WARM_UP_BLOCKS:] for life in lives if len(life) >= LONG_BLOCKS]
    for points in long or lives:
        if len(points) < 2:
            continue
        x0, y0 = (statistics.fmean(column) for column in zip(*points))
        xx += sum((x - x0) ** 2 for x, _ in points)
        xy += sum((x - x0) * (y - y0) for x, y in points)
        yy += sum((y - y0) ** 2 for _, y in points)
        free += len(points) - 1
    if free < 2 or xx == 0:
        return None
    rest = max(0.0, yy - xy * xy / xx)
    t95 = (
        1.96 + 2.37 / free + 2.82 / free**2 + 2.56 / free**3 + 1.6 / free**4 + 2.9 / free**5
    )  # Student's t, within 2 % from 2 degrees on
    return xy / xx, t95 * math.sqrt(rest / free / xx)


def beyond_successor(processes):
    """Compares the last process with a long life, at its end, with the process that follows it.
    Returns the memory that only the first one has, in KiB per minute of its life; that is a leak.
    Memory that both have is due to the recording. Returns None if no long life was followed by a
    warm one."""
    lives = [[kib for _, kib in blocks(process.warm())] for process in processes]
    for long, next_one in reversed(list(zip(lives, lives[1:]))):
        if len(long) >= LONG_BLOCKS and len(next_one) > WARM_UP_BLOCKS:
            at_end = statistics.median(long[-3:])
            return (at_end - statistics.median(next_one[WARM_UP_BLOCKS:])) / len(long)
    return None


def rise(points):
    """Returns the increase of (seconds, value) per minute after the warm-up, by least squares, or
    None if the time is too short."""
    warm = [(at / 60, value) for at, value in points if at >= points[0][0] + WARM_UP_S]
    if len(warm) < 3:
        return None
    x0, y0 = (statistics.fmean(column) for column in zip(*warm))
    xx = sum((x - x0) ** 2 for x, _ in warm)
    return sum((x - x0) * (y - y0) for x, y in warm) / xx if xx else None


def faults(row):
    """Returns a sentence for each limit that a row of the soak's table exceeds."""
    who, found = f"the {row['process']} of {row['host']}", []
    slope_, width, kept = row["kib_per_minute"], row["plus_minus"], row["kept_per_minute"]
    if kept is not None and kept > GROWTH_MAX:
        found.append(f"{who} keeps {kept:.0f} KiB more a minute than its successor (allowed: {GROWTH_MAX})")
    elif kept is None and slope_ is not None and (slope_ - width > GROWTH_MAX or slope_ + width > NOISE_MAX):
        found.append(
            f"{who} grows by {slope_:.0f} ± {width:.0f} KiB a minute (allowed: {GROWTH_MAX}, with the noise {NOISE_MAX})"
        )
    bound = BOUNDS.get(row["process"])
    if bound and row["kib_most"] > bound << 10:
        found.append(f"{who} had {row['kib_most'] / 1024:.1f} MiB (allowed: {bound})")
    for what, most in (("descriptors", DESCRIPTORS_MAX), ("threads", THREADS_MAX)):
        first, last = row[what]
        if last > first + most:
            found.append(f"{who} had {first} {what}, in the end {last}")
    return found


def edges(processes, column):
    """Returns the medians of the first and of the last warm samples."""
    values = [s[column] for process in processes for s in process.warm()] or [
        s[column] for process in processes for s in process.samples
    ]
    return statistics.median(values[:EDGE]), statistics.median(values[-EDGE:])
