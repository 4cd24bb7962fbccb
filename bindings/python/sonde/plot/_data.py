"""The data of pictures: runs expressions as queries on runs, and returns numbers with names."""

import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional, Union

from .._analysis import AnalysisClient, Time
from .._client import ClientError
from .._result import Result
from ._figure import library

Where = Union[AnalysisClient, str, "os.PathLike[str]"]
What = Union[str, Result]

_GAP = 2.5  # steps longer than this many usual ones are gaps
_USUAL = 0.9  # the quantile of all steps that counts as the usual one
_DOWNSAMPLE = re.compile(r"(?:[0-9]+(?:ms|[smhdwny])c?|0all)-[A-Za-z0-9]")


@dataclass
class Curve:
    """One series of one run."""

    metric: str
    tags: dict[str, str]
    times: Any  # int64 nanoseconds since the epoch, ascending
    values: Any  # float64; NaN is missing
    run: int = 0
    name: str = ""  # distinguishes it from the others of its panel


@dataclass
class Panel:
    """The answer to one expression."""

    expression: str
    metric: str
    unit: str  # the catalogue's, with "/s" for a rate
    curves: list[Curve]
    common: dict[str, str] = field(default_factory=dict)  # tags with the same value in all curves

    # by tag with names of hosts: the domain, if all have the same
    domains: dict[str, str] = field(default_factory=dict)

    def value(self, key: str, curve: Curve) -> str:
        """Returns the value of a tag as labels show it: for n1.cluster.org and n2.cluster.org only
        n1 and n2."""
        value = curve.tags.get(key, "")
        domain = self.domains.get(key, "")
        return value[: len(value) - len(domain)] if domain else value

    def title(self) -> str:
        name = f"{self.metric} per second" if self.unit.endswith("/s") else self.metric
        words = ", ".join(f"{key}={value}" for key, value in self.common.items())
        return f"{name}  ({words})" if words else name


@dataclass
class Run:
    """A running job or a recording."""

    client: Optional[AnalysisClient]
    name: str
    start_ns: int  # time of its first point
    end_ns: int
    hosts: list[str]
    missing: str = ""
    spans: list[dict[str, Any]] = field(default_factory=list)
    notes: list[dict[str, Any]] = field(default_factory=list)


def _clients(runs: Union[None, Where, Iterable[Where]]) -> tuple[list[AnalysisClient], list[AnalysisClient]]:
    """Returns all clients, and those of them that this call opened."""
    wanted: list[Optional[Where]] = [runs] if runs is None or isinstance(runs, (AnalysisClient, str, os.PathLike)) else list(runs)
    if not wanted:
        raise ValueError("no run to draw")
    clients = [one if isinstance(one, AnalysisClient) else AnalysisClient(one) for one in wanted]
    return clients, [client for client, one in zip(clients, wanted) if client is not one]


def _described(client: AnalysisClient) -> Run:
    connection = client._open()
    nodes = client.nodes()
    runs = json.loads(connection.ask("/sonde/v1/status")).get("runs", [])
    firsts, lasts = [n["first_ns"] for n in nodes if "first_ns" in n], [n["last_ns"] for n in nodes if "last_ns" in n]
    if len(runs) == 1:
        job, name = runs[0].get("job", ""), (runs[0].get("about") or {}).get("name", "")
        name = f"{name} ({job})" if name and name != job else job
    else:
        name = f"{len(runs)} runs" if runs else ""
    place = connection.name
    name = name or (place if "://" in place else os.path.basename(os.path.abspath(place)))
    return Run(client, name, min(firsts, default=0), max(lasts, default=0), sorted({n["host"] for n in nodes}, key=natural))


def natural(text: str) -> list[Any]:
    """A sort key that puts n2 before n10."""
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in re.split(r"([0-9]+)", text)]


def expression_of(what: str, downsample: Optional[str], per_span: Optional[str]) -> str:
    """Returns the expression of the query. A metric alone, with or without tags, means each series
    by itself; an expression without downsampling gets `downsample`."""
    if ":" not in what.partition("{")[0]:
        what = f"none:{what}"
    aggregator, *steps = _parts(what)[:-1]
    if (downsample or per_span) and not any(_DOWNSAMPLE.match(step) for step in steps):
        function = downsample or "avg"
        if per_span and "-" not in function:
            function = f"0all-{function}"
        return f"{aggregator}:{function}:{what.partition(':')[2]}"
    return what


