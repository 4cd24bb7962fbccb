"""Keras 3, with any backend: a callback.

    from sonde.integrations.keras import SondeCallback
    model.fit(x, y, callbacks=[SondeCallback()])

Records the spans `fit`, `epoch` {number}, `validation`, and `step`: a step is a batch. The phase
`data` is the time between two batches, in which Keras fetches the next one. The values that Keras
reports at the end of an epoch (loss, accuracy, val_loss, …) become metrics under the same names,
with the metric `epoch`. The optimizer's configuration and the shape of the training become
parameters of the run.
"""

import importlib
from time import time_ns
from typing import Any, Optional

from .._config import config
from .._emit import level
from .._log import log
from ._steps import Scopes, Steps, attempt

_Callback: Any = importlib.import_module("keras").callbacks.Callback


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if isinstance(value, (bool, int, float, str))}


class SondeCallback(_Callback):  # type: ignore[misc]
    def __init__(self, *, spans: bool = True) -> None:
        super().__init__()
        self._scopes = Scopes()
        self._spans = spans
        self._steps: Optional[Steps] = None
        self._since_ns = 0  # the end of the last batch of this epoch, or the epoch's start
        self._training = False

    def on_train_begin(self, logs: Any = None) -> None:
        if not level():
            return
        self._training = True
        self._steps = Steps(self._spans)
        self._scopes.enter("fit")
        attempt("the parameters of the model are left out", self._keep_parameters)

    def _keep_parameters(self) -> None:
        optimizer = self.model.optimizer
        config({
            "model": {"class": type(self.model).__name__, "parameters": self.model.count_params()},
            "optimizer": {"class": type(optimizer).__name__, **_plain(optimizer.get_config())},
            "fit": _plain(self.params or {}),
        })

    def on_train_end(self, logs: Any = None) -> None:
        self._training = False
        if self._steps is not None:
            self._steps.finish()
            self._steps = None
        self._scopes.leave_all()

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._scopes.enter("epoch", number=epoch)
        self._since_ns = time_ns()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._scopes.leave("epoch")
        if logs and level():
            log({**logs, "epoch": epoch})

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if self._steps is not None:
            self._steps.fetched(self._since_ns, time_ns())
            self._steps.begin()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if self._steps is not None:
            self._steps.end()
            self._since_ns = time_ns()

    def on_test_begin(self, logs: Any = None) -> None:
        self._scopes.enter("validation" if self._training else "evaluation")

    def on_test_end(self, logs: Any = None) -> None:
        self._scopes.leave("validation" if self._training else "evaluation")
