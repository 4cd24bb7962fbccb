#!/usr/bin/env python3
"""read_sonde.py [--csv] [--synced] FILE - a reader of recordings that was written from
docs/format.md and docs/format-codecs.md alone.

It shares only the zstd library with sonde, so it proves that those two pages are complete. It is
simple, but not fast. columns.py decodes columns. This file has, from the bottom up: blocks; events;
the file with its catalog, blocks and tails.

The reader reports damaged parts and reads the others. `Recording.problems` is empty if every
checksum and every sum is correct. --csv prints every point. If a writer left the file in an earlier
boot, the reader assumes that the machine went down. Then it reads only data that was certainly on
the disk, as the next writer does. --synced treats every abandoned file like that.
"""
import os
import struct
import sys
import time

from columns import Bytes, Damage, crc32c, decode_table, decode_times, decode_values, need, signed, to_bits, to_double, unzstd

MISSING = 0x7FF8736F6E646500

# Blocks

BLOCK_HEAD = 104


def check_sums(bits, noted):
    """Compares values with `noted`: the number of NaNs, then the bits of min, max, sum, sum of
    squares, first, last."""
    values = [to_double(b) for b in bits]
    sums, squares = [0.0] * 8, [0.0] * 8
    for i, value in enumerate(values):
        if value == value:
            sums[i % 8] += value
            squares[i % 8] += value * value
    numbers = [v + 0.0 for v in values if v == v]
    found = [min(numbers, default=0.0), max(numbers, default=0.0)]
    for part in (sums, squares):
        a, b, c, d = (part[i] + part[i + 4] for i in range(4))
        found.append((a + c) + (b + d))
    found = [to_bits(v) if v == v else 0x7FF8000000000000 for v in found]
    need([len(values) - len(numbers), *found, bits[0], bits[-1]] == list(noted), "sums that are not those of the values")


