"""The tasks of a cluster as one self-contained HTML file: a stream with a lane for each thread of
each worker, a flame graph, sums by prefix.

web/report.py makes the page `report.html` from web/src. This module inserts the data as compressed
JSON in base64, so that no name in the data can break out of it.

    times       whole microseconds; the start of a task is relative to the previous one
    size        some 30 bytes a task, most of them its key: 3 MB for 100,000 tasks
"""

import base64
import gzip
import json
import os
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

from . import _csv, _keys
from ._tasks import Inner, Task, by_prefix

if TYPE_CHECKING:
    from ._lives import Life

PAGE = pathlib.Path(__file__).with_name("report.html")
PLACE = 'id="data">DATA<'  # the position of the data in the page
FAILED, UNFINISHED = 1, 2

Path = Union[str, "os.PathLike[str]"]


def write(path: Path, found: dict[str, Any], title: str) -> str:
    """Writes the report from the results of `_tasks.gather`; returns its path."""
    text = json.dumps(packed(found, title), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    data = base64.b64encode(gzip.compress(text.encode(errors="replace"), 6, mtime=0)).decode()
    before, after = PAGE.read_text(encoding="utf-8").split(PLACE)
    with _csv.replaced(path) as unfinished:
        pathlib.Path(unfinished).write_text(f"{before}{PLACE[:-5]}{data}<{after}", encoding="utf-8")
    return os.fspath(path)


def packed(found: dict[str, Any], title: str) -> dict[str, Any]:
    """Returns the data in the form that web/src/report_data.ts reads."""
    tasks: Sequence[Task] = found["tasks"]
    periods: list[tuple[int, int]] = found["periods"]
    origin_ns = min([begin for begin, _ in periods] + [task.start_ns for task in tasks], default=0)
    prefixes = by_prefix(tasks)
    of_tasks = _columns(tasks, {row["prefix"]: place for place, row in enumerate(prefixes)}, origin_ns)

    def since(time_ns: int) -> int:
        return (time_ns - origin_ns) // 1000

    return {
        "title": title, "cluster": found["cluster"], "origin_ms": origin_ns / 1e6,
        "periods": [[since(begin), since(end)] for begin, end in periods],
        "workers": _workers(found["lives"]),
        "at": [[since(t_ns), job, dag] for t_ns, job, dag in found["at"]],
        "prefixes": prefixes, "tasks": of_tasks, "inner": _inner(found["inner"], tasks),
    }  # fmt: skip


def _workers(lives: "Sequence[Life]") -> list[dict[str, Any]]:
    """Describes the workers, each with the name and host of its last life."""
    last = {life.worker: {"worker": life.worker, "name": life.name, "host": life.host} for life in lives}
    return [last[worker] for worker in sorted(last)]


def _columns(tasks: Sequence[Task], places: dict[str, int], origin_ns: int) -> dict[str, list[Any]]:
    """Rounds the end of a task like its start, so that tasks of one thread do not overlap."""
    starts = [(task.start_ns - origin_ns) // 1000 for task in tasks]
    return {
        "start": [start - before for before, start in zip([0, *starts], starts)],
        "duration": [(task.end_ns - origin_ns) // 1000 - start for task, start in zip(tasks, starts)],
        "worker": [task.worker for task in tasks],
        "prefix": [places[_keys.prefix(_keys.read(task.key)[0])] for task in tasks],
        "key": [task.key for task in tasks],
        "nbytes": [task.nbytes for task in tasks],
        "state": [FAILED if task.failed else 0 if task.finished else UNFINISHED for task in tasks],
    }  # fmt: skip


def _inner(spans: Sequence[Inner], tasks: Sequence[Task]) -> dict[str, list[Any]]:
    return {
        "task": [span.task for span in spans],
        "parent": [span.parent for span in spans],
        "name": [span.name for span in spans],
        "start": [(span.start_ns - tasks[span.task].start_ns) // 1000 for span in spans],
        "duration": [(span.end_ns - span.start_ns) // 1000 for span in spans],
        "tags": [{key: value for key, value in span.tags.items() if key != "host"} for span in spans],
    }  # fmt: skip
