"""`pip install .` from a clone installs package and command, in a wheel of the stable ABI."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.environ["SOURCE"]


class Install(unittest.TestCase):
    def run_it(self, *command, **more):
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd="/", **more)

    def test_wheel(self):
        with tempfile.TemporaryDirectory(prefix="si-") as folder:
            place = pathlib.Path(folder)
            made = self.run_it(sys.executable, "-m", "venv", place / "venv")
            if made.returncode:
                self.skipTest("no venv can be made here (python3-venv)")
            pip = [place / "venv/bin/python", "-m", "pip", "--disable-pip-version-check"]
            if self.run_it(*pip, "download", "-q", "--no-deps", "-d", place / "there", "meson-python>=0.15").returncode:
                self.skipTest("meson-python cannot be had from here")
            # Otherwise meson-python builds in the checkout, which may be read-only. Without
            # optimisation, the build takes half the time; meson-python's builds have no debug
            # information. pip before 23.1 knows only the long form of -C, and no option twice.
            settings = [f"--config-settings={word}" for word in (f"build-dir={place / 'build'}", "setup-args=-Doptimization=0")]
            built = self.run_it(*pip, "wheel", "-q", "--no-deps", "-w", place, *settings, SOURCE)
            self.assertEqual(built.returncode, 0, built.stdout + built.stderr)
            [wheel] = place.glob("*.whl")
            self.assertRegex(wheel.name, r"^sonde-[0-9.]+-cp3[0-9]+-abi3-")
            self.assertEqual(self.run_it(*pip, "install", "-q", "--no-index", wheel).returncode, 0)
            sonde = place / "venv/bin/sonde"
            version = self.run_it(sonde, "version").stdout.split()
            asked = self.run_it(place / "venv/bin/python", "-c", "import sonde; print(sonde.__version__)")
            self.assertEqual(asked.stdout.split(), version[1:], asked.stderr)
            text = "import sonde; sonde.emit('x', 1); print(sonde.level())"
            ran = self.run_it(sonde, "run", "-q", "-l", "1", "--no-record", "--", place / "venv/bin/python", "-c", text,
                              env=os.environ | {"TMPDIR": folder})
            self.assertEqual((ran.returncode, ran.stdout), (0, "1\n"), ran.stderr)


if __name__ == "__main__":
    unittest.main()
