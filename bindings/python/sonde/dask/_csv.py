"""CSV files, one for each worker: writing, reading, peaks.

A file is ``{folder}/{name}_{N}.csv`` (or ``.csv.gz``): a header, then a row for each sample::

    job,dag,timestamp,total-mem,mem-util,compute-util
    12,23,1173.392865,"32480428032, 30068703232","11, 10","86, 87"

A cell of a metric holds one value for each of the worker's GPUs, joined by ``, ``. A missing value
is an empty text between the separators, never 0; an empty cell has no values, or a missing one.
Numbers keep their type: 9 is an int, 9.0 a float. The cells of ``tasks`` hold keys (`_keys`).
"""

import contextlib
import csv
import gzip
import io
import itertools
import math
import numbers
import os
import re
import warnings
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Callable, Optional, TextIO, Union, cast

from . import _keys
from ._settings import KINDS

ALWAYS = ("job", "dag", "timestamp")
TASKS = "tasks"
# A text in one of these columns shows that the file is damaged; a custom metric may be a text.
NUMBERS = frozenset(KINDS) - {TASKS}
# A cell of tasks can be long: thousands of long-running tasks at some hundred bytes. The csv
# module's own limit is 128 KiB.
CELL_MAX_BYTES = 64 << 20

Number = Union[int, float]
Path = Union[str, "os.PathLike[str]"]


@dataclass
class Recording:
    """The recorded rows of one worker; values are in the order of the columns. A metric's value is
    a list of numbers (None is missing) or keys; that of a custom metric may be a text."""

    columns: list[str]
    rows: list[Sequence[Any]]
    path: str = ""

    def place(self, metric: str) -> int:
        """Returns the index of the metric in a row. Raises KeyError if it was not tracked."""
        tracked = [name for name in self.columns if name not in ALWAYS]
        if metric not in tracked:
            raise KeyError(f"{metric!r} was not tracked{' in ' + self.path if self.path else ''}; there is {', '.join(tracked) or 'nothing'}")
        return self.columns.index(metric)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (str, int, float)) and type(value).__module__ == "builtins":
        return str(int(value) if isinstance(value, bool) else value)
    if isinstance(value, numbers.Integral):
        return str(int(value))
    item = getattr(value, "item", None)  # NumPy's, CuPy's and PyTorch's scalars
    return str(item() if callable(item) else value)


def _cell(column: str, value: Any) -> str:
    if column == TASKS:
        return _keys.write(value or ())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_text, value))
    return _text(value)


