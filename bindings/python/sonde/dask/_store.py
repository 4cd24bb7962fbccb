"""Queries of recorded data over HTTP, on the scheduler's host. These functions block, so the
scheduler calls them in a thread."""

import json
import logging
import pathlib
import time
import urllib.parse
from collections.abc import Sequence
from typing import Any, Optional

from .._client import Connection

TIMEOUT_S = 60.0
LATE_S = 20.0
# The maximum number of points in one result; each takes about 30 bytes in transfer, and 8 bytes of
# memory.
POINTS_EACH = 1_000_000

logger = logging.getLogger("sonde.dask")


class Store:
    """`cluster` is the tag of this cluster's spans, because several clusters may share a run; None
    selects the spans of all."""

    def __init__(self, connection: Connection, cluster: Optional[str]) -> None:
        self.connection, self.cluster = connection, cluster
        self.given_up: set[str] = set()  # hosts that queries no longer wait for

    def _ask(self, path: str, body: Optional[dict[str, Any]] = None) -> Any:
        """Returns the result from all nodes. If a node is late, the query is repeated for up to
        LATE_S. After that, the node is reported, and later queries do not wait for it."""
        deadline = time.monotonic() + LATE_S
        while True:
            answer = json.loads(self.connection.ask(path, None if body is None else json.dumps(body)))
            late = {one["host"] for one in answer.get("missing", []) if one["reason"] in ("late", "connection lost")} - self.given_up
            if not late:
                return answer
            if time.monotonic() > deadline:
                logger.warning("sonde on %s does not answer: what it recorded is left out", ", ".join(sorted(late)))
                self.given_up |= late

    def query(
        self, start_ms: int, end_ms: int, metrics: Sequence[tuple[str, dict[str, str]]], downsample: Optional[str] = None, per_span: Optional[str] = None
    ) -> list[dict[str, Any]]:
        """Returns the single series of each (metric, tags); as the value of a tag, * matches any
        value, and a|b either of two. A metric that was never recorded has none. `per_span`: one
        value for each span of this name."""
        known = {metric["name"] for metric in self._ask("/sonde/v1/metrics")["metrics"]}
        queries = []
        how: dict[str, Any] = {name: value for name, value in (("downsample", downsample), ("spans", per_span and {"name": per_span, "tags": {"cluster": self.cluster}})) if value}
        for metric, tags in metrics:
            filters = [
                {"type": "wildcard" if value == "*" else "literal_or", "tagk": key, "filter": value, "groupBy": True} for key, value in tags.items()
            ]
            if metric in known:
                queries.append({"metric": metric, "aggregator": "none", "filters": filters, **how})
        if not queries or end_ms < start_ms:
            return []
        answer = self._ask("/sonde/v1/query", {"start": start_ms, "end": end_ms, "queries": queries})
        series: list[dict[str, Any]] = answer["series"]
        return series

    def raw(self, start_ms: int, end_ms: int, step_ms: int, metrics: Sequence[tuple[str, dict[str, str]]], at_once: int) -> list[dict[str, Any]]:
        """Like query(), in several requests of limited size; `at_once` is the number of series in
        one request."""
        slice_ms = max(1, POINTS_EACH // max(1, at_once)) * step_ms
        whole: dict[tuple[str, str], dict[str, Any]] = {}
        for begin in range(start_ms, end_ms + 1, slice_ms):
            for one in self.query(begin, min(end_ms, begin + slice_ms - 1), metrics):
                name = (one["metric"], json.dumps(one["tags"], sort_keys=True))
                kept = whole.setdefault(name, {"metric": one["metric"], "tags": one["tags"], "t_ns": [], "values": []})
                kept["t_ns"] += one["t_ns"]
                kept["values"] += one["values"]
        return list(whole.values())

    def latest(self, match: str) -> list[dict[str, Any]]:
        """Returns tags, t_ns and value of the last point of each series that matches
        metric{tag=value}."""
        found: list[dict[str, Any]] = self._ask(f"/sonde/v1/series?{urllib.parse.urlencode({'match': match, 'limit': 0})}&latest")["series"]
        return found

    def spans(self, name: str, start_ns: int, end_ns: int) -> list[dict[str, Any]]:
        of_cluster = {} if self.cluster is None else {"tag": f"cluster={self.cluster}"}
        asked = urllib.parse.urlencode({"name": name, **of_cluster, "start": start_ns // 1_000_000, "end": end_ns // 1_000_000 + 1, "limit": 0})
        found: list[dict[str, Any]] = self._ask(f"/sonde/v1/spans?{asked}")["spans"]
        return found

    def all_spans(self, start_ns: int, end_ns: int) -> list[dict[str, Any]]:
        """Returns the spans of all names and clusters."""
        asked = urllib.parse.urlencode({"start": start_ns // 1_000_000, "end": end_ns // 1_000_000 + 1, "limit": 0})
        found: list[dict[str, Any]] = self._ask(f"/sonde/v1/spans?{asked}")["spans"]
        return found

    def annotations(self, start_ns: int, end_ns: int, kind: str) -> list[dict[str, Any]]:
        asked = urllib.parse.urlencode({"start": start_ns // 1_000_000, "end": end_ns // 1_000_000 + 1, "tag": f"kind={kind}", "limit": 0})
        found: list[dict[str, Any]] = self._ask(f"/sonde/v1/annotations?{asked}")["annotations"]
        return [one for one in found if one["tags"].get("cluster") == self.cluster]

    def errors(self, start_ns: int, end_ns: int) -> list[str]:
        """Returns the errors of custom metrics."""
        return [f"worker {one['tags'].get('worker')}: {one['text']}" for one in self.annotations(start_ns, end_ns, "dask_custom_error")]


def connected(environment: dict[str, str]) -> Connection:
    """Connects to the run that these variables name."""
    token = pathlib.Path(environment["SONDE_TOKEN_FILE"]).read_text().strip()
    return Connection(environment["SONDE_URL"], token, TIMEOUT_S)
