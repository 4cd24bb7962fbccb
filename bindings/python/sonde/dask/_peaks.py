"""Peaks of a running monitor, from one query per span, so that no point leaves the store.

    0all-max of a metric over spans dask_stretch
        ──▶ for each series, job and dag: the highest value of each stretch

This module assigns the results to workers: a GPU's values to the workers that lived on its host at
that time. `_stretches` explains why each value belongs to a worker as a whole or not at all.
"""

from typing import TYPE_CHECKING, Any, Optional

from . import _csv
from ._rows import Device, devices_of
from ._settings import KINDS, Settings, custom_series
from ._stretches import SPAN

if TYPE_CHECKING:
    from ._lives import Life
    from ._store import Store

Place = tuple[str, str, str]  # a series: worker, host, device
Value = tuple[int, int, int, Optional[float]]  # start, job, dag, highest value


def peaks(
    store: "Store", settings: Settings, periods: list[tuple[int, int]], questions: list[tuple[int, int]], lives: "list[Life]", metric: str, workers: Optional[list[int]],
    per_job: bool, per_dag: bool,
) -> list[Any]:  # fmt: skip
    """Like Monitor.get_peaks(). `periods` are the times of recording. `questions` divides them into
    queries, each with its first and last millisecond."""
    if metric not in settings.columns:
        raise KeyError(f"{metric!r} was not tracked; there is {', '.join(settings.columns) or 'nothing'}")
    kind, name = KINDS.get(metric, ("worker", custom_series(metric)))
    if kind == "tasks":
        raise ValueError("tasks has no peak: its values are not numbers")
    numbers = sorted({life.worker for life in lives})
    chosen = _csv.chosen(workers, numbers, "the cluster")
    if not periods or not chosen:
        return [{} if per_job or per_dag else [] for _ in chosen]
    mine = [life for life in lives if life.worker in chosen]
    hosts = {"host": "|".join(sorted({life.host for life in mine}))}
    if kind == "worker":
        hosts["cluster"] = settings.cluster
    series = _series(store, settings, kind, name, periods, hosts)
    values = _values(store, name, questions, hosts)
    by_worker: list[dict[Any, list[Any]]] = [{} for _ in chosen]
    for number, found in zip(chosen, by_worker):
        for life in sorted((life for life in mine if life.worker == number), key=lambda life: life.begin_ns):
            places = _places(life, series, kind, settings.own_gpus)
            _take(found, [values.get(place, []) for place in places], life, periods, per_dag)
    # a restarted worker may have other devices
    by_worker = [_csv.with_values(found, max(map(len, found.values()), default=0)) for found in by_worker]
    return list(by_worker) if per_job or per_dag else [_csv.over_jobs(found) for found in by_worker]


def _place(tags: dict[str, str]) -> Place:
    return (tags["worker"], "", tags.get("device", "")) if "worker" in tags else ("", tags.get("host", ""), tags.get("uuid", ""))


def _series(store: "Store", settings: Settings, kind: str, name: str, periods: list[tuple[int, int]], hosts: dict[str, str]) -> dict[Place, dict[str, str]]:
    """Returns the tags of all series. A device without a value in some job keeps its place there,
    because the query for devices covers the whole time."""
    names = {KINDS[column][1] for column in settings.columns if KINDS.get(column, ("",))[0] == "gpu"} if kind == "gpu" else {name}
    whole = store.query(periods[0][0] // 1_000_000, periods[-1][1] // 1_000_000 + 1, [(each, hosts) for each in sorted(names)], "0all-max")
    return {_place(one["tags"]): one["tags"] for one in whole}


def _places(life: "Life", series: dict[Place, dict[str, str]], kind: str, own_gpus: bool) -> list[Place]:
    """Returns the series of a worker, in the order of its devices."""
    if kind == "worker":
        return sorted((place for place in series if place[0] == str(life.worker)), key=lambda place: int(place[2] or 0))
    of_host = [Device(tags) for place, tags in series.items() if place[1] == life.host]
    return [("", life.host, device.uuid) for device in devices_of(life, of_host, own_gpus)]


def _values(store: "Store", name: str, questions: list[tuple[int, int]], hosts: dict[str, str]) -> dict[Place, list[Value]]:
    found: dict[Place, list[Value]] = {}
    for first_ms, last_ms in questions:
        for one in store.query(first_ms, last_ms, [(name, hosts)], "0all-max", SPAN):
            job, dag = int(one["tags"]["job"]), int(one["tags"]["dag"])
            found.setdefault(_place(one["tags"]), []).extend((t_ns, job, dag, value) for t_ns, value in zip(one["t_ns"], one["values"]))
    return found


def _take(found: dict[Any, list[Any]], devices: list[list[Value]], life: "Life", periods: list[tuple[int, int]], per_dag: bool) -> None:
    """Raises the peaks by job or by (job, dag) to the values of those stretches in which the worker
    lived and recorded."""
    of_all = [(t_ns, job, dag, device, value) for device, values in enumerate(devices) for t_ns, job, dag, value in values]
    for t_ns, job, dag, device, value in sorted(of_all, key=lambda one: one[:4]):
        if life.begin_ns <= t_ns < (life.end_ns or t_ns + 1) and any(begin <= t_ns < end for begin, end in periods):
            peak = found.setdefault((job, dag) if per_dag else job, [None] * len(devices))
            _csv.raise_to(peak, [*[None] * device, value, *[None] * (len(devices) - device - 1)])
