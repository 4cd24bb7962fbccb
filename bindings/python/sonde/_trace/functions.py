"""Spans of chosen functions, and how often and how long they run.

From Python 3.12 on, sys.monitoring reports a function that is not chosen only once, at its first
call. Before, sys.setprofile reports each call of every function.
"""

from __future__ import annotations

import os
import sys
import threading
from time import perf_counter_ns

from sonde._emit import counter, span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import Any

    from sonde._emit import Metric, Span

FUNCTIONS_MAX = 256  # of a process
SPANS_MAX = 10_000  # of a function in a process; all its calls are counted
KNOWN_MAX = 10_000  # code objects, which some programs make without end

CO_OPTIMIZED = 0x1  # a function, unlike a module and the body of a class
CO_SUSPENDS = 0x20 | 0x80 | 0x200  # a generator, a coroutine, an asynchronous generator
MAIN = ("__main__", "__mp_main__")  # the second one: in a child of multiprocessing


def matches(name: str, pattern: str) -> bool:
    """Whether the name is the pattern, in which * stands for any text."""
    first, *rest = pattern.split("*")
    if not rest:
        return name == pattern
    if not name.startswith(first):
        return False
    at = len(first)
    for part in rest[:-1]:
        found = name.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(name) - at >= len(rest[-1]) and name.endswith(rest[-1])


class Function:
    """A chosen function."""

    __slots__ = ("calls", "code", "name", "seconds", "spans_left")

    def __init__(self, code: CodeType, name: str) -> None:
        tags = {"function": name}
        self.code = code
        self.name = name
        self.calls: Metric = counter("python_function_calls", "", "calls of traced functions", tags=tags)
        self.seconds: Metric = counter("python_function_seconds", "seconds", "time in traced functions and what they call", tags=tags)
        self.spans_left = SPANS_MAX


class _Thread(threading.local):
    """The calls of chosen functions that a thread is in: the function, its span, its start."""

    def __init__(self) -> None:
        self.calls: list[tuple[Function, Span | None, int]] = []


class Tracer:
    def __init__(self, patterns: list[str]) -> None:
        self._patterns = [pattern.strip() for pattern in patterns]
        self._thread = _Thread()
        self._functions = 0
        # By id, because comparing code objects means comparing their instructions. Each entry keeps
        # its code object, and so its id, alive.
        self._known: dict[int, tuple[CodeType, Function | None]] = {}
        self._omitted = counter("python_functions_omitted", "", "functions beyond the limit of a process, which are not traced")

    def find(self, frame: FrameType) -> Function | None:
        """The function that the frame belongs to; None if it is not chosen."""
        code = frame.f_code
        known = self._known.get(id(code))
        if known:
            return known[1]
        function = self._choose(code, frame.f_globals)
        if len(self._known) >= KNOWN_MAX:
            self._known = {key: entry for key, entry in self._known.items() if entry[1]}
        self._known[id(code)] = (code, function)
        return function

    def _choose(self, code: CodeType, names: dict[str, Any]) -> Function | None:
        if code.co_name.startswith("<") or code.co_flags & CO_SUSPENDS or not code.co_flags & CO_OPTIMIZED:
            return None
        module, file = names.get("__name__"), names.get("__file__")
        place = getattr(code, "co_qualname", code.co_name)  # without the class before Python 3.11
        name = f"{module}.{place}"
        shown = name
        if module in MAIN and isinstance(file, str):
            shown = f"{os.path.splitext(os.path.basename(file))[0]}.{place}"
            name = f"{MAIN[0]}.{place}"
        if not any(matches(name, pattern) or matches(shown, pattern) for pattern in self._patterns):
            return None
        if self._functions == FUNCTIONS_MAX:
            self._omitted.add()
            return None
        self._functions += 1
        return Function(code, shown)

    def has_chosen(self, code: CodeType) -> bool:
        known = self._known.get(id(code))
        return known is not None and known[1] is not None

    def begin(self, function: Function) -> None:
        opened = None
        if function.spans_left:
            function.spans_left -= 1
            opened = span(function.name)
            opened.__enter__()
        self._thread.calls.append((function, opened, perf_counter_ns()))

    def end(self, code: CodeType, error: type[BaseException] | None) -> None:
        """Ends a call. Ignores functions that are not chosen or began before the tracer."""
        calls = self._thread.calls
        if not calls or calls[-1][0].code is not code:
            return
        function, opened, begun = calls.pop()
        function.seconds.add((perf_counter_ns() - begun) / 1e9)
        function.calls.add()
        if opened is not None:
            opened.__exit__(error, None, None)


def _profile(tracer: Tracer) -> Callable[[], None]:
    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            function = tracer.find(frame)
            if function:
                tracer.begin(function)
        elif event == "return":
            tracer.end(frame.f_code, None)

    def stop() -> None:
        if sys.getprofile() is profile:
            sys.setprofile(None)

    threading.setprofile(profile)
    sys.setprofile(profile)
    return stop


if sys.version_info >= (3, 12):

    def _monitor(tracer: Tracer) -> Callable[[], None]:
        monitoring = sys.monitoring
        events = monitoring.events
        # The other numbers are reserved for debuggers, coverage, profilers and optimizers.
        tool = next((number for number in (3, 4) if not monitoring.get_tool(number)), monitoring.PROFILER_ID)
        monitoring.use_tool_id(tool, "sonde")

        def start(code: CodeType, offset: int) -> object:
            function = tracer.find(sys._getframe(1))
            if not function:
                return monitoring.DISABLE
            tracer.begin(function)
            return None

        def end(code: CodeType, offset: int, value: object) -> object:
            if not tracer.has_chosen(code):
                return monitoring.DISABLE
            tracer.end(code, None)
            return None

        def unwind(code: CodeType, offset: int, error: BaseException) -> None:
            tracer.end(code, type(error))

        monitoring.register_callback(tool, events.PY_START, start)
        monitoring.register_callback(tool, events.PY_RETURN, end)
        monitoring.register_callback(tool, events.PY_UNWIND, unwind)
        monitoring.set_events(tool, events.PY_START | events.PY_RETURN | events.PY_UNWIND)

        def stop() -> None:
            monitoring.set_events(tool, 0)
            monitoring.free_tool_id(tool)

        return stop


def start(patterns: list[str]) -> Callable[[], None]:
    """Returns a function that stops it."""
    tracer = Tracer(patterns)
    if sys.version_info >= (3, 12):
        return _monitor(tracer)
    return _profile(tracer)
