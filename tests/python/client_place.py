"""Queries from a test's own process, in the environment of its job."""

import os
import sys
import textwrap

sys.path[:0] = [os.environ["PLACE"], os.environ["PACKAGE"]]
from place import Place  # noqa: E402

PACKAGE = os.environ["PACKAGE"]


class Asking(Place):
    """Queries from this process, whose environment is the test's while it runs."""

    def setUp(self):
        super().setUp()
        self.env |= {"PYTHONPATH": PACKAGE + ":" + os.environ.get("PYTHONPATH", "")}
        self.before = dict(os.environ)
        os.environ.clear()
        os.environ.update(self.env)

    def tearDown(self):
        os.environ.clear()
        os.environ.update(self.before)
        super().tearDown()

    def run_it(self, text, *options, code=0):
        """Runs the text as a job to its end; returns its output."""
        program = self.root / "program.py"
        program.write_text("import json, sonde, sys, time\n" + textwrap.dedent(text))
        result = self.sonde("run", "--quiet", *(options or ("-l", "1", "--no-record")), "--", sys.executable, program)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stdout

    def start_job(self, *options):
        """Starts a job that waits; returns its address."""
        self.start("run", "--quiet", *(options or ("-l", "1", "--no-record")), "--", "sleep", "600")
        return self.job()["url"]
