"""Draws a dashboard as a PNG with Grafana's packages in Chromium, without a Grafana server.

export SONDE_DASHBOARDS=build/grafana/dashboards GRAFANA_PACKAGES=build/grafana-packages
python3 tests/grafana/draw.py $(sonde token --url) node docs/grafana-nodes.png
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from urllib.parse import unquote

import backend
from backend import PATIENCE_S
from packages import bundle, moment

PAGE = """<!doctype html><meta charset="utf-8"><style>body {{ margin: 0; }}</style>
<div id="root"></div>
<script>window.grafanaBootData = {{ settings: {{}}, user: {{}}, navTree: [] }};</script>
<img src="/wait" hidden>
<script type="application/json" id="asked">{asked}</script><script src="/page.js"></script>"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--light", action="store_true", help="Grafana's light theme")
    parser.add_argument("--size", default="1400x900", help="width and height in pixels")
    parser.add_argument("--range", type=float, default=300, help="length of the range until now, in seconds")
    parser.add_argument("--panels", type=int, default=30, help="maximum number of panels")
    parser.add_argument("url", help="address of sonde, with the token as password")
    parser.add_argument("dashboard", help="job, node, gpu or custom")
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("variables", nargs="*", help="NAME=VALUE,VALUE…")
    o = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="sonde-grafana-")
    bundle(
        "page.jsx",
        f"{folder}/page.js",
        "--jsx=automatic",
        "--platform=browser",
        "--format=iife",
        "--main-fields=browser,module,main",
        "--minify",
        "--loader:.css=text",
        '--define:process.env.NODE_ENV="production"',
        "--define:global=globalThis",
    )
    dashboard = json.loads(
        pathlib.Path(os.environ["SONDE_DASHBOARDS"], f"{o.dashboard}.json").read_text()
    )
    now = time.time()
    chosen = {name: value.split(",") for name, _, value in (v.partition("=") for v in o.variables)}
    asked = {
        "dashboard": dashboard,
        "range": {"from": moment(now - o.range), "to": moment(now)},
        "mode": "light" if o.light else "dark",
        "chosen": chosen,
        "panels": o.panels,
    }
    page = PAGE.format(asked=json.dumps(asked).replace("<", "\\u003c")).encode()
    script = pathlib.Path(folder, "page.js").read_bytes()
    source = backend.stand_in(backend.settings(o.url))
    drawn, failed = threading.Event(), []

    def answer(method, path, query, body, headers):
        if path == "/page.js":
            return 200, script, ("Content-Type", "text/javascript")
        if path == "/":
            return 200, page, ("Content-Type", "text/html")
        if path == "/drawn":
            failed.append(unquote(query))
            drawn.set()
            return 200, b""
        if path == "/wait":
            return (200, b"") if drawn.wait(PATIENCE_S) else (500, b"")
        if path.startswith("/public/"):
            return 404, b""  # Grafana's fonts, which are not needed
        return source.answer(method, path, query, body, headers)

    server = backend.Listener(answer)
    try:
        subprocess.run(
            [
                "chromium",
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                *(["--enable-logging=stderr"] if os.environ.get("SONDE_VERBOSE") else []),
                "--force-device-scale-factor=1",
                f"--user-data-dir={folder}/profile",
                f"--window-size={o.size.replace('x', ',')}",
                f"--timeout={PATIENCE_S * 1000}",
                f"--screenshot={o.file.absolute()}",
                server.url,
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=None if os.environ.get("SONDE_VERBOSE") else subprocess.DEVNULL,
        )
    finally:
        server.close()
        source.close()
        shutil.rmtree(folder, ignore_errors=True)
    if not failed:
        return f"{o.dashboard} was not drawn in {PATIENCE_S} s"
    return f"these panels have errors: {failed[0]}" if failed[0] else 0


if __name__ == "__main__":
    sys.exit(main())
