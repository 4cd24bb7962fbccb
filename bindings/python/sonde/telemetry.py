"""The class Telemetry of the Dragon Telemetry Service: programs for Dragon only change their
import.

    from sonde.telemetry import Telemetry

    telemetry = Telemetry()
    telemetry.add_data("loss", 0.3, tagk="rank", tagv=7)
    telemetry.finalize()

In new programs, sonde.gauge() and sonde.emit() are shorter.
"""

import os
import socket
import sys
import time
import warnings
from collections.abc import Mapping
from typing import Any, Optional, Union

from . import _emit, _names

_WAIT_S = 60.0  # the wait for the service without a timeout
_LOOK_S = 0.05
_REMEMBERED_MAX = 4096  # cached handles; the cache is emptied there

# variables that programs for Dragon read
_LEVEL, _CONFIG = "DRAGON_TELEMETRY_LEVEL", "DRAGON_TELEMETRY_CONFIG"

_handles: dict[tuple[str, int, tuple[tuple[str, str], ...], str], _emit.Metric] = {}
_over = False  # true after the service of start() has been stopped
_DEFAULT_LEVEL = 2  # the level of start(); calls without a level get no warning about it


def _handle(name: str, level: int, tags: tuple[tuple[str, str], ...], help_text: str) -> _emit.Metric:
    known = _handles.get((name, level, tags, help_text))
    if known is None:
        if len(_handles) >= _REMEMBERED_MAX:
            _forget_metrics()
        known = _handles[name, level, tags, help_text] = _emit.gauge(name, help=help_text, level=level, tags=dict(tags))
    return known


def _forget_metrics() -> None:
    _handles.clear()
    _emit.known_metrics.clear()


def _agent_answers() -> bool:
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.connect(os.environ.get("SONDE_SOCKET", ""))
        except OSError:
            return False
    return True


class Telemetry(_emit.LevelFilter):
    """Emits to the sonde of this job. Without a job, or at level 0, every method does nothing.

    `metrics_url` has no effect, because points need no address. `timeout` is how many seconds to
    wait for the service before a TimeoutError. Without a timeout, it warns after a minute and goes
    on, because a later agent still finds the points. `telem_cfg` is the configuration for start():
    the path of a file, or a mapping. A path is also passed on in DRAGON_TELEMETRY_CONFIG.
    """

    def __init__(
        self,
        metrics_url: Optional[str] = None,
        timeout: Optional[float] = None,
        telem_cfg: Union[str, "os.PathLike[str]", Mapping[str, Any], None] = None,
    ) -> None:
        self._timeout = timeout
        self._config: Union[str, Mapping[str, Any], None] = None
        if telem_cfg is None or isinstance(telem_cfg, Mapping):
            self._config = telem_cfg
        else:
            self._config = os.environ[_CONFIG] = os.fspath(telem_cfg)
            with open(self._config):  # a wrong path fails here, not in start()
                pass
        if self.level:
            self._wait()
            # Dragon's launcher for several nodes sets this variable to its own level, 0.
            os.environ[_LEVEL] = str(self.level)

    def _wait(self) -> None:
        deadline = time.monotonic() + (_WAIT_S if self._timeout is None else self._timeout)
        while not _agent_answers():
            if time.monotonic() < deadline:
                time.sleep(_LOOK_S)
            elif self._timeout is not None:
                raise TimeoutError(f"no agent answers at {os.environ.get('SONDE_SOCKET')} within {self._timeout:g} s")
            else:
                warnings.warn(f"no agent answers at {os.environ.get('SONDE_SOCKET')} yet", RuntimeWarning, stacklevel=3)
                return

    @property
    def level(self) -> int:
        """The level of the run, 0 to 4; 0 without a run."""
        return 0 if _over else _emit.level()

    def start(self, telemetry_level: int = _DEFAULT_LEVEL) -> None:
        """Starts agents and aggregator as `sonde run` does, unless `sonde run` started the program.

        They end with this process. Raises RuntimeError if they cannot start. If telemetry runs
        already, or has run in this process, its level stays; a RuntimeWarning says so if
        `telemetry_level` is higher and not the default. Handles that sonde.gauge() and
        sonde.counter() made before stay off. Under `sonde run -l 0` it starts nothing, because the
        user has switched telemetry off.
        """
        if not 0 <= telemetry_level <= 4:
            raise ValueError(f"level {telemetry_level}: levels go from 0 to 4")
        global _over
        if telemetry_level == 0 or os.environ.get("SONDE_LEVEL") == "0":
            return
        if self.level:
            self._warn_below(telemetry_level)
            return
        from . import _service

        _service.start(telemetry_level, self._config, _service.START_TIMEOUT_S if self._timeout is None else self._timeout)
        _forget_metrics()
        _emit.connect(os.environ["SONDE_SOCKET"], int(os.environ["SONDE_LEVEL"]))
        _over = False
        os.environ[_LEVEL] = str(self.level)
        self._warn_below(telemetry_level)

    def _warn_below(self, wanted: int) -> None:
        if self.level < wanted and wanted != _DEFAULT_LEVEL:
            warnings.warn(
                f"telemetry stays at level {self.level}: start({wanted}) does not raise the level of a process that has begun to emit; "
                f"begin with start({wanted}), or with sonde run -l {wanted}",
                RuntimeWarning,
                stacklevel=3,
            )

    # add_data() calls this for points up to the run's level. It remembers the result, unless the
    # point has `tags`.
    def _metric(self, ts_metric_name: str, telemetry_level: int, tagk: Optional[str], tagv: Any, tags: Optional[Mapping[str, Any]]) -> Optional[_emit.Metric]:
        if _over:
            return None
        given = {} if tags is None else {str(key): str(value) for key, value in tags.items()}
        about = ""
        if tagk is not None and tagv is not None:
            given[str(tagk)] = str(tagv)
            if isinstance(tagv, int) and not isinstance(tagv, bool):
                about = _names.whole_numbers(str(tagk))
        return _handle(str(ts_metric_name), telemetry_level, tuple(given.items()), about)

    def finalize(self) -> None:
        """Stops the service that start() started, and waits for its recording. A service that was
        launched with the program ends with the program."""
        global _over
        service = sys.modules.get("sonde._service")
        if service is not None and service.stop():
            _over = True
            _forget_metrics()
            os.environ[_LEVEL] = "0"

    shutdown = finalize
