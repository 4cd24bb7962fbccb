"""Results of queries."""

import importlib
from collections.abc import Iterator, Sequence
from typing import Any, Optional, Union, overload

from . import _client, _notebook


class Series:
    """The points of one metric and its tags. `times` and `values` are memoryviews of int64
    nanoseconds and of float64: ``numpy.asarray(series.values)`` does not copy."""

    __slots__ = ("_index", "_result", "aggregate_tags", "count", "estimated", "kind", "metric", "source_series", "tags", "unit")

    def __init__(self, result: _client.Result, index: int) -> None:
        self._result, self._index = result, index
        (self.metric, self.unit, self.kind, self.tags, self.aggregate_tags, self.source_series, self.estimated, self.count) = result.describe(index)

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[tuple[int, float]]:
        return zip(self.times, self.values)

    def __repr__(self) -> str:
        tags = ", ".join(f"{k}={v}" for k, v in self.tags.items())
        return f"<sonde series {self.metric}{{{tags}}}, {self.count} points>"

    @property
    def times(self) -> memoryview:
        """Nanoseconds since the epoch, ascending."""
        return memoryview(self._result.times(self._index)).cast("q")

    @property
    def values(self) -> memoryview:
        """Values in the order of `times`; NaN is a gap that the fill policy has filled."""
        return memoryview(self._result.values(self._index)).cast("d")


class Frame:
    """The whole result as one table: time, value, metric, and a column for each tag. It implements
    Arrow's C stream interface.

    ``pyarrow.table(frame)``, ``polars.DataFrame(frame)`` and ``duckdb.sql("select * from frame")``
    read it without copying the points.
    """

    def __init__(self, result: _client.Result) -> None:
        self._result = result

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> Any:
        return self._result.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> Any:
        """Returns a pyarrow.Table."""
        return importlib.import_module("pyarrow").RecordBatchReader.from_stream(self).read_all()

    def to_pandas(self) -> Any:
        """Returns a pandas.DataFrame. Without pyarrow it is built from NumPy arrays, with the same
        columns.
        """
        try:
            pandas = importlib.import_module("pandas")
        except ImportError as error:
            raise ImportError("to_pandas() needs pandas: pip install pandas (with pyarrow it copies less)") from error
        try:
            importlib.import_module("pyarrow")
        except ImportError:
            return self._columns(pandas)
        return self.to_arrow().to_pandas()

    def _columns(self, pandas: Any) -> Any:
        """Returns the columns of the Arrow table: time, value, metric, and each tag under its key,
        or under `tag.KEY` if another column has that name."""
        numpy = importlib.import_module("numpy")
        series = [Series(self._result, i) for i in range(len(self._result))]
        counts = numpy.array([one.count for one in series], dtype="i8")

        def joined(pieces: list[Any], kind: str) -> Any:
            return numpy.concatenate(pieces) if pieces else numpy.array([], dtype=kind)

        def repeated(words: list[Optional[str]]) -> Any:
            return pandas.Categorical(numpy.repeat(numpy.array(words, dtype=object), counts))

        times = joined([numpy.frombuffer(one.times, dtype="i8") for one in series], "i8")
        columns = {
            "time": pandas.to_datetime(times, unit="ns", utc=True),
            "value": joined([numpy.frombuffer(one.values, dtype="f8") for one in series], "f8"),
            "metric": repeated([one.metric for one in series]),
        }
        for key in sorted({key for one in series for key in one.tags}):
            columns[f"tag.{key}" if key in ("time", "value", "metric") else key] = repeated([one.tags.get(key) for one in series])
        return pandas.DataFrame(columns)

    def to_polars(self) -> Any:
        """Returns a polars.DataFrame."""
        return importlib.import_module("polars").DataFrame(self)


class Rows(list[dict[str, Any]]):
    """A list of dictionaries: ``pandas.DataFrame(rows)`` is a table of them. `missing` names the
    nodes that did not answer in time; it is empty if all nodes answered."""

    missing = ""


class Result(Sequence[Series]):
    """The series of a result. `missing` names the nodes that did not answer in time; it is empty if
    all nodes answered."""

    def __init__(self, result: _client.Result) -> None:
        self._result = result
        self.missing = result.missing

    def __len__(self) -> int:
        return len(self._result)

    @overload
    def __getitem__(self, index: int) -> Series: ...
    @overload
    def __getitem__(self, index: slice) -> list[Series]: ...
    def __getitem__(self, index: Union[int, slice]) -> Union[Series, list[Series]]:
        if isinstance(index, slice):
            return [Series(self._result, i) for i in range(*index.indices(len(self)))]
        return Series(self._result, index + len(self) if index < 0 else index)

    def __repr__(self) -> str:
        return f"<sonde result of {len(self)} series{', missing: ' + self.missing if self.missing else ''}>"

    def _repr_html_(self) -> str:
        return _notebook.result_html(self)

    def frame(self) -> Frame:
        """Returns the whole result as one table."""
        return Frame(self._result)
