from typing import Any, Optional

class ClientError(RuntimeError):
    """A question that got no answer; `errno` says of which kind (errno.ECONNREFUSED, …)."""

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
        """nodes that did not answer in time"""

class Watch:
    """New points, as they come."""

    def next(self, timeout: float, /) -> Optional[Result]:
        """Waits so many seconds for new points; None: there were none."""

class Connection:
    """A running job or a recording."""

    def __new__(cls, where: Optional[str] = None, token: Optional[str] = None, timeout: float = 0.0) -> "Connection": ...
    def ask(self, path: str, body: Optional[str] = None) -> bytes:
        """The answer's bytes: of a GET, or with a body of a POST."""
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
        """struct sonde_query."""
    def peaks(
        self,
        metric: str,
        by: Optional[tuple[str, ...]] = None,
        start: Optional[str] = None,
        end: Optional[str] = None,
        filters: Optional[list[tuple[str, Optional[str], str, bool]]] = None,
    ) -> Result:
        """The highest point of each group."""
    def watch(self, m: Optional[str] = None, metric: Optional[str] = None, *, filters: Optional[list[tuple[str, Optional[str], str, bool]]] = None) -> Watch:
        """New points of what query() would select."""
    def close(self) -> None:
        """Questions that are under way are still answered."""
    @property
    def name(self) -> str:
        """the address, or the path"""
