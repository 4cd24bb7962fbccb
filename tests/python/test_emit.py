"""The package `sonde` in programs: their parameters, metrics, levels and spans appear in the
recording."""

import json
import os
import pathlib
import subprocess
import sys
import time
from program import PACKAGE, Program, main

# Prints the bytes of the shared memory of this process, by the number of points it has emitted.
SHARED = """
import os, sonde
metric = sonde.gauge("g")
links = [f"/proc/self/fd/{fd}" for fd in range(256)]
pages = lambda: sum(os.stat(link).st_blocks * 512 for link in links if os.path.lexists(link) and "memfd:sonde" in os.readlink(link)) // os.sysconf("SC_PAGESIZE")
for count in (10, 20000):
    for _ in range(count): metric(1)
    print(pages())
"""


class Memory(Program):
    def test_it_grows_with_use(self):
        """A program that emits little has little shared memory, although its ring is 1 MiB."""
        few, many = map(int, self.run_it(SHARED).split())
        self.assertTrue(5 < few <= 24, few)
        self.assertTrue(100 < many < 300, many)


class Parameters(Program):
    def config(self):
        (record,) = self.root.glob("recording-*")
        return json.loads((record / "run.json").read_text())["about"].get("config")

    def test_everything_that_counts_as_a_parameter(self):
        self.run_it("""
            import argparse, collections, dataclasses, decimal, pathlib, sonde, warnings
            @dataclasses.dataclass
            class Model:
                layers: int = 12
                rate: float = 0.5
            class Scalar:
                def item(self): return 2.5
            sonde.config({"lr": 1e-5, "text": "a b\\nc=d", "on": True, "off": False, "none": None, "model": Model(), "deep": {"a": {"b": 1}, 2: "two"}, "path": pathlib.Path("/x"),
                          "list": [1, "a", (True, None)], "scalar": Scalar(), "nan": float("nan"), "large": 10**30, "empty": "", "a key": "wide"}, seed=1)
            sonde.config(argparse.Namespace(seed=2, ordered=collections.OrderedDict(x=1)))
            sonde.config(); sonde.config({}); sonde.config(None)
        """)
        self.assertEqual(self.config(), {
            "lr": "1e-05", "text": "a b\nc=d", "on": "true", "off": "false", "none": "null", "model.layers": "12", "model.rate": "0.5", "deep.a.b": "1", "deep.2": "two", "path": "/x",
            "list": '[1,"a",[true,null]]', "scalar": "2.5", "nan": "nan", "large": str(10**30), "empty": "", "a\u3000key": "wide", "seed": "2", "ordered.x": "1"})

    def test_what_cannot_be_kept(self):
        """Each invalid parameter causes one warning with its name; the others are recorded, and the
        program continues."""
        done = self.run_it("""
            import sonde, sys, warnings
            class Bad:
                def item(self): raise OSError("the device is gone")
            deep = {}
            deep["deep"] = deep
            with warnings.catch_warnings(record=True) as all:
                warnings.simplefilter("always")
                sonde.config({"object": object(), "bad": Bad(), "long": "x" * 1025, "deep": deep, "k" * 129: 1, "": 1, "complex": 1j, "list": [object()], "good": 1})
            for one in all: print(one.category.__name__, one.filename == __file__, one.message)
            for wrong in (3, "text", [1]):
                try: sonde.config(wrong)
                except TypeError as e: print(e)
        """)
        lines = done.splitlines()
        names = ["object", "bad", "long", ".".join(["deep"] * 16), "k" * 129, "", "complex", "list"]
        self.assertEqual([line.split(" is left out")[0] for line in lines[:-3]], [f"RuntimeWarning True sonde: the parameter {name!r}" for name in names])
        self.assertIn("the device is gone", lines[1])
        self.assertEqual(lines[-3:], [f"sonde.config takes a mapping of names to values, not {kind}" for kind in ("int", "str", "list")])
        self.assertEqual(self.config(), {"good": "1"})

    def test_processes_that_are_killed(self):
        """The last value counts, from any process, even from one that is killed immediately."""
        self.run_it("""
            import os, signal, sonde
            sonde.config({f"k{i}": i for i in range(500)})
            pid = os.fork()
            if pid == 0:
                sonde.config({"k0": "child", "k1": "child"})
                os.kill(os.getpid(), signal.SIGKILL)
            os.waitpid(pid, 0)
            sonde.config(k1="parent")
        """)
        self.assertEqual(self.config(), {f"k{i}": str(i) for i in range(500)} | {"k0": "child", "k1": "parent"})


