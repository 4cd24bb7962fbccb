"""Records several values at one instant, from a dictionary."""

from collections.abc import Mapping
from typing import Any, Optional

from ._emit import Group, gauge, group, level

_REMEMBERED_MAX = 4096  # cached sets of names and tags; the cache is emptied there
_groups: dict[tuple[Any, ...], Group] = {}


def log(values: Mapping[str, Any], /, step: Optional[float] = None, **tags: Any) -> None:
    """Records all values with one timestamp. With `step`, it also records the metric ``step``, so
    that runs can be compared step by step.

    ``sonde.log({"loss": 0.3, "accuracy": 0.9}, step=17, phase="train")``
    """
    if level() == 0:
        return
    key = (step is None, *values, None, *tags.items())
    try:
        known = _groups.get(key)
    except TypeError:  # the value of a tag is not hashable
        key = (step is None, *values, None, *((k, str(v)) for k, v in tags.items()))
        known = _groups.get(key)
    if known is None:
        names = list(values) if step is None else [*values, "step"]
        known = group([gauge(str(name), tags=tags) for name in names])
        if len(_groups) >= _REMEMBERED_MAX:
            _groups.clear()
        _groups[key] = known
    if step is None:
        known(*values.values())
    else:
        known(*values.values(), step)
