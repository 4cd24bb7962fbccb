"""Dragon's class Telemetry: its names, its levels, and a service that a program starts itself and
that ends with it, however the program ends."""

import inspect
import os
import signal
import subprocess
import sys
import unittest

from program import PACKAGE, Program, main
from place import PATIENCE_S, until

sys.path.insert(0, PACKAGE)


class Signatures(unittest.TestCase):
    """Calls as in programs for the Dragon Telemetry Service."""

    TABLE = {
        "Telemetry.__init__": "(self, metrics_url=None, timeout=None, telem_cfg=None)",
        "Telemetry.start": "(self, telemetry_level=2)",
        "Telemetry.add_data": "(self, /, ts_metric_name, ts_data, timestamp=None, telemetry_level=1, tagk=None, tagv=None, tags=None)",
        "Telemetry.shutdown": "(self)",
        "Telemetry.finalize": "(self)",
    }

    def test_table(self):
        import sonde
        for name, said in self.TABLE.items():
            function = getattr(getattr(sonde, name.split(".")[0]), name.split(".")[1])
            bare = inspect.signature(function)
            bare = bare.replace(parameters=[p.replace(annotation=p.empty) for p in bare.parameters.values()], return_annotation=bare.empty)
            self.assertEqual(str(bare), said, name)

    def test_modules(self):
        import sonde
        import sonde.telemetry
        self.assertIs(sonde.Telemetry, sonde.telemetry.Telemetry)
        self.assertIsInstance(sonde.Telemetry.level, property)


