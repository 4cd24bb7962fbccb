"""How a notebook shows results, runs and lists of spans: a table, and below it a picture if
Matplotlib is installed."""

import base64
import datetime
import html
import importlib
import io
import json
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from ._analysis import AnalysisClient
    from ._result import Result

_ROWS = 12  # rows of a table; the others are only counted
_SPANS_MAX = 20000  # a larger picture would take too long under a cell
_POINTS_MAX = 5_000_000


class Spans(list[dict[str, Any]]):
    """A list of spans, which a notebook shows as a table and a picture."""

    def _repr_html_(self) -> str:
        return spans_html(self)


def digits(value: float) -> str:
    """Returns three digits, or all of a larger whole part up to a million: ``34.2``, ``1010``."""
    return f"{value:.0f}" if 999.5 <= abs(value) < 1e6 else f"{value:.3g}"


def quantity(value: float, unit: str) -> str:
    """Returns the value with its unit: ``1.5 GiB``, ``34.2 %``."""
    if unit == "bytes":
        power = 0
        while abs(value) >= 1024 and power < 5:
            value, power = value / 1024, power + 1
        return f"{digits(value)} {('B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB')[power]}"
    symbol = {"percent": "%", "watts": "W", "seconds": "s", "celsius": "°C"}.get(unit, unit)
    return f"{digits(value)} {symbol}".rstrip()


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.4g}"
    return html.escape(str(value))


def _table(titles: Sequence[str], rows: Iterable[Sequence[object]], more: int = 0, of: str = "") -> str:
    head = "".join(f"<th>{html.escape(title)}</th>" for title in titles)
    body = "".join("<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row) + "</tr>" for row in rows)
    rest = f"<p>… and {more:,} more {html.escape(of)}</p>" if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _picture(draw: Callable[[Any], Any], alternative: str) -> str:
    """Returns the figure as PNG inside of the page; nothing without Matplotlib."""
    try:
        plot = importlib.import_module("sonde.plot")
        pyplot = importlib.import_module("matplotlib.pyplot")
    except ImportError:
        return ""
    figure = draw(plot).figure
    out = io.BytesIO()
    figure.savefig(out, format="png", facecolor=figure.get_facecolor())
    pyplot.close(figure)
    return f'<img alt="{html.escape(alternative)}" style="max-width: 100%" src="data:image/png;base64,{base64.b64encode(out.getvalue()).decode()}">'


def _missing(names: str) -> str:
    return f"<p><strong>missing in the answer:</strong> {html.escape(names)}</p>" if names else ""


def _time(t_ns: int) -> str:
    return f"{datetime.datetime.fromtimestamp(t_ns / 1e9):%Y-%m-%d %H:%M:%S.%f}"[:-3]


def _tags(tags: dict[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in tags.items())


def result_html(result: "Result") -> str:
    """Makes a row for each series, with count, lowest, mean, highest and last value, and the
    lines."""
    rows: list[tuple[object, ...]] = []
    for series in result[:_ROWS]:
        values = [value for value in series.values if value == value]
        mean = math.fsum(values) / len(values) if values else math.nan
        some = (min(values), mean, max(values), values[-1]) if values else (math.nan,) * 4
        rows.append((series.metric, _tags(series.tags), series.count, *some, series.unit))
    table = _table(("metric", "tags", "points", "min", "mean", "max", "last", "unit"), rows, len(result) - len(rows), "series")
    drawn = ""
    if 0 < sum(series.count for series in result) <= _POINTS_MAX:
        drawn = _picture(lambda plot: plot.lines(result, size=(10.0, 3.2)), "the lines of the result")
    return f"<div>{_missing(result.missing)}{table}{drawn}</div>"


def spans_html(spans: Sequence[dict[str, Any]]) -> str:
    """Makes a row for each span, with start, length, node and tags, and the bars."""
    rows = [
        (span["name"], _time(span["start_ns"]), (span["end_ns"] - span["start_ns"]) / 1e9 if "end_ns" in span else "open", span["node"], _tags(span["tags"]))
        for span in spans[:_ROWS]
    ]
    table = _table(("span", "start", "seconds", "node", "tags"), rows, len(spans) - len(rows), "spans")
    drawn = _picture(lambda plot: plot.spans(list(spans)), "the spans over time") if 0 < len(spans) <= _SPANS_MAX else ""
    return f"<div>{table}{drawn}</div>"


def run_html(client: "AnalysisClient") -> str:
    """Describes a running job or a recording: command, nodes, start, duration and exit code."""
    connection = client._open()
    status = json.loads(connection.ask("/sonde/v1/status"))
    nodes = client.nodes()
    facts: list[tuple[str, object]] = []
    for run in status.get("runs", []):
        about = run.get("about") or {}
        ended = "end_ns" in run
        facts += [(key, about[key]) for key in ("name", "note") if about.get(key)]
        facts += [("job", run.get("job", "")), ("command", run.get("command", "")), ("start", _time(run["start_ns"]))]
        facts += [("seconds", (run["end_ns"] - run["start_ns"]) / 1e9), ("exit code", run.get("exit_code", "–"))] if ended else [("state", "running")]
        facts += [(key, value) for key, value in {**(about.get("tags") or {}), **(about.get("config") or {})}.items()]
    facts += [
        ("place", connection.name), ("nodes", ", ".join(node["host"] for node in nodes[:_ROWS]) + (f", … ({len(nodes):,})" if len(nodes) > _ROWS else "")),
        ("metrics", f"{len(client.metrics()):,}"), ("series", f"{sum(node.get('series', 0) for node in nodes):,}"),
    ]  # fmt: skip
    return f"<div>{_table(('', ''), facts)}</div>"
