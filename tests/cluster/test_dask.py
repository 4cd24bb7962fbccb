"""Tests sonde.dask on several hosts, with clusters made by the usual tools: SSHCluster,
dask-jobqueue's SLURMCluster, dask-mpi, and `dask worker` by hand. The scheduler is on n1, workers
are on n2 and n3. A fake NVML simulates GPUs.

Without root, namespaces or Dask, the suite is skipped with a message.
"""

import json
import os
import pathlib
import sys
import textwrap
import unittest

from lab import Lab, skip_if, until, why_not

SONDE = os.environ["SONDE"]
FAKE_NVML = os.environ["FAKE_NVML"]
FOLDERS = dict(zip(("package", "newest", "clusters"), map(pathlib.Path, [os.environ["PACKAGE"], *os.environ["DASK"].split(":")])))
FOLDERS = {name: path for name, path in FOLDERS.items() if path.is_dir()}
PATHS = ":".join(f"/mnt/folders/{name}" for name in FOLDERS)  # paths on the hosts
# The hosts see this Python, but not one in a home folder.
PYTHON = "/usr/bin/python3"
# The utilisation that the fake GPUs of each host report.
BUSY = {"n1": 11, "n2": 22, "n3": 33}

# The checks for every kind of cluster. A worker with a nanny is restarted when a task kills it.
LOOK = """
import json, os, time
from distributed import Client
from sonde.dask import Monitor

def look(client, count, nanny=True):
    client.wait_for_workers(count, timeout=300)
    with Monitor(client, tracking=["compute-util", "tasks", "rss"], polling_interval=100) as monitor:
        client.gather(client.map(time.sleep, [0.3, 0.31, 0.32, 0.33]))
        if nanny:
            addresses = lambda: client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.workers))
            before = addresses()
            dies = client.submit(os._exit, 1, workers=before[:1])
            while before[0] in addresses() or len(addresses()) < count:
                time.sleep(0.05)
            dies.cancel()
        client.gather(client.map(time.sleep, [0.2] * 2 * count, pure=False))
    files = monitor.to_csv("/mnt/shared/csv", identity=True)
    print(json.dumps([monitor.get_peaks("compute-util"), len(files), monitor.where()]), flush=True)
    monitor.shutdown()
"""
BY_HAND = """
with Client("tcp://n1:8786") as client:
    look(client, 3)
"""
BY_SSH = """
from distributed import SSHCluster

with SSHCluster(
    ["n1", "n2", "n2", "n3"], connect_options={"known_hosts": "/mnt/ssh/known", "client_keys": ["/root/.ssh/id"]}, remote_python="/mnt/shared/python",
    scheduler_options={"port": 0, "dashboard": False}, worker_options={"nthreads": 1, "local_directory": "/tmp"},
) as cluster, Client(cluster) as client:
    look(client, 3)
"""
BY_SLURM = """
from dask_jobqueue import SLURMCluster

with SLURMCluster(
    cores=2, processes=1, memory="1GB", interface="eth0", python="/mnt/shared/python", local_directory="/tmp", log_directory="/mnt/shared/log",
    job_directives_skip=["--mem"], job_extra_directives=["--exclude=n1"], scheduler_options={"dashboard": False},
) as cluster, Client(cluster) as client:
    cluster.scale(jobs=3)
    look(client, 3)
"""
BY_MPI = """
from dask_mpi import initialize

initialize(interface="eth0", nthreads=1, dashboard=False, local_directory="/tmp")
with Client() as client:
    look(client, 2, nanny=False)
"""


def needs(*modules):
    absent = [module for module in modules if not any((folder / module).is_dir() for folder in FOLDERS.values())]
    return unittest.skipIf(absent, f"{', '.join(absent)} is not installed (tools/test installs it)")


def setUpModule():
    global lab
    lab = Lab([SONDE, FAKE_NVML], folders=FOLDERS)
    found = lab.run("n1", PYTHON, "-c", "import distributed, sonde.dask", env={"PYTHONPATH": PATHS})
    if found.returncode != 0:
        lab.close()
        raise unittest.SkipTest(f"{PYTHON} of the hosts finds no Dask: {found.stderr.strip().splitlines()[-1]}")


