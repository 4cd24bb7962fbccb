"""Hugging Face Transformers: a callback for the Trainer.

    from sonde.integrations.transformers import SondeCallback
    trainer = Trainer(model, args, callbacks=[SondeCallback()], …)

Records the spans `fit`, `epoch` {number} and `evaluation`, and `step` with its phases, data
loading, workers and memory as sonde.integrations.torch does: a step is a step of the optimizer.
What the Trainer logs (loss, learning_rate, grad_norm, eval_loss, …) becomes metrics under the same
names, with the metric `step`. The settings of TrainingArguments become parameters of the run
(`trainer.…`).
"""

import importlib
from typing import Any, Optional

from .._config import config
from .._emit import level
from .._log import log
from . import torch
from ._steps import Scopes, attempt

_Callback: Any = importlib.import_module("transformers").TrainerCallback


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """The settings that are set, and that are numbers or texts."""
    return {key: value for key, value in values.items() if isinstance(value, (bool, int, float, str)) and value != ""}


class SondeCallback(_Callback):  # type: ignore[misc]
    def __init__(self, *, spans: bool = True, gradient_norm_every: int = 0) -> None:
        self._spans = spans
        self._norm_every = gradient_norm_every
        self._watch: Optional[torch.Watch] = None
        self._scopes = Scopes()

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, optimizer: Any = None, **_: Any) -> None:
        if not level():
            return
        self._watch = torch.watch(model, optimizer, spans=self._spans, gradient_norm_every=self._norm_every)
        self._scopes.enter("fit")
        if state.is_world_process_zero:
            attempt("the settings of the Trainer are left out", lambda: config({"trainer": _plain(args.to_dict())}))

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        self._scopes.leave_all()

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._scopes.enter("epoch", number=int(state.epoch or 0))

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._scopes.leave("epoch")

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._scopes.leave("evaluation")

    def on_prediction_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._scopes.enter_once("evaluation")

    def on_log(self, args: Any, state: Any, control: Any, logs: Optional[dict[str, Any]] = None, **_: Any) -> None:
        if logs and level() and state.is_world_process_zero:
            numbers = {key: value for key, value in logs.items() if isinstance(value, (int, float))}
            log(numbers, step=state.global_step)
