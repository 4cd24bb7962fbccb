"""Parameters of the run, by which `sonde ls` selects runs, and which `sonde compare` compares."""

import dataclasses
import json
import os
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Optional

from ._emit import keep_parameters, level

_DEPTH_MAX = 16  # mappings within mappings
_AT_ONCE = 64
_KEY_BYTES_MAX = 128
_VALUE_BYTES_MAX = 1024


def _items(values: Any) -> Optional[Mapping[Any, Any]]:
    """Returns the values as a mapping; accepts data classes and argparse's Namespace, too. None for
    a single value."""
    if isinstance(values, Mapping):
        return values
    if dataclasses.is_dataclass(values) and not isinstance(values, type):
        return {field.name: getattr(values, field.name) for field in dataclasses.fields(values)}
    if type(values).__name__ == "Namespace":
        members: Mapping[str, Any] = vars(values)
        return members
    return None


def _plain(value: Any) -> Any:
    """Converts a scalar of NumPy or PyTorch to a Python number, and a path to a text; returns any
    other value unchanged."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if not isinstance(value, (bool, int, float, str, list, tuple)) and callable(getattr(value, "item", None)):
        return value.item()
    return value


def _text(value: Any) -> str:
    value = _plain(value)
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return json.dumps(value, default=_plain, separators=(",", ":"), ensure_ascii=False)
    raise TypeError(f"{type(value).__name__} is not a number, text or truth value; pass str(value) to keep its text")


def _flat(values: Mapping[Any, Any], before: str, depth: int) -> Iterator[tuple[str, str, str]]:
    """Yields the key and text of each value, or the reason why the value is left out."""
    for key, value in values.items():
        name = f"{before}{key}"
        try:
            inner = _items(value)
            if inner is None:
                text = _text(value)
            elif depth == _DEPTH_MAX:
                raise ValueError(f"more than {_DEPTH_MAX} mappings are within each other")
            else:
                yield from _flat(inner, name + ".", depth + 1)
                continue
            size = len(text.encode("utf-8", "surrogateescape"))
            if not name or len(name.encode("utf-8", "surrogatepass")) > _KEY_BYTES_MAX:
                raise ValueError(f"a key has 1 to {_KEY_BYTES_MAX} bytes")
            if size > _VALUE_BYTES_MAX:
                raise ValueError(f"its text has {size} bytes, and at most {_VALUE_BYTES_MAX} are kept")
        except Exception as why:  # telemetry must not end a program
            yield name, "", str(why) or type(why).__name__
        else:
            yield name, text, ""


def config(values: Any = None, /, **more: Any) -> None:
    """Records parameters of the run. Mappings within mappings become keys with dots; data classes
    and argparse's Namespace count as mappings. Values are numbers, texts, truth values, None, and
    lists of these. If a key is set several times, on any node of the job, the last value counts. A
    value that cannot be recorded is left out, with a RuntimeWarning.

    ``sonde.config({"lr": 0.01, "model": {"layers": 12}}, seed=1)``
    """
    if level() == 0:
        return
    given = {} if values is None else _items(values)
    if given is None:
        raise TypeError(f"sonde.config takes a mapping of names to values, not {type(values).__name__}")
    part: dict[str, str] = {}
    for name, text, problem in _flat({**given, **more}, "", 1):
        if problem:
            warnings.warn(f"sonde: the parameter {name!r} is left out: {problem}", RuntimeWarning, stacklevel=2)
            continue
        part[name] = text
        if len(part) == _AT_ONCE:
            keep_parameters(part)
            part = {}
    if part:
        keep_parameters(part)
