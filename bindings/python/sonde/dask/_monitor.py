"""The Monitor, the class for clients. Its state is on the scheduler (`_scheduler`), so the Monitors
of all clients of a cluster are equivalent."""

import os
import pickle
import warnings
from collections.abc import Coroutine, Iterable, Sequence
from types import TracebackType
from typing import Any, Callable, Optional, Union

from . import _csv, _report, _tables, _tasks
from ._recording import Recorded
from ._rows import Rows
from ._settings import Settings, check

OF_ENDED = "of a cluster that has ended, `sonde query --list` finds the recording, and Monitor.from_recording() reads it"

Path = Union[str, "os.PathLike[str]"]


class Monitor:
    """Records what the GPUs and workers of a Dask cluster do, by job and dag.

        monitor = Monitor(client)
        monitor.attach(tracking=["mem-util", "compute-util"])
        monitor.start()
        ...                                   # any client may submit; this one may leave
        monitor.stop()
        monitor.to_csv("path/to/folder")

    With an asynchronous client, await every method. ``with Monitor(client, tracking=[...]) as m:``
    attaches and starts, and stops at the end.
    """

    def __init__(self, client: Any, tracking: Optional[Sequence[str]] = None, **options: Any) -> None:
        """`tracking` and `options` are passed to attach() by ``with``."""
        self.client = client
        self._tracking, self._options = tracking, options

    # ---- recording

    def attach(
        self,
        tracking: Sequence[str] = (),
        custom_metrics: Sequence[Callable[[Any, Any], Any]] = (),
        job_type: str = "client",
        polling_interval: float = 200,
        mem_limit: int = 0,
        dump_loc: str = "temp",
        own_gpus: bool = False,
        spans: bool = False,
    ) -> Any:
        """Prepares the cluster: sonde's agents, and the plugins of scheduler and workers, including
        later workers. Replaces an earlier attach().

        `polling_interval` is in milliseconds. The agents write recorded data to files at once; with
        `mem_limit` these files are in `dump_loc`. With `own_gpus`, the rows of a worker have the
        GPU that it computes on (the first of CUDA_VISIBLE_DEVICES) instead of all GPUs of its node.
        With `spans`, graphs made in a `distributed.span` belong to the job of that span.
        """
        _check_list(tracking)
        names = [_metric_name(function) for function in custom_metrics]
        check(tracking, job_type, polling_interval, mem_limit, names)
        settings = Settings(
            list(dict.fromkeys(tracking)), names, _pickled(custom_metrics), job_type, spans, round(polling_interval), own_gpus, mem_limit, os.fspath(dump_loc)
        )
        return self._run(self._on_scheduler, "attach", settings=settings)

    def start(self, tracking: Optional[Sequence[str]] = None) -> Any:
        """Starts recording. `tracking` replaces that of attach(); if it differs, the recording
        begins anew."""
        if tracking is None:
            return self._ask("record")
        _check_list(tracking)
        return self._run(self._on_scheduler, "start", tracking=list(dict.fromkeys(tracking)))

    def stop(self, force: bool = False) -> Any:
        """Stops recording. The recorded data stay, and start() may be called again. stop() does not
        wait for tasks, whatever `force` is."""
        return self._ask("stop")

    def shutdown(self) -> Any:
        """Removes the monitor from the cluster. sonde keeps the recording: `sonde query --list`
        finds it."""
        return self._run(self._on_scheduler, "remove")

    def new_job(self, job: Optional[int] = None) -> Any:
        """Begins the next job, or the job of this number; returns its number. For
        ``job_type='manual'``."""
        return self._ask("new_job", job=job)

    def clear_metrics(self) -> Any:
        """Forgets the data recorded so far."""
        return self._ask("clear")

    # ---- recorded data

    def to_csv(self, path: Path, fname: str = "worker", identity: bool = False, clear_dir: bool = False) -> Any:
        """Writes a file {path}/{fname}_{N}.csv for each worker, including those that have ended,
        and returns the paths. `clear_dir` first removes the folder's files of this name. `identity`
        adds the columns worker-address, worker-name, host, pid, gpu-uuid, gpu-index and time
        (seconds since the epoch)."""
        return self._run(self._to_csv, path, fname, identity, clear_dir)

    async def _to_csv(self, path: Path, fname: str, identity: bool, clear_dir: bool) -> list[str]:
        rows = await self._recorded()
        if clear_dir:
            _csv.clear(path, fname)
        return rows.write(os.fspath(path), fname, identity)

    def request_metrics(self) -> Any:
        """Returns the rows in memory: for each worker, in the order of the files, a dictionary from
        columns to lists of values."""
        return self._run(self._request_metrics)

    async def _request_metrics(self) -> list[dict[str, list[Any]]]:
        return (await self._recorded()).by_column()

    def to_parquet(self, path: Path, fname: str = "worker", identity: bool = False) -> Any:
        """Like to_csv(), but writes Parquet files {path}/{fname}_{N}.parquet, whose columns have
        types. Needs pyarrow."""
        return self._run(self._to_parquet, path, fname, identity)

    async def _to_parquet(self, path: Path, fname: str, identity: bool) -> list[str]:
        return _tables.write_parquet(await self._recorded(), path, fname, identity)

    def to_arrow(self, identity: bool = False) -> Any:
        """Returns the rows of all workers as one pyarrow.Table, with the column `worker` in front.
        Needs pyarrow."""
        return self._run(self._to_arrow, identity)

    async def _to_arrow(self, identity: bool) -> Any:
        return _tables.whole(await self._recorded(), identity)

    async def _recorded(self) -> Rows:
        return Rows(await self._on_scheduler("ask", method="recorded", arguments={}))

    def get_peaks(self, metric: str, workers: Union[int, Iterable[int], None] = None, per_job: bool = True, per_dag: bool = False) -> Any:
        """Returns the highest values: for each worker, in the order of the request, {job: [value of
        each device]}; with `per_dag` {(job, dag): [value of each device]}; without `per_job` [value
        of each device]."""
        asked = [workers] if isinstance(workers, int) else None if workers is None else list(workers)
        return self._run(self._get_peaks, metric, asked, per_job, per_dag)

    async def _get_peaks(self, metric: str, workers: Optional[list[int]], per_job: bool, per_dag: bool) -> list[Any]:
        found = await self._on_scheduler("ask", method="peaks", arguments={"metric": metric, "workers": workers, "per_job": per_job, "per_dag": per_dag})
        return _csv.known_peaks(found, metric, "in this recording")

    @staticmethod
    def peaks_from_csv(
        csv_dir: Path, metric: str, workers: Union[int, Iterable[int], None] = None, per_job: bool = True, fname: Optional[str] = None, per_dag: bool = False
    ) -> list[Any]:
        """Like get_peaks(), from the files that to_csv() wrote. `fname` is required if the folder
        has files of several names."""
        return _csv.peaks_from_csv(csv_dir, metric, workers, per_job, fname, per_dag)

    @staticmethod
    def from_recording(path: Path, cluster: Optional[str] = None) -> Recorded:
        """Opens the recording of a cluster that has ended (a path, or the id of a job). The result
        returns files, peaks and tasks like its Monitor. `cluster`, the address of the scheduler, is
        required if several clusters shared the job."""
        return Recorded(path, cluster)

    def task_extremes(self, metric: str = "rss") -> Any:
        """Returns for each executed task, in the order of workers and times, a dictionary of
        worker, key, seconds, and the lists min and max with the metric's lowest and highest value
        of each device meanwhile. `tasks` and the metric have to be tracked (else KeyError)."""
        return self._run(self._task_extremes, metric)

    async def _task_extremes(self, metric: str) -> list[dict[str, Any]]:
        return (await self._recorded()).task_extremes(metric)

    def task_prefixes(self) -> Any:
        """Returns a dictionary for each prefix of task keys, the one with the most time first:
        prefix, count, seconds (their sum), mean, p95, nbytes (of all results), errors and
        unfinished (tasks without an end of their own, which the times leave out). Tasks need not be
        tracked."""
        return self._run(self._task_prefixes)

    async def _task_prefixes(self) -> list[dict[str, Any]]:
        return _tasks.by_prefix((await self._on_scheduler("ask", method="tasks", arguments={}))["tasks"])

    def report(self, path: Path) -> Any:
        """Writes a self-contained HTML file with the tasks of each worker's threads over time and a
        flame graph. Returns its path."""
        return self._run(self._report, path)

    async def _report(self, path: Path) -> str:
        return _report.write(path, await self._on_scheduler("ask", method="tasks", arguments={}), (await self._on_scheduler("ask", method="where", arguments={}))["job"])

    def successful_jobs(self) -> Any:
        """Returns the numbers of the jobs whose dags have all ended without an error."""
        return self._ask("successful_jobs")

    def errors(self) -> Any:
        """Returns the errors of custom metrics, each once per worker."""
        return self._ask("errors")

    def where(self) -> Any:
        """Returns the address of sonde for this cluster: url, job (as in `sonde query --job`),
        token_file on the scheduler's host."""
        return self._ask("where")

    # ---- calls of the scheduler

    def __enter__(self) -> "Monitor":
        self._attach_for_with()
        self.start()
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.stop()

    async def __aenter__(self) -> "Monitor":
        await self._attach_for_with()
        await self.start()
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        await self.stop()

    def _attach_for_with(self) -> Any:
        if self._tracking is None:
            raise ValueError("with Monitor(client, tracking=[...]): tracking is missing")
        return self.attach(self._tracking, **self._options)

    def _ask(self, method: str, **arguments: Any) -> Any:
        return self._run(self._on_scheduler, "ask", method=method, arguments=arguments)

    def _run(self, function: Callable[..., Coroutine[Any, Any, Any]], *arguments: Any, **keywords: Any) -> Any:
        """Runs a coroutine function on the client's event loop. Returns an awaitable for an
        asynchronous client, else the result."""
        if self.client.status in ("closing", "closed"):
            raise RuntimeError(f"the client of this Monitor is closed: make a Monitor(Client(address)); {OF_ENDED}")
        return self.client.sync(function, *arguments, **keywords)

    async def _on_scheduler(self, function: str, **keywords: Any) -> Any:
        from . import _scheduler  # needs Dask; reading files does not

        try:
            answer = await self.client.run_on_scheduler(getattr(_scheduler, function), **keywords)
        except ModuleNotFoundError as error:
            if error.name and error.name.split(".")[0] == "sonde":
                raise RuntimeError("sonde is not installed where the scheduler runs (pip install sonde)") from None
            raise
        except OSError as error:  # Dask's CommClosedError is one
            address = getattr(self.client.scheduler, "address", None) or "its address"
            raise RuntimeError(f"the cluster of this Monitor does not answer at {address} ({error}): start it again; {OF_ENDED}") from error
        if isinstance(answer, Warning):
            warnings.warn(answer, stacklevel=2)
            return None
        if isinstance(answer, Exception):
            raise answer
        return answer


def _check_list(tracking: Any) -> None:
    if isinstance(tracking, str):
        raise ValueError("tracking is a list of names")


def _metric_name(function: Any) -> str:
    name = getattr(function, "metric_name", None)
    if not isinstance(name, str):
        raise ValueError(f"{function!r} is not a custom metric: decorate it with @custom_metric('name')")
    return name


def _pickled(functions: Sequence[Any]) -> bytes:
    """Pickles functions by value if their module is not importable on workers."""
    if not functions:
        return b""
    from distributed.protocol.pickle import dumps  # type: ignore[import]

    data: bytes = dumps(list(functions))
    pickle.loads(data)
    return data
