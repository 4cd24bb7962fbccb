"""PyTorch: the steps of a training loop, and what its DataLoaders and workers do.

    import sonde.integrations.torch
    sonde.integrations.torch.watch(model, optimizer)

Records `step` with `data`, `forward`, `backward`, `optimizer` (see sonde.integrations). A step ends
with `optimizer.step()`, so that steps which accumulate gradients have several forward passes.
Beside these:

    span load {worker}           a batch that a worker of a DataLoader made
    train_load_seconds{worker}   counter: seconds in which the worker made batches
    train_loaded{worker}         counter: batches that it made
    torch_memory_allocated_bytes{gpu,uuid}, torch_memory_reserved_bytes{gpu,uuid},
    torch_memory_allocated_peak_bytes{gpu,uuid}
                                 PyTorch's memory of each GPU that the process uses, at the end of a
                                 step, at most once a second
    torch_allocation_retries{gpu,uuid}, torch_out_of_memory{gpu,uuid}
                                 how often the allocator had to free its cache, or failed
    torch_gradient_norm          only on demand: `gradient_norm()`, or `gradient_norm_every=100`
    parameters of the run        model.class, model.parameters, optimizer.class, optimizer.lr, …

Nothing waits for the GPU, except the gradient norm. A forward or backward pass on a GPU is the time
in which the program launches it. Call watch() before the DataLoader starts its workers. Give what
torch.compile() and DistributedDataParallel return.
"""

import importlib
import os
from collections.abc import Iterable, Iterator
from time import monotonic, time_ns
from typing import Any, Optional, Union

from .._config import config
from .._emit import Metric, gauge, level
from ._steps import Steps, attempt
from ._torch_hooks import Patches, add_hooks

_MEMORY_EVERY_S = 1.0  # memory_stats() takes about 0.1 ms
_MEMORY = {
    "allocated_bytes.all.current": ("torch_memory_allocated_bytes", "bytes", "memory of tensors on the GPU"),
    "reserved_bytes.all.current": ("torch_memory_reserved_bytes", "bytes", "memory that PyTorch holds on the GPU"),
    "allocated_bytes.all.peak": ("torch_memory_allocated_peak_bytes", "bytes", "highest memory of tensors on the GPU since the start or the last reset"),
    "num_alloc_retries": ("torch_allocation_retries", "", "allocations that had to free PyTorch's cache first"),
    "num_ooms": ("torch_out_of_memory", "", "allocations that failed for lack of memory"),
}
_DEFAULTS_MAX = 32  # an optimizer's parameters that are kept

_active: Optional["Watch"] = None


def _as_list(given: Any) -> list[Any]:
    return [] if given is None else list(given) if isinstance(given, (list, tuple)) else [given]


