"""Tests the examples for several nodes, in a lab under its Slurm. On each host, a core replaces the
GPU."""

import os
import pathlib
import re
import shutil
import textwrap
import unittest

import lab as labs
from lab import Lab

EXAMPLES = pathlib.Path(os.environ["EXAMPLES"])
PACKAGE = pathlib.Path(os.environ["PACKAGE"])
FOLDERS = {f"packages-{number}": path for number, path in enumerate(os.environ.get("PYTHONPATH", "").split(":")) if os.path.isdir(path)}
PATHS = [f"/mnt/folders/{name}" for name in FOLDERS]  # paths on the hosts
lab = None
cores = sorted(os.sched_getaffinity(0))


def pin(pid, core):
    for task in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(task), {core})


def setUpModule():
    global lab
    lab = Lab([os.environ["SONDE"]], folders=FOLDERS)
    if lab.run("n1", "python3", "-c", "import numpy", env={"PYTHONPATH": ":".join(PATHS)}).returncode != 0:
        lab.close()
        raise unittest.SkipTest("the python3 of the hosts finds no NumPy")
    shutil.copytree(EXAMPLES, lab.shared / "examples")
    shutil.copytree(PACKAGE / "sonde", lab.shared / "package/sonde")
    # The processes on the first host inherit this process' core. Those on the others, which Slurm
    # starts, inherit the core of their slurmd.
    pin(os.getpid(), cores[0])
    for host in ("n2", "n3"):
        for pid in lab.processes(host):
            pin(pid, cores[1])


def tearDownModule():
    lab.close()


