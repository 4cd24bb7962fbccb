"""sonde.dask over several hosts: the scheduler on n1, workers on n2 and n3, over ssh and under Slurm, as SSHCluster and dask-jobqueue start them. GPUs are played by the fake NVML.

Where there is no root, no namespaces or no Dask the suite is skipped with a word.
"""

import json
import os
import pathlib
import sys
import textwrap
import unittest

from lab import Lab, until, why_not

SONDE = os.environ["SONDE"]
PATHS = os.environ["PACKAGE"] + ":" + os.environ["DASK"]
PYTHON = "/usr/bin/python3"  # what hosts see of this machine, which a python3 in somebody's home is not
# A host's GPUs answer with this utilisation.
BUSY = {"n1": 11, "n2": 22, "n3": 33}

CLIENT = """
import json, os, sys, time
from distributed import Client
from sonde.dask import Monitor

with Client("tcp://n1:8786") as client:
    client.wait_for_workers(3, timeout=60)
    with Monitor(client, tracking=["compute-util", "tasks", "rss"], polling_interval=100) as monitor:
        client.gather(client.map(time.sleep, [0.3, 0.31, 0.32, 0.33]))
        def address():
            workers = client.scheduler_info(**({} if "--old" in sys.argv else {"n_workers": -1}))["workers"]
            return next((address for address, worker in workers.items() if worker["name"] == "a"), None)
        first = address()
        dies = client.submit(os._exit, 1, workers=[first])
        while address() in (first, None):
            time.sleep(0.05)
        dies.cancel()
        client.gather(client.map(time.sleep, [0.2, 0.21], pure=False))
    files = monitor.to_csv("/mnt/shared/csv", identity=True)
    print(json.dumps([monitor.get_peaks("compute-util"), len(files), monitor.where()]))
    monitor.shutdown()
"""


def setUpModule():
    global lab
    lab = Lab([SONDE])
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
        (lab.shared / "client.py").write_text(textwrap.dedent(CLIENT))

    def tearDown(self):
        for host in BUSY:
            lab.kill(host)
            lab.run(host, "sh", "-c", "rm -rf /tmp/* /mnt/shared/*")
        for process in self.started:
            process.kill()
            _, said = process.communicate()
            if self.failed:
                print(said, file=sys.stderr)

    def environment(self, host):
        return {
            "PYTHONPATH": PATHS, "PYTHONDONTWRITEBYTECODE": "1", "SONDE_NVML": os.environ["FAKE_NVML"], "SONDE_FAKE_NVML": f"/mnt/shared/{host}.txt",
            "DASK_DISTRIBUTED__DIAGNOSTICS__NVML": "False", "SONDE_RUNS": "/mnt/shared/runs",
        }  # fmt: skip

    def start(self, host, *command):
        process = lab.start(host, *command, env=self.environment(host))
        self.started.append(process)
        return process

    def worker(self, name):
        return [PYTHON, "-m", "distributed.cli.dask_worker", "tcp://n1:8786", "--nthreads", "1", "--name", name, "--no-dashboard", "--local-directory", "/tmp"]

    def scheduler(self):
        self.start("n1", PYTHON, "-m", "distributed.cli.dask_scheduler", "--port", "8786", "--no-dashboard")

    def look(self):
        result = lab.run("n1", PYTHON, "/mnt/shared/client.py", *(["--old"] if os.environ.get("DASK_OLD") else []), env=self.environment("n1"), timeout=180)
        self.assertEqual(result.returncode, 0, result.stderr)
        peaks, files, where = json.loads(result.stdout)
        self.assertEqual(files, 3)
        seen = sorted({tuple(values) for worker in peaks for values in worker.values()})
        self.assertEqual(seen, [(22, 22), (33, 33)])
        # One agent a host, however many workers; ended at once, and every host's recording is in its place.
        for host in BUSY:
            until(lambda: not lab.processes(host, "sonde "), f"sonde has ended on {host}: {lab.processes(host, 'sonde ')}")
            self.assertEqual(lab.run(host, "sh", "-c", "ls -d /tmp/sonde-0/*/*").stdout, "", host)
        kept = sorted(path.name for path in (lab.shared / "runs" / where["job"]).glob("*.sonde"))
        self.assertEqual(kept, ["n1.sonde", "n2.sonde", "n3.sonde"])
        rows = [line.split(",") for line in (lab.shared / "csv" / "worker_0.csv").read_text().splitlines()[1:]]
        self.assertGreater(len(rows), 3)
        self.failed = False

    def test_over_ssh(self):
        self.scheduler()
        for name, host in {"a": "n2", "b": "n2", "c": "n3"}.items():
            self.start(host, *self.worker(name))
        self.look()

    def test_under_slurm(self):
        """The scheduler stands outside of the workers' job."""
        self.scheduler()
        for name, host in {"a": "n2", "b": "n2", "c": "n3"}.items():
            self.start(host, "srun", "--overlap", "-N1", "-n1", "-w", host, "--export=ALL", *self.worker(name))
        self.look()


if __name__ == "__main__":
    word = why_not() or ("Dask is not here (tools/test installs it)" if not pathlib.Path(os.environ["DASK"].split(":")[0], "distributed").is_dir() else None)
    if word:
        print(word)
        sys.exit(77)
    unittest.main(verbosity=1)
