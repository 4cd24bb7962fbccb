"""Draws series as lines, bands, heat maps and boxes."""

import math
import warnings
from collections.abc import Sequence
from typing import Any, Optional

from . import _data, _draw
from ._data import Panel
from ._figure import fit_values, library, scale
from ._picture import NS, Picture, duration

_OUTLIERS_MAX = 4
_OUTLIER = 6.0  # a series is an outlier this many deviations from the median of the series' means
_DEVIATION_OF_MAD = 1.4826
_MAD_OF_SPREAD = 0.02  # the smallest deviation, as a part of the spread of all values
_BINS_MAX = 600  # columns of a band or a heat map
_BOXES = 30  # approximate number
_NICE_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)


def scaled(panel: Panel) -> tuple[str, float]:
    numpy = library("numpy")
    highs = [float(numpy.nanmax(numpy.abs(c.values))) for c in panel.curves if numpy.isfinite(c.values).any()]
    return scale(panel.unit, max(highs, default=0.0))


def draw_each(picture: Picture, axis: Any, panel: Panel, dots: bool) -> None:
    unit, divisor = scaled(panel)
    seen = []
    labels = _draw.cut_apart([curve.name for curve in panel.curves])
    for number, curve in enumerate(panel.curves):
        times, values = _data.with_gaps(curve.times, curve.values)
        values = values / divisor
        more: dict[str, Any] = {"marker": "o", "markersize": 3} if dots and len(times) < picture.width_points / 4 else {}
        _draw.line(
            axis, picture.theme, picture.time(times, curve.run), values, number, labels[number], points=len(times),
            width_points=picture.width_points, zorder=3 - number / max(1, len(panel.curves)), **more,
        )  # fmt: skip
        seen += [float(values[library("numpy").isfinite(values)].min()), float(values[library("numpy").isfinite(values)].max())] if (values == values).any() else []
    axis.set_ylabel(unit)
    fit_values(axis, unit, seen, picture.theme)
    if len(panel.curves) > 1:
        _draw.legend(axis, picture.theme, picture.height_points(axis), picture.font_points)


# ---------------------------------------------------------------- many series at once


class Table:
    """Series on common times: a row for each series, a column for each time or interval. NaN where
    a series has no point."""

    def __init__(self, picture: Picture, panel: Panel, most: int = _BINS_MAX) -> None:
        numpy = library("numpy")
        curves = [curve for curve in panel.curves if len(curve.times)]
        starts = picture.time.starts if picture.time.from_start else [0] * len(picture.runs)
        shifted = [curve.times - starts[curve.run] for curve in curves]
        times = numpy.unique(numpy.concatenate(shifted))
        usual = max((_data.usual_step(one) for one in shifted), default=0.0)
        if len(times) <= most:  # no binning needed
            self.edges = numpy.append(times, times[-1] + max(int(usual), 1))
            self.times = times
        else:
            width = max(math.ceil((int(times[-1]) - int(times[0]) + 1) / most), int(usual))
            self.edges = numpy.arange(int(times[0]), int(times[-1]) + width + 1, width, dtype="i8")
            self.times = self.edges[:-1] + width // 2
        self.exact = len(times) <= most
        self.starts, self.usual = starts, usual
        shape = (len(curves), len(self.times))
        self.mean, self.least, self.greatest, self.count = (numpy.full(shape, numpy.nan) for _ in range(4))
        for row, (curve, at) in enumerate(zip(curves, shifted)):
            good = numpy.isfinite(curve.values)
            values, column = curve.values[good], numpy.searchsorted(self.edges, at[good], side="right") - 1
            if not len(values):
                continue
            begins = numpy.nonzero(numpy.diff(column, prepend=-1))[0]
            columns = column[begins]
            counts = numpy.diff(numpy.append(begins, len(values)))
            self.mean[row, columns] = numpy.add.reduceat(values, begins) / counts
            self.least[row, columns] = numpy.minimum.reduceat(values, begins)
            self.greatest[row, columns] = numpy.maximum.reduceat(values, begins)
            self.count[row, columns] = counts
        self.curves = curves

    def where(self, picture: Picture, times: Any) -> Any:
        """Converts the common times to positions on the axis."""
        return times / NS if picture.time.from_start else picture.time(times)


