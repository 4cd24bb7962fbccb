"""Ray: the workers belong to the job, and each call of a task or an actor has a span.

    import sonde.integrations.ray as sonde_ray
    sonde_ray.init()                   # instead of ray.init(); takes its arguments

    @ray.remote
    @sonde_ray.spans
    def task(x): …

`init` passes the variables of the job on to the workers, also on a cluster that was started before.
`spans` decorates a function or the class of an actor. It records the span `task` {function},
ray_tasks{function} and ray_task_seconds{function}; of a class, for each public method. Workers emit
without it, too: `sonde.gauge` and `sonde.span` work in tasks and actors as anywhere.
"""

import functools
import importlib
import inspect
import os
from time import time_ns
from typing import Any, Callable, TypeVar

from .._emit import Metric, counter, span
from ._steps import NS

_VARIABLES = ("SONDE_SOCKET", "SONDE_LEVEL", "SONDE_TAGS")
_T = TypeVar("_T", bound=Callable[..., Any])

_metrics: dict[str, tuple[Metric, Metric]] = {}


def environment() -> dict[str, str]:
    """The variables of the job, for `runtime_env={"env_vars": …}`; empty without a job."""
    return {name: os.environ[name] for name in _VARIABLES if name in os.environ}


def init(*given: Any, runtime_env: Any = None, **more: Any) -> Any:
    """ray.init(), with environment() in its runtime environment. Variables that the program sets
    there stay."""
    variables = environment()
    if variables and (runtime_env is None or isinstance(runtime_env, dict)):
        runtime_env = dict(runtime_env or {})
        runtime_env["env_vars"] = {**variables, **(runtime_env.get("env_vars") or {})}
    if runtime_env is not None:
        more["runtime_env"] = runtime_env
    return importlib.import_module("ray").init(*given, **more)


def _metrics_of(name: str) -> tuple[Metric, Metric]:
    known = _metrics.get(name)
    if known is None:
        tags = {"function": name}
        known = _metrics[name] = (
            counter("ray_tasks", "", "calls of Ray's tasks and actors", tags=tags),
            counter("ray_task_seconds", "seconds", "time in Ray's tasks and actors", tags=tags),
        )
    return known


class _Call:
    """One call, for ``with``."""

    def __init__(self, name: str) -> None:
        self._count, self._seconds = _metrics_of(name)
        self._span = span("task", function=name)

    def __enter__(self) -> None:
        self._start_ns = time_ns()
        self._span.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._span.__exit__(*error)
        self._count.add()
        self._seconds.add((time_ns() - self._start_ns) * NS)


def _traced(function: Any, name: str) -> Any:
    wrapper: Callable[..., Any]
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def wrapper(*given: Any, **more: Any) -> Any:
            with _Call(name):
                return await function(*given, **more)

    elif inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def wrapper(*given: Any, **more: Any) -> Any:
            with _Call(name):
                return (yield from function(*given, **more))

    else:

        @functools.wraps(function)
        def wrapper(*given: Any, **more: Any) -> Any:
            with _Call(name):
                return function(*given, **more)

    return wrapper


def spans(target: _T) -> _T:
    """Decorates a function of a task, or the class of an actor; below `@ray.remote`."""
    subject: Any = target
    if inspect.isclass(subject):
        for name, method in list(vars(subject).items()):
            if inspect.isfunction(method) and not name.startswith("_"):
                setattr(subject, name, _traced(method, f"{subject.__name__}.{name}"))
    else:
        subject = _traced(subject, subject.__qualname__)
    return subject  # type: ignore[no-any-return]
