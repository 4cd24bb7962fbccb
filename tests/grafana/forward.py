"""Forwards connections until its standard input ends: forward.py FROM TO

Each is a port of loopback (0: any free one) or the path of a Unix socket, which also leads from
one network namespace into another. Prints FROM when it listens.
"""

import asyncio
import os
import sys


def connect(address):
    if address.isdigit():
        return asyncio.open_connection("127.0.0.1", int(address))
    return asyncio.open_unix_connection(address)


async def copy(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.close()  # one end has gone; the other learns it


async def main(listened, target):
    async def forward(reader, writer):
        try:
            there = await connect(target)
            await asyncio.gather(copy(reader, there[1]), copy(there[0], writer))
            there[1].close()
        finally:
            writer.close()

    if listened.isdigit():
        server = await asyncio.start_server(forward, "127.0.0.1", int(listened), backlog=1024)
        listened = server.sockets[0].getsockname()[1]
    else:
        server = await asyncio.start_unix_server(forward, listened, backlog=1024)
    print(listened, flush=True)
    async with server:
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        os._exit(0)  # connections that are open need no end of their own


asyncio.run(main(*sys.argv[1:]))
