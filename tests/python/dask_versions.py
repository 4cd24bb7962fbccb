"""Runs a test with several versions of Dask at the same time, because most of it is waiting for
processes that start.

    DASKS="newest /a/newest;oldest /a/oldest:/a/newest" dask_versions.py test_dask.py

Prints the complete output of each version, in the order of DASKS. Fails if one fails; returns 77
(skipped) if all are skipped.
"""

import os
import signal
import subprocess
import sys


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    running = []
    try:
        for dask in os.environ["DASKS"].split(";"):
            name, path = dask.split(" ", 1)
            running.append((name, subprocess.Popen([sys.executable, *sys.argv[1:]], env=os.environ | {"PYTHONPATH": path}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)))
        codes = set()
        for name, process in running:
            said = process.communicate()[0].decode(errors="replace")
            codes.add(process.returncode)
            print(f"== Dask: {name}\n{said}", flush=True)
    finally:
        for _, process in running:
            process.kill()
    sys.exit(77 if codes == {77} else 0 if codes <= {0, 77} else 1)


main()
