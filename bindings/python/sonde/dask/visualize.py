"""Pictures of one worker during one job, from its CSV file. Needs Matplotlib.

    from sonde.dask import visualize as vis

    vis.lines("folder/worker_0.csv", 1, ["compute-util", "mem-util"], save="job1.png")

The metrics are drawn one below the other over one time axis. All functions return Matplotlib's
figure. A notebook shows it as the last value of a cell; a script calls
``matplotlib.pyplot.show()``. A saved figure is closed and not shown.
"""

import bisect
import math
import os
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Optional, Union

from ..plot import _draw
from ..plot._figure import LIGHT, Canvas, fit_values, library, save as save_figure, scale
from . import _csv
from ._settings import KINDS

_GPU_INDEX = "gpu-index"  # the column of a GPU's index
_DIGIT_EMS = 0.64  # a digit's width, in font sizes
TOTAL, PERCENT = "total-mem", "mem-util"


# The units of built-in metrics; the units of other metrics are unknown.
_UNITS = {
    "total-mem": "bytes",
    "mem-util": "%",
    "compute-util": "%",
    "mem-activity": "%",
    "tasks": "tasks",
    "cpu": "% of a core",
    "rss": "bytes",
    "managed": "bytes",
    "spilled": "bytes",
    "unmanaged": "bytes",
    "transfer-in": "bytes",
    "transfer-out": "bytes",
    "event-loop": "seconds",
    "gil": "%",
    "network-read": "bytes/s",
    "network-write": "bytes/s",
}


@dataclass
class _Panel:
    """One metric of the job."""

    metric: str
    unit: str
    values: list[list[Optional[float]]]  # by row, then device
    devices: int
    of_gpu: bool
    limit: Optional[float] = None  # the total that is available, in the unit


@dataclass
class _Job:
    name: str
    number: int
    times: list[float]
    dags: list[Optional[int]]
    rows: list[int]  # the rows of the file
    panels: list[_Panel]
    gpus: list[str]  # their indices on the node, if the file has them

    def gpu(self, device: int) -> str:
        return f"GPU {self.gpus[device] if device < len(self.gpus) else device}"

    def stretches(self) -> Iterator[range]:
        """Groups of consecutive rows: between two stretches the worker worked on another job."""
        for _, places in groupby(range(len(self.rows)), key=lambda place: self.rows[place] - place):
            found = list(places)
            yield range(found[0], found[-1] + 1)

    def apart(self) -> float:
        """Returns the usual number of seconds between two rows."""
        steps = [after - before for before, after in zip(self.times, self.times[1:]) if after > before]
        return statistics.median(steps) if steps else 1.0

    def dag_stretches(self) -> Iterator[tuple[float, float, Optional[int]]]:
        """Returns start, end and number of each dag. A dag of a single row lasts for one
        interval."""
        for stretch in self.stretches():
            runs = [(dag, next(places)) for dag, places in groupby(stretch, key=self.dags.__getitem__)]
            last = self.times[stretch[-1]]
            ends = [self.times[first] for _, first in runs[1:]] + [last if stretch[-1] > runs[-1][1] else last + self.apart()]
            for (dag, first), end in zip(runs, ends):
                yield self.times[first], end, dag


def _scaled(unit: str, values: list[list[Optional[float]]]) -> tuple[str, float, list[list[Optional[float]]]]:
    """Returns the unit as the axis shows it, the number that divides the values for it, and the
    divided values."""
    shown, divisor = scale(unit, max((abs(value) for row in values for value in row if value is not None), default=0))
    return shown, divisor, [[None if v is None else v / divisor for v in row] for row in values]


