"""Clusters for the tests of sonde.dask, with the Dask in PYTHONPATH, and tasks for them."""

import contextlib
import functools
import os
import sys
import time
import unittest
import unittest.mock

sys.path[:0] = [os.environ["PACKAGE"], os.environ["PLACE"]]
from place import PATIENCE_S, Place  # noqa: E402
from published import BENCHMARK  # noqa: E402

try:
    import distributed  # noqa: F401
except ImportError:
    print("Dask is not here (tools/test installs it): nothing is tested")
    sys.exit(77)
from distributed import Client, LocalCluster, Nanny  # noqa: E402

import dask.config  # noqa: E402

from sonde.dask import _csv  # noqa: E402

# A busy machine is not an error: a connection may be slow, and a worker may not be back after 15 s
# (LocalCluster then closes its nanny: a restart still in progress 15 s after a kill loses that
# worker).
PATIENT = {
    "comm.timeouts.connect": PATIENCE_S,
    "comm.timeouts.tcp": PATIENCE_S,
    "deploy.lost-worker-timeout": 2 * PATIENCE_S,
}
dask.config.set({f"distributed.{name}": f"{seconds}s" for name, seconds in PATIENT.items()})

INTERVAL_MS = 50
GPUS = 8


def sleep(seconds, value=None):
    time.sleep(seconds)
    return value


def pause(seconds):
    time.sleep(seconds)


def fail():
    raise ZeroDivisionError("on purpose")


def grow(megabytes):
    held = bytearray(megabytes << 20)
    held[::4096] = b"x" * len(held[::4096])
    time.sleep(0.5)
    return len(held)


def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.01)


class PatientNanny(Nanny):
    """Gives a worker time to end. Dask's own nanny gives up after five seconds, too few on a busy
    machine, and leaves the cluster half closed."""

    async def kill(self, timeout=0, reason="nanny-kill"):
        await super().kill(timeout=max(timeout, PATIENCE_S / 2), reason=reason)


@functools.cache
def played():
    """Returns a real recording if one is available, else a generated one."""
    recorded = BENCHMARK / "worker_0.csv.gz"
    if not recorded.is_file():
        return [[[(i * 7 + g) % 101, i % 50, (i + g * 1000) << 20] for g in range(GPUS)] for i in range(2000)]
    found = _csv.read(recorded)
    memory, activity, compute = (found.columns.index(name) for name in ("total-mem", "mem-util", "compute-util"))
    return [[[row[compute][g], row[activity][g], row[memory][g]] for g in range(GPUS)] for row in found.rows[2000:4000]]


class Clusters(Place):
    def setUp(self):
        super().setUp()
        rows = self.play()
        script = self.root / "nvml.txt"
        script.write_text(f"gpus {GPUS}\nset * memory_total {64 << 30}\nplay {rows}\n")
        # spawned workers import this file
        more = {name: os.environ[name] for name in ("SONDE", "PACKAGE", "PLACE", "FAKE_NVML", "SOURCE", "DASHBOARDS")} | {
            "SONDE_NVML": os.environ["FAKE_NVML"], "SONDE_FAKE_NVML": str(script), "DASK_DISTRIBUTED__DIAGNOSTICS__NVML": "False",
            "PYTHONPATH": os.environ["PACKAGE"] + ":" + os.environ["PYTHONPATH"] + ":" + os.path.dirname(__file__),
            "DASK_TEMPORARY_DIRECTORY": str(self.root),
        }  # fmt: skip
        patch = unittest.mock.patch.dict(os.environ, self.env | more, clear=True)
        patch.start()
        self.addCleanup(patch.stop)
        here = os.getcwd()
        os.chdir(self.root)
        self.addCleanup(os.chdir, here)

    def alive(self, word=None):
        """Leaves out the helper process that the interpreter keeps for its spawned children."""
        return {pid: text for pid, text in super().alive(word).items() if "multiprocessing.resource_tracker" not in text}

    def play(self):
        """Returns the simulated data of the GPUs: rows of utilisation, memory activity and used
        memory for each GPU."""
        self.table = played()
        path = self.root / "play.txt"
        path.write_text("\n".join(" ".join(str(v) for gpu in row for v in gpu) for row in self.table))
        return path

    @contextlib.contextmanager
    def cluster(self, workers=2, **options):
        options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None} | ({"worker_class": PatientNanny} if options.get("processes", True) else {}) | options
        with LocalCluster(**options) as cluster, Client(cluster) as client:
            yield cluster, client

    def csv(self, monitor, **options):
        """Writes the files and reads them back, by worker."""
        folder = self.root / f"csv-{time.monotonic_ns()}"
        return [_csv.read(path) for path in monitor.to_csv(folder, **options)]

    def one_row_each(self, recording, interval_ms):
        """Asserts one row per interval. On a busy machine, the agent may miss the first instant of
        an interval."""
        intervals = [round(time_s * 1000) // interval_ms for [time_s] in self.column(recording, "time")]
        self.assertEqual(intervals, sorted(set(intervals)))

    def column(self, recording, name):
        place = recording.columns.index(name)
        return [row[place] for row in recording.rows]
