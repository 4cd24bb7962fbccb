"""`sonde run --trace python`: functions, imports and garbage collections of programs that know
nothing of sonde. The programs run as without it.

SONDE_TEST_PYTHON names another Python to trace, of any version.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

from traced import Traced

from place import SONDE, main

PYTHON = os.environ.get("SONDE_TEST_PYTHON", sys.executable)
VERSION = tuple(json.loads(subprocess.run([PYTHON, "-c", "import sys; print(list(sys.version_info[:2]))"], capture_output=True, check=True, text=True).stdout))
HAS_QUALIFIED_NAMES = VERSION >= (3, 11)
HOOK = pathlib.Path(os.environ["PACKAGE"]) / "sonde/_trace/hook"

PROGRAM = """
import gc, sys, threading
import library, library.part

class Model:
    def step(self, number):
        return [inner(x) for x in range(number)]

def inner(number):
    return library.double(number)

def fails():
    raise ValueError("as it should")

def numbers():
    yield from range(3)

def many():
    for _ in range(10100):
        leaf()

def leaf():
    pass

def recursive(depth):
    if depth:
        recursive(depth - 1)

for i in range(3):
    Model().step(4)
try:
    fails()
except ValueError as e:
    print(e)
list(numbers())
recursive(2)
many()
thread = threading.Thread(target=inner, args=(1,))
thread.start()
thread.join()
gc.collect()
print(sys.argv[1:], [path for path in sys.path if "_trace" in path])
sys.exit(7 if "fail" in sys.argv else 0)
"""


class Python(Traced):
    def setUp(self):
        super().setUp()
        (self.work / "library").mkdir()
        (self.work / "library/__init__.py").write_text("def double(x):\n    return 2 * x\n")
        (self.work / "library/part.py").write_text("import time\ntime.sleep(0.3)\nimport library\n")
        self.program = self.work / "program.py"
        self.program.write_text(PROGRAM)
        # The package itself, so that Python's own tests of it are not what imports it.
        self.env.pop("PYTHONPATH", None)

    def calls(self):
        return {dict(tags)["function"]: value for tags, value in self.totals.get("python_function_calls", {}).items()}

    def test_functions_of_the_script(self):
        self.trace("python", PYTHON, self.program, "a b")
        self.assertEqual(self.out, "as it should\n['a b'] []\n")
        step = "program.Model.step" if HAS_QUALIFIED_NAMES else "program.step"
        self.assertEqual(self.calls(), {step: 3, "program.inner": 13, "program.fails": 1, "program.recursive": 3, "program.many": 1, "program.leaf": 10100})
        for tags, seconds in self.totals["python_function_seconds"].items():
            self.assertGreater(seconds, 0, tags)
        many = self.sum("python_function_seconds", function="program.many")
        self.assertGreater(many, self.sum("python_function_seconds", function="program.leaf"))

    def test_spans(self):
        """At most 10,000 spans of a function; they nest; a tag names the exception."""
        self.trace("python", PYTHON, self.program)
        spans = self.spans()
        by_id = {span["id"]: span for span in spans}
        count = {}
        for span in spans:
            count[span["name"]] = count.get(span["name"], 0) + 1
            self.assertGreater(span["end_ns"], span["start_ns"])
        self.assertEqual((count["program.inner"], count["program.leaf"], count["program.recursive"]), (13, 10000, 3))
        parents = [by_id[span["parent"]]["name"].rpartition(".")[2] if span["parent"] else None for span in spans if span["name"] == "program.inner"]
        self.assertEqual((parents.count("step"), parents.count(None)), (12, 1))
        (fails,) = [span for span in spans if span["name"] == "program.fails"]
        self.assertEqual(fails["tags"].get("error"), "ValueError" if VERSION >= (3, 12) else None)

    def test_chosen_functions(self):
        self.trace("python", PYTHON, self.program, more=["--trace-python", "library.*, __main__.f*"])
        self.assertEqual(self.calls(), {"library.double": 13, "program.fails": 1})
        self.trace("python", PYTHON, self.program, SONDE_TRACE_PYTHON="program.rec*")
        self.assertEqual(self.calls(), {"program.recursive": 3})
        self.trace("python", PYTHON, self.program, more=["--trace-python", "nothing"])
        self.assertEqual(self.calls(), {})

    def test_limit_of_functions(self):
        self.program.write_text("\n".join(f"def f{i}(): pass\nf{i}()" for i in range(300)))
        self.trace("python", PYTHON, self.program)
        self.assertEqual((len(self.calls()), self.sum("python_functions_omitted")), (256, 44))

    def test_imports(self):
        """A package has its own time, without what it imports in turn."""
        self.trace("python", PYTHON, self.program)
        self.assertGreaterEqual(self.sum("python_import_seconds", package="library"), 0.3)
        (self.work / "outer.py").write_text("import library.part\n")
        self.program.write_text("import outer")
        self.trace("python", PYTHON, self.program)
        self.assertGreaterEqual(self.sum("python_import_seconds", package="library"), 0.3)
        self.assertGreater(0.3, self.sum("python_import_seconds", package="outer"))

    def test_a_program_that_removes_the_finder(self):
        """Another thread may still be within it, or the program keeps it: its searches go on."""
        self.program.write_text("import sys\nfinder = sys.meta_path.pop(0)\nprint(type(finder).__module__, finder.find_spec('json').name)")
        self.trace("python", PYTHON, self.program)
        self.assertEqual(self.out, "sonde._trace.imports json\n")

    def test_garbage_collections(self):
        self.program.write_text("import gc\ngc.disable()\nx = [[i] for i in range(300000)]\nbefore = gc.get_stats()[2]['collections']\n"
                                "for _ in range(5): gc.collect()\nprint(gc.get_stats()[2]['collections'] - before)")
        self.trace("python", PYTHON, self.program)
        self.assertEqual(self.out, "5\n")
        self.assertGreaterEqual(self.sum("python_gc_runs", generation="2"), 5)
        self.assertGreater(self.sum("python_gc_seconds", generation="2"), 0)
        self.assertIn("python_gc_pause_seconds", self.totals)

    def test_results_are_those_of_the_program(self):
        bare = subprocess.run([PYTHON, self.program, "fail"], env=self.env, capture_output=True, text=True)
        traced = self.sonde("run", "--quiet", "--trace", "python", "--", PYTHON, self.program, "fail")
        self.assertEqual((traced.returncode, traced.stdout, traced.stderr), (7, bare.stdout, bare.stderr))

    def test_processes(self):
        """Children of multiprocessing count their functions as those of the script."""
        self.program.write_text("import multiprocessing, sys\ndef work(x):\n    return x + 1\n"
                                "if __name__ == '__main__':\n    multiprocessing.set_start_method(sys.argv[1])\n"
                                "    with multiprocessing.Pool(2) as pool:\n        print(pool.map(work, range(10)))")
        for method in ("fork", "spawn"):
            with self.subTest(method):
                self.trace("python", PYTHON, self.program, method)
                self.assertEqual(self.out, f"{list(range(1, 11))}\n")
                self.assertEqual(self.calls(), {"program.work": 10})

    def test_other_sitecustomize(self):
        """That of the user runs, and programs find it; a failing one is reported as ever."""
        own = self.root / "own"
        own.mkdir()
        (own / "sitecustomize.py").write_text("import sys\nprint('mine', __name__, sys.argv if hasattr(sys, 'argv') else '')\nVALUE = 3\n")
        self.program.write_text("import sitecustomize\nprint(sitecustomize.VALUE)\ndef f(): pass\nf()")
        bare = subprocess.run([PYTHON, self.program], env=self.env | {"PYTHONPATH": str(own)}, capture_output=True, text=True)
        self.assertIn("mine sitecustomize", bare.stdout)
        self.trace("python", PYTHON, self.program, PYTHONPATH=str(own))
        self.assertEqual(self.out, bare.stdout)
        self.assertEqual(self.calls(), {"program.f": 1})
        for text in ("import a_missing_module", "1 / 0"):
            (own / "sitecustomize.py").write_text(text)
            self.program.write_text("print('runs')")
            done = self.sonde("run", "--quiet", "--trace", "python", "--", PYTHON, self.program, env={"PYTHONPATH": str(own)})
            bare = subprocess.run([PYTHON, self.program], env=self.env | {"PYTHONPATH": str(own)}, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "runs\n", bare.stderr))
            self.assertIn("sitecustomize", bare.stderr)

    def test_environment(self):
        shown = "import os; print(os.environ.get('PYTHONPATH'))"
        self.trace("python", PYTHON, "-c", shown, PYTHONPATH="/a:/b")
        self.assertEqual(self.out, f"{HOOK}:/a:/b\n")
        self.trace("python", PYTHON, "-c", shown, PYTHONPATH="")
        self.assertEqual(self.out, f"{HOOK}\n")
        self.trace("python", SONDE, "run", "--quiet", "--trace", "python", "--", PYTHON, "-c", shown)
        self.assertEqual(self.out, f"{HOOK}\n")
        for options in ([], ["-l", 0, "--trace", "python"]):
            self.assertEqual(self.sonde("run", "--quiet", *options, "--", PYTHON, "-c", shown).stdout, "None\n")

    def test_program_with_the_package(self):
        """The program's own package and the tracer have one libsonde."""
        package = os.environ["PACKAGE"]
        self.program.write_text("import sonde, sys\ndef f():\n    sonde.counter('steps').add(2)\nf()\nprint(sys.modules['sonde._emit'].__file__)")
        self.trace("python", PYTHON, self.program, PYTHONPATH=package)
        self.assertEqual((self.sum("steps"), self.calls()), (2, {"program.f": 1}))
        self.assertEqual(pathlib.Path(self.out.strip()).parent, pathlib.Path(package) / "sonde")

    def test_without_the_package(self):
        """A copy of the hook alone: a Python that cannot load the extension prints one line."""
        copy = self.root / "sonde/_trace"
        shutil.copytree(HOOK.parent, copy)
        done = subprocess.run([PYTHON, self.program, "fail"], env=self.env | {"PYTHONPATH": str(copy / "hook")}, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (7, "as it should\n['fail'] []\n"))
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("is not traced: no sonde/_emit for this Python", done.stderr)

    def test_old_python(self):
        """The hook's syntax is that of every Python; it names the versions that it needs."""
        script = "import sys; sys.version_info = (3, 8, 1); exec(compile(open(sys.argv[1]).read(), sys.argv[1], 'exec'), {'__name__': 'sitecustomize', '__file__': sys.argv[1]})"
        done = subprocess.run([PYTHON, "-c", "import sys; sys.modules['sitecustomize'] = sys; " + script, HOOK / "sitecustomize.py"], env=self.env, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (0, 1), done.stderr)
        self.assertIn("is not traced: it needs Python 3.9 or later", done.stderr)

    def test_outside_of_a_job(self):
        done = subprocess.run([PYTHON, self.program], env=self.env | {"PYTHONPATH": str(HOOK)}, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "as it should\n[] []\n", ""))

    def test_missing_package(self):
        copy = self.root / "bin/sonde"
        copy.parent.mkdir()
        shutil.copy(SONDE, copy)
        done = subprocess.run([copy, "run", "--quiet", "--trace", "python", "--", "sh", "-c", "echo x$PYTHONPATH; exit 3"], env=self.env, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (3, "x\n"), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("--trace python is not available", done.stderr)

    def test_static_command(self):
        """Python's tracer needs no dynamic linker, so there is no warning."""
        (self.root / "x.c").write_text("int main(void) { return 7; }\n")
        if subprocess.run(["cc", "-static", self.root / "x.c", "-o", self.root / "static"], capture_output=True).returncode:
            self.skipTest("no static libc")
        done = self.sonde("run", "--quiet", "--trace", "python", "--", self.root / "static")
        self.assertEqual((done.returncode, done.stderr), (7, ""))


if __name__ == "__main__":
    main()
