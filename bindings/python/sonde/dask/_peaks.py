"""Peaks of what a running monitor has recorded.

The store is asked for the highest value of each series in each stretch of time that a job had, so no point leaves it.
"""

from typing import TYPE_CHECKING, Any, Optional

from . import _csv
from ._rows import Device, at, devices_of
from ._settings import KINDS, Settings, custom_series

if TYPE_CHECKING:
    from ._scheduler import Life
    from ._store import Store

Stretch = tuple[int, int, int]  # job, first and last millisecond


def stretches(points: list[tuple[int, int, int]], periods: list[tuple[int, int]]) -> list[Stretch]:
    """When the cluster was at which job, as far as it was recorded. Samples are taken at whole milliseconds."""
    merged: list[list[int]] = []  # job, since
    for t_ns, job, _ in points:
        if not merged or merged[-1][0] != job:
            merged.append([job, t_ns])
    found = []
    for place, (job, since_ns) in enumerate(merged):
        until_ns = merged[place + 1][1] if place + 1 < len(merged) else None
        for begin_ns, end_ns in periods:
            first_ns, last_ns = max(since_ns, begin_ns), end_ns if until_ns is None else min(until_ns - 1, end_ns)
            if first_ns <= last_ns:
                found.append((job, -(-first_ns // 1_000_000), last_ns // 1_000_000))
    return found


def peaks(
    store: "Store", settings: Settings, periods: list[tuple[int, int]], lives: "list[Life]", attached_ns: int, metric: str, workers: Optional[list[int]], per_job: bool
) -> list[Any]:
    if metric not in settings.columns:
        raise KeyError(f"{metric!r} was not tracked; there is {', '.join(settings.columns) or 'nothing'}")
    kind, name = KINDS.get(metric, ("worker", custom_series(metric)))
    if kind == "tasks":
        raise ValueError("tasks has no peak: its values are no numbers")
    numbers = sorted({life.worker for life in lives})
    chosen = _csv.chosen(workers, numbers, "the cluster")
    if not periods:
        return [{} if per_job else [] for _ in chosen]
    asked = Asked(store, settings, kind, name, periods)
    when = stretches(at(store, attached_ns, periods[-1][1]), periods)
    by_worker: list[dict[int, list[Any]]] = []
    for number in chosen:
        by_job: dict[int, list[Any]] = {}
        for life in (life for life in lives if life.worker == number):
            for job, first_ms, last_ms in when:
                first_ms = max(first_ms, -(-life.begin_ns // 1_000_000))
                last_ms = min(last_ms, (life.end_ns or periods[-1][1]) // 1_000_000)
                values = asked.of(life, first_ms, last_ms) if first_ms <= last_ms else []
                if any(value is not None for value in values):
                    _csv.raise_to(by_job.setdefault(job, []), values)
        by_worker.append(by_job)
    return list(by_worker) if per_job else [_csv.over_jobs(by_job) for by_job in by_worker]


class Asked:
    """The highest values of one metric; each stretch is asked for once, of all hosts and workers together."""

    def __init__(self, store: "Store", settings: Settings, kind: str, name: str, periods: list[tuple[int, int]]) -> None:
        self.store, self.name, self.kind, self.own = store, name, kind, settings.own_gpus
        self.known: dict[tuple[int, int], dict[tuple[str, ...], Any]] = {}
        # A device that has no value in one stretch keeps its place there: which there are is asked of all the time, and of all that is tracked.
        names = {KINDS[column][1] for column in settings.columns if KINDS.get(column, ("",))[0] == "gpu"} if kind == "gpu" else {name}
        whole = store.query(periods[0][0] // 1_000_000, periods[-1][1] // 1_000_000, [(each, {"host": "*"}) for each in sorted(names)], "0all-max")
        self.tags = {_place(one["tags"]): one["tags"] for one in whole}

    def of(self, life: "Life", first_ms: int, last_ms: int) -> list[Any]:
        stretch = (first_ms, last_ms)
        if stretch not in self.known:
            # What is downsampled to one value ends before its end.
            found = self.store.query(first_ms, last_ms + 1, [(self.name, {"host": "*"})], "0all-max")
            self.known[stretch] = {_place(one["tags"]): one["values"][0] for one in found}
        if self.kind == "worker":
            mine = [place for place, tags in self.tags.items() if tags.get("worker") == str(life.worker)]
            places = sorted(mine, key=lambda place: int(self.tags[place].get("device", 0)))
        else:
            of_host = [Device(tags) for tags in self.tags.values() if tags.get("host") == life.host]
            places = [("", life.host, device.uuid) for device in devices_of(life, of_host, self.own)]
        return [self.known[stretch].get(place) for place in places]


def _place(tags: dict[str, str]) -> tuple[str, ...]:
    """What tells a series of the metric apart."""
    return (tags["worker"], tags.get("device", ""), "") if "worker" in tags else ("", tags.get("host", ""), tags.get("uuid", ""))
