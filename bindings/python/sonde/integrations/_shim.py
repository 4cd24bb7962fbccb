"""What the shims of experiment trackers share: they keep a script's calls in the recording, and
pass them on to the real library, if it is installed."""

import importlib
from collections.abc import Mapping
from typing import Any, Callable, Optional

from .._config import config
from .._emit import OpenSpan, enter_span, level
from .._log import log
from ._steps import attempt

_DEPTH_MAX = 16  # mappings within mappings


def real_library(name: str) -> Any:
    """Returns the installed library, or None. A library that cannot be imported counts as
    missing."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


class Ignored:
    """Stands for an object of a missing library: every call and attribute is accepted, and does
    nothing. It is false, iterates over nothing, and works in ``with``."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __call__(self, *_: Any, **__: Any) -> "Ignored":
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Ignored()

    def __setattr__(self, name: str, value: Any) -> None:
        pass

    def __getitem__(self, _: Any) -> "Ignored":
        return self

    def __setitem__(self, _: Any, __: Any) -> None:
        pass

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __enter__(self) -> "Ignored":
        return self

    def __exit__(self, *_: object) -> None:
        pass


def numbers_in(values: Mapping[Any, Any], before: str = "", depth: int = 1) -> dict[str, float]:
    """Returns the numbers, those of mappings within as `outer.inner`. Pictures, tables and texts
    are left out."""
    found: dict[str, float] = {}
    for key, value in values.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping):
            if depth < _DEPTH_MAX:
                found.update(numbers_in(value, name + ".", depth + 1))
            continue
        if not isinstance(value, (bool, int, float)):
            # a scalar of NumPy or PyTorch
            if not callable(getattr(value, "item", None)) or getattr(value, "ndim", 0) != 0:
                continue
            value = value.item()
        if isinstance(value, (int, float)):
            found[name] = value
    return found


def keep_numbers(values: Mapping[Any, Any], step: Optional[float]) -> None:
    """Records the numbers as metrics, with the metric `step`."""
    if level():
        numbers = attempt("logged values are left out", lambda: numbers_in(values))
        if numbers:
            attempt("logged values are left out", lambda: log(numbers, step=step))


def keep_parameters(values: Any) -> None:
    if level():
        attempt("parameters are left out", lambda: config(values))


def as_mapping(values: Any) -> dict[str, Any]:
    """The parameters in what scripts pass: a mapping, a data class or argparse's Namespace."""
    if values is None or isinstance(values, str):
        return {}
    if isinstance(values, Mapping):
        return dict(values)
    return dict(vars(values)) if hasattr(values, "__dict__") else {}


class RunSpan:
    """The span of a tracker's run."""

    def __init__(self, **tags: Any) -> None:
        given = {key: value for key, value in tags.items() if value is not None}
        self._span: Optional[OpenSpan] = enter_span("run", given) if level() else None

    def close(self, failed: bool = False) -> None:
        if self._span is not None:
            self._span.close({"error": "1"} if failed else None)
            self._span = None


def pass_on(module: str, real: Any) -> Callable[[str], Any]:
    """Returns the `__getattr__` of a shim: names that the shim does not have are those of the real
    library; without it, they accept every call, and do nothing."""

    def get(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return Ignored() if real is None else getattr(real, name)

    return get

