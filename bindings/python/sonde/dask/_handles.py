"""The GPUs of this process' node as handles for built-in and custom metrics.

If pynvml is installed, its functions accept the handles. In any case, a handle is a `Device` with
the methods below. ctypes calls NVML itself (the driver's ``libnvidia-ml.so.1``); without it there
are no GPUs. GPUs are identified by UUID, because NVML ignores CUDA_VISIBLE_DEVICES: the first entry
of that variable names a worker's own GPU. Calls release the interpreter lock.
"""

import ctypes
import importlib
import inspect
import logging
import os
import threading
from typing import Any, Callable, Optional, TypeVar, Union

from ._settings import own_gpu

_log = logging.getLogger("sonde.dask")
_Function = TypeVar("_Function", bound=Callable[..., Any])

_ALREADY_INITIALIZED = 5  # nvmlReturn_t, of NVML before version 2
_UUID_MAX_BYTES = 96
_MEMORY_V2 = 40 | 2 << 24  # size and version of the layout


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class _MemoryV2(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint)] + [(name, ctypes.c_ulonglong) for name in ("total", "reserved", "free", "used")]


class _OpaqueDevice(ctypes.Structure):
    pass


class Device:
    """A GPU, or a MIG instance. Values that it does not provide are None."""

    # NVML's index, in the order of PCI addresses; a MIG instance has the index of its GPU
    index: int
    uuid: str
    _nvml: "_Nvml"

    def _ask(self, answer: Any, *functions: str) -> bool:
        return any(self._nvml.call(function, self, ctypes.byref(answer)) == 0 for function in functions)

    def _memory(self) -> Union[_Memory, _MemoryV2, None]:
        newer = _MemoryV2(version=_MEMORY_V2)
        if self._ask(newer, "nvmlDeviceGetMemoryInfo_v2"):
            return newer
        older = _Memory()  # the older struct, whose `used` includes the driver's own memory
        return older if self._ask(older, "nvmlDeviceGetMemoryInfo") else None

    def memory_used(self) -> Optional[int]:
        """Used memory in bytes."""
        memory = self._memory()
        return int(memory.used) if memory else None

    def memory_total(self) -> Optional[int]:
        """Total memory in bytes."""
        memory = self._memory()
        return int(memory.total) if memory else None

    def memory_used_percent(self) -> Optional[float]:
        """Used memory in percent of the total."""
        memory = self._memory()
        return 100 * memory.used / memory.total if memory and memory.total else None

    def utilization(self) -> Optional[int]:
        """Percent of the time in which a kernel was running."""
        rates = _Utilization()
        return int(rates.gpu) if self._ask(rates, "nvmlDeviceGetUtilizationRates") else None

    def memory_activity(self) -> Optional[int]:
        """Percent of the time in which memory was read or written."""
        rates = _Utilization()
        return int(rates.memory) if self._ask(rates, "nvmlDeviceGetUtilizationRates") else None

    def power_watts(self) -> Optional[float]:
        milliwatts = ctypes.c_uint()
        return milliwatts.value / 1000 if self._ask(milliwatts, "nvmlDeviceGetPowerUsage") else None