class Examples(unittest.TestCase):
    maxDiff = None

    def example(self, name, *arguments, nodes=1, launcher=None, options=(), env=None):
        """Runs salloc … sonde run … name … in a new folder; returns its standard output and
        standard error."""
        folder = f"/mnt/shared/{self.id().rsplit('.', 1)[1]}-{nodes}"
        (lab.shared / folder.rsplit("/", 1)[1]).mkdir()
        path = ["/mnt/shared/package", *PATHS]
        launcher = ["salloc", "--quiet", f"-N{nodes}"] if launcher is None else launcher
        done = lab.run("n1", "env", "-C", folder, *launcher, "sonde", "run", f"--record={folder}/recording", *options, f"/mnt/shared/examples/{name}", *arguments,
                       env={"PYTHONPATH": ":".join(path)} | (env or {}))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        left = {host: lab.processes(host, "/mnt/shared/examples") for host in lab.names}
        labs.until(lambda: not any(lab.processes(host, "/mnt/shared/examples") for host in lab.names), f"no process of an example is left: {left}")
        return done.stdout, done.stderr

    def points(self, folder, metric):
        """Returns host → number of points."""
        listed = lab.run("n1", "sonde", "query", "--list", "--json", f"/mnt/shared/{folder}/recording")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        return {s["tags"]["host"]: s["points"] for s in labs.json.loads(listed.stdout) if s["metric"] == metric}

    @unittest.skipIf(len(cores) < 2, "a disturbed core and an undisturbed one are needed")
    def test_slow_gpu(self):
        """A run uses two of three nodes. The disturbed node is excluded, then its replacement. The
        first node continues alone, and the result equals that of a run on one node."""
        env = {"SONDE_PROBE_DEVICES": "cpu:0"}
        work = ["--matrices=400", "--size=60"]
        alone, _ = self.example("slow_gpu.py", *work, env=env)
        self.assertIn("Computed 24000 eigenvalues\n", alone)
        out, err = self.example("slow_gpu.py", *work, "--pace=1", "--rate=1", "--plot", nodes=3, env=env,
                                options=["--telemetry-level=3", "--nodes=2", "--resilient", "--exhaust-resources"])
        self.assertEqual(re.findall("Attempt.*", out), ["Attempt 0: n1 cpu:0, n2 cpu:0", "Attempt 1: n1 cpu:0, n3 cpu:0", "Attempt 2: n1 cpu:0"], err)
        self.assertEqual(out.splitlines()[-len(alone.splitlines()[2:]):], alone.splitlines()[2:], err)
        times = lab.run("n1", "sonde", "query", "--csv", "none:slow-gpu{host=*}", "/mnt/shared/test_slow_gpu-3/recording").stdout
        print("# printed, and seconds that probes took:", *out.splitlines(), *times.splitlines(), sep="\n# ", flush=True)
        named = re.findall("GPU (n[0-9])/0 is slow: ([0-9.]+) times as long as the others, in [0-9]+ rounds running, found with probe ([0-9]+)", err)
        # Keeps the first report of each host.
        probes = {host: int(count) for host, _, count in reversed(named)}
        self.assertEqual(sorted(probes), ["n2", "n3"], err)
        self.assertLessEqual(max(probes.values()), 6, err)
        self.assertTrue((lab.shared / "test_slow_gpu-3/eigvals.png").exists() or "matplotlib is not installed" in out)
        print("# slow, times as long, found with probe:", named, "recorded:", self.points("test_slow_gpu-3", "slow-gpu"), flush=True)

    def test_scipy_scale_work(self):
        """The example has processes on both nodes, started by srun or ssh, and leaves none."""
        for launcher, options in ((None, []), ([], ["--hosts=n[1-2]"])):
            shutil.rmtree(lab.shared / "test_scipy_scale_work-2", ignore_errors=True)
            out, err = self.example("scipy_scale_work.py", "--dragon", "--num_workers=3", "--mem=40000", "--size=100", "--iterations=1", "--burns=1", "--runtime=0.01",
                                    nodes=2, launcher=launcher, options=["--telemetry-level=2", *options])
            self.assertIn("using the job's nodes: n1, n2\n", out, err)
            self.assertEqual(self.points("test_scipy_scale_work-2", "iteration_time"), {"n1": 2})

    def test_own_writes(self):
        """In each of 50 rounds, a process on each node emits values. Its own first query returns
        them, and so does the first query of another process on the first node."""
        (lab.shared / "examples/own_writes.py").write_text(textwrap.dedent('''
            import os
            from on_nodes import Place, Processes, nodes
            import sonde

            TIMES = 50
            client = None

            def last(metric, **tags):
                global client
                client = client or sonde.AnalysisClient()
                return {series.tags["host"]: list(series)[-1][1] for series in client.query(metric=metric, tags=tags)}

            def emit(number):
                host = os.uname().nodename
                sonde.gauge("own")(number)
                sonde.counter("own_total").add()
                own = last("own", host=host) == {host: number} and last("own_total", host=host) == {host: number + 1}
                sonde.gauge("other")(number)
                return own

            if __name__ == "__main__":
                with Processes([Place(host) for host in nodes()]) as processes:
                    own, other = [], []
                    for number in range(TIMES):
                        own += processes.each(emit, number)
                        other.append(last("other") == dict.fromkeys(nodes(), number))
                print(f"own {sum(own)} of {len(own)}, other {sum(other)} of {len(other)}")
        '''))
        out, err = self.example("own_writes.py", nodes=3, options=["--telemetry-level=1"])
        self.assertEqual(out, "own 150 of 150, other 50 of 50\n", err)

    def test_merge_sort(self):
        """Every node has a row with its processes and the size at which it stopped dividing its
        part of the list."""
        out, err = self.example("merge_sort.py", "--min-size=3000", "--max-size=3000", "--limit=2", "--pause=1", nodes=3, options=["--telemetry-level=2"])
        rows = [line.split() for line in out.splitlines()[1:-1]]
        self.assertEqual([(size, host) for size, _, host, _, _ in rows], [("3000", host) for host in lab.names], out + err)
        self.assertTrue(all(0 < float(cutoff) <= 1000 for *_, cutoff in rows), out)


if __name__ == "__main__":
    labs.skip_if(labs.why_not())
    unittest.main(verbosity=2)
