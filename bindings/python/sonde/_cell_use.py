"""Implements `%load_ext sonde` in IPython and Jupyter: shows below each cell the resources that it
used.

The time, and the processor time and memory of this process, are always known. In a job with a level
of at least 2, the job's metrics during the cell are shown, too. They cover all nodes, and so the
work that the cell gave to other processes.
"""

import importlib
import resource
import time
from dataclasses import dataclass
from html import escape
from typing import Any, Optional

from . import _emit
from ._analysis import AnalysisClient
from ._client import ClientError
from ._notebook import digits, quantity

_LEAST_S = 0.5  # shorter cells show nothing: no source of node metrics samples more often
_TIMEOUT_S = 2.0  # a cell waits no longer for the job's answer
_NODE_LEVEL = 2
# The metrics of the job that a cell shows: label, expression, unit. A metric that the machine lacks
# is left out.
_JOB = (
    ("CPU", "avg:0all-avg:cpu_percent", "percent"),
    ("peak", "max:0all-max:cpu_percent", "percent"),
    ("memory peak", "max:0all-max:memory_used_bytes", "bytes"),
    ("GPU", "avg:0all-avg:gpu_utilization_percent", "percent"),
    ("GPU memory peak", "max:0all-max:gpu_memory_used_bytes", "bytes"),
    ("GPU power", "avg:0all-avg:gpu_power_watts", "watts"),
)


@dataclass
class _Usage:
    time_ns: int
    cpu_s: float
    memory_bytes: int  # resident now


def _usage() -> _Usage:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * resource.getpagesize()
    return _Usage(time.time_ns(), own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime, resident)


def job_use(start_ns: int, end_ns: int) -> list[str]:
    """Returns the use of the nodes of the job around this program; empty without a job. If the job
    does not answer, the text says why."""
    if _emit.level() < _NODE_LEVEL:
        return []
    found, missing = [], ""
    try:
        with AnalysisClient(timeout=_TIMEOUT_S) as client:
            for words, expression, unit in _JOB:
                try:
                    result = client.query(expression, start=start_ns / 1e9, end=end_ns / 1e9)
                except ClientError as error:
                    if "No such name" in str(error):
                        continue
                    raise
                missing = missing or result.missing
                values = [value for series in result for value in series.values if value == value]
                if values:
                    found.append(f"{words} {quantity(values[0], unit)}")
    except RuntimeError as error:
        return [f"the job does not answer: {error}"]
    return found + ([f"missing: {missing}"] if missing else [])


class CellUse:
    """Makes the line about one cell."""

    def __init__(self, before: _Usage, after: _Usage) -> None:
        seconds = (after.time_ns - before.time_ns) / 1e9
        cpu, grown = after.cpu_s - before.cpu_s, after.memory_bytes - before.memory_bytes
        sign = "+" if grown >= 0 else "−"
        self.own = f"{digits(seconds)} s; this process: CPU {digits(cpu)} s, memory {quantity(after.memory_bytes, 'bytes')} ({sign}{quantity(abs(grown), 'bytes')})"
        self.job = job_use(before.time_ns, after.time_ns)

    def __repr__(self) -> str:
        return self.own + ("; job: " + ", ".join(self.job) if self.job else "")

    def _repr_html_(self) -> str:
        return f'<small style="opacity: 0.75">{escape(repr(self))}</small>'


class CellWatch:
    """Shows the use of each cell that an IPython shell runs, until unload()."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.before: Optional[_Usage] = None
        shell.events.register("pre_run_cell", self.begin)
        shell.events.register("post_run_cell", self.end)

    def begin(self, _: Any = None) -> None:
        self.before = _usage()

    def end(self, _: Any = None) -> None:
        before, self.before = self.before, None
        after = _usage()
        if before is not None and (after.time_ns - before.time_ns) / 1e9 >= _LEAST_S:
            importlib.import_module("IPython.display").display(CellUse(before, after))

    def unload(self) -> None:
        self.shell.events.unregister("pre_run_cell", self.begin)
        self.shell.events.unregister("post_run_cell", self.end)


_watch: Optional[CellWatch] = None


def load(shell: Any) -> None:
    """A second %load_ext changes nothing."""
    global _watch
    if _watch is None or _watch.shell is not shell:
        unload()
        _watch = CellWatch(shell)


def unload() -> None:
    global _watch
    if _watch is not None:
        _watch.unload()
    _watch = None