class Block:
    """A block with a valid header. points() yields (series, times, bits) column by column."""

    def __init__(self, raw):
        head = Bytes(raw[:BLOCK_HEAD])
        magic, crc, self.size, self.kind, self.flags, self.set, self.count, self.columns = head.get("4sIIHHIII")
        need(magic == b"SBLK" and crc == crc32c(raw[8:BLOCK_HEAD]), "a block's header")
        self.directory_size, self.directory_unpacked, self.data_size, self.data_unpacked = head.get("IIII")
        self.directory_crc, self.data_crc, _, self.first, self.last = head.get("IIIQQ")
        self.first_time, self.last_time, self.value_count, self.version = head.get("qqQQ")
        need(self.size == BLOCK_HEAD + self.directory_size + self.data_size <= len(raw), "a block's sizes")
        self.raw = raw[:self.size]
        self.owner = (self.kind, self.set if self.kind == 1 else 0)

    def open(self):
        """Checks the directory and the data; returns both, the directory unpacked."""
        directory = self.raw[BLOCK_HEAD:BLOCK_HEAD + self.directory_size]
        data = self.raw[BLOCK_HEAD + self.directory_size:]
        need(crc32c(directory) == self.directory_crc, "a block's directory")
        need(crc32c(data) == self.data_crc, "a block's data")
        if self.flags & 2:
            directory, _ = unzstd(directory, self.directory_unpacked)
        return Bytes(directory), data

    def stripes(self):
        """Returns the blocks in the data of a striped block, or the block itself if it is not
        striped."""
        if not self.flags & 8:
            return [self]
        directory, data = self.open()
        need(not directory.left(), "a striped block with a directory")
        stripes = []
        for _ in range(self.columns):
            stripe = Block(data)
            need(stripe.flags & 17 == 17 and stripe.owner == self.owner and (stripe.first, stripe.last, stripe.version) == (self.first, self.last, self.version)
                 and (not stripes or stripes[-1].last_time < stripe.first_time), "a block that is no stripe of this one")
            stripes.append(stripe)
            data = data[stripe.size:]
        need(not data, "bytes behind the last stripe")
        need(self.first_time == stripes[0].first_time and self.last_time == stripes[-1].last_time
             and self.value_count == sum(s.value_count for s in stripes), "a striped block whose header differs from its stripes")
        return stripes

    def points(self, sets):
        directory, data = self.open()
        series = None
        if self.kind == 1:
            need(self.set < len(sets) and len(sets[self.set]) == self.columns, "a block of an unknown set")
            series = sets[self.set]
        read = self.cold if self.flags & 1 else self.hot_set if self.kind == 1 else self.hot_points
        count = 0
        for number, times, bits, sums in read(directory, data, series):
            need(len(times) == len(bits), "a column of another size")
            need(all(a < b for a, b in zip(times, times[1:])), "time stamps that do not ascend")
            need(self.first_time <= times[0] and times[-1] <= self.last_time, "time stamps out of the block's range")
            if sums:
                check_sums(bits, sums)
            count += len(bits)
            yield number, times, bits
        need(not any(directory.take(directory.left())), "bytes left over")
        need(count == self.value_count, "another number of values than noted")

    def hot_set(self, directory, data, series):
        time_size, _ = directory.get("II")
        times = decode_times(data[:time_size], self.count)
        for number in series:
            offset, size, count, nans, first_time, last_time, *sums = directory.get("IIIIqq6Q")
            if count == 0:
                continue
            column, there = Bytes(data[offset:offset + size]), times
            if count < self.count:
                bitmap = column.take(-(-self.count // 8))
                there = [t for row, t in enumerate(times) if bitmap[row // 8] >> row % 8 & 1]
            need(len(there) == count and (there[0], there[-1]) == (first_time, last_time), "a column's times")
            yield number, there, decode_values(column.take(column.left()), count), [nans, *sums]

    def one_each(self, directory, data):
        need(self.columns == self.count, "a point each, but other numbers of them")
        width = -(-(self.last_time - self.first_time).bit_length() // 8)
        data, last, count = Bytes(data), -1, 0
        while directory.left():
            stretch, before, *there = directory.get("II4Q")
            need(stretch > last and before == count and any(there), "stretches out of order")
            last = stretch
            for bit in range(256):
                if there[bit // 64] >> bit % 64 & 1:
                    time = self.first_time + int.from_bytes(data.take(width), "little")
                    yield 256 * stretch + bit, [time], data.u64s(1), None
                    count += 1
        need(count == self.count and len(data.take(data.left())) < 8, "another number of points than noted")

    def hot_points(self, directory, data, _):
        if self.flags & 32:
            yield from self.one_each(directory, data)
            return
        numbers = directory.get(f"{self.columns}I")
        offsets = directory.get(f"{self.columns + 1}I")
        for number, start, end in zip(numbers, offsets, offsets[1:]):
            piece = Bytes(data[start:end])
            short, sums = piece.u8(), None
            if short:
                count, width = short & 7, short >> 3
                need(count and width <= 8, "a short record of another form")
                times = [self.first_time + int.from_bytes(piece.take(width), "little") for _ in range(count)]
                bits = piece.u64s(count)
                piece.end()
            else:
                count = int.from_bytes(piece.take(3), "little")
                time_size, first_time, last_time = piece.get("Iqq")
                need(count >= 8, "a long record of few points")
                nans, _, *others = piece.get("II6Q")
                sums = [nans, *others]
                times = decode_times(piece.take(time_size), count)
                bits = decode_values(piece.take(piece.left()), count)
                need((times[0], times[-1]) == (first_time, last_time), "a column's times")
            yield number, times, bits, sums

    def cold(self, directory, data, series):
        parts = []
        at = 0
        for _ in range(directory.varint()):
            size, unpacked = directory.varint(), directory.varint()
            table, frame = unzstd(data[at:at + size], unpacked)
            need(frame == size, "a part of another size")
            parts.append(decode_table(table))
            at += size
        number, part, time_column, value_column = -1, 0, 0, 0
        for i in range(self.columns):
            if self.kind == 1:
                number, without = series[i], directory.varint()
                count = self.count - without
                if count == 0:
                    continue
            else:
                number, without = number + directory.varint() + 1, 0
                count = directory.varint()
            part += directory.varint()
            time_column += directory.zigzag()
            value_column += directory.zigzag()
            need(part < len(parts), "a part that is not there")
            times, bits = [signed(t) for t in self.column(parts[part], time_column)], self.column(parts[part], value_column)
            if without:
                there = self.column(parts[part], directory.varint())
                need(len(there) == len(times), "presence of another size")
                times = [t for t, present in zip(times, there) if present]
            if without or self.kind == 2:
                span = (self.first_time + directory.varint(), self.last_time - directory.varint())
            else:
                span = (self.first_time, self.last_time)
            need(len(times) == count and (times[0], times[-1]) == span, "a column's times")
            yield number, times, bits, self.cold_sums(directory, count)

    @staticmethod
    def column(table, number):
        need(0 <= number < len(table), "a column that is not there")
        return table[number][1]

    @staticmethod
    def cold_sums(directory, count):
        def number():
            k = directory.u8()
            need(k <= 8, "a number of more than 8 bytes")
            return int.from_bytes(bytes(8 - k) + directory.take(k), "little")

        shape = directory.u8()
        need(shape < 64, "an unknown shape")
        nans = directory.varint() if shape & 32 else 0
        first = number()
        if shape & 1:
            value = to_double(first)
            return [nans, first, first, to_bits(count * value), to_bits(count * (value * value)), first, first]
        last = number()
        least = first if shape & 2 else last if shape & 8 else number()
        most = last if shape & 4 else first if shape & 16 else number()
        return [nans, least, most, number(), number(), first, last]

    def events(self):
        _, data = self.open()
        if self.flags & 4:
            data, _ = unzstd(data, self.data_unpacked)
        return data


class Event:
    def __init__(self, record):
        self.start, self.end, self.id, self.parent, kind = record.get("qqQQB")
        need(kind <= 1, "an event of an unknown kind")
        self.kind = ("span", "annotation")[kind]
        labels = record.varint()
        self.text = record.text()
        self.labels = tuple((record.text(), record.text()) for _ in range(labels))
        need(not any(record.take(record.left())), "bytes left over")

    @staticmethod
    def read_all(data, count=None):
        events, at = [], 0
        while at < len(data) if count is None else len(events) < count:
            size, crc = Bytes(data[at:at + 8]).get("II")
            need(size % 8 == 0 and 8 < size <= len(data) - at, "an event's size")
            record = data[at + 8:at + size]
            need(crc32c(record) == crc, "an event's checksum")
            events.append(Event(Bytes(record)))
            at += size
        return events


# The file

KIND_NONE, KIND_CATALOG, KIND_SET_TAIL, KIND_POINT_TAIL, KIND_EVENT_TAIL, KIND_BLOCKS, KIND_PACKED_CATALOG = range(7)
TRIES = 1000


def this_boot():
    """Returns the boot id of this machine as in a header; zeros if the system has none."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return bytes.fromhex(file.read().strip().replace("-", ""))
    except OSError:
        return bytes(16)


class Segment:
    def __init__(self, raw):
        self.kind, self.generation, self.set, crc, self.offset, self.size, self.number, self.used = \
            struct.unpack("<IIIIQQQQ", raw[:48])
        self.notes = [struct.unpack("<II", raw[i:i + 8]) for i in (48, 56)]
        self.sound = not any(raw) or crc == crc32c(raw[16:40], crc32c(raw[:12]))
        self.content = b""


class Recording:
    """The contents of a file: metrics, series as (metric id, labels), points as {time_ns: bits} for
    each series, events, problems."""

    def __init__(self, path, synced=False):
        self.problems, self.about, self.metrics, self.pairs, self.series, self.sets = [], {}, [], [], [], []
        self.blocks, self.points, self.events = [], [], []
        self.only_synced = synced
        with open(path, "rb", buffering=0) as file:
            self.copy(file.fileno())
        self.read_catalog()
        self.points = [{} for _ in self.series]
        self.single = [{} for _ in self.series]
        self.read_blocks()
        self.read_tails()
        for points, single in zip(self.points, self.single):
            points.update(single)  # single points override points of sets

    def problem(self, where, why):
        self.problems.append(f"{where}: {why}")

    def copy(self, fd):
        """Makes a consistent copy of the header, the table and the contents of the segments, while
        a writer may continue."""
        for _ in range(TRIES):
            self.read_header(fd)
            before, table = self.read_table(fd)
            if before is None:
                time.sleep(0.001)
                continue
            self.segments = [Segment(raw) for raw in table]
            # The catalog has a series before the series has points. So the catalog is copied last,
            # and contains all copied series.
            for segment in sorted(self.segments, key=lambda s: s.kind in (KIND_CATALOG, KIND_PACKED_CATALOG)):
                if segment.kind == KIND_NONE or not segment.sound:
                    continue
                i = self.segments.index(segment)
                if segment.kind in (KIND_CATALOG, KIND_PACKED_CATALOG):
                    segment.used = Segment(os.pread(fd, 64, self.table_at + 64 * i)).used
                in_rows = KIND_SET_TAIL <= segment.kind <= KIND_POINT_TAIL
                segment.content = os.pread(fd, segment.size if in_rows else min(segment.used, segment.size), segment.offset)
            after = [Segment(os.pread(fd, 64, self.table_at + 64 * i)) for i in range(len(table))]
            if all(a.generation == b.generation for a, b in zip(self.segments, after)):
                break
        else:
            raise Damage("the file changes too fast, or its writer died while it changed the table")
        for i, segment in enumerate(self.segments):
            if not segment.sound:
                self.problem(f"segment {i}", "its entry's checksum is wrong")
        if self.state == 2 and self.closed_crc != crc32c(b"".join(table), crc32c(self.header[:508])):
            self.problem("header", "the checksum of the closed file is wrong")

    def read_header(self, fd):
        self.header = header = os.pread(fd, 1024, 0)
        need(len(header) == 1024 and header[:8] == b"sonde\0\r\n", "this is no file of sonde's")
        self.major, self.minor, size = struct.unpack("<HHI", header[8:16])
        need(struct.unpack("<I", header[60:64])[0] == crc32c(header[:60]), "the header's checksum is wrong")
        need(self.major == 2 and size == 1024, "a format that this reader does not know")
        self.made, = struct.unpack("<q", header[16:24])
        self.state, = struct.unpack("<I", header[64:68])
        need(self.state in (1, 2), "a file in an unknown state")
        self.table_at, self.table_room, self.table_used = struct.unpack("<QII", header[136:152])
        self.version, self.last_time = struct.unpack("<Qq", header[192:208])
        self.closed_crc, = struct.unpack("<I", header[508:512])
        self.only_synced = self.state == 1 and (self.only_synced or header[88:104] != this_boot())

    def read_table(self, fd):
        """Returns the table's sequence and its entries, or None if a writer was changing it."""
        need(self.table_used <= self.table_room, "the table has no room for its entries")
        sequence = os.pread(fd, 8, 128)
        table = os.pread(fd, 64 * self.table_used, self.table_at)
        if sequence[0] & 1 or os.pread(fd, 24, 128) != sequence + self.header[136:152]:
            return None, None
        need(len(table) == 64 * self.table_used, "the table ends too early")
        return sequence, [table[i:i + 64] for i in range(0, len(table), 64)]

    def of_kind(self, *kinds):
        return sorted((s for s in self.segments if s.kind in kinds and s.sound), key=lambda s: s.number)

    def unsure(self, segment, at):
        """Returns True if the data at `at` may not have been on the disk when the machine went
        down."""
        return self.only_synced and at >= max(used for used, _ in segment.notes)

    def read_catalog(self):
        for expected, segment in enumerate(self.of_kind(KIND_CATALOG, KIND_PACKED_CATALOG), 1):
            data = Bytes(segment.content)
            start = 0
            try:
                need(segment.number == expected, "a part of the catalog is missing")
                if segment.kind == KIND_PACKED_CATALOG:
                    unpacked, crc, size = data.get("QII")
                    frame = data.take(size)
                    need(crc32c(frame) == crc, "its checksum is wrong")
                    data = Bytes(unzstd(frame, unpacked)[0])
                while data.left():
                    start = data.at
                    kind, payload = data.u8(), Bytes(data.short())
                    end = data.at
                    need(data.get("I")[0] == crc32c(data.data[start:end]), "an entry's checksum is wrong")
                    self.catalog_entry(kind, payload)
            except Damage as damage:
                if segment.kind == KIND_PACKED_CATALOG or not self.unsure(segment, start):
                    self.problem(f"catalog, segment {segment.number}", damage)
                return

    def catalog_entry(self, kind, data):
        if kind == 1:
            key = data.text()
            self.about[key] = data.text()
        elif kind == 2:
            metric = {"kind": data.u8(), "level": data.u8()}
            metric.update((key, data.text()) for key in ("name", "unit", "help"))
            self.metrics.append(metric)
        elif kind == 3:
            metric = data.varint()
            need(metric < len(self.metrics), "an unknown metric")
            for key in ("unit", "help"):
                more = data.text()
                self.metrics[metric][key] = self.metrics[metric][key] or more
        elif kind == 4:
            self.pairs.append((data.text(), data.text()))
        elif kind == 5:
            metric, count = data.varint(), data.varint()
            pairs = [data.varint() for _ in range(count)]
            need(metric < len(self.metrics) and all(p < len(self.pairs) for p in pairs), "an unknown metric or label")
            self.series.append((metric, tuple(self.pairs[p] for p in pairs)))
        elif kind == 6:
            members, last = [], 0
            for _ in range(data.varint()):
                last += data.zigzag()
                need(0 <= last < len(self.series), "an unknown series")
                members.append(last)
            self.sets.append(members)

    def read_blocks(self):
        found = []
        for segment in self.of_kind(KIND_BLOCKS):
            at, raw = 0, segment.content
            while at < len(raw):
                try:
                    block = Block(raw[at:])
                    need(not block.flags & 16, "a stripe outside of a striped block")
                    block.open()
                    found.append(block)
                    at += block.size
                except Damage as damage:
                    if self.unsure(segment, at):
                        break
                    self.problem(f"blocks at {segment.offset + at}", damage)
                    at = self.next_block(raw, at)
        for block in found:
            if not any(o is not block and o.owner == block.owner and o.first <= block.first and block.last <= o.last
                       and (o.last - o.first, o.version) > (block.last - block.first, block.version) for o in found):
                self.blocks.append(block)
        # A later value overrides an earlier one. So newer parts come last, and among sets the first
        # one comes last.
        self.blocks.sort(key=lambda b: (b.version, b.kind == 1, -b.set))
        for block in self.blocks:
            try:
                if block.kind == 3:
                    self.events += Event.read_all(block.events(), block.count)
                else:
                    for stripe in block.stripes():
                        for number, times, bits in stripe.points(self.sets):
                            self.add(number, times, bits, block.kind == 2)
            except Damage as damage:
                self.problem(f"block {block.first} to {block.last} of {block.owner}", damage)

    @staticmethod
    def next_block(raw, at):
        """Returns the position of the next valid header. After a damaged header, the size of the
        block is unknown, so the reader searches."""
        while True:
            at = raw.find(b"SBLK", at + 1)
            if at < 0:
                return len(raw)
            try:
                need(not Block(raw[at:]).flags & 16, "a stripe")
                return at
            except Damage:
                pass

    def add(self, number, times, bits, singly=False):
        need(number < len(self.points), "an unknown series")
        points = self.single if singly else self.points
        points[number].update((t, b) for t, b in zip(times, bits) if b != MISSING)

    def read_tails(self):
        tails = self.of_kind(KIND_SET_TAIL, KIND_POINT_TAIL, KIND_EVENT_TAIL)
        for segment in sorted(tails, key=lambda s: (s.kind == KIND_SET_TAIL, -s.set, s.number)):
            owner = (segment.kind - 1, segment.set if segment.kind == KIND_SET_TAIL else 0)
            if any(b.owner == owner and b.first <= segment.number <= b.last for b in self.blocks):
                continue
            try:
                self.read_tail(segment)
            except Damage as damage:
                self.problem(f"tail {segment.number} of {owner}", damage)

    def read_tail(self, segment):
        unit = 1
        if segment.kind == KIND_SET_TAIL:
            need(segment.set < len(self.sets), "an unknown set")
            members = self.sets[segment.set]
            unit = 8 + 8 * len(members)
        elif segment.kind == KIND_POINT_TAIL:
            unit = 24
        used = segment.used
        if self.only_synced:
            used = max((n for n, crc in segment.notes if crc32c(segment.content[:n * unit]) == crc), default=0)
            need(used or not any(n for n, _ in segment.notes), "none of its sync notes is right")
        elif self.state == 1:
            right = [n for n, crc in segment.notes if n <= used and crc32c(segment.content[:n * unit]) == crc]
            if len(right) < len(segment.notes):
                used = max(right, default=0)
                self.problem(f"tail {segment.number}", f"what a sync noted of it is not there; {used} are intact")
        content = segment.content[:used * unit]
        need(len(content) == used * unit, "it is longer than its segment")
        if segment.kind == KIND_EVENT_TAIL:
            self.events += Event.read_all(content)
        elif segment.kind == KIND_POINT_TAIL:
            for number, _, t, bits in struct.iter_unpack("<IIqQ", content):
                self.add(number, [t], [bits], True)
        else:
            for t, *bits in struct.iter_unpack(f"<q{len(members)}Q", content):
                for number, value in zip(members, bits):
                    self.add(number, [t], [value])

    # The public functions

    def name(self, number):
        metric, labels = self.series[number]
        inside = ",".join(f"{key}={value}" for key, value in labels)
        return self.metrics[metric]["name"] + (f"{{{inside}}}" if inside else "")

    def last_events(self):
        """Returns the events, with only the last record of each span."""
        last = {e.id: i for i, e in enumerate(self.events) if e.kind == "span" and e.id}
        return [e for i, e in enumerate(self.events) if e.kind != "span" or not e.id or last[e.id] == i]


def main(arguments):
    csv, synced = "--csv" in arguments, "--synced" in arguments
    paths = [a for a in arguments if a not in ("--csv", "--synced")]
    if len(paths) != 1:
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    try:
        recording = Recording(paths[0], synced)
    except (Damage, OSError) as error:
        print(f"{paths[0]}: {error}", file=sys.stderr)
        return 1
    if csv:
        print("time_ns,series,value")
    for number, points in enumerate(recording.points):
        name = recording.name(number)
        if not csv:
            print(f"{name} {len(points)}")
            continue
        name = '"' + name.replace('"', '""') + '"'
        for t in sorted(points):
            print(f"{t},{name},{to_double(points[t])!r}")
    if not csv:
        for event in recording.last_events():
            print(event.kind, event.start, event.end, event.text, *(f"{key}={value}" for key, value in event.labels))
        print(f"{len(recording.series)} series, {sum(map(len, recording.points))} points,"
              f" {len(recording.last_events())} events, {len(recording.blocks)} blocks")
    for problem in recording.problems:
        print(f"{paths[0]}: {problem}", file=sys.stderr)
    return 1 if recording.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
