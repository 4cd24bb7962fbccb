"""Random tables: sonde writes them, and Arrow's own library and DuckDB read them; and sonde reads
Parquet files of sonde, Arrow and DuckDB."""

import math
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

try:
    import pyarrow
    import pyarrow.ipc
    import pyarrow.parquet
except ImportError:
    print("pyarrow is not installed")
    sys.exit(77)
try:
    import duckdb
except ImportError:
    duckdb = None

WRITER, READER = sys.argv[1:]
SEED = int(os.environ.get("SONDE_TEST_SEED", "20"))
ROUNDS = int(os.environ.get("SONDE_TEST_ROUNDS", "1"))
TIME, DOUBLE, INT, ID, TEXT = range(5)
NO_TIME = -(2**63)
DOUBLES = [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, -1.7976931348623157e308, 0.1]


def text(s):
    return struct.pack("<I", len(s)) + s


class Column:
    def __init__(self, kind, name, optional, rng):
        self.kind, self.name, self.optional, self.rng = kind, name, optional, rng
        self.words, self.cells = [], []
        self.style = rng.randrange(4)

    def head(self):
        return struct.pack("<BB", self.kind, self.optional) + text(self.name.encode())

    def integer(self, rows):
        rng = self.rng
        if self.style == 0:  # like samples of a collector
            begin, step = rng.randrange(2**61), rng.choice([0, 1, 10**8, 10**9])
            return [begin + i * step for i in range(rows)]
        if self.style == 1:
            return [rng.randrange(-(2**63) + 1, 2**63) for _ in range(rows)]
        bits = rng.randrange(1, 40)
        return [1764000000 * 10**9 + rng.getrandbits(bits) for _ in range(rows)]

    def batch(self, rows):
        if self.optional and self.rng.random() < 0.3:
            self.cells += [None] * rows
            return b"\1"
        return b"\0" + self.values(rows)

    def values(self, rows):
        rng = self.rng
        if self.kind == TEXT:
            new = [f"w{len(self.words) + i}-{'ä' * rng.randrange(5)}".encode() for i in range(rng.choice([0, 0, 1, 3, 300]))]
            if not self.words and not new and not self.optional:
                new = [b""]
            self.words += new
            out = struct.pack("<I", len(new)) + b"".join(map(text, new))
            least = -1 if self.optional else 0
            if rng.random() < 0.5 or not self.words:
                number = rng.randrange(least, len(self.words))
                cells = [number] * rows
                out += struct.pack("<Bi", 1, number)
            else:
                cells = []
                while len(cells) < rows:
                    cells += [rng.randrange(least, len(self.words))] * rng.choice([1, 1, 2, 7, 8, 9, 100])
                cells = cells[:rows]
                out += struct.pack(f"<B{rows}i", 0, *cells)
            self.cells += [None if n < 0 else self.words[n].decode() for n in cells]
        elif self.kind == INT:
            number = rng.randrange(-(2**31), 2**31)
            out = struct.pack("<i", number)
            self.cells += [number] * rows
        elif self.kind == DOUBLE:
            cells = [rng.choice(DOUBLES) if rng.random() < 0.1 else rng.gauss(0, 1e6) for _ in range(rows)]
            out = struct.pack(f"<{rows}d", *cells)
            self.cells += cells
        else:
            shift = 0 if self.style == 1 else rng.randrange(-1000, 1000)
            cells = [NO_TIME if self.kind == TIME and self.optional and rng.random() < 0.3 else v for v in self.integer(rows)]
            out = struct.pack(f"<q{rows}q", shift, *cells)
            self.cells += [None if v == NO_TIME and self.optional else (v + shift) % 2**64 if self.kind == ID else v + shift for v in cells]
        return out


def make(rng):
    kinds = [(TIME, False), (DOUBLE, False), (TEXT, False)]
    kinds += [rng.choice([(TIME, True), (INT, False), (ID, False), (ID, True), (TEXT, True), (DOUBLE, True)]) for _ in range(rng.randrange(6))]
    columns = [Column(kind, f"column {i}", optional, rng) for i, (kind, optional) in enumerate(kinds)]
    out = struct.pack("<I", len(columns)) + b"".join(c.head() for c in columns)
    for _ in range(rng.randrange(8)):
        rows = rng.choice([0, 1, 7, 8, 100, 1000, rng.randrange(20000)])
        out += struct.pack("<I", rows) + b"".join(c.batch(rows) for c in columns)
    return columns, out + struct.pack("<I", 0xFFFFFFFF)


def bits(cells, kind):
    """Makes cells comparable, so that -0.0 differs from 0.0."""
    return [struct.pack("<d", v) if kind == DOUBLE and v is not None and v == v else str(v) for v in cells]


def check(columns, table, what):
    assert table.column_names == [c.name for c in columns], (what, table.column_names)
    for c, got in zip(columns, table.columns):
        wanted = {TIME: pyarrow.timestamp("ns", "UTC"), DOUBLE: pyarrow.float64(), INT: pyarrow.int32(), ID: pyarrow.uint64()}
        if c.kind == TEXT:
            assert got.type in (pyarrow.dictionary(pyarrow.int32(), pyarrow.string()), pyarrow.string()), (what, got.type)
        else:
            assert got.type == wanted[c.kind], (what, c.name, got.type)
        cells = (got.cast(pyarrow.int64()) if c.kind == TIME else got).to_pylist()
        assert len(cells) == len(c.cells), (what, c.name, len(cells), len(c.cells))
        assert bits(cells, c.kind) == bits(c.cells, c.kind), (what, c.name)


