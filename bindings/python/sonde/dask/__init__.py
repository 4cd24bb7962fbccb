"""What a Dask cluster's workers and GPUs are doing, by job and dag.

    from sonde.dask import Monitor

    monitor = Monitor(client)
    monitor.attach(tracking=["mem-util", "compute-util"])
    monitor.start()

How it works. Nothing is sampled by Dask's processes: on the scheduler's host the scheduler plugin
starts sonde (one `sonde run` around a command that waits; the run around the cluster where there is
one), whose agent samples GPUs at the polling interval whatever Python does. Plugins only say what
happens:

    client ──run_on_scheduler──▶ scheduler plugin ── dask_job, dask_dag (spans; points where one begins), dask_worker, dask_stretch ─┐
                                   │  who is who                                                                                     ├─▶ agent ─▶ HOST.sonde ─▶ HTTP
                                 worker plugins ──── dask_task (spans), custom metrics, the worker's own figures ────────────────────┘

Through libsonde's shared memory, so what a worker said before it was killed is there. Rows
(`to_csv`) and peaks are made after the fact, from the store: for workers that are gone as for those
that live, and the same data are what Grafana, `sonde query` and recordings show.

    _jobs        which job and dag the cluster is at; knows nothing of Dask          _stretches   the same as spans that peaks are asked by
    _scheduler   the scheduler's plugin: owns all state        _worker   the workers' plugin
    _store       questions over HTTP      _rows, _peaks   what is made of the answers
    _csv, _keys  the files                _monitor        what clients hold
    _lives       a worker's coming and going                  _recording      the same of a cluster that has ended
    _tasks       the tasks, and sums of them by prefix        _report         the HTML file of them (report.html)
    _figures     what Dask says of a worker
"""

import os
from typing import Any, Optional, Union

from ._handles import custom_metric
from ._monitor import Monitor

__all__ = ["Monitor", "custom_metric", "dask_setup", "report"]


def report(recording: "Union[str, os.PathLike[str]]", path: "Union[str, os.PathLike[str]]", cluster: Optional[str] = None) -> str:
    """Writes the report of a cluster that has ended: one HTML file. `recording` is a path or the id
    of a job. Its path."""
    return Monitor.from_recording(recording, cluster).report(path)


async def dask_setup(server: Any) -> None:
    """For ``dask scheduler --preload sonde.dask``: attaches and starts a monitor at once. What it
    tracks is Dask's configuration: ``sonde.tracking``, ``sonde.polling-interval``,
    ``sonde.job-type``, ``sonde.csv`` (a folder for the files at the end), as in
    ``DASK_SONDE__TRACKING='["mem-util"]'``. Workers have nothing to do."""
    from ._scheduler import preload

    await preload(server)
