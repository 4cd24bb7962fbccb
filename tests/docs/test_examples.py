"""Pastes all commands of README.md, in their order, into a shell on a machine without sonde, and
compares their output. Then it runs each example of docs/ and grafana/README.md without changes,
except those in EXCUSED.
"""

import json
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import textwrap
import threading
import unittest

import sandbox

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from waiting import PATIENCE_S  # noqa: E402

LANGUAGES = {"sh", "console", "python", "c", "cpp", "fortran", "cmake", "rust", "go", "java", "julia", "matlab", "r", "json", "yaml", "text"}
NO_CLUSTER = "needs several hosts: tests/cluster"
NO_DRAGON = "needs Dragon: tests/python/dragon_original.sh runs its programs"
# (page, words of the block): the reason why the block is not run.
EXCUSED = {
    ("trace.md", "mpirun -n 64 ./solver"): "needs a program with MPI: tests/trace",
    ("trace.md", "--trace kokkos"): "needs a program with Kokkos: tests/trace",
    ("trace.md", "--trace cuda"): "needs a GPU: tests/trace",
    ("trace.md", "--trace nccl"): "needs GPUs: tests/trace",
    ("trace.md", "--trace nvtx"): "needs a program with NVTX: tests/trace",
    ("trace.md", "--trace roctx"): "needs a program with ROCTX: tests/trace",
    ("trace.md", "mpi_collective_seconds"): "needs a program with MPI: tests/trace",
    ("trace.md", "omp_barrier_seconds"): "needs a program with OpenMP: tests/trace",
    ("trace.md", "io_bytes"): "needs a job with --trace: tests/trace",
    ("cluster.md", "salloc -N4 sonde run"): NO_CLUSTER,
    ("cluster.md", "apptainer exec"): "needs containers",
    ("cluster.md", "ssh -NL"): NO_CLUSTER,
    ("cluster.md", "curl --unix-socket"): NO_CLUSTER,
    ("dragon.md", "-- dragon PROG.py"): NO_DRAGON,
    ("dragon.md", "-- dragon -s PROG.py"): NO_DRAGON,
    ("dragon.md", "-- dragon env"): NO_DRAGON,
    ("examples.md", "scipy_scale_work.py --dragon"): NO_CLUSTER,
    ("examples.md", "merge_sort.py"): NO_CLUSTER,
    ("examples.md", "slow_gpu.py --plot"): NO_CLUSTER,
    ("examples.md", "SONDE_PROBE_DEVICES=cpu:0"): NO_CLUSTER,
    ("examples.md", "scipy_scale_work_db_dump.py"): "takes minutes: tests/examples runs it smaller",
    ("runs.md", "sonde merge /nodes"): "needs the disks of two nodes: tests/cli/test_runs.py",
    ("detect.md", "SlowGPUDetector"): "needs GPUs: tests/python/test_detector.py",
    ("http.md", "pyarrow.ipc"): "needs requests: tests/conformance/test_native.py reads such answers",
    ("python.md", "to_pandas"): "needs pandas: tests/python/test_client.py",
    ("export-formats.md", "read_parquet"): "needs pandas: tests/export/test_formats.py",
    ("demo.md", ""): "needs an MPI: tests/examples/test_ai_in_the_loop.py runs it",
    ("dask.md", ""): "tests/python/test_dask_docs.py runs them all",
    ("integrations.md", ""): "needs the frameworks: tests/python/test_torch.py, test_frameworks.py, test_trackers.py run them",
    ("python.md", "sonde.live"): "needs a notebook: tests/python/test_notebook.py",
    ("plot.md", ""): "needs Matplotlib: tests/python/test_plot.py runs them all",
}

if not shutil.which("nc"):
    EXCUSED["http.md", "nc -N"] = "needs nc"
for compiler, words in {"g++": "g++ ", "gfortran": "gfortran ", "cargo": "cargo ", "go": "go mod ", "javac": "javac ", "julia": "julia ",
                        "mkoctfile": "mkoctfile ", "R": "R CMD "}.items():
    if not shutil.which(compiler):
        EXCUSED["languages.md", words] = f"needs {compiler}"