def draw_band(picture: Picture, axis: Any, panel: Panel) -> None:
    """Draws a band for each run."""
    numpy = library("numpy")
    unit, divisor = scaled(panel)
    seen: list[float] = []
    far_left_out = 0
    numbers = sorted({curve.run for curve in panel.curves if len(curve.times)})
    for at, number in enumerate(numbers):
        part = Panel(panel.expression, panel.metric, panel.unit, [curve for curve in panel.curves if curve.run == number])
        table = Table(picture, part)
        rows = _rows_of_band(table)
        far = _outliers(table.mean, float(numpy.nanmax(rows["max"]) - numpy.nanmin(rows["min"])))
        times, _ = _data.with_gaps(table.times, rows["mean"])
        gapped = {name: _data.with_gaps(table.times, row)[1] / divisor for name, row in rows.items()}
        own = f"{_draw.cut(picture.runs[number].name, 28)}: " if len(numbers) > 1 else ""
        _draw.band(axis, picture.theme, table.where(picture, times), gapped, len(table.curves), at, own)
        seen += [float(v) for name in ("min", "max") for v in gapped[name]]
        for place, row in enumerate(far[:_OUTLIERS_MAX]):
            curve = table.curves[row]
            when, values = _data.with_gaps(curve.times, curve.values)
            _draw.line(
                axis, picture.theme, picture.time(when, curve.run), values / divisor, len(numbers) + at * _OUTLIERS_MAX + place, _draw.cut(curve.name),
                points=len(when), width_points=picture.width_points,
            )  # fmt: skip
        far_left_out += max(0, len(far) - _OUTLIERS_MAX)
    axis.set_ylabel(unit)
    fit_values(axis, unit, seen, picture.theme)
    _draw.legend(axis, picture.theme, picture.height_points(axis), picture.font_points, far_left_out)


