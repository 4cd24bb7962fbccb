"""Tasks and graphs of Dask; use the package `sonde.dask`."""

from collections.abc import Hashable, Iterable
from typing import Any, Callable, Optional, final

from ._emit import Group, OpenSpan

@final
class Watch:
    """Watch(group, interval_ms): a thread that emits this process' processor time in percent of a
    core and its resident bytes, as the group's two metrics. It does not need the interpreter lock.
    """

    def __new__(cls, group: Group, interval_ms: int) -> "Watch": ...
    def stop(self) -> None:
        """Stops it. A second call does nothing."""

@final
class TaskSpans:
    """TaskSpans(worker, cluster, text, tasks=None): emits a span `dask_task` with the tags key,
    worker and cluster for each task that executes. It calls text(key) for keys that are not plain
    strings. `tasks` is Dask's dictionary of tasks; with it, a span gets the size of the result as
    the tag nbytes."""

    def __new__(cls, worker: str, cluster: str, text: Callable[[Any], str], tasks: Optional[dict[Any, Any]] = None) -> "TaskSpans": ...
    def __call__(self, key: Hashable, start: str, finish: str, /, *more: Any, **further: Any) -> None:
        """Handles a change of a task's state; ignores further arguments."""

    def close(self) -> None:
        """Ends the spans of all tasks that execute."""

    def span(self, key: Hashable, /) -> Optional[OpenSpan]:
        """The span of an executing task, as a parent for open_span(); None if the task does not
        execute."""

    def __len__(self) -> int:
        """The number of executing tasks."""

@final
class Graph:
    """Graph(number, job, dag): one dag of a job."""

    failed: bool  # a task failed, or was forgotten before its result existed
    queued: bool  # set by sonde.dask
    handle: object  # set by sonde.dask

    def __new__(cls, number: int, job: int, dag: int) -> "Graph": ...
    @property
    def number(self) -> int: ...
    @property
    def job(self) -> int: ...
    @property
    def dag(self) -> int: ...
    @property
    def running(self) -> int:
        """The number of tasks that are with a worker."""

    @property
    def waiting(self) -> int:
        """The number of requested keys that have no result yet."""

@final
class GraphKeys:
    """GraphKeys(turned, done): knows the graph of each key. It calls turned(graph) when the first
    task of a graph comes to a worker, and when the last one leaves; it calls done(graph) when the
    graph waits for no more keys."""

    def __new__(cls, turned: Callable[[Graph], object], done: Callable[[Graph], object]) -> "GraphKeys": ...
    def __call__(self, key: Hashable, start: str, finish: str, /, *more: Any, **further: Any) -> None:
        """Handles a change of a task's state; ignores further arguments."""

    def want(self, graph: Graph, keys: Iterable[Hashable], state: Callable[[Any], Optional[str]], /) -> None:
        """Makes the graph wait for those keys that have no result yet. state(key) returns Dask's
        state of a key, or None if Dask does not know it."""

    def belong(self, graph: Graph, keys: Iterable[Hashable], /) -> None:
        """Assigns these tasks to the graph, except those of a graph that is still waiting."""

    def clear(self) -> set[Graph]:
        """Forgets all keys and executing tasks. Returns the graphs that were waiting."""

    def __len__(self) -> int:
        """The number of known keys."""