# The preparation of an example: a job with some points, and everything that the page presupposes.
POINTS = """
now=$(date +%s)
for age in $(seq 40 -1 1); do
    for gpu in 0 1 2; do
        echo "step_seconds 0.3 $((now - age)) gpu=$gpu"
        echo "gpu_temperature_celsius 5$gpu $((now - age)) gpu=$gpu"
    done
done | sonde put
echo "loss 0.5 rank=3" | sonde put
TOKEN=$(sonde token --write)
"""
# Makes a database like that of Dragon's node server.
DUMP = """
mkdir -p DUMP_DIR/telemetry
python3 -c '
import sqlite3
with sqlite3.connect("DUMP_DIR/telemetry/ts_me_n1_20261123_014055.db") as db:
    db.execute("CREATE TABLE datapoints (metric varchar(50), timestamp varchar(30), value real, tags json)")
    db.execute("INSERT INTO datapoints VALUES (?, ?, ?, ?)", ("load_average", "1795000000", 0.5, "null"))
'
"""
STEPS = """
import time, sonde
for step in range(12):
    for rank in range(3):
        with sonde.span("step", rank=rank):
            time.sleep(0.02)
"""
BEFORE = {
    ("scripts.md", "sonde run --script"): "printf '#!/bin/sh\\necho queue_length 3\\n' >queue-length.sh\n"
    "printf '#!/bin/sh\\nsleep 1\\n' >step\nchmod +x queue-length.sh step\n",
    ("scripts.md", "ls spool"): "mkdir -p spool\n",
    ("dragon.md", "python3 PROG.py"): "mkdir -p ~/.config/sonde\necho 'import sonde' >PROG.py\n",
    ("grafana", "sonde run -l 3"): "printf '#!/bin/sh\\nsleep 1\\n' >job\nchmod +x job\n",
    # This stand-in for Grafana only checks that the files and a token exist.
    ("grafana", "grafana server"): "cd $SOURCE; [ -e build ] || ln -s $BUILD build\n"
    'grafana() { ls $SONDE_DASHBOARDS/job.json $GF_PATHS_PROVISIONING/datasources/sonde.yml &&'
    ' [ "$1" = server ] && [ ${#SONDE_TOKEN} = 64 ]; }\n'
    "sonde token --token-file $HOME/.config/sonde/token >/dev/null\n",
    ("languages.md", "hello"): "cp $SOURCE/examples/[hH]ello.* .\n",
    ("detect.md", "sonde probe"): "export SONDE_PROBE_DEVICES=cpu:0\n",
    ("dragon.md", "PROG.py"): "echo 'from sonde import Telemetry; Telemetry().add_data(\"loss\", 1)' >PROG.py\n",
    ("dragon.md", "sonde import"): DUMP,
    ("trace.md", "--trace-python"): "printf 'def f(x):\\n    return x\\n' >solver.py\nprintf 'import solver\\nsolver.f(1)\\n' >train.py\n",
    ("trace.md", "train.py"): "echo 'open(\"made\", \"w\").write(\"x\")' >train.py\n",
}
# Examples whose output is in the next text block, and words of that output.
SHOWN = {("detect.md", "--exclude-file slow"): "exit code 3, "}
PYTHON = """
import os, sonde
class _Loss(float):
    pass
batches = range(3)
def train(batch):
    return 1.0 / (batch + 1)
os.system("echo 'memory_used_percent 95' | sonde put; echo 'gpu_memory_used_bytes 5 gpu=0' | sonde put")
sonde.emit("loss", 0.5)
with sonde.span("epoch"):
    sonde.emit("memory_used_bytes", 7)
client = sonde.AnalysisClient()
"""


class Block:
    def __init__(self, page, language, text):
        self.page, self.language = page, language
        self.text = textwrap.dedent(text)

    def one_of(self, table):
        for (page, word), value in table.items():
            if self.page.startswith(page) and word in self.text:
                return value
        return None

    def __repr__(self):
        return f"{self.page}: {self.text.splitlines()[0]}"


