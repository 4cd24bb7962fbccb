"""Metrics in a Jupyter notebook: the widget of the Dragon Telemetry Service, under its name.

    from sonde import widget
    telemetry = widget.DragonTelemetryWidget()
    ipywidgets.interact(telemetry.render, metric_name=sorted(telemetry.get_metrics()), percentage_window=telemetry.custom_slider())

render() needs matplotlib, custom_slider() needs ipywidgets.
"""

import datetime
import importlib
import time
from typing import Any, Optional

from ._analysis import AnalysisClient
from ._emit import level

_METRIC = "num_running_processes"  # the default
_CONNECT_S = 60.0


class DragonTelemetryWidget:
    """Draws a metric of the job around this notebook, a line for each host and GPU."""

    def __init__(self) -> None:
        self._start_time = int(time.time())
        self.tac: Optional[AnalysisClient] = None

    def connect(self) -> None:
        """Connects to the job. Raises RuntimeError if there is none."""
        client = AnalysisClient()
        try:
            client.connect(timeout=_CONNECT_S if level() else None)
        except RuntimeError as error:
            raise RuntimeError(f"cannot connect to the job's telemetry: {error}") from error
        self.tac = client

    def _client(self) -> AnalysisClient:
        if self.tac is None:
            self.connect()
        assert self.tac is not None
        return self.tac

    def get_start_time(self) -> int:
        """Returns the time at which the widget was made, in seconds since the epoch."""
        return self._start_time

    def get_metrics(self) -> set[str]:
        return self._client().get_metrics()

    def get_data(self, metric_name: Optional[str] = None, start_time: Optional[float] = None) -> list[dict[str, Any]]:
        """Like AnalysisClient.get_data with the tag gpu. The default of `start_time` is the time at
        which the widget was made."""
        since = self._start_time if start_time is None else start_time
        client = self._client()
        name = metric_name or _METRIC
        return client.get_data(name, tags="gpu", start_time=since) or client.get_data(name, start_time=since)

    def render(self, metric_name: Optional[str] = None, percentage_window: float = 0.0) -> Any:
        """Returns a matplotlib figure of the time since the widget was made. `percentage_window` is
        the share to leave out at the beginning: 0.25 is a quarter."""
        pyplot = importlib.import_module("matplotlib.pyplot")
        dates = importlib.import_module("matplotlib.dates")
        start = self._start_time + int((time.time() - self._start_time) * percentage_window)
        figure, axes = pyplot.subplots()
        for series in self.get_data(metric_name, start):
            tags, points = series["tags"], sorted((int(second), value) for second, value in series["dps"].items())
            label = tags["host"] + (f" (gpu:{tags['gpu']})" if "gpu" in tags else "")
            axes.plot([datetime.datetime.fromtimestamp(second) for second, _ in points], [value for _, value in points], label=label)
        if axes.lines:
            axes.legend()
        axes.set_title(f"Metric: {metric_name or _METRIC}")
        axes.set_xlabel("time")
        axes.xaxis.set_major_formatter(dates.DateFormatter("%H:%M:%S"))
        figure.autofmt_xdate()
        return figure

    def custom_slider(self) -> Any:
        """Returns a slider from 0 to 1 for render()'s percentage_window."""
        return importlib.import_module("ipywidgets").FloatSlider(min=0, max=1, step=0.01, description="Time Zoom:")
