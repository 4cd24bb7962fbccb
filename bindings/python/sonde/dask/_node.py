"""The agent on each host of workers, except the scheduler's host: it lives as long as the host has
workers.

    worker ─┐                      ┌──────────────── keeper (this module as a program) ─┐
    worker ─┼──Unix socket────────▶│  stdin of `sonde node` ─▶ agent, relay ──TCP──▶ hub │
    worker ─┘                      └──────────────────────────────────────────────────────┘

If no keeper listens at the socket, a worker starts it, under a lock, so that only one worker does.
The keeper is a process of its own that survives any worker. Each worker holds a connection to it.
When there has been no connection for LINGER_S (a restart takes less), or on request, the keeper
closes the standard input of `sonde node`, which completes the recording and ends.
"""

import fcntl
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any, Optional

from sonde import _service

LINGER_S = 60.0
START_S = 30.0
END_S = 20.0
BEAT_S = 5.0
ORPHAN_MS = 60_000
LINE_MAX = 65536


def address(job: str) -> str:
    """Returns the path of the keeper's socket, in a private folder."""
    folder = os.path.join(os.environ.get("TMPDIR") or tempfile.gettempdir(), f"sonde-dask-{os.getuid()}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    about = os.lstat(folder)
    if about.st_uid != os.getuid() or about.st_mode & 0o077 or not os.path.isdir(folder) or os.path.islink(folder):
        raise RuntimeError(f"{folder} is not a folder of yours alone: remove it, or set TMPDIR")
    return os.path.join(folder, job)


# ---- on workers


def join(told: dict[str, Any]) -> socket.socket:
    """Keeps an agent running on this host while the returned connection is open. A RuntimeError
    gives the reason of a failure. Blocks, so call it in a thread."""
    path = address(told["job"])
    with open(path + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        connection = _connected(path)
        if connection is None:
            _start(path, told)
            connection = _connected(path)
    if connection is None:
        raise RuntimeError(f"sonde's process on host {socket.gethostname()} has ended at once")
    return connection


def dismiss(connection: socket.socket) -> None:
    """Ends the agent, and waits for its end."""
    with connection:
        try:
            connection.settimeout(END_S)
            connection.send(b"e")
            connection.recv(1)
        except OSError:
            pass  # another worker was faster, or the timeout has passed


def _connected(path: str) -> Optional[socket.socket]:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
        return connection
    except OSError:
        connection.close()
        return None


def _start(path: str, told: dict[str, Any]) -> None:
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])}
    keeper = subprocess.Popen(
        [sys.executable, "-m", "sonde.dask._node", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, env=environment, cwd="/"
    )  # fmt: skip
    assert keeper.stdin and keeper.stdout
    with keeper.stdin, keeper.stdout:
        keeper.stdin.write(json.dumps(told).encode())
        keeper.stdin.close()
        answer = keeper.stdout.readline().decode(errors="replace").strip()
    if answer != "ready":
        keeper.wait()
        raise RuntimeError(f"sonde cannot work on host {socket.gethostname()}: {answer or 'its process has ended at once'}")


# ---- the keeper


class Keeper:
    def __init__(self, path: str, told: dict[str, Any]) -> None:
        self.path = path
        self.node = subprocess.Popen([_service.command(), "node"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.said = b""
        lines = ["sonde-node 2", *(f"{name} {told[name]}" for name in ("job", "folder", "token", "key", "record") if told[name])]
        lines += [f"agent {argument}" for argument in told["agent"]]
        lines += [f"parent {told['parent']}", f"command {told['command']}", f"beat-ms {int(BEAT_S * 1000)}", f"orphan-ms {ORPHAN_MS}", "stop-ms 10000"]
        self.tell("\n".join([*lines, "go"]))

    def tell(self, text: str) -> bool:
        assert self.node.stdin
        try:
            self.node.stdin.write(text.encode() + b"\n")
            self.node.stdin.flush()
            return True
        except OSError:
            return False

    def hear(self) -> Optional[list[str]]:
        """Returns complete lines of the node's output; None if the node has ended."""
        assert self.node.stdout
        piece = os.read(self.node.stdout.fileno(), LINE_MAX)
        *lines, self.said = (self.said + piece).split(b"\n")
        return [line.decode(errors="replace") for line in lines] if piece else None

    def wait_ready(self) -> str:
        """Returns "" on success, else the error."""
        assert self.node.stdout
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if not select.select([self.node.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                break
            lines = self.hear()
            if lines is None:
                return "sonde node has ended"
            for line in lines:
                word, _, rest = line.removeprefix("sonde-node ").partition(" ")
                if word == "ready":
                    return ""
                if word == "error":
                    return rest
        return "sonde node is not ready in time"

    def serve(self, listener: socket.socket) -> list[socket.socket]:
        """Serves workers until there has been none for LINGER_S, a worker requests the end, or the
        node has ended. Returns the remaining connections."""
        workers: list[socket.socket] = []
        alone_since = time.monotonic()
        assert self.node.stdout
        while workers or time.monotonic() < alone_since + LINGER_S:
            ready = select.select([listener, self.node.stdout, *workers], [], [], BEAT_S)[0]
            if not self.tell("beat") or (self.node.stdout in ready and self.hear() is None):
                return workers
            if listener in ready:
                workers.append(listener.accept()[0])
            for worker in [worker for worker in workers if worker in ready]:
                try:
                    said = worker.recv(1)
                except OSError:
                    said = b""
                if said:
                    return workers
                workers.remove(worker)
                worker.close()
                alone_since = time.monotonic()
        return []

    def end(self) -> None:
        assert self.node.stdin
        try:
            self.node.stdin.close()
        except OSError:
            pass
        while (lines := self.hear()) is not None:
            for line in lines:
                if line.startswith("sonde-node stays"):
                    print(f"sonde: the recording of host {socket.gethostname()} {line[len('sonde-node '):]}", file=sys.stderr, flush=True)
        self.node.wait()


def main(path: str) -> None:
    told = json.load(sys.stdin)
    try:
        keeper = Keeper(path, told)
    except (OSError, RuntimeError) as error:
        print(error, flush=True)
        return
    wrong = keeper.wait_ready()
    if wrong:
        keeper.end()
        print(wrong, flush=True)
        return
    if os.path.exists(path):
        os.unlink(path)  # the socket of a killed keeper, because this process holds the lock
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        print("ready", flush=True)
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1):
            os.dup2(null, descriptor)
        workers = keeper.serve(listener)
        os.unlink(path)
    keeper.end()
    for worker in workers:
        worker.close()  # the waiting worker sees that its connection is closed


if __name__ == "__main__":
    main(sys.argv[1])
