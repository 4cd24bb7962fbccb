"""Runs Grafana's packages for the browser, which tools/test fetches into $GRAFANA_PACKAGES."""

import datetime
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "common"))
from waiting import PATIENCE_S  # noqa: E402

FOLDER = pathlib.Path(os.environ["GRAFANA_PACKAGES"])
# Defines `require`, which code for CommonJS needs.
REQUIRE = "import{createRequire as made}from'module';const require=made(import.meta.url);"


def why_not():
    """Returns the reason why Grafana's packages cannot run here, or None."""
    if not (FOLDER / "node_modules" / "@grafana" / "scenes").is_dir():
        return "Grafana's packages are not installed: they need npm and a registry"
    return None if shutil.which("node") else "Grafana's packages need node"


def bundle(entry, out, *options):
    """Makes a file with all imports, except pictures, fonts and the code editor."""
    subprocess.run(
        [
            FOLDER / "node_modules/.bin/esbuild",
            HERE / entry,
            "--bundle",
            f"--outfile={out}",
            "--log-level=error",
            *(f"--loader:.{kind}=empty" for kind in ("css", "svg", "woff", "woff2", "ttf", "png")),
            f"--alias:monaco-editor={HERE}/no_code_editor.mjs",
            "--alias:react-router-dom-v5-compat=react-router-dom",
            *options,
        ],
        check=True,
        env={**os.environ, "NODE_PATH": str(FOLDER / "node_modules")},
    )


def moment(seconds):
    return (
        datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
        .isoformat()
        .replace("+00:00", "Z")
    )


class Browser:
    """A process with Grafana's packages and the frontend of the data source."""

    def __init__(self, module="-"):
        self.folder = tempfile.mkdtemp(prefix="sonde-grafana-")
        os.symlink(FOLDER / "node_modules", f"{self.folder}/node_modules")
        bundle(
            "drive.mjs",
            f"{self.folder}/drive.mjs",
            "--platform=node",
            "--format=esm",
            "--main-fields=module,main",
            "--conditions=import",
            f"--inject:{HERE}/browser.mjs",
            "--external:jsdom",
            f"--banner:js={REQUIRE}",
        )
        self.said = open(f"{self.folder}/said", "w+")
        self.process = subprocess.Popen(
            ["node", f"{self.folder}/drive.mjs", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.said,
            text=True,
        )

    def look(self, base, dashboard, start, end, width=500, **variables):
        """Returns what a person would see on the dashboard. Start and end are in seconds, and
        panels are `width` pixels wide."""
        asked = {
            "base": base,
            "dashboard": dashboard,
            "range": {"from": moment(start), "to": moment(end)},
            "width": width,
            "chosen": variables,
        }
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"failed": "the process has ended"}
        if "failed" in answer:
            self.said.seek(0)
            raise AssertionError(f"{answer['failed']}\n{self.said.read()[-2000:]}")
        return answer

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=PATIENCE_S)
        self.said.close()
        shutil.rmtree(self.folder)