def _parts(expression: str) -> list[str]:
    """Returns the parts of the expression that exist of aggregator, downsampling, rate and metric,
    without options and tags."""
    return re.sub(r"\brate\{[^}]*\}", "rate", expression).partition("{")[0].split(":")


def _unit(unit: str, expression: str) -> str:
    aggregator, *steps = _parts(expression)[:-1]
    functions = [aggregator, *(step.split("-")[1] for step in steps if _DOWNSAMPLE.match(step))]
    if "count" in functions or "squareSum" in functions:
        return ""  # counts and squares do not have the metric's unit
    return f"{unit}/s" if "rate" in steps else unit


def _curves(result: Result, run: int) -> list[Curve]:
    numpy = library("numpy")
    return [
        Curve(series.metric, dict(series.tags), numpy.frombuffer(series.times, dtype="i8"), numpy.frombuffer(series.values, dtype="f8"), run)
        for series in result
    ]


def _joined_spans(curves: list[Curve], keys: set[str]) -> list[Curve]:
    """Joins values of spans: all values with the same other tags become one curve over the starts
    of the spans."""
    numpy = library("numpy")
    places: dict[tuple[Any, ...], list[Curve]] = {}
    for curve in curves:
        tags = {key: value for key, value in curve.tags.items() if key not in keys}
        places.setdefault((curve.run, *sorted(tags.items())), []).append(curve)
    joined = []
    for (run, *_), parts in places.items():
        times, values = numpy.concatenate([one.times for one in parts]), numpy.concatenate([one.values for one in parts])
        order = numpy.argsort(times, kind="stable")
        joined.append(Curve(parts[0].metric, {key: value for key, value in parts[0].tags.items() if key not in keys}, times[order], values[order], run))
    return joined


def _name(panel: Panel, runs: Sequence[Run]) -> None:
    """Names each curve by the tags in which it differs from others, and by its run if there are
    several."""
    keys = sorted({key for curve in panel.curves for key in curve.tags}, key=lambda key: (key != "host", key))
    values = {key: {curve.tags.get(key) for curve in panel.curves} for key in keys}
    panel.common = {key: curve_value for key in keys for curve_value in values[key] if len(values[key]) == 1 and curve_value is not None}
    telling = [key for key in keys if len(values[key]) > 1]
    # A key whose values follow from the previous keys adds nothing (worker=0 after host=w0).
    kept: list[str] = []
    for key in telling:
        if len({tuple(curve.tags.get(k) for k in kept) for curve in panel.curves}) < len({tuple(curve.tags.get(k) for k in [*kept, key]) for curve in panel.curves}):
            kept.append(key)
    for key in {"host", "node"} & {*telling}:
        domains = {curve.tags[key].partition(".")[2] for curve in panel.curves if key in curve.tags}
        panel.domains[key] = "".join(f".{domain}" for domain in domains) if len(domains) == 1 and "" not in domains else ""
    several = len({curve.run for curve in panel.curves}) > 1
    for curve in panel.curves:
        words = [runs[curve.run].name] if several else []
        words += [f"{key}={panel.value(key, curve)}" for key in kept if key in curve.tags]
        curve.name = " ".join(words) or panel.metric
    panel.curves.sort(key=lambda curve: (curve.run, natural(curve.name)))


def _of_result(result: Result) -> tuple[Panel, Run]:
    curves = _curves(result, 0)
    units, metrics = {series.unit for series in result}, list(dict.fromkeys(series.metric for series in result))
    ends = [time for curve in curves if len(curve.times) for time in (int(curve.times[0]), int(curve.times[-1]))]
    panel = Panel(", ".join(metrics), ", ".join(metrics), units.pop() if len(units) == 1 else "", curves)
    hosts = sorted({curve.tags["host"] for curve in curves if "host" in curve.tags}, key=natural)
    return panel, Run(None, "", min(ends, default=0), max(ends, default=0), hosts, result.missing)


