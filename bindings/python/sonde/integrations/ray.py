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
from typing import Any, Callable, TypeVar

from ._task_metrics import Call, TaskMetrics

_VARIABLES = ("SONDE_SOCKET", "SONDE_LEVEL", "SONDE_TAGS")
_T = TypeVar("_T", bound=Callable[..., Any])

_metrics = TaskMetrics("ray", "Ray's tasks and actors")


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


def _traced(function: Any, name: str) -> Any:
    wrapper: Callable[..., Any]
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def wrapper(*given: Any, **more: Any) -> Any:
            with Call(_metrics, name):
                return await function(*given, **more)

    elif inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def wrapper(*given: Any, **more: Any) -> Any:
            with Call(_metrics, name):
                return (yield from function(*given, **more))

    else:

        @functools.wraps(function)
        def wrapper(*given: Any, **more: Any) -> Any:
            with Call(_metrics, name):
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
