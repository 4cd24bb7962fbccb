"""Decodes columns as docs/format-codecs.md describes, and compares the result with the original.
The decoder is that of tests/format.

Reads from the program given as argument records of: u8 what (0 values, 1 time stamps, 2 table), u32
n, u32 size, the encoded bytes, u32 size, the original 8-byte patterns (for a table: of all columns,
one after another).
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../format"))
from columns import MASK, Bytes, decode_table, decode_times, decode_values


def decode(what, n, raw):
    if what == 0:
        return decode_values(raw, n)
    if what == 1:
        return [t & MASK for t in decode_times(raw, n)]
    return [v for _, values in decode_table(raw) for v in values]


def main():
    records = Bytes(subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, check=True).stdout)
    count = 0
    while records.left() > 0:
        what, n, size = records.get("BII")
        raw = records.take(size)
        expected = records.u64s(records.get("I")[0] // 8)
        if decode(what, n, raw) != expected:
            sys.exit(f"record {count} (what {what}, n {n}, first byte {raw[0]}) differs")
        count += 1
    print(count, "records decoded")
    if count == 0:
        sys.exit("no records")


main()
