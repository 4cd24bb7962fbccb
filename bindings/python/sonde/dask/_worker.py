"""The worker plugin: registers the worker, records its tasks, and measures values that only this
process can know.

The agent measures GPUs and the node. Tasks are spans, begun and ended through libsonde's shared
memory, so the recording has the tasks of a killed worker. A thread measures Dask's own metrics
(memory, network) and custom metrics at the agent's instants: whole multiples of the interval since
the epoch. If the thread cannot run, because a task holds the interpreter lock, the value of that
instant is missing.
"""

import asyncio
import os
import pickle
import socket
import threading
import time
from collections.abc import Sequence
from typing import Any, Callable, Optional

from distributed.diagnostics.plugin import WorkerPlugin  # type: ignore[import]
from distributed.worker import get_worker  # type: ignore[import]

import sonde
from sonde._dask import TaskSpans, Watch
from sonde._emit import OpenSpan, set_task_span

from . import _keys
from ._figures import Figures
from ._node import dismiss, join
from ._settings import KINDS, MARK, PLUGIN, Settings, custom_series

END = "sonde_end"  # the handler that the scheduler calls
# Metrics that the kernel measures, in the order of their values; `_figures` has those of Dask.
OF_KERNEL = ("cpu", "rss")
KEY_MAX_BYTES = 1000  # of a key, in the span's tag
ERRORS_MAX = 100  # number of different errors that are kept


def key_text(key: Any) -> str:
    """Returns the key as in a file."""
    text = _keys.write([key])
    if len(text.encode()) > KEY_MAX_BYTES:
        text = text.encode()[: KEY_MAX_BYTES - 3].decode(errors="ignore") + "…"
    return text


def task_span() -> Optional[OpenSpan]:
    """Returns the span of the task that this thread executes, as the parent of the spans that the
    task opens."""
    try:
        worker = get_worker()
    except ValueError:
        return None  # the worker of this process has ended
    key, part = worker.active_threads.get(threading.get_ident()), worker.plugins.get(PLUGIN)
    return None if key is None or part is None or part.tasks is None else part.tasks.span(key)