def tearDownModule():
    lab.close()


class Dask(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.started, self.failed = [], True
        for host, busy in BUSY.items():
            (lab.shared / f"{host}.txt").write_text(f"gpus 2\nset * utilization {busy}\n")
        # This wrapper of Python sets the environment with which every program on a host finds the
        # packages and the host's GPUs.
        python = lab.shared / "python"
        python.write_text(
            f'#!/bin/sh\nPATH=/mnt/bin:$PATH\nexport PYTHONPATH={PATHS} SONDE_NVML=/mnt/bin/{os.path.basename(FAKE_NVML)} SONDE_RUNS=/mnt/shared/runs\n'
            f'export SONDE_FAKE_NVML=/mnt/shared/$(uname -n).txt DASK_DISTRIBUTED__DIAGNOSTICS__NVML=False DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT=300s\nexec {PYTHON} "$@"\n'
        )
        python.chmod(0o755)

    def tearDown(self):
        for host in BUSY:
            lab.kill(host)
            lab.clear(host, "/tmp", "/mnt/shared")
        for process in self.started:
            process.kill()
            _, said = process.communicate()
            if self.failed:
                print(said, file=sys.stderr)

    def start(self, host, *arguments):
        self.started.append(lab.start(host, "/mnt/shared/python", *arguments))

    def look(self, text, files, nodes, *command):
        """Runs the client's program on n1 and checks its output. `nodes` are the hosts of workers,
        `files` is the number of CSV files."""
        (lab.shared / "client.py").write_text(textwrap.dedent(LOOK + text))
        result = lab.run("n1", *command, "/mnt/shared/python", "/mnt/shared/client.py")
        self.assertEqual(result.returncode, 0, result.stderr)
        peaks, count, where = json.loads(result.stdout.splitlines()[-1])
        self.assertEqual(count, files)
        seen = sorted({tuple(values) for worker in peaks for values in worker.values()})
        self.assertEqual(seen, [(BUSY[node],) * 2 for node in nodes])
        # All of sonde has ended on each host, and the recording has one file per host, whatever the
        # number of workers.
        for host in BUSY:
            until(lambda: not lab.processes(host, "sonde "), f"sonde has ended on {host}: {lab.processes(host, 'sonde ')}")
            self.assertEqual(lab.run(host, "sh", "-c", "ls -d /tmp/sonde-0/*/*").stdout, "", host)
        kept = sorted(path.name for path in (lab.shared / "runs" / where["job"]).glob("*.sonde"))
        self.assertEqual(kept, sorted(f"{host}.sonde" for host in {"n1", *nodes}))
        for number in range(files):
            self.assertGreater(len((lab.shared / "csv" / f"worker_{number}.csv").read_text().splitlines()), 3)
        self.failed = False

    def test_by_hand(self):
        self.start("n1", "-m", "distributed.cli.dask_scheduler", "--port", "8786", "--no-dashboard")
        for name, host in {"a": "n2", "b": "n2", "c": "n3"}.items():
            self.start(host, "-m", "distributed.cli.dask_worker", "tcp://n1:8786", "--nthreads", "1", "--name", name, "--no-dashboard", "--local-directory", "/tmp")
        self.look(BY_HAND, 3, ["n2", "n3"])

    @needs("asyncssh")
    def test_by_ssh(self):
        """A worker of an SSHCluster has no name of its own, so a restarted worker counts as a new
        one."""
        self.look(BY_SSH, 4, ["n2", "n3"])

    @needs("dask_jobqueue")
    def test_by_slurm(self):
        self.look(BY_SLURM, 3, ["n2", "n3"])

    @needs("dask_mpi", "mpi4py")
    def test_by_mpi(self):
        """Scheduler and client are ranks of the same MPI job."""
        self.look(BY_MPI, 2, ["n2", "n3"], "mpirun", "-np", "4", "--host", "n1:2,n2,n3")


if __name__ == "__main__":
    skip_if(why_not() or ("Dask is not installed (tools/test installs it)" if "newest" not in FOLDERS else None))
    unittest.main(verbosity=1)
