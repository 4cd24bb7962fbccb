"""How long imports take, for each package.

A finder stands before the others and passes each search on to them. It measures the search, and
replaces the methods of the loader that it finds until they are called. The time of a module counts
for its own package, without the modules that it imports in turn; so the packages add up to the time
of all imports.
"""

from __future__ import annotations

import sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec, SourceFileLoader, SourcelessFileLoader
from threading import local
from time import perf_counter_ns

from sonde._emit import counter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType
    from typing import Any

    from sonde._emit import Metric

PACKAGES_MAX = 64  # of a process; further ones are "other"

# Each module has a loader of its own of these classes. Other loaders count for the module around.
TIMED: dict[type, list[str]] = {
    SourceFileLoader: ["exec_module"],
    SourcelessFileLoader: ["exec_module"],
    ExtensionFileLoader: ["create_module", "exec_module"],
}


class _Thread(local):
    """The imports that a thread is in, from the outermost to the innermost."""

    def __init__(self) -> None:
        self.packages: list[str] = []
        self.since_ns = 0


class _Account:
    def __init__(self) -> None:
        self._thread = _Thread()
        self._metrics: dict[str, Metric] = {}

    def _metric(self, package: str) -> Metric:
        metric = self._metrics.get(package)
        if metric is None:
            shown = package if len(self._metrics) < PACKAGES_MAX else "other"
            metric = counter("python_import_seconds", "seconds", "time of imports", tags={"package": shown})
            if shown == package:
                self._metrics[package] = metric
        return metric

    def _count(self) -> None:
        now = perf_counter_ns()
        if self._thread.packages:
            self._metric(self._thread.packages[-1]).add((now - self._thread.since_ns) / 1e9)
        self._thread.since_ns = now

    def begin(self, module: str) -> None:
        self._count()
        self._thread.packages.append(module.partition(".")[0])

    def end(self) -> None:
        self._count()
        self._thread.packages.pop()


class _Finder:
    def __init__(self, account: _Account) -> None:
        self._account = account

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        self._account.begin(name)
        try:
            finders = list(sys.meta_path)  # a copy, because threads may remove this finder
            for finder in finders[finders.index(self) + 1 if self in finders else 0 :]:
                find = getattr(finder, "find_spec", None)
                spec: ModuleSpec | None = find(name, path, target) if find else None
                if spec is not None:
                    for method in TIMED.get(type(spec.loader), []):
                        self._time(spec.loader, method, name)
                    return spec
            return None
        finally:
            self._account.end()

    def _time(self, loader: Any, method: str, name: str) -> None:
        """Measures the next call of the loader's method, which is then the class' own again."""
        account = self._account

        def timed(argument: Any) -> Any:
            vars(loader).pop(method, None)
            account.begin(name)
            try:
                return getattr(loader, method)(argument)
            finally:
                account.end()

        setattr(loader, method, timed)


def start() -> Callable[[], None]:
    """Returns a function that stops it."""
    finder = _Finder(_Account())
    sys.meta_path.insert(0, finder)

    def stop() -> None:
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)

    return stop
