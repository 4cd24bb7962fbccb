"""The changes of tasks that `sonde.dask` receives, without a cluster: spans with their texts and
ends on a worker, graphs on a scheduler, and no growing memory."""

import gc
import sys
import unittest

from program import PACKAGE, Program, main

sys.path.insert(0, PACKAGE)
from sonde._dask import Graph, GraphKeys, TaskSpans  # noqa: E402
from sonde.dask import _jobs, _keys  # noqa: E402

TASKS = 1_000_000
AT_ONCE = 1000
KEPT_MAX = 1000  # memory blocks of any size: one per task would be a million

# Keys, and whether their texts are made without a call to text().
QUICK = [
    "inc-1", "inc-a57b3f2e8c", "_x.y-1.2-3", "a-" + "b" * 200, ("sum-3f", 0, 1), ("x", -5), ("it's", 7), (), ("one",), "('sum-3f', 0, 1)", "(", ("ä", 10**20),
]  # fmt: skip
ASKED = [
    "plain", "a, b-c", "-x", "x-", "1e-5", "nan", "None", ".a-b", "9-a", "ä-1", "a-b c", "it's-1", "", "a-" + "b" * 300, "(" + "x" * 300, ("x" * 300, 1),
    "a-\0b", "a-\udcff", 5, -1.5, b"raw", None, True, (1.5, "x"), ("a", ("b", 1)), ("a", True, None),
]  # fmt: skip

KEYS = f"""
from sonde._dask import TaskSpans
from sonde.dask._keys import write
QUICK, ASKED = {QUICK!r}, {ASKED!r}
"""


