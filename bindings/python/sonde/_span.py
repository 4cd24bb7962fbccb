"""Functions that have a span around each call: sonde.span() as a decorator."""

import functools
import inspect
from typing import Any, Callable, TypeVar

from ._emit import span

_F = TypeVar("_F", bound=Callable[..., Any])


def decorated(function: _F, name: str, tags: dict[str, Any]) -> _F:
    """Returns the function with a span around each call."""
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
