"""The settings of a Monitor, in the form that it sends to the scheduler and the workers; and the
built-in metrics."""

import re
from dataclasses import dataclass, field
from typing import Any, Optional

# The name of the registered plugins. A second Monitor finds those of the first one and replaces
# them.
PLUGIN = "sonde-monitor"
# Every agent samples this metric at its full rate, so its points show the instants.
INSTANTS = "memory_used_bytes"
# A metric that marks an end, and the call that makes a worker emit it.
MARK = "dask_mark"

# The data in one row of a worker. Order and names are those of the CSV files.
#   gpu      a series of the agent for each GPU of the node
#   worker   a series that the worker emits about itself
#   tasks    the keys of the tasks that were executing at the instant
KINDS = {
    "total-mem": ("gpu", "gpu_memory_used_bytes"),
    "mem-util": ("gpu", "gpu_memory_used_percent"),
    "compute-util": ("gpu", "gpu_utilization_percent"),
    "mem-activity": ("gpu", "gpu_memory_activity_percent"),
    "tasks": ("tasks", "dask_task"),
    "cpu": ("worker", "dask_worker_cpu_percent"),
    "rss": ("worker", "dask_worker_resident_bytes"),
    "managed": ("worker", "dask_worker_managed_bytes"),
    "spilled": ("worker", "dask_worker_spilled_bytes"),
    "unmanaged": ("worker", "dask_worker_unmanaged_bytes"),
    "transfer-in": ("worker", "dask_worker_transfer_incoming_bytes"),
    "transfer-out": ("worker", "dask_worker_transfer_outgoing_bytes"),
    "transfer-in-time": ("worker", "dask_worker_transfer_incoming_seconds_total"),
    "transfer-out-time": ("worker", "dask_worker_transfer_outgoing_seconds_total"),
    "spill-time": ("worker", "dask_worker_spill_seconds_total"),
    "unspill-time": ("worker", "dask_worker_unspill_seconds_total"),
    "event-loop": ("worker", "dask_worker_event_loop_interval_seconds"),
    "gil": ("worker", "dask_worker_gil_contention_percent"),
    "network-read": ("worker", "dask_worker_network_read_bytes_per_second"),
    "network-write": ("worker", "dask_worker_network_write_bytes_per_second"),
}
JOB_TYPES = ("client", "manual")
INTERVAL_MIN_MS = 10  # the shortest interval that an agent accepts


@dataclass
class Settings:
    tracking: list[str]
    custom: list[str] = field(default_factory=list)  # names of the custom metrics
    functions: bytes = b""  # the pickled functions; only workers load them
    job_type: str = "client"
    spans: bool = False
    interval_ms: int = 200
    own_gpus: bool = False
    mem_limit: int = 0
    dump_loc: str = "temp"
    cluster: str = ""  # the tag of this cluster's series and spans: the scheduler's address
    csv: str = ""  # folder for the files that the scheduler writes at its end; "" = none

    @property
    def columns(self) -> list[str]:
        """Returns the columns of the tracked metrics, in the order of a file."""
        return [name for name in KINDS if name in self.tracking] + self.custom

    @property
    def level(self) -> int:
        """Returns the level at which the agents have to record."""
        return 3 if any(KINDS[name][0] == "gpu" for name in self.tracking) else 2


def check(tracking: Any, job_type: Any, interval_ms: Any, mem_limit: Any, custom: list[str]) -> None:
    """Checks the settings of attach(). Raises ValueError for invalid ones."""
    unknown = [name for name in tracking if name not in KINDS]
    if unknown:
        raise ValueError(f"unknown metric {unknown[0]!r}; there is {', '.join(KINDS)}, and custom_metrics")
    if job_type not in JOB_TYPES:
        raise ValueError(f"job_type {job_type!r}; there is {' and '.join(repr(known) for known in JOB_TYPES)}")
    if not isinstance(interval_ms, (int, float)) or not INTERVAL_MIN_MS <= interval_ms <= 3_600_000:
        raise ValueError(f"polling_interval {interval_ms!r}: milliseconds, from {INTERVAL_MIN_MS} to 3600000")
    if not isinstance(mem_limit, int) or mem_limit < 0:
        raise ValueError(f"mem_limit {mem_limit!r}: a number of measurements, 0 for none")
    series = [custom_series(name) for name in custom]
    twice = [name for name in custom if series.count(custom_series(name)) > 1 or name in KINDS or name in ("job", "dag", "timestamp")]
    if twice:
        raise ValueError(f"custom metric {twice[0]!r}: another column has this name")


def custom_series(name: str) -> str:
    """Returns the name of a custom metric's series in the store, where names have no blanks."""
    return "dask_custom_" + re.sub(r"[^\w./:-]", "_", name)


def own_gpu(visible: Optional[str]) -> Optional[str]:
    """Returns the first entry of CUDA_VISIBLE_DEVICES, an index or a UUID. None if the variable is
    not set, "" if no GPU is visible."""
    if visible is None:
        return None
    first = visible.split(",")[0].strip()
    return "" if first in ("-1", "NoDevFiles", "void") else first
