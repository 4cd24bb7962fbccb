"""Queries of a running job or a recording."""

import datetime
import errno
import importlib
import json
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any, Optional, TypeVar, Union
from urllib.parse import quote, urlencode

from . import _names, _notebook
from ._client import ClientError, Connection
from ._emit import storable_name
from ._result import Frame, Result, Rows, Series
from ._watch import Callback, Condition, Watch, condition_of

Time = Union[str, float, datetime.datetime, None]
_Answer = TypeVar("_Answer")
Filters = Optional[list[tuple[str, Optional[str], str, bool]]]

_WINDOW_S = 300  # the default range of get_data()
_DUMP_S = 3600.0  # a dump answers only after it has copied everything
_AGAIN_S = 0.1  # between two attempts of connect()
_SLICE_S = 0.5  # an asynchronous watch checks this often whether it has ended
_NS = 1_000_000_000
_WHOLE_NUMBER = re.compile("0|-?[1-9][0-9]{0,17}")


def _time(given: Time) -> Optional[str]:
    """Returns the time as a text of the HTTP interface. Accepts seconds since the epoch, a
    datetime, or such a text ("5m-ago")."""
    if given is None or isinstance(given, str):
        return given
    seconds = given.timestamp() if isinstance(given, datetime.datetime) else float(given)
    ns = max(round(seconds * 1e6), 0) * 1000
    return f"{ns // _NS}.{ns % _NS:09d}"


def _keys(given: Union[str, Iterable[str], None]) -> tuple[str, ...]:
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)


def _filters(tags: Optional[Mapping[str, object]], by: tuple[str, ...]) -> Filters:
    """Makes filters from tags such as ``{"host": "n*", "rank": [1, 2]}``. Keys in `by` make groups;
    a group key without a filter takes all values."""
    found: list[tuple[str, Optional[str], str, bool]] = []
    for key, value in (tags or {}).items():
        text = "|".join(map(str, value)) if isinstance(value, (list, tuple, set, frozenset, range)) else str(value)
        found.append((key, None, text, key in by))
    return found + [(key, None, "*", True) for key in by if key not in (tags or {})]


def _joined(given: Union[str, Iterable[str], None]) -> str:
    return given if isinstance(given, str) else ",".join(given or ())


def _hosts_of(huids: Union[str, Iterable[Any], None]) -> str:
    """Returns the host names for these host numbers of the Dragon runtime around this program."""
    numbers = [int(huid) for huid in (huids.split(",") if isinstance(huids, str) else huids or ())]
    if not numbers:
        return ""
    try:
        machine: Any = importlib.import_module("dragon.native.machine")
        return ",".join(str(machine.Node(number).hostname) for number in numbers)
    except Exception as error:
        raise RuntimeError(f"no hosts with the huids {numbers}: Dragon's runtime does not know them ({error}); give exclude_hostnames") from error


def _wanted_tags(tags: Union[str, Mapping[str, Any], Iterable[str], None]) -> tuple[Optional[Mapping[str, Any]], Optional[list[str]]]:
    """Returns the filters, and the tags to return (None: all)."""
    if isinstance(tags, Mapping):
        return {storable_name(key, True): value for key, value in tags.items()}, None
    named = [tags] if isinstance(tags, str) else list(tags or ())
    others = [key for key in named if key != "host"]
    return {storable_name(key, True): "*" for key in others[:1]}, ["host", *others]