def write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Writes the file, compressed if its name ends in ``.gz``; see replaced()."""
    with replaced(path) as unfinished, _opened(unfinished, "w", os.fspath(path).endswith(".gz")) as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(columns)
        out.writerows([_cell(column, value) for column, value in zip(columns, row)] for row in rows)


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[str]:
    """Yields a temporary path. At the end of the block, its file replaces `path` as a whole, or not
    at all after an error. Makes the folder."""
    target = os.fspath(path)
    os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
    unfinished = f"{target}.{os.getpid()}.unfinished"
    try:
        yield unfinished
        os.replace(unfinished, target)
    except BaseException:
        if os.path.exists(unfinished):
            os.unlink(unfinished)
        raise


def _opened(path: str, mode: str, packed: bool) -> TextIO:
    encoding = "utf-8" if mode == "w" else "utf-8-sig"
    if packed:
        unpacked = cast(BinaryIO, gzip.GzipFile(path, mode, compresslevel=6))
        return io.TextIOWrapper(unpacked, encoding=encoding, newline="")
    return cast(TextIO, open(path, mode, encoding=encoding, newline=""))


def _number(text: str) -> Optional[Number]:
    try:
        return int(text)
    except ValueError:
        text = text.strip()
        return float(text) if text else None


def _numbers(cell: str) -> list[Optional[Number]]:
    return [_number(text) for text in cell.split(",")] if cell else []


def _numbers_or_text(cell: str) -> Any:
    try:
        return _numbers(cell)
    except ValueError:
        return cell


def _whole(cell: str) -> Optional[int]:
    return int(cell) if cell else None


_PARSERS: dict[str, Callable[[str], Any]] = {"job": _whole, "dag": _whole, "timestamp": float, TASKS: _keys.read}


def _parser(column: str) -> Callable[[str], Any]:
    return _PARSERS.get(column) or (_numbers if column in NUMBERS else _numbers_or_text)


def _header(columns: list[str]) -> list[str]:
    missing = [name for name in ALWAYS if name not in columns]
    if missing:
        raise ValueError(f"no recording of a worker: it has no column {', '.join(missing)}")
    if len(set(columns)) < len(columns):
        raise ValueError("two columns have the same name")
    return columns


def _row(columns: list[str], parsers: list[Callable[[str], Any]], cells: list[str]) -> list[Any]:
    if len(cells) != len(columns):
        raise ValueError(f"{len(cells)} cells where the header has {len(columns)}")
    row = []
    for column, parse, cell in zip(columns, parsers, cells):
        try:
            row.append(parse(cell))
        except ValueError:
            raise ValueError(f"{column} is {cell[:60]!r}") from None
    return row


@contextlib.contextmanager
def _table(path: str) -> Iterator[Any]:
    """Yields a csv.reader of the file, compressed or not. Errors in the block become a ValueError
    with the line."""
    csv.field_size_limit(max(csv.field_size_limit(), CELL_MAX_BYTES))
    with open(path, "rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
    with _opened(path, "r", packed) as file:
        reader = csv.reader(file, strict=True)
        try:
            yield reader
        except (ValueError, csv.Error, EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path}:{max(reader.line_num, 1)}: {error}") from None


def _lines(path: str) -> Iterator[list[Any]]:
    """Yields the header, then the parsed rows."""
    with _table(path) as reader:
        columns: list[str] = []
        parsers: list[Callable[[str], Any]] = []
        for cells in reader:
            if columns:
                yield _row(columns, parsers, cells)
            else:
                columns = _header(cells)
                parsers = [_parser(column) for column in columns]
                yield columns
        if not columns:
            raise ValueError("the file is empty")


def read(path: Path) -> Recording:
    """Reads the file, compressed or not. A ValueError names file and line of damaged data."""
    lines = _lines(os.fspath(path))
    columns: list[str] = next(lines)
    return Recording(columns, list(lines), os.fspath(path))


_NAME = re.compile(r"(?P<name>.+)_(?P<number>[0-9]+)\.csv(\.gz)?")


def numbered(folder: Path, fname: Optional[str] = None) -> dict[int, str]:
    """Returns the folder's files in the order of their workers' numbers: 0, 1, 2, 10. `fname` is
    required if there are files of several names."""
    found: dict[int, str] = {}
    names = set()
    for file in os.listdir(folder):
        match = _NAME.fullmatch(file)
        if not match or fname not in (None, match["name"]):
            continue
        names.add(match["name"])
        number = int(match["number"])
        if len(names) == 1 and number in found:
            raise ValueError(f"{os.fspath(folder)}: {os.path.basename(found[number])} and {file} are both there for worker {number}")
        found[number] = os.path.join(folder, file)
    if len(names) > 1:
        raise ValueError(f"{os.fspath(folder)} holds recordings of several names, say which with fname: {', '.join(sorted(names))}")
    return dict(sorted(found.items()))


def clear(folder: Path, fname: str) -> None:
    """Removes the folder's recordings of this name, and nothing else."""
    for file in os.listdir(folder) if os.path.isdir(folder) else []:
        match = _NAME.fullmatch(file)
        if match and match["name"] == fname:
            os.unlink(os.path.join(folder, file))


def files(folder: Path, fname: Optional[str] = None) -> list[str]:
    """Returns the paths of the folder's recordings, in the order of the workers' numbers."""
    return list(numbered(folder, fname).values())


def _higher(a: Optional[Number], b: Optional[Number]) -> Optional[Number]:
    if b is None or math.isnan(b):
        return a
    return b if a is None or b > a else a


def raise_to(peak: list[Optional[Number]], values: Sequence[Optional[Number]]) -> None:
    peak.extend([None] * (len(values) - len(peak)))
    for device, value in enumerate(values):
        peak[device] = _higher(peak[device], value)


def with_values(found: dict[Any, list[Optional[Number]]], devices: int) -> dict[Any, list[Optional[Number]]]:
    """Returns the peaks of jobs that have one, each with a place for every device."""
    return {job: [*peak, *[None] * (devices - len(peak))] for job, peak in found.items() if any(value is not None for value in peak)}


def peaks(recording: Recording, metric: str, per_dag: bool = False) -> dict[Any, list[Optional[Number]]]:
    """Returns the highest value of each device in each job, or in each (job, dag), in the order of
    their first rows. None for a device without a value. A job without any value is left out.

    Raises KeyError for a metric that was not tracked, ValueError for a metric without numbers.
    """
    place = recording.place(metric)
    job_place, dag_place = recording.columns.index("job"), recording.columns.index("dag")
    found: dict[Any, list[Optional[Number]]] = {}
    devices = 0
    for row in recording.rows:
        values = row[place]
        if isinstance(values, (int, float)) or values is None:
            values = [values]  # a custom metric of all devices at once, not yet written
        if metric == TASKS or isinstance(values, str):
            raise ValueError(f"{metric} has no peak{' in ' + recording.path if recording.path else ''}: its values are not numbers")
        devices = max(devices, len(values))
        if row[job_place] is not None:
            raise_to(found.setdefault((row[job_place], row[dag_place]) if per_dag else row[job_place], []), values)
    return with_values(found, devices)


