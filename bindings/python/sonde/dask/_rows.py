"""The rows of workers, computed afterwards from the recorded data, also for workers that have
ended.

A row is an instant at which the agent of the worker's host sampled. It has the values of the GPUs
at that instant, the worker's own metrics, the keys of the executing tasks, and the job and dag of
the cluster.

    instants      ──┬─────┬─────┬─────┬──     of the host's agent
    GPU series      •     •     •     •
    worker's own    •     ·     •     •       · the worker could not measure: missing
    tasks          [inc-1   )[inc-2  )
    job, dag     ▲0,0    ▲0,1                 from each point to the next

`gather` queries the store, on the scheduler's host; the rest works on its result alone.
"""

import bisect
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Optional

from . import _csv, _keys
from ._settings import INSTANTS, KINDS, Settings, custom_series, own_gpu

if TYPE_CHECKING:
    from ._lives import Life
    from ._store import Store

IDENTITY = ("worker-address", "worker-name", "host", "pid", "gpu-uuid", "gpu-index", "time")
# Limits a query to this many series of a host, and so the size of results.
DEVICES_MAX = 16

Task = tuple[int, Optional[int], str]  # start; end, or None if the span is open; key


def gather(store: "Store", settings: Settings, periods: list[tuple[int, int]], lives: "list[Life]", attached_ns: int) -> dict[str, Any]:
    """Queries the data for rows, as plain lists and dictionaries."""
    found: dict[str, Any] = {"settings": settings, "periods": periods, "lives": lives, "series": [], "at": [], "tasks": []}
    if not periods:
        return found
    start_ms, end_ms = periods[0][0] // 1_000_000, periods[-1][1] // 1_000_000
    own = {"worker": "*", "cluster": settings.cluster}
    wanted = [(INSTANTS, {"host": "*"})]
    wanted += [(KINDS[name][1], {"host": "*"}) for name in settings.columns if KINDS.get(name, ("",))[0] == "gpu"]
    wanted += [(KINDS[name][1], own) for name in settings.columns if KINDS.get(name, ("",))[0] == "worker"]
    wanted += [(custom_series(name), own) for name in settings.custom]
    hosts = len({life.host for life in lives}) or 1
    found["series"] = store.raw(start_ms, end_ms, settings.interval_ms, wanted, hosts * DEVICES_MAX * len(wanted))
    found["at"] = at(store, settings.cluster, attached_ns, periods[-1][1])
    if "tasks" in settings.tracking:
        found["tasks"] = [task_of(one) for one in store.spans("dask_task", attached_ns, periods[-1][1])]
    return found


def task_of(span: dict[str, Any]) -> tuple[str, str, int, Optional[int]]:
    """Returns worker, key, start and end of a task. The end is None if the worker ended first."""
    tags = span["tags"]
    return tags["worker"], tags["key"], span["start_ns"], None if "unfinished" in tags else span.get("end_ns")


