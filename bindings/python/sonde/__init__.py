"""Put your own numbers on a job's timeline, beside the metrics of its nodes and GPUs.

    import sonde

    loss = sonde.gauge("loss")
    steps = sonde.counter("steps_total")
    with sonde.span("epoch", number=1):
        for batch in batches:
            loss(train(batch))
            steps()

Run it with ``sonde run -l 2 -- python program.py``. Without `sonde run`, or at level 0, every call
does nothing and costs next to nothing. No call blocks. A value that is not a number raises no
exception; sonde warns once. No call is needed at exit. Forked and spawned processes, threads and
asyncio need no preparation.
"""

import importlib

from ._emit import Group, Metric, __version__, annotate, check, connect, counter, dropped, emit, gauge, group, level, span
from ._undelivered import warn_if_undelivered

TYPE_CHECKING = False  # checkers know this name; importing it from typing takes 2 ms
if TYPE_CHECKING:
    from typing import Any

    from . import collector, detector, integrations, plot, slow_gpu, telemetry
    from ._analysis import AnalysisClient, AsyncAnalysisClient, peaks, stats
    from ._client import ClientError
    from ._config import config
    from ._detect import Judge, Verdict
    from ._log import log
    from ._result import Frame, Result, Rows, Series
    from ._watch import Watch
    from .collector import CollectorGroup
    from .detector import CollectorDetectorGroup, Detector
    from .integrations.jupyter import live
    from .slow_gpu import SlowGPUDetector
    from .telemetry import Telemetry

__all__ = [
    "AnalysisClient", "AsyncAnalysisClient", "ClientError", "CollectorDetectorGroup", "CollectorGroup", "Detector", "Frame", "Group", "Judge", "Metric", "Result", "Rows", "Series",
    "SlowGPUDetector", "Telemetry", "Verdict", "Watch", "__version__", "annotate", "check", "config", "connect", "counter", "dropped", "emit", "gauge", "group", "level", "log", "peaks", "span", "stats",
]

# All other names are imported at their first use: with them, the import would take ten times as
# long, and a program that only emits does not need them.
_MODULES = {
    "AnalysisClient": "_analysis",
    "AsyncAnalysisClient": "_analysis",
    "ClientError": "_client",
    "CollectorDetectorGroup": "detector",
    "CollectorGroup": "collector",
    "Detector": "detector",
    "Frame": "_result",
    "Judge": "_detect",
    "Result": "_result",
    "Rows": "_result",
    "Series": "_result",
    "SlowGPUDetector": "slow_gpu",
    "Telemetry": "telemetry",
    "Verdict": "_detect",
    "Watch": "_watch",
    "config": "_config",
    "live": "integrations.jupyter",
    "log": "_log",
    "peaks": "_analysis",
    "stats": "_analysis",
}
_SUBMODULES = ("collector", "detector", "integrations", "plot", "slow_gpu", "telemetry")


def __getattr__(name: str) -> "Any":
    if name in _SUBMODULES:
        return importlib.import_module(f".{name}", __name__)
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> "list[str]":
    return sorted({*globals(), *_MODULES, *_SUBMODULES})


def load_ipython_extension(shell: "Any") -> None:
    """Implements `%load_ext sonde`, which shows the use of resources below each cell."""
    importlib.import_module("._cell_use", __name__).load(shell)


def unload_ipython_extension(shell: "Any") -> None:
    """Implements `%unload_ext sonde`."""
    importlib.import_module("._cell_use", __name__).unload()


warn_if_undelivered()
