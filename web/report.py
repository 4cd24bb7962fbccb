#!/usr/bin/env python3
"""Makes the page of reports, which sonde.dask fills with a recording: web/report.py BUILD
[--check].

It writes bindings/python/sonde/dask/report.html, which is part of the repository, because users
make reports without node and without a network. With --check it writes nothing; exit code 1 means
that the file differs from the output of the sources. Exit code 77: esbuild is not in
BUILD/web-packages (tools/web fetches it).
"""

import base64
import hashlib
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parent / "bindings/python/sonde/dask/report.html"


def bundled(esbuild, entry, folder):
    out = pathlib.Path(folder) / ("out" + pathlib.Path(entry).suffix)
    subprocess.run(
        [esbuild.resolve(), entry, "--bundle", "--charset=ascii", "--target=chrome100,firefox113,safari16.4", "--format=iife",
         "--legal-comments=none", "--log-level=warning", f"--outfile={out}"], check=True, cwd=HERE,
    )  # fmt: skip
    return out.read_text().strip()


def source_of(text):
    """Returns the source expression of Content-Security-Policy for an inline script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def page(esbuild):
    with tempfile.TemporaryDirectory() as folder:
        script, style = bundled(esbuild, "src/report.ts", folder), bundled(esbuild, "report.css", folder)
    html = (HERE / "report.html").read_text()
    # The long parts are inserted last, because they may contain one of these names.
    for name, text in (("SCRIPT-HASH", source_of(script)), ("STYLE-HASH", source_of(style)), ("STYLE", style), ("SCRIPT", script)):
        html = html.replace(name, text, 1)
    return html


def main(build, check=""):
    esbuild = pathlib.Path(build) / "web-packages/node_modules/esbuild/bin/esbuild"
    if not esbuild.exists():
        print(f"esbuild is not in {build}/web-packages: tools/web fetches it", file=sys.stderr)
        return 77
    html = page(esbuild)
    if not check:
        PAGE.write_text(html)
    elif PAGE.read_text() != html:
        print(f"{PAGE} differs from the page that web/ makes: run web/report.py {build}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
