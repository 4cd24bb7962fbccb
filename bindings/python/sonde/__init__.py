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
from typing import Any

from ._analysis import AnalysisClient, AsyncAnalysisClient, peaks, stats
from ._client import ClientError
from ._config import config
from ._detect import Judge, Verdict
from ._emit import Group, Metric, __version__, annotate, check, connect, counter, dropped, emit, gauge, group, level, span
from ._log import log
from ._result import Frame, Result, Rows, Series
from ._undelivered import warn_if_undelivered
from ._watch import Watch
from .collector import CollectorGroup
from .detector import CollectorDetectorGroup, Detector
from .slow_gpu import SlowGPUDetector
from .telemetry import Telemetry

__all__ = [
    "AnalysisClient", "AsyncAnalysisClient", "ClientError", "CollectorDetectorGroup", "CollectorGroup", "Detector", "Frame", "Group", "Judge", "Metric", "Result", "Rows", "Series",
    "SlowGPUDetector", "Telemetry", "Verdict", "Watch", "__version__", "annotate", "check", "config", "connect", "counter", "dropped", "emit", "gauge", "group", "level", "log", "peaks", "span", "stats",
]


def __getattr__(name: str) -> Any:
    """Imports `sonde.plot`, `sonde.integrations` and `sonde.live` at their first use."""
    if name in ("plot", "integrations"):
        return importlib.import_module(f".{name}", __name__)
    if name == "live":
        return importlib.import_module(".integrations.jupyter", __name__).live
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_ipython_extension(shell: Any) -> None:
    """Implements `%load_ext sonde`, which shows the use of resources below each cell."""
    importlib.import_module("._cell_use", __name__).load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Implements `%unload_ext sonde`."""
    importlib.import_module("._cell_use", __name__).unload()


warn_if_undelivered()
