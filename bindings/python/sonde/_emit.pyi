"""libsonde for Python; use the package `sonde`."""

import os
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Callable, Optional, SupportsFloat, SupportsIndex, Tuple, Union, final

_Value = Union[SupportsFloat, SupportsIndex, None]

__version__: str

@final
class Metric:
    """A metric to emit to, made by gauge() or counter()."""

    @property
    def name(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def help(self) -> str: ...
    @property
    def tags(self) -> dict[str, Any]: ...
    @property
    def level(self) -> int: ...
    @property
    def kind(self) -> str: ...
    def __call__(self, value: _Value = ..., time_ns: Optional[int] = ...) -> None:
        """Emits a point: of a gauge, a value, now or at a time in nanoseconds since the epoch; of a
        counter, the amount to add (default 1)."""

    def emit(self, value: _Value, time_ns: Optional[int] = ...) -> None:
        """Emits a point, now or at a time in nanoseconds since the epoch."""

    def set(self, value: _Value, /) -> None:
        """Sets the metric's cell, which the agent samples at the run's rate: for values that change
        often."""

    def add(self, amount: _Value = ..., /) -> None:
        """Adds to the metric's cell."""

    def __bool__(self) -> bool:
        """False if the metric is off: its level is above the run's, or there is no run."""

@final
class Group:
    """Metrics that are measured together, made by group()."""

    @property
    def metrics(self) -> tuple[Metric, ...]: ...
    def __call__(self, *values: _Value, time_ns: Optional[int] = ...) -> None:
        """Emits one value for each metric (None for a missing one) with one timestamp."""

    def __bool__(self) -> bool: ...

@final
class OpenSpan:
    """A span that has begun."""

    def close(self, more: Optional[Mapping[str, Any]], end_ns: Optional[int] = None, /) -> None:
        """Ends the span, with more tags or None, now or at a time in nanoseconds since the epoch. A
        second call does nothing."""

class Sieve:
    """The base class of sonde.Telemetry."""

    def add_data(
        self,
        ts_metric_name: str,
        ts_data: _Value,
        timestamp: Optional[float] = ...,
        telemetry_level: int = ...,
        tagk: Optional[str] = ...,
        tagv: Any = ...,
        tags: Optional[Mapping[str, Any]] = ...,
    ) -> None:
        """Emits a point, now or at `timestamp` (seconds since the epoch), if the run's level is at
        least `telemetry_level`."""

def gauge(
    name: str, unit: Optional[str] = ..., help: Optional[str] = ..., level: int = ..., tags: Optional[Mapping[str, Any]] = ...
) -> Metric:
    """Makes a metric that goes up and down: a loss, a temperature. Call the result with a value."""

def counter(
    name: str, unit: Optional[str] = ..., help: Optional[str] = ..., level: int = ..., tags: Optional[Mapping[str, Any]] = ...
) -> Metric:
    """Makes a metric that only grows: steps done, bytes read. Call the result with the amount to
    add."""

def group(metrics: Iterable[Metric], /) -> Group:
    """Makes a group of metrics that are measured together. Call it with one value for each."""

def emit(name: str, value: _Value, /, **tags: Any) -> None:
    """Emits a point of the metric `name`, now. A handle from gauge() is twice as fast."""

def annotate(text: Any, /, **tags: Any) -> None:
    """Records an annotation at this instant."""

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
        """A task is in another state now; more is passed over."""

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

    failed: bool  # a key erred, or was given up before it was there
    queued: bool  # for sonde.dask
    handle: object  # for sonde.dask

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
        """The number of requested keys whose results do not exist yet."""

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

def open_span(name: str, tags: Optional[Mapping[str, Any]], parent: Optional[OpenSpan], start_ns: Optional[int] = None, /) -> OpenSpan:
    """Begins a span within `parent` (or None), now or at a time in nanoseconds since the epoch;
    sonde.span() uses it."""

def span_at(name: str, start_ns: int, end_ns: int, tags: Optional[Mapping[str, Any]], /) -> None:
    """Records a completed span; its times are nanoseconds since the epoch. It has no parent."""

def connect(socket: Union[str, "os.PathLike[str]"], level: int = ...) -> None:
    """Connects to the agent at this socket, for a program that was not started by `sonde run`.
    Metrics that were defined before stay off. A program that emits already moves to this agent and
    keeps its level."""

def storable_name(name: str, is_key: bool = False, /) -> str:
    """The name under which a metric (or the key of a tag) is stored: the same name if it is valid.
    """
def level() -> int:
    """The level of the run, 0 to 4; 0 if sonde is off. Use it to skip work that is only done for
    measuring."""

def dropped() -> int:
    """The number of values that this process has dropped: a ring was full, a limit was exceeded, or
    no agent read them."""

def check() -> Tuple[int, str]:
    """(0, "") if an agent takes the points of this process, or if sonde is off; else an errno and
    the reason."""
