"""columns.py - decodes bytes, checksums, and columns of values and of time stamps, as
docs/format-codecs.md describes them.

It was written from that page alone, and shares only the zstd library with sonde. read_sonde.py
reads files with it, and the unit test of the codecs compares sonde's encoders and decoders with it.
It is simple, but not fast.
"""
import ctypes
import struct
from array import array

MASK = 2**64 - 1
MAX_VALUES = 65536  # values of a column
MAX_COLUMNS = 4096  # columns of a table
MAX_UNPACKED = 1 << 30  # unpacked bytes of a zstd frame


class Damage(Exception):
    """The bytes violate the format."""


def need(truth, what):
    if not truth:
        raise Damage(what)


# Bytes

CRC_TABLE = []
for crc in range(256):
    for _ in range(8):
        crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    CRC_TABLE.append(crc)


def crc32c(data, crc=0):
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


ZSTD = ctypes.CDLL("libzstd.so.1")
for name in ("ZSTD_decompress", "ZSTD_findFrameCompressedSize"):
    getattr(ZSTD, name).restype = ctypes.c_size_t


def unzstd(data, size):
    """Unpacks the zstd frame at the begin of `data`, whose content has `size` bytes. Returns the
    content and the length of the frame."""
    need(size <= MAX_UNPACKED, "a zstd frame too large")
    data = bytes(data)
    frame = ZSTD.ZSTD_findFrameCompressedSize(data, ctypes.c_size_t(len(data)))
    need(not ZSTD.ZSTD_isError(ctypes.c_size_t(frame)), "no zstd frame")
    out = ctypes.create_string_buffer(max(size, 1))
    got = ZSTD.ZSTD_decompress(out, ctypes.c_size_t(size), data, ctypes.c_size_t(frame))
    need(got == size, "a zstd frame of another size than noted, or damaged")
    return out.raw[:size], frame


def unzigzag(z):
    return (z >> 1) ^ -(z & 1)


def signed(x):
    return (x & MASK) - (2**64 if x >> 63 & 1 else 0)


