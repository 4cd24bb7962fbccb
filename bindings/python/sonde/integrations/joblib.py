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
from typing import Any, Callable, Optional

from .._emit import level
from ._task_metrics import Call, TaskMetrics

_metrics = TaskMetrics("joblib", "joblib's tasks")
_original: Optional[Callable[..., Any]] = None


def _name_of(function: Any) -> str:
    """scikit-learn and functools.partial wrap the function."""
    for attribute in ("function", "func"):
        function = getattr(function, attribute, function)
    return str(getattr(function, "__qualname__", type(function).__name__))


class _Task:
    """A function of a task. It is pickled by the name of this class."""

    def __init__(self, function: Any) -> None:
        self._function = function
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *given: Any, **more: Any) -> Any:
        with Call(_metrics, _name_of(self._function)):
            return self._function(*given, **more)


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
