"""Recordings as Arrow tables and Parquet files. Needs pyarrow.

The columns are those of the CSV files, with types in place of texts. The first column ``worker``
identifies the worker of a row, so that tables can be concatenated:

    worker, job, dag    int64
    timestamp           double
    tasks               list of string: keys, each as it stands in a CSV file (`_keys`)
    of GPUs, custom     list of a value for each device: int64 for bytes, else double
    of the worker       int64 for bytes, else double
    identity            string; pid int64, time double

Missing values are null.
"""

import importlib
import os
from collections.abc import Iterable, Sequence
from typing import Any, Callable

from . import _csv, _keys
from ._rows import IDENTITY, Rows
from ._settings import KINDS

WORKER = "worker"
_BYTES = frozenset(("total-mem", "rss", "managed", "spilled", "unmanaged", "transfer-in", "transfer-out"))
_OF_ROWS: dict[str, str] = {
    **dict.fromkeys(("job", "dag", "pid"), "int64"),
    **dict.fromkeys(("timestamp", "time"), "float64"),
    **dict.fromkeys(("worker-address", "worker-name", "host", "gpu-uuid", "gpu-index"), "string"),
}


def _pyarrow(module: str = "pyarrow") -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"Arrow tables and Parquet files need pyarrow (pip install pyarrow): {error}") from None


def _alone(cell: Any) -> Any:
    """Returns the value of a cell that is not missing."""
    return (cell[0] if cell else None) if isinstance(cell, (list, tuple)) else cell


def _several(cell: Any) -> Any:
    return list(cell) if isinstance(cell, (list, tuple)) else [cell]


def _texts(keys: Any) -> list[str]:
    return [_keys.write([key]) for key in keys or ()]


def _column(pyarrow: Any, column: str, cells: Sequence[Any]) -> Any:
    number = pyarrow.int64() if column in _BYTES else pyarrow.float64()
    kind = KINDS[column][0] if column in KINDS else "custom"
    type_: Any
    prepare: Callable[[Any], Any]
    if column in _OF_ROWS:
        type_, prepare = getattr(pyarrow, _OF_ROWS[column])(), _alone
    elif kind == "tasks":
        type_, prepare = pyarrow.list_(pyarrow.string()), _texts
    elif kind == "worker":
        type_, prepare = number, _alone
    else:
        type_, prepare = pyarrow.list_(number), _several
    return pyarrow.array([prepare(cell) for cell in cells], type_)


def to_arrow(worker: int, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Any:
    """Returns the rows of one worker as a pyarrow.Table."""
    pyarrow = _pyarrow()
    by_column = list(zip(*rows)) or [()] * len(columns)
    arrays = [_column(pyarrow, column, cells) for column, cells in zip(columns, by_column)]
    whose = pyarrow.array([worker] * len(by_column[0]), pyarrow.int64())
    return pyarrow.table([whose, *arrays], names=[WORKER, *columns])


def whole(rows: Rows, identity: bool = False) -> Any:
    """Returns the rows of all workers as one pyarrow.Table."""
    columns = [*rows.columns, *(IDENTITY if identity else ())]
    tables = [to_arrow(worker, columns, rows.of(worker, identity)) for worker in rows.workers]
    return _pyarrow().concat_tables(tables) if tables else to_arrow(0, columns, ())


def write_parquet(rows: Rows, folder: _csv.Path, fname: str = "worker", identity: bool = False) -> list[str]:
    """Writes a file {folder}/{fname}_{N}.parquet for each worker; returns their paths."""
    columns = [*rows.columns, *(IDENTITY if identity else ())]
    parquet = _pyarrow("pyarrow.parquet")
    written = []
    for worker in rows.workers:
        path = os.path.join(os.fspath(folder), f"{fname}_{worker}.parquet")
        with _csv.replaced(path) as unfinished:
            parquet.write_table(to_arrow(worker, columns, rows.of(worker, identity)), unfinished)
        written.append(path)
    return written
