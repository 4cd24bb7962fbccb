"""CollectorGroup: functions in processes that the agents start and stop, that fail, hang and crash;
none is left at the end."""

import http.client
import importlib.util
import inspect
import json
import os
import signal
import subprocess
import sys
import unittest
import urllib.request

from program import PACKAGE, Program, main
from place import PATIENCE_S, stop_process, until

sys.path.insert(0, PACKAGE)
LIBRARY = os.environ["FAKE_NVML"]

# The beginning of every program below: imports, and a wait until metrics have this number of
# points.
HEAD = """
import os, signal, sys, time, sonde

class Pid(sonde.CollectorGroup):
    @staticmethod
    def collector_test(collector_args):
        return os.getpid()

def await_points(wanted, distinct=False, **tags):
    client = sonde.AnalysisClient()
    client.connect(300)
    end = time.monotonic() + 300
    while True:
        found = {}
        for m in client.get_metrics() & set(wanted):
            values = [v for series in client.query(metric=m, tags=tags) for _, v in series]
            found[m] = len(set(values) if distinct else values)
        if all(found.get(m, 0) >= n for m, n in wanted.items()):
            return
        assert time.monotonic() < end, (wanted, found)
        time.sleep(0.02)
"""


class Groups(Program):
    def collect(self, text, **more):
        body = "\n".join("    " + line for line in inspect.cleandoc(text).splitlines())
        return self.run_it(HEAD + "\n" + more.pop("classes", "") + "\nif __name__ == '__main__':\n" + body + "\n", **more)

    def annotations(self):
        return [e.text for e in self.recording.last_events() if e.kind == "annotation"]

    def test_signatures(self):
        import sonde
        table = {"__init__": "(self, metric_name='user-cg', per_gpu=False, collection_rate=3, collector_args=None)", "start": "(self)", "stop": "(self)",
                 "collector_test": "(collector_args)"}
        for name, said in table.items():
            bare = inspect.signature(getattr(sonde.CollectorGroup, name))
            bare = bare.replace(parameters=[p.replace(annotation=p.empty) for p in bare.parameters.values()], return_annotation=bare.empty)
            self.assertEqual(str(bare), said, name)
        for wrong in ({"metric_name": ""}, {"metric_name": "put"}, {"collection_rate": 0}, {"collection_rate": float("nan")}):
            self.assertRaises(ValueError, sonde.CollectorGroup, **wrong)

    def test_starts_and_stops(self):
        """Two groups with the same metric, with arguments of a class of the program; the values are
        at the instants of their rate."""
        said = self.collect("""
            groups = [Sum(metric_name="sum", collection_rate=0.1, collector_args=Pair(1, n)) for n in (2, 3)]
            for g in groups: g.start(); g.start()
            pid = Pid("pid", collection_rate=0.05)
            pid.start()
            await_points({"sum": 2}, distinct=True)
            await_points({"sum": 8, "pid": 3})
            pid.stop(); pid.stop()
            groups[0].stop()
            print(os.getcwd() == os.path.realpath(os.getcwd()), os.getpid())
        """, classes=inspect.cleandoc("""
            class Pair:
                def __init__(self, a, b): self.a, self.b = a, b
            class Sum(sonde.CollectorGroup):
                @staticmethod
                def collector_test(collector_args):
                    print("this is nobody's point")
                    return collector_args.a + collector_args.b
        """))
        self.assertEqual(set(self.values("sum")), {3, 4})
        self.assertEqual(len(set(self.values("pid"))), 1)
        self.assertNotIn(float(said.split()[1]), self.values("pid"))
        self.assertEqual((self.series("sonde_script_exit_code"), self.annotations()), ({}, []))
        self.nothing_left()

    def test_class_of_a_module(self):
        (self.root / "mine.py").write_text("import sonde\nclass Seven(sonde.CollectorGroup):\n    collector_test = staticmethod(lambda collector_args: 7)\n")
        self.collect("import mine\nmine.Seven('seven', collection_rate=0.05).start()\nawait_points({'seven': 2})")
        self.assertEqual(set(self.values("seven")), {7})

    @unittest.skipUnless(importlib.util.find_spec("cloudpickle"), "cloudpickle is not here")
    def test_class_of_the_program_as_a_whole(self):
        """With cloudpickle, the program's file is not run again."""
        installed = os.path.dirname(os.path.dirname(importlib.util.find_spec("cloudpickle").origin))
        self.env["PYTHONPATH"] = f"{PACKAGE}:{installed}"
        self.collect("Sum('sum', collection_rate=0.05).start()\nawait_points({'sum': 2})", classes=inspect.cleandoc("""
            five = 5
            with open("run", "a") as f: f.write("x")
            class Sum(sonde.CollectorGroup):
                @staticmethod
                def collector_test(collector_args):
                    return five
        """))
        self.assertEqual(((self.root / "run").read_text(), set(self.values("sum"))), ("x", {5}))

    def test_values_and_arrays_of_multiprocessing(self):
        """The program and its collectors share values and arrays, including the lock; each call
        makes one point."""
        said = self.collect("""
            counter, raw, array, text = mp.Value("i", 0), mp.RawValue("d", 0.5), mp.Array("d", [1, 2, 3]), mp.Array("c", b"abc")
            groups = [Count(name, collection_rate=0.05, collector_args={"all": (counter, raw, [array, text])}) for name in ("one", "two")]
            for g in groups: g.start()
            await_points({"one": 3, "two": 3})
            raw.value = 7.5
            await_points({"one": 3, "two": 3}, distinct=True)
            for g in groups: g.stop()
            client = sonde.AnalysisClient()
            client.connect()
            def calls(): return sum(len(s) for m in ("one", "two") for s in client.query(metric=m))
            end = time.monotonic() + 300
            # stop() may end each of the two in the middle of a call.
            while not calls() <= counter.value <= calls() + 2: assert time.monotonic() < end, (calls(), counter.value)
            print(list(array), text.value)
        """, classes=inspect.cleandoc("""
            import multiprocessing as mp
            class Count(sonde.CollectorGroup):
                @staticmethod
                def collector_test(collector_args):
                    counter, raw, (array, text) = collector_args["all"]
                    with counter.get_lock():
                        counter.value += 1
                        count = counter.value
                        array[0], array[1:] = count, [len(array), sum(array[1:3])]
                        assert list(array)[:2] == [count, 3], list(array)
                    assert text.raw == b"abc" and text.get_obj()[0] == b"a"
                    text[0] = b"a"
                    try: array[3]
                    except IndexError: pass
                    else: raise AssertionError
                    with array: text.value = b"abc"
                    return count + raw.value
        """))
        self.assertRegex(said, r"\[\d+\.0, 3\.0, \d+\.0\] b'abc'")
        self.assertLessEqual({v % 1 for v in self.values("one") + self.values("two")}, {0.5})
        self.assertEqual(len({v for v in self.values("one") + self.values("two") if v < 7}), len([v for v in self.values("one") + self.values("two") if v < 7]))

    def test_a_start_method_that_only_the_program_has(self):
        """Only Dragon has registered its start method, for instance."""
        self.collect("""
            import multiprocessing.context
            class Own(multiprocessing.context.BaseContext): _name = "own"
            multiprocessing.context._concrete_contexts["own"] = Own()
            multiprocessing.set_start_method("own")
            Pid("pid", collection_rate=0.05).start()
            await_points({"pid": 2})
        """)

    def test_shared_values_need_the_key(self):
        """A client without the key reads and changes nothing; a false server deceives no
        collector."""
        import socket
        import threading
        from multiprocessing import Value

        from sonde import _shared
        value = Value("i", 5)
        server = _shared.Server(["n1"])
        (addresses, port, key), number = server.told(), server.add(value)
        self.assertEqual(server._listening.getsockname()[0], "127.0.0.1")
        for wrong in (b"", bytes(32), key[:-1]):
            self.assertRaises(ConnectionError, getattr, _shared.Shared((["127.0.0.1"], port, wrong), number), "value")
        for lines in (b'[0,"set attribute","value",7]\n' * 3, b'"x"\n"y"\n[0,"set attribute","value",7]\n', b"\n", b"x" * 1000 + b"\n"):
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(lines)
                client.shutdown(socket.SHUT_WR)
                with client.makefile("rb") as answers:
                    self.assertEqual(len(answers.read().splitlines()), 1)  # the nonce
        good = _shared.Shared((["127.0.0.1"], port, key), number)
        self.assertEqual(good.value, 5)
        self.assertRaises(AttributeError, good._ask, "attribute", "__class__")
        good.get_lock().acquire()
        good._line.close()
        good.__dict__["_line"] = None
        self.assertTrue(good.get_lock().acquire(True, 60))  # the broken connection has released it
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(_shared._UNPROVED_MAX)]
        until(lambda: not server._unproved._value, "as many clients as may be silent")
        with socket.create_connection(("127.0.0.1", port)) as one_more:
            self.assertEqual(one_more.recv(1), b"")  # without a thread of its own
        for client in silent:
            client.close()
        until(lambda: server._unproved._value == _shared._UNPROVED_MAX, "all of them gone")
        self.assertEqual(good.value, 5)
        with socket.create_server(("127.0.0.1", 0)) as other:
            def deceive():
                connection = other.accept()[0]
                connection.sendall(b'"nonce"\n"proof"\n[true, 99]\n')
                connection.recv(1000)
                connection.close()
            threading.Thread(target=deceive).start()
            self.assertRaises(ConnectionError, getattr, _shared.Shared((["127.0.0.1"], other.getsockname()[1], key), number), "value")

    def test_level_0(self):
        self.assertEqual(self.collect("g = Pid()\ng.start()\ng.stop()\nprint('well')", level=0), "well\n")

    def test_raises_hangs_and_crashes(self):
        """Each failure is reported, and the collector is started again; other collectors are not
        affected."""
        self.collect("""
            class_of = dict(raises=Raises, hangs=Hangs, crashes=Crashes, once=Once, well=Pid)
            for name, group in class_of.items(): group(name, collection_rate=0.1, collector_args=name).start()
            await_points({"well": 20, "raises": 4, "once": 30})
            await_points({"sonde_script_exit_code": 2}, script="crashes")
            await_points({"sonde_script_exit_code": 1}, script="hangs")
        """, classes=inspect.cleandoc("""
            class Raises(sonde.CollectorGroup):
                count = 0
                @classmethod
                def collector_test(cls, collector_args):
                    Raises.count += 1
                    if Raises.count in (2, 3): raise ValueError("number", Raises.count)
                    return {5: None, 7: float("nan")}.get(Raises.count, Raises.count)
            class Hangs(sonde.CollectorGroup):
                collection_timeout = 0.3
                @staticmethod
                def collector_test(collector_args): time.sleep(1000)
            class Once(sonde.CollectorGroup):
                @staticmethod
                def collector_test(collector_args):
                    if not os.path.exists("once"):
                        open("once", "w").close()
                        os._exit(7)
                    return 1
            class Crashes(sonde.CollectorGroup):
                @staticmethod
                def collector_test(collector_args): os.kill(os.getpid(), signal.SIGSEGV)
        """))
        self.assertEqual(self.values("raises")[:4], [1, 4, 6, 8])
        self.assertEqual(self.said.count("ValueError"), 1, self.said)
        self.assertIn("collector raises: ValueError: ('number', 2)", self.said)
        self.assertEqual(self.said.count("collector crashes: ended by signal 11"), 1, self.said)
        self.assertEqual(self.said.count("collector hangs: timed out"), 1, self.said)
        self.assertEqual(set(self.values("sonde_script_exit_code", script="crashes")), {128 + signal.SIGSEGV})
        self.assertEqual(set(self.values("sonde_script_exit_code", script="hangs")), {124})
        said = self.annotations()
        self.assertIn("collector raises: ValueError: ('number', 2)", said)
        self.assertIn("collector raises works again", said)
        self.assertTrue(any(s.startswith("collector crashes: ended by signal 11") for s in said), said)
        self.assertNotIn("collector crashes works again", said)
        self.assertEqual([s for s in said if s.startswith("collector once")], ["collector once: exit code 7", "collector once works again"])
        self.nothing_left()

    def test_status_tells_of_what_fails(self):
        self.write(HEAD + inspect.cleandoc("""
            class Raises(sonde.CollectorGroup):
                @staticmethod
                def collector_test(collector_args): raise ValueError("no such sensor")
            if __name__ == "__main__":
                Raises("raises", collection_rate=0.1).start()
                signal.pause()
        """))
        process = self.start("run", "-q", "-l", "1", "--", sys.executable, self.program)
        self.job()
        status = until(lambda: next((j for j in json.loads(self.sonde("status", "--json").stdout) if j.get("failing")), None), "a collector that fails")
        failing = status["failing"][0]
        self.assertEqual((failing["script"], failing["text"]), ("raises", "collector raises: ValueError: no such sensor"))
        self.assertRegex(self.sonde("status").stdout, r"collector raises: ValueError: no such sensor \(on \S+, since 20")
        process.terminate()
        self.ends(process)

    def test_under_a_service_that_the_program_has_started(self):
        self.write(HEAD + inspect.cleandoc("""
            if __name__ == "__main__":
                telemetry = sonde.Telemetry()
                telemetry.start(1)
                group = Pid("pid", collection_rate=0.05)
                group.start()
                await_points({"pid": 2})
                telemetry.finalize()
                telemetry.start()
                group.start()
                await_points({"pid": 2})
        """))
        result = subprocess.run([sys.executable, str(self.program)], env=self.env, capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        until(lambda: not self.alive(), "all ended")
        self.assertEqual([self.names(recording)["pid"] >= 2 for recording in self.recordings()], [True, True])
        self.nothing_left()

    def test_one_for_each_gpu(self):
        gpus = self.root / "gpus.txt"
        gpus.write_text("gpus 2\n")
        self.env |= {"SONDE_NVML": LIBRARY, "SONDE_FAKE_NVML": str(gpus), "CUDA_VISIBLE_DEVICES": "7"}
        self.collect("""
            Gpu("visible", per_gpu=True, collection_rate=0.1).start()
            for gpu in "01": await_points({"visible": 3}, gpu=gpu)
        """, classes=inspect.cleandoc("""
            class Gpu(sonde.CollectorGroup):
                @staticmethod
                def collector_test(collector_args):
                    assert os.environ["CUDA_VISIBLE_DEVICES"].startswith("GPU-"), os.environ["CUDA_VISIBLE_DEVICES"]
                    return sum(map(ord, os.environ["CUDA_VISIBLE_DEVICES"])) + 1e6 * os.getpid()
        """))
        values = {dict(tags)["gpu"]: set(v) for tags, v in self.series("visible").items()}
        self.assertEqual({gpu: len(v) for gpu, v in values.items()}, {"0": 1, "1": 1})
        self.assertNotEqual(values["0"], values["1"])
        self.nothing_left()

    def test_no_gpu(self):
        self.env["SONDE_NVML"] = "/nowhere"
        self.collect("Pid('none', per_gpu=True).start()\nPid('well', collection_rate=0.1).start()\nawait_points({'well': 2})")
        self.assertIn("there is none here", self.said)

    STARTS = inspect.cleandoc("""
        import subprocess
        class Starts(sonde.CollectorGroup):
            @staticmethod
            def collector_test(collector_args):
                return subprocess.Popen(["sleep", "1000"]).pid
    """) + "\n"

    def test_agent_that_is_started_again_knows_them(self):
        """No processes of the dead agent's collectors are left."""
        self.collect("""
            Pid("pid", collection_rate=0.05).start()
            Starts("starts", collection_rate=1000).start()
            await_points({"pid": 2, "starts": 1})
            agent = next(int(p) for p in os.listdir("/proc") if p.isdigit() and sonde_agent(p))
            os.kill(agent, signal.SIGKILL)
            await_points({"pid": 2, "starts": 2}, distinct=True)
        """, classes=self.STARTS + inspect.cleandoc("""
            def sonde_agent(pid):
                try: command = open(f"/proc/{pid}/cmdline").read()
                except OSError: return False
                return "agent\\0" in command and os.environ["SONDE_RUN_DIR"] in command
        """))
        self.assertEqual(len(set(self.values("pid"))), 2)
        self.nothing_left()

    def begin(self, text, classes=""):
        """A program that continues after it has reported that it is ready."""
        body = "\n".join("    " + line for line in inspect.cleandoc(text).splitlines())
        self.write(HEAD + "\n" + inspect.cleandoc(classes) + "\nif __name__ == '__main__':\n" + body + "\n    print('ready', flush=True)\n    signal.pause()\n")
        process = self.start("run", "-q", "-l", "1", "--", sys.executable, self.program)
        self.assertEqual(process.stdout.readline(), "ready\n", process)
        return process

    def test_nothing_is_left_of_a_launcher_that_is_killed(self):
        """Not even processes that a function has started itself."""
        process = self.begin("""
            Starts("starts", collection_rate=1000).start()
            await_points({"starts": 1})
        """, self.STARTS)
        process.kill()
        until(lambda: not self.alive(), "all ended")

    def test_nothing_is_left_when_all_are_killed(self):
        self.begin("Pid('pid', collection_rate=0.05).start()\nawait_points({'pid': 2})")
        ours = [pid for pid in self.alive() if os.path.samefile(f"/proc/{pid}/exe", os.environ["SONDE"])]
        self.assertEqual(len(ours), 3)
        for pid in ours:
            stop_process(pid)  # so that none notices another's end
        for pid in ours:
            os.kill(pid, signal.SIGKILL)
        until(lambda: not self.alive(), "all ended")


class Asking(Program):
    """Sends direct HTTP requests."""

    def setUp(self):
        super().setUp()
        self.process = self.start("run", "-q", "-l", "1", "--", "sleep", "1000")
        self.url = self.job()["url"]
        self.token = next(self.tmp.glob("sonde-*/*/token")).read_text().strip()

    def ask(self, body, token="right", cookie=None, method=None):
        headers = {"Authorization": f"Bearer {self.token}"} if token == "right" else {}
        if cookie:
            headers["Cookie"] = self.session()
        request = urllib.request.Request(f"{self.url}/sonde/v1/collectors", json.dumps(body).encode(), headers, method=method)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def session(self):
        """Returns the session of a browser that opens the address."""
        connection = http.client.HTTPConnection(self.url.split("//")[1], timeout=PATIENCE_S)
        connection.request("GET", f"/?token={self.token}", headers={"Accept": "text/html"})
        cookie = connection.getresponse().headers["Set-Cookie"].split(";")[0]
        connection.close()
        return cookie

    def test_any_command(self):
        self.assertEqual(self.ask({"name": "mine", "command": "read word; echo said 1 word=$word; sleep 1000", "input": "YWJj"}),
                         (200, {"asked": "collector", "name": "mine"}))
        self.assertEqual(self.ask({"name": "each", "command": "echo each $$", "rate": "0.05"})[0], 200)
        until(lambda: self.names().get("said") == 1 and self.names().get("each", 0) > 3, "points")
        # replaces the first one
        self.assertEqual(self.ask({"name": "mine", "command": "echo other 1; sleep 1000"})[0], 200)
        until(lambda: self.names().get("other") == 1 and self.sleeps() == 2, "a point of the new one, and the old one's end")
        self.assertEqual(self.ask({"name": "mine"})[0], 200)
        self.assertEqual(self.ask({"name": "unknown"})[0], 200)
        until(lambda: self.sleeps() == 1, "it ended")

    def sleeps(self):
        """The processes `sleep` of the job, and of collectors."""
        return list(self.alive().values()).count("sleep 1000")

    def test_who_may(self):
        for status, more in ((401, {"token": None}), (403, {"token": None, "cookie": True})):
            self.assertEqual(self.ask({"name": "a", "command": "touch it"}, **more)[0], status)
        self.assertEqual(self.ask({}, method="GET")[0], 405)
        self.assertFalse((self.root / "it").exists())

    def test_what_is_wrong(self):
        for body in ({}, {"name": "a b", "command": "x"}, {"name": "n" * 64, "command": "x"}, {"name": "a\nb"}, {"name": "a", "command": "x\ncollector b y"},
                     {"name": "a", "command": "x", "input": "two words"}, {"name": "a", "command": "x", "rate": "0"}, {"name": "a", "command": "x", "timeout": "nan"}, []):
            self.assertEqual(self.ask(body)[0], 400, body)
        for body in ({"name": "a", "command": "x" * 8193}, {"name": "a", "command": "x", "input": "a" * (128 * 1024 + 1)}):
            self.assertEqual(self.ask(body)[0], 413)

    def test_as_large_as_allowed_and_too_many(self):
        """The largest possible group reaches the agent; above sixteen groups, the launcher reports
        that the others are left out."""
        word = "a" * (128 * 1024)
        command = "echo size $(wc -c) " + "k=v " * 4 + "#" * 8000
        self.assertEqual(self.ask({"name": "large", "command": command[:8192].replace("k=v k=v k=v k=v ", ""), "input": word, "rate": "1000"})[0], 200)
        until(lambda: self.names().get("size"), "a point")
        for i in range(16):
            self.assertEqual(self.ask({"name": f"n{i}", "command": "sleep 1000"})[0], 200)
        self.process.terminate()
        code, out, err = self.ends(self.process)
        self.assertIn("collector n15 is left out: there are 16", err)
        self.assertNotIn("n14", err)


if __name__ == "__main__":
    main()
