"""Decodes columns as docs/format-codecs.md says, and compares with what was encoded.

Reads from the program given as argument records of: u8 what (0 values, 1 time stamps, 2 table), u32 n, u32 size, the encoded bytes,
u32 size, the 8-byte patterns that they stand for (of a table: of all columns, one after another).
"""
import struct
import subprocess
import sys

M64, M32 = 2**64 - 1, 2**32 - 1
CONSTANT, RUNS, INTEGER, DECIMAL, BITS, PLAIN = range(6)


def signed(v):
    return v - 2**64 if v >> 63 else v


def unzigzag(z, mask=M64):
    return (z >> 1 ^ -(z & 1)) & mask


def pattern(v):
    return struct.unpack("<Q", struct.pack("<d", v))[0]


def patterns(raw):
    return list(struct.unpack("<%dQ" % (len(raw) // 8), raw))


class Bytes:
    def __init__(self, raw):
        self.raw, self.at = raw, 0

    def take(self, size):
        assert self.at + size <= len(self.raw)
        self.at += size
        return self.raw[self.at - size : self.at]

    def number(self, size):
        return int.from_bytes(self.take(size), "little")

    def varint(self):
        v = shift = 0
        while True:
            byte = self.number(1)
            v |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return v

    def left(self):
        return len(self.raw) - self.at


def scaled(x, scale):
    if scale == 0:
        return float(x)
    if scale & 0x80:
        return x * 2.0 ** -(scale & 63)
    if scale & 0x40:
        return x * float("1e-%d" % (scale & 63))
    return float(x) / float("1e%d" % scale)


def group(raw, m, width):
    rows = (m + 15) // 16
    words = struct.unpack("<%dI" % (len(raw) // 4), raw)
    lanes = [sum(words[w * 16 + lane] << 32 * w for w in range((rows * width + 31) // 32)) for lane in range(16)]
    return [lanes[i % 16] >> (i // 16 * width) & ((1 << width) - 1) for i in range(m)]


def group_bytes(m, width):
    return ((m + 15) // 16 * width + 31) // 32 * 64


def packed(b, n):
    flags, width, shift, _ = b.take(4)
    patches, base, step, start, _ = (b.number(size) for size in (4, 8, 8, 8, 8))
    delta, zigzag, wide = flags & 1, flags & 2, flags & 4
    mask = M64 if wide else M32
    p = []
    while len(p) < n:
        m = min(512, n - len(p))
        low = group(b.take(group_bytes(m, min(width, 32))), m, min(width, 32))
        high = group(b.take(group_bytes(m, width - 32)), m, width - 32) if width > 32 else [0] * m
        p += [h << 32 | l for h, l in zip(high, low)]
    positions = [b.number(2) for _ in range(patches)]
    for position in positions:
        p[position] = b.number(8 if wide else 4)
    c, before = [], start
    for v in p:
        u = unzigzag(v, mask) if zigzag else v
        before = (before + u + step) & mask if delta else u
        c.append(before)
    return [(base + (v << shift)) & M64 for v in c]


def with_misses(b, x, scale, misses):
    out = [pattern(scaled(signed(v), scale)) for v in x]
    positions = [b.number(2) for _ in range(misses)]
    for position in positions:
        out[position] = b.number(8)
    return out


def column(raw, n):
    b = Bytes(raw)
    codec = b.number(1)
    if codec & 0x80:
        (out,) = table(raw[1:])
        return out
    if codec == CONSTANT:
        out = [b.number(8)] * n
    elif codec == RUNS:
        b.take(3)
        runs = b.number(4)
        values = [b.number(8) for _ in range(runs)]
        starts = [0] + [b.number(2) for _ in range(runs - 1)] + [n]
        out = [v for i, v in enumerate(values) for _ in range(starts[i + 1] - starts[i])]
    elif codec in (INTEGER, DECIMAL):
        scale, misses = b.number(1), b.number(2)
        out = with_misses(b, packed(b, n), scale, misses)
    elif codec == BITS:
        b.take(3)
        out = packed(b, n)
    else:
        out = patterns(b.take(8 * n))
    assert b.left() == 0
    return out


def times(raw, n):
    b = Bytes(raw)
    how = b.number(1)
    if how == 0:
        return patterns(b.take(8 * n))
    if how == 3:
        (out,) = table(raw[1:])
        return out
    b.take(3)
    if how == 1:
        first, step = b.number(8), b.number(8)
        return [(first + i * step) & M64 for i in range(n)]
    return packed(b, n)


def token(byte, extras):
    return byte if byte < 120 else 120 + extras.number(byte - 119)


def table(raw):
    b = Bytes(raw)
    assert b.number(1) == 1
    n_columns, directory_bytes = b.varint(), b.varint()
    sizes = [b.varint() for _ in range(6)]
    directory = Bytes(b.take(directory_bytes))
    gaps, changes, dense_tokens, all_extras, raw_stream, low_stream = (Bytes(b.take(size)) for size in sizes)
    assert b.left() == 0
    columns = []  # (what makes the patterns of it once all series are known)
    series = {}

    def whole_numbers(me, n, is_times):
        d = directory
        scale, form, low = d.number(1), d.number(1), d.number(1)
        first, centre, factor, misses = unzigzag(d.varint()), unzigzag(d.varint()), d.varint(), d.varint()
        order, dense = form & 3, form & 4
        begin = 0 if order == 0 else 1
        count = n - begin if dense else d.varint()
        extras = Bytes(all_extras.take(d.varint()))
        references = [d.varint() for _ in range(d.varint())]
        gap_tokens = b"" if dense else gaps.take(count)
        tokens = (dense_tokens if dense else changes).take(count)
        bits = int.from_bytes(low_stream.take((count * low + 7) // 8), "little")
        q, k = [0] * n, begin
        for i in range(count):
            if not dense:
                k += token(gap_tokens[i], extras)
            written = token(tokens[i], extras) << low | bits >> (i * low) & ((1 << low) - 1)
            q[k] = unzigzag(written if dense else written + 1)
            k += 1
        assert extras.left() == 0
        series[me] = q, references
        positions = [raw_stream.number(2) for _ in range(misses)]
        values = [raw_stream.number(8) for _ in range(misses)]

        def make():
            full, x, delta, before = whole_series(me), [], 0, first
            for k in range(n):
                v = centre + factor * full[k]
                if order > 0:
                    delta = delta + v if order == 2 else v
                    before = v = before + delta if k > 0 else first
                    delta = 0 if k == 0 else delta
                x.append(v & M64)
            if is_times:
                return x
            out = [pattern(scaled(signed(v), scale)) for v in x]
            for position, value in zip(positions, values):
                out[position] = value
            return out

        return make

    def whole_series(me):
        q, references = series[me]
        for r in references:
            other = whole_series(r >> 1)
            q = [a - o if r & 1 else a + o for a, o in zip(q, other)]
        return q

    def runs(n):
        count = directory.varint()
        extras = Bytes(all_extras.take(directory.varint()))
        lengths = [token(byte, extras) + 1 for byte in gaps.take(count)]
        values = [raw_stream.number(8) for _ in range(count + 1)]
        return [v for v, length in zip(values, lengths + [n - sum(lengths)]) for _ in range(length)]

    def bits(n):
        form, apart = directory.number(1), directory.number(1)
        planes = [(low_stream if apart >> p & 1 else raw_stream).take(n) for p in range(8)]
        out = []
        for i in range(n):
            v = int.from_bytes(bytes(plane[i] for plane in planes), "big")
            if form == 1 and i > 0:
                v ^= out[-1]
            if form == 2 and i > 0:
                v = (out[-1] + unzigzag(v)) & M64
            out.append(v)
        return out

    for me in range(n_columns):
        kind, n = directory.number(1), directory.varint()
        codec = kind & 7
        if codec == CONSTANT:
            value = directory.number(8)
            columns.append(lambda value=value, n=n: [value] * n)
        elif codec in (INTEGER, DECIMAL):
            columns.append(whole_numbers(me, n, kind & 8))
        else:
            done = runs(n) if codec == RUNS else bits(n) if codec == BITS else patterns(raw_stream.take(8 * n))
            columns.append(lambda done=done: done)
    for stream in (directory, gaps, changes, dense_tokens, all_extras, raw_stream, low_stream):
        assert stream.left() == 0
    return [make() for make in columns]


def main():
    records = Bytes(subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, check=True).stdout)
    count = 0
    while records.left() > 0:
        what, n = records.number(1), records.number(4)
        raw, expected = records.take(records.number(4)), patterns(records.take(records.number(4)))
        if what == 0:
            got = column(raw, n)
        elif what == 1:
            got = times(raw, n)
        else:
            got = [v for values in table(raw) for v in values]
        if got != expected:
            sys.exit("record %d (what %d, n %d, first byte %d) differs" % (count, what, n, raw[0]))
        count += 1
    print(count, "records decoded")
    if count == 0:
        sys.exit("no records")


main()
