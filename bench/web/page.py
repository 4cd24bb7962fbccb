"""Measures the page in Chromium, compared with the budgets in docs/page.md. page.mjs prints a line
for each figure."""

import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from peers import say  # noqa: E402

BUILD = os.environ["SONDE_BUILD"]
HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    node = shutil.which("node")
    if not node:
        say("bench/web: no node: the page is not measured")
        return
    environment = os.environ | {
        "SONDE": f"{BUILD}/sonde",
        "PAGE_PACKAGES": f"{BUILD}/web-packages",
        "WEB_TEST_PACKAGES": f"{BUILD}/web-test-packages",
    }
    done = subprocess.run([node, f"{HERE}/page.mjs"], env=environment)
    if done.returncode == 77:
        say("bench/web: skipped; `make test` fetches what it needs")
    elif done.returncode:
        sys.exit(done.returncode)


if __name__ == "__main__":
    main()
