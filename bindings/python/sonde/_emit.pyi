"""libsonde for Python; use the package `sonde`."""

import os
from collections.abc import Iterable, Mapping
from typing import Any, Optional, SupportsFloat, SupportsIndex, Tuple, Union, final

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
        """A gauge takes a value, and a time in nanoseconds since the epoch if it is not now; a counter what to add (1 if nothing is said)."""

    def emit(self, value: _Value, time_ns: Optional[int] = ...) -> None:
        """A point: now, or at a time in nanoseconds since the epoch."""

    def set(self, value: _Value, /) -> None:
        """Sets the metric's cell, which is sampled at the run's rate: for values that change often."""

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
        """Ends it, with more tags or None, at a time in nanoseconds since the epoch or now. Once; a second call does nothing."""

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
        """A point, now or at `timestamp` (seconds since the epoch), if the run's level is `telemetry_level` or higher."""

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

def open_span(name: str, tags: Optional[Mapping[str, Any]], parent: Optional[OpenSpan], start_ns: Optional[int] = None, /) -> OpenSpan:
    """Begins a span within another one or None, at a time in nanoseconds since the epoch or now. What sonde.span() stands on."""

def span_at(name: str, start_ns: int, end_ns: int, tags: Optional[Mapping[str, Any]], /) -> None:
    """A span that is over, its times in nanoseconds since the epoch. It is part of none."""

def connect(socket: Union[str, "os.PathLike[str]"], level: int = ...) -> None:
    """Where the agent listens, for a program that was not started by `sonde run`. Metrics that were defined before stay off; one that emits already
    moves there and keeps its level."""

def storable_name(name: str, is_key: bool = False, /) -> str:
    """The name under which a metric (or a tag's key) is stored: the name itself if it can be one."""
def level() -> int:
    """The level of the run, 0 to 4; 0 when sonde is off. To leave out work that is only done for measuring."""

def dropped() -> int:
    """How many values this process could not hand over: a ring was full, a limit passed, or no agent took them."""

def check() -> Tuple[int, str]:
    """(0, "") if an agent takes what this process emits, or sonde is off; else an errno and why not."""