class Metrics(Program):
    def test_nobody_takes_it(self):
        """One warning with advice: at the import if the folder does not exist, at the end if no
        agent came."""
        code = "import sonde; m = sonde.gauge('m'); m(1); m(2); print(sonde.dropped())"
        for folder, where in ((pathlib.Path("/nowhere/job"), "the folder /nowhere/job of the job is not here"), (self.root, "2 values are lost: nothing is recorded until")):
            env = {**os.environ, "PYTHONPATH": PACKAGE, "SONDE_LEVEL": "2", "SONDE_SOCKET": str(folder / "agent.sock")}
            done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
            self.assertEqual(done.stdout, "2\n")
            self.assertEqual(done.stderr.count("RuntimeWarning"), 1, done.stderr)
            self.assertIn(where, done.stderr)
        done = subprocess.run([sys.executable, "-c", "import sonde; sonde.emit('m', 1)"], env={**os.environ, "PYTHONPATH": PACKAGE}, capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")

    def test_gauge(self):
        self.run_it("""
            import sonde
            loss = sonde.gauge("loss", unit="nats", help="what is left", tags={"phase": "train", "fold": 3})
            assert loss and loss.name == "loss" and loss.unit == "nats" and loss.tags == {"phase": "train", "fold": 3} and loss.kind == "gauge"
            loss(1.5); loss(2); loss(True); loss.emit(4); loss(5.0, time_ns=1_700_000_000_000_000_123)
            loss(value=6)
        """)
        self.assertEqual(self.values("loss", phase="train", fold="3"), [5, 1.5, 2, 1, 4, 6])
        self.assertEqual(self.times("loss")[0], 1_700_000_000_000_000_123)
        self.assertEqual((self.definition("loss")["unit"], self.definition("loss")["help"]), ("nats", "what is left"))

    def test_every_way_to_call(self):
        """By position, by name, with a tuple and a dictionary, and through the type, calls do the
        same."""
        self.run_it("""
            import functools, sonde
            m, c = sonde.gauge("m"), sonde.counter("c")
            g = sonde.group([sonde.gauge("a"), sonde.gauge("b")])
            T = 1_700_000_000_000_000_000
            m(1, T); m(2, time_ns=T + 1); m(value=3, time_ns=T + 2); m(*[4], **{"time_ns": T + 3}); type(m).__call__(m, 5, time_ns=T + 4); type(m).__call__(m, *(6, T + 5))
            functools.partial(m, time_ns=T + 6)(7); m.emit(8, T + 7); m.emit(time_ns=T + 8, value=9); list(map(m, [10], [T + 9])); m(11, None); m(12, **{})
            c(); c(2); c(*[3], **{}); type(c).__call__(c, 4); c.add(); c.add(5)
            g(1, 2, time_ns=T); g(*[3, 4], **{"time_ns": T + 1}); type(g).__call__(g, 5, 6, time_ns=T + 2); type(g).__call__(g, 7, 8)
            for wrong in (lambda: m(), lambda: m(1, 2, 3), lambda: m(1, value=2), lambda: m(1, when=2), lambda: m(time_ns=1), lambda: m.emit(), lambda: m.set(), lambda: m(1, T, time_ns=T),
                          lambda: c(1, 2), lambda: c(amount=1), lambda: c.add(1, 2), lambda: g(), lambda: g(1), lambda: g(1, 2, 3), lambda: g(1, 2, when=3),
                          lambda: g(1, 2, time_ns=3, when=4), lambda: sonde.emit(), lambda: sonde.emit("x", 1, 2), lambda: sonde.emit(name="x", value=1)):
                try: wrong()
                except TypeError: pass
                else: raise SystemExit("taken")
            sonde.emit("tags", 1, name="n", value="v")
        """)
        self.assertEqual(self.values("m"), list(range(1, 13)))
        self.assertEqual(self.values("c")[-1], 16)
        self.assertEqual((self.values("a"), self.values("b")), ([1, 3, 5, 7], [2, 4, 6, 8]))
        self.assertEqual(self.values("tags", name="n", value="v"), [1])

    def test_arguments_are_counted(self):
        """No call leaks or loses a reference, for handles that are on and off."""
        for level in (1, 0):
            self.run_it("""
                import sonde, sys
                class Number:
                    def __float__(self): return 1.0
                telemetry = sonde.Telemetry()
                on, off, steps, group = sonde.gauge("on"), sonde.gauge("off", level=4), sonde.counter("steps"), sonde.group([sonde.gauge("a")])
                value, tag, time_ns, name = Number(), "a tag" + str(sys.argv), 1_700_000_000_123_456_789, "name" + str(sys.argv)
                mapping = {"k": tag}
                def calls():
                    for m in (on, off):
                        m(value); m(value, time_ns); m(value=value, time_ns=time_ns); m.emit(value, time_ns=time_ns); type(m).__call__(m, value, time_ns=time_ns); m.set(value)
                        try: m(value, value, value)
                        except TypeError: pass
                    steps(value); steps.add(value); group(value, time_ns=time_ns); type(group).__call__(group, value, time_ns=time_ns)
                    sonde.emit("x", value); sonde.emit("x", value, k=tag); sonde.emit("x", value, **mapping)
                    for wanted in (1, 4): telemetry.add_data("y", value, telemetry_level=wanted, tags=mapping)
                def counts(): return [sys.getrefcount(o) for o in (value, tag, time_ns, mapping, on, off, steps, group)]
                for _ in range(3): calls()
                before = counts()
                for _ in range(50): calls()
                assert counts() == before, (before, counts())
            """, level=level)

    def test_counter_adds_up(self):
        self.run_it("""
            import sonde
            steps = sonde.counter("steps_total", "steps")
            for _ in range(10): steps()
            steps(5); steps.add(0.5); steps.add()
        """)
        self.assertEqual(self.values("steps_total")[-1], 16.5)

    def test_cell_keeps_what_was_set_last(self):
        self.run_it("import sonde\nm = sonde.gauge('queue')\nfor i in range(1000): m.set(i)")
        self.assertEqual(self.values("queue")[-1], 999)

    def test_by_name(self):
        self.run_it("""
            import sonde
            for i in range(3):
                sonde.emit("plain", i)
                sonde.emit("tagged", i, rank=i % 2, phase="a")
                sonde.emit("tagged", 10 + i, phase="a", rank=i % 2)   # another order, the same series
                sonde.emit("unhashable", i, rank=[i % 1])
        """)
        self.assertEqual(self.values("plain"), [0, 1, 2])
        self.assertEqual(self.values("tagged", rank="0", phase="a"), [0, 10, 2, 12])
        self.assertEqual(self.values("tagged", rank="1", phase="a"), [1, 11])
        self.assertEqual(self.values("unhashable", rank="[0]"), [0, 1, 2])

    def test_names_beyond_what_is_remembered(self):
        """More than the package caches, and more than a ring holds: definitions that did not fit
        while the agent was behind are sent again."""
        self.run_it("""
            import sonde, time
            def say(*point, **tags):
                before = sonde.dropped()
                sonde.emit(*point, **tags)
                while sonde.dropped() > before:
                    time.sleep(0.001)
                    before = sonde.dropped()
                    sonde.emit(*point, **tags)
            for i in range((1 << 16) + 10): say("n", i, k=i % 40000)
            say("n", 6, k=[1])
            say("n", 7, k=1)
        """)
        self.assertEqual(self.values("n", k="1"), [1, 40001, 7])
        self.assertEqual((self.values("n", k="39999"), self.values("n", k="[1]")), ([39999], [6]))

    def test_group_has_one_time(self):
        self.run_it("""
            import sonde
            a, b, c = (sonde.gauge(n) for n in "abc")
            both = sonde.group([a, b, c])
            both(1, 2, None); both(3, None, None); both(None, None, None); both(5, 6, "no", time_ns=1_700_000_000_000_000_000)
            for wrong in (lambda: both(1), lambda: both(1, 2, 3, t=4), lambda: sonde.group([1]), lambda: sonde.group([a] * 5000)):
                try: wrong()
                except (TypeError, ValueError): pass
                else: raise SystemExit("taken")
        """)
        self.assertEqual((self.values("a"), self.values("b"), self.series("c")), ([5, 1, 3], [6, 2], {}))
        self.assertEqual(self.times("a")[:2], self.times("b"))

    def test_log(self):
        self.run_it("""
            import sonde
            for i in range(3):
                sonde.log({"loss": 1 / (i + 1), "accuracy": i}, step=100 + i, phase="train")
            sonde.log({"loss": 9}, phase="test")
            sonde.log({"loss": 8}, phase=["odd"])
        """)
        self.assertEqual(self.values("loss", phase="train"), [1, 0.5, 1 / 3])
        self.assertEqual(self.values("step", phase="train"), [100, 101, 102])
        self.assertEqual(self.times("step"), self.times("accuracy"))
        self.assertEqual((self.values("loss", phase="test"), self.values("loss", phase="['odd']")), ([9], [8]))

    def test_what_float_takes_is_a_number(self):
        self.run_it("""
            import decimal, fractions, sonde
            class Tensor:
                def __float__(self): return 4.25
            m = sonde.gauge("m")
            for v in (decimal.Decimal("0.5"), fractions.Fraction(1, 4), Tensor(), float("inf"), -1.0): m(v)
        """)
        self.assertEqual(self.values("m"), [0.5, 0.25, 4.25, float("inf"), -1.0])

    def test_no_number_warns_once_and_goes_on(self):
        self.run_it("""
            import sonde
            m = sonde.gauge("m")
            for v in (1, "x", None, "y", 2):
                m(v)
            sonde.emit("n", object()); sonde.emit("n", 3)
        """)
        self.assertEqual((self.values("m"), self.values("n")), ([1, 2], [3]))
        self.assertEqual(self.said.count("RuntimeWarning: sonde: m is given <class 'str'>"), 1)
        self.assertIn("n is given <class 'object'>", self.said)

    def test_mistakes_in_the_program_are_exceptions(self):
        self.run_it("""
            import sonde
            for wrong in (lambda: sonde.gauge(), lambda: sonde.gauge(3), lambda: sonde.gauge("x", level=5), lambda: sonde.gauge("x", tags=[1]),
                          lambda: sonde.emit("x"), lambda: sonde.emit(3, 4), lambda: sonde.Metric(), lambda: sonde.Group(), lambda: sonde.gauge("x")(1, 2, 3),
                          lambda: sonde.gauge("x")(1, time_ns="now"), lambda: sonde.counter("c")(1, a=2), lambda: sonde.gauge("x", tags=dict.fromkeys(map(str, range(99)), 1))):
                try: wrong()
                except (TypeError, ValueError): pass
                else: raise SystemExit("taken")
            class Stop:
                def __float__(self): raise KeyboardInterrupt
            try: sonde.emit("x", Stop())
            except KeyboardInterrupt: pass
            else: raise SystemExit("swallowed")
        """)

    def test_refused_by_the_library_is_counted(self):
        self.run_it("""
            import sonde
            many = {f"k{i}": i for i in range(40)}     # of 16
            assert not sonde.gauge("m", tags=many); sonde.emit("m", 1, **many); sonde.gauge("m", tags=many)(1)
            sonde.annotate("x" * 5000)
        """)
        self.assertGreaterEqual(self.values("sonde_dropped_total", cause="limit")[-1], 3)
        self.assertEqual([len(e.text) for e in self.recording.last_events()], [4096])

    def test_any_text(self):
        self.run_it("""
            import os, sonde
            sonde.emit("größe", 1, ort="Zürich", path=os.fsdecode(b"/tmp/\\xff"))
        """)
        self.assertEqual(self.values("größe", ort="Zürich"), [1])


class Levels(Program):
    TEXT = """
        import sonde
        one, three = sonde.gauge("one"), sonde.gauge("three", level=3)
        one(1); three(3); sonde.emit("named", 1); sonde.log({"logged": 1}); sonde.annotate("note")
        with sonde.span("span"): pass
        print(sonde.level(), bool(one), bool(three))
    """

    def test_0(self):
        self.assertEqual(self.run_it(self.TEXT, level=0), "0 False False\n")
        self.assertIsNone(self.recording)

    def test_1(self):
        self.assertEqual(self.run_it(self.TEXT, level=1), "1 True False\n")
        self.assertEqual((self.values("one"), self.values("named"), self.values("logged"), self.series("three")), ([1], [1], [1], {}))
        self.assertEqual([e.text for e in self.recording.last_events()], ["note", "span"])

    def test_3(self):
        self.assertEqual(self.run_it(self.TEXT, level=3), "3 True True\n")
        self.assertEqual(self.values("three"), [3])

    def test_level_0_does_not_touch_values(self):
        self.run_it("""
            import sonde
            class Touchy:
                def __float__(self): raise SystemExit("touched")
            sonde.gauge("m")(Touchy()); sonde.emit("m", Touchy()); sonde.log({"m": Touchy()}); sonde.counter("c")(Touchy())
        """, level=0)

    def test_without_a_job(self):
        self.write(self.TEXT)
        result = subprocess.run([sys.executable, str(self.program)], env=self.env, capture_output=True, text=True, check=True)
        self.assertEqual((result.stdout, result.stderr), ("0 False False\n", ""))


class Spans(Program):
    def test_nested_with_tags_and_errors(self):
        self.run_it("""
            import sonde
            with sonde.span("epoch", number=3):
                with sonde.span("step"): sonde.annotate("half", file="ck")
                try:
                    with sonde.span("bad", k=1): raise KeyError
                except KeyError: pass
            @sonde.span("work", unit="x")
            def work(n):
                "doc"
                return work(n - 1) if n else 7
            assert work(2) == 7 and work.__name__ == "work" and work.__doc__ == "doc"
        """)
        [epoch], [step], [bad] = self.spans("epoch"), self.spans("step"), self.spans("bad")
        self.assertEqual((epoch.parent, step.parent, bad.parent), (0, epoch.id, epoch.id))
        self.assertEqual((dict(epoch.labels)["number"], dict(bad.labels)["error"], dict(bad.labels)["k"]), ("3", "KeyError", "1"))
        self.assertNotIn("error", dict(epoch.labels))
        self.assertTrue(epoch.start <= step.start <= step.end <= bad.start <= bad.end <= epoch.end)
        work = sorted(self.spans("work"), key=lambda e: e.start)
        self.assertEqual([e.parent for e in work], [0, work[0].id, work[1].id])
        self.assertTrue(all(dict(e.labels)["unit"] == "x" for e in work))

    def test_tags_of_every_kind(self):
        """As str() writes them, at the end of a span and at its begin."""
        self.run_it("""
            import os, sonde
            class Text(str): pass
            class Odd(int):
                def __str__(self): return "odd"
            few = dict(a=0, b=-1, c=2**63 - 1, d=-2**63)
            more = dict(a=2**63, b=True, c=Text("t"), d=Odd(3), e=1.5)
            for kind in (few, more, {"a b": 7}, {"a": "x\\udcff"}):
                with sonde.span("ended", **kind): pass
            again = sonde.span("again", n=2**31)
            with again:
                with again: pass
            sonde.span("open", **few).__enter__()
            sonde.emit("x", 1)
            os._exit(0)
        """)
        few = {"a": "0", "b": "-1", "c": "9223372036854775807", "d": "-9223372036854775808"}
        more = {"a": "9223372036854775808", "b": "True", "c": "t", "d": "odd", "e": "1.5"}
        ended = [{key: value for key, value in e.labels if key != "host"} for e in sorted(self.spans("ended"), key=lambda e: e.start)]
        self.assertEqual(ended[:3], [few, more, {"a\u3000b": "7"}])
        self.assertEqual(len(ended), 4)
        self.assertEqual(few.items() - dict(self.spans("open")[0].labels).items(), set())
        outer, inner = sorted(self.spans("again"), key=lambda e: e.start)
        self.assertEqual((inner.parent, dict(inner.labels)["n"], dict(outer.labels)["n"]), (outer.id, "2147483648", "2147483648"))

    def test_its_methods_are_objects_as_any_other(self):
        """A program may keep them, compare them and call them without a `with` statement."""
        self.run_it("""
            import contextlib, gc, sonde, sys, tracemalloc
            def refused(call, *args, **named):
                try: call(*args, **named)
                except TypeError as error: return str(error)
                raise AssertionError(call)
            s = sonde.span("kept", k=1)
            held = sys.getrefcount(s)
            enter, leave = s.__enter__, s.__exit__
            assert enter is s.__enter__ and leave is not enter and callable(leave)
            assert sys.getrefcount(s) == held + 2
            del s
            assert enter().__exit__ is leave
            assert "takes no arguments (1 given)" in refused(enter, 1)
            assert "three arguments (1 given)" in refused(leave, None)
            assert "keyword" in refused(leave, None, None, trace=None) and "keyword" in refused(enter, x=1)
            assert leave(*(None, None, None)) is None and leave(None, None, None) is None
            Span = type(sonde.span("x"))
            assert "Begins" in Span.__enter__.__doc__ and "Ends" in Span.__exit__.__doc__
            assert "Span" in refused(Span.__dict__["__enter__"].__get__, 7) and refused(Span.__enter__, 7)
            assert refused(type(enter)) and refused(type(Span.__dict__["__enter__"])) and refused(Span)
            with contextlib.ExitStack() as stack:
                stack.enter_context(sonde.span("stack"))
                Span.__enter__(sonde.span("by type")).__exit__(ValueError, None, None)
            def work():
                for _ in range(1000):
                    with sonde.span("many"): sonde.span("other").__exit__
                gc.collect()
            work()
            tracemalloc.start()
            held, types = tracemalloc.get_traced_memory()[0], [sys.getrefcount(t) for t in (Span, type(enter))]
            work()
            assert tracemalloc.get_traced_memory()[0] - held < 1000
            assert [sys.getrefcount(t) for t in (Span, type(enter))] == types
        """)
        [kept], [stack], [by_type] = self.spans("kept"), self.spans("stack"), self.spans("by type")
        self.assertEqual((dict(kept.labels)["k"], kept.parent, by_type.parent), ("1", 0, stack.id))
        self.assertEqual(dict(by_type.labels)["error"], "ValueError")
        self.assertEqual(len(self.spans("many")), 2000)

    def test_one_that_is_open_ends_with_its_process(self):
        self.run_it("import os, sonde\nsonde.span('open').__enter__()\nsonde.emit('x', 1)\nos._exit(0)")
        [span] = self.spans("open")
        self.assertEqual(dict(span.labels)["unfinished"], "1")
        self.assertTrue(span.start < span.end <= time.time_ns())

    def test_one_that_is_over(self):
        self.run_it("""
            from sonde._emit import open_span, span_at
            span_at("over", 1_700_000_000_123_456_789, 1_700_000_001_000_000_000, {"job": 3, "dag": 0})
            span_at("bare", 5, 6, None)
            whole = open_span("whole", None, None, 1_000)
            open_span("part", {"k": 1}, whole, 2_000).close({"more": 2}, 3_000)
            whole.close(None, 4_000)
            try: open_span("bad", None, None, "now")
            except TypeError: pass
            try: span_at("bad", 1, 2, {"k": type("Bad", (), {"__str__": lambda self: str(1 // 0)})()})
            except ZeroDivisionError: pass
        """)
        [over], [bare] = self.spans("over"), self.spans("bare")
        self.assertEqual((over.start, over.end, over.parent), (1_700_000_000_123_456_789, 1_700_000_001_000_000_000, 0))
        self.assertEqual(dict(over.labels).items() & {("job", "3"), ("dag", "0")}, {("job", "3"), ("dag", "0")})
        self.assertEqual((bare.start, bare.end, self.spans("bad")), (5, 6, []))
        [whole], [part] = self.spans("whole"), self.spans("part")
        self.assertEqual((whole.start, whole.end, part.start, part.end, part.parent), (1_000, 4_000, 2_000, 3_000, whole.id))
        self.assertEqual((dict(part.labels)["k"], dict(part.labels)["more"]), ("1", "2"))

    def test_tasks_do_not_mix(self):
        self.run_it("""
            import asyncio, sonde
            order = []
            @sonde.span("task")
            async def task(i, mine, others):
                with sonde.span("part", i=i):
                    mine.set()
                    await others.wait()
            async def main():
                a, b = asyncio.Event(), asyncio.Event()
                with sonde.span("all"):
                    await asyncio.gather(task(0, a, b), task(1, b, a))
            asyncio.run(main())
        """)
        [whole], tasks, parts = self.spans("all"), self.spans("task"), self.spans("part")
        self.assertEqual([e.parent for e in tasks], [whole.id] * 2)
        self.assertEqual(sorted(e.parent for e in parts), sorted(e.id for e in tasks))
        # they overlap, because each waited for the other
        self.assertTrue(max(p.start for p in parts) <= min(p.end for p in parts))

    def test_generators_interleave(self):
        self.run_it("""
            import sonde
            @sonde.span("generator")
            def numbers(n):
                for i in range(n): yield i
                return "end"
            assert list(zip(numbers(3), numbers(3))) == [(0, 0), (1, 1), (2, 2)]
            g = numbers(5); next(g); g.close()
            with sonde.span("after"): pass
        """)
        generators = self.spans("generator")
        self.assertEqual(len(generators), 3)
        self.assertTrue(all(e.end < 2**63 - 1 for e in generators))
        self.assertNotIn(self.spans("after")[0].parent, {e.id for e in generators})

    def test_threads_begin_at_the_top(self):
        self.run_it("""
            import sonde, threading
            def work():
                with sonde.span("thread"): pass
            with sonde.span("main"):
                t = threading.Thread(target=work); t.start(); t.join()
        """)
        self.assertEqual(self.spans("thread")[0].parent, 0)


if __name__ == "__main__":
    main()