class _Nvml:
    """Loads and initializes the library. Raises OSError if that fails."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(os.environ.get("SONDE_NVML") or "libnvidia-ml.so.1")
        result = self.call("nvmlInit_v2")
        if result is None:
            result = self.call("nvmlInit")
        if result not in (0, _ALREADY_INITIALIZED):
            raise OSError(f"NVML does not start: error {result}")
        pointer: Any = ctypes.POINTER(_OpaqueDevice)
        try:
            pynvml = importlib.import_module("pynvml")
            pynvml.nvmlInit()  # the same library; it counts its initializations
            pointer = pynvml.c_nvmlDevice_t
        except ImportError:
            pass
        except Exception as error:  # pynvml raises many types for a faulty library
            _log.warning("pynvml does not start, custom metrics get handles without it: %s", error)
        self._handle_type: Any = type("DeviceHandle", (Device, pointer), {"_type_": pointer._type_})

    def call(self, function: str, *arguments: Any) -> Optional[int]:
        """Calls a function of NVML. Returns None if this version lacks it."""
        found = getattr(self._library, function, None)
        return None if found is None else int(found(*arguments))

    def _handle(self, index: int, function: str, *arguments: Any) -> Optional[Device]:
        where = ctypes.c_void_p()
        if self.call(function, *arguments, ctypes.byref(where)) != 0:
            return None
        handle: Device = ctypes.cast(where, self._handle_type)
        handle.index, handle._nvml = index, self
        text = ctypes.create_string_buffer(_UUID_MAX_BYTES)
        if self.call("nvmlDeviceGetUUID", handle, text, ctypes.c_uint(_UUID_MAX_BYTES)) != 0:
            return None
        handle.uuid = text.value.decode(errors="replace")
        return handle

    def gpus(self) -> list[Device]:
        """Returns all GPUs in the order of their indices. A GPU that does not respond is left out,
        with a warning."""
        count = ctypes.c_uint()
        if self.call("nvmlDeviceGetCount_v2", ctypes.byref(count)) is None:
            self.call("nvmlDeviceGetCount", ctypes.byref(count))
        found = []
        for index in range(count.value):
            gpu = self._handle(index, "nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index)) or self._handle(
                index, "nvmlDeviceGetHandleByIndex", ctypes.c_uint(index)
            )
            if gpu:
                found.append(gpu)
            else:
                _log.warning("GPU %d does not answer and is left out", index)
        return found

    def instances(self, gpu: Device) -> list[Device]:
        """Returns the GPU's MIG instances."""
        count = ctypes.c_uint()
        if self.call("nvmlDeviceGetMaxMigDeviceCount", gpu, ctypes.byref(count)) != 0:
            return []
        places = range(count.value * 2)  # some drivers leave gaps
        found = (self._handle(gpu.index, "nvmlDeviceGetMigDeviceHandleByIndex", gpu, ctypes.c_uint(place)) for place in places)
        return [instance for instance in found if instance]


_lock = threading.Lock()
_started: Optional[_Nvml] = None


def _nvml() -> Optional[_Nvml]:
    """Returns NVML, initialized once in this process; None if it is missing."""
    global _started
    with _lock:
        if _started is None:
            try:
                _started = _Nvml()
            except OSError as error:
                _log.info("no GPUs found: %s", error)
        return _started


def _named(nvml: _Nvml, gpus: list[Device], entry: str) -> list[Device]:
    """Returns the device of an entry of CUDA_VISIBLE_DEVICES: an index, a UUID, or an unambiguous
    beginning of a UUID."""
    if entry.isdecimal():
        return [gpu for gpu in gpus if gpu.index == int(entry)]
    if not entry.startswith(("GPU-", "MIG-")):
        return []
    candidates = gpus if entry.startswith("GPU-") else [instance for gpu in gpus for instance in nvml.instances(gpu)]
    found = [device for device in candidates if device.uuid.lower().startswith(entry.lower())]
    return found if len(found) == 1 else []


def device_handles(own_only: bool) -> list[Device]:
    """Returns the node's GPUs, or this worker's own GPU: the first entry of CUDA_VISIBLE_DEVICES;
    all GPUs if it is not set."""
    nvml = _nvml()
    gpus = nvml.gpus() if nvml else []
    own = own_gpu(os.environ.get("CUDA_VISIBLE_DEVICES"))
    if not nvml or not own_only or own is None:
        return gpus
    return _named(nvml, gpus, own)


def custom_metric(name: str, per_device: bool = True) -> Callable[[_Function], _Function]:
    """Makes a function ``(worker, handle)`` a metric of this name, for
    Monitor.attach(custom_metrics=[…]).

    sonde calls it for each device with its handle, or with `per_device=False` once with the list of
    all handles.
    """
    if not isinstance(name, str):
        raise TypeError("custom_metric needs the metric's name: @custom_metric('power')")
    if not name or not name.isprintable() or name != name.strip():
        raise ValueError(f"{name!r} cannot be a metric's name")

    def decorate(function: _Function) -> _Function:
        try:
            inspect.signature(function).bind(None, None)
        except TypeError:
            raise TypeError(f"the custom metric {name!r} has to take two arguments, a worker and a handle") from None
        function.metric_name, function.per_device = name, per_device  # type: ignore[attr-defined]
        return function

    return decorate
