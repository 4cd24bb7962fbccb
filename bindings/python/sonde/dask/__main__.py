"""python -m sonde.dask report RECORDING OUT.html: the report of a cluster that has ended."""

import argparse
import sys
from collections.abc import Sequence
from typing import Optional

from .._client import ClientError
from . import report


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m sonde.dask", description="What a Dask cluster did, of its recording.")
    commands = parser.add_subparsers(dest="command", required=True)
    of_report = commands.add_parser("report", help="one HTML file: the tasks of each worker by time, and where the time went")
    of_report.add_argument("recording", help="its path, or the id of a job")
    of_report.add_argument("out", help="the file to write")
    of_report.add_argument("--cluster", help="the scheduler's address, where several clusters shared the job")
    asked = parser.parse_args(arguments)
    try:
        print(report(asked.recording, asked.out, asked.cluster))
    except (ClientError, OSError, ValueError) as error:
        print(f"{parser.prog} report: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