def check_statistics(columns, path):
    """Checks the bounds and the counts of NULLs of each group, by which readers skip groups."""
    at = 0
    meta = pyarrow.parquet.ParquetFile(path).metadata
    for g in range(meta.num_row_groups):
        group = meta.row_group(g)
        for i, c in enumerate(columns):
            s = group.column(i).statistics
            cells = c.cells[at : at + group.num_rows]
            there = [v for v in cells if v is not None and v == v]
            assert s.null_count == sum(v is None for v in cells), (c.name, s.null_count)
            assert s.has_min_max == bool(there), (c.name, s)
            if there and c.kind in (INT, ID, DOUBLE, TEXT):
                assert (s.min, s.max) == (min(there), max(there)), (c.name, s.min, s.max, min(there), max(there))
        at += group.num_rows
    assert at == meta.num_rows == len(columns[0].cells)


class Input:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        found = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return found

    def text(self):
        (size,) = self.take("I")
        self.at += size
        return self.data[self.at - size : self.at].decode()


def read_by_sonde(path):
    """Returns [(kind, name, cells)] of a Parquet file."""
    done = subprocess.run([READER, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr.decode()
    inp = Input(done.stdout)
    columns = [(inp.take("B")[0], inp.text(), []) for _ in range(inp.take("I")[0])]
    while (rows := inp.take("I")[0]) != 0xFFFFFFFF:
        for kind, _, cells in columns:
            there = inp.take(f"{rows}B")
            values = [inp.text() for _ in range(rows)] if kind == 3 else inp.take(f"{rows}{'d' if kind == 2 else 'q'}")
            cells += [v if here else None for v, here in zip(values, there)]
    return columns


def check_reader(columns, path, what):
    kinds = {TIME: 0, INT: 1, ID: 1, DOUBLE: 2, TEXT: 3}
    for c, (kind, name, cells) in zip(columns, read_by_sonde(path), strict=True):
        if c.kind == ID:
            cells = [v if v is None else v % 2**64 for v in cells]
        assert (kind, name) == (kinds[c.kind], c.name), (what, kind, name)
        assert bits(cells, c.kind) == bits(c.cells, c.kind), (what, c.name)


def check_foreign(columns, table, folder, rng):
    """Checks files of other writers, with the options that people use."""
    path = folder / "foreign"
    for codec in ("snappy", "zstd", "none"):
        options = {"compression": codec, "use_dictionary": rng.random() < 0.7, "data_page_version": rng.choice(["1.0", "2.0"])}
        if not options["use_dictionary"]:
            names = [c.name for c in columns if c.kind in (TIME, ID, INT)]
            options["column_encoding"] = {name: rng.choice(["PLAIN", "DELTA_BINARY_PACKED"]) for name in names} or None
        pyarrow.parquet.write_table(table, path, row_group_size=rng.choice([1000, 1 << 20]), data_page_size=rng.choice([100, 1 << 20]), **options)
        check_reader(columns, path, options)
    if duckdb:
        far = [c.name for c in columns if c.kind == TIME]
        plain = table.drop(far)
        duckdb.sql(f"COPY (FROM plain) TO '{path}' (FORMAT parquet)")
        check_reader([c for c in columns if c.kind != TIME], path, "duckdb")


def read_back(columns, path):
    if not duckdb:
        return
    names = ", ".join(f'epoch_ns("{c.name}")' if c.kind == TIME else f'"{c.name}"' for c in columns)
    rows = duckdb.sql(f"SELECT {names} FROM read_parquet('{path}')").fetchall()
    for i, c in enumerate(columns):
        cells = [row[i] for row in rows]
        if c.kind == TIME and c.style == 1:
            continue  # DuckDB keeps UTC times in microseconds, so distant ones do not fit
        wanted = [v // 1000 * 1000 if c.kind == TIME and v is not None else v for v in c.cells]
        if c.kind == TIME:
            cells = [v if v is None else v // 1000 * 1000 for v in cells]
        assert bits(cells, c.kind) == bits(wanted, c.kind), ("duckdb", c.name, cells[:3], wanted[:3])


def run(seed, folder):
    rng = random.Random(seed)
    columns, data = make(rng)
    page_rows = rng.choice([0, 1, 8, 1000, 5000]) if len(columns[0].cells) < 3000 else rng.choice([0, 1000, 5000])
    for form in ("parquet", "arrow-file", "arrow-stream"):
        path = folder / form
        subprocess.run([WRITER, form, path, str(page_rows)], input=data, check=True)
        if form == "parquet":
            table = pyarrow.parquet.read_table(path)
            check(columns, table, form)
            check_reader(columns, path, form)
            check_foreign(columns, table, folder, rng)
            assert pyarrow.parquet.ParquetFile(path).metadata.metadata[b"maker"] == b"test"
            check_statistics(columns, path)
            read_back(columns, path)
        elif form == "arrow-file":
            with pyarrow.ipc.open_file(path) as reader:
                assert reader.schema.metadata[b"maker"] == b"test"
                check(columns, reader.read_all(), form)
        else:
            check(columns, pyarrow.ipc.open_stream(path.read_bytes()).read_all(), form)


with tempfile.TemporaryDirectory(prefix="sonde-tables-") as place:
    for k in range(12 * ROUNDS):
        try:
            run(SEED * 1000 + k, pathlib.Path(place))
        except Exception:
            print(f"SONDE_TEST_SEED={SEED}, table {k}")
            raise
print("duckdb is not installed: only Arrow has read the tables" if not duckdb else "ok")
