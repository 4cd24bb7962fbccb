"""A lock that is free in a forked child, although another thread of the parent held it. What it
protects must be usable at any moment of the work under it."""

import os
import threading
from typing import Any


class ForkLock:
    def __init__(self) -> None:
        self._make()
        os.register_at_fork(after_in_child=self._make)

    def _make(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: Any) -> None:
        self._lock.release()