class Spans(Program):
    def test_texts(self):
        said = self.run_it(f"""{KEYS}
asked = []
def text(key):
    asked.append(key)
    return write([key])
tasks = TaskSpans("3", "c", text)
for key in QUICK + ASKED:
    tasks(key, "ready", "executing", stimulus_id="x")
assert len(tasks) == len(QUICK + ASKED), len(tasks)
print(asked == ASKED, [key for key in asked if key in QUICK], [key for key in ASKED if key not in asked])
""")
        self.assertEqual(said, "True [] []\n")
        wanted = sorted(_keys.write([key]).encode(errors="surrogateescape") for key in QUICK + ASKED)
        self.assertEqual(sorted(dict(e.labels)["key"].encode(errors="surrogateescape") for e in self.spans("dask_task")), wanted)
        self.assertEqual({dict(e.labels)["worker"] for e in self.spans("dask_task")}, {"3"})

    def test_ends(self):
        """A span lasts from the first state in which a task executes to the first in which it does
        not, also for a cancelled task."""
        self.run_it("""
            from sonde._dask import TaskSpans
            tasks = TaskSpans("0", "c", str)
            for key, *states in (
                ("a-good", "waiting", "ready", "executing", "memory", "released", "forgotten"),
                ("a-failed", "ready", "executing", "error"),
                ("a-seceded", "executing", "long-running", "memory"),
                ("a-given.up", "executing", "cancelled", "released", "forgotten"),
                ("a-wanted.again", "executing", "cancelled", "resumed", "executing", "memory"),
                ("a-moved", "waiting", "fetch", "flight", "memory", "released"),
                ("a-twice", "executing", "memory", "released", "executing", "memory"),
                ("a-open", "executing", "cancelled"),
            ):
                before = "released"
                for state in states:
                    tasks(key, before, state)
                    before = state
            assert len(tasks) == 1, len(tasks)
        """)
        found = sorted((dict(e.labels)["key"], dict(e.labels).get("error"), dict(e.labels).get("unfinished")) for e in self.spans("dask_task"))
        good = [(f"a-{key}", None, None) for key in ("given.up", "good", "seceded", "twice", "twice", "wanted.again")]
        self.assertEqual(found, sorted([*good, ("a-failed", "1", None), ("a-open", None, "1")]))

    def test_bytes_of_results(self):
        """The span has Dask's size of a successful task's result, if Dask knows it."""
        self.run_it("""
            from sonde._dask import TaskSpans
            class State: pass
            known = {f"a-{name}": State() for name in ("none", "some", "huge", "odd", "failed", "silent")}
            for name, nbytes in (("none", None), ("some", 0), ("huge", 2**63 - 1), ("odd", 2**70), ("failed", 5)):
                known[f"a-{name}"].nbytes = nbytes
            tasks = TaskSpans("0", "c", str, known)
            for key in (*known, "a-unknown"):
                tasks(key, "ready", "executing")
                tasks(key, "executing", "error" if key == "a-failed" else "memory")
        """)
        found = {dict(e.labels)["key"]: dict(e.labels).get("nbytes") for e in self.spans("dask_task")}
        self.assertEqual(found, {"a-some": "0", "a-huge": str(2**63 - 1), **dict.fromkeys(("a-none", "a-odd", "a-failed", "a-silent", "a-unknown"))})

    def test_spans_within_a_task(self):
        self.run_it("""
            import sonde
            from sonde._dask import TaskSpans
            from sonde._emit import set_task_span
            tasks = TaskSpans("0", "c", str)
            tasks("a-1", "ready", "executing")
            for key in ("a-1", "a-2"):
                set_task_span(lambda: tasks.span(key))
                with sonde.span("outer", key=key), sonde.span("inner", key=key):
                    pass
            try: tasks.span("a-1").close(None)  # which is not its owner's
            except TypeError: pass
            else: raise SystemExit("it was closed")
            tasks("a-1", "executing", "memory")
        """)
        [task] = self.spans("dask_task")
        outer = {dict(e.labels)["key"]: e for e in self.spans("outer")}
        inner = {dict(e.labels)["key"]: e for e in self.spans("inner")}
        self.assertEqual({key: one.parent for key, one in outer.items()}, {"a-1": task.id, "a-2": 0})
        self.assertEqual({key: one.parent for key, one in inner.items()}, {key: one.id for key, one in outer.items()})
        self.assertNotIn("unfinished", dict(task.labels))

    def test_close_ends_what_executes(self):
        self.run_it("""
            from sonde._dask import TaskSpans
            tasks = TaskSpans("0", "c", str)
            for key in ("a-1", "a-2"): tasks(key, "ready", "executing")
            tasks.close(); tasks.close()
            assert len(tasks) == 0
            tasks("a-1", "executing", "memory")
        """)
        self.assertEqual(["unfinished" in dict(e.labels) for e in self.spans("dask_task")], [False, False])

    def test_a_text_that_fails_costs_that_task_alone(self):
        self.run_it("""
            from sonde._dask import TaskSpans
            def text(key):
                if key == 1: raise LookupError(key)
                return 7
            tasks = TaskSpans("0", "c", text)
            for key, wrong in ((1, LookupError), (2, TypeError), ([], TypeError)):
                try: tasks(key, "ready", "executing")
                except wrong: pass
                else: raise SystemExit(f"{key} was taken")
                if key: tasks(key, "executing", "memory")
            for few in ((), ("a-1",), ("a-1", "ready")):
                try: tasks(*few)
                except TypeError: pass
                else: raise SystemExit("too little was taken")
            tasks("a-1", "ready", "executing"); tasks("a-1", "executing", "memory")
        """)
        self.assertEqual([dict(e.labels)["key"] for e in self.spans("dask_task")], ["a-1"])


