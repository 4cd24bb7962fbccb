"""`sonde plot`: the command has read its options and found the runs; this program draws and saves.

The argument is the path of the picture. The request is one JSON object on standard input, because
it may have the token of an address:

    kind       lines, boxes, heatmap or spans
    what       expressions, or names of spans
    runs       addresses of jobs and paths of recordings
    strict     exit with 4 if the answer lacks nodes

Its other members are arguments of the function of sonde.plot.
"""

import errno
import json
import os
import sys
from typing import Any

_FAILED, _USAGE, _PARTLY, _INTERRUPTED = 1, 2, 4, 130


def _fail(words: object, code: int = _FAILED) -> int:
    print(f"sonde: error: {words}", file=sys.stderr)
    return code


def draw(request: dict[str, Any], output: str) -> int:
    """Draws and saves; returns the exit code."""
    from .. import plot
    from .._client import ClientError
    from . import _figure

    kind, what, strict = (request.pop(name) for name in ("kind", "what", "strict"))
    try:
        _figure.check_format(output)
        _figure.library("matplotlib").use("Agg")
        with plot.noted() as notes:
            axes = getattr(plot, kind)(what, request.pop("runs"), **request)
        figure = (axes if isinstance(axes, list) else [axes])[0].figure
        plot.save(figure, output)
    except ImportError as error:
        return _fail(f"{error}; {sys.executable} is the Python that sonde plot runs, and --python, SONDE_PYTHON or `python` in the configuration file names another one")
    except ClientError as error:
        less = "; --downsample 10s-avg draws fewer points" if error.errno == errno.EFBIG else ""
        return _fail(f"{error}{less}")
    except ValueError as error:
        return _fail(error, _USAGE)
    except OSError as error:
        return _fail(f"cannot write {output}: {error.strerror or error}")
    for note in notes:
        print(f"sonde: {note}", file=sys.stderr)
    return _PARTLY if strict and any(note.startswith(plot.MISSING) for note in notes) else 0


def main() -> int:
    os.environ["MPLBACKEND"] = "Agg"  # a picture in a file needs no display
    try:
        return draw(json.load(sys.stdin), sys.argv[1])
    except KeyboardInterrupt:
        return _INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
