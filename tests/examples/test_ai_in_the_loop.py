"""The paper's demonstration on one node, small: Python, C and Fortran record on one timeline, the
report shows its phases and its metrics, the dashboard's queries are answered, and the page in a
browser shows the same while the job runs. Needs an MPI and NumPy."""

import importlib.util
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.environ["PLACE"])
import loop  # noqa: E402
from place import Place, main  # noqa: E402

PAGE = loop.SOURCE / "tests/web/ai_in_the_loop.mjs"
ITERATIONS, STEP, RANKS, POINTS = 4, 0.5, 2, 8
NOT_SHOWN = 77  # the exit code of PAGE without a browser


class Loop(Place):
    def setUp(self):
        super().setUp()
        self.env |= {"PYTHONPATH": f"{os.environ['PACKAGE']}:{os.environ.get('PYTHONPATH', '')}",
                     "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
        self.record = self.root / "recording"
        loop.copy(self.root)
        self.programs = self.root / "programs"
        done = subprocess.run(["make", "-C", self.programs], env=self.env | {"PKG_CONFIG_PATH": str(self.root)}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def series(self, *query):
        """Tags without the host → values, in the order of time."""
        done = self.sonde("query", "--json", *query, self.record)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {tuple(sorted((k, v) for k, v in one["tags"].items() if k != "host")): [value for _, value in sorted(one["dps"].items())] for one in json.loads(done.stdout)}

    def test_programs_that_are_not_built(self):
        done = subprocess.run([sys.executable, loop.EXAMPLE / "ai_in_the_loop.py", "--programs", self.root], env=self.env, capture_output=True, text=True)
        self.one_line(done, 1, f"{self.root}/taylor does not exist: build it with make -C {loop.EXAMPLE}")

    def test_one_node(self):
        begun = int(time.time())
        example = [sys.executable, self.programs / "ai_in_the_loop.py", "--iterations", ITERATIONS, "--step", STEP, "--ranks", RANKS, "--points", POINTS, "--epochs", 50]
        ask = [sys.executable, self.root / "ask.py", self.root / loop.DASHBOARD.name, begun]
        # The page is opened while the job runs.
        page = ["node", PAGE, ITERATIONS] if shutil.which("node") else ["echo", "skipped: no node"]
        script = " && ".join(" ".join(map(str, command)) for command in (example, ask)) + f" && {{ {' '.join(map(str, page))} || [ $? = {NOT_SHOWN} ]; }}"
        done = self.sonde("run", "--quiet", "--record", self.record, "--", "sh", "-c", script)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        said, *answers = done.stdout.splitlines()
        words = said.split()
        trainings = int(words[2])
        self.assertEqual(words[:2], [str(ITERATIONS), "iterations,"])
        self.assertTrue(1 <= trainings <= ITERATIONS)

        *answers, shown = answers
        print(f"# {shown}", flush=True)

        # Each panel of figure 3 has its lines.
        host = os.uname().nodename
        self.assertEqual(loop.panels(answers), {"actual and predicted": [("actual", host), ("predicted", host)], "difference": [("difference", host)], "CPU": [("cpu_percent", host)]})

        # The numbers of the three languages are those of the computation.
        [actual], [predicted], [difference] = (self.series(f"none:{name}").values() for name in ("actual", "predicted", "difference"))
        self.assertEqual(actual, [math.sin(number * STEP) for number in range(ITERATIONS)])
        for real, guess, off in zip(actual, predicted, difference):
            self.assertAlmostEqual(guess - real, off, 9)  # the Taylor series is that close
        self.assertEqual(sum(abs(off) > 0.05 for off in difference), trainings)
        rank = [(("rank", str(number)),) for number in range(RANKS)]
        self.assertEqual(self.series("none:0all-max:taylor_terms{rank=*}"), {one: [loop.TERMS / RANKS * ITERATIONS] for one in rank})
        self.assertEqual(self.series("none:0all-max:training_points{rank=*}"), {one: [POINTS * trainings] for one in rank})

        # All of it lies within the spans of the iterations.
        spans = json.loads(self.sonde("query", "--spans", "--json", self.record).stdout)
        count = {}
        iterations = [span for span in spans if span["name"] == "iteration"]
        for span in spans:
            count[span["name"]] = count.get(span["name"], 0) + 1
            self.assertTrue(any(i["start_ns"] <= span["start_ns"] and span["end_ns"] <= i["end_ns"] for i in iterations), span)
        self.assertEqual(count, loop.phases(ITERATIONS, trainings, RANKS))

        # The report names the phases that took the time, and the numbers of figure 3.
        report = self.sonde("report", self.record).stdout
        of_metrics, of_spans = report[report.index("\nMETRICS"):].split("\nSPANS")
        rows = {line.split()[0]: line.split()[1:] for line in of_spans.splitlines() if line and line[0] != " "}
        self.assertEqual({name: int(rows[name][0]) for name in count}, count, report)
        rows = {line.split()[0]: line.split()[1:] for line in of_metrics.splitlines() if line and line[0] != " "}
        for name, values in (("actual", actual), ("predicted", predicted), ("difference", difference)):
            self.assertEqual(rows[name][:4], [str(ITERATIONS), *(f"{value:.4g}" for value in (statistics.fmean(values), min(values), max(values)))], report)


if __name__ == "__main__":
    if not all(map(shutil.which, ("mpicc", "mpif90", "mpirun"))):
        print("skipped: no MPI for C and Fortran (tools/deps test installs it)")
        sys.exit(77)
    if not any(importlib.util.find_spec(name) for name in ("numpy", "torch")):
        print("skipped: the example needs NumPy or PyTorch (tools/test fetches NumPy)")
        sys.exit(77)
    main()