def at(store: "Store", cluster: str, start_ns: int, end_ns: int) -> list[tuple[int, int, int]]:
    """Returns each (start, job, dag) in the order of time."""
    series = store.query(start_ns // 1_000_000, end_ns // 1_000_000, [("dask_job", {"cluster": cluster}), ("dask_dag", {"cluster": cluster})])
    by_metric = {one["metric"]: dict(zip(one["t_ns"], one["values"])) for one in series}
    dags = by_metric.get("dask_dag", {})
    return [(t, int(job), int(dags[t])) for t, job in sorted(by_metric.get("dask_job", {}).items()) if t in dags]


class Series:
    """The values of one series, by instant."""

    def __init__(self, t_ns: Sequence[int], values: Sequence[Any], interval_ns: int) -> None:
        self.t_ns, self.values, self.interval_ns = t_ns, values, interval_ns

    def at(self, instant_ns: int) -> Any:
        """Returns the last value since the previous instant; None if there is none."""
        place = bisect.bisect_right(self.t_ns, instant_ns) - 1
        return self.values[place] if place >= 0 and self.t_ns[place] > instant_ns - self.interval_ns else None


    def between(self, first_ns: int, last_ns: int) -> list[Any]:
        """Returns the values in this period, or if there are none, the value at its start."""
        first, last = bisect.bisect_left(self.t_ns, first_ns), bisect.bisect_right(self.t_ns, last_ns)
        found = self.values[first:last] or [self.at(first_ns)]
        return [value for value in found if value is not None]


class Device:
    """A GPU of a host, or a part of a GPU."""

    def __init__(self, tags: dict[str, str]) -> None:
        self.uuid, self.index, self.mig = tags.get("uuid", ""), tags.get("gpu", ""), tags.get("mig", "")

    @property
    def order(self) -> tuple[int, int]:
        return (int(self.index) if self.index.isdigit() else 0, int(self.mig) if self.mig.isdigit() else -1)


class Rows:
    """The rows of all workers, from the result of `gather`."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.settings: Settings = found["settings"]
        self.columns: list[str] = [*_csv.ALWAYS, *self.settings.columns]
        self.periods: list[tuple[int, int]] = found["periods"]
        self.lives: "dict[int, list[Life]]" = {}
        for life in found["lives"]:
            self.lives.setdefault(life.worker, []).append(life)
        self.at = found["at"]
        self.at_ns = [t for t, _, _ in self.at]
        self.tasks: dict[tuple[int, int], list[Task]] = {}  # by worker and index of its life
        for worker, key, start_ns, end_ns in found["tasks"]:
            place = life_of(self.lives.get(int(worker), []), start_ns)
            if place is not None:
                self.tasks.setdefault((int(worker), place), []).append((start_ns, end_ns, key))
        self.instants: dict[str, Sequence[int]] = {}
        # host → UUID → device: one entry for each device, whatever its number of series
        self.devices: dict[str, dict[str, Device]] = {}
        self.of_device: dict[tuple[str, str, str], Series] = {}  # host, UUID, metric
        # worker, metric → device → series
        self.of_worker: dict[tuple[int, str], dict[int, Series]] = {}
        for one in found["series"]:
            self._take(one)

    def _take(self, one: dict[str, Any]) -> None:
        tags, metric = one["tags"], one["metric"]
        series = Series(one["t_ns"], one["values"], self.settings.interval_ms * 1_000_000)
        if metric == INSTANTS:
            self.instants[tags["host"]] = thinned(one["t_ns"], self.settings.interval_ms * 1_000_000)
        elif "worker" in tags:
            self.of_worker.setdefault((int(tags["worker"]), metric), {})[int(tags.get("device", 0))] = series
        else:
            device = Device(tags)
            self.devices.setdefault(tags["host"], {}).setdefault(device.uuid, device)
            self.of_device[tags["host"], device.uuid, metric] = series

    @property
    def workers(self) -> list[int]:
        return sorted(self.lives)

    def of(self, worker: int, identity: bool = False) -> Iterator[list[Any]]:
        """Yields the rows of a worker in the order of their times."""
        lives = self.lives[worker]
        for place_of_life, life in enumerate(lives):
            devices = devices_of(life, list(self.devices.get(life.host, {}).values()), self.settings.own_gpus)
            running = Running(self.tasks.get((worker, place_of_life), []))
            for instant_ns in self._instants(life):
                place = bisect.bisect_right(self.at_ns, instant_ns) - 1
                _, job, dag = self.at[place] if place >= 0 else (0, 0, 0)
                row: list[Any] = [job, dag, round((instant_ns - self.periods[0][0]) / 1e9, 6)]
                keys = running.at(instant_ns)
                row += [self._cell(name, life, devices, keys, instant_ns) for name in self.settings.columns]
                if identity:
                    row += [life.address, life.name, life.host, life.pid]
                    row += [", ".join(device.uuid for device in devices), ", ".join(device.index for device in devices), instant_ns / 1e9]
                yield row

    def write(self, folder: str, fname: str = "worker", identity: bool = False) -> list[str]:
        """Writes a file for each worker; returns their paths."""
        os.makedirs(folder, exist_ok=True)
        written = []
        for worker in self.workers:
            path = os.path.join(folder, f"{fname}_{worker}.csv")
            _csv.write(path, [*self.columns, *(IDENTITY if identity else ())], self.of(worker, identity))
            written.append(path)
        return written

    def by_column(self) -> list[dict[str, list[Any]]]:
        """Returns for each worker a dictionary from columns to lists of values."""
        of_workers = [list(self.of(worker)) for worker in self.workers]
        return [{column: [row[place] for row in mine] for place, column in enumerate(self.columns)} for mine in of_workers]

    def task_extremes(self, metric: str) -> list[dict[str, Any]]:
        """Like Monitor.task_extremes()."""
        for needed in ("tasks", metric):
            if needed not in self.settings.columns:
                raise KeyError(f"{needed!r} was not tracked; there is {', '.join(self.settings.columns) or 'nothing'}")
        return list(self.extremes(metric))

    def extremes(self, metric: str) -> Iterator[dict[str, Any]]:
        """Yields for each executed task: worker, key, seconds (None: it still runs, or its worker
        died), and the metric's `min` and `max` of each device meanwhile."""
        kind, name = KINDS.get(metric, ("worker", custom_series(metric)))
        for worker in self.workers:
            of_lives = [(task, life) for place, life in enumerate(self.lives[worker]) for task in self.tasks.get((worker, place), [])]
            for (start_ns, end_ns, text), life in sorted(of_lives, key=lambda one: one[0][0]):
                devices = devices_of(life, list(self.devices.get(life.host, {}).values()), self.settings.own_gpus)
                of_gpus = [self.of_device.get((life.host, device.uuid, name)) for device in devices]
                own = self.of_worker.get((worker, name), {})
                until_ns = end_ns or life.end_ns or self.periods[-1][1]
                seen = [series.between(start_ns, until_ns) if series else [] for series in (of_gpus if kind == "gpu" else [own[device] for device in sorted(own)])]
                yield {
                    "worker": worker, "key": _keys.read(text)[0], "seconds": None if end_ns is None else (end_ns - start_ns) / 1e9,
                    "min": [min(values, default=None) for values in seen], "max": [max(values, default=None) for values in seen],
                }  # fmt: skip

    def _instants(self, life: "Life") -> Iterator[int]:
        of_host = self.instants.get(life.host, [])
        for begin_ns, end_ns in self.periods:
            first = bisect.bisect_left(of_host, max(begin_ns, life.begin_ns))
            last = bisect.bisect_right(of_host, min(end_ns, life.end_ns or end_ns))
            yield from of_host[first:last]

    def _cell(self, name: str, life: "Life", devices: list[Device], keys: list[Any], instant_ns: int) -> Any:
        kind, metric = KINDS.get(name, ("worker", custom_series(name)))
        if kind == "tasks":
            return keys
        if kind == "gpu":
            of_gpus = [self.of_device.get((life.host, device.uuid, metric)) for device in devices]
            return [None if series is None else series.at(instant_ns) for series in of_gpus]
        own = self.of_worker.get((life.worker, metric), {})
        return [own[device].at(instant_ns) for device in sorted(own)]


def thinned(instants: Sequence[int], interval_ns: int) -> list[int]:
    """Returns the first instant of each interval. The agent may sample more often for another
    monitor of the run, or for the run around the cluster."""
    return [instant for before, instant in zip([instants[0] - 1, *instants], instants) if before // interval_ns != instant // interval_ns] if instants else []


def life_of(lives: "list[Life]", start_ns: int) -> Optional[int]:
    """Returns the index of the life in which a worker began a task; None if a process from before
    these lives began it.

    A task ends with its life at the latest, because the span of a killed process stays open. The
    worker's clock stamps both the task and `joined_ns`, so they are comparable although the clocks
    of hosts differ.
    """
    return next((place for place in reversed(range(len(lives))) if lives[place].joined_ns <= start_ns), None)


class Running:
    """The executing tasks of one life, for instants in ascending order."""

    def __init__(self, tasks: list[Task]) -> None:
        self.tasks = sorted(tasks, key=lambda task: task[0])
        self.next = 0
        self.now: list[Task] = []

    def at(self, instant_ns: int) -> list[Any]:
        while self.next < len(self.tasks) and self.tasks[self.next][0] <= instant_ns:
            self.now.append(self.tasks[self.next])
            self.next += 1
        self.now = [task for task in self.now if task[1] is None or task[1] > instant_ns]
        return [key for _, _, text in self.now for key in _keys.read(text)]


def devices_of(life: "Life", devices: list[Device], own: bool) -> list[Device]:
    """Returns all devices of the host, or the worker's own one: the first in its
    CUDA_VISIBLE_DEVICES."""
    devices = sorted(devices, key=lambda device: device.order)
    first = own_gpu(life.devices) if own else None
    if first is None:
        return devices
    return [device for device in devices if first and (device.index == first if first.isdigit() else device.uuid.startswith(first))][:1]
