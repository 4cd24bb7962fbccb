"""The places at which PyTorch tells that a phase begins and ends.

Modules and optimizers have hooks. DataLoaders, their workers and backward() have none, so Patches
replaces one function of each for all objects, and puts the original back at the end. A worker that
is forked inherits the replacement.
"""

import functools
import importlib
import types
from string import Formatter
from time import time_ns
from typing import Any, Callable

from .._emit import Metric, counter, span_at
from ._steps import NS, Steps, warn_once


class _Hook:
    """A hook of a module. A copy of the module (of an average of its weights), or the pickled
    module, has a function of the standard library in its place, which does nothing: the copy is
    another model, and the file is read without sonde."""

    def __init__(self, function: Callable[[], None], arguments: int) -> None:
        self._function = function
        self._arguments = arguments

    def __call__(self, *_: Any) -> None:
        self._function()

    def __reduce__(self) -> Any:
        nothing = Formatter().check_unused_args  # takes three arguments
        return functools.partial, (nothing, *[None] * (3 - self._arguments))


def add_hooks(model: Any, steps: Steps, torch: Any) -> list[Any]:
    """Adds the hooks of the forward pass; returns objects that remove() them."""
    grad_enabled = torch.is_grad_enabled

    def before() -> None:
        if model.training and grad_enabled():
            steps.begin()
        steps.begin_phase("forward")

    return [model.register_forward_pre_hook(_Hook(before, 2)), model.register_forward_hook(_Hook(lambda: steps.end_phase("forward"), 3))]


class _Worker:
    """The metrics of one worker of a DataLoader, in its process."""

    def __init__(self, number: int) -> None:
        self.tags = {"worker": number}
        self.seconds: Metric = counter("train_load_seconds", "seconds", "time in which a worker made batches", tags=self.tags)
        self.batches: Metric = counter("train_loaded", "", "batches that a worker has made", tags=self.tags)


class _Removal:
    def __init__(self, remove: Callable[[], None]) -> None:
        self.remove = remove


class Patches:
    """The replaced functions of PyTorch, until remove()."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._active = True
        self._replaced: list[tuple[Any, str, Any, Any]] = []
        self._workers: dict[int, _Worker] = {}
        self._replace("torch.autograd", "", "backward", self._backward)
        self._replace("torch.utils.data.dataloader", "_BaseDataLoaderIter", "__next__", self._fetch)
        for kind in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
            self._replace("torch.utils.data._utils.fetch", kind, "fetch", self._load)

    def _replace(self, module: str, kind: str, name: str, make: Callable[[Any], Any]) -> None:
        try:
            place = importlib.import_module(module)
            place = getattr(place, kind) if kind else place
            original = getattr(place, name)
        except (ImportError, AttributeError):
            warn_once(f"this PyTorch has no {module}.{kind + '.' if kind else ''}{name}: its time is not recorded")
            return
        replacement = functools.wraps(original)(make(original))
        self._replaced.append((place, name, original, replacement))
        setattr(place, name, replacement)

    def remove(self) -> None:
        """If another tool has replaced a function since, ours stays within the other one, and only
        calls the original."""
        self._active = False
        for place, name, original, replacement in self._replaced:
            if getattr(place, name) is replacement:
                setattr(place, name, original)
        self._replaced = []

    def _backward(self, original: Any) -> Any:
        steps = self._steps

        def backward(*given: Any, **more: Any) -> Any:
            if not self._active:
                return original(*given, **more)
            steps.end_phase("forward")  # of a loop that tells only its beginning
            steps.begin()
            steps.begin_phase("backward")
            try:
                return original(*given, **more)
            finally:
                steps.end_phase("backward")

        return backward

    def _fetch(self, original: Any) -> Any:
        steps = self._steps

        def fetch(iterator: Any) -> Any:
            if not self._active:
                return original(iterator)
            start_ns = time_ns()
            try:
                batch = original(iterator)
            except StopIteration:
                steps.exhausted()
                raise
            steps.fetched(start_ns, time_ns())
            return batch

        return fetch

    def _load(self, original: Any) -> Any:
        worker_info = importlib.import_module("torch.utils.data").get_worker_info

        def load(fetcher: Any, indices: Any) -> Any:
            info = worker_info() if self._active else None
            if info is None:  # the program's own process, whose fetch is recorded
                return original(fetcher, indices)
            start_ns = time_ns()
            batch = original(fetcher, indices)
            end_ns = time_ns()
            worker = self._workers.get(info.id)
            if worker is None:
                worker = self._workers[info.id] = _Worker(info.id)
            worker.batches.add()
            worker.seconds.add((end_ns - start_ns) * NS)
            if self._steps.spans:
                span_at("load", start_ns, end_ns, worker.tags)
            return batch

        return load

    def watch_optimizer(self, optimizer: Any, before: Callable[[], None], after: Callable[[], None]) -> list[Any]:
        """Calls the functions before and after each step of the optimizer. PyTorch before 2.0 has
        no hooks for it, so the optimizer's method is replaced there."""
        while hasattr(optimizer, "optimizer"):  # of Accelerate, Lightning
            optimizer = optimizer.optimizer
        if hasattr(optimizer, "register_step_pre_hook"):
            return [optimizer.register_step_pre_hook(lambda *_: before()), optimizer.register_step_post_hook(lambda *_: after())]
        original = optimizer.step

        @functools.wraps(original)
        def step(_: Any, *given: Any, **more: Any) -> Any:
            before()
            result = original(*given, **more)
            after()
            return result

        method = optimizer.step = types.MethodType(step, optimizer)  # schedulers expect a method

        def remove() -> None:
            if optimizer.step is method:
                optimizer.step = original

        return [_Removal(remove)]
