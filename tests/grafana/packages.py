"""Grafana's packages for the browser, which tools/test fetches into $GRAFANA_PACKAGES, and programs made of them."""
import datetime
import os
import pathlib
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = pathlib.Path(os.environ["GRAFANA_PACKAGES"])


def why_not():
    """The reason why nothing of Grafana's can run here, or None."""
    if not (FOLDER / "node_modules" / "@grafana" / "scenes").is_dir():
        return "no packages of Grafana here: they need npm and a registry"
    return None if shutil.which("node") else "Grafana's packages need node"


def bundle(entry, out, *options):
    """One file with all that it imports. Pictures, fonts and the code editor, which no panel needs, are left out."""
    subprocess.run([FOLDER / "node_modules/.bin/esbuild", HERE / entry, "--bundle", f"--outfile={out}", "--log-level=error",
                    *(f"--loader:.{kind}=empty" for kind in ("css", "svg", "woff", "woff2", "ttf", "png")),
                    f"--alias:monaco-editor={HERE}/nothing.mjs", "--alias:react-router-dom-v5-compat=react-router-dom", *options],
                   check=True, env={**os.environ, "NODE_PATH": str(FOLDER / "node_modules")})


def moment(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat().replace("+00:00", "Z")
