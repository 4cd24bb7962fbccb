"""A slow, lossy network link for kernels without such a queueing discipline: this process forwards
every frame between a host and the bridge.

    host eth0 ── v-HOST  ─ raw socket ─ [this process: delay, loss] ─ tap ─ br0

    slow_link.py plain INTERFACE
        switches off the offloading of checksums and segmentation, so that the frames are complete

    slow_link.py carry PORT BRIDGE DELAY_MS LOSS_PERCENT
        prints "ready", forwards frames until its standard input ends, then restores the link
"""

import ctypes
import errno
import fcntl
import heapq
import os
import random
import select
import socket
import struct
import subprocess
import sys
import time

FRAME_MAX = 65536
ETH_P_ALL = 3
SOL_PACKET, PACKET_IGNORE_OUTGOING = 263, 23
SIOCETHTOOL, TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x8946, 0x400454CA, 0x0002, 0x1000
OFFLOADS = (0x17, 0x1F, 0x24)  # ETHTOOL_STXCSUM, ETHTOOL_STSO, ETHTOOL_SGSO
FRAMES_MAX = 20000  # in flight; further frames are dropped, as on a full link
# Errors of a link that is down; the frame is dropped.
GONE = (errno.ENETDOWN, errno.ENXIO, errno.EIO, errno.ENOBUFS)


def plain(interface):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for command in OFFLOADS:
            value = ctypes.create_string_buffer(struct.pack("II", command, 0), 8)
            fcntl.ioctl(s, SIOCETHTOOL, struct.pack("16sP", interface.encode(), ctypes.addressof(value)))


def carry(port, bridge, delay_ms, loss_percent):
    tap_name = "s" + port
    tap = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", tap_name.encode(), IFF_TAP | IFF_NO_PI))
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    raw.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    raw.bind((port, 0))

    def ip(*words):
        subprocess.run(["ip", "link", "set", "dev", *words], check=True)

    ip(port, "nomaster")
    ip(tap_name, "master", bridge)
    ip(tap_name, "up")
    print("ready", flush=True)
    chance = random.Random(1)
    on_the_way = []  # (due, number, how, frame)
    number = 0
    while True:
        wait = max(0.0, on_the_way[0][0] - time.monotonic()) if on_the_way else None
        readable, _, _ = select.select([tap, raw, sys.stdin], [], [], wait)
        if sys.stdin in readable:
            break
        for source, send in ((tap, raw.send), (raw, lambda frame: os.write(tap, frame))):
            if source not in readable:
                continue
            try:
                frame = os.read(tap, FRAME_MAX) if source is tap else raw.recv(FRAME_MAX)
            except OSError as e:
                if e.errno not in GONE:
                    raise
                continue
            if chance.random() * 100 >= loss_percent and len(on_the_way) < FRAMES_MAX:
                number += 1
                heapq.heappush(on_the_way, (time.monotonic() + delay_ms / 1000, number, send, frame))
        while on_the_way and on_the_way[0][0] <= time.monotonic():
            _, _, send, frame = heapq.heappop(on_the_way)
            try:
                send(frame)
            except OSError as e:
                if e.errno not in GONE:
                    raise
    ip(port, "master", bridge)


if __name__ == "__main__":
    if sys.argv[1] == "plain":
        plain(sys.argv[2])
    else:
        carry(sys.argv[2], sys.argv[3], float(sys.argv[4]), float(sys.argv[5]))
