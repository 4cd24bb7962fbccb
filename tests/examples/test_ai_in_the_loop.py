"""The paper's demonstration on one node, small: Python, C and Fortran record on one timeline, the
report shows its phases, and the dashboard's queries are answered. Needs an MPI and NumPy."""

import importlib.util
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.environ["PLACE"])
from place import Place, main  # noqa: E402

SOURCE, BUILD = pathlib.Path(os.environ["SOURCE"]), pathlib.Path(os.environ["BUILD_FOLDER"])
EXAMPLE = SOURCE / "examples/ai_in_the_loop"
ITERATIONS, STEP, RANKS, POINTS, TERMS = 4, 0.5, 2, 8, 20
# Sends the queries of each panel to the job around it, as Grafana's data source does.
ASK = """
import json, os, sys, urllib.request
token = open(os.environ["SONDE_TOKEN_FILE"]).read().strip()
for panel in json.load(open(sys.argv[1]))["panels"]:
    for target in panel["targets"]:
        filters = [one | {"filter": one["filter"].replace("${host:pipe}", ".*")} for one in target["filters"]]
        query = {"metric": target["metric"], "aggregator": target["aggregator"], "downsample": "1s-" + target["downsampleAggregator"], "filters": filters}
        body = json.dumps({"start": int(sys.argv[2]), "queries": [query]}).encode()
        request = urllib.request.Request(os.environ["SONDE_URL"] + "/api/query", body, {"Authorization": "Bearer " + token})
        print(json.dumps([panel["title"], json.load(urllib.request.urlopen(request))]))
"""


class Loop(Place):
    def setUp(self):
        super().setUp()
        self.env |= {"PYTHONPATH": f"{os.environ['PACKAGE']}:{os.environ.get('PYTHONPATH', '')}",
                     "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
        self.record = self.root / "recording"
        # The Makefile, with what pkg-config says of an installed sonde.
        library = pathlib.Path(os.environ["LIBRARY"])
        (self.root / "sonde.pc").write_text(f"fortran={SOURCE}/bindings/fortran\nName: sonde\nDescription: sonde\nVersion: 1\nCflags: -I{SOURCE}/include\n"
                                            f"Libs: {library} -Wl,-rpath,{library.parent}\n")
        self.programs = self.root / "programs"
        shutil.copytree(EXAMPLE, self.programs)
        done = subprocess.run(["make", "-C", self.programs], env=self.env | {"PKG_CONFIG_PATH": str(self.root)}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def series(self, *query):
        """Tags without the host → values, in the order of time."""
        done = self.sonde("query", "--json", *query, self.record)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {tuple(sorted((k, v) for k, v in one["tags"].items() if k != "host")): [value for _, value in sorted(one["dps"].items())] for one in json.loads(done.stdout)}

    def test_programs_that_are_not_built(self):
        done = subprocess.run([sys.executable, EXAMPLE / "ai_in_the_loop.py", "--programs", self.root], env=self.env, capture_output=True, text=True)
        self.one_line(done, 1, f"{self.root}/taylor does not exist: build it with make -C {EXAMPLE}")

    def test_one_node(self):
        begun = int(time.time())
        (self.root / "ask.py").write_text(ASK)
        example = [sys.executable, self.programs / "ai_in_the_loop.py", "--iterations", ITERATIONS, "--step", STEP, "--ranks", RANKS, "--points", POINTS, "--epochs", 50]
        ask = [sys.executable, self.root / "ask.py", BUILD / "grafana/dashboards/ai_in_the_loop.json", begun]
        script = " ".join(map(str, example)) + " && " + " ".join(map(str, ask))
        done = self.sonde("run", "--quiet", "--record", self.record, "--", "sh", "-c", script)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        said, *answers = done.stdout.splitlines()
        words = said.split()
        trainings = int(words[2])
        self.assertEqual(words[:2], [str(ITERATIONS), "iterations,"])
        self.assertTrue(1 <= trainings <= ITERATIONS)

        # Each panel of figure 3 has its lines.
        found = {}
        for title, answer in map(json.loads, answers):
            found.setdefault(title, []).extend(one["metric"] for one in answer if one["dps"])
        self.assertEqual(found, {"actual and predicted": ["actual", "predicted"], "difference": ["difference"], "CPU": ["cpu_percent"]})

        # The numbers of the three languages are those of the computation.
        [actual], [predicted], [difference] = (self.series(f"none:{name}").values() for name in ("actual", "predicted", "difference"))
        self.assertEqual(actual, [math.sin(number * STEP) for number in range(ITERATIONS)])
        for real, guess, off in zip(actual, predicted, difference):
            self.assertAlmostEqual(guess - real, off, 9)  # the Taylor series is that close
        self.assertEqual(sum(abs(off) > 0.05 for off in difference), trainings)
        rank = [(("rank", str(number)),) for number in range(RANKS)]
        self.assertEqual(self.series("none:0all-max:taylor_terms{rank=*}"), {one: [TERMS / RANKS * ITERATIONS] for one in rank})
        self.assertEqual(self.series("none:0all-max:training_points{rank=*}"), {one: [POINTS * trainings] for one in rank})

        # All of it lies within the spans of the iterations.
        spans = json.loads(self.sonde("query", "--spans", "--json", self.record).stdout)
        count = {}
        iterations = [span for span in spans if span["name"] == "iteration"]
        for span in spans:
            count[span["name"]] = count.get(span["name"], 0) + 1
            self.assertTrue(any(i["start_ns"] <= span["start_ns"] and span["end_ns"] <= i["end_ns"] for i in iterations), span)
        phases = {"iteration": ITERATIONS, "taylor": ITERATIONS, "inference": ITERATIONS, "training_set": trainings, "training": trainings}
        self.assertEqual(count, phases | {"terms": RANKS * ITERATIONS, "points": RANKS * trainings})

        # The report names the phases that took the time.
        report = self.sonde("report", self.record).stdout
        rows = {line.split()[0]: line.split() for line in report[report.index("\nSPANS"):].splitlines() if line}
        self.assertEqual({name: int(rows[name][1]) for name in phases}, phases, report)


if __name__ == "__main__":
    if not all(map(shutil.which, ("mpicc", "mpif90", "mpirun"))):
        print("skipped: no MPI for C and Fortran (tools/deps test installs it)")
        sys.exit(77)
    if not any(importlib.util.find_spec(name) for name in ("numpy", "torch")):
        print("skipped: the example needs NumPy or PyTorch (tools/test fetches NumPy)")
        sys.exit(77)
    main()
