"""Records what the GPUs and workers of a Dask cluster do, by job and dag.

    from sonde.dask import Monitor

    monitor = Monitor(client)
    monitor.attach(tracking=["mem-util", "compute-util"])
    monitor.start()

How it works. Dask's processes sample nothing. On the scheduler's host, the scheduler plugin starts
sonde (`sonde run` around a command that waits), or uses the run around the cluster. The agent of
that run samples GPUs at the polling interval, whatever Python does. Plugins only emit events,
through libsonde's shared memory, so the events of a killed worker are kept:

    client ──▶ scheduler plugin ── dask_job, dask_dag (points and spans), ─┐
                 │                 dask_worker, dask_stretch (spans)       ├─▶ agent ─▶ HOST.sonde
                 │ numbers of workers                                      │              ▼
               worker plugins ──── dask_task (spans), custom metrics, ─────┘            HTTP
                                   metrics of the worker

Rows (`to_csv`) and peaks are computed afterwards from the store, for workers that have ended as for
those that run. Grafana, `sonde query` and recordings show the same data.

    _scheduler   the plugin of the scheduler; it has all state
    _worker      the plugin of the workers
    _monitor     the class for clients
    _jobs        the current job and dag of the cluster; independent of Dask
    _stretches   the same as spans, for queries of peaks
    _lives       a worker from its start to its end
    _figures     Dask's own metrics of a worker
    _store       queries over HTTP
    _rows        rows from the results; _peaks, _tasks: peaks, tasks and sums by prefix
    _csv, _keys  CSV files
    _recording   the data of a cluster that has ended
    _report      the HTML report of the tasks (report.html)
"""

import os
from typing import Any, Optional, Union

from ._handles import custom_metric
from ._monitor import Monitor

__all__ = ["Monitor", "custom_metric", "dask_setup", "report"]


def report(recording: "Union[str, os.PathLike[str]]", path: "Union[str, os.PathLike[str]]", cluster: Optional[str] = None) -> str:
    """Writes the report of a cluster that has ended, as one HTML file, and returns its path.
    `recording` is a path or the id of a job."""
    return Monitor.from_recording(recording, cluster).report(path)


async def dask_setup(server: Any) -> None:
    """Implements ``dask scheduler --preload sonde.dask``: attaches and starts a monitor. Its
    options are Dask's configuration: ``sonde.tracking``, ``sonde.polling-interval``,
    ``sonde.job-type``, ``sonde.csv`` (a folder for the files at the end), as in
    ``DASK_SONDE__TRACKING='["mem-util"]'``. On workers it does nothing."""
    from ._scheduler import preload

    await preload(server)