def _rows_of_band(table: Table) -> dict[str, Any]:
    numpy = library("numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # columns without a value stay NaN
        low, high = numpy.nanquantile(table.mean, [0.25, 0.75], axis=0)
        total = numpy.nansum(table.mean * table.count, axis=0)
        points = numpy.nansum(table.count, axis=0)
        return {
            "min": numpy.nanmin(table.least, axis=0), "max": numpy.nanmax(table.greatest, axis=0),
            "low": low, "high": high, "mean": numpy.where(points > 0, total / points, numpy.nan),
        }  # fmt: skip


def _outliers(means: Any, spread: float) -> list[int]:
    """Returns the rows that are far from the others over the whole time, the farthest first."""
    numpy = library("numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        level = numpy.nanmean(means, axis=1)
    middle = numpy.nanmedian(level)
    deviation = max(float(numpy.nanmedian(numpy.abs(level - middle))) * _DEVIATION_OF_MAD, spread * _MAD_OF_SPREAD)
    if not deviation > 0:
        return []
    distance = numpy.nan_to_num(numpy.abs(level - middle) / deviation)
    return [int(row) for row in numpy.argsort(-distance, kind="stable") if distance[row] > _OUTLIER]


def draw_heat(picture: Picture, axis: Any, panel: Panel) -> None:
    numpy = library("numpy")
    unit, divisor = scaled(panel)
    table = Table(picture, panel)
    edges, cells = table.edges, table.mean / divisor
    if table.exact:  # each cell is one step wide; a longer step is a gap
        times, _ = _data.with_gaps(table.times, table.times.astype("f8"))
        wide = numpy.full((len(cells), len(times)), numpy.nan)
        wide[:, numpy.isin(times, table.times)] = cells
        edges, cells = numpy.append(times, edges[-1]), wide
        # The cell before a gap ends one usual step later, where the gap begins.
        gap = numpy.nonzero(~numpy.isin(times, table.times))[0]
        edges[gap] = numpy.minimum(times[gap - 1] + max(int(table.usual), 1), times[gap + 1] if len(gap) else times[-1])
    low, high = float(numpy.nanmin(cells)), float(numpy.nanmax(cells))
    low, high = (0.0, 100.0) if unit == "%" and low >= 0 and high <= 100 else (min(low, 0.0), high or 1.0)
    mesh = _draw.heat(axis, picture.theme, table.where(picture, edges), cells, low, high)
    axis.set_facecolor(picture.theme.missing)
    bar = axis.figure.colorbar(mesh, ax=axis, pad=0.01, aspect=max(12.0, picture.height_points(axis) / 14))
    bar.set_label(unit)
    bar.outline.set_visible(False)
    rows = len(cells)
    axis.set_ylim(rows - 0.5, -0.5)
    every = max(1, math.ceil(rows * 1.3 * 0.7 * picture.font_points / picture.height_points(axis)))
    shown = range(0, rows, every)
    axis.set_yticks(shown, _draw.cut_apart([table.curves[row].name for row in shown], 32), fontsize="x-small")
    if every > 1:
        axis.set_ylabel(f"{rows:,} series")


# ---------------------------------------------------------------- boxes


def _finite(values: Any) -> Any:
    return values[library("numpy").isfinite(values)]


def boxes_over_time(picture: Picture, axis: Any, panel: Panel, every: Optional[float]) -> None:
    numpy = library("numpy")
    unit, divisor = scaled(panel)
    starts = picture.time.starts if picture.time.from_start else [0] * len(picture.runs)
    times = numpy.concatenate([curve.times - starts[curve.run] for curve in panel.curves])
    values = numpy.concatenate([curve.values for curve in panel.curves]) / divisor
    seconds = (int(times.max()) - int(times.min())) / NS
    width: float = every if every is not None else next((nice for nice in _NICE_S if seconds / nice <= _BOXES), seconds / _BOXES or 1.0)
    step = max(1, round(width * NS))
    number = times // step
    found = numpy.unique(number)
    pools = [_finite(values[number == one]) for one in found]
    middle = (found * step + step // 2).astype("i8")
    places = middle / NS if picture.time.from_start else picture.time(middle)
    boxes_wide = max(1.0, seconds / width)
    _draw.boxes(axis, picture.theme, [float(place) for place in places], pools, picture.width_points / boxes_wide, 0.7 * picture.time.of_seconds(width))
    axis.set_ylabel(unit)
    fit_values(axis, unit, [float(v) for pool in pools if len(pool) for v in (pool.min(), pool.max())], picture.theme)
    axis.set_title(f"{axis.get_title(loc='left')}, boxes of {duration(width)}")


def boxes_by(picture: Picture, axis: Any, panel: Panel, keys: Sequence[str]) -> None:
    numpy = library("numpy")
    unit, divisor = scaled(panel)
    groups: dict[str, list[Any]] = {}
    for curve in panel.curves:
        names = [picture.runs[curve.run].name if key == "run" else panel.value(key, curve) or "–" for key in keys]
        groups.setdefault(", ".join(names), []).append(curve.values)
    names = sorted(groups, key=_data.natural)
    pools = [_finite(numpy.concatenate(groups[name])) / divisor for name in names]
    box_points = picture.width_points / len(names)
    _draw.boxes(axis, picture.theme, range(len(names)), pools, box_points, 0.7 if len(names) >= 6 else 0.35)
    every = max(1, math.ceil(len(names) * 1.6 * picture.font_points / picture.width_points))
    labels = _draw.cut_apart(names, 28)
    longest = max(map(len, labels))
    steep = longest * 0.6 * picture.font_points > box_points
    shown = range(0, len(names), every if steep else 1)
    axis.set_xticks(shown, [labels[at] for at in shown], rotation=90 if steep else 0, fontsize="small")
    axis.set_xlim(-0.6, len(names) - 0.4)
    axis.set_xlabel(", ".join(keys))
    axis.set_ylabel(unit)
    fit_values(axis, unit, [float(v) for pool in pools if len(pool) for v in (pool.min(), pool.max())], picture.theme)
