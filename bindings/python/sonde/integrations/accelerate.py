"""Hugging Face Accelerate: a tracker.

    from sonde.integrations.accelerate import SondeTracker
    accelerator = Accelerator(log_with=SondeTracker())

`accelerator.log({...}, step=…)` becomes metrics, and the configuration of
`accelerator.init_trackers(…)` becomes parameters of the run. `sonde.integrations.torch.watch(model,
optimizer)` records the steps; give it what `accelerator.prepare()` returns.
"""

import importlib
from typing import Any, Optional

from .._config import config
from .._emit import level
from .._log import log
from ._steps import attempt

_tracking: Any = importlib.import_module("accelerate.tracking")


class SondeTracker(_tracking.GeneralTracker):  # type: ignore[misc]
    name = "sonde"
    requires_logging_directory = False

    def __init__(self) -> None:
        super().__init__()

    @property
    def tracker(self) -> Any:
        return None

    def store_init_configuration(self, values: dict[str, Any]) -> None:
        attempt("the configuration is left out", lambda: config(values))

    def log(self, values: dict[str, Any], step: Optional[int] = None, **_: Any) -> None:
        if level():
            numbers = {key: value for key, value in values.items() if not isinstance(value, (str, dict))}
            attempt("logged values are left out", lambda: log(numbers, step=step))
