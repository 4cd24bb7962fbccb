"""Measures exports of a recording with SONDE_BENCH_POINTS points (default: 100 million) to CSV,
Parquet and SQLite, compared with other programs that write such files: pandas, DuckDB and `sqlite3
.import`.

Peers get the first SONDE_BENCH_PEER_POINTS (default: 10 million) of the same points, because pandas
holds them in memory; the rates are compared. pandas and DuckDB do not have to read a recording:
their table is in memory, or in a Parquet file in the page cache. The time for the start of Python
and of the peers does not count, but that of sonde does.

`sonde import` then reads each file; its rate is in values per second.

`memory` is the greatest anonymous memory of the process. The mapped pages of the recording do not
count, because they belong to the page cache.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from peers import report, say  # noqa: E402

SONDE = os.path.join(os.environ["SONDE_BUILD"], "sonde")
POINTS = int(os.environ.get("SONDE_BENCH_POINTS", 100_000_000))
PEER_POINTS = min(POINTS, int(os.environ.get("SONDE_BENCH_PEER_POINTS", 10_000_000)))
SERIES, MEMORY_MAX = 100, 100 << 20
FORMATS = ("csv", "parquet", "sqlite")

DUCKDB = """
import duckdb, sys, time
form, table, out = sys.argv[1:]
start = time.monotonic()
options = {"csv": "FORMAT csv, HEADER", "parquet": "FORMAT parquet, COMPRESSION zstd"}[form]
duckdb.sql("SET preserve_insertion_order = false; SET memory_limit = '4GB'")
duckdb.sql(f"COPY (SELECT * FROM '{table}') TO '{out}' ({options})")
print(time.monotonic() - start)
"""
PANDAS = """
import pandas, sys, time
form, table, out = sys.argv[1:]
frame = pandas.read_parquet(table)
start = time.monotonic()
frame.to_csv(out, index=False) if form == "csv" else frame.to_parquet(out, compression="zstd")
print(time.monotonic() - start)
"""


def make_recording(folder, points, name):
    """Makes a recording whose series are random walks, as metrics are, sampled each 100 ms."""
    import numpy

    rng = numpy.random.default_rng(7)
    rows = points // SERIES
    table = folder / f"{name}.csv"
    with table.open("w") as out:
        out.write("t," + ",".join(f"m{i}" for i in range(SERIES)) + "\n")
        last = rng.normal(100, 10, SERIES)
        for first in range(0, rows, 10_000):
            steps = min(10_000, rows - first)
            values = numpy.round(last + numpy.cumsum(rng.normal(0, 1, (steps, SERIES)), axis=0), 3)
            last = values[-1]
            times = 1_790_000_000_000_000_000 + (first + numpy.arange(steps)) * 100_000_000
            out.writelines(f"{t},{','.join(map(repr, row))}\n" for t, row in zip(times.tolist(), values.tolist()))
    imported("wide-csv", table, folder / name, rows * SERIES)
    table.unlink()
    return folder / name


def imported(form, file, out, values):
    seconds, memory, _ = watched([SONDE, "import", "--format", form, "--host", "n1", "-o", out, file])
    report("export", f"import of {form}, values a second", round(values / seconds), "1/s", seconds=round(seconds, 2), values=values, file_bytes=file.stat().st_size, memory_bytes=memory)


def watched(command):
    """Runs a command; returns the seconds, the greatest anonymous memory in bytes, and the
    output."""
    peak, start = 0, time.monotonic()
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)
    done = threading.Event()

    def look():
        nonlocal peak
        while not done.wait(0.01):
            try:
                text = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            except OSError:
                return
            found = [int(line.split()[1]) for line in text.splitlines() if line.startswith("RssAnon")]
            peak = max(peak, *found, 0)

    thread = threading.Thread(target=look)
    thread.start()
    out = process.communicate()[0]
    seconds = time.monotonic() - start
    done.set()
    thread.join()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return seconds, peak * 1024, out


def peers_of(form, folder, small):
    """Yields (name, command, True if the command itself prints its seconds) of each peer."""
    out = folder / f"peer.{form}"
    if form == "sqlite":
        if shutil.which("sqlite3"):
            yield "sqlite3 .import", ["sqlite3", out, "PRAGMA journal_mode=OFF", "PRAGMA synchronous=OFF", ".mode csv", f".import {small}.csv points"], False
        return
    for name, program in (("DuckDB", DUCKDB), ("pandas", PANDAS)):
        module = name.lower()
        if subprocess.run([sys.executable, "-c", f"import {module}, pyarrow"], stderr=subprocess.DEVNULL).returncode == 0:
            yield name, [sys.executable, "-c", program, form, f"{small}.parquet", out], True
        else:
            say(f"{name} is not installed")


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sonde-bench-export-"))
    try:
        recording = make_recording(folder, POINTS, "large")
        part = recording if PEER_POINTS == POINTS else make_recording(folder, PEER_POINTS, "small")
        for form in ("csv", "parquet"):
            subprocess.run([SONDE, "export", "-q", "-o", folder / f"part.{form}", part], check=True)
        for form in FORMATS:
            out = folder / f"own.{form}"
            seconds, memory, _ = watched([SONDE, "export", "-q", "-o", out, recording])
            rate = POINTS / seconds
            report("export", f"{form} points a second", round(rate), "1/s", seconds=round(seconds, 2), points=POINTS, file_bytes=out.stat().st_size, memory_bytes=memory)
            report("export", f"{form} memory", memory, "bytes", "the limit", MEMORY_MAX)
            imported(form, out, folder / "back", POINTS)
            shutil.rmtree(folder / "back")
            out.unlink()
            for name, command, says in peers_of(form, folder, folder / "part"):
                seconds, memory, said = watched(command)
                seconds = float(said) if says else seconds
                report("export", f"{form} points a second", round(rate), "1/s", name, round(PEER_POINTS / seconds), peer_memory_bytes=memory)
                for file in folder.glob("peer.*"):
                    file.unlink()
    finally:
        shutil.rmtree(folder)


try:
    import numpy  # noqa: F401
except ImportError:
    say("numpy is not installed: no data for the bench of exports")
else:
    main()
