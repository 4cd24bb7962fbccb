"""Tests small runs of the examples on one node: they print the described output, and record the
described data. Like the examples, the tests need NumPy."""

import importlib.util
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.environ["PLACE"])
from place import PATIENCE_S, Place, main  # noqa: E402

EXAMPLES = pathlib.Path(os.environ["EXAMPLES"])
SCALE = ["--mem", "160000", "--size", "100", "--num_workers", "2", "--iterations", "2", "--burns", "1", "--runtime", "0.002"]


class Example(Place):
    def setUp(self):
        super().setUp()
        self.env |= {"PYTHONPATH": f"{os.environ['PACKAGE']}:{os.environ.get('PYTHONPATH', '')}"}
        self.record = self.root / "recording"

    def example(self, name, *arguments, level=2, options=(), code=0, env=None):
        result = self.sonde("run", "--quiet", f"--telemetry-level={level}", "--record", self.record, *options, EXAMPLES / name, *arguments, env=env)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def alone(self, name, *arguments):
        """Runs an example without `sonde run`."""
        return subprocess.run([sys.executable, EXAMPLES / name, *arguments], env=self.env, cwd=self.root, capture_output=True, text=True, timeout=PATIENCE_S)


class ScaleWork(Example):
    def test_multiprocessing_and_the_jobs_nodes(self):
        for more, said in (([], "using regular mp libs/calls"), (["--dragon"], f"using the job's nodes: {os.uname().nodename}")):
            self.record = self.root / f"recording{len(more)}"
            lines = self.example("scipy_scale_work.py", *SCALE, *more).stdout.splitlines()
            self.assertEqual(lines[:3], ["Number of images: 16", "Number of workers: 2", said])
            for i, line in enumerate(lines[3:6]):
                self.assertRegex(line, rf"^Time for iteration {i} is [0-9.e-]+ seconds$")
            self.assertRegex(lines[6], r"^Average time: [0-9.]+ second\(s\)$")
            self.assertRegex(lines[7], r"^Standard deviation: [0-9.]+ second\(s\)$")
            names = self.names(self.record)
            self.assertEqual((names["iteration_time"], names["pool_start_time"], names.get("iteration")), (3, 1, None))

    def test_level_3_and_without_sonde(self):
        self.example("scipy_scale_work.py", *SCALE, "--dragon", level=3)
        self.assertEqual(self.names(self.record)["iteration"], 3)
        result = self.alone("scipy_scale_work.py", *SCALE, "--dragon")
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        self.assertIn("Average time", result.stdout)

    def test_options(self):
        for name in ("scipy_scale_work.py", "scipy_scale_work_db_dump.py"):
            said = self.alone(name, "--help").stdout
            for option in ("--num_workers", "--iterations", "--burns", "--dragon", "--size", "--mem", "--runtime"):
                self.assertIn(option, said)
        self.assertEqual(self.alone("scipy_scale_work.py", "--num_workers=0").returncode, 2)


class DbDump(Example):
    def test_what_is_dumped_can_be_read(self):
        if "--dump-dir" not in self.sonde("help", "run").stdout:
            self.skipTest("this sonde has no `dump`")
        folder = self.root / "dumped"
        folder.mkdir()
        lines = self.example("scipy_scale_work_db_dump.py", *SCALE, "--runtime=0.05", options=[f"--dump-dir={folder}"]).stdout.splitlines()
        (dumped,) = folder.iterdir()
        host = os.uname().nodename
        self.assertRegex(lines[-2], "^Standard deviation")
        self.assertTrue(lines[-1].startswith(f"Dump of {host}: success, ") and str(dumped) in lines[-1], lines)
        names = self.names(dumped)
        # The dump contains the last points, which were emitted just before it.
        self.assertEqual((names["iteration_time"], names["pool_start_time"]), (3, 1))
        self.assertIn("cpu_percent", names)


class MergeSort(Example):
    def test_telemetry_ends_the_recursion(self):
        """The first count of processes is already above the limit, so the list is divided less than
        six times. After six divisions, parts of 4,000 numbers have 62."""
        result = self.example("merge_sort.py", "--min-size=4000", "--max-size=4000", "--limit=-1000000", "--pause=4")
        title, row, metrics = result.stdout.splitlines()
        self.assertEqual(title.split(), "List Size Time (seconds) Hostname Processes Cutoff".split())
        size, took, host, most, cutoff = row.split()
        self.assertEqual((size, host), ("4000", os.uname().nodename))
        self.assertGreater(int(most), 0)
        self.assertIn(int(cutoff), (4000, 2000, 1000, 500, 250, 125), result.stderr)
        self.assertIn("'merge_cutoff'", metrics)

    def test_a_list_that_is_sorted_before_the_first_count(self):
        """Each list has a row, even if it is sorted between two counts of processes."""
        result = self.example("merge_sort.py", "--min-size=1", "--max-size=5", "--increment=1", "--pause=0")
        rows = [line.split() for line in result.stdout.splitlines()[1:-1]]
        self.assertEqual([(size, host, cutoff) for size, _, host, _, cutoff in rows], [(str(size), os.uname().nodename, "1") for size in range(1, 6)])

    def test_level_1_is_too_low(self):
        self.assertIn("needs level 2 or higher", self.example("merge_sort.py", level=1, code=1).stderr)
        self.assertEqual(self.alone("merge_sort.py", "--min-size=0").returncode, 2)


