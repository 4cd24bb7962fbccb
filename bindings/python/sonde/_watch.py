"""Watches: callbacks for new points."""

import importlib
import operator
import re
import threading
from typing import Any, Callable, Optional, Union

from . import _client
from ._result import Result, Series

Condition = Union[str, Callable[[float], bool], None]
Callback = Callable[[Series, int, float], object]

_SLICE_S = 0.5  # the thread checks this often for stop()
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
}


def _log() -> Any:
    """The logger: importing the module takes 8 ms, and few watches write."""
    return importlib.import_module("logging").getLogger("sonde")


def condition_of(given: Condition) -> Callable[[float], bool]:
    """Makes a function of the value from ``"> 90"``, a function, or None (every point)."""
    if given is None:
        return lambda value: True
    if callable(given):
        return given
    found = re.fullmatch(r"\s*(>=|<=|==|!=|>|<)\s*(\S+)\s*", given)
    try:
        compare, limit = (_OPERATORS[found[1]], float(found[2])) if found else (None, 0.0)
    except ValueError:
        compare = None
    if compare is None:
        raise ValueError(f"{given!r} is not a condition: write one of {' '.join(_OPERATORS)} and a number, as in '> 90'")
    chosen = compare
    return lambda value: chosen(value, limit)


class Watch:
    """A watch in a thread of its own. It runs until stop(), or until the end of a ``with`` block.

    `error` is the exception that ended the watch, or None. Exceptions of the callback are logged
    (logger "sonde"), and the watch continues.
    """

    def __init__(self, watch: _client.Watch, condition: Callable[[float], bool], callback: Callback) -> None:
        self._watch, self._condition, self._callback = watch, condition, callback
        self._over = threading.Event()
        self.error: Optional[BaseException] = None
        self._thread = threading.Thread(target=self._run, name="sonde watch", daemon=True)
        self._thread.start()

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def alive(self) -> bool:
        """Whether the watch is running."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Stops the watch. No callback begins after stop() has returned, unless the callback itself
        called stop()."""
        self._over.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                found = self._watch.next(_SLICE_S)
                if found is not None:
                    self._tell(Result(found))
        except BaseException as error:  # noqa: BLE001 - the handle reports it
            self.error = error
            if not self._over.is_set():
                _log().error("a watch has ended: %s", error)

    def _tell(self, result: Result) -> None:
        for series in result:
            for time_ns, value in series:
                if self._over.is_set():
                    return
                try:
                    if self._condition(value):
                        self._callback(series, time_ns, value)
                except Exception:
                    _log().exception("the callback of a watch on %s", series.metric)
