"""Programs with four MPI ranks in jobs of three hosts: programs that do not know sonde, under
`sonde run --trace mpi,io`; the same program in each language that has an API for MPI programs; and
the paper's demonstration. Open MPI has ranks on all hosts, under Slurm. MPICH has all of them on
the second one, over ssh: over several hosts, Debian's MPICH 4.0 with UCX hangs in MPI_Finalize in
each fifth run, without sonde as well."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / name) for name in ("examples", "format")]
import lab as labs  # noqa: E402
import loop  # noqa: E402
from columns import to_double  # noqa: E402
from lab import Lab  # noqa: E402
from read_sonde import Recording  # noqa: E402

SOURCE = loop.SOURCE
FOLDERS = {f"packages-{number}": path for number, path in enumerate(os.environ.get("PYTHONPATH", "").split(":")) if os.path.isdir(path)}
PYTHON_PATH = ":".join(["/mnt/shared/package", *(f"/mnt/folders/{name}" for name in FOLDERS)])
HOSTS, RANKS = ["n1", "n2", "n3"], 4
# How the job of three hosts starts, how it starts ranks, and the hosts of these ranks.
MPIS = {"openmpi": (["salloc", "--quiet", "-N3", "sonde", "run"], ["mpirun.openmpi", "-n", str(RANKS), "--map-by", "node"], HOSTS),
        "mpich": (["sonde", "run", "--hosts=n[1-3]"], ["mpirun.mpich", "-launcher", "ssh", "-hosts", "n2", "-n", str(RANKS)], ["n2"])}
COMPILERS = {"c": ["mpicc.{mpi}"], "cpp": ["mpicxx.{mpi}"], "f90": ["mpif90.{mpi}", "/mnt/shared/sonde/fortran/sonde.f90"]}
PYTHON = "/usr/bin/python3"  # Debian's mpi4py, which uses Open MPI
HAS_MPI4PY = subprocess.run([PYTHON, "-c", "import mpi4py"], capture_output=True).returncode == 0 if os.path.exists(PYTHON) else False
MIB = 1 << 20
lab = None


def setUpModule():
    global lab
    lab = Lab([os.environ["SONDE"]], folders=FOLDERS)
    # Beside the command, as in the build folder.
    source = lab.root / "mnt/bin/src"
    for folder in ("trace", "emit"):
        (source / folder).mkdir(parents=True)
    for name in ("MPI", "IO"):
        shutil.copy(os.environ[f"LIBRARY_{name}"], source / "trace")
    shutil.copy(os.environ["LIBRARY"], source / "emit/libsonde.so.0")
    (lab.shared / "sonde").mkdir()
    loop.copy(lab.shared / "sonde", "/mnt/shared/sonde")
    shutil.copytree(pathlib.Path(os.environ["PACKAGE"]) / "sonde", lab.shared / "package/sonde")
    shutil.copytree(HERE / "ranks", lab.shared / "ranks")


def tearDownModule():
    lab.close()


class Programs(unittest.TestCase):
    maxDiff = None

    def compile(self, program, command, *options):
        """Compiles a program on n1; returns its path."""
        path = f"/mnt/shared/{program}"
        done = lab.run("n1", *command, "-O1", *options, "-o", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def job(self, mpi, *command, options=(), env=None):
        """Runs a command as a job of the three hosts. Returns its output; the recording is
        self.record."""
        self.record = lab.shared / f"{self.id().rsplit('.', 1)[1]}-{mpi}"
        done = lab.run("n1", *MPIS[mpi][0], "--quiet", "--record", f"/mnt/shared/{self.record.name}", *options, "--", *command,
                       env={"PYTHONPATH": PYTHON_PATH} | (env or {}))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(sorted(path.name for path in self.record.glob("*.sonde")), [f"{host}.sonde" for host in HOSTS])
        return done.stdout

    def sonde(self, *arguments):
        done = lab.run("n1", "sonde", *arguments, f"/mnt/shared/{self.record.name}")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    # ---- programs that do not know sonde

    def check_report(self, mpi, program, slow):
        """Runs a program of which the rank `slow` is late; the report names this rank and the
        largest file."""
        file = f"/mnt/shared/checkpoint-{slow}"
        self.job(mpi, *MPIS[mpi][1], *program, slow, 0.04, file, options=["-l", "1", "--trace", "mpi,io"])
        text = self.sonde("report")
        findings = {one["kind"]: one for one in json.loads(self.sonde("report", "--json"))["findings"]}
        self.assertEqual(sorted(findings), ["io_file", "mpi_waiting"], text)
        self.assertIn(f"MPI's collectives wait for rank {slow}: ", findings["mpi_waiting"]["title"])
        self.assertEqual(findings["mpi_waiting"]["sureness"], "sure", text)
        self.assertIn(f"largest file: {file}, ", findings["io_file"]["title"])
        self.assertEqual(findings["io_file"]["value"], 300 * MIB)
        print("# " + "\n# ".join(re.findall(r"^ [12]\..*", text, re.MULTILINE)), flush=True)

    def check_unchanged(self, mpi, slow):
        self.check_report(mpi, [self.compile(f"unchanged-{mpi}", [f"mpicc.{mpi}", "/mnt/shared/ranks/unchanged.c"])], slow)

    def test_unchanged_program_with_open_mpi(self):
        self.check_unchanged("openmpi", 2)

    def test_unchanged_program_with_mpich(self):
        self.check_unchanged("mpich", 1)

    @unittest.skipUnless(HAS_MPI4PY, "no mpi4py")
    def test_unchanged_program_with_mpi4py(self):
        self.check_report("openmpi", [PYTHON, "/mnt/shared/ranks/unchanged.py"], 3)

    # ---- the same program in each language

    def data(self):
        """Returns language → what its ranks have recorded: (metric, rank) → values, and the spans
        (name, rank, name of the span around it); and the hosts of the ranks."""
        found, hosts = {}, set()
        for path in self.record.glob("*.sonde"):
            recording = Recording(str(path))
            self.assertEqual(recording.problems, [])
            for (number, labels), points in zip(recording.series, recording.points):
                tags, metric = dict(labels), recording.metrics[number]
                if "language" not in tags:
                    continue
                values = [to_double(points[t]) for t in sorted(points)]
                found.setdefault(tags.pop("language"), {})[metric["name"], tags.pop("rank")] = values[-1:] if metric["kind"] else values
                hosts.add(tags.pop("host"))
                self.assertEqual(tags, {})
            events = [event for event in recording.last_events() if event.kind == "span"]
            names = {event.id: event.text for event in events}
            for event in events:
                tags = dict(event.labels)
                found[tags["language"]].setdefault("spans", []).append((event.text, tags["rank"], names.get(event.parent)))
        for of_language in found.values():
            of_language["spans"].sort(key=str)
        return found, sorted(hosts)

    EXPECTED = {(name, str(rank)): values for rank in range(RANKS)
                for name, values in (("part", [100.0 * rank + i for i in range(10)]), ("steps", [10.0]), ("total", [6.0]))}
    EXPECTED["spans"] = sorted([(name, str(rank), outer) for rank in range(RANKS) for name, outer in (("solve", None), ("exchange", "solve"))], key=str)

    def check_languages(self, mpi):
        _, start, hosts = MPIS[mpi]
        programs = {}
        for language, compiler in COMPILERS.items():
            command = [word.format(mpi=mpi) for word in compiler]
            if shutil.which(command[0]):
                programs[language] = [self.compile(f"ranks-{language}-{mpi}", [*command, f"/mnt/shared/ranks/ranks.{language}"], "-I/mnt/shared/sonde/include", "-J/tmp" if language == "f90" else "-Wall",
                                                   "-L/mnt/shared/sonde/lib", "-lsonde", "-Wl,-rpath,/mnt/shared/sonde/lib")]
        if mpi == "openmpi" and HAS_MPI4PY:
            programs["py"] = [PYTHON, "/mnt/shared/ranks/ranks.py"]
        script = " && ".join(" ".join([*start, *program, language]) for language, program in programs.items())
        self.job(mpi, "sh", "-c", script, options=["-l", "1"])
        found, seen = self.data()
        self.assertEqual((sorted(found), seen), (sorted(programs), hosts))
        for language, data in found.items():
            with self.subTest(language=language):
                self.assertEqual(data, self.EXPECTED)
        print(f"# {mpi}: the same data from {' '.join(programs)}", flush=True)

    def test_languages_with_open_mpi(self):
        self.check_languages("openmpi")

    def test_languages_with_mpich(self):
        self.check_languages("mpich")

    # ---- the demonstration

    def test_demonstration(self):
        """Figure 3 of the paper: the dashboard's queries are answered with the CPU of all hosts.
        The ranks of the programs in C and Fortran record on the hosts where they run."""
        iterations, points = 3, 8
        if lab.run("n1", PYTHON, "-c", "import numpy", env={"PYTHONPATH": PYTHON_PATH}).returncode != 0:
            self.skipTest("the python3 of the hosts finds no NumPy")
        done = lab.run("n1", "make", "-C", "/mnt/shared/sonde/programs", env={"PKG_CONFIG_PATH": "/mnt/shared/sonde"})
        self.assertEqual(done.returncode, 0, done.stderr)
        folder = "/mnt/shared/sonde"
        example = f"{PYTHON} {folder}/programs/ai_in_the_loop.py --iterations {iterations} --step 0.5 --ranks {RANKS} --points {points} --epochs 50 --mpirun 'mpirun --map-by node'"
        said, *answers = self.job("openmpi", "sh", "-c", f"{example} && {PYTHON} {folder}/ask.py {folder}/{loop.DASHBOARD.name} {int(time.time())}").splitlines()
        trainings = int(said.split()[2])
        self.assertGreaterEqual(trainings, 1)
        self.assertEqual(loop.panels(answers), {"actual and predicted": [("actual", "n1"), ("predicted", "n1")], "difference": [("difference", "n1")],
                                                "CPU": [("cpu_percent", host) for host in HOSTS]})

        # The ranks share the work evenly.
        made = {}
        for one in json.loads(self.sonde("query", "--json", "none:0all-max:taylor_terms{rank=*}")):
            made[one["tags"]["rank"]] = made.get(one["tags"]["rank"], 0) + sum(one["dps"].values())
        self.assertEqual(made, {str(rank): loop.TERMS / RANKS * iterations for rank in range(RANKS)})
        report = json.loads(self.sonde("report", "--json"))
        self.assertEqual({span["name"]: span["count"] for span in report["spans"]}, loop.phases(iterations, trainings, RANKS))
        self.assertEqual({span["name"]: span["members"] for span in report["spans"] if span["name"] in ("terms", "points")}, {"terms": RANKS, "points": RANKS})
        own = {metric["metric"]: metric["series"] for metric in report["metrics"]}
        self.assertEqual({name: sum(one["points"] for one in own[name]) for name in ("actual", "predicted", "difference")}, dict.fromkeys(("actual", "predicted", "difference"), iterations))
        self.assertEqual([one["host"] for one in own["cpu_percent"]], HOSTS)
        print(f"# {said}", flush=True)


if __name__ == "__main__":
    labs.skip_if(labs.why_not())
    unittest.main(verbosity=2)
