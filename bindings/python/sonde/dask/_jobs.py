"""Which job and dag a cluster is at: the scheduler's graphs, counted. Knows nothing of Dask but the names of its task states.

A *graph* is what one `compute`, `persist`, `submit` or `map` hands over: a dag of a job. It is open until every key that was asked for is in memory, erred or
forgotten. The cluster is *at* the newest graph of which something runs; while nothing runs it stays at the last one. Several clients may be at work at once, so
that is a heap of the graphs that run, newest first, and not a counter.

    client mode   a client's first graph makes it the next job (0, 1, …); every graph of it is the next dag of that job (0, 1, …)
    manual mode   new_job() says where a job begins; the clients do not matter
    spans         the outermost `distributed.span` that a graph was made in is its job; outside of spans as in client mode

What a task submits to its own cluster is part of the graph that the cluster is at.
"""

import heapq
from collections.abc import Hashable, Iterable
from typing import Callable, Optional

from sonde._dask import Graph, GraphKeys

WORKERS_OWN = "Client-worker-"  # how a client's id begins that a task opened

Key = Hashable


class Jobs:
    """`opened` and `closed` hear of each graph, `at` of (job, dag) whenever the cluster goes on to another. A graph's `handle` belongs to who listens.

    `transition(key, start, finish)` has to be told of every change of a task's state: some ten thousand times a second, so that it is in C (`graphs.c`), with all
    that is known of single keys.
    """

    def __init__(
        self, manual: bool, opened: Callable[[Graph], None], closed: Callable[[Graph], None], at: Callable[[int, int], None]
    ) -> None:
        self.manual = manual
        self.job, self.dag = 0, 0
        self._opened, self._closed, self._at = opened, closed, at
        self._manual_job = 0
        self._jobs: dict[Hashable, int] = {}  # client or span → job
        self._dags: dict[int, int] = {}  # job → its next dag
        self._open: dict[int, int] = {}  # job → graphs that are open
        self._bad: set[int] = set()  # jobs with a dag that failed
        self.transition = self._keys = GraphKeys(self._turned, self._close)
        self._heap: list[tuple[int, Graph]] = []  # (-number, graph); those with nothing running any more are stale
        self._number = 0

    def new_job(self, job: Optional[int] = None) -> int:
        """The job from now on; manual mode alone."""
        if not self.manual:
            raise ValueError("new_job() is for job_type='manual'; here every client is a job")
        self._manual_job = self._manual_job + 1 if job is None else job
        self._dags[self._manual_job] = 0
        self._go(self._manual_job, 0)
        return self._manual_job

    def graph(
        self, client: str, wanted: Iterable[Key], tasks: Iterable[Key], state: Callable[[Key], Optional[str]], span: Optional[Hashable] = None
    ) -> Optional[Graph]:
        """A client has handed over a graph. `state` tells of keys that were there before. None: a task did."""
        if client.startswith(WORKERS_OWN):
            self._keys.belong(self._newest() or self._graph(self.job, self.dag), tasks)
            return None
        if self.manual:
            job = self._manual_job
        else:
            job = self._jobs.setdefault(client if span is None else ("span", span), len(self._jobs))
        dag = self._dags.get(job, 0)
        self._dags[job] = dag + 1
        graph = self._graph(job, dag)
        self._keys.want(graph, wanted, state)
        self._keys.belong(graph, tasks)
        self._open[job] = self._open.get(job, 0) + 1
        self._opened(graph)
        if not graph.waiting:
            self._close(graph)
        return graph

    def restarted(self) -> None:
        """The cluster has forgotten all tasks. What had not ended has failed."""
        for graph in sorted(self._keys.clear(), key=lambda graph: graph.number):
            graph.failed = True
            self._close(graph)

    def job_of(self, client: str) -> Optional[int]:
        """The job that a client is; None: it has submitted nothing, or is none."""
        return self._jobs.get(client)

    def successful(self) -> list[int]:
        """Jobs all of whose dags have ended well."""
        return sorted(job for job, left in self._open.items() if left == 0 and job not in self._bad)

    def _graph(self, job: int, dag: int) -> Graph:
        self._number += 1
        return Graph(self._number, job, dag)

    def _turned(self, graph: Graph) -> None:
        """The first of its tasks has come to a worker, or none is there any more."""
        if graph.running and not graph.queued:
            heapq.heappush(self._heap, (-graph.number, graph))
            graph.queued = True
        self._look()

    def _newest(self) -> Optional[Graph]:
        while self._heap and self._heap[0][1].running == 0:
            heapq.heappop(self._heap)[1].queued = False
        return self._heap[0][1] if self._heap else None

    def _look(self) -> None:
        graph = self._newest()
        if graph is not None:
            self._go(graph.job, graph.dag)

    def _go(self, job: int, dag: int) -> None:
        if (job, dag) != (self.job, self.dag):
            self.job, self.dag = job, dag
            self._at(job, dag)

    def _close(self, graph: Graph) -> None:
        self._open[graph.job] -= 1
        if graph.failed:
            self._bad.add(graph.job)
        self._closed(graph)
