"""Lightning: a callback.

    from sonde.integrations.lightning import SondeCallback
    trainer = Trainer(callbacks=[SondeCallback()])

Records the spans `fit`, `epoch` {number}, `validation`, `test`, and `step` with its phases (see
sonde.integrations): a step is a batch. `optimizer` also covers what Lightning does between the step
of the optimizer and the end of the batch. What the module logs (`self.log`) becomes metrics under
the same names at the end of an epoch, and of every `log_every_n_steps`-th step. The model's
hyperparameters and the trainer's settings become parameters of the run. Data loading, workers and
memory are recorded as by sonde.integrations.torch.
"""

import importlib
from collections.abc import Mapping
from typing import Any, Optional

from .._config import config
from .._emit import level
from .._log import log
from . import torch
from ._steps import Scopes, attempt


def _callback_class() -> Any:
    try:
        return importlib.import_module("lightning.pytorch").Callback
    except ImportError:
        return importlib.import_module("pytorch_lightning").Callback


_TRAINER = ("max_epochs", "max_steps", "accumulate_grad_batches", "gradient_clip_val", "precision", "world_size")


class SondeCallback(_callback_class()):  # type: ignore[misc]
    def __init__(self, *, spans: bool = True, gradient_norm_every: int = 0) -> None:
        super().__init__()
        self._spans = spans
        self._norm_every = gradient_norm_every
        self._watch: Optional[torch.Watch] = None
        self._scopes = Scopes()

    def _log(self, trainer: Any) -> None:
        values: Mapping[str, Any] = trainer.callback_metrics
        if values:
            attempt("the values that the module logs are left out", lambda: log(dict(values), step=trainer.global_step))

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        if not level():
            return
        self._watch = torch.watch(pl_module if self._norm_every else None, spans=self._spans)
        self._scopes.enter("fit")
        if trainer.is_global_zero:
            attempt("the parameters of the module are left out", lambda: self._keep_parameters(trainer, pl_module))

    def _keep_parameters(self, trainer: Any, module: Any) -> None:
        config(dict(module.hparams))
        config({"trainer": {key: getattr(trainer, key) for key in _TRAINER if isinstance(getattr(trainer, key, None), (int, float, str))}})
        config(torch.parameters_of([module], list(trainer.optimizers)))

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        self._finish()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._finish(error=type(exception).__name__)

    def _finish(self, **more: Any) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        self._scopes.leave_all(**more)

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        if self._watch is not None:
            self._watch.steps.record_fetched()  # Lightning fetches the first batch before the epoch
        self._scopes.enter("epoch", number=trainer.current_epoch)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._scopes.leave("epoch")
        if level():
            self._log(trainer)

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        self._scopes.enter("validation")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        self._scopes.leave("validation")

    def on_test_start(self, trainer: Any, pl_module: Any) -> None:
        self._scopes.enter("test")

    def on_test_end(self, trainer: Any, pl_module: Any) -> None:
        self._scopes.leave("test")
        if level():
            self._log(trainer)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        if self._watch is not None:
            self._watch.steps.begin()
            self._watch.steps.begin_phase("forward")

    def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
        if self._watch is not None:
            self._watch.steps.end_phase("forward")

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        if self._watch is None:
            return
        if self._norm_every and (self._watch.steps.count + 1) % self._norm_every == 0:
            self._watch.gradient_norm()
        self._watch.steps.begin_phase("optimizer")

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if self._watch is None:
            return
        self._watch.steps.end()
        self._watch.emit_memory()
        if trainer.log_every_n_steps and (batch_idx + 1) % trainer.log_every_n_steps == 0:
            self._log(trainer)
