"""The life of a worker, from its start to its end."""

from dataclasses import dataclass
from typing import Any, Optional


@dataclass
class Life:
    """A process of a worker. A worker that is restarted under its name stays the same worker, with
    another life."""

    worker: int  # N of its file
    name: str
    address: str
    host: str
    pid: int
    devices: Optional[str]  # CUDA_VISIBLE_DEVICES
    joined_ns: int  # when this life began, by the worker's clock
    begin_ns: int  # the same instant by the scheduler's clock
    end_ns: Optional[int] = None

    def tags(self) -> dict[str, Any]:
        """Returns the tags of the span dask_worker, which covers the life of the worker."""
        of_devices = {} if self.devices is None else {"devices": self.devices}
        own = {"worker": self.worker, "name": self.name, "address": self.address, "worker_host": self.host, "pid": self.pid, "joined_ns": self.joined_ns}
        return own | of_devices
