"""MLflow: keep an existing script's calls in the recording as well.

    import sonde.integrations.mlflow as mlflow    # instead of: import mlflow

`start_run` begins the span `run` {name}, and `end_run` (or the end of ``with``) ends it. The values
of `log_metric` and `log_metrics` become metrics under the same names with the metric `step`; those
of `log_param`, `log_params` and (as `tags.KEY`) `set_tag`, `set_tags` become parameters of the run.
If MLflow is installed, every call goes on to it, and its answers are returned. Otherwise artifacts,
models and all other calls do nothing, so the script runs without it.
"""

from collections.abc import Mapping
from typing import Any, Optional

from ._shim import Ignored, RunSpan, keep_numbers, keep_parameters, pass_on, real_library

_real: Any = real_library("mlflow")
__getattr__ = pass_on(__name__, _real)


class ActiveRun:
    """What start_run() returns. What it lacks comes from the real run."""

    def __init__(self, real: Any, name: Optional[str]) -> None:
        self._real = real
        self._span = RunSpan(name=name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_real":
            raise AttributeError(name)
        return Ignored() if self._real is None else getattr(self._real, name)

    def __enter__(self) -> "ActiveRun":
        return self

    def __exit__(self, kind: Optional[type[BaseException]], *_: object) -> None:
        end_run("FINISHED" if kind is None else "FAILED")


_runs: list[ActiveRun] = []  # within each other


def start_run(run_id: Optional[str] = None, experiment_id: Optional[str] = None, run_name: Optional[str] = None, *given: Any, **more: Any) -> Any:
    real = None if _real is None else _real.start_run(run_id, experiment_id, run_name, *given, **more)
    _runs.append(ActiveRun(real, run_name))
    return _runs[-1]


def end_run(status: str = "FINISHED") -> None:
    if _real is not None:
        _real.end_run(status)
    if _runs:
        _runs.pop()._span.close(failed=str(status) not in ("FINISHED", "RunStatus.FINISHED"))


def active_run() -> Any:
    return (_runs[-1] if _runs else None) if _real is None else _real.active_run()


def log_metric(key: str, value: float, step: Optional[int] = None, **more: Any) -> Any:
    keep_numbers({key: value}, step)
    return None if _real is None else _real.log_metric(key, value, step=step, **more)


def log_metrics(metrics: Mapping[str, float], step: Optional[int] = None, **more: Any) -> Any:
    keep_numbers(metrics, step)
    return None if _real is None else _real.log_metrics(metrics, step=step, **more)


def log_param(key: str, value: Any, **more: Any) -> Any:
    """Returns the value, as MLflow does."""
    keep_parameters({key: value})
    return value if _real is None else _real.log_param(key, value, **more)


def log_params(params: Mapping[str, Any], **more: Any) -> Any:
    keep_parameters(params)
    return None if _real is None else _real.log_params(params, **more)


def set_tag(key: str, value: Any, **more: Any) -> Any:
    keep_parameters({"tags": {key: value}})
    return None if _real is None else _real.set_tag(key, value, **more)


def set_tags(tags: Mapping[str, Any], **more: Any) -> Any:
    keep_parameters({"tags": tags})
    return None if _real is None else _real.set_tags(tags, **more)
