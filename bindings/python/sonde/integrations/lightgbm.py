"""LightGBM: callbacks.

    from sonde.integrations.lightgbm import callbacks
    lightgbm.train(params, data, valid_sets=[…], callbacks=callbacks())

LGBMClassifier.fit takes them, too. Records `step` {number} for each round, with train_steps and
train_step_seconds (see sonde.integrations). The values of the validation sets become metrics named
`SET.METRIC` (`valid_0.l2`) with the metric `step`. The parameters become parameters of the run
(`lightgbm.…`).
"""

from typing import Any, Callable

from .._config import config
from .._emit import level
from .._log import log
from ._steps import Steps, attempt


class _Rounds:
    """Both callbacks of one training."""

    def __init__(self, spans: bool) -> None:
        self._steps = Steps(spans)

    def before(self, env: Any) -> None:
        if env.iteration == env.begin_iteration:
            plain = {key: value for key, value in env.params.items() if isinstance(value, (bool, int, float, str))}
            attempt("the parameters are left out", lambda: config({"lightgbm": plain}))
        self._steps.begin(tags={"number": env.iteration})

    def after(self, env: Any) -> None:
        self._steps.end()
        # (set, metric, value, …); cross validation has one more member
        values = {f"{entry[0]}.{entry[1]}": entry[2] for entry in env.evaluation_result_list or ()}
        if values:
            log(values, step=env.iteration)


def callbacks(*, spans: bool = True) -> list[Callable[[Any], None]]:
    """Returns the callbacks of one training; an empty list at level 0."""
    if not level():
        return []
    rounds = _Rounds(spans)

    def before(env: Any) -> None:
        rounds.before(env)

    def after(env: Any) -> None:
        rounds.after(env)

    # LightGBM reads these attributes. The order is before early stopping, which raises an
    # exception.
    before.before_iteration, before.order = True, 0  # type: ignore[attr-defined]
    after.before_iteration, after.order = False, 15  # type: ignore[attr-defined]
    return [before, after]
