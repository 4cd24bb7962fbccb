"""Functions of one's own that sonde's agents run on every node, or for every GPU.

    class Temperature(sonde.CollectorGroup):
        @staticmethod
        def collector_test(collector_args):
            return float(open(collector_args).read()) / 1000

    if __name__ == "__main__":
        group = Temperature(metric_name="cpu-temperature", collection_rate=5, collector_args="/sys/class/thermal/thermal_zone0/temp")
        group.start()

Each runs in a process of its own, which the node's agent starts and ends (_collector.py). It gets
the class as processes of multiprocessing that are spawned do: by the name of its module, or, of one
that the program itself defines, by running the program's file under another name than __main__ (so
keep the `if` above). With cloudpickle at hand such a class travels as a whole, and nothing is run.
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
import threading
import zlib
from multiprocessing import spawn
from typing import Any, Optional

from . import _emit, _shared
from ._analysis import AnalysisClient
from ._client import Connection

_RATE_MIN_S, _RATE_MAX_S = 0.05, 43200.0
_TIMEOUT_MAX_S = 43200.0
_TIMEOUT_S = 60.0  # the first value waits for imports from a file system that is slow
_NAME_MAX = 63
_OTHER_LINES = ("put", "annotate")  # begin other lines than points

_lock = threading.Lock()
_taken: set[str] = set()  # names of the groups that this process has running


def _pickled(group: type, arguments: Any) -> tuple[bytes, Optional[_shared.Told]]:
    """Class and arguments, and where collectors find the shared values and arrays among them."""
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
    """What a spawned process of multiprocessing is told first, without its key."""
    data = spawn.get_preparation_data("sonde-collector")
    data.pop("authkey", None)
    if group.__module__ != "__main__" or importlib.util.find_spec("cloudpickle") is not None:
        data.pop("init_main_from_name", None)
        data.pop("init_main_from_path", None)
    return data


def _command() -> str:
    """What the agent gives to a shell: our Python, and this package where it cannot be found
    otherwise."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    code = f"import sys; sys.path.insert(0, {here!r}); from sonde._collector import main; main()"
    return f"exec {shlex.quote(sys.executable)} -c {shlex.quote(code)}"


def primary_node() -> str:
    """The node that is never excluded: the job's first."""
    return job_nodes()[0]


def job_nodes() -> list[str]:
    return os.environ.get("SONDE_NODELIST", "").split(",") if os.environ.get("SONDE_NODELIST") else [socket.gethostname().split(".")[0]]


@dataclasses.dataclass(frozen=True)
class Policy:
    """Where a process of a CollectorGroup runs, by the names that Dragon's policies have."""

    host_name: str
    gpu_affinity: tuple[int, ...] = ()


class CollectorGroup:
    """Subclass it, and give ``collector_test(collector_args)``, a static method that returns a
    number (None: nothing to record now).

    start() has it run on every node (with `per_gpu` once for every GPU, of which alone the process
    then knows) every `collection_rate` seconds, and records what it returns as `metric_name`, with
    the tag ``host`` (and ``gpu``). It goes on until stop(), or until the job ends; nodes that come
    later run it, too. What raises is said once and called again at the next instant; what ends, or
    has not returned after `collection_timeout` seconds, is ended and started again, later and
    later.
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
        raise NotImplementedError("a CollectorGroup gives collector_test(collector_args)")

    def generate_policies(self) -> list[Any]:
        """Where it runs: a policy for each node or, with `per_gpu`, for each GPU. Inside of
        Dragon's runtime they are Dragon's."""
        if "dragon.native.machine" in sys.modules:
            system = sys.modules["dragon.native.machine"].System()
            return list(system.gpu_policies() if self.per_gpu else system.hostname_policies())
        if not self.per_gpu:
            return [Policy(node) for node in job_nodes()]
        with AnalysisClient() as client:
            gpus = {(s["tags"]["host"], int(s["tags"]["gpu"])) for s in client.series("gpu_utilization_percent")}
        return [Policy(host, (gpu,)) for host, gpu in sorted(gpus)]

    def start(self) -> None:
        """Does nothing at level 0, and when it runs already. RuntimeError when the job cannot be
        asked."""
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
        self._give_name()  # one that it had in an earlier job of this program
        self._job, name = job, self._take_name()
        told["name"] = name
        body = {
            "name": name,
            "command": _command(),
            "input": base64.b64encode(zlib.compress(pickle.dumps(told))).decode(),
            "timeout": f"{self.collection_rate + self.collection_timeout:.17g}",  # of silence
        }
        if self.per_gpu:
            body["per_gpu"] = ""
        try:
            self._ask(body)
        except BaseException:
            self._give_name()
            raise

    def stop(self) -> None:
        """Ends it on all nodes. Does nothing when it does not run."""
        if self._name is None:
            return
        name = self._give_name()
        self._ask({"name": name})

    def _take_name(self) -> str:
        """The metric's, as the agents call it; a second group of this program with the same metric
        has a number behind it.

        A program that is started again asks by the same names, and so replaces what it had started
        before.
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
