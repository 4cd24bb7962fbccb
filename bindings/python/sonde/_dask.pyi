"""Tasks and graphs of Dask; use the package `sonde.dask`."""

from collections.abc import Hashable, Iterable
from typing import Any, Callable, Optional, final

from ._emit import Group, OpenSpan

@final
class Watch:
    """Watch(group, interval_ms): emits, until it is stopped, this process' processor time in percent of a core and its resident bytes as the group's two
    metrics, whatever holds the interpreter."""

    def __new__(cls, group: Group, interval_ms: int) -> "Watch": ...
    def stop(self) -> None:
        """Ends it. A second call does nothing."""

@final
class TaskSpans:
    """TaskSpans(worker, cluster, text, tasks=None): a span `dask_task` with the tags key, worker and cluster for each task that executes. text(key) is asked for
    the text of keys that are not plain. `tasks` is Dask's dictionary of them: a span gets the bytes of the result as the tag nbytes."""

    def __new__(cls, worker: str, cluster: str, text: Callable[[Any], str], tasks: Optional[dict[Any, Any]] = None) -> "TaskSpans": ...
    def __call__(self, key: Hashable, start: str, finish: str, /, *more: Any, **further: Any) -> None:
        """A task is in another state now; more is passed over."""

    def close(self) -> None:
        """Ends the spans of all tasks that execute."""

    def span(self, key: Hashable, /) -> Optional[OpenSpan]:
        """The span of a task that executes, as open_span()'s parent; None: it does not."""

    def __len__(self) -> int:
        """How many execute."""

@final
class Graph:
    """Graph(number, job, dag): one dag of a job."""

    failed: bool  # a key erred, or was given up before it was there
    queued: bool  # for who counts
    handle: object  # for who listens

    def __new__(cls, number: int, job: int, dag: int) -> "Graph": ...
    @property
    def number(self) -> int: ...
    @property
    def job(self) -> int: ...
    @property
    def dag(self) -> int: ...
    @property
    def running(self) -> int:
        """Tasks that a worker has."""

    @property
    def waiting(self) -> int:
        """Keys that were asked for and are not there yet."""

@final
class GraphKeys:
    """GraphKeys(turned, done): which graph a key is of. It calls turned(graph) when the first task of a graph is with a worker and when none is any more,
    done(graph) when it waits for no key any more."""

    def __new__(cls, turned: Callable[[Graph], object], done: Callable[[Graph], object]) -> "GraphKeys": ...
    def __call__(self, key: Hashable, start: str, finish: str, /, *more: Any, **further: Any) -> None:
        """A task is in another state now; more is passed over."""

    def want(self, graph: Graph, keys: Iterable[Hashable], state: Callable[[Any], Optional[str]], /) -> None:
        """The graph waits for those of the keys that are not there yet; state(key) is what Dask says of one, None if it does not know it."""

    def belong(self, graph: Graph, keys: Iterable[Hashable], /) -> None:
        """These are its tasks, but for those of a graph that waits still."""

    def clear(self) -> set[Graph]:
        """Forgets all keys, and what runs. The graphs that waited for one; they wait no more."""

    def __len__(self) -> int:
        """The keys it knows."""