class Graphs(unittest.TestCase):
    def setUp(self):
        self.told = []
        self.keys = GraphKeys(lambda graph: self.told.append((graph.number, graph.running)), lambda graph: self.told.append((graph.number, "done", graph.failed)))

    def graph(self, number, *keys):
        graph = Graph(number, 0, number)
        self.keys.want(graph, keys, lambda key: None)
        self.keys.belong(graph, keys)
        return graph

    def move(self, key, *states):
        for before, now in zip(states, states[1:]):
            self.keys(key, before, now, stimulus_id="x")

    def test_several_wait_for_a_key(self):
        graphs = [self.graph(number, "k", "k") for number in (1, 2, 3)]
        self.assertEqual([graph.waiting for graph in graphs], [1, 1, 1])
        self.move("k", "waiting", "processing", "memory")
        self.assertEqual(self.told, [(1, 1), (1, 0), (1, "done", False), (2, "done", False), (3, "done", False)])
        self.assertEqual(len(self.keys), 1)
        self.move("k", "memory", "released", "forgotten")
        self.assertEqual((len(self.keys), len(self.told)), (0, 5))

    def test_what_is_there_is_not_waited_for(self):
        graph = Graph(1, 0, 0)
        self.keys.want(graph, ["a", "b", "c", "d", "e"], {"a": "memory", "b": "erred", "c": "forgotten", "d": "released"}.get)
        self.assertEqual((graph.waiting, len(self.keys)), (2, 2))

    def test_a_key_of_a_graph_that_waits_stays_there(self):
        self.graph(1, "a", "b")
        self.keys.belong(Graph(2, 0, 0), ["a"])
        self.move("a", "waiting", "processing", "memory")
        self.move("b", "waiting", "processing", "erred")
        self.keys.belong(Graph(3, 0, 0), ["a"])
        self.move("a", "released", "processing", "released")
        self.assertEqual(self.told, [(1, 1), (1, 0), (1, 1), (1, 0), (1, "done", True), (3, 1), (3, 0)])

    def test_forgotten_while_a_worker_has_it(self):
        graph = self.graph(1, "a")
        self.move("a", "waiting", "processing", "forgotten")
        self.assertEqual((self.told, len(self.keys), graph.running), ([(1, 1), (1, 0), (1, "done", True)], 0, 0))

    def test_clear(self):
        graphs = [self.graph(1, "a", "b"), self.graph(2, "b")]
        self.move("a", "waiting", "processing")
        self.assertEqual((self.keys.clear(), len(self.keys)), (set(graphs), 0))
        self.assertEqual([(graph.waiting, graph.running) for graph in graphs], [(0, 0), (0, 0)])

    def test_mistakes(self):
        def broken(key):
            raise LookupError(key)

        for wrong, kind in (
            (lambda: self.keys("a", "b"), TypeError), (lambda: self.keys.want(1, "a", str), TypeError), (lambda: self.keys.belong(None, ["a"]), TypeError),
            (lambda: self.keys.belong(Graph(1, 0, 0), [[]]), TypeError), (lambda: self.keys.want(Graph(1, 0, 0), ["a"], broken), LookupError),
            (lambda: self.keys.belong(Graph(1, 0, 0), 5), TypeError), (lambda: Graph("x", 0, 0), TypeError),
        ):  # fmt: skip
            with self.assertRaises(kind):
                wrong()
        self.assertEqual(len(self.keys), 0)
        self.keys = GraphKeys(broken, broken)
        self.graph(1, "a")
        with self.assertRaises(LookupError):
            self.keys("a", "waiting", "processing")


class Bounds(unittest.TestCase):
    """A million tasks of each kind, some of which fail or are cancelled."""

    ENDS = (("memory", "released", "forgotten"), ("erred", "forgotten"), ("released", "forgotten"), ("forgotten",))

    def grows(self, work):
        """Returns the memory blocks that stay after a million further tasks, compared with a
        few."""
        work(0)
        gc.collect()
        before = sys.getallocatedblocks()
        for batch in range(1, TASKS // AT_ONCE + 1):
            work(batch)
        gc.collect()
        return sys.getallocatedblocks() - before

    def test_scheduler(self):
        jobs = _jobs.Jobs(False, lambda graph: None, lambda graph: None, lambda job, dag: None)

        def work(batch):
            keys = [f"work-{batch}-{i}" for i in range(AT_ONCE)]
            jobs.graph("client", keys, keys, lambda key: None)
            for i, key in enumerate(keys):
                before = "released"
                for state in ("waiting", "processing", *self.ENDS[i % len(self.ENDS)]):
                    jobs.transition(key, before, state, stimulus_id="x")
                    before = state

        self.assertLess(self.grows(work), KEPT_MAX)
        self.assertEqual((len(jobs._keys), jobs.job, jobs.dag), (0, 0, TASKS // AT_ONCE))

    def test_worker(self):
        tasks = TaskSpans("0", "c", str)

        def work(batch):
            for i in range(AT_ONCE):
                key = f"work-{batch}-{i}"
                before = "waiting"
                for state in ("ready", "executing", *(("error",), ("cancelled",), ("long-running",), ())[i % 4], *self.ENDS[i % len(self.ENDS)]):
                    tasks(key, before, state)
                    before = state

        self.assertLess(self.grows(work), KEPT_MAX)
        self.assertEqual(len(tasks), 0)


if __name__ == "__main__":
    main()
