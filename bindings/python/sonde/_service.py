"""Runs sonde for a program that was not started by `sonde run`: agents, aggregator and recording,
until this process ends.

A service is `sonde run` around a command that only waits. The command prints its environment, which
`sonde run` made, and then reads a pipe that only this process can write to. When this process ends,
for whatever reason, the pipe is closed, the command ends, and `sonde run` cleans up as after any
command. On the nodes of an allocation the service starts agents, too.

    this process ──pipe──▶ sh (waits) ◀── sonde run ──▶ agent, aggregator, other nodes
                 ◀──SONDE_SOCKET=…───┘
"""

import atexit
import json
import os
import select
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

from ._fork_lock import ForkLock

START_TIMEOUT_S = 60.0  # until the agents serve; `sonde run` gives up on a node after 10 s
STOP_TIMEOUT_S = 60.0  # until the recording is complete
_TITLE_MAX = 1000  # characters
_ENVIRONMENT_MAX = 4 << 20  # bytes of the environment

_lock = ForkLock()
_running: "Optional[Service]" = None

# An entry without a name ends the list.
_WAIT = "env -0; printf '\\0'; exec >/dev/null; exec cat"


def command() -> str:
    """Returns the path of `sonde`: from PATH, else from the scripts folder of this Python."""
    beside = os.path.join(sysconfig.get_path("scripts"), "sonde")
    found = shutil.which("sonde") or (beside if os.access(beside, os.X_OK) else None)
    if found is None:
        raise RuntimeError(f"the command sonde is neither in PATH nor at {beside}")
    return found


def _title() -> str:
    """Returns the title for `sonde status`: the notebook, else the program that uses the
    library."""
    notebook = os.environ.get("JPY_SESSION_NAME") or getattr(sys.modules.get("__main__"), "__vsc_ipynb_file__", None)
    if notebook:
        return f"notebook {notebook}"[:_TITLE_MAX]
    if "ipykernel" in sys.modules:
        return f"notebook in {os.getcwd()}"[:_TITLE_MAX]
    return shlex.join(getattr(sys, "orig_argv", None) or [sys.executable, *sys.argv])[:_TITLE_MAX]


class Service:
    """A running service; the constructor starts it. `environment` holds the variables of a command
    under `sonde run` whose names begin with SONDE_.

    `config` is the path of a configuration file, or its contents as a mapping. `options` are
    further options of `sonde run`. `without` names environment variables to remove. Raises
    RuntimeError if the service cannot start; the reason is on standard error.
    """

    def __init__(
        self, level: int, config: Union[str, Mapping[str, Any], None] = None, options: Sequence[str] = (), timeout_s: float = START_TIMEOUT_S,
        without: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self._owner = os.getpid()
        self.environment: dict[str, str] = {}
        self._before: dict[str, Optional[str]] = {}
        words = [command(), "run", "--quiet", f"--telemetry-level={level}", *options]
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", prefix="sonde-") as file:
            if isinstance(config, str):
                words.append(f"--config={config}")
            elif config is not None:
                json.dump(dict(config), file)  # JSON is valid YAML
                file.flush()
                words.append(f"--config={file.name}")
            program = getattr(sys, "orig_argv", None) or [sys.executable, *sys.argv]
            # A session of its own, because this process decides about signals that its terminal
            # sends (Ctrl-C).
            self._process = subprocess.Popen(
                [*words, f"--title={_title()}", "--", "/bin/sh", "-c", _WAIT, *program],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
                env={name: value for name, value in os.environ.items() if name not in without},
            )  # fmt: skip
            os.register_at_fork(after_in_child=self._let_go)
            try:
                self.environment = self._read_environment(time.monotonic() + timeout_s)
            except BaseException:
                self.stop()
                raise
        self._before = {name: os.environ.get(name) for name in self.environment}
        os.environ.update(self.environment)
        atexit.register(self.stop)

    def _read_environment(self, deadline: float) -> dict[str, str]:
        assert self._process.stdout is not None
        fd, said = self._process.stdout.fileno(), b""
        while b"\0\0" not in said:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([fd], [], [], left)[0]:
                raise RuntimeError("sonde run is not ready in time")
            piece = os.read(fd, 65536)
            said += piece
            if not piece or len(said) > _ENVIRONMENT_MAX:
                raise RuntimeError("sonde run could not start: see its message on standard error")
        entries = (os.fsdecode(entry).partition("=") for entry in said.split(b"\0\0")[0].split(b"\0"))
        found = {name: value for name, _, value in entries if name.startswith("SONDE_")}
        if os.environ.get("SONDE_CONFIG") != found.get("SONDE_CONFIG"):
            found.pop("SONDE_CONFIG", None)  # a temporary file of this process
        if found.get("SONDE_LEVEL", "0") == "0":
            raise RuntimeError("the agent could not start: see its message on standard error")
        return found

    def _let_go(self) -> None:
        """Closes the pipe in a forked child, because only the parent keeps the service alive."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except OSError:
            pass

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Stops the service and waits until its recording is complete. Does nothing on a second
        call, or in another process than the one that started the service."""
        if os.getpid() != self._owner or self._process.returncode is not None:
            return
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.terminate()  # it ends by itself, but later
        self._process.stdout.close()
        for name, value in self._before.items():
            if os.environ.get(name) == self.environment[name]:
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value

    @property
    def runs(self) -> bool:
        return os.getpid() == self._owner and self._process.poll() is None


def start(level: int, config: Union[str, Mapping[str, Any], None] = None, timeout_s: float = START_TIMEOUT_S) -> None:
    """Starts the service of this process, unless it has one."""
    global _running
    with _lock:
        if _running is None or not _running.runs:
            _running = Service(level, config, timeout_s=timeout_s)


def stop() -> bool:
    """Stops the service if this process started it; returns False if there is none."""
    with _lock:
        if _running is None or not _running.runs:
            return False
        _running.stop()
        return True
