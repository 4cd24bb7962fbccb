"""Asking a running job, or a recording, from a program."""

import errno
import json
import os
import time
from collections.abc import Iterable, Mapping
from typing import Any, Optional, Union
from urllib.parse import urlencode

from ._client import ClientError, Connection

_WINDOW_S = 300  # what get_data() answers unless it is told otherwise
_AGAIN_S = 0.1  # between two tries of connect()


def _names(given: Union[str, Iterable[str], None]) -> str:
    return given if isinstance(given, str) else ",".join(given or ())


def _dps(times_ns: list[int], values: list[Optional[float]]) -> dict[str, float]:
    """By whole seconds; of several points in one second the last one."""
    return {str(t // 1_000_000_000): v for t, v in zip(times_ns, values) if v is not None}


class AnalysisClient:
    """A running job, or a recording, to ask questions of.

        with sonde.AnalysisClient() as client:
            print(client.get_metrics())

    `where` is the address of a job, its id, or the path of a recording; without it the job around this program, else the newest one that runs here.
    """

    def __init__(self, where: Union[str, "os.PathLike[str]", None] = None, *, token: Optional[str] = None, timeout: Optional[float] = None) -> None:
        self._where = None if where is None else os.fspath(where)
        self._token = token
        self._timeout = timeout or 0.0
        self._connection: Optional[Connection] = None

    def __enter__(self) -> "AnalysisClient":
        self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<sonde.AnalysisClient {self._connection.name if self._connection else 'not connected'}>"

    def close(self) -> None:
        """Ends the connection; connect() makes a new one."""
        if self._connection:
            self._connection.close()
        self._connection = None

    def _ask(self, path: str, body: Any = None, **parameters: Any) -> Any:
        if self._connection is None:
            raise RuntimeError("not connected: call connect() first")
        target = f"/sonde/v1/{path}" + (f"?{urlencode(parameters)}" if parameters else "")
        text = None if body is None else json.dumps(body).encode()
        return json.loads(self._connection.ask(target, text, timeout=self._timeout))

    # What Dragon's client has, with its names.

    def connect(self, timeout: Optional[float] = None) -> None:
        """Finds the job and asks whether it is there. For `timeout` seconds it is tried again; RuntimeError when it cannot be reached."""
        end = time.monotonic() + (timeout or 0)
        while True:
            try:
                connection = Connection(self._where, self._token)
                connection.ask("/sonde/v1/nodes", timeout=max(end - time.monotonic(), 0.1) if timeout else self._timeout)
                break
            except ClientError as error:
                if error.errno not in (errno.ENOENT, errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ECONNRESET, errno.EBUSY):
                    raise
                if time.monotonic() + _AGAIN_S >= end:
                    raise
            time.sleep(_AGAIN_S)
        self.close()
        self._connection = connection

    def get_metrics(self) -> set[str]:
        """The names of all metrics."""
        return {metric["name"] for metric in self._ask("metrics")["metrics"]}

    def get_data(self, metrics: Union[str, list[str]], tags: Optional[Mapping[str, str]] = None, start_time: Optional[float] = None) -> list[dict[str, Any]]:
        """The points of these metrics since `start_time` (seconds since the epoch; else the last five minutes), a dictionary for each series, sorted by host.

        ``{"metric": …, "tags": {"host": …}, "aggregateTags": [], "dps": {"1356998400": 0.5}}``. A metric that nobody knows has no series.
        """
        if isinstance(metrics, str):
            metrics = [metrics]
        if not isinstance(metrics, list):
            raise AttributeError(f"metrics must be a str or a list of them, not {type(metrics).__name__}")
        start = time.time() - _WINDOW_S if start_time is None else start_time
        known = self.get_metrics() if metrics else set()
        found = []
        for metric in metrics:
            query = {"metric": metric, "aggregator": "none", "tags": {k: str(v) for k, v in (tags or {}).items()}}
            try:
                answer = self._ask("query", {"start": f"{max(start, 0) * 1000:.0f}ms", "queries": [query]})
            except ClientError as error:
                if error.errno == errno.EINVAL and metric not in known:
                    continue
                raise
            for series in answer["series"]:
                found.append({"metric": metric, "tags": series["tags"], "aggregateTags": [], "dps": _dps(series["t_ns"], series["values"])})
        return sorted(found, key=lambda series: str(series["tags"].get("host", "")))

    def db_dump(self) -> dict[str, dict[str, str]]:
        """Copies what every node has recorded so far to where the run dumps to: for each node ``{"status": "success" or "failed", "message": …}``."""
        answer = self._ask("dump", {})
        nodes: dict[str, dict[str, str]] = {}
        for file in answer["files"]:
            good = file["state"] != "failed"
            message = file.get("message") or (f"{file['state']}: {file['path']}" if good else "failed")
            if nodes.get(file["host"], {}).get("status") != "failed":
                nodes[file["host"]] = {"status": "success" if good else "failed", "message": message}
        for node in answer.get("missing", []):
            nodes[node["host"]] = {"status": "failed", "message": node.get("text") or node["reason"]}
        return nodes

    def reboot(self, *, exclude_huids: Union[str, Iterable[str], None] = None, exclude_hostnames: Union[str, Iterable[str], None] = None) -> None:
        """Asks for a new start of the job's command, without these hosts; for jobs that were started with --resilient."""
        if self._connection is None:
            raise RuntimeError("not connected: call connect() first")
        form = urlencode({"hostnames": _names(exclude_hostnames), "h_uids": _names(exclude_huids)})
        self._connection.ask("/api/reboot", form.encode(), "application/x-www-form-urlencoded", self._timeout)
