"""The current job and dag of a cluster, from the scheduler's graphs. Of Dask, it knows only the
names of task states.

A *graph* is the work of one `compute`, `persist`, `submit` or `map`: a dag of a job. It is open
until every requested key is in memory, erred or forgotten. The *current* graph of the cluster is
the newest one with an executing task; while nothing executes, it is the last one. Several clients
may compute at once, so a heap holds the executing graphs, newest first.

    client mode   a client's first graph makes the client the next job (0, 1, …); each of its
                  graphs is the next dag of that job (0, 1, …)
    manual mode   new_job() begins a job; clients do not matter
    spans         the job of a graph is the outermost `distributed.span` around it; outside of
                  spans as in client mode

Work that a task submits to its own cluster belongs to the current graph.
"""

import heapq
from collections.abc import Hashable, Iterable
from typing import Callable, Optional

from sonde._dask import Graph, GraphKeys

WORKERS_OWN = "Client-worker-"  # prefix of the ids of clients that tasks open

Key = Hashable


class Jobs:
    """Calls `opened` and `closed` for each graph, and `at` with (job, dag) whenever the current
    graph changes. The `handle` of a graph belongs to the callbacks.

    `transition(key, start, finish)` must be called for every change of a task's state: some ten
    thousand times a second. So it is in C (`graphs.c`), with all data of single keys.
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
        self._bad: set[int] = set()  # jobs with a failed dag
        self.transition = self._keys = GraphKeys(self._turned, self._close)
        # (-number, graph); entries without an executing task are stale
        self._heap: list[tuple[int, Graph]] = []
        self._number = 0

    def new_job(self, job: Optional[int] = None) -> int:
        """Begins a job; manual mode only."""
        if not self.manual:
            raise ValueError("new_job() is for job_type='manual'; here every client is a job")
        self._manual_job = self._manual_job + 1 if job is None else job
        self._dags[self._manual_job] = 0
        self._go(self._manual_job, 0)
        return self._manual_job

    def graph(
        self, client: str, wanted: Iterable[Key], tasks: Iterable[Key], state: Callable[[Key], Optional[str]], span: Optional[Hashable] = None
    ) -> Optional[Graph]:
        """Handles a graph of a client and returns it, or None if a task submitted it. `state`
        returns the state of keys from earlier graphs."""
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
        """Handles a restart of the cluster, which forgets all tasks. Open graphs have failed."""
        for graph in sorted(self._keys.clear(), key=lambda graph: graph.number):
            graph.failed = True
            self._close(graph)

    def job_of(self, client: str) -> Optional[int]:
        """Returns the job of a client; None if the client has submitted nothing."""
        return self._jobs.get(client)

    def successful(self) -> list[int]:
        """Returns the jobs whose dags have all ended without an error."""
        return sorted(job for job, left in self._open.items() if left == 0 and job not in self._bad)

    def _graph(self, job: int, dag: int) -> Graph:
        self._number += 1
        return Graph(self._number, job, dag)

    def _turned(self, graph: Graph) -> None:
        """Called when the first task of a graph comes to a worker, and when the last one leaves."""
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