def blocks(path, page=None):
    found = re.findall(r"^( *)```(\w*)\n(.*?)^\1```$", path.read_text(), re.M | re.S)
    return [Block(page or path.name, language, text) for _, language, text in found]


class Shell:
    """A bash with a terminal, which runs pieces of a page one after another."""

    def __init__(self, env):
        self.ours, theirs = pty.openpty()
        self.pasted = []
        self.end = b""
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.theirs, self.env = theirs, env

    def read(self):
        try:
            while piece := os.read(self.ours, 65536):
                self.end += piece
        except OSError:  # the end of a terminal
            pass

    def run(self, pieces):
        """Runs the pieces; returns the status and output of each."""
        script = "".join(f"{piece}\nprintf '\\036%d\\036' $?\n" for piece in pieces)
        self.reader.start()
        with subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=self.theirs,
            stderr=self.theirs,
            env=self.env,
        ) as shell:
            os.close(self.theirs)
            shell.wait(PATIENCE_S)
        self.reader.join(PATIENCE_S)
        text = self.end.decode(errors="replace").replace("\r\n", "\n")
        outputs = text.split("\036")
        return list(zip(map(int, outputs[1::2]), outputs[0::2]))


def pattern(shown):
    """Returns a regular expression for output that is shown in the README. Numbers and the host may
    differ, and … stands for any lines."""
    lines = []
    for line in shown.splitlines():
        if line.strip() == "…":
            lines.append(r"(?:[^\n]*\n)*")
            continue
        line = re.escape(re.sub(r" +", " ", line.strip()))
        line = line.replace(r"\ ", r"[ ]+").replace("…", r"[^\n]*").replace("/home/me", r"/[^\n]*")
        line = re.sub(r"host=n1", lambda _: r"host=[^,}]+", line)
        line = re.sub(r"\d+(\\\.\d+)?", lambda _: r"-?\d+(?:\.\d+)?(?:e-?\d+)?", line)
        lines.append(r"[ ]*" + re.sub("[KMG]iB", "[KMGT]iB", line) + r"[ ]*\n")
    return "".join(lines)


def environment(**more):
    """Returns the environment of a new terminal."""
    kept = {name: os.environ[name] for name in ("HOME", "TMPDIR", "TZ", "LC_ALL", "TERM", "CCACHE_DIR", "RUSTUP_HOME") if name in os.environ}
    path = os.pathsep.join(p for p in os.environ["PATH"].split(":") if "sonde" not in p)
    return kept | {"PATH": path, "BUILD": os.environ["BUILD_FOLDER"], "SOURCE": os.environ["SOURCE"], "npm_config_offline": "true"} | more


def setUpModule():
    """Runs the commands of the README. The examples of other pages use its installation."""
    Readme.page = blocks(sandbox.source() / "README.md")
    Readme.commands = [block for block in Readme.page if block.language == "sh"]
    Readme.outputs = Shell(environment()).run([block.text for block in Readme.commands])


class Readme(unittest.TestCase):
    maxDiff = None

    def test_every_command_works_as_pasted(self):
        page, commands, outputs = self.page, self.commands, self.outputs
        self.assertGreater(len(commands), 6)
        self.assertEqual(len(outputs), len(commands), outputs)
        for block, (status, output) in zip(commands, outputs):
            self.assertEqual(status, 0, f"{block}\n{output}")
        shown = [(a, b.text) for a, b in zip(page, page[1:]) if b.language == "text"]
        self.assertEqual(len(shown), sum(block.language == "text" for block in page))
        for block, text in shown:
            output = outputs[commands.index(block)][1]
            self.assertIsNotNone(re.fullmatch(pattern(text), output), f"{text}\nis not\n{output}")

    def test_the_programs_are_the_files(self):
        text = (sandbox.source() / "README.md").read_text()
        found = re.findall(r"\[(examples/\w+\.\w+)\]\([^)]*\):\n\n```\w+\n(.*?)^```", text, re.M | re.S)
        self.assertEqual([name for name, _ in found], ["examples/hello.py", "examples/hello.c"])
        for name, program in found:
            self.assertEqual(program, (sandbox.source() / name).read_text(), name)


