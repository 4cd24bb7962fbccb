"""Runs scipy_scale_work.py, then dumps the recorded data for later analysis.

    sonde run --telemetry-level=2 --dump-dir=DIR examples/scipy_scale_work_db_dump.py
    sonde replay DIR/sonde-dump-JOB
"""

from scipy_scale_work import main
from sonde import AnalysisClient


def dump():
    with AnalysisClient() as client:
        for node in client.db_dump():
            print(f"Dump of {node['host']}: {node['result']['status']}, {node['result']['message']}", flush=True)


if __name__ == "__main__":
    main(__doc__.splitlines()[0], at_end=dump)
