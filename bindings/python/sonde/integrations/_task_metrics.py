"""The metrics of tasks that a framework distributes: FRAMEWORK_tasks{function} and
FRAMEWORK_task_seconds{function}."""

from time import time_ns
from typing import Any

from .._emit import Metric, counter, span
from ._steps import NS

_FUNCTIONS_MAX = 256  # of a process; further ones are "other"


class TaskMetrics:
    def __init__(self, framework: str, what: str) -> None:
        self._framework = framework
        self._what = what  # "Ray's tasks and actors"
        self._known: dict[str, tuple[Metric, Metric]] = {}

    def of(self, function: str) -> tuple[Metric, Metric]:
        """Returns the counters of calls and seconds."""
        known = self._known.get(function)
        if known is None and len(self._known) >= _FUNCTIONS_MAX:
            function = "other"
            known = self._known.get(function)
        if known is None:
            tags = {"function": function}
            known = self._known[function] = (
                counter(f"{self._framework}_tasks", "", f"calls of {self._what}", tags=tags),
                counter(f"{self._framework}_task_seconds", "seconds", f"time in {self._what}", tags=tags),
            )
        return known


class Call:
    """One call of a function, for ``with``: a span `task`, and the metrics of its function."""

    def __init__(self, metrics: TaskMetrics, function: str) -> None:
        self._count, self._seconds = metrics.of(function)
        self._span = span("task", function=function)

    def __enter__(self) -> None:
        self._start_ns = time_ns()
        self._span.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._span.__exit__(*error)
        self._count.add()
        self._seconds.add((time_ns() - self._start_ns) * NS)
