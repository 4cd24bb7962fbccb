"""Runs a program in each language. All programs emit the same metrics, spans, annotations and
parameters, and their recordings must have the data in the tables below."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path[:0] = [os.environ["PLACE"], os.environ["READER"]]
from builds import SOURCE, WARNINGS, Builds, found  # noqa: E402
from columns import to_double  # noqa: E402
from place import Place, main  # noqa: E402
from read_sonde import Recording  # noqa: E402

HERE = pathlib.Path(__file__).parent
LIBRARY = os.environ["LIBRARY"]  # libsonde.a
MS = 10**6

# name → kind, unit, help, and the points of each set of tags: values, or (ms after BASE, value)
METRICS = {
    "loss": ("gauge", "", "", {(("model", "sin"), ("rank", "3")): [1 / i for i in range(1, 11)]}),
    "written": ("gauge", "bytes", "bytes written so far", {(): [(i, 1024.0 * i) for i in range(1, 11)]}),
    "warmth": ("gauge", "", "", {(): 21.5}),
    "steps": ("counter", "", "", {(("exact", "true"), ("rate", "0.1")): 10.0}),
    "left": ("gauge", "", "", {(): [(0, 1.0), (1, 3.0)]}),
    "right": ("gauge", "", "", {(): [(0, 2.0)]}),
}
# kind, text, tags, the text of the span around it
EVENTS = sorted([
    ("span", "epoch", (("number", "1"),), None),
    *(("span", "step", (("number", str(i)), ("phase", "warm up")), "epoch") for i in (1, 2, 3)),
    ("span", "load", (("file", "a b"),), None),
    ("span", "task", (("of", "none"),), None),
    ("span", "part", (), "task"),
    ("annotation", "done", (("file", "ck-12"),), None),
], key=str)
NUMBERS = {"tenth": "0.1", "third": "0.3333333333333333", "small": "1e-05", "smaller": "-2.5e-300", "four": "0.0001", "large": "1e+22", "whole": "1200", "zero": "0",
           "minus": "-9223372036854775807", "single": "0.25", "yes": "true", "no": "false", "text": "a"}
PARAMETERS = {"lr": "0.01", "optimizer": "adam"}


class Languages(Place):
    def compile(self, *command):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=self.root)
        self.assertEqual(done.returncode, 0, f"{command}: {done.stderr}")
        self.assertEqual(done.stderr, "", command)

    def record(self, *command):
        """Runs the program as a job; returns the recording, and BASE."""
        base = time.time_ns() - 60 * 1000 * MS
        done = self.sonde("run", "--quiet", "-l", 1, "--record", self.root / "record", "--", *command, base)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        (file,) = (self.root / "record").glob("*.sonde")
        recording = Recording(str(file))
        self.assertEqual(recording.problems, [])
        return recording, base

    def tags(self, labels):
        return tuple(sorted((key, value) for key, value in dict(labels).items() if key != "host"))

    def metrics(self, recording, base):
        """Returns the metrics of a recording in the form of METRICS. A metric with a cell has its
        last sampled value."""
        all_metrics = {}
        for (number, labels), points in zip(recording.series, recording.points):
            metric = recording.metrics[number]
            expected = METRICS.get(metric["name"], (0, 0, 0, {}))[3].get(self.tags(labels))
            values = [to_double(points[t]) for t in sorted(points)]
            if isinstance(expected, float):
                values = values[-1]
            elif expected and isinstance(expected[0], tuple):
                values = [((t - base) / MS, to_double(points[t])) for t in sorted(points)]
            kind = "counter" if metric["kind"] else "gauge"
            all_metrics.setdefault(metric["name"], (kind, metric["unit"], metric["help"], {}))[3][self.tags(labels)] = values
        return all_metrics

    def events(self, recording):
        """Returns the events of a recording in the form of EVENTS, without the parameters, which
        are annotations in the file."""
        last = [event for event in recording.last_events() if ("sonde", "config") not in event.labels]
        texts = {event.id: event.text for event in last if event.id}
        return sorted(((event.kind, event.text, self.tags(event.labels), texts.get(event.parent)) for event in last), key=str)

    def check(self, *command):
        recording, base = self.record(*command)
        self.assertEqual(self.metrics(recording, base), METRICS)
        self.assertEqual(self.events(recording), EVENTS)
        (load,) = [event for event in recording.last_events() if event.text == "load"]
        self.assertEqual((load.start, load.end), (base, base + 1500 * MS))
        about = json.loads((self.root / "record/run.json").read_text())["about"]
        self.assertEqual(about.get("config"), PARAMETERS)

    def check_numbers(self, *command):
        """Checks that numbers in tags have the shortest form that reads back as the same number."""
        recording, _ = self.record(*command)
        last = recording.last_events()
        tags = [dict(event.labels) for event in last if event.text == "numbers"]
        self.assertEqual([{key: value for key, value in of.items() if key != "host"} for of in tags], [NUMBERS])
        return recording

    def values(self, recording):
        """Returns name → the values of its only series, in the order of time. The agent's counters
        of dropped points are left out; dropped() returns them."""
        return {recording.metrics[number]["name"]: [to_double(points[t]) for t in sorted(points)]
                for (number, _), points in zip(recording.series, recording.points)
                if recording.metrics[number]["name"] != "sonde_dropped_total"}

    def dropped(self, recording):
        """Returns cause → number of dropped points and refused definitions, without zeros."""
        last = {}
        for (number, labels), points in zip(recording.series, recording.points):
            if recording.metrics[number]["name"] == "sonde_dropped_total":
                last[dict(labels)["cause"]] = to_double(points[max(points)])
        return {cause: count for cause, count in last.items() if count}

    def check_without_sonde(self, *command):
        done = subprocess.run([*map(str, command), str(time.time_ns())], env=self.env, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_c(self):
        self.compile("cc", "-std=gnu17", *WARNINGS, f"-I{SOURCE}/include", HERE / "program.c", LIBRARY, "-pthread", "-o", self.root / "program")
        self.check(self.root / "program")

    def test_cpp(self):
        """Each compiler compiles the program for each standard without a warning. One program
        runs."""
        compilers = [name for name in ("clang++", "g++") if found(name)]
        if not compilers:
            self.skipTest("no C++ compiler (g++, clang++)")
        for compiler in compilers:
            for standard in (14, 17, 20):
                with self.subTest(compiler=compiler, standard=standard):
                    self.compile(compiler, f"-std=c++{standard}", "-O1", *WARNINGS, f"-I{SOURCE}/include", "-c", HERE / "program.cpp", "-o", self.root / "program.o")
        self.compile(compilers[-1], self.root / "program.o", LIBRARY, "-pthread", "-o", self.root / "program")
        self.check(self.root / "program")
        self.check_without_sonde(self.root / "program")

    def test_cpp_details(self):
        """Tests timers, durations, spans that move, and numbers in tags."""
        if not found("g++"):
            self.skipTest("no C++ compiler (g++)")
        self.compile("g++", "-std=c++14", *WARNINGS, f"-I{SOURCE}/include", HERE / "details.cpp", LIBRARY, "-pthread", "-o", self.root / "details")
        recording = self.check_numbers(self.root / "details")
        self.check_without_sonde(self.root / "details")
        values = self.values(recording)
        scopes = values.pop("scope_seconds")
        self.assertEqual(len(scopes), 3, scopes)
        self.assertTrue(all(0 < seconds < 600 for seconds in scopes), scopes)
        self.assertEqual(values.pop("durations"), [1.5, 0.002])
        busy = values.pop("busy_seconds")[-1]
        self.assertTrue(60 < busy < 660, busy)
        self.assertEqual(values, {})
        spans = {event.text: event for event in recording.last_events() if event.kind == "span"}
        self.assertEqual(sorted(spans), ["first", "second", "third"])
        self.assertLessEqual(spans["first"].end, spans["third"].start)
        self.assertLessEqual(spans["third"].end, spans["second"].end)
        self.assertEqual(spans["third"].parent, spans["second"].id)
        self.assertNotIn("unfinished", {key for span in spans.values() for key, _ in span.labels})

    def test_shell(self):
        recording, base = self.record("sh", HERE / "program.sh")
        kept = self.metrics(recording, base)
        self.assertEqual(kept.keys(), {"loss", "written"})
        self.assertEqual(kept["loss"], METRICS["loss"])
        self.assertEqual(kept["written"][3], METRICS["written"][3])
        self.assertEqual(self.events(recording), [event for event in EVENTS if event[1] != "load"])
        about = json.loads((self.root / "record/run.json").read_text())["about"]
        self.assertEqual(about.get("config"), PARAMETERS)

    def spans(self, script, code=0):
        """Runs a script as a job; returns name → span. The output of the script is in self.said."""
        done = self.sonde("run", "--quiet", "-l", 1, "--record", self.root / "record", "--", "sh", "-c", script)
        self.assertEqual(done.returncode, code, done.stderr)
        self.said = done
        (file,) = (self.root / "record").glob("*.sonde")
        return {event.text: event for event in Recording(str(file)).last_events() if event.kind == "span"}

    def test_shell_spans(self):
        """`sonde span run` passes on the exit code, output and signals of its command. Nested spans
        have their parent. An open span ends with the job."""
        spans = self.spans("""
            sonde span run outer 'text=a b\\c' -- sh -c '
                sonde span run inner -- sh -c "echo out; echo err >&2; exit 7"; echo $?
                sonde span run killed -- sh -c "kill -KILL \\$\\$"; echo $?
                sonde span run absent -- /does/not/exist 2>/dev/null; echo $?
                sonde span run --x -- cat -- /dev/null; echo $?'
            sonde span begin open >id
            sonde span end 123 && exit 1
            sonde span run terminated -- sh -c 'trap "exit 9" TERM; kill -TERM $PPID; while :; do sleep 0.01; done'
            exit $?""", 9)
        self.assertEqual(self.said.stdout, "out\n7\n137\n127\n0\n")
        self.assertEqual(self.said.stderr, "err\nsonde: error: line 1: no open span has the id 123\n")
        self.assertEqual(sorted(spans), ["--x", "absent", "inner", "killed", "open", "outer", "terminated"])
        for name in ("inner", "killed", "absent", "--x"):
            self.assertEqual(spans[name].parent, spans["outer"].id)
            self.assertLessEqual(spans["outer"].start, spans[name].start)
            self.assertLessEqual(spans[name].end, spans["outer"].end)
        self.assertEqual((spans["outer"].parent, self.tags(spans["outer"].labels)), (0, (("text", "a b\\c"),)))
        self.assertEqual(self.tags(spans["open"].labels), (("unfinished", "1"),))
        self.assertLess(spans["open"].end, 2**63 - 1)

    def test_shell_spans_without_a_job(self):
        """Without a job, the command runs, and nothing else is printed."""
        for arguments, out, code in ((["run", "x", "a=1", "--", "sh", "-c", "echo $SONDE_SPAN; exit 3"], "\n", 3), (["begin", "x"], "", 0), (["end"], "", 0)):
            done = self.sonde("span", *arguments)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (code, out, ""), arguments)
        # `sonde span` works even if its parent ignores SIGCHLD, which children inherit.
        done = subprocess.run(["sonde", "span", "run", "x", "--", "sh", "-c", "exit 5"], env=self.env, preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(done.returncode, 5)
        for arguments, words in ((["run"], "the name is missing"), (["run", "x", "ls"], "not a tag"), (["run", "x", "--"], "the command is missing"), (["begin", "x", "=1"], "not a tag"),
                                 (["finish"], "not one of begin, end and run"), (["end", "xyz"], "not the id"), (["end", "1", "2"], "one span at a time")):
            self.one_line(self.sonde("span", *arguments), 2, words)

    def test_fortran(self):
        if not found("gfortran"):
            self.skipTest("no Fortran compiler (gfortran)")
        self.compile("gfortran", "-std=f2008", "-Wall", "-Wextra", "-Werror", SOURCE / "bindings/fortran/sonde.f90", HERE / "program.f90", LIBRARY, "-pthread", "-o", self.root / "program")
        self.check(self.root / "program")
        self.check_without_sonde(self.root / "program")

    def test_fortran_with_cmake(self):
        if not found("gfortran", "cmake"):
            self.skipTest("no CMake for Fortran (apt-get install gfortran cmake)")
        self.check(Builds(self.root, LIBRARY, self.compile).cmake(HERE / "program.f90"))

    def test_fortran_with_fpm(self):
        if not found("gfortran"):
            self.skipTest("no Fortran compiler (gfortran)")
        venv = self.root / "venv"
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        pip = subprocess.run([venv / "bin/python", "-m", "pip", "-q", "--disable-pip-version-check", "install", "--only-binary", ":all:", "fpm"], capture_output=True)
        if pip.returncode:
            self.skipTest("the package fpm cannot be installed")
        self.check(Builds(self.root, LIBRARY, self.compile).fpm(venv / "bin/fpm", HERE / "program.f90"))

    def test_fortran_details(self):
        if not found("gfortran"):
            self.skipTest("no Fortran compiler (gfortran)")
        self.compile("gfortran", SOURCE / "bindings/fortran/sonde.f90", HERE / "details.f90", LIBRARY, "-pthread", "-o", self.root / "details")
        self.check_numbers(self.root / "details")
        self.check_without_sonde(self.root / "details")

    def build(self, *names):
        """Builds programs of one language; returns their commands."""
        return Builds(self.root, LIBRARY, self.compile).commands(*(HERE / name for name in names))

    def test_rust(self):
        if not found("cargo", "rustc"):
            self.skipTest("no Rust compiler (apt-get install cargo)")
        program, details = self.build("program.rs", "details.rs")
        self.check(*program)
        self.check_without_sonde(*program)
        shutil.rmtree(self.root / "record")
        self.check_rust_details(*details)

    def check_rust_details(self, program):
        """Tests timers, durations, spans that a panic ends, limits, and numbers in tags."""
        recording = self.check_numbers(program)
        self.check_without_sonde(program)
        values = self.values(recording)
        scopes = values.pop("scope_seconds")
        self.assertEqual(len(scopes), 2, scopes)
        self.assertTrue(all(0 < seconds < 600 for seconds in scopes), scopes)
        self.assertEqual(values.pop("durations"), [1.5, 0.002, 0.25])
        busy = values.pop("busy_seconds")[-1]
        self.assertTrue(60 < busy < 660, busy)
        self.assertEqual(values, {})
        self.assertEqual(self.dropped(recording), {"limit": 2.0})  # 20 tags; not a name
        spans = {event.text: event for event in recording.last_events() if event.kind == "span"}
        self.assertEqual(sorted(spans), ["inner", "outer"])
        self.assertEqual(spans["inner"].parent, spans["outer"].id)
        self.assertEqual(self.tags(spans["outer"].labels), (("text", "cut"),))

    def test_go(self):
        if not found("go"):
            self.skipTest("no Go (apt-get install golang-go)")
        program, details = self.build("program.go", "details.go")
        self.check(*program)
        self.check_without_sonde(*program)
        shutil.rmtree(self.root / "record")
        recording = self.check_nesting(*details)
        self.assertEqual(self.dropped(recording), {"limit": 2.0})  # 20 tags; not a name

    def check_nesting(self, *program, durations=(), others=()):
        """Tests timers, limits, numbers in tags, and the parents of spans in 20 threads, goroutines
        or processes. Ignores the metrics in `others`."""
        recording = self.check_numbers(*program)
        self.check_without_sonde(*program)
        values = self.values(recording)
        scopes = values.pop("scope_seconds")
        self.assertEqual(len(scopes), 2, scopes)
        self.assertTrue(all(0 < seconds < 600 for seconds in scopes), scopes)
        busy = values.pop("busy_seconds")[-1]
        self.assertTrue(60 < busy < 660, busy)
        self.assertEqual(values.pop("shared")[-1], 2000)
        self.assertEqual(values.pop("durations", []), list(durations))
        self.assertEqual({name: values[name] for name in values if name not in others}, {"first": [1], "second": []})
        spans = [event for event in recording.last_events() if event.kind == "span"]
        known = {event.id: event for event in spans}
        outer, inner = ([span for span in spans if span.text == text] for text in ("outer", "inner"))
        self.assertEqual([span.parent for span in inner], [span.id for span in outer])
        self.assertEqual([self.tags(span.labels) for span in outer], [(("text", "cut"),)])
        children = [span for span in spans if span.text == "child"]
        self.assertEqual(sorted(int(dict(span.labels)["i"]) for span in children), list(range(20)))
        for child in children:
            self.assertEqual(self.tags(known[child.parent].labels), self.tags(child.labels))
            self.assertEqual(known[child.parent].text, "parent")
        self.assertEqual([span.parent for span in spans if span.text in ("parent", "outer")], [0] * 21)
        return recording

    def test_java(self):
        """The programs run with the native library and without it. Without it, Sonde.check()
        returns the reason."""
        if not found("javac", "java"):
            self.skipTest("no Java compiler (apt-get install openjdk-17-jdk-headless)")
        builds = Builds(self.root, LIBRARY, self.compile)
        commands = builds.commands(HERE / "Program.java", HERE / "Details.java")
        program, details = ([command[0], "-XX:TieredStopAtLevel=1", "-Xcheck:jni", *command[1:]] for command in commands)
        self.check(*program)
        self.check_without_sonde(*program)
        shutil.rmtree(self.root / "record")
        recording = self.check_nesting(*details, durations=[1.5])
        self.assertEqual(self.dropped(recording), {"limit": 3.0})  # also a group of 5000 metrics
        self.check_without_sonde(*builds.java_command, "Program")
        done = subprocess.run([*builds.java_command, "Details"], env=self.env, capture_output=True, text=True)
        self.assertIn("pass -Djava.library.path=", done.stderr)  # the advice of Sonde.check()

    def test_julia(self):
        """The programs run with libsonde.so and without it. Without it, Sonde.check() returns the
        reason."""
        if not found("julia"):
            self.skipTest("no Julia (https://julialang.org)")
        program, details = self.build("program.jl", "details.jl")
        self.check(*program)
        self.check_without_sonde(*program)
        shutil.rmtree(self.root / "record")
        recording = self.check_nesting(*details, durations=[1.5])
        self.assertEqual(self.dropped(recording), {"limit": 3.0})  # also a group of 5000 metrics
        env, _, *rest = details
        self.check_without_sonde(env, f"SONDE_LIB_DIR={self.root}", "NO_LIBRARY=1", *rest)

    def test_octave(self):
        """The programs run with the MEX file and without it. Without it, or if it cannot be loaded,
        sonde.check() returns the reason."""
        if not found("octave-cli", "mkoctfile"):
            self.skipTest("no GNU Octave with mkoctfile (apt-get install octave-dev)")
        builds = Builds(self.root, LIBRARY, self.compile)
        program, details = builds.commands(HERE / "program.m", HERE / "details.m")
        self.check(*program)
        self.check_without_sonde(*program)
        shutil.rmtree(self.root / "record")
        self.check_octave_details(*details)
        self.check_without_sonde(*builds.octave_command, HERE / "program.m")
        (self.root / "broken").mkdir()
        (self.root / "broken/sonde_mex.mex").write_text("not a library")
        script = f"disp(sonde.check()), clear all, addpath('{self.root}/broken'), disp(sonde.check())"
        done = subprocess.run([*builds.octave_command, "--eval", script], env=self.env | {"SONDE_LOG": "1"}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        absent, broken = done.stdout.splitlines()
        self.assertIn("sonde_mex is not on the path; build sonde_mex.c", absent)
        self.assertIn("broken/sonde_mex.mex", broken)
        self.assertEqual(done.stderr, f"sonde: warning: {absent}\nsonde: warning: {broken}\n")

    def check_octave_details(self, *program):
        """Tests timers, scopes of spans, vectors of points, limits, and numbers in tags."""
        recording = self.check_numbers(*program)
        self.check_without_sonde(*program)
        values = self.values(recording)
        scopes = values.pop("scope_seconds")
        self.assertEqual(len(scopes), 2, scopes)
        self.assertTrue(all(0 < seconds < 600 for seconds in scopes), scopes)
        busy = values.pop("busy_seconds")[-1]
        self.assertTrue(60 < busy < 660, busy)
        self.assertEqual(values, {"first": [1, 2, 4], "second": [20, 30, 40], "series": [1, 4, 3, 2, 1], "now": [1, 2, 3]})
        (times,) = [sorted(points) for (number, _), points in zip(recording.series, recording.points) if recording.metrics[number]["name"] == "series"]
        self.assertEqual([t - times[0] for t in times], [0, 5, 123456000, 125000000, 2000000000])
        self.assertEqual(times[0] % (1000 * MS), 0)
        self.assertEqual(self.dropped(recording), {"limit": 3.0})  # 20 tags; no name; 5000 metrics
        spans = [event for event in recording.last_events() if event.kind == "span"]
        known = {event.id: event for event in spans}
        by_name = {name: [span for span in spans if span.text == name] for name in {span.text for span in spans}}
        (outer,), (inner,), (last,), (left_open,) = (by_name.pop(name) for name in ("outer", "inner", "last", "left_open"))
        self.assertEqual((inner.parent, self.tags(outer.labels)), (outer.id, (("text", "cut"),)))
        self.assertEqual((self.tags(last.labels), self.tags(left_open.labels)), ((), (("unfinished", "1"),)))
        self.assertEqual([span.parent for span in by_name.pop("open")], [left_open.id])
        self.assertEqual([span.parent for span in by_name.pop("round")], [0, 0, 0])
        for child in by_name.pop("child"):
            parent = known[child.parent]
            self.assertEqual((parent.text, parent.labels), ("round", child.labels))
            self.assertLessEqual((parent.start, child.end), (child.start, parent.end))
        self.assertEqual(len(by_name.pop("deep")), 64)
        self.assertEqual(by_name, {})

    def test_r(self):
        """The programs run with the native library and without it. Without it, sonde_check()
        returns the reason."""
        if not found("R", "Rscript"):
            self.skipTest("no R (apt-get install r-base-core r-base-dev)")
        program, details = self.build("program.R", "details.R")
        self.check(*program)
        self.check_without_sonde(*program)
        shutil.rmtree(self.root / "record")
        recording = self.check_nesting(*details, durations=[1.5], others=("vector", "a", "b", "elsewhere", "unused1", "unused2", "unused3"))
        self.assertEqual(self.dropped(recording), {"limit": 3.0})  # also a group of 5000 metrics
        self.check_r_details(recording)
        (self.root / "r/library/sonde/libs/sonde.so").unlink()
        self.check_without_sonde(*program)
        done = subprocess.run(details, env=self.env, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("install the R package sonde again", done.stderr)  # by sonde_check()

    def check_r_details(self, recording):
        """Tests vectors, times of several classes, NA, metrics in other processes, and texts."""
        second = 10**9
        midnight = 1767225600 * second  # 2026-01-01
        points = {recording.metrics[number]["name"]: ([(t, to_double(of[t])) for t in sorted(of)], self.tags(labels))
                  for (number, labels), of in zip(recording.series, recording.points)}
        vector, _ = points["vector"]
        first = midnight - 60 * second
        times = [midnight - 24 * 3600 * second, midnight - 240 * second, midnight - 180 * second, first, first + 1000, first + MS, first + second]
        self.assertEqual([t for t, _ in vector], times)
        self.assertEqual([str(value) for _, value in vector], ["1.0", "7.0", "3.0", "1.0", "nan", "-1.5", "inf"])
        self.assertEqual(points["a"], ([(first - 60 * second, 1)], ()))
        self.assertEqual(points["b"], ([(first - 60 * second, 1), (first, 0)], ()))
        self.assertEqual(points["elsewhere"], ([(first, 0.5), (first + second, 0.25)], (("rank", "1"),)))
        events = recording.last_events()
        (texts,) = [dict(self.tags(event.labels)) for event in events if event.text == "texts"]
        self.assertEqual(texts, {"latin": "é", "utf": "é", "level": "high", "many": "1, 2.5", "x": "1", "y": "0.1", "f": "function", "call": "stop", "na": "NA",
                                 "whole": "NA", "real": "NA", "nan": "nan"})
        (late,) = [event for event in events if event.text == "late"]
        self.assertEqual((late.start, late.end, self.tags(late.labels)), (first - 60 * second, first, (("a", "1"), ("b", "2"))))
        self.assertEqual([event.parent for event in events if event.text == "skipped"], [0, 0])


if __name__ == "__main__":
    main()
