"""Measures exports of a recording with SONDE_BENCH_POINTS points (default: 100 million) to CSV,
Parquet and SQLite, compared with other programs that write such files: pandas, DuckDB and `sqlite3
.import`.

Peers get the first SONDE_BENCH_PEER_POINTS (default: 10 million) of the same points, and pandas,
which holds them in memory and takes minutes for them, at most SONDE_BENCH_PANDAS_POINTS (10
million); the rates are compared. With SONDE_BENCH_PEER_POINTS=100000000, DuckDB and sqlite3 write
all points; this takes 30 GB of disk space. pandas and DuckDB do not have to read a recording: their
table is in memory, or in a Parquet file in the page cache. The time for the start of Python and of
the peers does not count, but that of sonde does. `cpu_ratio` is the processor time of the peer for
a point, divided by that of sonde: other load of the machine has less effect on it.

`sonde import` then reads each file; its rate is in values per second.

`memory` is the greatest anonymous memory of the process. The mapped pages of the recording do not
count, because they belong to the page cache, nor do those of sonde's temporary file, which the
kernel may drop from memory.
"""

import os
import pathlib
import resource
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
PANDAS_POINTS = min(PEER_POINTS, int(os.environ.get("SONDE_BENCH_PANDAS_POINTS", 10_000_000)))
SERIES, MEMORY_MAX = 100, 100 << 20
FORMATS = ("csv", "parquet", "sqlite")

DUCKDB = """
import duckdb, sys, time
form, table, out = sys.argv[1:]
start, used = time.monotonic(), time.process_time()
options = {"csv": "FORMAT csv, HEADER", "parquet": "FORMAT parquet, COMPRESSION zstd"}[form]
duckdb.sql("SET preserve_insertion_order = false; SET memory_limit = '4GB'")
duckdb.sql(f"COPY (SELECT * FROM '{table}') TO '{out}' ({options})")
print(time.monotonic() - start, time.process_time() - used)
"""
PANDAS = """
import pandas, sys, time
form, table, out = sys.argv[1:]
frame = pandas.read_parquet(table)
start, used = time.monotonic(), time.process_time()
frame.to_csv(out, index=False) if form == "csv" else frame.to_parquet(out, compression="zstd")
print(time.monotonic() - start, time.process_time() - used)
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
    seconds, used, memory, _ = watched([SONDE, "import", "--format", form, "--host", "n1", "-o", out, file])
    report("export", f"import of {form}, values a second", round(values / seconds), "1/s", seconds=round(seconds, 2), cpu_s=round(used, 2), values=values, file_bytes=file.stat().st_size, memory_bytes=memory)


def watched(command):
    """Runs a command; returns its seconds, its processor time, its greatest anonymous memory in
    bytes, and its output."""
    peak, start, before = 0, time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
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
    seconds, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    done.set()
    thread.join()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, peak * 1024, out


def peers_of(form, folder):
    """Yields (name, points, command, True if the command prints its own seconds) of each peer."""
    out = folder / f"peer.{form}"
    if form == "sqlite":
        if shutil.which("sqlite3"):
            table = folder / f"{PEER_POINTS}.csv"
            yield "sqlite3 .import", PEER_POINTS, ["sqlite3", out, "PRAGMA journal_mode=OFF", "PRAGMA synchronous=OFF", ".mode csv", f".import {table} points"], False
        else:
            say("sqlite3 is not installed")
        return
    for name, program, points in (("DuckDB", DUCKDB, PEER_POINTS), ("pandas", PANDAS, PANDAS_POINTS)):
        module = name.lower()
        if subprocess.run([sys.executable, "-c", f"import {module}, pyarrow"], stderr=subprocess.DEVNULL).returncode == 0:
            yield name, points, [sys.executable, "-c", program, form, folder / f"{points}.parquet", out], True
        else:
            say(f"{name} is not installed")


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sonde-bench-export-"))
    try:
        recording = make_recording(folder, POINTS, "large")
        for points in {PEER_POINTS, PANDAS_POINTS}:
            part = recording if points == POINTS else make_recording(folder, points, f"of-{points}")
            for form in ("csv", "parquet"):
                subprocess.run([SONDE, "export", "-q", "-o", folder / f"{points}.{form}", part], check=True)
        for form in FORMATS:
            out = folder / f"own.{form}"
            seconds, used, memory, _ = watched([SONDE, "export", "-q", "-o", out, recording])
            rate = POINTS / seconds
            report("export", f"{form} points a second", round(rate), "1/s", seconds=round(seconds, 2), cpu_s=round(used, 2), points=POINTS, file_bytes=out.stat().st_size, memory_bytes=memory)
            report("export", f"{form} memory", memory, "bytes", "the limit", MEMORY_MAX)
            imported(form, out, folder / "back", POINTS)
            shutil.rmtree(folder / "back")
            out.unlink()
            for name, points, command, says in peers_of(form, folder):
                seconds, peer_used, memory, said = watched(command)
                if says:
                    # The last line, because DuckDB prints a progress bar above it.
                    seconds, peer_used = map(float, said.splitlines()[-1].split())
                report("export", f"{form} points a second", round(rate), "1/s", name, round(points / seconds), peer_points=points, peer_seconds=round(seconds, 2),
                       cpu_ratio=round(peer_used / points / (used / POINTS), 2), peer_memory_bytes=memory)
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
