"""`%load_ext sonde` in IPython: shows below each cell the resources that it used."""

import importlib.util
import os
import re
import subprocess
import sys
import unittest

sys.path[:0] = [os.environ["PACKAGE"], os.environ["PLACE"]]
from place import Place, main  # noqa: E402

# Cells of an IPython shell without a terminal; what it displays is its output.
CELLS = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in sys.argv[1:]:
    print(">", cell, flush=True)
    shell.run_cell(cell)
"""
BUSY = "import time; end = time.process_time() + 0.6; kept = bytearray(64 << 20)\nwhile time.process_time() < end: pass"


@unittest.skipUnless(importlib.util.find_spec("IPython"), "IPython is not here")
class CellUse(Place):
    def cells(self, *cells, level=None):
        env = self.env | {"PYTHONPATH": f"{os.environ['PACKAGE']}:{os.environ.get('PYTHONPATH', '')}", "IPYTHONDIR": str(self.root / "ipython")}
        words = [sys.executable, "-c", CELLS, *cells]
        run = [] if level is None else [os.environ["SONDE"], "run", "-q", "-l", str(level), "--rate", "0.1", "--"]
        result = subprocess.run([*run, *words], env=env, cwd=self.root, capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        return dict(re.findall(r"^> ([^\n]*)\n(.*?)(?=^> |\Z)", result.stdout, re.M | re.S))

    def test_own_use(self):
        shown = self.cells("%load_ext sonde", "1 + 1", BUSY, "%load_ext sonde", "%unload_ext sonde", BUSY.replace("kept", "more"))
        (line,) = (text.strip().splitlines()[-1] for cell, text in shown.items() if "kept" in cell)
        found = re.fullmatch(r"([0-9.]+) s; this process: CPU ([0-9.]+) s, memory [0-9.]+ [MG]iB \(\+([0-9.]+) MiB\)", line)
        self.assertTrue(found, line)
        seconds, cpu, grown = map(float, found.groups())
        self.assertGreaterEqual(seconds, 0.5)
        self.assertGreaterEqual(cpu, 0.59)
        self.assertGreaterEqual(grown, 60)
        self.assertEqual([cell for cell, text in shown.items() if "this process" in text and "kept" not in cell], [], "short cells and cells after %unload_ext")

    def test_in_a_job(self):
        shown = self.cells("%load_ext sonde", BUSY, level=2)
        (line,) = (text.strip().splitlines()[-1] for cell, text in shown.items() if "kept" in cell)
        found = re.search(r"; job: CPU ([0-9.]+) %, peak ([0-9.]+) %, memory peak ([0-9.]+) [MGT]iB$", line)
        self.assertTrue(found, line)
        self.assertTrue(0 < float(found[1]) <= float(found[2]) <= 100, line)
        (line,) = (text.strip().splitlines()[-1] for cell, text in self.cells("%load_ext sonde", BUSY, level=1).items() if "kept" in cell)
        self.assertNotIn("job:", line)


class Words(unittest.TestCase):
    def test_html(self):
        from sonde import _cell_use

        one = _cell_use.CellUse(_cell_use._Usage(0, 1.0, 3 << 20), _cell_use._Usage(1_500_000_000, 2.25, 1 << 20))
        one.job = ["the job does not answer: <b>&"]
        self.assertEqual(repr(one), "1.5 s; this process: CPU 1.25 s, memory 1 MiB (−2 MiB); job: the job does not answer: <b>&")
        self.assertIn("&lt;b&gt;&amp;</small>", one._repr_html_())

    def test_no_quantity_has_an_exponent(self):
        from sonde._notebook import quantity

        values = ((1010 << 20, "bytes", "1010 MiB"), ((1 << 50) - 1, "bytes", "1024 TiB"), (999.4, "watts", "999 W"), (999.7, "watts", "1000 W"), (12345.6, "seconds", "12346 s"), (0.01234, "percent", "0.0123 %"))
        for value, unit, shown in values:
            self.assertEqual(quantity(value, unit), shown)


if __name__ == "__main__":
    main()
