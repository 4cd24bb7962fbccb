"""`sonde run` when one of its own system calls fails: the command runs nevertheless.

fault.c makes the n-th call of a kind fail, in the launcher alone or in its agent and aggregator,
too; once, or from that call on. Whatever fails, output and exit code are those of the command, no
process stays behind, and if nothing was recorded, a line says so. By default, each kind fails at a
few of the calls of an ordinary start (SAMPLES, drawn from SONDE_TEST_SEED); SONDE_TEST_ROUNDS
multiplies the samples, and enough rounds try every n.
"""

import os
import random
import resource
import subprocess

from place import PATIENCE_S, SONDE, Place, main, until

FAULT = os.environ["FAULT"]
SEED = int(os.environ.get("SONDE_TEST_SEED", "1"))
ROUNDS = float(os.environ.get("SONDE_TEST_ROUNDS", "1"))
SAMPLES = 2
SKIPPED = 77


class Faults(Place):
    # The list of nodes takes memory: without memory, a command with its placeholder cannot be
    # built.
    hostfiles = {"memory": "/dev/null"}

    def fault(self, kind, n, how, scope, *arguments):
        command = ["sh", "-c", "cat $0 >/dev/null && echo out; echo err >&2; exit 7", self.hostfiles.get(kind, "{hostfile}")]
        done = subprocess.run([FAULT, kind, str(n), how, scope, str(self.root / "report"), SONDE, "run", *arguments, "--", *command], env=self.env,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=self.root, timeout=PATIENCE_S)
        if done.returncode == SKIPPED:
            self.skipTest("the kernel hands over no system calls (seccomp)")
        return done, int((self.root / "report").read_text())

    def sweep(self, kind, scope, samples):
        _, calls = self.fault(kind, 0, "once", scope)
        self.assertGreater(calls, 0)
        chosen = random.Random(f"{SEED} {kind} {scope}")
        count = min(calls, max(1, round(samples * ROUNDS)))
        for n in sorted(chosen.sample(range(1, calls + 1), count)):
            for how in ("once", "on"):
                words = f"seed {SEED}: {kind} {n} {how} {scope}"
                before = self.recordings()
                done, _ = self.fault(kind, n, how, scope)
                self.assertEqual((done.returncode, done.stdout), (7, "out\n"), f"{words}: {done.stderr}")
                self.assertIn("err\n", done.stderr, words)
                if self.recordings() == before:
                    self.assertRegex(done.stderr, "sonde: (warning|error): ", words)
                until(lambda: not self.alive(), f"{words}: nothing is left running")

    def test_processes(self):
        self.sweep("processes", "first", 100)

    def test_processes_everywhere(self):
        self.sweep("processes", "all", SAMPLES)

    def test_memory(self):
        self.sweep("memory", "first", SAMPLES)

    def test_memory_everywhere(self):
        self.sweep("memory", "all", SAMPLES)

    def test_files(self):
        self.sweep("files", "first", SAMPLES)

    def test_every_file_of_the_start(self):
        """About 30 calls come before the command: folders, token, job.json, the command's
        hostfile."""
        for n in range(1, 36):
            done, _ = self.fault("files", n, "once", "first", "-q")
            self.assertEqual((done.returncode, done.stdout), (7, "out\n"), f"files {n}: {done.stderr}")

    def test_files_everywhere(self):
        self.sweep("files", "all", SAMPLES)

    def test_descriptors(self):
        self.sweep("descriptors", "first", SAMPLES)

    def test_descriptors_everywhere(self):
        self.sweep("descriptors", "all", SAMPLES)

    def test_other_calls(self):
        self.sweep("other", "first", SAMPLES)


class Limits(Place):
    """With limits that clusters set, the same holds."""

    def limited(self, which, value):
        result = self.sonde("run", "--", "sh", "-c", "echo out; exit 7", preexec_fn=lambda: resource.setrlimit(which, (value, value)))
        self.assertEqual((result.returncode, result.stdout), (7, "out\n"), result.stderr)

    def test_descriptors(self):
        for value in range(4, 40, 3):
            self.limited(resource.RLIMIT_NOFILE, value)

    def test_file_size(self):
        self.limited(resource.RLIMIT_FSIZE, 0)
        self.limited(resource.RLIMIT_FSIZE, 4096)

    def test_memory(self):
        for megabytes in (30, 60, 120, 240):
            self.limited(resource.RLIMIT_AS, megabytes << 20)


if __name__ == "__main__":
    main()
