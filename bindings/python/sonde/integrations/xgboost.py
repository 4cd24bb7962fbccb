"""XGBoost: a callback.

    from sonde.integrations.xgboost import SondeCallback
    xgboost.train(params, data, callbacks=[SondeCallback()], evals=[…])

XGBClassifier takes the callback, too. Records the span `fit`, and `step` {number} for each round,
with train_steps and train_step_seconds (see sonde.integrations). The values of the evaluation sets
become metrics named `SET.METRIC` (`train.rmse`) with the metric `step`. The booster's configuration
becomes parameters of the run.
"""

import importlib
import json
from typing import Any, Optional

from .._config import config
from .._emit import level
from .._log import log
from ._steps import Scopes, Steps, attempt

_Callback: Any = importlib.import_module("xgboost").callback.TrainingCallback
_PARAMETERS = (("learner", "gradient_booster", "tree_train_param"), ("learner", "generic_param"), ("learner", "learner_train_param"))


def _last(value: Any) -> float:
    """The last value of a history; of cross validation, its mean."""
    newest = value[-1]
    return float(newest[0] if isinstance(newest, tuple) else newest)


class SondeCallback(_Callback):  # type: ignore[misc]
    def __init__(self, *, spans: bool = True) -> None:
        super().__init__()
        self._spans = spans
        self._scopes = Scopes()
        self._steps: Optional[Steps] = None

    def before_training(self, model: Any) -> Any:
        if level():
            self._steps = Steps(self._spans)
            self._scopes.enter("fit")
            if hasattr(model, "save_config"):  # not so of cross validation
                attempt("the booster's parameters are left out", lambda: self._keep_parameters(json.loads(model.save_config())))
        return model

    def _keep_parameters(self, found: dict[str, Any]) -> None:
        kept: dict[str, str] = {}
        for path in _PARAMETERS:
            inner: Any = found
            for key in path:
                inner = inner.get(key, {})
            kept.update({key: value for key, value in inner.items() if isinstance(value, str) and value})
        config({"xgboost": kept})

    def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        if self._steps is not None:
            self._steps.begin(tags={"number": epoch})
        return False

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        if self._steps is not None:
            self._steps.end()
            values = {f"{data}.{metric}": _last(history) for data, found in evals_log.items() for metric, history in found.items()}
            if values:
                log(values, step=epoch)
        return False

    def after_training(self, model: Any) -> Any:
        if self._steps is not None:
            self._steps.finish()
            self._steps = None
        self._scopes.leave_all()
        return model