class _Memory:
    """The metrics of PyTorch's allocator on the GPUs that this process uses."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._metrics: dict[tuple[int, str], Metric] = {}
        self._next_s = 0.0

    def emit(self) -> None:
        now = monotonic()
        if now < self._next_s:
            return
        self._next_s = now + _MEMORY_EVERY_S
        cuda = self._torch.cuda
        if not cuda.is_initialized():  # is_available() would search for a driver, which takes long
            return
        for gpu in range(cuda.device_count()):
            stats = cuda.memory_stats(gpu)
            if not stats.get("reserved_bytes.all.peak"):
                continue  # this process does not use the GPU
            for key, (name, unit, about) in _MEMORY.items():
                if key in stats:
                    metric = self._metrics.get((gpu, name))
                    if metric is None:
                        metric = self._metrics[gpu, name] = gauge(name, unit, about, tags=self._tags(gpu))
                    metric(stats[key])


    def _tags(self, gpu: int) -> dict[str, Any]:
        # CUDA's number depends on CUDA_VISIBLE_DEVICES, so the UUID says which GPU it is. PyTorch
        # 2.5 and newer know it, without the driver's prefix.
        uuid = str(getattr(self._torch.cuda.get_device_properties(gpu), "uuid", ""))
        return {"gpu": gpu} | ({"uuid": uuid if uuid.startswith("GPU-") else f"GPU-{uuid}"} if uuid else {})


def parameters_of(models: list[Any], optimizers: list[Any]) -> dict[str, Any]:
    """What becomes parameters of the run: model.class, optimizer.lr, …"""
    found: dict[str, Any] = {}
    if models:
        inner = getattr(models[0], "module", models[0])  # of DistributedDataParallel
        found["model"] = {
            "class": type(getattr(inner, "_orig_mod", inner)).__name__,  # of torch.compile
            "parameters": sum(parameter.numel() for parameter in inner.parameters()),
        }
    if optimizers:
        defaults = dict(list(optimizers[0].defaults.items())[:_DEFAULTS_MAX])
        plain = {key: value for key, value in defaults.items() if isinstance(value, (bool, int, float, str, tuple))}
        found["optimizer"] = {"class": type(optimizers[0]).__name__, **plain}
    return found


class Watch:
    """What watch() returns. It ends with close(), at the end of a ``with`` block, or with the next
    watch()."""

    def __init__(self, models: list[Any], optimizers: list[Any], spans: bool, gradient_norm_every: int) -> None:
        self._torch = importlib.import_module("torch")
        self._models = models
        self._optimizers = optimizers
        self._norm_every = gradient_norm_every
        self._norm: Metric = gauge("torch_gradient_norm", "", "norm of all gradients together")
        self._memory = _Memory(self._torch)
        self.steps = Steps(spans)
        self._patches: Optional[Patches] = None
        self._removals: list[Any] = []
        if level():
            self._patches = Patches(self.steps)
            for model in models:
                self._removals += add_hooks(model, self.steps, self._torch)
            for number, optimizer in enumerate(optimizers):
                self._removals += self._patches.watch_optimizer(optimizer, self._before_optimizer, self._after_optimizer(number == len(optimizers) - 1))
            if os.environ.get("RANK", "0") == "0":
                attempt("the parameters of the model and the optimizer are left out", lambda: config(parameters_of(models, optimizers)))

    def _before_optimizer(self) -> None:
        self.steps.begin()
        if self._norm_every and (self.steps.count + 1) % self._norm_every == 0:
            self.gradient_norm()
        self.steps.begin_phase("optimizer")

    def _after_optimizer(self, last: bool) -> Any:
        def after() -> None:
            self.steps.end_phase("optimizer")
            if last:
                self.steps.end()
                self.emit_memory()

        return after

    def emit_memory(self) -> None:
        attempt("the memory of the GPUs is left out", self._memory.emit)

    def gradient_norm(self) -> Optional[float]:
        """Emits and returns the norm of all gradients of the models: call it between backward() and
        optimizer.step(). It reads every gradient, and waits for the GPU. None without gradients, or
        at level 0."""
        if not level():
            return None
        value = attempt("the gradient norm is left out", self._gradient_norm)
        self._norm(value)
        return None if value is None else float(value)

    def _gradient_norm(self) -> Optional[float]:
        torch = self._torch
        norms = [torch.linalg.vector_norm(p.grad.detach()) for model in self._models for p in model.parameters() if p.grad is not None]
        if not norms:
            return None
        return float(torch.linalg.vector_norm(torch.stack([norm.to(norms[0].device) for norm in norms])))

    def batches(self, source: Iterable[Any]) -> Iterator[Any]:
        """Yields the batches of a source that is not a DataLoader, and records the fetches."""
        if not level():
            yield from source
            return
        iterator = iter(source)
        while True:
            start_ns = time_ns()
            try:
                batch = next(iterator)
            except StopIteration:
                self.steps.exhausted()
                return
            self.steps.fetched(start_ns, time_ns())
            yield batch

    def close(self) -> None:
        """Removes all hooks. A second call does nothing."""
        global _active
        if _active is self:
            _active = None
        for removal in self._removals:
            removal.remove()
        self._removals = []
        if self._patches is not None:
            self._patches.remove()
            self._patches = None
            self.steps.finish()

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def watch(
    model: Union[Any, list[Any], None] = None, optimizer: Union[Any, list[Any], None] = None, *, spans: bool = True, gradient_norm_every: int = 0
) -> Watch:
    """Records the training of the model with the optimizer, and all DataLoaders. Of several
    optimizers (a list), the last one ends the step. A second watch() ends the first one."""
    global _active
    if _active is not None:
        _active.close()
    _active = Watch(_as_list(model), _as_list(optimizer), spans, gradient_norm_every)
    return _active
