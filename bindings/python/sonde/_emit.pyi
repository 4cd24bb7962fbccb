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
        """A gauge takes a value, and a time in nanoseconds since the epoch if it is not now; a
        counter what to add (1 if nothing is said)."""

    def emit(self, value: _Value, time_ns: Optional[int] = ...) -> None:
        """A point: now, or at a time in nanoseconds since the epoch."""

    def set(self, value: _Value, /) -> None:
        """Sets the metric's cell, which is sampled at the run's rate: for values that change
        often."""

    def add(self, amount: _Value = ..., /) -> None:
        """Adds to the metric's cell."""

    def __bool__(self) -> bool:
        """False when it is off: above the run's level, or no run at all."""

@final
class Group:
    """Metrics that are measured together, made by group()."""

    @property
    def metrics(self) -> tuple[Metric, ...]: ...
    def __call__(self, *values: _Value, time_ns: Optional[int] = ...) -> None:
        """One value for each metric, None where there is none; one time stamp for all."""

    def __bool__(self) -> bool: ...

@final
class OpenSpan:
    """A span that has begun."""

    def close(self, more: Optional[Mapping[str, Any]], end_ns: Optional[int] = None, /) -> None:
        """Ends it, with more tags or None, at a time in nanoseconds since the epoch or now. Once; a
        second call does nothing."""

class Sieve:
    """What sonde.Telemetry stands on."""

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
        """A point, now or at `timestamp` (seconds since the epoch), if the run's level is
        `telemetry_level` or higher."""

def gauge(
    name: str, unit: Optional[str] = ..., help: Optional[str] = ..., level: int = ..., tags: Optional[Mapping[str, Any]] = ...
) -> Metric:
    """A metric that goes up and down: a loss, a temperature. Call it with a value."""

def counter(
    name: str, unit: Optional[str] = ..., help: Optional[str] = ..., level: int = ..., tags: Optional[Mapping[str, Any]] = ...
) -> Metric:
    """A metric that only grows: steps done, bytes read. Call it with what to add."""

def group(metrics: Iterable[Metric], /) -> Group:
    """Metrics that are measured together. Call it with one value for each."""

def emit(name: str, value: _Value, /, **tags: Any) -> None:
    """A point of the metric `name`, now. A handle from gauge() is twice as fast."""

def annotate(text: Any, /, **tags: Any) -> None:
    """A remark at this instant."""

@final
class Watch:
    """Watch(group, interval_ms): emits, until it is stopped, this process' processor time in
    percent of a core and its resident bytes as the group's two metrics, whatever holds the
    interpreter."""

    def __new__(cls, group: Group, interval_ms: int) -> "Watch": ...
    def stop(self) -> None:
        """Ends it. A second call does nothing."""

@final
class TaskSpans:
    """TaskSpans(worker, cluster, text, tasks=None): a span `dask_task` with the tags key, worker
    and cluster for each task that executes. text(key) is asked for the text of keys that are not
    plain. `tasks` is Dask's dictionary of them: a span gets the bytes of the result as the tag
    nbytes."""

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
    """GraphKeys(turned, done): which graph a key is of. It calls turned(graph) when the first task
    of a graph is with a worker and when none is any more, done(graph) when it waits for no key any
    more."""

    def __new__(cls, turned: Callable[[Graph], object], done: Callable[[Graph], object]) -> "GraphKeys": ...
    def __call__(self, key: Hashable, start: str, finish: str, /, *more: Any, **further: Any) -> None:
        """A task is in another state now; more is passed over."""

    def want(self, graph: Graph, keys: Iterable[Hashable], state: Callable[[Any], Optional[str]], /) -> None:
        """The graph waits for those of the keys that are not there yet; state(key) is what Dask
        says of one, None if it does not know it."""

    def belong(self, graph: Graph, keys: Iterable[Hashable], /) -> None:
        """These are its tasks, but for those of a graph that waits still."""

    def clear(self) -> set[Graph]:
        """Forgets all keys, and what runs. The graphs that waited for one; they wait no more."""

    def __len__(self) -> int:
        """The keys it knows."""

def open_span(name: str, tags: Optional[Mapping[str, Any]], parent: Optional[OpenSpan], start_ns: Optional[int] = None, /) -> OpenSpan:
    """Begins a span within another one or None, at a time in nanoseconds since the epoch or now.
    What sonde.span() stands on."""

def span_at(name: str, start_ns: int, end_ns: int, tags: Optional[Mapping[str, Any]], /) -> None:
    """A span that is over, its times in nanoseconds since the epoch. It is part of none."""

def connect(socket: Union[str, "os.PathLike[str]"], level: int = ...) -> None:
    """Where the agent listens, for a program that was not started by `sonde run`. Metrics that were
    defined before stay off; one that emits already moves there and keeps its level."""

def storable_name(name: str, is_key: bool = False, /) -> str:
    """The name under which a metric (or a tag's key) is stored: the name itself if it can be
    one."""
def level() -> int:
    """The level of the run, 0 to 4; 0 when sonde is off. To leave out work that is only done for
    measuring."""

def dropped() -> int:
    """How many values this process could not hand over: a ring was full, a limit passed, or no
    agent took them."""

def check() -> Tuple[int, str]:
    """(0, "") if an agent takes what this process emits, or sonde is off; else an errno and why
    not."""