class Documents(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        home = os.environ["HOME"]
        self.env = environment(
            PATH=f"{home}/.local/bin:{environment()['PATH']}",
            PKG_CONFIG_PATH=f"{home}/.local/lib/pkgconfig",
        )
        # With this configuration of curl, a refused request fails its example.
        pathlib.Path(home, ".curlrc").write_text("fail-with-body\nsilent\nshow-error\n")
        self.place = pathlib.Path(home, "place")
        self.place.mkdir(exist_ok=True)
        docs = sandbox.source() / "docs"
        self.blocks = [b for page in sorted(docs.glob("*.md")) for b in blocks(page)]
        self.blocks += blocks(sandbox.source() / "grafana/README.md", "grafana/README.md")

    def run_it(self, *command, status=(0,), cwd=None):
        done = subprocess.run(
            command, env=self.env, cwd=cwd or self.place, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=PATIENCE_S, check=False,
        )
        self.assertIn(done.returncode, status, f"{command[-1]}\n{done.stdout}{done.stderr}")
        return done.stdout

    def run_in_a_job(self, script, **more):
        return self.run_it("sonde", "run", "-q", "--", "bash", "-euo", "pipefail", "-c", script, **more)

    def examples(self, *languages):
        return [b for b in self.blocks if b.language in languages and not b.one_of(EXCUSED)]

    def test_every_block_says_what_it_is(self):
        self.assertEqual([b for b in self.blocks if b.language not in LANGUAGES], [])

    def test_every_excuse_is_needed(self):
        for page, word in EXCUSED:
            there = [b for b in self.blocks if b.page.endswith(page) and word in b.text]
            self.assertTrue(there, f"no example of {page} has {word}")

    def test_commands(self):
        (self.place / "steps.py").write_text(STEPS)
        for block in self.examples("sh", "console"):
            with self.subTest(str(block)):
                before = block.one_of(BEFORE) or ""
                script = block.text
                if block.language == "console":
                    script = "\n".join(re.findall(r"^\$ (.*)$", script, re.M))
                if re.search(r"^ *sonde run", script, re.M):
                    output = self.run_it("bash", "-euo", "pipefail", "-c", before + script)
                    if words := block.one_of(SHOWN):
                        shown = self.blocks[self.blocks.index(block) + 1].text
                        self.assertIsNotNone(re.fullmatch(pattern(shown), output), f"{shown}\nis not\n{output}")
                        self.assertIn(words, output)
                else:
                    self.run_in_a_job(POINTS + f"{sys.executable} steps.py\n" + before + script)

    def test_python(self):
        for block in self.examples("python"):
            with self.subTest(str(block)):
                program = self.place / "program.py"
                program.write_text(PYTHON + block.text)
                self.run_it("sonde", "run", "-q", "-r", "--", sys.executable, str(program))

    def test_c(self):
        for block in self.examples("c"):
            with self.subTest(str(block)):
                (self.place / "program.c").write_text(block.text)
                flags = self.run_it("pkg-config", "--cflags", "--libs", "sonde_client").split()
                self.run_it("cc", "-Wall", "-Wextra", "-Werror", "program.c", *flags, "-o", "program")
                self.run_in_a_job("./program")

    def test_other_languages(self):
        """The programs in the docs equal the files that test_commands compiles and runs."""
        for language, name in {"cpp": "hello.cpp", "fortran": "hello.f90", "rust": "hello.rs", "go": "hello.go", "java": "Hello.java", "julia": "hello.jl",
                               "matlab": "hello.m", "r": "hello.R"}.items():
            text = (sandbox.source() / "examples" / name).read_text()
            self.assertEqual([b.text for b in self.blocks if b.language == language], [text])

    def test_data(self):
        for block in self.examples("json"):
            with self.subTest(str(block)):
                json.loads(block.text)


if __name__ == "__main__":
    sandbox.enter()
    unittest.main(verbosity=2)
