"""Runs programs under `sonde run --trace`, and reads their recordings."""

import json
import os
import shutil
import sys

sys.path[:0] = [os.environ["PLACE"], os.environ["READER"]]
from columns import to_double  # noqa: E402
from place import Place  # noqa: E402
from read_sonde import Recording  # noqa: E402


class Traced(Place):
    def setUp(self):
        super().setUp()
        self.work = self.root / "work"
        self.work.mkdir()

    def trace(self, what, *command, stderr="", more=(), **environment):
        """Runs a command as a job with --trace. Returns the totals, metric → tags without the host
        → value, and keeps them for sum()."""
        shutil.rmtree(self.root / "record", ignore_errors=True)
        done = self.sonde("run", "--quiet", "-l", 1, "--trace", what, "--record", self.root / "record", *more, "--", *command, env=environment)
        self.assertEqual((done.returncode, done.stderr), (0, stderr), done.stdout)
        self.out = done.stdout
        self.totals = {}
        for path in (self.root / "record").glob("*.sonde"):
            recording = Recording(str(path))
            self.assertEqual(recording.problems, [])
            for (number, labels), points in zip(recording.series, recording.points):
                if points:
                    tags = tuple(sorted((key, value) for key, value in dict(labels).items() if key != "host"))
                    self.totals.setdefault(recording.metrics[number]["name"], {})[tags] = to_double(points[max(points)])
        return self.totals

    def sum(self, metric, **tags):
        """Returns the sum of a metric's totals over the series with these tags."""
        return sum(value for labels, value in self.totals.get(metric, {}).items() if tags.items() <= dict(labels).items())

    def spans(self):
        """Returns the spans of the job's recording."""
        done = self.sonde("query", "--spans", "--json", self.root / "record")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)
