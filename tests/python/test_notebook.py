"""sonde in a notebook with a real kernel: the use of a cell, live charts, Telemetry().start()."""

import json
import os
import re
import subprocess
import sys
import unittest

from integration import Integration, needs
from program import main

# Runs cells in a kernel of Jupyter, and prints the outputs of each and the states of the widgets.
RUN_CELLS = """
import json, sys
import nbclient, nbformat
from nbformat.v4 import new_code_cell, new_notebook
notebook = new_notebook(cells=[new_code_cell(text) for text in json.load(sys.stdin)])
nbclient.NotebookClient(notebook, timeout=300, store_widget_state=True, kernel_name="here").execute()
print(json.dumps([[cell["outputs"] for cell in notebook.cells], notebook.metadata.get("widgets", {})]))
"""
BUSY = "end = time.process_time() + 0.6\nwhile time.process_time() < end: pass"
# The cell itself is busy while the charts move.
MOVES = """
charts = sonde.live("loss", "cpu_percent", seconds=30, every=0.05)
first, states = charts.widget.value, set()
loss = sonde.gauge("loss", "seconds")
deadline = time.monotonic() + 300
while not (len(states) >= 3 and "no points yet" not in charts.widget.value) and time.monotonic() < deadline:
    loss(1.5)
    states.add(charts.widget.value)
    time.sleep(0.02)
print(len(states), charts.alive)
charts
"""


@needs("ipykernel", "nbclient", "ipywidgets")
class Notebook(Integration):
    def setUp(self):
        super().setUp()
        kernel = self.root / "share/jupyter/kernels/here"
        kernel.mkdir(parents=True)
        (kernel / "kernel.json").write_text(json.dumps({"argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], "display_name": "here", "language": "python"}))
        self.env |= {"JUPYTER_PATH": str(self.root / "share/jupyter"), "IPYTHONDIR": str(self.root / "ipython"), "JUPYTER_RUNTIME_DIR": str(self.root / "runtime")}

    def cells(self, *texts, level=None):
        """Returns the text of the output of each cell, and the widgets' states."""
        run = [] if level is None else [os.environ["SONDE"], "run", "-q", "-l", str(level), "--rate", "0.1", "--no-record", "--"]
        done = subprocess.run([*run, sys.executable, "-c", RUN_CELLS], env=self.env, cwd=self.root, input=json.dumps(texts), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        outputs, widgets = json.loads(done.stdout)
        self.outputs = outputs
        return ["".join(one.get("text", "") + "".join(one.get("data", {}).get("text/plain", "")) for one in each) for each in outputs], widgets

    def pictures(self, widgets):
        states = widgets["application/vnd.jupyter.widget-state+json"]["state"].values()
        return [one["state"]["value"] for one in states if "value" in one["state"]]

    def test_use_of_a_cell(self):
        shown, _ = self.cells("%load_ext sonde", "import time", BUSY, level=2)
        self.assertRegex(shown[2], r"^[0-9.]+ s; this process: CPU [0-9.]+ s, memory [0-9.]+ [MG]iB .*; job: CPU [0-9.]+ %, peak")
        self.assertEqual(shown[1], "")
        self.assertIn("text/html", self.outputs[2][0]["data"])

    def test_live_charts_move_while_a_cell_runs(self):
        shown, widgets = self.cells("import sonde, time", MOVES, "charts.stop()\nprint(charts.alive)", level=2)
        self.assertRegex(shown[1], r"^[0-9]+ True\n")
        self.assertGreaterEqual(int(shown[1].split()[0]), 3)
        self.assertEqual(shown[2], "False\n")
        self.assertIn("application/vnd.jupyter.widget-view+json", self.outputs[1][-1]["data"])
        [picture] = self.pictures(widgets)
        self.assertEqual(picture.count("<svg"), 2)
        for title in ("loss", "cpu_percent"):
            self.assertIn(f'aria-label="{title}"', picture)
        [points] = re.findall(r'aria-label="loss".*?points="([^"]*)"', picture)
        self.assertTrue(points)
        self.assertIn("1.5 s", picture)

    def test_telemetry_that_a_notebook_starts(self):
        shown, widgets = self.cells("%load_ext sonde\nimport sonde, time", "telemetry = sonde.Telemetry()\ntelemetry.start()\nprint(sonde.level())",
                                    MOVES.replace('"cpu_percent"', '"memory_used_bytes"'), BUSY,
                                    "telemetry.finalize()\ncharts._thread.join(100)\nprint(telemetry.level, charts.alive)\ntelemetry.start()")
        self.assertEqual(shown[1].splitlines()[0], "2")
        self.assertRegex(shown[2], r"^[0-9]+ True\n")
        self.assertIn("; job: CPU", shown[3])
        self.assertIn("0 False\n", shown[4])
        self.assertRegex(self.pictures(widgets)[0], "^<small>the job (has ended|does not answer)")
        self.assertIn("<svg", self.pictures(widgets)[0], "the last picture stays")


@needs("ipywidgets")
class Charts(unittest.TestCase):
    def setUp(self):
        sys.path.insert(0, os.environ["PACKAGE"])

    def test_thinned_lines_keep_their_peaks(self):
        from sonde.integrations.jupyter import POINTS_MAX, thinned

        values = [0.0] * 10_000
        values[7777] = 9.0
        points = thinned(list(range(10_000)), values)
        self.assertEqual((len(points), max(points, key=lambda point: point[1])), (POINTS_MAX, (7777, 9.0)))
        self.assertEqual(thinned([1, 2], [float("nan"), 3.0]), [(2, 3.0)])

    def test_an_empty_chart(self):
        from sonde.integrations.jupyter import chart

        self.assertIn("no points yet", chart("<loss>", [], 0, 10**9))
        self.assertIn("&lt;loss&gt;", chart("<loss>", [], 0, 10**9))


if __name__ == "__main__":
    main()
