"""libsonde for Python; use the package `sonde`."""

import os
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Callable, Optional, SupportsFloat, SupportsIndex, Tuple, TypeVar, Union, final

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
        """False if the metric is off: its level is above the run's, or no run exists."""

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

_F = TypeVar("_F", bound=Callable[..., Any])

@final
class Span:
    """A span for a `with` statement, or a decorator; made by span()."""

    def __enter__(self) -> "Span": ...
    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType], /
    ) -> None: ...
    def __call__(self, function: _F) -> _F: ...

known_metrics: dict[Any, Metric]  # those that add_data() remembers

class LevelFilter:
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

def keep_parameters(parameters: Mapping[str, str], /) -> None:
    """Keeps parameters of the run, at most 64; sonde.config() uses it."""

def span(name: str, /, **tags: Any) -> Span:
    """A named period of time with tags, as a context manager or a decorator."""

def set_task_span(function: Callable[[], Optional[OpenSpan]], /) -> None:
    """The function returns the parent of a span that has no span around it, or None."""

def open_span(name: str, tags: Optional[Mapping[str, Any]], parent: Union[OpenSpan, Span, None], start_ns: Optional[int] = None, /) -> OpenSpan:
    """Begins a span within `parent` (or None), now or at a time in nanoseconds since the epoch;
    sonde.span() uses it."""

def enter_span(name: str, tags: Optional[Mapping[str, Any]], start_ns: Optional[int] = None, /) -> OpenSpan:
    """Begins a span within the current one, now or at a time in nanoseconds since the epoch, and
    makes it the current one until its close(); sonde.integrations uses it."""

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
