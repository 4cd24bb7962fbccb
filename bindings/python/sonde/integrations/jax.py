"""JAX: steps, and what JAX compiles.

    import sonde.integrations.jax as sonde_jax
    sonde_jax.watch()
    for batch in batches:
        with sonde_jax.step():
            state = train_step(state, batch)

`watch()` records each compilation: the span `compile` {event}, jax_compile_seconds{event} (seconds
in `trace`, `lower` and `compile`) and jax_compiles{event}, as jax.monitoring reports them. So a
function that is compiled again in each step shows.

`step()` records `step`, train_steps and train_step_seconds (see sonde.integrations). JAX computes
asynchronously: a step is the time in which the program launches it. Where it should contain the
computation, end it with `jax.block_until_ready`, as every measurement of JAX. `batches(source)`
records the fetches.
"""

import importlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from time import time_ns
from typing import Any, Optional

from .._emit import Metric, counter, level, span_at
from ._steps import Steps

# Events of jax.monitoring, and what they are called here.
_EVENTS = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}

_metrics: dict[str, tuple[Metric, Metric]] = {}
_steps: Optional[Steps] = None
_watching = False


def _compiled(event: str, seconds: float, **_: Any) -> None:
    name = _EVENTS.get(event)
    if name is None:
        return
    end_ns = time_ns()
    if name not in _metrics:
        tags = {"event": name}
        _metrics[name] = (
            counter("jax_compile_seconds", "seconds", "time in which JAX traced, lowered and compiled functions", tags=tags),
            counter("jax_compiles", "", "functions that JAX traced, lowered and compiled", tags=tags),
        )
    total, count = _metrics[name]
    total.add(seconds)
    count.add()
    span_at("compile", end_ns - int(seconds * 1e9), end_ns, {"event": name})


def watch() -> None:
    """Records compilations to the end of the process. A second call does nothing."""
    global _watching
    if level() and not _watching:
        importlib.import_module("jax").monitoring.register_event_duration_secs_listener(_compiled)
        _watching = True


def _recorder() -> Steps:
    global _steps
    if _steps is None:
        _steps = Steps()
    return _steps


@contextmanager
def step(**tags: Any) -> Iterator[None]:
    """Records a step."""
    if not level():
        yield
        return
    steps = _recorder()
    steps.begin(tags=tags)
    try:
        yield
    except BaseException as error:
        steps.end({"error": type(error).__name__})
        raise
    steps.end()


def batches(source: Iterable[Any]) -> Iterator[Any]:
    """Yields the batches of the source, and records the fetches."""
    if not level():
        yield from source
        return
    steps, iterator = _recorder(), iter(source)
    while True:
        start_ns = time_ns()
        try:
            batch = next(iterator)
        except StopIteration:
            return
        steps.fetched(start_ns, time_ns())
        yield batch
