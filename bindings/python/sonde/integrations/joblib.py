"""joblib, and so scikit-learn: a span for each task, in the process that executes it.

    import sonde.integrations.joblib
    sonde.integrations.joblib.watch()
    GridSearchCV(model, parameters, n_jobs=8).fit(x, y)

Records the span `task` {function}, joblib_tasks{function} and joblib_task_seconds{function}, of all
backends whose workers inherit the environment of the program (loky, multiprocessing, threading).
joblib puts small tasks together; each of them has its own span. The parameters of an estimator
become those of the run by `sonde.config(estimator.get_params(deep=False))`.
"""

import functools
import importlib
from collections.abc import Iterable, Iterator
from time import time_ns
from typing import Any, Callable, Optional

from .._emit import Metric, counter, level, span
from ._steps import NS

_FUNCTIONS_MAX = 256  # of a process; further ones are "other"

_metrics: dict[str, tuple[Metric, Metric]] = {}
_original: Optional[Callable[..., Any]] = None


def _name_of(function: Any) -> str:
    """scikit-learn and functools.partial wrap the function."""
    for attribute in ("function", "func"):
        function = getattr(function, attribute, function)
    return str(getattr(function, "__qualname__", type(function).__name__))


def _metrics_of(name: str) -> tuple[Metric, Metric]:
    known = _metrics.get(name)
    if known is None:
        if len(_metrics) >= _FUNCTIONS_MAX:
            return _metrics_of("other") if name != "other" else _make("other")
        known = _make(name)
    return known


def _make(name: str) -> tuple[Metric, Metric]:
    tags = {"function": name}
    made = _metrics[name] = (
        counter("joblib_tasks", "", "tasks that joblib has executed", tags=tags),
        counter("joblib_task_seconds", "seconds", "time in joblib's tasks", tags=tags),
    )
    return made


class _Task:
    """A function of a task. It is pickled by the name of this class."""

    def __init__(self, function: Any) -> None:
        self._function = function
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *given: Any, **more: Any) -> Any:
        name = _name_of(self._function)
        count, seconds = _metrics_of(name)
        start_ns = time_ns()
        try:
            with span("task", function=name):
                return self._function(*given, **more)
        finally:
            count.add()
            seconds.add((time_ns() - start_ns) * NS)


def _tasks(iterable: Iterable[Any]) -> Iterator[Any]:
    for function, given, more in iterable:
        yield _Task(function), given, more


def watch() -> None:
    """Records the tasks of all `joblib.Parallel` from now on. A second call does nothing."""
    global _original
    if not level() or _original is not None:
        return
    parallel: Any = importlib.import_module("joblib").Parallel
    original = _original = parallel.__call__

    @functools.wraps(original)
    def call(self: Any, iterable: Iterable[Any]) -> Any:
        return original(self, _tasks(iterable))

    parallel.__call__ = call


def unwatch() -> None:
    """Ends watch()."""
    global _original
    if _original is not None:
        importlib.import_module("joblib").Parallel.__call__ = _original
        _original = None