def ask(
    what: Union[What, Sequence[What]],
    runs: Union[None, Where, Iterable[Where]],
    start: Time,
    end: Time,
    downsample: Optional[str],
    per_span: Optional[str],
    mark_spans: Optional[str] = None,
    annotations: bool = True,
) -> tuple[list[Panel], list[Run]]:
    """Returns the panels of the expressions, and the runs. Results of the caller need no query."""
    wanted = [what] if isinstance(what, (str, Result)) else list(what)
    if not wanted:
        raise ValueError("no expression to draw")
    panels: list[Panel] = []
    if all(isinstance(one, Result) for one in wanted):
        answers = [_of_result(one) for one in wanted if isinstance(one, Result)]
        known = [run for _, run in answers]
        run = Run(
            None, "", min((one.start_ns for one in known if one.start_ns), default=0), max(one.end_ns for one in known),
            sorted({host for one in known for host in one.hosts}, key=natural), ", ".join(dict.fromkeys(one.missing for one in known if one.missing)),
        )  # fmt: skip
        for panel, _ in answers:
            _name(panel, [run])
            panels.append(panel)
        return panels, [run]
    clients, own = _clients(runs)
    try:
        found = [_described(client) for client in clients]
        for one in wanted:
            if isinstance(one, Result):
                raise TypeError("either expressions or results are drawn, not both in one figure")
            panels.append(_panel(one, found, start, end, downsample, per_span))
        for run in found:
            _add_events(run, start, end, mark_spans, annotations)
    finally:
        for client in own:
            client.close()
    return panels, found


def _panel(what: str, runs: Sequence[Run], start: Time, end: Time, downsample: Optional[str], per_span: Optional[str]) -> Panel:
    expression = expression_of(what, downsample, per_span)
    panel = Panel(expression, _parts(expression)[-1], "", [])
    unknown = 0  # number of runs that do not know the metric
    for number, run in enumerate(runs):
        assert run.client is not None
        try:
            result = run.client.query(expression, start=start, end=end, span=per_span)
        except ClientError as error:
            if "No such name" in str(error) and not unknown == number == len(runs) - 1:
                unknown += 1
                _note_missing(run, f"{run.name} has no {panel.metric}")
                continue
            where = f" in {run.name}" if len(runs) > 1 and not unknown else ""
            told = ClientError(f"{what}{where}: {error}")
            told.errno = error.errno
            raise told from error
        _note_missing(run, result.missing)
        curves = _curves(result, number)
        if per_span:
            keys = {key for span in run.client.spans(per_span, start=start, end=end) for key in span["tags"] if key not in ("host", "gpu", "rank")}
            curves = _joined_spans(curves, keys)
        panel.curves += curves
        if len(result):
            panel.metric, panel.unit = result[0].metric, _unit(result[0].unit, expression)
    _name(panel, runs)
    return panel


def _note_missing(run: Run, names: str) -> None:
    if names and names not in run.missing:
        run.missing += (", " if run.missing else "") + names


def events(runs: Union[None, Where, Iterable[Where]], start: Time, end: Time, annotations: bool) -> list[Run]:
    """Returns the runs with all of their spans."""
    clients, own = _clients(runs)
    try:
        found = [_described(client) for client in clients]
        for run in found:
            assert run.client is not None
            _add_events(run, start, end, None, annotations)
            run.spans = run.client.spans(start=start, end=end)
    finally:
        for client in own:
            client.close()
    return found


def _add_events(run: Run, start: Time, end: Time, mark_spans: Optional[str], annotations: bool) -> None:
    assert run.client is not None
    if mark_spans:
        run.spans = run.client.spans(mark_spans, start=start, end=end)
        if not run.spans:
            names = sorted({span["name"] for span in run.client.spans()})
            raise ValueError(f"no span {mark_spans!r} in {run.name}; there is {', '.join(names[:8]) or 'none'}")
    if annotations:
        # Parameters of the run are annotations, too (docs/runs.md), but mark no event.
        run.notes = [note for note in run.client.annotations(start=start, end=end) if note["tags"].get("sonde") != "config"]


# ---------------------------------------------------------------- times


def usual_step(times: Any) -> float:
    """Returns the usual step between two points of a series, in nanoseconds."""
    numpy = library("numpy")
    return float(numpy.quantile(numpy.diff(times), _USUAL)) if len(times) > 1 else 0.0


def with_gaps(times: Any, values: Any) -> tuple[Any, Any]:
    """Returns the points, with NaN in steps that are much longer than the usual one. So a missing
    value is a gap, and no line crosses it."""
    numpy = library("numpy")
    if len(times) < 3:
        return times, values
    after = numpy.nonzero(numpy.diff(times) > _GAP * usual_step(times))[0] + 1
    return numpy.insert(times, after, times[after - 1] + 1), numpy.insert(values, after, numpy.nan)

