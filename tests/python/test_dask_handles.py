"""Handles of GPUs for custom metrics, with a fake NVML: the devices of a worker and their values,
with pynvml and without."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path[:0] = [os.environ["PACKAGE"], str(pathlib.Path(__file__).resolve().parents[1] / "common")]
from waiting import PATIENCE_S  # noqa: E402

from sonde.dask import custom_metric  # noqa: E402

FAKES = os.environ["FAKES"]
UUID = "GPU-0000000{}-0000-0000-0000-000000000000"
MIG = "MIG-0000000{}-0000-0000-0000-00000000000{}"
BEGIN = """
import json, logging, sys
logging.basicConfig(level="INFO", format="%(levelname)s %(message)s")
from sonde.dask._handles import device_handles
show = lambda handles: print(json.dumps([(h.index, h.uuid) for h in handles]))
"""
WITHOUT_PYNVML = "import sys; sys.modules['pynvml'] = None\n"


class Program(unittest.TestCase):
    def run_it(self, text, script="gpus 4", library="", **env):
        with tempfile.TemporaryDirectory(prefix="sp-") as folder:
            path = pathlib.Path(folder) / "script"
            path.write_text(script + "\n")
            clean = {k: v for k, v in os.environ.items() if k not in ("CUDA_VISIBLE_DEVICES", "SONDE_NVML")}
            libraries = FAKES + "/" + library if library is not None else folder
            result = subprocess.run([sys.executable, "-c", BEGIN + text], capture_output=True, text=True, timeout=PATIENCE_S,
                                    env=clean | {"LD_LIBRARY_PATH": libraries, "SONDE_FAKE_NVML": str(path), "PYTHONPATH":
                                                 os.environ["PACKAGE"] + ":" + os.environ.get("PYTHONPATH", "")} | env)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.said = result.stderr
        return [json.loads(line) for line in result.stdout.splitlines()]


class Which(Program):
    ALL = [[i, UUID.format(i)] for i in range(4)]

    def own(self, *visible, script="gpus 4"):
        each = "import os\nfor v in " + repr(visible) + ":\n    os.environ['CUDA_VISIBLE_DEVICES'] = v\n    show(device_handles(True))"
        return self.run_it(each, script)

    def test_all_of_the_node(self):
        self.assertEqual(self.run_it("show(device_handles(False))", CUDA_VISIBLE_DEVICES="2,1"), [self.ALL])
        self.assertEqual(self.run_it("show(device_handles(True))"), [self.ALL])  # not specified

    def test_its_own_is_the_first_that_it_sees(self):
        wanted = {"2,3,0,1": 2, "0": 0, " 3 , 1": 3, UUID.format(1) + "," + UUID.format(0): 1, "GPU-00000003,0": 3, "gpu-00000003": None, "": None, "-1": None,
                  "NoDevFiles": None, "7": None, "GPU-0000000": None, "GPU-9": None, "x": None}
        found = dict(zip(wanted, self.own(*wanted)))
        self.assertEqual(found, {visible: [] if index is None else [self.ALL[index]] for visible, index in wanted.items()})

    def test_a_mig_instance(self):
        script = "gpus 2\nmig 1 3"
        self.assertEqual(self.own(MIG.format(2, 1), MIG.format(4, 1), "1", script=script), [[[1, MIG.format(2, 1)]], [], [self.ALL[1]]])
        asked = self.run_it("[h] = device_handles(True); print(json.dumps([h.utilization(), h.memory_used()]))", script, CUDA_VISIBLE_DEVICES=MIG.format(2, 1))
        self.assertEqual(asked, [[None, 20 << 30]])

    def test_a_lost_gpu_is_left_out_and_the_others_keep_their_index(self):
        self.assertEqual(self.run_it("show(device_handles(False))", "gpus 3\nfail 1 handle 15"), [[self.ALL[0], self.ALL[2]]])
        self.assertIn("WARNING GPU 1 does not answer", self.said)

    def test_no_driver(self):
        for library, script in ((None, ""), ("", "gpus 2\ninit 9")):
            self.assertEqual(self.run_it("show(device_handles(False)); show(device_handles(True))", script, library), [[], []])
            self.assertIn("INFO no GPUs found: ", self.said)


class Ask(Program):
    METHODS = ("memory_used", "memory_total", "memory_used_percent", "utilization", "memory_activity", "power_watts")
    TEXT = f"print(json.dumps([[getattr(h, name)() for name in {METHODS}] for h in device_handles(False)]))"
    SCRIPT = "gpus 2\nset 0 memory_used 1000\nset 0 memory_total 4000\nset 1 utilization 99\nfail 1 power 3\nfail 1 memory_used 15"
    ANSWERS = [[1000, 4000, 25.0, 42, 17, 350.5], [None, None, None, 99, 17, None]]

    def test_with_methods(self):
        self.assertEqual(self.run_it(WITHOUT_PYNVML + self.TEXT, self.SCRIPT), [self.ANSWERS])
        self.assertEqual(self.run_it(self.TEXT, self.SCRIPT), [self.ANSWERS])

    def test_an_older_library(self):
        """With an older library, the used memory includes the driver's own."""
        [[first, _]] = self.run_it(WITHOUT_PYNVML + self.TEXT, self.SCRIPT, "old")
        self.assertEqual(first, [1000 + (1 << 20), 4000, 100 * (1000 + (1 << 20)) / 4000, 42, 17, 350.5])

    @unittest.skipUnless(importlib.util.find_spec("pynvml"), "pynvml is not here")
    def test_pynvml_takes_them(self):
        text = """
import pynvml
for h in device_handles(False):
    assert isinstance(h, pynvml.c_nvmlDevice_t)
    print(json.dumps([pynvml.nvmlDeviceGetUUID(h), pynvml.nvmlDeviceGetUtilizationRates(h).gpu]))
print(pynvml.nvmlDeviceGetPowerUsage(device_handles(False)[0]))
"""
        self.assertEqual(self.run_it(text, self.SCRIPT), [[UUID.format(0), 42], [UUID.format(1), 99], 350500])


class Decorator(unittest.TestCase):
    def test_it_says_what_the_metric_is(self):
        @custom_metric("power")
        def power(worker, handle):
            return handle

        @custom_metric("spread", per_device=False)
        def spread(worker, handles):
            return 0

        self.assertEqual((power.metric_name, power.per_device, power(None, 3)), ("power", True, 3))
        self.assertEqual((spread.metric_name, spread.per_device), ("spread", False))

    def test_mistakes(self):
        with self.assertRaisesRegex(TypeError, r"needs the metric's name: @custom_metric\('power'\)"):
            @custom_metric
            def no_name(worker, handle):
                pass
        for name in ("", " x", "a\nb"):
            with self.assertRaisesRegex(ValueError, "cannot be a metric's name"):
                custom_metric(name)
        with self.assertRaisesRegex(TypeError, "'x' has to take two arguments, a worker and a handle"):
            @custom_metric("x")
            def too_few(handle):
                pass


if __name__ == "__main__":
    unittest.main()
