"""The tasks of a cluster: the worker, times and result of each; sums by prefix.

    dask_task   a span from the start of a task's execution to its end, with the tags worker, key,
                and nbytes (of its result) or error
    any other   spans that the task's own code opens; their parent is its dask_task, or each other

`gather` queries the store; the rest works on its result alone. A task counts as recorded if a part
of it lies in a period of recording.
"""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from . import _keys
from ._rows import at, life_of

if TYPE_CHECKING:
    from ._lives import Life
    from ._settings import Settings
    from ._store import Store

SPAN = "dask_task"
OWN = frozenset((SPAN, "dask_job", "dask_dag", "dask_stretch", "dask_worker", "dask_recording", "dask_cleared"))


class Task(NamedTuple):
    worker: int
    key: str  # as written in a file
    start_ns: int
    end_ns: int  # that of its worker or of the recording if the task has no end of its own
    finished: bool
    failed: bool
    nbytes: Optional[int]  # of its result; None if it has no result, or Dask does not know the size
    id: int


class Inner(NamedTuple):
    """A span that the code of a task opened."""

    task: int  # index of the task
    parent: int  # index of the span around it; -1: the task itself
    name: str
    start_ns: int
    end_ns: int
    tags: dict[str, str]


def gather(store: "Store", settings: "Settings", periods: list[tuple[int, int]], lives: "list[Life]", attached_ns: int) -> dict[str, Any]:
    """Returns all recorded tasks in the order of their starts, and the spans within them, as plain
    lists and dictionaries."""
    found: dict[str, Any] = {"cluster": settings.cluster, "periods": periods, "lives": lives, "at": [], "tasks": [], "inner": []}
    if not periods:
        return found
    last_ns = periods[-1][1]
    found["at"] = at(store, settings.cluster, attached_ns, last_ns)
    spans = store.all_spans(attached_ns, last_ns)
    by_worker: "dict[int, list[Life]]" = {}
    for life in lives:
        by_worker.setdefault(life.worker, []).append(life)
    mine = (one for one in spans if one["name"] == SPAN and one["tags"].get("cluster") == settings.cluster)
    tasks = [task for task in (task_of(one, by_worker, last_ns) for one in mine) if task and _recorded(task, periods)]
    found["tasks"] = sorted(tasks, key=lambda task: int(task.start_ns))
    found["inner"] = inner_of(spans, found["tasks"])
    return found


def task_of(span: dict[str, Any], lives: "dict[int, list[Life]]", last_ns: int) -> Optional[Task]:
    """Returns the task of a span; None if a process from before these lives began it."""
    tags = span["tags"]
    of_worker = lives.get(int(tags["worker"]), [])
    place = life_of(of_worker, span["start_ns"])
    if place is None:
        return None
    finished = "end_ns" in span and "unfinished" not in tags
    end_ns = span["end_ns"] if finished else min(one for one in (span.get("end_ns"), of_worker[place].end_ns, last_ns) if one)
    nbytes = tags.get("nbytes")
    return Task(
        int(tags["worker"]), tags["key"], span["start_ns"], max(end_ns, span["start_ns"]), finished, "error" in tags, None if nbytes is None else int(nbytes), span["id"]
    )  # fmt: skip


def _recorded(task: Task, periods: Sequence[tuple[int, int]]) -> bool:
    return any(task.start_ns < end and task.end_ns >= begin for begin, end in periods)


def inner_of(spans: Iterable[dict[str, Any]], tasks: Sequence[Task]) -> list[Inner]:
    """Returns the spans within these tasks, each after its parent. A span may outlast its task; it
    is cut off at the end of the task."""
    of_task = {task.id: place for place, task in enumerate(tasks)}
    places: dict[int, tuple[int, int]] = {}  # span → its task, its own index
    found: list[Inner] = []
    left = sorted((one for one in spans if one["parent"] and one["name"] not in OWN), key=lambda one: int(one["start_ns"]))
    while left:
        later = []
        for one in left:
            task, parent = (of_task[one["parent"]], -1) if one["parent"] in of_task else places.get(one["parent"], (-1, -1))
            if task < 0:
                later.append(one)
                continue
            places[one["id"]] = task, len(found)
            end_ns = min(one.get("end_ns", tasks[task].end_ns), tasks[task].end_ns)
            found.append(Inner(task, parent, one["name"], one["start_ns"], max(end_ns, one["start_ns"]), one["tags"]))
        if len(later) == len(left):
            break  # its parent belongs to another cluster, or to no task
        left = later
    return found


def by_prefix(tasks: Iterable[Task]) -> list[dict[str, Any]]:
    """Returns the rows of Monitor.task_prefixes()."""
    of: dict[str, list[Task]] = {}
    for task in tasks:
        of.setdefault(_keys.prefix(_keys.read(task.key)[0]), []).append(task)
    rows = [_row(prefix, mine) for prefix, mine in of.items()]
    return sorted(rows, key=lambda row: (-row["seconds"], row["prefix"]))


def _row(prefix: str, tasks: Sequence[Task]) -> dict[str, Any]:
    seconds = sorted((task.end_ns - task.start_ns) / 1e9 for task in tasks if task.finished)
    sizes = [task.nbytes for task in tasks if task.nbytes is not None]
    count = len(seconds)
    return {
        "prefix": prefix, "count": len(tasks), "seconds": math.fsum(seconds), "mean": math.fsum(seconds) / count if count else None,
        "p95": seconds[math.ceil(count * 0.95) - 1] if count else None, "nbytes": sum(sizes) if sizes else None,
        "errors": sum(task.failed for task in tasks), "unfinished": len(tasks) - count,
    }  # fmt: skip
