#!/usr/bin/env python3
"""emitter.py LIBSONDE - reads lines from standard input and emits their data through the public
library. The tests of the format run it under `sonde run`.

point NAME TIME BITS | row TIME NAME=BITS … | span START END TEXT KEY=VALUE … | begin TEXT KEY=VALUE
… | end | note TEXT KEY=VALUE … | unit NAME UNIT | wait FILE

Numbers are decimal, BITS hexadecimal. `wait` makes FILE and waits until it is removed. The ring has
room for all lines of a test, so nothing is dropped, however late the agent is.
"""
import ctypes
import os
import struct
import sys
import time

os.environ["SONDE_RING_BYTES"] = str(64 << 20)
library = ctypes.CDLL(sys.argv[1])
library.sonde_dropped.restype = ctypes.c_uint64
handles, groups = {}, {}


class Tag(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("value", ctypes.c_char_p)]


def value(bits):
    return struct.unpack("<d", struct.pack("<Q", int(bits, 16)))[0]


def handle(name):
    if name not in handles:
        handles[name] = library.sonde_gauge(name.encode(), b"")
        if not handles[name]:
            sys.exit(f"emitter.py: no handle for {name}")
    return handles[name]


def tags(words):
    pairs = [word.encode().split(b"=", 1) for word in words]
    return (Tag * max(len(pairs), 1))(*(Tag(*pair) for pair in pairs)), ctypes.c_size_t(len(pairs))


for line in sys.stdin:
    what, *words = line.split()
    if what == "point":
        library.sonde_put_point_at(handle(words[0]), ctypes.c_double(value(words[2])), ctypes.c_int64(int(words[1])))
    elif what == "row":
        names, bits = zip(*(word.split("=") for word in words[1:]))
        if names not in groups:
            members = (ctypes.c_uint32 * len(names))(*map(handle, names))
            groups[names] = library.sonde_group(members, ctypes.c_size_t(len(names)))
        values = (ctypes.c_double * len(names))(*map(value, bits))
        library.sonde_put_row_at(groups[names], values, ctypes.c_int64(int(words[0])))
    elif what == "span":
        start, end, text, *labels = words
        library.sonde_span_at(text.encode(), ctypes.c_int64(int(start)), ctypes.c_int64(int(end)), *tags(labels))
    elif what == "begin":
        library.sonde_span_begin_tags(words[0].encode(), *tags(words[1:]))
    elif what == "end":
        library.sonde_span_end()
    elif what == "note":
        library.sonde_annotate_tags(words[0].encode(), *tags(words[1:]))
    elif what == "unit":
        library.sonde_gauge(words[0].encode(), words[1].encode())
    elif what == "wait":
        open(words[0], "w").close()
        while os.path.exists(words[0]):
            time.sleep(0.01)
if library.sonde_dropped():
    sys.exit(f"emitter.py: {library.sonde_dropped()} points were dropped")
