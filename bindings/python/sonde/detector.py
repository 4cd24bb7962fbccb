"""Detectors: a job watches its own metrics and requests a restart without slow nodes. The classes
have the names of Dragon's.

    class TooHot(sonde.Detector):
        def analyze_data(self, data, limit):
            hot = {s["tags"]["host"] for s in data if max(s["dps"].values(), default=0) > limit}
            return bool(hot), list(hot)

    watch = TooHot("gpu_temperature_celsius", collection_rate=10, analysis_args=90)
    watch.start()

The job has to run under ``sonde run --resilient``. State that has to survive the restart belongs in
a file (or a DDict of Dragon).
"""

import logging
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any, Optional, Union

from ._analysis import AnalysisClient
from ._emit import level
from .collector import CollectorGroup, primary_node

_log = logging.getLogger(__name__)
_STOP_S = 60.0  # stop() waits this long for a pending request

Data = list[dict[str, Any]]  # the result of AnalysisClient.get_data()


class Detector:
    """Queries a metric every `collection_rate` seconds and passes the data to analyze_data(), which
    decides whether to restart the job, and without which hosts.

    `sacred_nodes` are never excluded. `tags` are the tags of the query. `analysis_args` is passed
    to analyze_data(), `restartable_ddicts` to trigger_restart().
    """

    def __init__(
        self,
        metric_name: Union[str, list[str]] = "user-cg",
        collection_rate: float = 3,
        sacred_nodes: Optional[list[str]] = None,
        restartable_ddicts: Optional[list[Any]] = None,
        tags: Any = None,
        analysis_args: Any = None,
    ) -> None:
        if not collection_rate > 0:
            raise ValueError(f"a collection rate of {collection_rate} is not valid: the seconds between two checks have to be above 0")
        self.metric_name: Any = metric_name
        self.collection_rate = collection_rate
        self.sacred_nodes = sacred_nodes
        self.restartable_ddicts = restartable_ddicts
        self.tags = tags
        self.analysis_args = analysis_args
        # the start of the queries; analyze_data() may advance it to get only new data
        self.start_time: float = 0
        self._watcher: Optional[threading.Thread] = None
        self._ends = threading.Event()
        self._said = ""

    @staticmethod
    def analyze_data(data: Data, analysis_args: Any) -> tuple[bool, list[str]]:
        """Returns whether to restart the job, and the hosts to exclude. Subclasses define it, as a
        static or an ordinary method."""
        raise NotImplementedError("define analyze_data() in the subclass of Detector")

    @staticmethod
    def trigger_restart(nodes_to_remove: Iterable[str], sacred_nodes: Optional[Iterable[str]], restartable_ddicts: Optional[Sequence[Any]]) -> None:
        """Requests a restart without `nodes_to_remove`, except for the sacred nodes and the first
        node.

        It first destroys Dragon's dictionaries in `restartable_ddicts`, so that they can be
        restarted.
        """
        without = sorted(set(nodes_to_remove) - set(sacred_nodes or ()) - {primary_node()})
        _log.warning("requesting a restart of the job without %s", ", ".join(without) or "excluding a node")
        for ddict in restartable_ddicts or ():
            if type(ddict).__module__.split(".")[0] == "dragon":
                ddict.destroy(allow_restart=True)
        AnalysisClient().reboot(exclude_hostnames=without)

    def _watched(self) -> Union[str, list[str]]:
        """The metrics that analyze_data() gets."""
        metrics: Union[str, list[str]] = self.metric_name
        return metrics

    def start(self) -> None:
        """Starts watching, in a thread. Does nothing at level 0, or if it watches already."""
        if self._watcher is None and level():
            self.start_time = int(time.time())
            self._ends.clear()
            self._watcher = threading.Thread(target=self._watch, name=f"sonde {self.metric_name}", daemon=True)
            self._watcher.start()

    def stop(self) -> None:
        """Stops watching. A second call does nothing."""
        self._ends.set()
        if self._watcher is not None and self._watcher is not threading.current_thread():
            self._watcher.join(_STOP_S)
        self._watcher = None

    def _watch(self) -> None:
        client: Optional[AnalysisClient] = None
        asked: Optional[set[str]] = None  # the excluded hosts
        while not self._ends.wait(self._pause_s()):
            try:
                if client is None:
                    client = AnalysisClient()
                    client.connect()
                data = client.get_data(self._watched(), self.tags, start_time=self.start_time)
                restart, nodes = self.analyze_data(data, self.analysis_args)
                if restart and (asked is None or not asked.issuperset(nodes)):
                    self.trigger_restart(nodes, self.sacred_nodes, self.restartable_ddicts)
                    asked = {*(asked or ()), *nodes}
                self._said = ""
            except Exception as error:
                self._say_once(f"{type(error).__name__}: {error}", error)

    def _pause_s(self) -> float:
        return self.collection_rate

    def _say_once(self, words: str, error: Exception) -> None:
        """Logs an error that repeats in every round only once."""
        if words != self._said:
            _log.error("watching %s: %s; the watch goes on", self.metric_name, words, exc_info=error)
        self._said = words


class CollectorDetectorGroup(Detector, CollectorGroup):
    """A CollectorGroup that measures a metric, and a Detector that watches it."""

    def __init__(
        self,
        metric_name: str = "user-cg",
        per_gpu: bool = False,
        collection_rate: float = 3,
        sacred_nodes: Optional[list[str]] = None,
        restartable_ddicts: Optional[list[Any]] = None,
        tags: Any = None,
        collector_args: Any = None,
        analysis_args: Any = None,
    ) -> None:
        CollectorGroup.__init__(self, metric_name, per_gpu, collection_rate, collector_args)
        Detector.__init__(self, metric_name, collection_rate, sacred_nodes, restartable_ddicts, tags, analysis_args)

    def _pause_s(self) -> float:
        """Returns the pause until half-way between two instants, so that each value is checked
        before the next one is measured."""
        return self.collection_rate * ((0.5 - time.time() / self.collection_rate) % 1)

    def start(self) -> None:
        """Starts measuring on every node (or GPU), and watching."""
        CollectorGroup.start(self)
        Detector.start(self)

    def stop(self) -> None:
        Detector.stop(self)
        CollectorGroup.stop(self)
