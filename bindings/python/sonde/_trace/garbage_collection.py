"""How long Python's garbage collector stops the program."""

from __future__ import annotations

import gc
from time import perf_counter_ns

from sonde._emit import counter, gauge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

GENERATIONS = 3
LONG_NS = 1_000_000  # longer pauses are points of their own


def start() -> Callable[[], None]:
    """Returns a function that stops it."""
    tags = [{"generation": generation} for generation in range(GENERATIONS)]
    seconds = [counter("python_gc_seconds", "seconds", "time in Python's garbage collector", tags=t) for t in tags]
    runs = [counter("python_gc_runs", "", "runs of Python's garbage collector", tags=t) for t in tags]
    pause = gauge("python_gc_pause_seconds", "seconds", "runs of Python's garbage collector of 1 ms and more")
    begun = 0

    def collect(phase: str, info: dict[str, int]) -> None:
        nonlocal begun
        if phase == "start":
            begun = perf_counter_ns()
            return
        taken = perf_counter_ns() - begun
        generation = info["generation"]
        seconds[generation].add(taken / 1e9)
        runs[generation].add()
        if taken >= LONG_NS:
            pause(taken / 1e9)

    gc.callbacks.append(collect)
    return lambda: gc.callbacks.remove(collect)
