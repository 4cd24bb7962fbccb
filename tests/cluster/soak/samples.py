"""Memory, descriptors and threads of each process of sonde, second by second, and the slope of the
memory. It is the process' own (RssAnon): no mapped files, no shared memory."""

import math
import os
import pathlib
import statistics

WARM_UP_S = 30  # of each process: its caches and tables fill
BLOCK_S = (
    10  # seconds that make one value for the slope: what follows within them is not independent
)
EDGE = 10  # samples whose median is the first or the last number of descriptors


class Process:
    """One process, from its first sample to its end."""

    def __init__(self, pid, role, host):
        self.pid, self.role, self.host = pid, role, host
        self.samples = []  # (seconds, KiB, descriptors, threads)

    def sample(self, now_s):
        """False: it has ended."""
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
    """agent, aggregator, relay, node, run; None for what is not sonde."""
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
        """None: there is none just now."""
        return next(
            (p.pid for p in self.running.values() if (p.role, p.host) == (role, host)), None
        )

    def groups(self):
        """(role, host) → its processes, one after another."""
        found = {}
        for process in [*self.ended, *self.running.values()]:
            if process.samples:
                found.setdefault((process.role, process.host), []).append(process)
        return {key: sorted(found[key], key=lambda p: p.samples[0][0]) for key in sorted(found)}


def blocks(samples):
    """(minutes, KiB), a mean each BLOCK_S."""
    found = {}
    for at, kib, *_ in samples:
        found.setdefault(int(at // BLOCK_S), []).append((at / 60, kib))
    return [tuple(statistics.fmean(column) for column in zip(*block)) for block in found.values()]


def slope(processes):
    """(KiB a minute, half of the width of its 95 % interval) over processes that followed one another:
    least squares with one slope for all and a level for each.
    None: too short to say."""
    xx = xy = yy = 0.0
    free = -1  # degrees of freedom: values, less a level each, less the slope
    for process in processes:
        points = blocks(process.warm())
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
    )  # Student's, within 2 % from 2 degrees on
    return xy / xx, t95 * math.sqrt(rest / free / xx)


def edges(processes, column):
    """The medians of the first and the last warm samples."""
    values = [s[column] for process in processes for s in process.warm()] or [
        s[column] for process in processes for s in process.samples
    ]
    return statistics.median(values[:EDGE]), statistics.median(values[-EDGE:])