def to_double(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def to_bits(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


class Bytes:
    """Reads a part of the file from its start to its end."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def left(self):
        return len(self.data) - self.at

    def take(self, size):
        need(0 <= size <= self.left(), "an end too early")
        self.at += size
        return self.data[self.at - size:self.at]

    def get(self, form):
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))

    def u8(self):
        return self.get("B")[0]

    def varint(self):
        value = 0
        for shift in range(0, 70, 7):
            byte = self.u8()
            value |= (byte & 127) << shift
            if byte < 128:
                return value & MASK
        raise Damage("a varint without an end")

    def zigzag(self):
        return unzigzag(self.varint())

    def short(self):
        return bytes(self.take(self.varint()))

    def text(self):
        return self.short().decode("utf-8", "surrogateescape")

    def u64s(self, count):
        return list(self.get(f"{count}Q"))

    def end(self):
        need(self.left() == 0, "bytes left over")


# Columns. Values are whole numbers below 2^64: the bits of doubles, or time stamps modulo 2^64.


def scaled(x, scale):
    """Returns the bits of the double that the signed whole number x represents."""
    if scale == 0:
        return to_bits(float(x))
    if scale in (1, 2, 3, 4, 6, 7, 8, 10, 12, 13, 14):
        return to_bits(x / float(10**scale))
    if 0x41 <= scale <= 0x4E:
        return to_bits(x * float(f"1e-{scale - 0x40}"))
    if 0x81 <= scale <= 0xBF:
        return to_bits(x * 2.0**-(scale - 0x80))
    raise Damage("an unknown scale")


def misses(data, count, values):
    """Puts the next values of `data` at their positions."""
    positions = data.get(f"{count}H")
    for position, value in zip(positions, data.u64s(count)):
        need(position < len(values), "a miss behind the end")
        values[position] = value


def unpack_group(data, m, width):
    """Unpacks the m numbers of a group of a packed section."""
    if width > 32:
        low, high = unpack_group(data, m, 32), unpack_group(data, m, width - 32)
        return [a | b << 32 for a, b in zip(low, high)]
    rows = -(-m // 16)
    words = array("I", data.take(64 * -(-rows * width // 32)))
    lanes = [int.from_bytes(words[lane::16].tobytes(), "little") for lane in range(16)]
    mask = (1 << width) - 1
    return [lanes[i % 16] >> i // 16 * width & mask for i in range(m)]


def packed(data, n):
    """Decodes a packed section; returns n numbers modulo 2^64."""
    flags, width, shift, zero, patches, base, step, start, _ = data.get("BBBBIqQQQ")
    wide = flags & 4
    need(flags < 8 and width <= (64 if wide else 32) and shift < 64 and zero == 0, "a packed section's head")
    numbers = []
    for first in range(0, n, 512):
        numbers += unpack_group(data, min(512, n - first), width)
    positions = data.get(f"{patches}H")
    for position, value in zip(positions, data.get(f"{patches}{'Q' if wide else 'I'}")):
        need(position < n, "a patch behind the end")
        numbers[position] = value
    mask = MASK if wide else 0xFFFFFFFF
    if flags & 2:
        numbers = [unzigzag(p) & mask for p in numbers]
    if flags & 1:
        c = start
        for i, u in enumerate(numbers):
            c = numbers[i] = (c + u + step) & mask
    return [(base + (c << shift)) & MASK for c in numbers]


def decode_values(raw, n):
    """Decodes a column of values; returns the bits of n doubles."""
    need(1 <= n <= MAX_VALUES, "a number of values out of range")
    data = Bytes(raw)
    codec = data.u8()
    if codec >= 0x80:
        columns = decode_table(data.take(data.left()))
        need(len(columns) == 1 and columns[0][0] == codec - 0x80, "a cold column of another codec")
        values = columns[0][1]
    elif codec == 0:
        values = data.u64s(1) * n
    elif codec == 1:
        zero, runs = data.get("3sI")
        need(1 <= runs <= n and zero == bytes(3), "runs' head")
        patterns = data.u64s(runs)
        starts = [0, *data.get(f"{runs - 1}H"), n]
        need(all(a < b for a, b in zip(starts, starts[1:])), "runs that do not ascend")
        values = [p for p, a, b in zip(patterns, starts, starts[1:]) for _ in range(b - a)]
    elif codec in (2, 3):
        scale, count = data.get("BH")
        need(codec == 3 or scale == 0, "an integer with a scale")
        values = [scaled(signed(x), scale) for x in packed(data, n)]
        misses(data, count, values)
    elif codec == 4:
        need(data.take(3) == bytes(3), "bits' head")
        values = packed(data, n)
    elif codec == 5:
        values = data.u64s(n)
    else:
        raise Damage(f"codec {codec}, which is unknown")
    data.end()
    need(len(values) == n, "a column of another size")
    return values


def decode_times(raw, n):
    """Decodes a column of time stamps; returns n signed numbers of nanoseconds."""
    need(1 <= n <= MAX_VALUES, "a number of time stamps out of range")
    data = Bytes(raw)
    how = data.u8()
    if how == 0:
        times = data.u64s(n)
    elif how in (1, 2):
        need(data.take(3) == bytes(3), "time stamps' head")
        if how == 1:
            first, step = data.get("qQ")
            times = [first + i * step for i in range(n)]
        else:
            times = packed(data, n)
    elif how == 3:
        columns = decode_table(data.take(data.left()))
        need(len(columns) == 1 and columns[0][0] >= 8, "a table of one column of time stamps")
        times = columns[0][1]
    else:
        raise Damage(f"time stamps of kind {how}, which is unknown")
    data.end()
    need(len(times) == n, "time stamps of another number")
    return [signed(t) for t in times]


GAPS, CHANGES, DENSE, EXTRAS, RAW, LOW = range(6)


def token(stream, extras):
    byte = stream.u8()
    if byte < 120:
        return byte
    need(byte <= 127, "a token out of range")
    return (int.from_bytes(extras.take(byte - 119), "little") + 120) & MASK


def low_bits(data, count, low):
    """Returns `count` numbers of `low` bits."""
    raw, mask = data.take(-(-count * low // 8)), (1 << low) - 1
    numbers = []
    for i in range(0, count if low else 0, 8):
        eight = int.from_bytes(raw[i * low // 8:(i + 8) * low // 8], "little")
        numbers += [eight >> j * low & mask for j in range(min(8, count - i))]
    return numbers or [0] * count


class Whole:
    """A table's column of whole numbers. `own` is the series q without the parts of its
    references."""

    def __init__(self, codec, n, entry, streams):
        self.n = n
        self.scale, form, low = entry.get("BBB")
        self.order, dense = form & 3, form & 4
        need(form < 8 and self.order < 3 and low <= 64 and (codec == 3 or self.scale == 0), "whole numbers' head")
        self.first, self.centre = entry.zigzag(), entry.zigzag()
        self.factor, miss_count = entry.varint(), entry.varint()
        k = 0 if self.order == 0 else 1
        count = n - k if dense else entry.varint()
        need(count <= n - k, "more numbers than there is room for")
        extras = Bytes(streams[EXTRAS].take(entry.varint()))
        reference_count = entry.varint()
        need(reference_count <= 3, "more than 3 references")
        self.references = [entry.varint() for _ in range(reference_count)]
        self.own = [0] * n
        lows = low_bits(streams[LOW], count, low)
        for i in range(count):
            if dense:
                z = token(streams[DENSE], extras) << low | lows[i]
            else:
                k += token(streams[GAPS], extras)
                z = (token(streams[CHANGES], extras) << low | lows[i]) + 1
            need(k < n, "a number behind the end")
            self.own[k] = unzigzag(z & MASK)
            k += 1
        extras.end()
        self.raw = Bytes(streams[RAW].take(10 * miss_count))
        self.miss_count = miss_count

    def series(self, columns, seen):
        """Returns q with the parts of its references; seen[0] counts the visited columns."""
        seen[0] += 1
        need(seen[0] <= 64, "references without an end")
        q = self.own
        for r in self.references:
            need(r >> 1 < len(columns) and isinstance(columns[r >> 1], Whole), "a reference to no column")
            other = columns[r >> 1]
            need(self.order == other.order == 1 and other.n == self.n, "a reference to a column of another kind")
            sign = -1 if r & 1 else 1
            q = [a + sign * b for a, b in zip(q, other.series(columns, seen))]
        return q

    def values(self, columns, times):
        q, x, d = self.series(columns, [0]), [], 0
        for k in range(self.n):
            change = self.centre + self.factor * q[k]
            if self.order == 0:
                x.append(change)
            elif k == 0:
                x.append(self.first)
            else:
                d = d + change if self.order == 2 else change
                x.append(x[-1] + d & MASK)
        if times:
            return [value & MASK for value in x]
        values = [scaled(signed(value), self.scale) for value in x]
        misses(self.raw, self.miss_count, values)
        return values


def table_bits(entry, n, streams):
    form, apart = entry.get("BB")
    need(form <= 2, "bits of an unknown form")
    values = [0] * n
    for plane in range(8):
        part = streams[LOW if apart >> plane & 1 else RAW].take(n)
        values = [v << 8 | byte for v, byte in zip(values, part)]
    for i in range(1, n if form else 0):
        values[i] = values[i] ^ values[i - 1] if form == 1 else (values[i - 1] + unzigzag(values[i])) & MASK
    return values


def table_runs(entry, n, streams):
    changes = entry.varint()
    need(changes < n, "more runs than values")
    extras = Bytes(streams[EXTRAS].take(entry.varint()))
    lengths = [token(streams[GAPS], extras) + 1 for _ in range(changes)]
    need(sum(lengths) < n, "runs behind the end")
    extras.end()
    patterns = streams[RAW].u64s(changes + 1)
    return [p for p, size in zip(patterns, lengths + [n - sum(lengths)]) for _ in range(size)]


def decode_table(raw):
    """Decodes a table; returns its columns, each (kind, n numbers below 2^64)."""
    data = Bytes(raw)
    need(data.u8() == 1, "a table of an unknown version")
    count = data.varint()
    need(1 <= count <= MAX_COLUMNS, "a table's number of columns")
    sizes = [data.varint() for _ in range(7)]
    entries, *streams = [Bytes(data.take(size)) for size in sizes]
    data.end()
    columns, kinds = [], []
    for _ in range(count):
        kind, n = entries.u8(), entries.varint()
        need(kind <= 13 and kind & 7 <= 5 and 1 <= n <= MAX_VALUES, "a table column's head")
        codec = kind & 7
        kinds.append(kind)
        if codec == 0:
            columns.append(entries.u64s(1) * n)
        elif codec == 1:
            columns.append(table_runs(entries, n, streams))
        elif codec == 4:
            columns.append(table_bits(entries, n, streams))
        elif codec == 5:
            columns.append(streams[RAW].u64s(n))
        else:
            columns.append(Whole(codec, n, entries, streams))
    for piece in (entries, *streams):
        piece.end()
    return [(kind, c.values(columns, kind >= 8) if isinstance(c, Whole) else c) for kind, c in zip(kinds, columns)]
