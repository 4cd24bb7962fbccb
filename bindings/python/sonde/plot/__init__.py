"""Draws pictures of metrics and spans, from running jobs and recordings. Needs Matplotlib.

    import sonde

    axis = sonde.plot.lines("avg:1s-avg:cpu_percent{host=*}", "last")
    sonde.plot.save(axis.figure, "cpu.svg")

The functions take an expression of `sonde query`, a result of AnalysisClient.query(), or a list of
these. They return Matplotlib's axes: one, or a list of them for a list. `runs` is a client, or what
AnalysisClient accepts. Several runs are drawn over each other, each from its own start. A missing
value is a gap. docs/plot.md describes the pictures.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Optional, Union

from .._analysis import Time
from .._notebook import Spans
from .._result import Result
from . import _bars, _data, _draw, _series
from ._data import Panel, Run, What, Where
from ._figure import save
from ._picture import MISSING, Picture, fit_time, noted

__all__ = ["MISSING", "boxes", "heatmap", "lines", "noted", "save", "spans"]

_LINES_MAX = 12  # more series than this are drawn as a band

Runs = Union[None, Where, Iterable[Where]]
Asked = Union[What, Sequence[What]]


def _returned(picture: Picture, what: Any) -> Any:
    return picture.axes[0] if isinstance(what, (str, Result)) else picture.axes


# ---------------------------------------------------------------- lines


def lines(
    what: Asked,
    runs: Runs = None,
    *,
    start: Time = None,
    end: Time = None,
    downsample: Optional[str] = None,
    per_span: Optional[str] = None,
    mark_spans: Optional[str] = None,
    annotations: bool = True,
    from_start: Optional[bool] = None,
    most: int = _LINES_MAX,
    title: Optional[str] = None,
    theme: Optional[str] = None,
    size: Optional[tuple[float, float]] = None,
    ax: Any = None,
) -> Any:
    """Draws a line for each series. More than `most` series are drawn as a band: their range,
    quartiles and mean. Outliers have lines with their names.

    `downsample` ("10s-avg") applies to expressions without one. `per_span` draws one value for each
    span of that name, at its start. `mark_spans` shades every second span of that name. With
    `from_start`, the axis shows seconds since the start of the run instead of the time of day; this
    is the default for several runs. `theme` is "light" or "dark", `size` is in inches, `ax` is the
    axis to draw on, or a list of them.
    """
    panels, known = _data.ask(what, runs, start, end, downsample, per_span, mark_spans, annotations)
    picture = Picture(panels, known, from_start, ax, theme, size)
    with picture.drawing():
        for axis, panel in zip(picture.axes, panels):
            picture.frame(axis, panel)
            if not any(len(curve.times) for curve in panel.curves):
                picture.empty(axis, f"no points of {panel.metric} in this range")
            elif len(panel.curves) > most:
                _series.draw_band(picture, axis, panel)
            else:
                _series.draw_each(picture, axis, panel, per_span is not None)
        fit_time(picture)
        picture.mark()
        picture.finish(title)
    return _returned(picture, what)


# ---------------------------------------------------------------- many series at once


def heatmap(
    what: Asked,
    runs: Runs = None,
    *,
    start: Time = None,
    end: Time = None,
    downsample: Optional[str] = None,
    mark_spans: Optional[str] = None,
    annotations: bool = True,
    from_start: Optional[bool] = None,
    title: Optional[str] = None,
    theme: Optional[str] = None,
    size: Optional[tuple[float, float]] = None,
    ax: Any = None,
) -> Any:
    """Draws a row for each series over time; a stronger colour is a higher value, and missing
    values are grey. If there are more points than columns, each column shows the mean of an
    interval.

    The other parameters are those of lines().
    """
    panels, known = _data.ask(what, runs, start, end, downsample, None, mark_spans, annotations)
    most = max((len(panel.curves) for panel in panels), default=0)
    height = min(6.0, max(2.2, 0.19 * most))
    picture = Picture(panels, known, from_start, ax, theme, size or (12.0, 1.2 + height * max(1, len(panels))))
    with picture.drawing():
        for axis, panel in zip(picture.axes, panels):
            axis.set_title(_draw.cut(panel.title(), 110))
            if any(len(curve.times) for curve in panel.curves):
                _series.draw_heat(picture, axis, panel)
            else:
                picture.empty(axis, f"no points of {panel.metric} in this range")
        fit_time(picture, wide=True, margin=0.0)
        picture.mark()
        picture.finish(title)
    return _returned(picture, what)


# ---------------------------------------------------------------- boxes


def boxes(
    what: Asked,
    runs: Runs = None,
    *,
    by: Union[None, str, Sequence[str]] = None,
    every: Optional[float] = None,
    start: Time = None,
    end: Time = None,
    downsample: Optional[str] = None,
    per_span: Optional[str] = None,
    mark_spans: Optional[str] = None,
    annotations: bool = True,
    from_start: Optional[bool] = None,
    title: Optional[str] = None,
    theme: Optional[str] = None,
    size: Optional[tuple[float, float]] = None,
    ax: Any = None,
) -> Any:
    """Draws boxes with whiskers over time. Each box contains all points of all series within
    `every` seconds (default: some 30 boxes). With `by`, one or several tags, each box contains all
    points of the series with the same values of these tags; the default for several runs is
    `by="run"`.

    The box reaches from the first to the third quartile; its line is the median. A whisker ends at
    the last point within 1.5 times the length of the box; dots are points beyond, at most the 200
    outermost of a box. The other parameters are those of lines().
    """
    panels, known = _data.ask(what, runs, start, end, downsample, per_span, mark_spans, annotations)
    keys = ["run"] if by is None and len(known) > 1 else [by] if isinstance(by, str) else list(by or ())
    picture = Picture(panels, known, from_start, ax, theme, size, share=not keys)
    with picture.drawing():
        for axis, panel in zip(picture.axes, panels):
            picture.frame(axis, panel)
            if not any(len(curve.times) for curve in panel.curves):
                picture.empty(axis, f"no points of {panel.metric} in this range")
            elif keys:
                _series.boxes_by(picture, axis, panel, keys)
            else:
                _series.boxes_over_time(picture, axis, panel, every)
        if not keys:
            fit_time(picture, wide=True)
            picture.mark()
        picture.finish(title, timed=not keys)
    return _returned(picture, what)


# ---------------------------------------------------------------- spans


def spans(
    names: Union[None, str, Sequence[str], Sequence[dict[str, Any]]] = None,
    runs: Runs = None,
    *,
    start: Time = None,
    end: Time = None,
    annotations: bool = True,
    from_start: Optional[bool] = None,
    title: Optional[str] = None,
    theme: Optional[str] = None,
    size: Optional[tuple[float, float]] = None,
    ax: Any = None,
) -> Any:
    """Draws spans over time as bars, with rows for each host, rank or worker; spans within a span
    are below it. The colour stands for the name. The bar of a span that has not ended is pale on
    the right.

    `names` is a name or a list of names (default: all spans), or a list that AnalysisClient.spans()
    has returned. Returns the axis. The other parameters are those of lines().
    """
    if isinstance(names, Spans) or (names and not isinstance(names, str) and all(isinstance(one, dict) for one in names)):
        found = [(0, dict(span)) for span in names if isinstance(span, dict)]
        ends = [int(span[key]) for _, span in found for key in ("start_ns", "end_ns") if key in span]
        known = [Run(None, "", min(ends, default=0), max(ends, default=0), sorted({span["node"] for _, span in found}, key=_data.natural))]
    else:
        wanted = {names} if isinstance(names, str) else {str(name) for name in names or ()}
        known = _data.events(runs, start, end, annotations)
        everything = [(number, span) for number, run in enumerate(known) for span in run.spans]
        found = [(number, span) for number, span in everything if not wanted or span["name"] in wanted]
        absent = wanted - {span["name"] for _, span in everything}
        if absent:
            there = sorted({span["name"] for _, span in everything})
            raise ValueError(f"no span {', '.join(sorted(absent))!r}; there is {', '.join(there[:8]) or 'none'}")
        for run in known:
            run.spans = []  # the bars show the spans, so the axis needs no shades
    lanes, rows = _bars.lanes_of(found, known)
    height = min(9.0, max(1.4, 0.26 * rows))
    picture = Picture([Panel("", "", "", [])], known, from_start, ax, theme, size or (12.0, 1.2 + height))
    with picture.drawing():
        axis = picture.axes[0]
        listed = dict.fromkeys(str(span["name"]) for _, span in found)
        axis.set_title(_draw.cut("spans " + ", ".join(listed), 110) if listed else "spans")
        if found:
            _bars.draw_bars(picture, axis, lanes, rows)
        else:
            picture.empty(axis, "no spans in this range")
            fit_time(picture)
        picture.mark()
        picture.finish(title)
    return picture.axes[0]
