"""The package `sonde` in programs that fork, spawn, thread and end in every way; its types and its
extensions."""

import os
import pathlib
import subprocess
import sys
import unittest

from program import PACKAGE, Program, main


class Processes(Program):
    TEXT = """
        import multiprocessing, os, sys, sonde

        value, total = sonde.gauge("value"), sonde.counter("total")

        def work(i, mine):
            value(i)
            mine(i)
            sonde.emit("named", i, worker=i)
            total(1)
            with sonde.span("child", worker=i): pass

        if __name__ == "__main__":
            with sonde.span("parent"):
                context = multiprocessing.get_context(sys.argv[1])
                value(-1)
                mine = sonde.gauge("handed", tags={"over": "pickle"})
                count = int(sys.argv[2])
                children = [context.Process(target=work, args=(i, mine)) for i in range(count)]
                for c in children: c.start()
                for c in children: c.join()
                assert all(c.exitcode == 0 for c in children), [c.exitcode for c in children]
                value(-2)
    """

    # A process that is not forked from the program imports all modules again, which takes long.
    COUNTS = {"fork": 64, "spawn": 16, "forkserver": 16}

    def check(self, method):
        count = self.COUNTS[method]
        self.run_it(self.TEXT, arguments=(method, count))
        self.assertEqual(sorted(self.values("value")), [-2, -1, *range(count)])
        self.assertEqual(sorted(self.values("handed", over="pickle")), list(range(count)))
        self.assertEqual(self.values("total")[-1], count)
        for i in range(count):
            self.assertEqual(self.values("named", worker=str(i)), [i])
        self.assertEqual(len({e.id for e in self.spans("child")}), count)
        self.assertTrue(all(e.end < 2**63 - 1 for e in self.spans("child") + self.spans("parent")))

    def test_fork(self):
        self.check("fork")

    def test_spawn(self):
        self.check("spawn")

    def test_forkserver(self):
        self.check("forkserver")

    def test_pool(self):
        self.run_it("""
            import concurrent.futures, sonde
            def square(i):
                sonde.emit("square", i * i)
                return i * i
            if __name__ == "__main__":
                with concurrent.futures.ProcessPoolExecutor(4) as pool:
                    assert sum(pool.map(square, range(100))) == 328350
        """)
        self.assertEqual(sorted(self.values("square")), [i * i for i in range(100)])

    KILLED = """
        import multiprocessing, os, signal, sys, sonde

        total = sonde.counter("total")

        def work(i, ready):
            m = sonde.gauge("m", tags={"worker": i})  # one series for all would have one value where two of them are at one nanosecond
            for k in range(100):
                m(1000 * i + k)
                total()
            ready.release()
            if i % 2 == 0: signal.pause()

        if __name__ == "__main__":
            context = multiprocessing.get_context(sys.argv[1])
            ready = context.Semaphore(0)
            children = [context.Process(target=work, args=(i, ready)) for i in range(int(sys.argv[2]))]
            for c in children: c.start()
            for c in children: ready.acquire()
            for c in children[::2]: c.kill()
            for c in children: c.join()
            assert [c.exitcode for c in children] == [-signal.SIGKILL, 0] * (len(children) // 2), [c.exitcode for c in children]
    """

    def test_killed(self):
        """The recording has the values that processes emitted before half of them were killed with
        -9, and those of the others."""
        for method, count in self.COUNTS.items():
            with self.subTest(method):
                self.run_it(self.KILLED, arguments=(method, count))
                for i in range(count):
                    self.assertEqual(self.values("m", worker=str(i)), [1000 * i + k for k in range(100)])
                self.assertEqual(self.values("total")[-1], 100 * count)

    def test_threads(self):
        self.run_it("""
            import sonde, threading
            m, c = sonde.gauge("m"), sonde.counter("c")
            def work(i):
                for k in range(1000):
                    m(1000 * i + k); sonde.emit("n", k, thread=i); c()
            threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
            for t in threads: t.start()
            for t in threads: t.join()
        """)
        self.assertEqual(sorted(self.values("m")), list(range(8000)))
        self.assertEqual(self.values("n", thread="5"), list(range(1000)))
        self.assertEqual(self.values("c")[-1], 8000)

    def test_at_the_interpreters_end(self):
        """Values arrive from exit handlers, finalizers and daemon threads."""
        self.run_it("""
            import atexit, sonde
            m = sonde.gauge("m")
            atexit.register(m, 2)
            class Late:
                def __del__(self, m=m): m(3)
            late = Late()
            late.cycle = late
            m(1)
        """)
        self.assertEqual(self.values("m"), [1, 2, 3])
        self.run_it("""
            import sonde, threading, time
            m = sonde.gauge("m")
            def daemon():
                while True: m(0); time.sleep(0.0001)
            threading.Thread(target=daemon, daemon=True).start()
            m(1)
        """)
        self.assertIn(1, self.values("m"))

    def test_one_that_is_told_later_where_the_agent_is(self):
        self.run_it("""
            import os
            socket = os.environ.pop("SONDE_SOCKET")
            import sonde
            before = sonde.gauge("before"); before(1); sonde.emit("by_name", 1)
            assert sonde.level() == 0
            for bad in ("", "/" + "x" * 200):
                try: sonde.connect(bad, 2)
                except (ValueError, OSError): pass
                else: raise AssertionError(bad)
            try: sonde.connect(socket, 5)
            except ValueError: pass
            sonde.connect(os.path.dirname(socket) + "/nobody.sock", 2)
            assert sonde.level() == 2
            here = sonde.gauge("here"); here(1)
            sonde.connect(socket, 4)  # goes there with all that it has; the level stays
            sonde.connect(socket)
            assert sonde.level() == 2
            before(2); sonde.emit("by_name", 3); here(2)
            if os.fork() == 0: here(3); os._exit(0)
            os.wait()
        """, level=2)
        self.assertEqual(sorted(v for values in self.series("here").values() for v in values), [1, 2, 3])
        self.assertEqual(self.values("by_name"), [3])
        self.assertEqual(self.series("before"), {})

    def test_exit_code_and_exception_are_the_programs(self):
        self.run_it("import sonde\nsonde.emit('x', 1)\nraise SystemExit(7)", code=7)
        self.assertEqual(self.values("x"), [1])
        self.run_it("import sonde\nsonde.emit('x', 1)\nraise KeyError('y')", code=1)
        self.assertIn("KeyError: 'y'", self.said)

    def test_development_mode_finds_nothing(self):
        """Runs with debug hooks on allocations, with warnings enabled, and with counted
        references."""
        self.run_it("""
            import sonde, sys
            def all_of_it():
                m = sonde.gauge("m", tags={"a": "b"}); m(1); m("x"); m.set(2); m.add(1); repr(m); m.tags; m.__reduce__()
                g = sonde.group([m]); g(1); repr(g); g.metrics; g.__reduce__()
                sonde.emit("n", 1, k=1); sonde.emit("n", 1); sonde.annotate("t", k=1); sonde.log({"q": 1}, step=2)
                with sonde.span("s", k=1): pass
                sonde._emit.span_at("o", 1, 2, {"k": 1})
                try: sonde.gauge("x", tags={"k": Bad()})
                except ZeroDivisionError: pass
            class Bad:
                def __str__(self): return str(1 // 0)
            for _ in range(200): all_of_it()
            import gc
            gc.collect(); before = sys.getallocatedblocks()
            for _ in range(2000): all_of_it()
            gc.collect(); after = sys.getallocatedblocks()
            assert after - before < 200, after - before
        """, python=("-X", "dev"))


