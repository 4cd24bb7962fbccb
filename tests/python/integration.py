"""What the tests of sonde.integrations share: they run programs as jobs, with the real frameworks.

tools/test installs the small frameworks. A test of another one runs where it can be imported, and
is skipped elsewhere.
"""

import importlib.util
import json
import os
import unittest

from program import PACKAGE, Program

PHASES = ("data", "forward", "backward", "optimizer")


def needs(*modules):
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    return unittest.skipIf(missing, f"not here: {', '.join(missing)}")


class Integration(Program):
    def setUp(self):
        super().setUp()
        more = os.environ.get("PYTHONPATH", "")
        self.env |= {"PYTHONPATH": PACKAGE + (f":{more}" if more else ""), "WANDB_MODE": "offline", "WANDB_SILENT": "true", "TOKENIZERS_PARALLELISM": "false",
                     "HF_HUB_OFFLINE": "1", "TF_CPP_MIN_LOG_LEVEL": "2", "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}

    def total(self, metric, **tags):
        """Returns the sum of the last values of a counter's series."""
        return sum(values[-1] for values in self.series(metric, **tags).values())

    def count(self, *names):
        return [len(self.spans(name)) for name in names]

    def parameters(self):
        """Returns the parameters of the last run."""
        newest = max(self.root.glob("recording-*"), key=lambda folder: int(folder.name.partition("-")[2]))
        return json.loads((newest / "run.json").read_text())["about"]["config"]

    def assert_within(self, inner, outer):
        """Each span of the first name is a child of a span of the second one, and lies within
        it."""
        around = {span.id: span for span in self.spans(outer)}
        for span in self.spans(inner):
            self.assertIn(span.parent, around, f"{inner} at {span.start}")
            self.assertTrue(around[span.parent].start <= span.start <= span.end <= around[span.parent].end, f"{inner} is not within {outer}")

    def tag(self, span, key):
        return dict(span.labels).get(key)
