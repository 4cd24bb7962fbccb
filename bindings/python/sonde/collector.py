"""Collectors: functions of a program that sonde's agents run on every node, or for every GPU.

    class Temperature(sonde.CollectorGroup):
        @staticmethod
        def collector_test(collector_args):
            return float(open(collector_args).read()) / 1000

    if __name__ == "__main__":
        path = "/sys/class/thermal/thermal_zone0/temp"
        group = Temperature("cpu-temperature", collection_rate=5, collector_args=path)
        group.start()

Each collector runs in a process of its own, which the node's agent starts and ends (_collector.py).
The process gets the class like a spawned process of multiprocessing: it imports the module of the
class. If the program itself defines the class, the process runs the program's file under another
name than __main__, so keep the `if` above. If cloudpickle is installed, the class itself is sent,
and the file is not run.
"""

import base64
import dataclasses
import importlib
import importlib.util
import io
import itertools
import json
import os
import pickle
import re
import shlex
import socket
import sys
import zlib
from multiprocessing import spawn
from typing import Any, Optional

from . import _emit, _shared
from ._analysis import AnalysisClient
from ._client import Connection
from ._fork_lock import ForkLock

_RATE_MIN_S, _RATE_MAX_S = 0.05, 43200.0
_TIMEOUT_MAX_S = 43200.0
# long, because imports precede the first value, perhaps from a slow file system
_TIMEOUT_S = 60.0
_NAME_MAX = 63
_OTHER_LINES = ("put", "annotate")  # first words of lines that are not points

_lock = ForkLock()
_taken: set[str] = set()  # names of this process' running groups


def _pickled(group: type, arguments: Any) -> tuple[bytes, Optional[_shared.Told]]:
    """Returns the pickled class and arguments, and the address of the server for the shared values
    and arrays among them."""
    base: Any = pickle.Pickler
    if group.__module__ == "__main__" and importlib.util.find_spec("cloudpickle") is not None:
        base = importlib.import_module("cloudpickle").Pickler
    told: Optional[_shared.Told] = None

    class Pickler(base):  # type: ignore[misc]
        def persistent_id(self, thing: Any) -> Optional[int]:
            nonlocal told
            if not _shared.is_shared(thing):
                return None
            server = _shared.server(job_nodes())
            told = server.told()
            return server.add(thing)

    out = io.BytesIO()
    Pickler(out).dump((group, arguments))
    return out.getvalue(), told


def _preparation(group: type) -> dict[str, Any]:
    """Returns the preparation data of a spawned process of multiprocessing, without its key."""
    data = spawn.get_preparation_data("sonde-collector")
    data.pop("authkey", None)
    if group.__module__ != "__main__" or importlib.util.find_spec("cloudpickle") is not None:
        data.pop("init_main_from_name", None)
        data.pop("init_main_from_path", None)
    return data


def _command() -> str:
    """Returns the command for the agent's shell: this Python, and the path of this package if it is
    not installed."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    code = f"import sys; sys.path.insert(0, {here!r}); from sonde._collector import main; main()"
    return f"exec {shlex.quote(sys.executable)} -c {shlex.quote(code)}"


def primary_node() -> str:
    """Returns the node that is never excluded: the job's first."""
    return job_nodes()[0]


def job_nodes() -> list[str]:
    return os.environ.get("SONDE_NODELIST", "").split(",") if os.environ.get("SONDE_NODELIST") else [socket.gethostname().split(".")[0]]


@dataclasses.dataclass(frozen=True)
class Policy:
    """The place of a collector's process, with the attribute names of Dragon's policies."""

    host_name: str
    gpu_affinity: tuple[int, ...] = ()


