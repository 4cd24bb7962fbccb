"""The page that SQLite locks lies behind the first GiB. This test moves it in front of every page
of a small database, one after the other; SQLite checks the database with its own lock moved there,
too."""

import ctypes
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

WRITER = sys.argv[1]
PAGE, PENDING_BYTE, ROWS = 16384, 11, 3000

try:
    library = ctypes.CDLL("libsqlite3.so.0")
except OSError:
    library = None
if library is None or library.sqlite3_libversion_number() != sqlite3.sqlite_version_info[0] * 1000000 + sqlite3.sqlite_version_info[1] * 1000 + sqlite3.sqlite_version_info[2]:
    print("Python's SQLite is not the library libsqlite3.so.0")
    sys.exit(77)


def check(path, lock_page):
    subprocess.run([WRITER, path, str(lock_page), str(ROWS)], check=True)
    library.sqlite3_test_control(PENDING_BYTE, (lock_page - 1) * PAGE if lock_page else 1 << 30)
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)], lock_page
    found = db.execute("SELECT count(*), sum(value), count(DISTINCT series) FROM points").fetchone()
    assert found == (ROWS, sum(range(ROWS)) / 4, ROWS // 1000), (lock_page, found)
    assert db.execute("SELECT count(*), min(length(text)), max(length(text)) FROM notes").fetchone() == (ROWS // 100, 3 * PAGE, 3 * PAGE)
    pages = db.execute("PRAGMA page_count").fetchone()[0]
    db.close()
    return pages


with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "a.db"
    pages = check(path, 0)
    assert pages > 80, pages
    for lock_page in range(2, pages + 3):
        found = check(path, lock_page)
        # The database has one page more, unless the lock page lies behind the last one.
        assert found == pages + (lock_page <= pages), (lock_page, found, pages)
