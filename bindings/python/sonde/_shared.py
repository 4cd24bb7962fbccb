"""Values and arrays of multiprocessing in `collector_args`: the program serves them to its
collectors.

multiprocessing shares them only with its own children, but collectors are children of the nodes'
agents, possibly on other nodes. So a collector gets a Shared object for each of them, and a thread
of the program executes its reads, writes and lock operations. Both sides prove that they know a
random key before either reads a request.
"""

import ctypes
import hmac
import json
import os
import socket
import threading
from multiprocessing import sharedctypes
from typing import Any, Optional

from ._fork_lock import ForkLock

_KEY_BYTES = 32
_PLAIN = (int, float, str, bytes, type(None))
_CTYPES = (ctypes._SimpleCData, ctypes.Array, ctypes.Structure)
# Modules of objects that need Dragon's runtime.
_OF_DRAGON = ("dragon.native.value", "dragon.native.array")
_PROOF_MAX = 256  # bytes of a line from a peer that has not proved the key
_UNPROVED_MAX = 64  # connections without a proof; each has a thread for at most _PROOF_S
_PROOF_S = 10.0
_LINE_MAX = 1 << 24  # bytes of a request or an answer

Told = tuple[list[str], int, bytes]  # the addresses, the port and the key of a server


def is_shared(thing: Any) -> bool:
    """Whether a process that is not a child of multiprocessing needs a Shared object for it."""
    if isinstance(thing, sharedctypes.SynchronizedBase):
        return True
    if isinstance(thing, _CTYPES):
        # objects of multiprocessing have it, except RawValue and RawArray, which are copied
        return hasattr(thing, "_wrapper")
    return any(kind.__module__ in _OF_DRAGON for kind in type(thing).__mro__)


def _packed(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"bytes": value.decode("latin-1")}
    if isinstance(value, (list, tuple)):
        return [_packed(v) for v in value]
    if isinstance(value, _PLAIN):
        return value
    raise TypeError(f"a {type(value).__name__} cannot be shared with a collector")


def _unpacked(value: Any) -> Any:
    if isinstance(value, dict):
        return value["bytes"].encode("latin-1")
    return [_unpacked(v) for v in value] if isinstance(value, list) else value


class _Line:
    """A connection that carries one line of JSON each way."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._file = connection.makefile("rb")

    def send(self, value: Any) -> None:
        self.connection.sendall(json.dumps(value).encode() + b"\n")

    def receive(self, most: int = _LINE_MAX) -> Any:
        line = self._file.readline(most)
        if not line.endswith(b"\n"):
            raise ConnectionError("the program has closed the connection")
        return json.loads(line)

    def close(self) -> None:
        self._file.close()
        self.connection.close()

    def proves_key(self, key: bytes, first: bool) -> bool:
        """Proves to the peer that this end knows the key, and checks the peer's proof: each end
        sends a nonce and answers the other one's. `first`: this end sends first."""
        nonce = os.urandom(_KEY_BYTES).hex()

        def proof(of: str, by: str) -> str:
            return hmac.new(key, f"{by} {of}".encode(), "sha256").hexdigest()

        me, other = ("program", "collector") if first else ("collector", "program")
        self.send(nonce)
        theirs = str(self.receive(_PROOF_MAX))[: 2 * _KEY_BYTES]
        if not first:
            self.send(proof(theirs, me))
        good = hmac.compare_digest(str(self.receive(_PROOF_MAX)).encode(), proof(nonce, other).encode())
        if first and good:
            self.send(proof(theirs, me))
        return good