class AddData(Program):
    TEXT = """
        from sonde.telemetry import Telemetry
        t = Telemetry()
        t.add_data("plain", 1)
        t.add_data("plain", 2.5, timestamp=1700000000)
        t.add_data("plain", 3, 1700000001.25)
        t.add_data("tagged", 4, tagk="rank", tagv=7)
        t.add_data("tagged", 5, tagk="rank", tagv=7, tags={"phase": "a"})
        t.add_data("always", 6, telemetry_level=0)
        t.add_data("third", 7, telemetry_level=3)
        print(t.level)
        t.finalize()
        t.shutdown()
        t.add_data("plain", 8)     # the service is the job's
    """

    def test_level_0(self):
        self.assertEqual(self.run_it(self.TEXT, level=0), "0\n")
        self.assertIsNone(self.recording)

    def test_level_1(self):
        self.assertEqual(self.run_it(self.TEXT, level=1), "1\n")
        self.assertEqual(self.values("plain"), [2.5, 3, 1, 8])
        self.assertEqual(self.times("plain")[:2], [1_700_000_000_000_000_000, 1_700_000_001_250_000_000])
        self.assertEqual(self.values("tagged", phase="a", rank="7"), [5])
        self.assertEqual(sorted(v[0] for v in self.series("tagged").values()), [4, 5])
        self.assertEqual((self.values("always"), self.series("third")), ([6], {}))

    def test_level_under_dragons_launcher(self):
        """Dragon's launcher sets the variable to its own level, 0; programs and their children find
        the run's level."""
        out = self.run_it("""
            import os, subprocess
            os.environ["DRAGON_TELEMETRY_LEVEL"] = "0"
            import sonde
            print(sonde.Telemetry().level, flush=True)
            subprocess.run(["printenv", "DRAGON_TELEMETRY_LEVEL"])
        """, level=2)
        self.assertEqual(out, "2\n2\n")

    def test_level_3(self):
        self.assertEqual(self.run_it(self.TEXT, level=3), "3\n")
        self.assertEqual((self.values("third"), self.definition("third")["level"]), ([7], 3))

    def test_every_way_to_call(self):
        self.run_it("""
            import sonde
            t = sonde.Telemetry()
            t.add_data(ts_data=1, ts_metric_name="m"); t.add_data("m", 2, None, 1, "k", "v", {"a": "b"}); t.add_data(*["m"], **{"ts_data": 3}); sonde.Telemetry.add_data(t, "m", 4)
            for wrong in (lambda: t.add_data(), lambda: t.add_data("m"), lambda: t.add_data("m", 1, level=2), lambda: t.add_data("m", 1, ts_data=2),
                          lambda: t.add_data("m", 1, telemetry_level="high"), lambda: t.add_data("m", 1, None, 1, "k", "v", {}, 8)):
                try: wrong()
                except TypeError: pass
                else: raise SystemExit("taken")
        """)
        self.assertEqual(sorted(v for series in self.series("m").values() for v in series), [1, 2, 3, 4])
        self.assertEqual(self.values("m", k="v", a="b"), [2])

    def test_no_number_is_left_out(self):
        self.run_it("""
            import sonde
            t = sonde.Telemetry()
            t.add_data("m", "no number"); t.add_data("m", None); t.add_data("m", 1)
        """)
        self.assertEqual(self.values("m"), [1])
        self.assertIn("RuntimeWarning", self.said)

    def test_without_a_job(self):
        self.write(self.TEXT)
        result = subprocess.run([sys.executable, str(self.program)], env=self.env, capture_output=True, text=True, check=True)
        self.assertEqual((result.stdout, result.stderr), ("0\n", ""))

    def test_waits_for_the_agent(self):
        """The constructor waits for a late agent; without one, it raises an error after the
        timeout."""
        self.write("""
            import os, socket, sys, threading, sonde
            path = os.environ["SONDE_SOCKET"]
            try: sonde.Telemetry(timeout=0.01)
            except TimeoutError as e: print(e)
            s = socket.socket(socket.AF_UNIX)
            s.bind(path)
            threading.Timer(0.01, s.listen).start()
            sonde.Telemetry(timeout=300)
            sonde.Telemetry()
        """)
        where = self.env | {"SONDE_LEVEL": "1", "SONDE_SOCKET": str(self.root / "s")}
        result = subprocess.run([sys.executable, str(self.program)], env=where, capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual((result.stdout, result.stderr), (f"no agent answers at {self.root}/s within 0.01 s\n", ""))


class Started(Program):
    """Telemetry that the program started, not `sonde run`."""

    def begin(self, text):
        self.write(text)
        process = subprocess.Popen([sys.executable, str(self.program)], env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.started.append(process)
        return process

    def check_recording(self, *points):
        until(lambda: not self.alive(), "all ended")
        names = [self.names(recording) for recording in self.recordings()]
        self.assertCountEqual([n["mine"] for n in names], points)
        self.assertTrue(all("memory_used_bytes" in n for n in names))
        self.nothing_left()

    def test_start_and_finalize(self):
        process = self.begin("""
            import os, sonde, urllib.request, warnings
            def warned(level):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    t.start(level)
                return [(w.category, w.filename) for w in caught if "stays at level 2" in str(w.message)]
            t = sonde.Telemetry(telem_cfg={"collector_rate": 0.05})
            t.add_data("mine", 0)
            assert t.level == 0
            runs = os.environ["SONDE_RUNS"]
            t.start()
            assert warned(3) == [(RuntimeWarning, __file__)]      # runs already
            assert warned(2) == warned(1) == warned(0) == []
            assert "SONDE_CONFIG" not in os.environ
            t.add_data("mine", 1)
            assert t.level == 2 == sonde.level() == sonde.Telemetry().level
            url, token = os.environ["SONDE_URL"], open(os.environ["SONDE_TOKEN_FILE"]).read().strip()
            with urllib.request.urlopen(urllib.request.Request(url + "/sonde/v1/status", headers={"Authorization": "Bearer " + token})) as r:
                assert r.status == 200
            if not os.fork():
                t.add_data("mine", 2)
                t.finalize()                             # is its parent's
                os._exit(0)
            os.wait()
            t.add_data("mine", 3)
            t.finalize()
            assert t.level == 0 and "SONDE_SOCKET" not in os.environ and os.environ["SONDE_RUNS"] == runs
            t.finalize(); t.add_data("mine", 4)
            assert warned(4) == [(RuntimeWarning, __file__)] and t.level == 2
            t.add_data("mine", 5)
        """)
        self.assertEqual(self.ends(process), (0, "", ""))
        self.check_recording(3, 1)

    def test_ends_with_the_program(self):
        """The service ends with a program that ends normally, and with one that is killed with -9
        and whose forked child lives on."""
        process = self.begin("import sonde\nt = sonde.Telemetry()\nt.start()\nt.add_data('mine', 1)")
        self.assertEqual(self.ends(process), (0, "", ""))
        self.check_recording(1)
        process = self.begin("""
            import os, signal, sonde
            t = sonde.Telemetry()
            t.start(2)
            t.add_data("mine", 1)
            child = os.fork()
            if not child: signal.pause()
            print(child, flush=True)
            signal.pause()
        """)
        child = int(process.stdout.readline())
        process.kill()
        try:
            until(lambda: not self.alive("sonde run") and not self.alive("agent"), "the service ended")
        finally:
            os.kill(child, signal.SIGKILL)
        until(lambda: not self.alive(), "all ended")
        self.assertEqual(len(self.recordings()), 2)
        self.nothing_left()

    def test_a_fork_during_the_start(self):
        """A child that another thread forks during start() neither waits for it nor keeps the
        service alive. The command `sonde` here waits before it becomes the real one."""
        process = self.begin("""
            import os, select, shutil, signal, sonde, sonde._service, tempfile, threading, time
            folder = tempfile.mkdtemp()
            with open(folder + "/sonde", "w") as f:
                f.write(f'#!/bin/sh\\n: > {folder}/begun\\nuntil [ -e {folder}/go ]; do sleep 0.01; done\\nexec {sonde._service.command()} "$@"\\n')
            os.chmod(folder + "/sonde", 0o755)
            os.environ["PATH"] = folder + ":" + os.environ["PATH"]
            t = sonde.Telemetry()
            starts = threading.Thread(target=t.start)
            starts.start()
            while not os.path.exists(folder + "/begun"): time.sleep(0.01)
            hears, says = os.pipe()
            child = os.fork()
            if not child:
                t.finalize()
                os.write(says, b".")
                signal.pause()
            print(child, flush=True)
            free = bool(select.select([hears], [], [], 60)[0])
            open(folder + "/go", "w").close()
            starts.join()
            shutil.rmtree(folder)
            t.add_data("mine", 1)
            t.finalize()
            print("free" if free else "waits", flush=True)
        """)
        child = int(process.stdout.readline())
        try:
            self.assertEqual(process.stdout.readline(), "free\n")
            until(lambda: not self.alive("sonde run") and not self.alive("agent"), "the service ended")
        finally:
            os.kill(child, signal.SIGKILL)
        self.assertEqual(self.ends(process), (0, "", ""))
        self.check_recording(1)

    def test_cannot_be_started(self):
        process = self.begin("import sonde\nsonde.Telemetry(telem_cfg={'collector_rate': 'fast'}).start()")
        code, out, err = self.ends(process)
        self.assertEqual((code, out), (1, ""))
        self.assertIn("'fast' is not seconds", err)
        self.assertIn("RuntimeError: sonde run could not start", err)
        self.nothing_left()

    def test_off_is_a_wish(self):
        self.run_it("import sonde\nt = sonde.Telemetry()\nt.start()\nassert t.level == 0", level=0)
        self.assertEqual(self.recordings(), [])


if __name__ == "__main__":
    main()
