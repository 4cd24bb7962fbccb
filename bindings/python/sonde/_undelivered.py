"""Warns once if nothing that this process emits is recorded: at import if the job's folder does not
exist, else at the end."""

import atexit
import os
import warnings

from ._emit import check, dropped


def warn_if_undelivered() -> None:
    # Does not call libsonde, which would start now, before the program has set its environment.
    folder = os.path.dirname(os.environ.get("SONDE_SOCKET", ""))
    if folder and os.environ.get("SONDE_LEVEL", "0") not in ("", "0") and not os.path.isdir(folder):
        warnings.warn(f"sonde: nothing is recorded: the folder {folder} of the job is not here; in a container, bind it (sonde doctor says how)",
                      RuntimeWarning, stacklevel=3)
    else:
        atexit.register(_warn_at_end)


def _warn_at_end() -> None:
    code, why = check()
    lost = dropped() if code else 0
    if lost:
        warnings.warn(f"sonde: {lost} values are lost: {why}", RuntimeWarning, stacklevel=2)
