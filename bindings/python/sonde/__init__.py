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

from ._analysis import AnalysisClient, AsyncAnalysisClient
from ._client import ClientError
from ._config import config
from ._detect import Judge, Verdict
from ._emit import Group, Metric, __version__, annotate, check, connect, counter, dropped, emit, gauge, group, level
from ._log import log
from ._result import Frame, Result, Series
from ._span import span
from ._unheard import warn_if_unheard
from ._watch import Watch
from .collector import CollectorGroup
from .detector import CollectorDetectorGroup, Detector
from .slow_gpu import SlowGPUDetector
from .telemetry import Telemetry

__all__ = [
    "AnalysisClient", "AsyncAnalysisClient", "ClientError", "CollectorDetectorGroup", "CollectorGroup", "Detector", "Frame", "Group", "Judge", "Metric", "Result", "Series",
    "SlowGPUDetector", "Telemetry", "Verdict", "Watch", "__version__", "annotate", "check", "config", "connect", "counter", "dropped", "emit", "gauge", "group", "level", "log", "span",
]

warn_if_unheard()
