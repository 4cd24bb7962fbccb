"""Runs a Python program as a job, and reads its recording."""

import os
import sys
import textwrap

sys.path[:0] = [os.environ["PLACE"], os.environ["READER"]]
from columns import to_double  # noqa: E402
from place import Place, main  # noqa: E402, F401
from read_sonde import Recording  # noqa: E402

PACKAGE = os.environ["PACKAGE"]


class Program(Place):
    def setUp(self):
        super().setUp()
        self.env |= {"PYTHONPATH": PACKAGE}
        self.program = self.root / "program.py"

    def write(self, text):
        self.program.write_text(textwrap.dedent(text))

    def run_it(self, text, level=1, code=0, arguments=(), python=()):
        """Runs the program as a job; returns its output. The recording is in self.recording."""
        self.write(text)
        record = self.root / f"recording-{len(list(self.root.glob('recording-*')))}"
        result = self.sonde("run", "--quiet", "-l", level, "--record", record, "--", sys.executable, *python, self.program, *arguments)
        self.assertEqual(result.returncode, code, result.stderr)
        self.said = result.stderr
        files = list(record.glob("*.sonde"))
        self.recording = Recording(str(files[0])) if files else None
        if files:
            self.assertEqual(self.recording.problems, [])
        return result.stdout

    def values(self, metric, **tags):
        """Returns the values, by time, of the metric's only series with these tags."""
        found = self.series(metric, **tags)
        self.assertEqual(len(found), 1, f"{metric} {tags}: {found.keys()}")
        return next(iter(found.values()))

    def series(self, metric, **tags):
        found = {}
        for (number, labels), points in zip(self.recording.series, self.recording.points):
            labels = dict(labels)
            if self.recording.metrics[number]["name"] == metric and points and all(labels.get(k) == v for k, v in tags.items()):
                found[tuple(sorted(labels.items()))] = [to_double(points[t]) for t in sorted(points)]
        return found

    def times(self, metric):
        for (number, _), points in zip(self.recording.series, self.recording.points):
            if self.recording.metrics[number]["name"] == metric and points:
                return sorted(points)
        return []

    def definition(self, metric):
        return next(m for m in self.recording.metrics if m["name"] == metric)

    def spans(self, name):
        return [e for e in self.recording.last_events() if e.kind == "span" and e.text == name]
