"""Old and restricted kernels: each system call that an old kernel lacks, or a container forbids, is
missing in turn. Either everything works, or one line of `sonde run` and of `sonde doctor` says what
is lost. The command always runs. Control groups of both versions are measured.
"""

import ctypes
import errno
import os
import pathlib
import platform
import shutil
import struct
import subprocess
import sys
import unittest

from place import PATIENCE_S, SONDE, Place, main, until

EMITTER = os.environ["EMITTER"]
MACHINES = {"x86_64": 0, "aarch64": 1}

# The numbers of the calls on x86_64 and aarch64: calls of sonde itself, calls that its libraries
# may make, and calls that similar tools often make.
CALLS = {
    "memfd_create": (319, 279), "pidfd_open": (434, 434), "close_range": (436, 436),
    "fallocate": (285, 47), "io_setup": (206, 0), "io_uring_setup": (425, 425), "madvise": (28, 233),
    "munlock": (150, 229), "statx": (332, 291), "sendfile": (40, 71), "rseq": (334, 293),
    "faccessat2": (439, 439), "openat2": (437, 437), "copy_file_range": (326, 285),
    "process_vm_readv": (310, 270), "perf_event_open": (298, 241), "mlock": (149, 228),
    "prlimit64": (302, 261), "getrandom": (318, 278),
}
# Calls that something depends on, and the words that report the loss.
LOST = {
    "memfd_create": "what programs emit through libsonde is lost",
    "getrandom": "nothing is recorded",
}
# For these calls, `sonde doctor` also reports if nothing is lost.
DOCTOR = {"memfd_create": "missing  shared memory", "pidfd_open": "no       process handles"}

LIBC = ctypes.CDLL(None, use_errno=True)


def forbid(number, error):
    """Makes a system call fail in this process and its children (seccomp)."""
    load, if_equal, answer = 0x20, 0x15, 0x06
    lines = [(load, 0, 0, 0), (if_equal, 0, 1, number), (answer, 0, 0, 0x00050000 | error), (answer, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in lines))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(lines), ctypes.addressof(code)))
    if LIBC.prctl(38, 1, 0, 0, 0) or LIBC.prctl(22, 2, program, 0, 0):
        raise OSError(ctypes.get_errno(), "no seccomp here")


def seccomp_works():
    pid = os.fork()
    if pid == 0:
        try:
            forbid(CALLS["sendfile"][MACHINES[platform.machine()]], errno.ENOSYS)
        except (OSError, KeyError):
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0


@unittest.skipUnless(seccomp_works(), "the kernel takes no filters of system calls (seccomp)")
class Kernels(Place):
    def without(self, call, error, *arguments):
        number = CALLS[call][MACHINES[platform.machine()]]
        return self.sonde(*arguments, preexec_fn=lambda: forbid(number, error))

    def check(self, call, error):
        # Returns the points of libsonde and of the text protocol, and the exit code.
        script = f"{EMITTER} >out & until grep -q up out; do :; done; kill $!; wait $!; rm out; sonde put loss 3; echo over; exit 7"
        done = self.without(call, error, "run", "-q", "-l", "1", "--", "sh", "-c", script)
        said = f"{call} {errno.errorcode[error]}: {done.stdout}{done.stderr}"
        self.assertEqual((done.returncode, done.stdout), (7, "over\n"), said)
        lines = [line for line in done.stderr.splitlines() if "warning" in line]
        self.assertEqual(len(lines), call in LOST, said)
        self.assertIn(LOST.get(call, ""), done.stderr, said)
        listed = self.sonde("query", "--list").stdout
        self.assertEqual("loss{" in listed, call != "getrandom", said)
        self.assertEqual("tick{" in listed, call not in LOST, said)
        for recording in self.recordings():
            shutil.rmtree(self.runs / recording)
        self.nothing_left()

    def test_calls_that_the_kernel_lacks(self):
        for call in CALLS:
            if CALLS[call][MACHINES[platform.machine()]]:
                self.check(call, errno.ENOSYS)

    def test_calls_that_a_container_forbids(self):
        for call in ("memfd_create", "pidfd_open", "close_range", "fallocate", "io_uring_setup", "perf_event_open"):
            self.check(call, errno.EPERM)

    def test_doctor(self):
        for call, words in DOCTOR.items():
            for error in (errno.ENOSYS, errno.EPERM):
                said = self.without(call, error, "doctor").stdout
                (line,) = [line for line in said.splitlines() if line.startswith(words)]
                self.assertIn(os.strerror(error), line)