def _panel(recording: _csv.Recording, rows: list[Sequence[Any]], metric: str, all_devices: int) -> _Panel:
    try:
        place = recording.place(metric)
    except KeyError as error:
        raise ValueError(error.args[0]) from None
    cells = [row[place] for row in rows]
    if metric == _csv.TASKS:
        cells = [[len(keys)] for keys in cells]
    if any(isinstance(cell, str) for cell in cells):
        raise ValueError(f"{metric!r} in {recording.path} has no numbers and cannot be drawn")
    devices = max((len(cell) for cell in cells), default=0)
    unit, divisor, values = _scaled(_UNITS.get(metric, ""), cells)
    limit = _memory_of_a_gpu(recording, rows) if metric == TOTAL else None
    if limit is not None:
        limit /= divisor
    return _Panel(metric, unit, values, devices, _is_of_gpu(metric) or metric not in KINDS and devices == all_devices, limit)


def _memory_of_a_gpu(recording: _csv.Recording, rows: list[Sequence[Any]]) -> Optional[float]:
    """Returns the total bytes, from the use in bytes and in percent. None if one of them is
    missing, or if the percentages have another meaning, as in files of dask-metrics."""
    if not {TOTAL, PERCENT} <= set(recording.columns):
        return None
    used, percent = recording.columns.index(TOTAL), recording.columns.index(PERCENT)
    pairs: list[tuple[float, float]] = [(a, b) for row in rows for a, b in zip(row[used], row[percent]) if a and b and b >= 1]
    wholes = sorted(a * 100 / b for a, b in pairs)
    if not wholes or wholes[-1] > 1.02 * wholes[0]:
        return None
    return statistics.median(wholes)


def _is_of_gpu(metric: str) -> bool:
    return metric in KINDS and KINDS[metric][0] == "gpu"


def _load(worker_file: _csv.Path, job: int, metrics: Union[str, Iterable[str]]) -> _Job:
    wanted = [metrics] if isinstance(metrics, str) else list(metrics)
    if not wanted:
        raise ValueError("no metric to draw")
    recording = _csv.read(worker_file)
    at = {column: recording.columns.index(column) for column in _csv.ALWAYS}
    places = [place for place, row in enumerate(recording.rows) if row[at["job"]] == job]
    if not places:
        known = dict.fromkeys(row[at["job"]] for row in recording.rows if row[at["job"]] is not None)
        raise ValueError(f"no job {job} in {recording.path}; there is {', '.join(map(str, known)) or 'none'}")
    rows = [recording.rows[place] for place in places]
    gpu_columns = [place for place, column in enumerate(recording.columns) if _is_of_gpu(column)]
    all_devices = max((len(row[place]) for row in rows for place in gpu_columns), default=0)
    return _Job(
        os.path.basename(recording.path).split(".")[0],
        job,
        [row[at["timestamp"]] for row in rows],
        [row[at["dag"]] for row in rows],
        places,
        [_panel(recording, rows, metric, all_devices) for metric in wanted],
        [str(index) for index in rows[0][recording.columns.index(_GPU_INDEX)]] if _GPU_INDEX in recording.columns else [],
    )


class _Canvas(Canvas):
    """An axis for each metric of the job."""

    def __init__(self, job: _Job, width: float, height: float) -> None:
        super().__init__(len(job.panels), width, height, user="sonde.dask.visualize")
        self.job = job
        with self.drawing():
            self.title(f"{job.name}, job {job.number}")
            self.axes[-1].set_xlabel("seconds since the recording began")

    def finish_axis(self, axis: Any, panel: _Panel) -> None:
        axis.set_title(panel.metric)
        axis.set_ylabel(panel.unit)
        axis.grid(axis="y", color=LIGHT.grid, linewidth=0.8)
        if panel.metric == _csv.TASKS:
            axis.locator_params(axis="y", integer=True)
        if panel.unit:
            fit_values(axis, panel.unit, [value for row in panel.values for value in row if value is not None], LIGHT, panel.limit)

    def mark_dags(self, stretches: list[tuple[float, float, Optional[int]]]) -> None:
        """Shades every second dag and writes the numbers above them."""
        named = [(begin, end, "" if dag is None else f"dag {dag}", "" if dag is None else str(dag)) for begin, end, dag in stretches]
        _draw.shade(self.axes, LIGHT, named, self.width_points, self.font_points)

    def raise_title(self) -> None:
        """Writes the title above the numbers of the dags."""
        self.axes[0].set_title(self.job.panels[0].metric, pad=1.5 * self.font_points)

    def finish(self, save: Optional[_csv.Path]) -> Any:
        self.figure.align_ylabels(self.axes)
        if save is not None:
            save_figure(self.figure, save)
        self.close_if_shown_otherwise(save is not None)
        return self.figure


