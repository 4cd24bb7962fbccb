"""Dask's own metrics of a worker: memory, transfers, spilling, its event loop. A thread of the
worker reads them for each instant.

Some of them are in different places in different versions of Dask, or do not exist. A metric that a
version lacks is None: missing, never 0.

    transfers    worker.transfer_*_log, a record of each finished transfer; the log is short, so
                 the sums are updated at each look
    spilling     2023.4 and later   data.cumulative_metrics["disk-write", "seconds"]
                 before             data.slow.metrics.write_time_total, in one or two wrappings
"""

from collections import deque
from typing import Any, Optional

Value = Optional[float]


class TransferTime:
    """Sums the seconds of transfers since this object was made, from a log whose newest record is
    the last. Concurrent transfers count each."""

    def __init__(self, log: "Optional[deque[dict[str, Any]]]") -> None:
        self.log = log
        self.seconds = 0.0
        # the newest record that the sum contains
        self.last: object = log[-1] if log else None
        self.lost = False

    def look(self) -> Value:
        """Returns the sum. None without a log, and after the log has dropped records since the last
        call, because the sum would be too small."""
        if self.log is None:
            return None
        records = list(self.log)  # one copy, because the event loop appends to the log
        fresh = []
        for record in reversed(records):
            if record is self.last:
                break
            fresh.append(record)
        else:
            self.lost = self.lost or len(records) == self.log.maxlen
        self.seconds += sum(record["duration"] for record in fresh)
        if records:
            self.last = records[-1]
        return None if self.lost else self.seconds


def spill_seconds(data: Any) -> tuple[Value, Value]:
    """Returns the seconds spent writing to disk and reading from it. None if this worker does not
    spill."""
    sums = getattr(data, "cumulative_metrics", None)
    if sums is not None:
        return sums.get(("disk-write", "seconds"), 0.0), sums.get(("disk-read", "seconds"), 0.0)
    slow = getattr(data, "slow", None)
    while slow is not None and not hasattr(slow, "metrics"):
        slow = getattr(slow, "data", None)  # a cache around the store
    return (None, None) if slow is None else (slow.metrics.write_time_total, slow.metrics.read_time_total)


def _since(now: Value, before: Value) -> Value:
    return None if now is None or before is None else now - before


class Figures:
    """The metrics of one worker. `__call__` returns the value of each metric in `names`."""

    names = (
        "managed", "spilled", "unmanaged", "transfer-in", "transfer-out", "transfer-in-time", "transfer-out-time", "spill-time", "unspill-time", "event-loop", "gil",
        "network-read", "network-write",
    )  # fmt: skip

    def __init__(self, worker: Any) -> None:
        self.worker = worker
        self.incoming, self.outgoing = (TransferTime(getattr(worker, name, None)) for name in ("transfer_incoming_log", "transfer_outgoing_log"))
        self.spilled_before = spill_seconds(worker.data)

    def __call__(self) -> tuple[Value, ...]:
        worker = self.worker
        monitor = worker.monitor.recent() if worker.monitor.count else {}
        # Memory that the spilled data would take, which state.nbytes includes, and their size on
        # disk. None on a worker that does not spill.
        of_memory, on_disk = getattr(worker.data, "spilled_total", (0, 0))
        managed = max(0, worker.state.nbytes - of_memory)
        unmanaged = max(0, worker.monitor.proc.memory_info().rss - managed)
        contention = monitor.get("gil_contention")  # a fraction; only if gilknocker is installed
        return (
            managed, on_disk, unmanaged, worker.state.transfer_incoming_bytes, worker.transfer_outgoing_bytes,
            self.incoming.look(), self.outgoing.look(), *map(_since, spill_seconds(worker.data), self.spilled_before),
            getattr(worker, "_tick_interval_observed", None), None if contention is None else contention * 100,
            monitor.get("host_net_io.read_bps"), monitor.get("host_net_io.write_bps"),
        )  # fmt: skip
