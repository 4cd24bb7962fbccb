"""soak_emitter (emitter.c) in Python, with the same arguments and the same account."""

import mmap
import os
import signal
import struct
import sys
import time

import sonde

POINTS_MAX, SPANS_MAX = 1 << 24, 1 << 20
ROUND_S, BURST_EVERY, SPAN_EVERY = 0.02, 250, 5
POINTS, ADDS, SPANS, DROPPED, ENDED = (
    0,
    16,
    32,
    48,
    56,
)  # offsets in the account; "done" is 8 bytes after "begun"

stopping = False


def on_term(*_):
    global stopping
    stopping = True


class Account:
    def __init__(self, path):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.ftruncate(fd, 64)
        self.map = mmap.mmap(fd, 64)
        os.close(fd)

    def write(self, at, number):
        struct.pack_into("=Q", self.map, at, number)


def main():
    path, slot, generation, rate = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    signal.signal(signal.SIGTERM, on_term)
    account = Account(path)
    emitted, added = sonde.gauge("soak_points", tags={"slot": slot}), sonde.counter(
        "soak_cell", tags={"slot": slot}
    )
    points = spans = round_number = 0
    while not stopping:
        round_number += 1
        for _ in range(rate if round_number % BURST_EVERY == 0 else -(-rate // round(1 / ROUND_S))):
            if stopping or points == POINTS_MAX:
                break
            account.write(POINTS, points + 1)
            emitted(generation * POINTS_MAX + points)
            points += 1
            account.write(POINTS + 8, points)
            account.write(ADDS, points)
            added.add(1)
            account.write(ADDS + 8, points)
            account.write(DROPPED, sonde.dropped())
        if round_number % SPAN_EVERY == 0 and spans < SPANS_MAX:
            end = time.time_ns()
            account.write(SPANS, spans + 1)
            sonde._emit.span_at(
                "soak_span", end - (generation * SPANS_MAX + spans), end, {"slot": slot}
            )
            spans += 1
            account.write(SPANS + 8, spans)
            account.write(DROPPED, sonde.dropped())
        time.sleep(ROUND_S)
    account.write(ENDED, 1)


main()