def _draw_lines(canvas: _Canvas, axis: Any, panel: _Panel) -> None:
    job = canvas.job
    times: list[float] = []
    places: list[Optional[int]] = []
    for stretch in job.stretches():  # None becomes NaN, which interrupts a line
        times += [job.times[place] for place in stretch] + [job.times[stretch[-1]]]
        places += [*stretch, None]
    for device in range(panel.devices):
        values = [None if place is None or device >= len(panel.values[place]) else panel.values[place][device] for place in places]
        _draw.line(
            axis, LIGHT, times, [float("nan") if value is None else value for value in values], device, job.gpu(device) if panel.of_gpu else panel.metric,
            points=len(times), width_points=canvas.width_points, plain=not panel.of_gpu,
            drawstyle="steps-post" if panel.metric == _csv.TASKS else "default",
            zorder=3 - device / max(1, panel.devices),  # the first device is on top
        )  # fmt: skip


def lines(
    worker_file: _csv.Path,
    job: int,
    metrics: Union[str, Iterable[str]],
    width: float = 20,
    height: float = 10,
    save: Optional[_csv.Path] = None,
) -> Any:
    """Draws a line for each GPU over the time of the job, and shades every second dag.

    `width` and `height` are inches; `save` is the path of a picture to write. Raises ValueError if
    the file lacks the job or the metric.
    """
    canvas = _Canvas(_load(worker_file, job, metrics), width, height)
    with canvas.drawing():
        canvas.mark_dags(list(canvas.job.dag_stretches()))
        for axis, panel in zip(canvas.axes, canvas.job.panels):
            _draw_lines(canvas, axis, panel)
            canvas.finish_axis(axis, panel)
        canvas.raise_title()
        begin, end = canvas.job.times[0], max(end for _, end, _ in canvas.job.dag_stretches())
        margin = (end - begin) / 100 or 0.5
        canvas.axes[0].set_xlim(begin - margin, end + margin)
        widest = max(canvas.job.panels, key=lambda panel: panel.devices if panel.of_gpu else 0)
        if widest.of_gpu and widest.devices:
            handles, labels = canvas.axes[canvas.job.panels.index(widest)].get_legend_handles_labels()
            _draw.legend(canvas.axes[0], LIGHT, height * 72 / len(canvas.axes), canvas.font_points, given=(handles, labels))
    return canvas.finish(save)


def _draw_boxes(canvas: _Canvas, axis: Any, panel: _Panel, freq: int) -> None:
    pools = [
        [value for row in panel.values[first : first + freq] for value in row if value is not None]
        for first in range(0, len(panel.values), freq)
    ]
    _draw.boxes(axis, LIGHT, range(len(pools)), pools, canvas.width_points / max(1, len(pools)), 0.7)


def _mark_dags_of_boxes(canvas: _Canvas, freq: int) -> None:
    """Marks the dags of boxes: a dag begins within the box that has its first record."""
    dags = canvas.job.dags
    runs = [(dag, next(places)) for dag, places in groupby(range(len(dags)), key=dags.__getitem__)]
    borders = [place / freq - 0.5 for _, place in runs] + [len(canvas.job.times[::freq]) - 0.5]
    canvas.mark_dags([(begin, end, dag) for (dag, _), begin, end in zip(runs, borders, borders[1:])])


