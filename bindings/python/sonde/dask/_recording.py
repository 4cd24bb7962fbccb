"""The data of a cluster that has ended: rows, peaks and tasks as from its Monitor, computed from
the files alone.

The recording has the state of the Monitor as spans that the scheduler plugin writes, each with the
tag `cluster`:

    dask_recording   a period of recording; its tags `settings` (JSON) and `attached` (ns) have the
                     metrics and the interval
    dask_cleared     a call of clear_metrics(): earlier data do not count
    dask_worker      the life of a worker, with everything that its rows need
    dask_dag         a graph: open, ended, or ended with an error
"""

import json
import os
from collections.abc import Iterable
from typing import Any, Optional, Union

from .._client import Connection
from . import _csv, _report, _tables, _tasks
from ._lives import Life
from ._peaks import peaks
from ._rows import Rows, gather
from ._settings import INSTANTS, Settings
from ._store import TIMEOUT_S, Store
from ._stretches import SPAN, questions_of

RECORDING, CLEARED = "dask_recording", "dask_cleared"
FOR_EVER_NS = 9_000_000_000 * 10**9  # the year 2255, before the last time that a query accepts

Path = Union[str, "os.PathLike[str]"]


def settings_tags(settings: Settings, attached_ns: int) -> dict[str, str]:
    """Makes the tags of a dask_recording span: the state of a Monitor."""
    said = {"tracking": settings.tracking, "custom": settings.custom, "interval_ms": settings.interval_ms, "own_gpus": settings.own_gpus}
    return {"attached": str(attached_ns), "settings": json.dumps(said, separators=(",", ":"))}


class Recorded:
    """The result of Monitor.from_recording(): the methods of a Monitor that read recorded data."""

    def __init__(self, where: Path, cluster: Optional[str] = None) -> None:
        self._where = os.fspath(where)
        store = Store(Connection(self._where, None, TIMEOUT_S), None)
        self.cluster = store.cluster = self._chosen([one["tags"].get("cluster", "") for one in store.spans(RECORDING, 0, FOR_EVER_NS)], cluster)
        self._store = store
        mine = store.spans(RECORDING, 0, FOR_EVER_NS)
        self._attached_ns = max(int(one["tags"]["attached"]) for one in mine)  # the last attach()
        mine = [one for one in mine if int(one["tags"]["attached"]) == self._attached_ns]
        self.settings = Settings(cluster=self.cluster, **json.loads(mine[-1]["tags"]["settings"]))
        self._lives = [self._life(one) for one in store.spans("dask_worker", 0, FOR_EVER_NS) if one["start_ns"] >= self._attached_ns]
        self._periods = self._when(mine)

    def _chosen(self, clusters: list[str], cluster: Optional[str]) -> str:
        there = list(dict.fromkeys(clusters))
        if not there:
            raise ValueError(f"{self._where} is not a recording of a Monitor: it has no span {RECORDING}")
        if cluster is None and len(there) > 1 or cluster is not None and cluster not in there:
            raise ValueError(f"{self._where} has the clusters {', '.join(there)}: say which with cluster=")
        return there[0] if cluster is None else cluster

    def _life(self, span: dict[str, Any]) -> Life:
        tags = span["tags"]
        return Life(
            int(tags["worker"]), tags["name"], tags["address"], tags["worker_host"], int(tags["pid"]), tags.get("devices"), int(tags["joined_ns"]),
            span["start_ns"], span.get("end_ns"),
        )  # fmt: skip

    def _when(self, spans: list[dict[str, Any]]) -> list[tuple[int, int]]:
        """Returns the periods of recording. A period without an end lasts as long as the agents
        sampled."""
        cleared_ns = max((one["end_ns"] for one in self._store.spans(CLEARED, 0, FOR_EVER_NS) if one["start_ns"] >= self._attached_ns), default=0)
        last_ns = max((one["t_ns"] + 1 for one in self._store.latest(INSTANTS)), default=0)
        found = [(max(one["start_ns"], cleared_ns), one.get("end_ns", last_ns)) for one in spans]
        return [(begin, end) for begin, end in found if begin < end]

    def _rows(self) -> Rows:
        return Rows(gather(self._store, self.settings, self._periods, self._lives, self._attached_ns))

    def to_csv(self, path: Path, fname: str = "worker", identity: bool = False, clear_dir: bool = False) -> list[str]:
        """Like Monitor.to_csv()."""
        rows = self._rows()
        if clear_dir:
            _csv.clear(path, fname)
        return rows.write(os.fspath(path), fname, identity)

    def to_parquet(self, path: Path, fname: str = "worker", identity: bool = False) -> list[str]:
        """Like Monitor.to_parquet()."""
        return _tables.write_parquet(self._rows(), path, fname, identity)

    def to_arrow(self, identity: bool = False) -> Any:
        """Like Monitor.to_arrow()."""
        return _tables.whole(self._rows(), identity)

    def request_metrics(self) -> list[dict[str, list[Any]]]:
        """Like Monitor.request_metrics()."""
        return self._rows().by_column()

    def get_peaks(self, metric: str, workers: Union[int, Iterable[int], None] = None, per_job: bool = True, per_dag: bool = False) -> list[Any]:
        """Like Monitor.get_peaks()."""
        asked = [workers] if isinstance(workers, int) else None if workers is None else list(workers)
        questions: list[tuple[int, int]] = []
        if self._periods:
            first_ns, last_ns = self._periods[0][0], self._periods[-1][1]
            starts = sorted(one["start_ns"] for one in self._store.spans(SPAN, self._attached_ns, last_ns) if one["start_ns"] >= self._attached_ns)
            questions = questions_of(starts, first_ns, last_ns)
        found = peaks(self._store, self.settings, self._periods, questions, self._lives, metric, asked, per_job, per_dag)
        return _csv.known_peaks(found, metric, f"in {self._where}")

    def task_extremes(self, metric: str = "rss") -> list[dict[str, Any]]:
        """Like Monitor.task_extremes()."""
        return self._rows().task_extremes(metric)

    def _gathered(self) -> dict[str, Any]:
        return _tasks.gather(self._store, self.settings, self._periods, self._lives, self._attached_ns)

    def task_prefixes(self) -> list[dict[str, Any]]:
        """Like Monitor.task_prefixes()."""
        return _tasks.by_prefix(self._gathered()["tasks"])

    def report(self, path: Path) -> str:
        """Like Monitor.report()."""
        return _report.write(path, self._gathered(), os.path.basename(os.path.abspath(self._where)))

    def successful_jobs(self) -> list[int]:
        """Like Monitor.successful_jobs()."""
        dags = [one for one in self._store.spans("dask_dag", 0, FOR_EVER_NS) if one["start_ns"] >= self._attached_ns]
        bad = {one["tags"]["job"] for one in dags if "end_ns" not in one or one["tags"].keys() & {"error", "unfinished"}}
        return sorted({int(one["tags"]["job"]) for one in dags if one["tags"]["job"] not in bad})

    def errors(self) -> list[str]:
        """Like Monitor.errors()."""
        return self._store.errors(self._attached_ns, FOR_EVER_NS)
