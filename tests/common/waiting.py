"""How tests wait: for a condition, never for a fixed time."""

import atexit
import os
import pathlib
import signal
import time

# The limit of every wait. It only ends a test that hangs, so it is generous: 64 programs may have
# to start on a machine that is busy with other work.
PATIENCE_S = 300


def until(condition, words, pause_s=0.01):
    """Returns the condition's value once it is true. After PATIENCE_S, fails with `words`, or with
    what they return. If a file or a process that the condition reads disappears meanwhile, the
    condition is asked again."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            value = condition()
        except (FileNotFoundError, ProcessLookupError):
            if time.monotonic() > end:
                raise
            value = None
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"never came true: {words() if callable(words) else words}")
        time.sleep(pause_s)


def _state(task):
    """Returns the letter of a process's or a thread's state, from its folder in /proc."""
    return (pathlib.Path(task) / "stat").read_text().rsplit(")", 1)[1].split()[0]


def has_ended(pid):
    """Returns True if the process has ended; a zombie has, because its files are closed."""
    try:
        return _state(f"/proc/{pid}") in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def stop_process(pid):
    """Stops a process. Returns once all of its threads stand still, or the process has ended: a
    thread that runs on another processor may finish its work after kill() has returned. When the
    test ends, the process continues, because a stopped process cannot see that it has to end."""
    os.kill(pid, signal.SIGSTOP)
    atexit.register(continue_process, pid)
    until(lambda: has_ended(pid) or all(_state(task) in "TtZX" for task in pathlib.Path(f"/proc/{pid}/task").iterdir()), f"process {pid} stands still")


def continue_process(pid):
    try:
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        pass
