"""Forwards connections until its standard input ends: forward.py FROM TO

FROM and TO are ports of loopback or paths of Unix sockets; port 0 is any free port. Unix sockets
also connect different network namespaces. The program prints FROM when it listens.
"""

import os
import socket
import sys
import threading


def made(address):
    if address.isdigit():
        return socket.socket(), ("127.0.0.1", int(address))
    return socket.socket(socket.AF_UNIX), address


def copy(source, sink):
    how = socket.SHUT_WR
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        how = socket.SHUT_RDWR  # one end is closed, so the other one is closed, too
    try:
        sink.shutdown(how)
    except OSError:
        pass


def forward(here, target):
    there, address = made(target)
    with here, there:
        there.connect(address)
        back = threading.Thread(target=copy, args=(there, here), daemon=True)
        back.start()
        copy(here, there)
        back.join()


def main(listened, target):
    server, address = made(listened)
    server.bind(address)
    server.listen(1024)
    name = server.getsockname()
    print(name if isinstance(name, str) else name[1], flush=True)

    def accept():
        while True:
            here, _ = server.accept()
            threading.Thread(target=forward, args=(here, target), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.read()
    os._exit(0)  # does not wait for open connections


main(*sys.argv[1:])
