"""What `make` calls: a campaign shows failures with the seed that repeats them; nothing is removed
that was not built; a build folder that cannot be written to is named with what to do."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

PROJECT = pathlib.Path(os.environ["PROJECT"])
FAILS_WITH_ODD_SEEDS = """#!/bin/sh
echo "seed $SONDE_TEST_SEED, $SONDE_TEST_ROUNDS rounds"
[ $((SONDE_TEST_SEED % 2)) = 0 ]
"""
MESON = """project('x')
test('odd', find_program('odd.sh'), suite: ['unit', 'random'])
test('skipped', find_program('skipped.sh'), suite: 'random')
test('other', find_program('false'), suite: 'unit')
"""


class Tools(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="sonde tools "))
        self.addCleanup(shutil.rmtree, self.root)

    def run_it(self, *command, **env):
        kept = {name: os.environ[name] for name in os.environ if name not in ("BUILD", "MAKEFLAGS")}
        return subprocess.run(
            command, capture_output=True, text=True, cwd=self.root, env=kept | env
        )

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)


class Campaign(Tools):
    def setUp(self):
        super().setUp()
        self.write("meson.build", MESON)
        self.write("odd.sh", FAILS_WITH_ODD_SEEDS)
        self.write("skipped.sh", "#!/bin/sh\nexit 77\n")
        set_up = self.run_it("meson", "setup", "a build")
        self.assertEqual(set_up.returncode, 0, set_up.stdout + set_up.stderr)

    def campaign(self, seed):
        return self.run_it(PROJECT / "tools/campaign", "--rounds", "3", "a build", "0", str(seed))

    def test_a_failure_is_repeated_by_what_is_shown(self):
        done = self.campaign(7)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("seed 7, 3 rounds", done.stdout)
        self.assertRegex(done.stdout, r"1 runs of 2 tests with seeds 7 to 7 in .* 1 failures\n$")
        [again] = re.findall("again: (.*)", done.stdout)
        self.assertNotEqual(self.run_it("sh", "-c", again).returncode, 0)
        another = self.run_it("sh", "-c", again.replace("SEED=7", "SEED=8"))
        self.assertEqual(another.returncode, 0, another.stdout)

    def test_all_pass(self):
        """Tests of other suites do not run."""
        done = self.campaign(8)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"1 runs of 2 tests with seeds 8 to 8 in .* 0 failures\n$")

    def test_no_build_folder(self):
        done = self.run_it(PROJECT / "tools/campaign", "none")
        self.assertEqual(done.returncode, 1)
        self.assertIn("none is not a build folder: make builds one", done.stderr)


class Suite(unittest.TestCase):
    def test_every_randomized_test_is_in_the_campaign(self):
        """A test that reads SONDE_TEST_SEED is of the suite `random`."""
        listed = subprocess.run(
            ["meson", "introspect", "--tests", os.environ["BUILD_FOLDER"]], capture_output=True
        )
        commands = [
            " ".join(test["cmd"])
            for test in json.loads(listed.stdout)
            if any(suite.endswith(":random") for suite in test["suite"])
        ]
        randomized = [
            path
            for path in (PROJECT / "tests").rglob("test_*")
            if path.suffix in (".c", ".py")
            and path != pathlib.Path(__file__).resolve()
            and re.search(r"SONDE_TEST_SEED|unit/seed\.h|\.\./seed\.h", path.read_text())
        ]
        self.assertGreater(len(randomized), 4)
        for path in randomized:
            # A program in C is called test_[LAYER_]NAME, in the folder of its source.
            name = path.name if path.suffix == ".py" else path.stem.removeprefix("test_")
            wanted = re.compile(rf"/{path.parent.name}/(test_)?(\w+_)?{re.escape(name)}( |$)")
            self.assertTrue(any(map(wanted.search, commands)), f"{path} is not in the suite random")


class Make(Tools):
    def make(self, *arguments):
        return self.run_it("make", "--no-print-directory", "-f", PROJECT / "Makefile", *arguments)

    def test_clean_removes_what_meson_made(self):
        for name in ("build", "build-thread", "elsewhere", "elsewhere-fuzz"):
            self.write(f"{name}/meson-private/x", "")
        for name in ("build-notes", "elsewhere-notes", "-mine"):
            self.write(f"{name}/notes", "not committed")
        for arguments, left in (
            ((), ["-mine", "build-notes", "elsewhere", "elsewhere-fuzz", "elsewhere-notes"]),
            (("BUILD=elsewhere",), ["-mine", "build-notes", "elsewhere-notes"]),
        ):
            self.assertEqual(self.make("clean", *arguments).returncode, 0)
            self.assertEqual(sorted(path.name for path in self.root.iterdir()), left)

    def test_an_empty_build_folder_is_refused(self):
        for target in ("clean", "test"):
            done = self.make(target, "BUILD=")
            self.assertEqual(done.returncode, 2)
            self.assertIn("BUILD is empty", done.stderr)

    def test_a_build_folder_that_cannot_be_written_to(self):
        """As in a read-only checkout."""
        done = self.run_it(PROJECT / "tools/setup", "/proc/sonde-build", "/usr/local")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write to the build folder /proc/sonde-build", done.stderr)
        self.assertIn("make BUILD=", done.stderr)


if __name__ == "__main__":
    unittest.main()