# A script that runs in a private namespace of users and mounts.
INSIDE = """
set -e
$PREPARE
"$SONDE" run -q -l 1 -- sh -c 'sonde put loss 3; echo over; exit 7'
"""


def namespaces_work():
    return subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode == 0


@unittest.skipUnless(namespaces_work(), "no namespaces of users and mounts here")
class Folders(Place):
    def inside(self, prepare, env=None):
        process = subprocess.run(["unshare", "-rm", "sh", "-c", INSIDE.replace("$PREPARE", prepare)], env=self.env | {"SONDE": SONDE} | (env or {}), stdin=subprocess.DEVNULL,
                                 capture_output=True, text=True, cwd=self.root, timeout=PATIENCE_S)
        self.assertEqual((process.returncode, process.stdout), (7, "over\n"), process.stderr)
        return process.stderr

    def test_small_shared_memory_folder(self):
        """sonde keeps nothing in /dev/shm."""
        self.assertEqual(self.inside("mount -t tmpfs -o size=64k none /dev/shm"), "")
        self.assertIn("loss", self.sonde("query", "--list").stdout)

    def home(self, mount):
        env = {"SONDE_RUNS": "", "HOME": str(self.root / "home")}
        (self.root / "home").mkdir()
        return self.inside(mount.replace("HOME", env["HOME"]), env)

    def test_read_only_home(self):
        said = self.home("mount -t tmpfs -o ro none HOME")
        self.assertEqual(said.count("\n"), 1, said)
        self.assertIn("Read-only file system", said)
        self.assertIn("no recording is kept", said)

    def test_full_home(self):
        said = self.home("mount -t tmpfs -o size=8k none HOME; cat /dev/zero >HOME/full 2>/dev/null || true")
        self.assertIn("No space left on device", said)


LIMIT_BYTES, USED_BYTES = 256 << 20, 64 << 20


def group_folders(controller):
    """Yields (version, folder) of each place where this kernel may make groups with the
    controller."""
    lines = [line.split(":", 2) for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines()]
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        mount, kind = (part.split() for part in line.split(" - ", 1))
        version = {"cgroup": 1, "cgroup2": 2}.get(kind[0])
        if version == 1 and controller not in kind[2].split(",") or not version:
            continue
        (path,) = [path for number, names, path in lines if (controller in names.split(",") if version == 1 else (number, names) == ("0", ""))]
        yield version, pathlib.Path(mount[4] + path.removeprefix(mount[3] if mount[3] != "/" else ""))


class ControlGroups(Place):
    """The real kernel's control groups, of either version."""

    def group(self, controller, limits):
        """Makes a group and sets one of the limits, by version; returns its file of processes."""
        for version, folder in group_folders(controller):
            made = folder / f"sonde-test-{os.getpid()}"
            try:
                made.mkdir()
            except OSError:
                continue
            self.addCleanup(made.rmdir)
            try:
                for file, value in limits[version].items():
                    (made / file).write_text(value)
            except OSError:  # a group of version 2 without this controller
                continue
            return made / "cgroup.procs"
        self.skipTest(f"no group of the controller {controller} can be made here")

    def measure(self, procs, code, *metrics):
        done = self.sonde("run", "-q", "-l", "2", "--", sys.executable, "-c", code, preexec_fn=lambda: procs.write_text(str(os.getpid())))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        until(lambda: not procs.read_text(), "the group is empty")
        found = []
        for metric in metrics:
            out = self.sonde("query", "--csv", metric).stdout
            found.append([float(line.rsplit(",", 1)[1]) for line in out.splitlines()[1:]])
        return found

    def test_memory(self):
        procs = self.group("memory", {1: {"memory.limit_in_bytes": str(LIMIT_BYTES)}, 2: {"memory.max": str(LIMIT_BYTES)}})
        limits, peaks = self.measure(procs, f"import time; b = b'x' * {USED_BYTES}; time.sleep(2)", "cgroup_memory_limit_bytes", "cgroup_memory_peak_bytes")
        self.assertEqual(set(limits), {LIMIT_BYTES})
        self.assertTrue(USED_BYTES < max(peaks) < LIMIT_BYTES, peaks)

    def test_processor_time(self):
        procs = self.group("cpu", {1: {"cpu.cfs_quota_us": "20000", "cpu.cfs_period_us": "100000"}, 2: {"cpu.max": "20000 100000"}})
        periods, throttled = self.measure(procs, "import time; end = time.monotonic() + 3\nwhile time.monotonic() < end: pass", "cgroup_throttled_periods_total", "cgroup_throttled_seconds_total")
        self.assertGreater(max(periods), 0)
        self.assertGreater(max(throttled), 0)


if __name__ == "__main__":
    main()
