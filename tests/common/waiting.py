"""How tests wait: for a condition, never for a fixed time."""

import pathlib
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


def has_ended(pid):
    """Returns True if the process has ended; a zombie has, because its files are closed."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rsplit(")", 1)[1].split()[0] in "ZX"
