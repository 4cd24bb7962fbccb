"""Weights & Biases: keep an existing script's calls in the recording as well.

    import sonde.integrations.wandb as wandb    # instead of: import wandb

`init` begins the span `run` {project, name}, and `finish` ends it. The numbers of `log` become
metrics under the same names (those of mappings within as `outer.inner`) with the metric `step`;
`config` becomes parameters of the run. If wandb is installed, every call goes on to it, and its
answers are returned. Otherwise pictures, tables, artifacts and all other calls do nothing, so the
script runs without it.
"""

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Optional

from ._shim import Ignored, RunSpan, as_mapping, keep_numbers, keep_parameters, pass_on, real_library

_real: Any = real_library("wandb")


class _Recorder:
    """Counts the steps as wandb does: a log() without a step is the last one of its step."""

    def __init__(self) -> None:
        self._step = 0

    def log(self, data: Mapping[str, Any], step: Optional[int], commit: Optional[bool]) -> None:
        if step is not None:
            self._step = step
        if isinstance(data, Mapping):
            keep_numbers(data, self._step)
        if step is None if commit is None else commit:
            self._step += 1


class Config(MutableMapping[str, Any]):
    """`wandb.config`: a mapping whose members are attributes, too."""

    def __init__(self, real: Any = None) -> None:
        self.__dict__.update(_values={}, _real=real)

    def _source(self) -> Any:
        return self._values if self._real is None else self._real

    def __getitem__(self, key: str) -> Any:
        return self._source()[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.update({key: value})

    def __delitem__(self, key: str) -> None:
        del self._source()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(dict(self._source()))

    def __len__(self) -> int:
        return len(dict(self._source()))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        source = self.__dict__["_real"]
        if source is not None:
            return getattr(source, name)
        try:
            return self.__dict__["_values"][name]
        except KeyError:
            raise AttributeError(f"the configuration has no {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self.update({name: value})

    def update(  # type: ignore[override]
        self, values: Any = None, allow_val_change: Optional[bool] = None, **more: Any
    ) -> None:
        """Keeps the parameters, and passes them on."""
        given = {**as_mapping(values), **more}
        if self._real is not None:
            self._real.update(given, allow_val_change=allow_val_change)
        self._values.update(given)
        keep_parameters(given)

    def setdefaults(self, values: Any) -> None:
        self.update({key: value for key, value in as_mapping(values).items() if key not in self})


class Run:
    """What init() returns. What it lacks comes from the real run."""

    def __init__(self, real: Any, project: Any = None, name: Any = None) -> None:
        self._real = real
        self._span = RunSpan(project=project, name=name)
        self._recorder = _Recorder()
        self.config = Config(None if real is None else real.config)
        self.name = name if real is None else real.name
        self.summary: Any = {} if real is None else real.summary

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_real":
            raise AttributeError(name)
        return Ignored() if self._real is None else getattr(self._real, name)

    def log(self, data: Mapping[str, Any], step: Optional[int] = None, commit: Optional[bool] = None, **more: Any) -> None:
        if self._real is None:
            self.summary.update(data)
        else:
            self._real.log(data, step=step, commit=commit, **more)
        self._recorder.log(data, step, commit)

    def finish(self, exit_code: Optional[int] = None, **more: Any) -> None:
        """Ends the run. A second call does nothing here."""
        global run
        if self._real is not None:
            self._real.finish(exit_code, **more)
        self._span.close(failed=bool(exit_code))
        if run is self:
            run = None

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, kind: Optional[type[BaseException]], *_: object) -> None:
        self.finish(exit_code=0 if kind is None else 1)


run: Optional[Run] = None
_config = Config()  # before init()
_recorder = _Recorder()  # without init()
_other_names = pass_on(__name__, _real)


def __getattr__(name: str) -> Any:
    if name == "config":
        return _config if run is None else run.config
    if name == "summary":
        return {} if run is None else run.summary
    return _other_names(name)


def init(*given: Any, project: Optional[str] = None, name: Optional[str] = None, config: Any = None, **more: Any) -> Any:
    """Begins a run. Within a run, it returns that run, as wandb does, unless `reinit` is set."""
    global run
    if run is not None and not more.get("reinit"):
        return run
    real = None
    if _real is not None:
        real = _real.init(*given, project=project, name=name, config=config, **more)
    if run is not None:
        run._span.close()
    run = Run(real, project, name)
    parameters = {**_config._values, **as_mapping(config)}
    run.config._values.update(parameters)
    keep_parameters(parameters)
    return run


def log(data: Mapping[str, Any], step: Optional[int] = None, commit: Optional[bool] = None, **more: Any) -> None:
    """Records the numbers, also without init() if wandb is missing."""
    if run is not None:
        run.log(data, step=step, commit=commit, **more)
        return
    if _real is not None:
        _real.log(data, step=step, commit=commit, **more)
    _recorder.log(data, step, commit)


def finish(exit_code: Optional[int] = None, **more: Any) -> None:
    if run is not None:
        run.finish(exit_code, **more)


def watch(*given: Any, **more: Any) -> Any:
    """wandb.watch(model) is passed on. sonde.integrations.torch.watch() records the training."""
    return None if _real is None else _real.watch(*given, **more)
