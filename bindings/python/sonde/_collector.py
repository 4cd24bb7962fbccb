"""The process that runs the function of a CollectorGroup. The agent starts it and reads its output
like that of a script.

It reads its task from its standard input. At each sampling instant (whole multiples of the rate
since the epoch) it prints a point or, without a value, an empty line. If it is silent for too long,
the agent assumes that the function hangs, and kills the process. Output of the function goes to
standard error.
"""

import base64
import io
import math
import multiprocessing
import os
import pickle
import sys
import time
import traceback
import zlib
from multiprocessing import spawn
from typing import Any, Callable, TextIO

from ._shared import Shared
from .collector import CollectorGroup


class Reporter:
    """Reports errors: each one on standard error, and the first of a sequence also in the job's
    messages and in the recording."""

    def __init__(self, points: TextIO, name: str, tags: str) -> None:
        self._points = points
        self._name = name
        self._tags = tags
        self._failing = False

    def failed(self, error: BaseException) -> None:
        traceback.print_exc()
        if self._failing:
            return
        self._failing = True
        words = " ".join("".join(traceback.format_exception_only(type(error), error)).split())
        print(f"sonde: {words}", file=sys.stderr, flush=True)
        self._annotate("yes", f": {words}")

    def worked(self) -> None:
        if self._failing:
            self._failing = False
            self._annotate("no", " works again")

    def _annotate(self, failing: str, words: str) -> None:
        text = f"collector {self._name}{words}".replace("\\", "\\\\")
        print(f"annotate script={self._name}{self._tags} failing={failing} -- {text}", file=self._points, flush=True)


class Unpickler(pickle.Unpickler):
    """Loads class and arguments. Values and arrays of the program become Shared objects."""

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__(io.BytesIO(told["group"]))
        self._shared = told["shared"]

    def persistent_load(self, number: int) -> Shared:
        return Shared(self._shared, number)


def _told() -> dict[str, Any]:
    told: dict[str, Any] = pickle.loads(zlib.decompress(base64.b64decode(sys.stdin.buffer.read())))
    prepare = told["prepare"]
    for folder in ("dir", "orig_dir"):
        if not os.path.isdir(prepare.get(folder) or "/"):  # the path exists on another node only
            prepare.pop(folder)
    # Only Dragon's runtime knows Dragon's start method.
    if prepare.get("start_method") not in multiprocessing.get_all_start_methods():
        prepare.pop("start_method", None)
    spawn.prepare(prepare)
    return told


def run(function: Callable[[Any], Any], arguments: Any, told: dict[str, Any], points: TextIO) -> None:
    """Calls the function immediately, so that a short job has a value, too; then at each instant.
    """
    metric, rate_s = told["metric"], told["rate_s"]
    tags = f" gpu={os.environ['SONDE_GPU']}" if "SONDE_GPU" in os.environ else ""
    reporter = Reporter(points, told["name"], tags)
    while True:
        line = ""
        try:
            value = function(arguments)
            if value is not None and not math.isnan(value):
                line = f"{metric} {float(value)!r}{tags}"
        except Exception as error:
            reporter.failed(error)
        else:
            reporter.worked()
        print(line, file=points, flush=True)
        now = time.time()
        time.sleep((math.floor(now / rate_s) + 1) * rate_s - now)


def main() -> None:
    points = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # a program's file that runs here to define its class starts no collectors
    os.environ["SONDE_LEVEL"] = "0"
    told = _told()
    group: type[CollectorGroup]
    group, arguments = Unpickler(told).load()
    print(file=points, flush=True)  # ends the timeout for imports
    run(group.collector_test, arguments, told, points)
