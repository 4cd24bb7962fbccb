"""The lab harms no file of the machine, even if it runs from a clone under /tmp, at a path with
spaces, with uncommitted work.

Without root or namespaces, the suite is skipped with a message.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zlib

import lab as labs

HERE = pathlib.Path(__file__).resolve().parent
SONDE = pathlib.Path(os.environ["SONDE"])
BINARIES = ("SONDE", "EMITTER", "SKEW", "PRINT_RANK")


def contents(folder):
    """Returns path → checksum, for all files except compiled modules."""
    return {
        str(path.relative_to(folder)): zlib.crc32(path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


class Harmless(unittest.TestCase):
    def setUp(self):
        # The folder is in /tmp, whatever TMPDIR is, because each host has its own, empty /tmp.
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="sonde test ", dir="/tmp"))
        self.addCleanup(shutil.rmtree, self.root)
        self.clone = self.root / "a clone"
        for name in ("cluster", "common"):
            shutil.copytree(HERE.parent / name, self.clone / "tests" / name)
        (self.clone / "build").mkdir()
        for name in BINARIES:
            shutil.copy2(os.environ[name], self.clone / "build")
        (self.clone / "canary").write_text("work that is not committed\n")
        (self.clone / "src").mkdir()
        (self.clone / "src/canary.c").write_text("int work_that_is_not_committed;\n")

    def test_suite_in_a_clone_under_tmp(self):
        """A test of the cluster suite runs; its tear-down empties folders of the hosts."""
        before = contents(self.root)
        built = {
            name: str(self.clone / "build" / os.path.basename(os.environ[name]))
            for name in BINARIES
        }
        done = subprocess.run(
            [sys.executable, self.clone / "tests/cluster/test_cluster.py", "Cluster.test_strict"],
            capture_output=True,
            text=True,
            cwd=self.clone,
            env=os.environ | built | {"LAB_TRANSPORT": "tcp", "LAB_COUNT": "1"},
        )
        self.assertEqual(contents(self.root), before, done.stdout + done.stderr)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_hosts_cannot_write_to_the_machine(self):
        before = contents(self.root)
        with labs.Lab([SONDE], names=("n1",), folders={"clone": self.clone}) as lab:
            self.assertEqual(
                lab.run("n1", "cat", "/mnt/folders/clone/canary").stdout,
                "work that is not committed\n",
            )
            self.assertFalse(lab.file("n1", self.clone).exists(), "the host's /tmp is empty")
            self.assertEqual(lab.processes("n1", str(HERE)), {}, "no process has the folder's name")
            for folder in (
                "/",
                "/etc",
                "/usr",
                "/home",
                "/mnt/folders/clone",
                "/mnt/folders/clone/src",
            ):
                tried = lab.run("n1", "touch", f"{folder}/written-by-a-host")
                self.assertIn("Read-only file system", tried.stderr, folder)
            for folder in ("/tmp", "/root", "/run", "/var/tmp", "/dev/shm", "/mnt/shared"):
                self.assertEqual(lab.run("n1", "touch", f"{folder}/mine").stderr, "")
            self.assertNotEqual(lab.run("n1", "rm", "-rf", "/mnt/folders/clone").returncode, 0)
        self.assertEqual(contents(self.root), before)

    def test_clear_stays_in_the_lab(self):
        with labs.Lab([SONDE], names=("n1",)) as lab:
            (lab.shared / "kept").mkdir()
            (lab.shared / "kept/canary").write_text("kept\n")
            lab.run(
                "n1",
                "sh",
                "-c",
                "mkdir -p /tmp/a/b /tmp/mounted; touch /tmp/.hidden '/tmp/a/b/two words'; ln -s /mnt/shared/kept /tmp/link; echo x > /dev/shm/x",
            )
            lab.clear("n1", "/tmp", "/dev/shm")
            self.assertEqual(
                [*lab.file("n1", "/tmp").iterdir(), *lab.file("n1", "/dev/shm").iterdir()], []
            )
            lab.run(
                "n1", "sh", "-c", "mkdir /tmp/mounted && mount --bind /mnt/shared/kept /tmp/mounted"
            )
            lab.run(
                "n1",
                "sh",
                "-c",
                "mkdir /mnt/shared/mounted && mount --bind /mnt/shared/kept /mnt/shared/mounted",
            )
            # clear() refuses to empty a folder that contains a mount. It may be a mount of another
            # file system, or of the same one; then both have the same device number.
            for folder in ("/tmp", "/mnt/shared"):
                with self.assertRaisesRegex(
                    RuntimeError,
                    f"cannot clear {folder} of host n1: {folder}/mounted is mounted there",
                ):
                    lab.clear("n1", folder)
            self.assertEqual((lab.shared / "kept/canary").read_text(), "kept\n")
            with self.assertRaisesRegex(ValueError, "/etc is not a folder of the lab's"):
                lab.clear("n1", "/tmp", "/etc")
            # A command that reads another lab's name removes nothing.
            lab.run("n1", "touch", "/tmp/canary")
            (lab.root / "mnt/lab").write_text("another lab")
            with self.assertRaises(RuntimeError):
                lab.clear("n1", "/tmp")
            self.assertTrue(lab.file("n1", "/tmp/canary").exists())

    def test_sweep_takes_folders_of_labs_only(self):
        """A user's folder may have a name that begins like a lab's."""
        users = pathlib.Path(tempfile.mkdtemp(prefix=labs.PREFIX))
        self.addCleanup(shutil.rmtree, users)
        (users / "canary").write_text("a user's\n")
        dead = pathlib.Path(tempfile.mkdtemp(prefix=labs.PREFIX))
        (dead / labs.LOCK).touch()
        labs.sweep()
        self.assertEqual((users / "canary").read_text(), "a user's\n")
        self.assertFalse(dead.exists())


if __name__ == "__main__":
    labs.skip_if(labs.why_not())
    unittest.main(verbosity=2)