class Server:
    """Serves the shared objects of this process until it ends.

    In a job of one node, it listens on the loopback address only.
    """

    def __init__(self, nodes: list[str]) -> None:
        self._things: list[Any] = []
        self._key = os.urandom(_KEY_BYTES)
        self._listening = socket.create_server(("127.0.0.1" if len(nodes) < 2 else "", 0))
        self._unproved = threading.BoundedSemaphore(_UNPROVED_MAX)
        self.owner = os.getpid()
        threading.Thread(target=self._accept, name="sonde shared values", daemon=True).start()

    def told(self) -> Told:
        return ["127.0.0.1", socket.gethostname()], self._listening.getsockname()[1], self._key

    def add(self, thing: Any) -> int:
        for number, known in enumerate(self._things):
            if known is thing:
                return number
        self._things.append(thing)
        return len(self._things) - 1

    def _accept(self) -> None:
        while True:
            connection = self._listening.accept()[0]
            if self._unproved.acquire(blocking=False):
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()
            else:
                connection.close()

    def _serve(self, connection: socket.socket) -> None:
        line = _Line(connection)
        held: list[Any] = []  # locks
        try:
            if not self._is_proved(line):
                return
            while True:
                number, operation, *given = line.receive()
                try:
                    answer = [True, _packed(self._do(self._things[number], operation, _unpacked(given), held))]
                except Exception as error:
                    answer = [False, type(error).__name__, str(error)]
                line.send(answer)
        except (OSError, ValueError):
            pass  # the collector has ended
        finally:
            for lock in held:  # only this thread can release them
                lock.release()
            line.close()

    def _is_proved(self, line: _Line) -> bool:
        try:
            line.connection.settimeout(_PROOF_S)
            good = line.proves_key(self._key, first=True)
            line.connection.settimeout(None)
            return good
        finally:
            self._unproved.release()

    @staticmethod
    def _do(thing: Any, operation: str, given: list[Any], held: list[Any]) -> Any:
        if operation == "acquire":
            lock = thing.get_lock()
            got = lock.acquire() if given == [True, None] else lock.acquire(*given)
            if got:
                held.append(lock)
            return bool(got)
        if operation == "release":
            lock = thing.get_lock()
            held.remove(lock)
            return lock.release()
        if operation == "len":
            return len(thing)
        if operation in ("item", "set item"):
            at = slice(*given[0]) if isinstance(given[0], list) else given[0]
            if operation == "item":
                return thing[at]
            thing[at] = given[1]
            return None
        if given[0].startswith("_"):
            raise AttributeError(given[0])
        if operation == "attribute":
            return getattr(thing, given[0])
        return setattr(thing, given[0], given[1])


class _Lock:
    def __init__(self, shared: "Shared") -> None:
        self._shared = shared

    def acquire(self, block: bool = True, timeout: Optional[float] = None) -> bool:
        return bool(self._shared._ask("acquire", block, timeout))

    def release(self) -> None:
        self._shared._ask("release")

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class Shared:
    """A Value or an Array of the program, as seen by a collector."""

    _told: Told
    _number: int
    _line: Optional[_Line]

    def __init__(self, told: Told, number: int) -> None:
        self.__dict__.update(_told=told, _number=number, _line=None)

    def _connected(self) -> _Line:
        if self._line is None:
            addresses, port, key = self._told
            for address in addresses:
                line = None
                try:
                    line = _Line(socket.create_connection((address, port), timeout=_PROOF_S))
                    if line.proves_key(key, first=False):
                        line.connection.settimeout(None)
                        self.__dict__["_line"] = line
                        return line
                except (OSError, ValueError):
                    pass  # another program listens at that address
                if line:
                    line.close()
            raise ConnectionError("the program that has started the collector cannot be reached")
        return self._line

    def _ask(self, operation: str, *given: Any) -> Any:
        line = self._connected()
        try:
            line.send([self._number, operation, *_packed(given)])
            good, *answer = line.receive()
        except (OSError, ValueError):
            self.__dict__["_line"] = None
            line.close()
            raise
        if good:
            return _unpacked(answer[0])
        kind = {k.__name__: k for k in (AttributeError, IndexError, TypeError, ValueError, OverflowError)}.get(answer[0], RuntimeError)
        raise kind(answer[1])

    def get_lock(self) -> _Lock:
        return _Lock(self)

    def get_obj(self) -> "Shared":
        return self

    def acquire(self, block: bool = True, timeout: Optional[float] = None) -> bool:
        return self.get_lock().acquire(block, timeout)

    def release(self) -> None:
        self.get_lock().release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def __getattr__(self, name: str) -> Any:
        return self._ask("attribute", name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._ask("set attribute", name, value)

    def __len__(self) -> int:
        return int(self._ask("len"))

    def __getitem__(self, at: Any) -> Any:
        return self._ask("item", [at.start, at.stop, at.step] if isinstance(at, slice) else at)

    def __setitem__(self, at: Any, value: Any) -> None:
        self._ask("set item", [at.start, at.stop, at.step] if isinstance(at, slice) else at, value)


_lock = ForkLock()
_server: Optional[Server] = None


def server(nodes: list[str]) -> Server:
    """The server of this process; a forked child has its own."""
    global _server
    with _lock:
        if _server is None or _server.owner != os.getpid():
            _server = Server(nodes)
        return _server
