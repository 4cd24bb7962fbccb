"""The steps of a training loop and their phases, as spans and metrics; every integration uses them.

    epoch ──────────────────────────────────────────
      step ───────────────────────────── step ──────
        data  forward  backward  optimizer

A batch is fetched before its step is known to take place: the last fetch of a loader finds no
batch, and a batch may be for a validation. So a fetch outside of a step waits in `_fetched`. The
step that begins next begins with it; at most FETCHED_MAX wait.

A step belongs to the thread that begins it. Fetches in other threads (a program that prefetches)
are recorded without a parent.
"""

import threading
import warnings
from collections.abc import Mapping
from time import time_ns
from typing import Any, Callable, Optional

from .._emit import Metric, OpenSpan, counter, enter_span, gauge, level, span_at

PHASES = ("data", "forward", "backward", "optimizer")
FETCHED_MAX = 16  # fetches that wait for a step; older ones are recorded without one
NS = 1e-9
_NONE: dict[str, Any] = {}

_warned: set[str] = set()


def warn_once(text: str) -> None:
    """Telemetry must not end a program: what fails is said once."""
    if text not in _warned:
        _warned.add(text)
        warnings.warn(f"sonde: {text}", RuntimeWarning, stacklevel=3)


def attempt(what: str, function: Callable[[], Any]) -> Any:
    """Calls the function; returns None, and warns once, if it fails."""
    try:
        return function()
    except Exception as why:
        warn_once(f"{what}: {why or type(why).__name__}")
        return None


class Scopes:
    """Spans within each other, which a framework begins and ends by name: fit, epoch, validation.
    A scope ends all scopes that have begun within it. At level 0 it records nothing."""

    def __init__(self) -> None:
        self._open: list[tuple[str, OpenSpan]] = []

    def enter(self, name: str, **tags: Any) -> None:
        if level():
            self._open.append((name, enter_span(name, tags)))

    def enter_once(self, name: str) -> None:
        """Enters a scope that the framework does not announce; does nothing within it."""
        if all(known != name for known, _ in self._open):
            self.enter(name)

    def leave(self, name: str, **more: Any) -> None:
        """Ends the innermost scope of this name; does nothing if none is open."""
        if all(known != name for known, _ in self._open):
            return
        while True:
            known, opened = self._open.pop()
            opened.close(more if known == name else None)
            if known == name:
                return

    def leave_all(self, **more: Any) -> None:
        while self._open:
            self._open.pop()[1].close(more)


class Steps:
    """Records steps. With ``spans=False`` it records only the metrics."""

    def __init__(self, spans: bool = True) -> None:
        self.spans = spans
        self.count = 0  # steps done
        self.step_metric: Metric = counter("train_steps", "", "steps of the training that are done")
        self._seconds = gauge("train_step_seconds", "seconds", "how long a step of the training took")
        self._batches = counter("train_batches", "", "batches fetched")
        self._phase_seconds = {
            phase: counter("train_phase_seconds", "seconds", "time in the phases of the training, on the program's thread", tags={"phase": phase})
            for phase in PHASES
        }
        self._thread = 0
        self._start_ns = 0  # of the open step; 0: none is open
        self._step: Optional[OpenSpan] = None
        self._phases: list[tuple[str, int, Optional[OpenSpan]]] = []
        self._fetched: list[tuple[int, int]] = []

    # Fetches

    def fetched(self, start_ns: int, end_ns: int) -> None:
        """A batch was fetched in this time."""
        self._batches.add()
        self._phase_seconds["data"].add((end_ns - start_ns) * NS)
        if not self.spans:
            return
        if self._thread and threading.get_ident() != self._thread:
            span_at("data", start_ns, end_ns, _NONE)
        elif self._start_ns:
            enter_span("data", _NONE, start_ns).close(None, end_ns)
        else:
            self._fetched.append((start_ns, end_ns))
            if len(self._fetched) > FETCHED_MAX:
                span_at("data", *self._fetched.pop(0), _NONE)

    def exhausted(self) -> None:
        """A loader has no more batches. A step that is still open will not be completed (a program
        that accumulates gradients drops the last ones)."""
        if self._start_ns:
            self._close_step({"incomplete": 1})

    def record_fetched(self) -> None:
        """Records the fetches that wait, without a step: a scope begins that they do not belong to.
        """
        for start_ns, end_ns in self._fetched:
            enter_span("data", _NONE, start_ns).close(None, end_ns)
        self._fetched.clear()

    # Steps

    def begin(self, start_ns: int = 0, tags: Mapping[str, Any] = _NONE) -> None:
        """Begins a step, with the fetches before it; does nothing within a step."""
        if self._start_ns:
            return
        self._thread = threading.get_ident()
        start_ns = start_ns or time_ns()
        for fetched_ns, _ in self._fetched:
            start_ns = min(start_ns, fetched_ns)
        self._start_ns = start_ns
        if self.spans:
            self._step = enter_span("step", tags, self._start_ns)
            self.record_fetched()

    def end(self, more: Optional[Mapping[str, Any]] = None) -> None:
        """Ends the step, and counts it; does nothing if none is open."""
        if not self._start_ns:
            return
        self._seconds((time_ns() - self._start_ns) * NS)
        self.step_metric.add()
        self.count += 1
        self._close_step(more)

    def _close_step(self, more: Optional[Mapping[str, Any]]) -> None:
        self.end_phases()
        if self._step is not None:
            self._step.close(more)
        self._step, self._start_ns = None, 0

    # Phases

    def begin_phase(self, phase: str) -> None:
        """Begins a phase, within a step or outside of one (a forward pass of a validation). Phases
        may be within each other; both then count the time."""
        if self._fetched and not self._start_ns:
            self.record_fetched()
        self._phases.append((phase, time_ns(), enter_span(phase, _NONE) if self.spans else None))

    def end_phase(self, phase: str) -> None:
        """Ends the phase, and those within it that an exception has left; does nothing if it is not
        open."""
        for known, _, _ in self._phases:
            if known == phase:
                while self._end_last() != phase:
                    pass
                return

    def end_phases(self) -> None:
        while self._phases:
            self._end_last()

    def _end_last(self) -> str:
        phase, start_ns, opened = self._phases.pop()
        self._phase_seconds[phase].add((time_ns() - start_ns) * NS)
        if opened is not None:
            opened.close(None)
        return phase

    def finish(self) -> None:
        """The training is over, or its recording is: closes what is open."""
        if self._start_ns:
            self._close_step({"incomplete": 1})
        self.end_phases()
        if self.spans:
            self.record_fetched()