class WorkerPart(WorkerPlugin):  # type: ignore[misc]
    name = PLUGIN

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.keeper: Optional[socket.socket] = None
        self.watch: Optional[Watch] = None
        self.tasks: Optional[TaskSpans] = None

    async def setup(self, worker: Any) -> None:
        self.worker = worker
        self.stopping = threading.Event()
        told = await worker.scheduler.sonde_worker(identity=identity(worker))
        if "error" in told:
            raise RuntimeError(told["error"])
        if "node" in told:
            parent = worker.scheduler.address.rpartition("://")[2].rpartition(":")[0].strip("[]")
            node = told["node"] | {"parent": f"{parent} {told['node']['hub']}"}
            self.keeper = await asyncio.get_running_loop().run_in_executor(None, join, node)
        if not os.path.exists(told["socket"]):
            raise RuntimeError(f"sonde has no agent on this worker's host {host_name()} (no {told['socket']})")
        sonde.connect(told["socket"], told["level"])
        self.tag = str(told["worker"])
        self.tags = {"worker": self.tag, "cluster": told["cluster"]}
        self.marks = sonde.gauge(MARK, tags=self.tags)
        worker.handlers[MARK] = self.mark
        worker.handlers[END] = self.end
        # Dask calls the attribute `transition`.
        self.transition = self.tasks = TaskSpans(self.tag, told["cluster"], key_text, worker.state.tasks)
        set_task_span(task_span)
        for key, state in list(worker.state.tasks.items()):
            self.tasks(key, "", state.state)
        for measure in self._questions():
            threading.Thread(target=self._ask, args=(measure,), name="sonde-monitor", daemon=True).start()

    def mark(self, number: int) -> str:
        """Emits an end mark after all other points: once the store has the mark, it has
        everything."""
        self.marks(number)
        return self.tag

    async def end(self) -> None:
        """Handles the removal of the monitor: the agent of this host need not wait for returning
        workers. Waits until its recording is complete."""
        keeper, self.keeper = self.keeper, None
        if keeper is not None:
            await asyncio.get_running_loop().run_in_executor(None, dismiss, keeper)

    def teardown(self, worker: Any) -> None:
        self.stopping.set()
        if self.watch is not None:
            self.watch.stop()
        for name, handler in ((MARK, self.mark), (END, self.end)):
            if worker.handlers.get(name) == handler:
                del worker.handlers[name]
        if self.keeper is not None:
            self.keeper.close()
        if self.tasks is not None:
            self.tasks.close()

    # ---- measurements

    def _questions(self) -> list[Callable[[int], None]]:
        """Returns the functions that measure values for an instant. Each has a thread, so a slow
        one delays only its own values."""
        found: list[Callable[[int], None]] = []
        own = [name for name in self.settings.tracking if KINDS[name][0] == "worker"]
        if set(own) & set(OF_KERNEL):
            self._watch()
        if set(own) - set(OF_KERNEL):
            found.append(self._own_figures())
        if self.settings.functions:
            from ._handles import device_handles

            handles = device_handles(self.settings.own_gpus)
            for function in pickle.loads(self.settings.functions):
                found.append(Custom(function, self.worker, handles, self.tags))
        return found

    def _metrics(self, names: Sequence[str]) -> sonde.Group:
        known = [KINDS[name][1] for name in names]
        return sonde.group([(sonde.counter if metric.endswith("_total") else sonde.gauge)(metric, tags=self.tags) for metric in known])

    def _watch(self) -> None:
        """Starts a thread that measures this process from the kernel's figures, without the
        interpreter."""
        self.watch = Watch(self._metrics(OF_KERNEL), self.settings.interval_ms)

    def _own_figures(self) -> Callable[[int], None]:
        """Returns the function that measures Dask's own metrics."""
        figures, group = Figures(self.worker), self._metrics(Figures.names)

        def measure(instant_ns: int) -> None:
            group(*figures(), time_ns=instant_ns)

        return measure

    def _ask(self, measure: Callable[[int], None]) -> None:
        interval_ns = self.settings.interval_ms * 1_000_000
        while True:
            instant_ns = (time.time_ns() // interval_ns + 1) * interval_ns
            if self.stopping.wait((instant_ns - time.time_ns()) / 1e9):
                return
            if time.time_ns() - instant_ns >= interval_ns:
                continue  # delayed for too long: the value is missing
            measure(instant_ns)


class Custom:
    """A custom metric on one worker. An error is reported once for each kind, and costs only that
    value."""

    def __init__(self, function: Any, worker: Any, handles: list[Any], tags: dict[str, str]) -> None:
        self.function, self.worker, self.handles, self.tags = function, worker, handles, tags
        self.name, self.per_device = function.metric_name, function.per_device
        self.gauges: dict[Optional[int], sonde.Metric] = {}
        self.said: set[str] = set()

    def __call__(self, instant_ns: int) -> None:
        if self.per_device:
            for place, handle in enumerate(self.handles):
                self._take(place, handle, instant_ns)
        else:
            self._take(None, self.handles, instant_ns)

    def _take(self, place: Optional[int], handle: Any, instant_ns: int) -> None:
        try:
            value = self.function(self.worker, handle)
            if isinstance(value, (list, tuple)):
                for each, one in enumerate(value):
                    self._gauge(each).emit(float(one), instant_ns)
            elif value is not None:
                self._gauge(place).emit(float(value), instant_ns)
        except Exception as error:
            self._say(f"custom metric {self.name}: {type(error).__name__}: {error}")

    def _gauge(self, place: Optional[int]) -> sonde.Metric:
        gauge = self.gauges.get(place)
        if gauge is None:
            tags = self.tags if place is None else self.tags | {"device": str(place)}
            gauge = self.gauges[place] = sonde.gauge(custom_series(self.name), tags=tags)
        return gauge

    def _say(self, text: str) -> None:
        if text not in self.said and len(self.said) < ERRORS_MAX:
            self.said.add(text)
            sonde.annotate(text, kind="dask_custom_error", **self.tags)


def host_name() -> str:
    """Returns this host's name as in the agent's tag `host`."""
    return socket.gethostname().split(".")[0]


def identity(worker: Any) -> dict[str, Any]:
    """Returns the identity of a worker in its rows."""
    return {
        "name": str(worker.name),
        "address": worker.address,
        "host": host_name(),
        "pid": os.getpid(),
        "joined_ns": time.time_ns(),  # before its first span
        "devices": os.environ.get("CUDA_VISIBLE_DEVICES"),
    }

