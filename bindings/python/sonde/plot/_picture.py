"""A picture: its axes, its time axis, and its texts about runs, hosts and missing data."""

import contextlib
import datetime
from collections.abc import Iterator, Sequence
from typing import Any, Optional

from . import _data, _draw
from ._data import Panel, Run
from ._figure import Canvas, Theme, library, theme_of

NS = 1_000_000_000
MISSING = "missing in the answer: "  # precedes the names of the nodes
_DAY_NS = 86400 * NS
_NOTES_MAX = 40  # limit of annotations, because more would hide the lines

_notes: Optional[list[str]] = None


@contextlib.contextmanager
def noted() -> Iterator[list[str]]:
    """Collects the messages of pictures drawn meanwhile: empty answers, missing nodes."""
    global _notes
    found: list[str] = []
    _notes = found
    try:
        yield found
    finally:
        _notes = None


def _note(words: str) -> None:
    if _notes is not None and words not in _notes:
        _notes.append(words)


class TimeAxis:
    """Converts times to positions on the axis: Matplotlib's days for the time of day, or seconds
    since the start of each run."""

    def __init__(self, runs: Sequence[Run], from_start: Optional[bool]) -> None:
        self.from_start = len(runs) > 1 if from_start is None else from_start
        self.starts = [run.start_ns for run in runs]

    def __call__(self, times: Any, run: int = 0) -> Any:
        numpy = library("numpy")
        if self.from_start:
            return (numpy.asarray(times, dtype="i8") - self.starts[run]) / NS
        return numpy.asarray(times, dtype="i8") / _DAY_NS

    def of_seconds(self, seconds: float) -> float:
        return seconds if self.from_start else seconds / 86400

    def label(self, axis: Any, first_ns: int) -> None:
        if self.from_start:
            axis.set_xlabel("seconds since the start of the run")
            return
        dates, zone = library("matplotlib.dates"), library("dateutil.tz").tzlocal()
        locator = dates.AutoDateLocator(tz=zone)
        axis.xaxis.set_major_locator(locator)
        axis.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator, tz=zone))
        axis.set_xlabel(f"time of day ({datetime.datetime.fromtimestamp(first_ns / 1e9, zone).tzname()})")


