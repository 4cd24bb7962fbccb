"""Spans: named, tagged periods of time.

The parent of a span follows the context, not the thread: spans nest correctly in threads, in
asyncio tasks and in generators.
"""

import functools
import inspect
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, Callable, Optional, TypeVar

from ._emit import OpenSpan, level, open_span

_F = TypeVar("_F", bound=Callable[..., Any])
_current: ContextVar[Optional[OpenSpan]] = ContextVar("sonde_span", default=None)


def _no_task() -> Optional[OpenSpan]:
    return None


# The parent of a span that has no span around it. On workers, sonde.dask sets it to the task that
# the thread executes.
task_span: Callable[[], Optional[OpenSpan]] = _no_task


class span:
    """A named period of time with tags. Every query can select by span ("peak memory per epoch").

    As a context manager (also in coroutines)::

        with sonde.span("epoch", number=3):
            ...

    or as a decorator of functions, coroutines and generators::

        @sonde.span("load")
        def load(path): ...

    A span that ends with an exception gets the tag ``error``. A span that is open when its process
    ends, ends with the process and gets the tag ``unfinished``.
    """

    __slots__ = ("_name", "_open", "_tags")

    def __init__(self, name: str, /, **tags: Any) -> None:
        self._name = name
        self._tags = tags
        # a span object may be entered again while it is open
        self._open: list[tuple[OpenSpan, Token[Optional[OpenSpan]]]] = []

    def __enter__(self) -> "span":
        if level():
            opened = open_span(self._name, self._tags, _current.get() or task_span())
            self._open.append((opened, _current.set(opened)))
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if not self._open:
            return
        opened, before = self._open.pop()
        try:
            _current.reset(before)
        except ValueError:  # a generator was closed in another context than it began in
            pass
        opened.close(None if kind is None else {"error": kind.__name__})

    def __call__(self, function: _F) -> _F:
        name, tags = self._name, self._tags

        wrapper: Callable[..., Any]
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def wrapper(*args: Any, **keywords: Any) -> Any:
                with span(name, **tags):
                    return await function(*args, **keywords)

        elif inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def wrapper(*args: Any, **keywords: Any) -> Any:
                with span(name, **tags):
                    return (yield from function(*args, **keywords))

        else:

            @functools.wraps(function)
            def wrapper(*args: Any, **keywords: Any) -> Any:
                with span(name, **tags):
                    return function(*args, **keywords)

        return wrapper  # type: ignore[return-value]