class Types(unittest.TestCase):
    def test_mypy_is_strict(self):
        if not pathlib.Path("/usr/bin/mypy").exists():
            self.skipTest("mypy is not here")
        result = subprocess.run(["/usr/bin/mypy", "--strict", "--cache-dir", os.devnull, "-p", "sonde"], capture_output=True, text=True,
                                env=os.environ | {"MYPYPATH": os.environ["PACKAGE_SOURCE"]}, cwd="/")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_stubs_and_extensions_have_the_same_names(self):
        import ast
        import importlib
        sys.path.insert(0, PACKAGE)
        for name in ("_emit", "_dask"):
            extension = importlib.import_module(f"sonde.{name}")
            stub = ast.parse((pathlib.Path(os.environ["PACKAGE_SOURCE"]) / f"sonde/{name}.pyi").read_text())
            said = {getattr(n, "name", None) or n.target.id for n in stub.body
                    if isinstance(n, (ast.FunctionDef, ast.ClassDef, ast.AnnAssign))} - {"_Value"}
            there = {n for n in vars(extension) if not n.startswith("__") or n == "__version__"}
            self.assertEqual(said, there)
            for each in said - {"__version__"}:
                self.assertTrue(getattr(extension, each).__doc__, each)


class Extensions(unittest.TestCase):
    def run_python(self, text):
        return subprocess.run([sys.executable, "-c", text], env=os.environ | {"PYTHONPATH": PACKAGE}, capture_output=True, text=True)

    def test_what_a_program_imports_loads_nothing_of_dask(self):
        """Every name of the package; only sonde.dask needs `_dask`."""
        done = self.run_python("""if True:
            import sys, sonde
            for name in sonde.__all__: getattr(sonde, name)
            import sonde.telemetry, sonde.collector, sonde.detector, sonde.analysis
            print([m for m in sys.modules if "dask" in m])
            print([line for line in open("/proc/self/maps") if "_dask" in line])
            import sonde.dask._jobs
            print("sonde._dask" in sys.modules)
        """)
        self.assertEqual((done.stdout, done.stderr), ("[]\n[]\nTrue\n", ""))

    def test_the_first_point_imports_only_what_emits(self):
        """A program has its first point 2 ms after the interpreter's start, not 30."""
        done = self.run_python("""if True:
            import atexit, contextvars, importlib, os, sys, warnings
            before = set(sys.modules)
            import sonde
            sonde.gauge("loss")(0.5)
            with sonde.span("epoch"): sonde.counter("steps")()
            print(*sorted(set(sys.modules) - before))
            sonde.AnalysisClient, sonde.AsyncAnalysisClient
            print(*sorted({"asyncio", "logging"} & set(sys.modules) - before))
        """)
        self.assertEqual((done.stdout, done.stderr), ("sonde sonde._emit sonde._undelivered\n\n", ""))

    def test_names_are_imported_at_their_first_use(self):
        done = self.run_python("""if True:
            import sonde
            names = sorted({*sonde.__all__, "collector", "detector", "integrations", "plot",
                            "slow_gpu", "telemetry", "live"})
            assert set(names) <= set(dir(sonde)), set(names) - set(dir(sonde))
            for name in names: assert getattr(sonde, name) is getattr(sonde, name), name
            assert sonde.log.__module__ == "sonde._log" and sonde.plot.__name__ == "sonde.plot"
            from sonde import *
            assert Telemetry is sonde.Telemetry
            try: sonde.gague
            except AttributeError as why: print(why)
        """)
        self.assertEqual((done.stdout, done.stderr), ("module 'sonde' has no attribute 'gague'\n", ""))

    def test_extensions_of_two_versions_do_not_mix(self):
        done = self.run_python("""if True:
            import ctypes, sonde
            new = ctypes.pythonapi.PyCapsule_New
            new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
            older, name = (ctypes.c_size_t * 8)(8), b"sonde._emit.__emitter__"
            sonde._emit.__emitter__ = new(ctypes.addressof(older), name, None)
            import sonde._dask
        """)
        self.assertEqual(done.returncode, 1)
        self.assertIn("two versions", done.stderr)


if __name__ == "__main__":
    main()