class Picture:
    """The common parts of all kinds: axes, titles, marks, texts about missing data."""

    def __init__(self, panels: Sequence[Panel], runs: Sequence[Run], from_start: Optional[bool], axes: Any, theme: Optional[str], size: Optional[tuple[float, float]], share: bool = True) -> None:
        self.panels, self.runs, self.own = panels, runs, axes is None
        self.time = TimeAxis(runs, from_start)
        self.theme: Theme = theme_of(theme)
        width, height = size or (12.0, 0.9 + 2.9 * max(1, len(panels)))
        self.canvas: Optional[Canvas] = None
        if axes is None:
            self.canvas = Canvas(max(1, len(panels)), width, height, self.theme, share=share)
            self.axes, self.font_points, self.width_points = self.canvas.axes, self.canvas.font_points, self.canvas.width_points
        else:
            self.axes = list(axes) if isinstance(axes, Sequence) or hasattr(axes, "__len__") else [axes]
            if len(self.axes) != len(panels):
                raise ValueError(f"{len(panels)} expressions need as many axes, not {len(self.axes)}")
            self.font_points = float(library("matplotlib").rcParams["font.size"])
            self.width_points = self.axes[0].get_window_extent().width / self.axes[0].figure.dpi * 72

    def drawing(self) -> Any:
        return self.canvas.drawing() if self.canvas else library("matplotlib").rc_context({})

    def height_points(self, axis: Any) -> float:
        return float(axis.get_position().height * axis.figure.get_size_inches()[1] * 72)

    def first_ns(self) -> int:
        return min((int(c.times[0]) for p in self.panels for c in p.curves if len(c.times)), default=self.runs[0].start_ns)

    def frame(self, axis: Any, panel: Panel) -> None:
        axis.set_title(_draw.cut(panel.title(), 110))
        axis.grid(axis="y", color=self.theme.grid, linewidth=0.8)

    def empty(self, axis: Any, words: str) -> None:
        _note(words)
        axis.text(0.5, 0.5, words, transform=axis.transAxes, ha="center", va="center", color=self.theme.muted)
        axis.set_yticks([])

    def finish(self, title: Optional[str], timed: bool = True) -> None:
        """Writes the texts around the axes: title, missing data, the axis of time."""
        last = self.axes[-1]
        if timed:
            self.time.label(last, self.first_ns())
        missing = ", ".join(dict.fromkeys(run.missing for run in self.runs if run.missing))
        if missing:
            _note(f"{MISSING}{missing}")
            last.annotate(
                _draw.cut(f"{MISSING}{missing}", 120), (0, 0), xycoords="axes fraction", xytext=(0, -3.1 * self.font_points),
                textcoords="offset points", ha="left", va="top", color=self.theme.alert, fontsize="small",
            )  # fmt: skip
        if self.canvas:
            words = title if title is not None else self.words()
            if words:
                self.canvas.title(words)
            self.canvas.figure.align_ylabels(self.axes)
            self.canvas.close_if_shown_otherwise(False)

    def words(self) -> str:
        """Returns the runs, the hosts, the time and the duration as text."""
        names = " and ".join(run.name for run in self.runs if run.name) if len(self.runs) <= 4 else f"{len(self.runs)} runs"
        hosts = sorted({host for run in self.runs for host in run.hosts}, key=_data.natural)
        parts = [names, "" if not hosts else ", ".join(hosts) if len(hosts) <= 3 else f"{len(hosts)} hosts"]
        if len(self.runs) == 1 and self.runs[0].start_ns:
            begin = datetime.datetime.fromtimestamp(self.runs[0].start_ns / 1e9)
            parts.append(f"{begin:%Y-%m-%d %H:%M:%S}, {duration((self.runs[0].end_ns - self.runs[0].start_ns) / 1e9)}")
        return "  ·  ".join(_draw.cut(part, 80) for part in parts if part)

    def mark(self) -> None:
        """Draws spans as shades, annotations and restarts as lines, on all axes."""
        low, high = self.axes[0].get_xlim()
        # the labels of spans are above the axis, and the title is above them
        if any(run.spans for run in self.runs):
            self.axes[0].set_title(self.axes[0].get_title(loc="left"), pad=1.6 * self.font_points)
        at: set[tuple[float, str, bool]] = set()
        for number, run in enumerate(self.runs):
            if run.spans:
                stretches = [
                    (float(self.time(begin, number)), float(self.time(end, number)), label, short)
                    for begin, end, label, short in _stretches(run)
                ]  # fmt: skip
                _draw.shade(self.axes, self.theme, stretches, self.width_points, self.font_points)
            for note in run.notes:
                x, attempt = float(self.time(note["t_ns"], number)), note["tags"].get("attempt")
                if low <= x <= high and attempt != "0":  # attempt 0 is the start, not a restart
                    at.add((x, note["text"], attempt is not None))
        kept = sorted(at)
        if len(kept) > _NOTES_MAX:
            kept = [one for one in kept if one[2]][:_NOTES_MAX]
        _draw.notes(self.axes, self.theme, kept, self.width_points, self.font_points)
        self.axes[0].set_xlim(low, high)


def duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def _stretches(run: Run) -> list[tuple[int, int, str, str]]:
    """Converts spans to stretches of time. Overlapping spans of several hosts or ranks with the
    same other tags become one."""
    found: list[tuple[int, int, str, str]] = []
    for span in sorted(run.spans, key=lambda span: int(span["start_ns"])):
        own = {key: value for key, value in span["tags"].items() if key not in ("host", "rank", "worker", "pid", "unfinished")}
        number = " ".join(own.values())
        begin, end = int(span["start_ns"]), int(span.get("end_ns", run.end_ns))
        label = f"{span['name']} {number}".strip()
        if found and found[-1][2] == label and begin < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]), label, number)
        else:
            found.append((begin, end, label, number))
    return found


def fit_time(picture: Picture, wide: bool = False, margin: float = 0.01) -> None:
    """Fits the time axis from the first point of all panels to the last, with a little room.
    `wide`: boxes may begin before the first point and end after the last."""
    ends = [float(x) for p in picture.panels for c in p.curves if len(c.times) for x in picture.time(c.times[[0, -1]], c.run)]
    low, high = (min(ends), max(ends)) if ends else (float(picture.time(picture.runs[0].start_ns)), float(picture.time(picture.runs[0].end_ns)))
    if wide and ends:
        low, high = min(low, *(axis.dataLim.x0 for axis in picture.axes)), max(high, *(axis.dataLim.x1 for axis in picture.axes))
    room = (high - low) * margin
    if low == high:
        room = picture.time.of_seconds(0.5)
    for axis in picture.axes:
        axis.set_xlim(low - room, high + room)