class SlowGpu(Example):
    WORK = ["--matrices=30", "--size=50"]

    def test_cores_replace_gpus(self):
        """The result does not depend on the number of devices. It is also computed without any."""
        results = set()
        for devices, word in (("cpu:0,cpu:0", "cpu:0"), ("cpu:0", "cpu:0"), ("", "cpu")):
            self.record = self.root / f"recording{len(results)}{len(devices)}"
            lines = self.example("slow_gpu.py", *self.WORK, level=3, env={"SONDE_PROBE_DEVICES": devices}).stdout.splitlines()
            host = os.uname().nodename
            self.assertEqual(lines[0], f"Sacred node: {host}")
            self.assertTrue(lines[1].startswith(f"Attempt 0: {host} {word}"), lines)
            results.add(tuple(lines[2:]))
        self.assertEqual(len(results), 1, results)
        self.assertEqual(results.pop()[0], "Computed 1500 eigenvalues")
        self.assertEqual(list(self.root.glob("*.checkpoint")), [])

    def test_plot(self):
        result = self.example("slow_gpu.py", *self.WORK, "--plot", env={"SONDE_PROBE_DEVICES": "cpu:0"})
        if importlib.util.find_spec("matplotlib"):
            self.assertEqual((self.root / "eigvals.png").read_bytes()[:4], b"\x89PNG")
        else:
            self.assertIn("matplotlib is not installed", result.stdout)

    def test_a_program_continues_from_a_checkpoint(self):
        """An incomplete result of an interrupted write does not count."""
        sys.path[:0] = [str(EXAMPLES), os.environ["PACKAGE"]]
        import numpy
        from slow_gpu import Checkpoint
        path = self.root / "there"

        def add(results):
            with Checkpoint(path) as checkpoint:
                before = dict(checkpoint.done)
                for number, values in results.items():
                    checkpoint.add(number, values)
            return before

        add({3: numpy.arange(3.0), 1: numpy.arange(1.0)})
        whole = path.read_bytes()
        for cut in range(len(whole)):
            path.write_bytes(whole[:cut])
            self.assertEqual(list(add({7: numpy.ones(1)})), [3] if cut >= 40 else [], cut)
            self.assertEqual(list(add({})), [3, 7] if cut >= 40 else [7])
        self.assertEqual(list(add({})[3]), [0, 1, 2])
        # The program does not compute these three results again: their made-up values stay.
        path.unlink()
        add({number: numpy.full(50, 100.0) for number in range(3)})
        result = self.example("slow_gpu.py", *self.WORK, "--checkpoint", path, env={"SONDE_PROBE_DEVICES": "cpu:0"})
        self.assertRegex(result.stdout, r"Computed 1500 eigenvalues\nfrom -2.* to 100.000,")


class OnNodes(Example):
    def test_errors_and_ends(self):
        """An exception of a function reaches the caller. If a process ends, its calls fail. The
        other processes continue, and none is left at the end."""
        program = self.root / "program.py"
        program.write_text("""
import os, signal, sys
from on_nodes import Place, Processes, nodes
def divide(a):
    print("on standard error")
    return 1 / a, os.environ["MINE"]
def end(_):
    os.kill(os.getpid(), signal.SIGKILL)
if __name__ == "__main__":
    with Processes([Place(nodes()[0], {"MINE": str(i)}) for i in range(2)]) as processes:
        print(sorted(processes.each(divide, 2)))
        print([value for value, _ in processes.map(divide, range(1, 5))])
        for function, items in ((divide, [1, 0]), (end, [1]), (divide, [1])):
            try:
                print(processes.map(function, items))
            except (ZeroDivisionError, RuntimeError) as error:
                print(error)
        print(processes.processes[1].call(divide, 4).result())
""")
        self.env["PYTHONPATH"] += f":{EXAMPLES}"
        result = subprocess.run([sys.executable, program], env=self.env, cwd=self.root, capture_output=True, text=True, timeout=PATIENCE_S)
        gone = f"the process on {os.uname().nodename} has ended (exit code -9)"
        self.assertEqual(result.stdout.splitlines(), ["[(0.5, '0'), (0.5, '1')]", "[1.0, 0.5, 0.3333333333333333, 0.25]", "division by zero", gone, gone, "(0.25, '1')"], result.stderr)
        self.assertIn("on standard error", result.stderr)


if __name__ == "__main__":
    if importlib.util.find_spec("numpy") is None:
        print("skipped: the examples need NumPy (tools/test fetches it)")
        sys.exit(77)
    main()