def _label_boxes(canvas: _Canvas, freq: int) -> None:
    """Labels each box with its first timestamp, or, if there is no room for all, marks round times
    at their positions.
    """
    firsts = canvas.job.times[::freq]
    apart = (firsts[-1] - firsts[0]) / max(1, len(firsts) - 1) or 1
    digits = min(3, max(0, 1 - math.floor(math.log10(apart))))
    label_points = (_DIGIT_EMS * len(f"{firsts[-1]:.{digits}f}") + 1) * canvas.font_points
    places: Sequence[float] = range(len(firsts))
    if len(firsts) * label_points > canvas.width_points:
        ticker = library("matplotlib.ticker")
        rounds = ticker.MaxNLocator(max(1, int(canvas.width_points / label_points)), steps=[1, 2, 5, 10]).tick_values(firsts[0], firsts[-1])
        labels = [float(time) for time in rounds if firsts[0] <= time <= firsts[-1]]
        places = [_place(firsts, time) for time in labels]
    else:
        labels = firsts
    canvas.axes[-1].set_xticks(places, [f"{time:.{digits}f}" if labels is firsts else f"{time:g}" for time in labels])
    canvas.axes[-1].set_xlim(-0.6, len(firsts) - 0.4)


def _place(firsts: Sequence[float], time: float) -> float:
    """Returns the position of a time between those of boxes."""
    after = bisect.bisect_left(firsts, time)
    if after == 0 or firsts[after] == time:
        return after
    return after - 1 + (time - firsts[after - 1]) / (firsts[after] - firsts[after - 1])


def boxes(
    worker_file: _csv.Path,
    job: int,
    metrics: Union[str, Iterable[str]],
    freq: int = 15,
    width: float = 20,
    height: float = 10,
    save: Optional[_csv.Path] = None,
) -> Any:
    """Draws boxes with whiskers over the time of the job. Each box is made of `freq` records of all
    GPUs together, at the time of the first of them.

    The other parameters are those of lines().
    """
    if freq < 1:
        raise ValueError(f"freq is {freq}: a box needs at least one record")
    canvas = _Canvas(_load(worker_file, job, metrics), width, height)
    with canvas.drawing():
        for axis, panel in zip(canvas.axes, canvas.job.panels):
            _draw_boxes(canvas, axis, panel, freq)
            canvas.finish_axis(axis, panel)
        _mark_dags_of_boxes(canvas, freq)
        canvas.raise_title()
        _label_boxes(canvas, freq)
    return canvas.finish(save)


def heat(
    worker_file: _csv.Path,
    job: int,
    metrics: Union[str, Iterable[str]],
    width: float = 20,
    height: float = 10,
    save: Optional[_csv.Path] = None,
) -> Any:
    """Draws a row for each GPU over the time of the job; a higher value is darker. For many GPUs,
    whose lines would hide each other.

    The other parameters are those of lines().
    """
    canvas = _Canvas(_load(worker_file, job, metrics), width, height)
    with canvas.drawing():
        for axis, panel in zip(canvas.axes, canvas.job.panels):
            _draw_heat(canvas, axis, panel)
        canvas.axes[0].set_xlim(canvas.job.times[0], canvas.job.times[-1] + canvas.job.apart())
        canvas.mark_dags(list(canvas.job.dag_stretches()))
        canvas.raise_title()
    return canvas.finish(save)


def _draw_heat(canvas: _Canvas, axis: Any, panel: _Panel) -> None:
    job = canvas.job
    highest = 100.0 if panel.unit == "%" else max((value for row in panel.values for value in row if value is not None), default=1.0) or 1.0
    for stretch in job.stretches():
        edges = [job.times[place] for place in stretch] + [job.times[stretch[-1]] + job.apart()]
        cells = [[_or_nan(panel.values[place], device) for place in stretch] for device in range(panel.devices)]
        if cells:
            mesh = _draw.heat(axis, LIGHT, edges, cells, 0, highest)
            if stretch[0] == 0:
                canvas.figure.colorbar(mesh, ax=axis, pad=0.01, aspect=12).set_label(panel.unit)
    axis.set_facecolor(LIGHT.missing)  # missing
    axis.set_title(panel.metric)
    axis.set_ylim(max(1, panel.devices) - 0.5, -0.5)
    axis.set_yticks(range(panel.devices), [job.gpu(device) if panel.of_gpu else panel.metric for device in range(panel.devices)])


def _or_nan(values: Sequence[Optional[float]], device: int) -> float:
    value = values[device] if device < len(values) else None
    return float("nan") if value is None else value