class AnalysisClient:
    """A client of a running job or a recording.

        with sonde.AnalysisClient() as client:
            for series in client.query("avg:1s-avg:cpu_percent{host=*}", start="5m-ago"):
                print(series.tags["host"], list(series))

    `where` is the address of a job, the id of a running or recorded job, or the path of a recording
    (a file, or a folder of files). The default is the job around this program, else the newest job
    that runs on this machine, else the newest recording. `timeout` is the limit for each request,
    in seconds; the default is a minute. Threads may share a client, and forked children may
    continue to use it.
    """

    def __init__(self, where: Union[str, "os.PathLike[str]", None] = None, *, token: Optional[str] = None, timeout: Optional[float] = None) -> None:
        self._where = None if where is None else os.fspath(where)
        self._token = token
        self._timeout = timeout or 0.0
        self._connection: Optional[Connection] = None
        self._helps: dict[str, str] = {}  # of the metrics of earlier get_data() calls

    def __enter__(self) -> "AnalysisClient":
        if self._connection is None:
            self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<sonde.AnalysisClient {self._connection.name if self._connection else 'not connected'}>"

    def _repr_html_(self) -> str:
        return _notebook.run_html(self)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_connection": None}  # the copy opens its own connection

    def close(self) -> None:
        """Closes the connection and its watches; connect() opens a new one."""
        if self._connection:
            self._connection.close()
        self._connection = None

    def _connected(self) -> Connection:
        if self._connection is None:
            raise RuntimeError("not connected: call connect() first")
        return self._connection

    def _open(self) -> Connection:
        """Returns the connection. sonde's own queries connect on demand; Dragon's require
        connect()."""
        if self._connection is None:
            self._connection = Connection(self._where, self._token, self._timeout)
        return self._connection

    def _list(self, path: str, what: str, **parameters: Any) -> list[dict[str, Any]]:
        given = {k: v for k, v in parameters.items() if v is not None}
        target = f"/sonde/v1/{path}" + (f"?{urlencode(given, doseq=True, quote_via=quote)}" if given else "")
        found: list[dict[str, Any]] = json.loads(self._open().ask(target))[what]
        return found

    # ---- points

    def query(
        self,
        m: Optional[str] = None,
        /,
        *,
        metric: Optional[str] = None,
        tags: Optional[Mapping[str, object]] = None,
        by: Union[str, Iterable[str], None] = None,
        aggregator: Optional[str] = None,
        downsample: Optional[str] = None,
        rate: Union[bool, str] = False,
        start: Time = None,
        end: Time = None,
        span: Optional[str] = None,
        span_tags: Optional[Mapping[str, object]] = None,
        span_node: bool = False,
    ) -> Result:
        """Returns points, over the whole job unless `start` or `end` is given; see docs/query.md.

        A query is an expression of OpenTSDB, ``query("max:1s-max:gpu_power_watts{host=*}")``; a
        metric, ``query("loss")``; or keyword arguments: ``query(metric="loss", tags={"rank": [0,
        1]}, by="rank", aggregator="avg", downsample="1s-avg-nan", rate="counter")``. The default
        `aggregator` is "avg" with groups (`by`), else "none" (each series by itself). `rate` is
        True, "counter" (a falling value is an overflow) or "dropcounter" (falling values are left
        out).

        With `span`, `downsample` is a function. ``query(metric="memory_used_bytes", span="epoch",
        downsample="max")`` returns one point for each span of that name, at the start of the span
        and with its tags. `span_node` selects only series of the node of the span.
        """
        if m is not None and ":" not in m and "{" not in m:
            if metric is not None:
                raise TypeError("a metric is given twice")
            m, metric = None, m
        groups = _keys(by)
        if m is not None and (metric is not None or tags or groups or aggregator or downsample or rate):
            raise TypeError("an expression has its own tags and functions: pass only times and spans with it, or use metric=")
        if metric is not None and aggregator is None and groups:
            aggregator = "avg"
        if rate not in (False, True, "counter", "dropcounter"):
            raise ValueError(f"rate is True, 'counter' or 'dropcounter', not {rate!r}")
        if span is not None and downsample is not None and "-" not in downsample:
            downsample = f"0all-{downsample}"
        return Result(self._open().query(
            m=m, metric=metric, aggregator=aggregator, downsample=downsample, rate=bool(rate), counter=rate == "counter", drop_resets=rate == "dropcounter",
            start=_time(start), end=_time(end), filters=_filters(tags, groups),
            span=span, span_tags=[(k, str(v)) for k, v in (span_tags or {}).items()], span_node=span_node))

    def frame(self, m: Optional[str] = None, /, **how: Any) -> Frame:
        """Like query(), but as one table: ``pyarrow.table(client.frame("loss"))``."""
        return self.query(m, **how).frame()

    def peaks(self, metric: str, by: Union[str, Iterable[str], None] = None, *, tags: Optional[Mapping[str, object]] = None, start: Time = None, end: Time = None) -> Result:
        """Returns the highest point of each group over the whole range: a series with one point for
        each group, with the tags of the series that had the point. Without `by`, every series is a
        group."""
        return Result(self._open().peaks(metric, None if by is None else _keys(by), _time(start), _time(end), _filters(tags, ())))

    def stats(
        self,
        expressions: Union[str, Iterable[str], None] = None,
        by: Union[str, Iterable[str], None] = None,
        *,
        span: Optional[str] = None,
        start: Time = None,
        end: Time = None,
    ) -> Rows:
        """Returns statistics of points as `sonde stats --json` does: a dictionary for each series,
        with metric, tags, count, mean, deviation, min, max, p50, p95, p99, last, integral and their
        times and units (docs/statistics.md). A value that is not known is None.

        Expressions are those of query(); the default is all metrics. With `by`, all series that
        have the same values of these tags make one row. With `span`, only points within spans of
        that name count, and each span has rows of its own.
        """
        if expressions is None:
            expressions = [metric["name"] for metric in self.metrics()]
        rows, missing = Rows(), []
        for expression in [expressions] if isinstance(expressions, str) else expressions:
            found, absent = self._open().stats(expression, None if by is None else _keys(by), span, _time(start), _time(end))
            rows += found
            missing += [absent] if absent and absent not in missing else []
        rows.missing = ", ".join(missing)
        return rows

    def watch(self, selection: str, condition: Condition, callback: Callback) -> Watch:
        """Calls ``callback(series, time_ns, value)`` in a thread of its own for each new point that
        meets the condition: ``watch("loss{rank=*}", "> 90", act)``.

        A condition is a comparison with a number, a function of the value, or None (every point).
        ``"rate:bytes_total{host=*}"`` watches the change per second. The watch begins with the next
        point, and continues after the job was unreachable for a while. Call stop() of the returned
        handle to end it.
        """
        meets = condition_of(condition)
        return Watch(self._open().watch(m=f"none:{selection}"), meets, callback)

    # ---- lists

    def metrics(self, part_of_name: Optional[str] = None) -> list[dict[str, Any]]:
        """Returns name, kind, unit, help and level of each metric, and aliases (other names) if
        any."""
        return self._list("metrics", "metrics", q=part_of_name)

    def nodes(self) -> list[dict[str, Any]]:
        """Returns host, job, state and series of each node; first_ns and last_ns if it has points.
        """
        return self._list("nodes", "nodes")

    def series(self, match: Optional[str] = None, *, limit: int = 0) -> list[dict[str, Any]]:
        """Returns metric, tags, and time and value (t_ns, value) of the latest point of each
        series: ``series("loss{rank=*}")``."""
        return self._list("series", "series", match=match, limit=limit, latest="")

    def spans(self, name: Optional[str] = None, *, tags: Optional[Mapping[str, object]] = None, start: Time = None, end: Time = None) -> list[dict[str, Any]]:
        """Returns name, start_ns, end_ns, id, parent, node and tags of each span that overlaps the
        range. A span that has not ended has no end_ns."""
        return _notebook.Spans(self._events("spans", name, tags, start, end))

    def annotations(self, *, tags: Optional[Mapping[str, object]] = None, start: Time = None, end: Time = None) -> list[dict[str, Any]]:
        """Returns text, t_ns, node and tags of each annotation."""
        return self._events("annotations", None, tags, start, end)

    def _events(self, what: str, name: Optional[str], tags: Optional[Mapping[str, object]], start: Time, end: Time) -> list[dict[str, Any]]:
        wanted = [f"{k}={v}" for k, v in (tags or {}).items()]
        return self._list(what, what, name=name, tag=wanted or None, start=_time(start), end=_time(end), limit=0)

    # ---- the methods of Dragon's client

    def connect(self, timeout: Optional[float] = None) -> None:
        """Connects to the job, and retries for `timeout` seconds. Raises RuntimeError if the job
        cannot be reached."""
        end = time.monotonic() + (timeout or 0)
        while True:
            try:
                trial = Connection(self._where, self._token, max(end - time.monotonic(), _AGAIN_S) if timeout else self._timeout)
                trial.ask("/sonde/v1/nodes")
                trial.close()
                break
            except ClientError as error:
                if error.errno not in (errno.ENOENT, errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ECONNRESET, errno.ETIMEDOUT, errno.EBUSY):
                    raise
                if time.monotonic() + _AGAIN_S >= end:
                    raise
            time.sleep(_AGAIN_S)
        self.close()
        self._connection = Connection(self._where, self._token, self._timeout)

    def get_metrics(self) -> set[str]:
        """Returns the names of all metrics as the programs wrote them, and Dragon's names of its
        own metrics."""
        self._connected()
        metrics = self.metrics()
        return {_names.as_written(m["name"]) for m in metrics} | {alias for m in metrics for alias in m.get("aliases", ())}

    def get_data(self, metrics: Union[str, list[str]], tags: Union[str, Mapping[str, Any], Iterable[str], None] = None, start_time: Optional[float] = None) -> list[dict[str, Any]]:
        """Returns the points of these metrics since `start_time` (seconds since the epoch; default:
        the last five minutes) as a dictionary for each series, sorted by host.

        A dictionary is ``{"metric": …, "tags": {"host": …}, "aggregateTags": [], "dps":
        {"1356998400": 0.5}}``. Times are whole seconds; the last point of a second counts. `tags`
        is the name or the names of tags to return beside ``host``; series without the first of them
        are left out. `tags` may also be a mapping of tags to required values; the dictionaries then
        have all tags. An unknown metric has no series. The last five minutes of a recording are
        those before its end.
        """
        self._connected()
        if isinstance(metrics, str):
            metrics = [metrics]
        if not isinstance(metrics, list):
            raise AttributeError(f"metrics must be a str or a list of them, not {type(metrics).__name__}")
        if not (tags is None or isinstance(tags, (str, Mapping, Iterable))):
            raise AttributeError(f"tags must be a str, a list of them or a mapping, not {type(tags).__name__}")
        start = self._last_minutes() if start_time is None else start_time
        if start > time.time():
            return []
        filters, shown = _wanted_tags(tags)
        found = [series for metric in metrics for series in self._data_of(metric, filters, shown, start)]
        return sorted(found, key=lambda series: str(series["tags"].get("host", "")))

    def _data_of(self, metric: str, filters: Optional[Mapping[str, Any]], shown: Optional[list[str]], start: float) -> list[dict[str, Any]]:
        found = []
        for series in self._data(metric, filters, start):
            dps = {str(t // _NS): v for t, v in series if v == v}
            tags: dict[str, Any] = {_names.as_written(key): value for key, value in series.tags.items()}
            if shown is not None:
                tags = {key: tags[key] for key in shown if key in tags}
            for key, value in tags.items():
                if key != "host" and _WHOLE_NUMBER.fullmatch(value) and self._has_whole_numbers(metric, key):
                    tags[key] = int(value)
            found.append({"metric": metric, "tags": tags, "aggregateTags": [], "dps": dps})
        return sorted(found, key=lambda series: [(isinstance(v, str), v) for k, v in series["tags"].items() if k != "host"])

    def _has_whole_numbers(self, metric: str, key: str) -> bool:
        """Whether the programs passed whole numbers as values of this tag. The metric's help says
        so; one request fetches it."""
        if metric not in self._helps:
            stored = storable_name(metric)
            self._helps[metric] = next((m["help"] for m in self.metrics(stored) if m["name"] == stored), "")
        return self._helps[metric] == _names.whole_numbers(key)

    def _last_minutes(self) -> float:
        if self._connected().name.startswith(("http://", "https://")):
            return time.time() - _WINDOW_S
        return max((node["last_ns"] for node in self.nodes() if "last_ns" in node), default=0) / 1e9 - _WINDOW_S

    def _data(self, metric: str, tags: Optional[Mapping[str, Any]], start: float) -> Iterable[Series]:
        try:
            return self.query(metric=metric, tags=tags, start=start)
        except ClientError as error:
            if error.errno == errno.EINVAL and "No such name" in str(error):
                return ()
            raise

    def db_dump(self) -> list[dict[str, Any]]:
        """Copies the data that every node has recorded so far into the dump folder of the run.

        Returns for each node ``{"type": "dump", "host": …, "result": {"status": "success" or
        "error", "message": …}}``.
        """
        self._connected()
        # Uses a connection of its own, because a dump may take longer than the timeout.
        connection = Connection(self._where, self._token, self._timeout or _DUMP_S)
        try:
            answer = json.loads(connection.ask("/sonde/v1/dump", "{}"))
        finally:
            connection.close()
        nodes: dict[str, dict[str, str]] = {}
        for file in answer["files"]:
            good = file["state"] != "failed"
            message = file.get("message") or (f"{file['state']}: {file['path']}" if good else "failed")
            if nodes.get(file["host"], {}).get("status") != "error":
                nodes[file["host"]] = {"status": "success" if good else "error", "message": message}
        for node in answer.get("missing", []):
            nodes[node["host"]] = {"status": "error", "message": node.get("text") or node["reason"]}
        return [{"type": "dump", "host": host, "result": result} for host, result in nodes.items()]

    def reboot(self, *, exclude_huids: Union[str, Iterable[Any], None] = None, exclude_hostnames: Union[str, Iterable[str], None] = None) -> None:
        """Requests a restart of the job's command without these hosts. The job has to run with
        --resilient.

        `exclude_huids` are Dragon's numbers of hosts, which are known only to programs of Dragon's
        runtime.
        """
        hosts = ",".join(name for name in (_joined(exclude_hostnames), _hosts_of(exclude_huids)) if name)
        self._open().ask("/api/reboot", urlencode({"hostnames": hosts}))


async def _in_thread(function: Callable[..., _Answer], *given: Any, **how: Any) -> _Answer:
    asyncio = importlib.import_module("asyncio")  # takes 20 ms in a program that does not use it
    answer: _Answer = await asyncio.to_thread(function, *given, **how)
    return answer


class AsyncAnalysisClient:
    """AnalysisClient for coroutines. Requests run in threads, several at once, and do not block the
    event loop.

        async with sonde.AsyncAnalysisClient() as client:
            async for series, time_ns, value in client.watch("loss{rank=*}", "> 90"):
                await react(series)
    """

    def __init__(self, where: Union[str, "os.PathLike[str]", None] = None, *, token: Optional[str] = None, timeout: Optional[float] = None) -> None:
        self._client = AnalysisClient(where, token=token, timeout=timeout)

    async def __aenter__(self) -> "AsyncAnalysisClient":
        await self.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return repr(self._client).replace("AnalysisClient", "AsyncAnalysisClient")

    def close(self) -> None:
        """Like AnalysisClient.close."""
        self._client.close()

    async def connect(self, timeout: Optional[float] = None) -> None:
        """Like AnalysisClient.connect."""
        await _in_thread(self._client.connect, timeout)

    async def query(self, m: Optional[str] = None, /, **how: Any) -> Result:
        """Like AnalysisClient.query."""
        return await _in_thread(self._client.query, m, **how)

    async def frame(self, m: Optional[str] = None, /, **how: Any) -> Frame:
        """Like AnalysisClient.frame."""
        return await _in_thread(self._client.frame, m, **how)

    async def peaks(self, metric: str, by: Union[str, Iterable[str], None] = None, **how: Any) -> Result:
        """Like AnalysisClient.peaks."""
        return await _in_thread(self._client.peaks, metric, by, **how)

    async def stats(self, expressions: Union[str, Iterable[str], None] = None, by: Union[str, Iterable[str], None] = None, **how: Any) -> Rows:
        """Like AnalysisClient.stats."""
        return await _in_thread(self._client.stats, expressions, by, **how)

    async def metrics(self, part_of_name: Optional[str] = None) -> list[dict[str, Any]]:
        """Like AnalysisClient.metrics."""
        return await _in_thread(self._client.metrics, part_of_name)

    async def nodes(self) -> list[dict[str, Any]]:
        """Like AnalysisClient.nodes."""
        return await _in_thread(self._client.nodes)

    async def series(self, match: Optional[str] = None, **how: Any) -> list[dict[str, Any]]:
        """Like AnalysisClient.series."""
        return await _in_thread(self._client.series, match, **how)

    async def spans(self, name: Optional[str] = None, **how: Any) -> list[dict[str, Any]]:
        """Like AnalysisClient.spans."""
        return await _in_thread(self._client.spans, name, **how)

    async def annotations(self, **how: Any) -> list[dict[str, Any]]:
        """Like AnalysisClient.annotations."""
        return await _in_thread(self._client.annotations, **how)

    async def watch(self, selection: str, condition: Condition = None) -> AsyncIterator[tuple[Series, int, float]]:
        """Yields series, time in nanoseconds and value of each new point that meets the condition
        of AnalysisClient.watch."""
        meets = condition_of(condition)
        points = await _in_thread(self._client._open().watch, m=f"none:{selection}")
        while True:
            found = await _in_thread(points.next, _SLICE_S)
            for series in Result(found) if found is not None else ():
                for time_ns, value in series:
                    if meets(value):
                        yield series, time_ns, value


def stats(expressions: Union[str, Iterable[str], None] = None, by: Union[str, Iterable[str], None] = None, *, where: Union[str, "os.PathLike[str]", None] = None, **how: Any) -> Rows:
    """AnalysisClient(where).stats(…)."""
    with AnalysisClient(where) as client:
        return client.stats(expressions, by, **how)


def peaks(metric: str, by: Union[str, Iterable[str], None] = None, *, where: Union[str, "os.PathLike[str]", None] = None, **how: Any) -> Result:
    """AnalysisClient(where).peaks(…)."""
    with AnalysisClient(where) as client:
        return client.peaks(metric, by, **how)