def peaks_of_file(path: Path, metric: str, per_dag: bool = False) -> dict[Any, list[Optional[Number]]]:
    """Returns the peaks() of a file, without parsing its other columns. Equal cells are parsed
    once, because most values of GPUs repeat."""
    try:
        return _peaks_of_cells(os.fspath(path), metric, per_dag)
    except ValueError:
        return peaks(read(path), metric, per_dag)  # the slow reader reports the line and the reason


def _peaks_of_cells(path: str, metric: str, per_dag: bool) -> dict[Any, list[Optional[Number]]]:
    if metric == TASKS:
        raise ValueError
    # in the order of the rows: of 9 and 9.0 the first is the peak
    cells: dict[tuple[str, str], dict[str, None]] = {}
    dags: set[str] = set()
    with _table(path) as rows:
        columns = _header(next(rows, []))
        place = Recording(columns, [], path).place(metric)
        job_place, dag_place, width = columns.index("job"), columns.index("dag"), len(columns)
        for row in rows:
            if len(row) != width:
                raise ValueError
            dags.add(row[dag_place])
            at = row[job_place], row[dag_place] if per_dag else ""
            if at in cells:
                cells[at][row[place]] = None
            else:
                cells[at] = {row[place]: None}
    for dag in dags:
        _whole(dag)
    found: dict[Any, list[Optional[Number]]] = {}
    devices = 0
    for (job, dag), texts in cells.items():
        highest = _highest(texts)
        devices = max(devices, len(highest))
        number = _whole(job)
        if number is not None:
            raise_to(found.setdefault((number, _whole(dag)) if per_dag else number, []), highest)
    return with_values(found, devices)


def _highest(cells: Iterable[str]) -> list[Optional[Number]]:
    """Returns the numbers of a cell, one for each device. Raises ValueError for other texts."""
    found: list[Optional[Number]] = []
    for column in itertools.zip_longest(*(cell.split(",") for cell in cells if cell), fillvalue=""):
        texts = dict.fromkeys(column)
        try:
            found.append(max(map(int, texts)))
        except ValueError:  # missing values, or numbers with a decimal point
            highest: Optional[Number] = None
            for text in texts:
                highest = _higher(highest, _number(text))
            found.append(highest)
    return found


def over_jobs(peaks_by_job: dict[Any, list[Optional[Number]]]) -> list[Optional[Number]]:
    """Returns the highest value of each device over all jobs."""
    peak: list[Optional[Number]] = []
    for values in peaks_by_job.values():
        raise_to(peak, values)
    return peak


def known_peaks(found: list[Any], metric: str, where: str) -> list[Any]:
    """Returns the peaks. Warns if no worker has any, for instance without a GPU."""
    if found and not any(found):
        warnings.warn(f"{metric} has no value {where}: a metric of GPUs needs some, see `sonde doctor`", RuntimeWarning, stacklevel=3)
    return found


def chosen(workers: Union[int, Iterable[int], None], there: Sequence[int], where: str) -> list[int]:
    """Returns the numbers of the requested workers (None: all), in the order of the request. A
    ValueError names unknown workers."""
    if workers is None:
        return list(there)
    asked = [workers] if isinstance(workers, int) else list(workers)
    absent = [str(number) for number in asked if number not in there]
    if absent:
        raise ValueError(f"no worker {', '.join(absent)} in {where}: there is {', '.join(map(str, there)) or 'none'}")
    return asked


def peaks_from_csv(
    csv_dir: Path, metric: str, workers: Union[int, Iterable[int], None] = None, per_job: bool = True, fname: Optional[str] = None, per_dag: bool = False
) -> list[Any]:
    """Returns the highest values of a metric from the files that Monitor.to_csv wrote.

    The result is a list with an entry for each worker, in the order of the request: ``{job: [value
    of each device]}``; with `per_dag` ``{(job, dag): [value of each device]}``; without `per_job`
    ``[value of each device]``.
    """
    there = numbered(csv_dir, fname)
    if not there:
        raise FileNotFoundError(f"no {fname or 'NAME'}_N.csv in {os.fspath(csv_dir)}")
    by_worker = [peaks_of_file(there[number], metric, per_dag) for number in chosen(workers, list(there), os.fspath(csv_dir))]
    found: list[Any] = list(by_worker) if per_job or per_dag else [over_jobs(by_job) for by_job in by_worker]
    return known_peaks(found, metric, f"in {os.fspath(csv_dir)}")
