"""Live charts below a cell of a notebook; `sonde.live()` shows them.

    sonde.live()                                   # CPU, memory and GPUs of all nodes
    sonde.live("loss", "sum:1s-avg:gpu_power_watts{host=*}", seconds=300)

A thread queries the job around the notebook once a second, and draws each metric into a picture
(SVG) in an HTML widget of ipywidgets, so the charts also move while a cell runs. It ends with
stop(), when the widget is closed, when the notebook shows new live charts, when the job ends, or
when it has not answered FAILURES_MAX times in succession.
"""

import importlib
import math
import threading
import time
from html import escape
from typing import Any, Optional

from .._analysis import AnalysisClient
from .._client import ClientError
from .._notebook import quantity
from .._result import Series

DEFAULT_METRICS = ("avg:1s-avg:cpu_percent{host=*}", "avg:1s-avg:memory_used_percent{host=*}",
                   "avg:1s-avg:gpu_utilization_percent{host=*}", "avg:1s-avg:gpu_memory_used_bytes{host=*}")
FAILURES_MAX = 5  # in succession
LINES_MAX = 12  # of a chart; the other series are only counted
POINTS_MAX = 400  # of a line: its widest picture has about as many pixels
_TIMEOUT_S = 2.0
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 560, 130, 66, 18, 20
# Distinguishable with colour blindness: Okabe and Ito's colours.
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c00", "#666666")


def thinned(times: list[int], values: list[float]) -> list[tuple[int, float]]:
    """Returns at most POINTS_MAX points: of each of so many equal parts the highest one, so that
    peaks stay."""
    points = [(t, v) for t, v in zip(times, values) if not math.isnan(v)]
    if len(points) <= POINTS_MAX:
        return points
    size = len(points) / POINTS_MAX
    return [max(points[int(part * size) : int((part + 1) * size)], key=lambda point: point[1]) for part in range(POINTS_MAX)]


def _name(series: Series) -> str:
    return ", ".join(value for key, value in sorted(series.tags.items())) or series.metric


def chart(title: str, found: list[Series], start_ns: int, end_ns: int) -> str:
    """Draws the series from `start_ns` to `end_ns` as SVG; the vertical axis begins at 0 unless a
    value is below."""
    lines = [(one, thinned(list(one.times), list(one.values))) for one in found[:LINES_MAX]]
    values = [value for _, points in lines for _, value in points if math.isfinite(value)]
    low, high = min([0.0, *values]), max([0.0, *values])
    high = high if high > low else low + 1
    unit = found[0].unit if found else ""
    width, height = _WIDTH - _LEFT - 8, _HEIGHT - _TOP - _BOTTOM

    def x(t: int) -> float:
        return _LEFT + width * (t - start_ns) / (end_ns - start_ns)

    def y(value: float) -> float:
        return _TOP + height * (1 - (value - low) / (high - low))

    parts = [f'<svg role="img" aria-label="{escape(title)}" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" style="max-width: 100%; font: 11px sans-serif" fill="currentColor">']
    parts.append(f'<text x="4" y="13" font-weight="bold">{escape(title)}</text>')
    for value in (low, high):
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - 8}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="currentColor" opacity="0.25"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{escape(quantity(value, unit))}</text>')
    for share, words in ((0.0, f"−{(end_ns - start_ns) / 1e9:.0f} s"), (1.0, "now")):
        parts.append(f'<text x="{_LEFT + share * width:.1f}" y="{_HEIGHT - 4}" text-anchor="{"end" if share else "start"}">{words}</text>')
    names = []
    for number, (one, points) in enumerate(lines):
        colour = _COLOURS[number % len(_COLOURS)]
        drawn = " ".join(f"{x(t):.1f},{y(v):.1f}" for t, v in points if start_ns <= t <= end_ns and math.isfinite(v))
        parts.append(f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        last = f" {quantity(points[-1][1], unit)}" if points else ""
        names.append(f'<tspan fill="{colour}">{escape(_name(one) + last)}</tspan>')
    if len(found) > LINES_MAX:
        names.append(f"<tspan>and {len(found) - LINES_MAX} more</tspan>")
    parts.append(f'<text x="{_WIDTH - 8}" y="13" text-anchor="end">{"  ".join(names) if names else "no points yet"}</text></svg>')
    return "".join(parts)


class _Ended(RuntimeError):
    """The job has ended."""


class Live:
    """What sonde.live() returns: it shows itself below the cell."""

    def __init__(self, metrics: tuple[str, ...], seconds: float, every: float) -> None:
        if seconds <= 0 or every <= 0:
            raise ValueError(f"seconds={seconds:g}, every={every:g}: both are more than 0")
        self._chosen = bool(metrics)
        self._metrics = metrics or DEFAULT_METRICS
        self._seconds, self._every = seconds, every
        self._over = threading.Event()
        self._place = ""  # of the job, once known
        self.widget: Any = importlib.import_module("ipywidgets").HTML(value="<small>waiting for the job</small>")
        self._thread = threading.Thread(target=self._run, name="sonde live", daemon=True)
        self._thread.start()

    def _ipython_display_(self) -> None:
        importlib.import_module("IPython.display").display(self.widget)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        """Ends the updates; the last picture stays."""
        self._over.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _series(self, client: AnalysisClient, metric: str, start_s: float, end_s: float) -> Optional[list[Series]]:
        """None: the job has no such metric."""
        try:
            return list(client.query(metric, start=start_s, end=end_s))
        except ClientError as error:
            if "No such name" in str(error):
                return None
            raise

    def _draw(self, client: AnalysisClient) -> str:
        end_s = time.time()
        start_s = end_s - self._seconds
        parts = []
        for metric in self._metrics:
            found = self._series(client, metric, start_s, end_s)
            if found is None and not self._chosen:
                continue  # a metric that this machine lacks
            title = found[0].metric if found else metric
            parts.append(chart(title, found or [], int(start_s * 1e9), int(end_s * 1e9)))
        return "<div>" + "<br>".join(parts or ["<small>the job has no metrics yet</small>"]) + "</div>"

    def _connect(self) -> AnalysisClient:
        client = AnalysisClient(timeout=_TIMEOUT_S)
        place = client._open().name
        # Without a job around the notebook, the client may find another one, or a recording.
        if self._place not in ("", place):
            client.close()
            raise _Ended("the job has ended")
        self._place = place
        return client

    def _run(self) -> None:
        failures, words = 0, ""
        client: Optional[AnalysisClient] = None
        while not self._over.is_set() and failures < FAILURES_MAX:
            try:
                client = client or self._connect()
                picture, words, failures = self._draw(client), "", 0
            except _Ended as end:
                failures, words = FAILURES_MAX, str(end)
            except RuntimeError as error:  # ClientError, too
                failures, words = failures + 1, f"the job does not answer: {error}"
                if client is not None:
                    client.close()
                client = None
            if self.widget.comm is None:  # closed
                break
            if not words:
                self.widget.value = picture
            elif failures == FAILURES_MAX:
                self.widget.value = f"<small>{escape(words)}</small>" + self.widget.value
            self._over.wait(self._every)
        if client is not None:
            client.close()


_shown: Optional[Live] = None


def live(*metrics: str, seconds: float = 60.0, every: float = 1.0) -> Live:
    """Shows charts of the last `seconds` of these metrics (names or expressions of OpenTSDB), drawn
    again after `every` seconds. Ends the charts of an earlier call."""
    global _shown
    if _shown is not None:
        _shown.stop()
    _shown = Live(metrics, seconds, every)
    return _shown