class CollectorGroup:
    """Runs a function on every node, or for every GPU. Subclass it and define
    ``collector_test(collector_args)``, a static method that returns a number, or None for no value.

    start() runs the function every `collection_rate` seconds on every node, or with `per_gpu` for
    every GPU (its process then sees only this GPU). sonde records the results as `metric_name` with
    the tag ``host`` (and ``gpu``), until stop() or the end of the job. Nodes that join later run
    the function, too. If the function raises an exception, sonde reports the first one and calls
    the function again at the next instant. If the process ends, or the function does not return
    within `collection_timeout` seconds, the agent starts the process again, with growing delays.
    """

    collection_timeout: float = _TIMEOUT_S

    def __init__(self, metric_name: str = "user-cg", per_gpu: bool = False, collection_rate: float = 3, collector_args: Any = None) -> None:
        if not metric_name or metric_name in _OTHER_LINES:
            raise ValueError(f"metric {metric_name!r}: a line that begins with it is no point")
        if not _RATE_MIN_S <= collection_rate <= _RATE_MAX_S:
            raise ValueError(f"a collection rate of {collection_rate} s is not between {_RATE_MIN_S} and {_RATE_MAX_S:g}")
        self.metric_name = metric_name
        self.per_gpu = per_gpu
        self.collection_rate = collection_rate
        self.collector_args = collector_args
        self._name: Optional[str] = None
        self._job: Optional[str] = None

    @staticmethod
    def collector_test(collector_args: Any) -> Optional[float]:
        raise NotImplementedError("define collector_test(collector_args) in the subclass of CollectorGroup")

    def generate_policies(self) -> list[Any]:
        """Returns a policy for each node or, with `per_gpu`, for each GPU. Inside of Dragon's
        runtime these are Dragon's policies."""
        if "dragon.native.machine" in sys.modules:
            system = sys.modules["dragon.native.machine"].System()
            return list(system.gpu_policies() if self.per_gpu else system.hostname_policies())
        if not self.per_gpu:
            return [Policy(node) for node in job_nodes()]
        with AnalysisClient() as client:
            gpus = {(s["tags"]["host"], int(s["tags"]["gpu"])) for s in client.series("gpu_utilization_percent")}
        return [Policy(host, (gpu,)) for host, gpu in sorted(gpus)]

    def start(self) -> None:
        """Starts the collectors. Does nothing at level 0, or if they run already. Raises
        RuntimeError if the job cannot be reached."""
        job = os.environ.get("SONDE_JOB")
        if _emit.level() == 0 or (self._name is not None and self._job == job):
            return
        if not 0 < self.collection_timeout <= _TIMEOUT_MAX_S:
            raise ValueError(f"a collection timeout of {self.collection_timeout} s is not between 0 and {_TIMEOUT_MAX_S:g}")
        group = type(self)
        pickled, shared = _pickled(group, self.collector_args)
        told = {
            "prepare": _preparation(group),
            "group": pickled,
            "shared": shared,
            "metric": _emit.storable_name(self.metric_name),
            "rate_s": float(self.collection_rate),
        }
        self._give_name()  # an earlier job of this program used the name
        self._job, name = job, self._take_name()
        told["name"] = name
        body = {
            "name": name,
            "command": _command(),
            "input": base64.b64encode(zlib.compress(pickle.dumps(told))).decode(),
            # maximum seconds without output
            "timeout": f"{self.collection_rate + self.collection_timeout:.17g}",
        }
        if self.per_gpu:
            body["per_gpu"] = ""
        try:
            self._ask(body)
        except BaseException:
            self._give_name()
            raise

    def stop(self) -> None:
        """Stops the collectors on all nodes. Does nothing if they do not run."""
        if self._name is None:
            return
        name = self._give_name()
        self._ask({"name": name})

    def _take_name(self) -> str:
        """Reserves the name under which the agents know this group: that of the metric, with a
        number if another group of this program has the same metric.

        A restarted program uses the same names, and so replaces its earlier collectors.
        """
        plain = re.sub("[^A-Za-z0-9_./-]", "_", self.metric_name)[: _NAME_MAX - 8]
        with _lock:
            self._name = next(n for n in itertools.chain([plain], (f"{plain}.{i}" for i in itertools.count(2))) if n not in _taken)
            _taken.add(self._name)
        return self._name

    def _give_name(self) -> str:
        with _lock:
            name, self._name = self._name or "", None
            _taken.discard(name)
        return name

    def _ask(self, body: dict[str, str]) -> None:
        connection = Connection()
        try:
            connection.ask("/sonde/v1/collectors", json.dumps(body))
        finally:
            connection.close()
