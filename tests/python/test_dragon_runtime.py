"""Programs inside of Dragon's own runtime under `sonde run`.

tools/test installs dragonhpc. `dragon -s` is its launcher for one node. The launcher for several
nodes, and Batch, which takes a minute, are tested manually: dragon_original.sh --beside.
"""

import os
import pathlib
import unittest

from program import Program, main
from place import free_port  # noqa: E402, I001

HERE = pathlib.Path(os.environ["CHECKS"])
DRAGON = pathlib.Path(os.environ["DRAGON"]) / "bin"


@unittest.skipUnless((DRAGON / "dragon").exists(), "dragonhpc is not installed here")
class Runtime(Program):
    def setUp(self):
        super().setUp()
        self.env |= {"PATH": f"{DRAGON}:{self.env['PATH']}", "VIRTUAL_ENV": str(DRAGON.parent), "USER": os.environ.get("USER", "root")}
        self.record = self.root / "recording"

    def dragon(self, program, *options):
        done = self.sonde("run", "--quiet", "-l", 2, "--record", self.record, *options, "--", "dragon", "-s", program)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def listed(self):
        return self.sonde("query", "--list", self.record).stdout

    def unchanged(self, text):
        """Runs a program that writes to the port in a configuration file."""
        port = free_port()
        (self.root / "telemetry.yaml").write_text(f"tsdb_server_port: {port}\n")
        self.env["DRAGON_TELEMETRY_CONFIG"] = str(self.root / "telemetry.yaml")
        self.write(text)
        return self.dragon(self.program)

    def test_a_changed_import(self):
        """Processes of a pool emit, the program queries, and a collector counts in a Value of
        Dragon."""
        self.assertIn("level 2, 17 series, counted", self.dragon(HERE / "dragon_beside.py"))

    def test_no_change(self):
        self.unchanged("""
            from dragon.telemetry import Telemetry
            if __name__ == "__main__":
                telemetry = Telemetry(timeout=300)
                assert telemetry.level == 2
                telemetry.add_data("unchanged", 1.5, tagk="rank", tagv=3)
                telemetry.shutdown()
        """)
        self.assertRegex(self.listed(), r"unchanged\{host=\S+,rank=3\} +gauge +1 ")

    def test_metrics_of_the_transport(self):
        """The metrics of Dragon's transport between nodes, from Dragon's own code."""
        self.unchanged("""
            from dragon.transport.hsta.__main__ import HSTATelemetryRecord, HSTATelemetrySink
            if __name__ == "__main__":
                sink = HSTATelemetrySink()
                message = {"metric": "req_completion_rate", "value": 2.5, "tagk": "source", "tagv": 3}
                sink.update(HSTATelemetryRecord.from_message(message))
                while sink._pending: pass
                sink.close()
        """)
        self.assertRegex(self.listed(), r"req_completion_rate\{host=\S+,source=3\} +gauge +1 ")


if __name__ == "__main__":
    main()
