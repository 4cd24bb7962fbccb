from typing import Any, Optional

class ClientError(RuntimeError):
    """A failed request; `errno` is the kind of failure (errno.ECONNREFUSED, …)."""

    errno: int

class Result:
    """The answer to a query."""

    def __len__(self) -> int: ...
    def describe(self, index: int, /) -> tuple[str, str, str, dict[str, str], list[str], int, bool, int]:
        """metric, unit, kind, tags, aggregate_tags, source_series, estimated, count of a series."""
    def times(self, index: int, /) -> bytes:
        """int64 nanoseconds."""
    def values(self, index: int, /) -> bytes:
        """float64."""
    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> Any:
        """The result as one table."""
    @property
    def missing(self) -> str:
        """The nodes that did not answer in time."""

class Watch:
    """New points of a running job."""

    def next(self, timeout: float, /) -> Optional[Result]:
        """Waits `timeout` seconds for new points; None if there were none."""

class Connection:
    """A running job or a recording."""

    def __new__(cls, where: Optional[str] = None, token: Optional[str] = None, timeout: float = 0.0) -> "Connection": ...
    def ask(self, path: str, body: Optional[str] = None) -> bytes:
        """The bytes of the response to a GET, or with a body to a POST."""
    def query(
        self,
        m: Optional[str] = None,
        metric: Optional[str] = None,
        aggregator: Optional[str] = None,
        downsample: Optional[str] = None,
        rate: bool = False,
        counter: bool = False,
        drop_resets: bool = False,
        start: Optional[str] = None,
        end: Optional[str] = None,
        filters: Optional[list[tuple[str, Optional[str], str, bool]]] = None,
        span: Optional[str] = None,
        span_tags: Optional[list[tuple[str, str]]] = None,
        span_node: bool = False,
    ) -> Result:
        """See struct sonde_query in sonde_client.h."""
    def peaks(
        self,
        metric: str,
        by: Optional[tuple[str, ...]] = None,
        start: Optional[str] = None,
        end: Optional[str] = None,
        filters: Optional[list[tuple[str, Optional[str], str, bool]]] = None,
    ) -> Result:
        """The highest point of each group."""
    def stats(
        self,
        expression: str,
        by: Optional[tuple[str, ...]] = None,
        span: Optional[str] = None,
        start: Optional[str] = None,
        end: Optional[str] = None,
    ) -> tuple[list[dict[str, Any]], str]:
        """Statistics as a list of dictionaries, and the nodes that did not answer in time."""
    def watch(self, m: Optional[str] = None, metric: Optional[str] = None, *, filters: Optional[list[tuple[str, Optional[str], str, bool]]] = None) -> Watch:
        """Watches the series that query() would select."""
    def close(self) -> None:
        """Closes the connection. Pending requests are still answered."""
    @property
    def name(self) -> str:
        """The address of the job, or the path of the recording."""
