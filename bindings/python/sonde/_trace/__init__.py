"""`sonde run --trace python`: records functions, garbage collections and imports of a program that
knows nothing of sonde (docs/trace.md). hook/sitecustomize.py starts it with the interpreter.

These modules add to the start of every traced process, so they import little: not `typing`, not
`re`, and `sonde._emit` without the package around it. (`from . import functions` would import that
package, too.)
"""

import atexit
import os

from sonde._emit import level

from .functions import start as start_functions
from .garbage_collection import start as start_garbage_collection
from .imports import start as start_imports

DEFAULT_FUNCTIONS = "__main__.*"


def start() -> None:
    """Traces this process to its end, if it belongs to a job with a level."""
    if level() == 0:
        return
    patterns = os.environ.get("SONDE_TRACE_PYTHON") or DEFAULT_FUNCTIONS
    stops = [start_functions(patterns.split(",")), start_garbage_collection(), start_imports()]
    # Registered first, so that it runs after the exit handlers of the program.
    for stop in stops:
        atexit.register(stop)
