"""Tests `sonde run --trace io`: the recorded calls and bytes of files are exactly those of the
program, which does not use sonde."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

from traced import Traced

from place import SONDE, main

IO = os.environ["IO"]
LIBRARY = os.environ["LIBRARY_IO"]

# The calls of tests/trace/io.c: operation → calls, or (calls, bytes).
DONE = {
    "posix": {"open": 1, "write": (4, 360000), "read": (6, 200100), "sync": 2, "close": 1},
    "standard": {"open": 2, "write": (6, 1034), "read": (6, 1022), "sync": 1, "close": 2},
    "threads": {"open": 8, "write": (8000, 2048000), "read": (8000, 800000), "close": 8},
    "little_stack": {"open": 1, "write": (1000, 256000), "read": (1000, 100000), "close": 1},
    "forks": {"open": 1, "write": (8, 210045), "close": 4},
    "others": {"open": 1, "write": (2, 7), "read": (1, 3), "close": 2},
    "copies": {"open": 2, "write": (3, 200001), "read": (2, 100001), "close": 2},
    "stats": {"open": 1, "write": (1, 100000), "read": (1, 100), "close": 1},
}
# A library that counts calls of write, and a program that is linked with it.
WRAPPER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
int wrapped;
ssize_t write(int fd, const void *data, size_t size)
{
    wrapped++;
    return ((ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write"))(fd, data, size);
}
"""
WRAPPED = """
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
extern int wrapped;
int main(int argc, char **argv)
{
    int fd = open(argv[argc - 1], O_CREAT | O_WRONLY, 0600);
    for (int i = 0; i < 10; i++)
        write(fd, "abc", 3);
    printf("%d calls\\n", wrapped);
    return 0;
}
"""


class Io(Traced):
    def files(self):
        """Returns path below the work folder → operation → (calls, bytes)."""
        found = {}
        for tags, calls in self.totals["io_file_calls"].items():
            tags = dict(tags)
            name = os.path.relpath(tags["file"], self.work) if tags["file"] != "other" else "other"
            found.setdefault(name, {})[tags["op"]] = (calls, self.sum("io_file_bytes", **tags))
        return found

    def check(self, what, files):
        self.trace("io", IO, self.work, what)
        for op in ("open", "read", "write", "close", "sync"):
            expected = DONE[what].get(op, 0)
            calls, size = expected if isinstance(expected, tuple) else (expected, 0)
            self.assertEqual(self.sum("io_calls", op=op, program="io"), calls, (what, op, self.totals))
            self.assertEqual(self.sum("io_bytes", op=op, program="io"), size, (what, op, self.totals))
            self.assertEqual(self.sum("io_seconds", op=op, program="io") > 0, calls > 0, (what, op))
        self.assertEqual(self.files(), files)
        self.assertEqual(self.sum("io_uncounted_calls"), 0)
        self.nothing_left_in(self.tmp)

    def test_posix(self):
        self.check("posix", {"posix": {"write": (4, 360000), "read": (6, 200100)}})

    def test_stdio(self):
        self.check("standard", {"other": {"write": (6, 1034), "read": (6, 1022)}})

    def test_threads(self):
        self.check("threads", {f"thread-{i}": {"write": (1000, 256000), "read": (1000, 100000)} for i in range(8)})

    def test_little_stack(self):
        self.check("little_stack", {"little_stack": {"write": (1000, 256000), "read": (1000, 100000)}})

    def test_forks(self):
        """The parent's own 15 bytes are below the threshold, so they count for "other"."""
        self.check("forks", {"forks": {"write": (6, 210030)}, "other": {"write": (2, 15)}})

    def test_sockets_pipes_devices(self):
        self.check("others", {"other": {"write": (2, 7), "read": (1, 3)}})

    def test_copies(self):
        self.check("copies", {"in": {"write": (1, 100000), "read": (2, 100001)}, "out": {"write": (2, 100001)}})

    def test_stats(self):
        self.check("stats", {"stats": {"write": (1, 100000), "read": (1, 100)}})

    def test_signal_handlers(self):
        """Each call in a signal handler is counted as a call or as an uncounted call."""
        self.trace("io", IO, self.work, "signals")
        handled = (self.work / "handled").stat().st_size
        self.assertGreaterEqual(handled, 10)
        self.assertEqual(self.sum("io_calls", op="write") + self.sum("io_uncounted_calls"), 20000 + handled)
        self.assertEqual((self.work / "signals").stat().st_size, 200000)

    def test_a_signal_just_before_signals_are_blocked(self):
        self.trace("io", IO, self.work, "interrupted")
        handled = (self.work / "handled").stat().st_size
        self.assertGreaterEqual(handled, 3)
        self.assertEqual(self.sum("io_calls", op="write") + self.sum("io_uncounted_calls"), 1000 + handled)

    def test_a_signal_handler_that_jumps_away(self):
        """The interrupted call is uncounted. All further calls count."""
        self.trace("io", IO, self.work, "jumped")
        self.assertEqual((self.work / "jumped").stat().st_size, 110)
        self.assertEqual((self.sum("io_calls", op="write"), self.sum("io_uncounted_calls")), (10, 1))

    def test_cancellation(self):
        """A read ends a thread that is cancelled, as it does without tracing: also the only thread
        of a program, which otherwise makes its system calls without libc."""
        for what in ("cancelled", "cancelled_thread"):
            self.trace("io", IO, self.work, what)
            self.assertEqual((what, os.listdir(self.work)), (what, []))
        self.assertEqual(self.sum("io_bytes", op="write"), 360000)

    def test_wrappers_of_the_program_see_its_calls(self):
        """A library of the program that wraps the same functions comes after sonde's, and sees
        every call."""
        (self.root / "wrapper.c").write_text(WRAPPER)
        (self.root / "program.c").write_text(WRAPPED)
        library = ["-shared", "-fPIC", "wrapper.c", "-o", "libwrapper.so", "-ldl"]
        program = ["program.c", "-o", "program", "-L.", "-lwrapper", f"-Wl,-rpath,{self.root}"]
        for options in (library, program):
            subprocess.run(["cc", *options], cwd=self.root, check=True)
        self.trace("io", self.root / "program", self.work / "file")
        self.assertEqual(self.out, "10 calls\n")
        self.assertEqual((self.sum("io_calls", op="write"), self.sum("io_bytes", op="write")), (10, 30))

    def test_many_files(self):
        """Large files get their own series, even if many small files come first. No call is
        lost."""
        script = """
import os, sys
os.chdir(sys.argv[1])
total = 0
for i in range(200):
    size = 70000 if i < 100 else 10
    with open(f"small-{i}", "wb", buffering=0) as f:
        total += f.write(bytes(size))
for i in range(3):
    with open(f"large-{i}", "wb", buffering=0) as f:
        for _ in range(20):
            total += f.write(bytes(1 << 20))
print(total)
"""
        self.trace("io", sys.executable, "-S", "-c", script, self.work)
        files = self.files()
        self.assertEqual([files[f"large-{i}"] for i in range(3)], [{"write": (20, 20 << 20)}] * 3)
        self.assertLessEqual(len(files), 65)
        written = sum(of["write"][1] for of in files.values() if "write" in of)
        self.assertEqual(written, int(self.out))
        self.assertEqual(self.sum("io_bytes", op="write"), int(self.out))

    def test_ranks(self):
        self.trace("io", "sh", "-c", f"RANK=1 WORLD_SIZE=2 {IO} {self.work} posix")
        self.assertEqual(self.sum("io_bytes", op="write", rank="1"), 360000)

    def test_fio(self):
        if not shutil.which("fio"):
            self.skipTest("no fio")
        self.trace("io", "fio", "--name=x", "--directory", self.work, "--rw=randrw", "--size=4M", "--bs=16k", "--ioengine=psync", "--output-format=json", "--fallocate=none",
                   "--randseed=7")
        said = json.loads(self.out)["jobs"][0]
        path = str(self.work / "x.0.0")
        for op in ("read", "write"):
            self.assertGreater(said[op]["total_ios"], 50)
        self.assertEqual((self.sum("io_file_calls", file=path, op="read"), self.sum("io_file_bytes", file=path, op="read")), (said["read"]["total_ios"], said["read"]["io_bytes"]))
        # fio writes the complete file before its measurement.
        laid_out = 4 << 20
        self.assertEqual(self.sum("io_file_bytes", file=path, op="write"), said["write"]["io_bytes"] + laid_out)

    def test_libraries_of_the_user_come_first(self):
        self.trace("io", "sh", "-c", "echo $LD_PRELOAD", LD_PRELOAD="libdl.so.2")
        self.assertEqual(self.out, f"libdl.so.2:{LIBRARY}\n")
        self.trace("io", "sh", "-c", "echo $LD_PRELOAD", LD_PRELOAD="")
        self.assertEqual(self.out, f"{LIBRARY}\n")

    def test_off_by_default(self):
        done = self.sonde("run", "--quiet", "--", "sh", "-c", "echo x$LD_PRELOAD")
        self.assertEqual(done.stdout, "x\n")
        done = self.sonde("run", "--quiet", "-l", 0, "--trace", "io", "--", "sh", "-c", "echo x$LD_PRELOAD")
        self.assertEqual((done.stdout, done.stderr), ("x\n", ""))

    def test_outside_of_a_job(self):
        """Without a job, the library does nothing."""
        done = subprocess.run([IO, self.work, "posix"], env=self.env | {"LD_PRELOAD": LIBRARY}, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_unknown(self):
        for given, said in (("disks", "'disks'"), ("io,", "''"), ("io,mpo", "'mpo'")):
            self.one_line(self.sonde("run", "--trace", given, "--", "true"), 2, "--trace", said, "known are io, mpi, omp, kokkos, cuda, nccl, nvtx, roctx, python")
        self.one_line(self.sonde("run", "--", "true", env={"SONDE_TRACE": "x"}), 2, "'x'")

    def test_static_program(self):
        (self.root / "x.c").write_text("int main(void) { return 7; }\n")
        built = subprocess.run(["cc", "-static", self.root / "x.c", "-o", self.root / "static"], capture_output=True)
        if built.returncode:
            self.skipTest("no static libc")
        done = self.sonde("run", "--quiet", "--trace", "io", "--", self.root / "static")
        self.one_line(done, 7, "is linked statically", "--trace io records nothing of it")

    def test_setuid_program(self):
        if os.getuid() != 0:
            self.skipTest("needs root")
        program = self.root / "other"
        shutil.copy("/bin/true", program)
        os.chown(program, 1234, 1234)
        program.chmod(0o4755)
        self.one_line(self.sonde("run", "--quiet", "--trace", "io", "--", program), 0, "runs with other rights")

    def test_missing_library(self):
        """A copy of the program without the libraries prints a line, and the command runs."""
        copy = self.root / "bin/sonde"
        copy.parent.mkdir()
        shutil.copy(SONDE, copy)
        done = subprocess.run([copy, "run", "--quiet", "--trace", "io", "--", "sh", "-c", "echo x$LD_PRELOAD; exit 3"], env=self.env, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (3, "x\n"), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("--trace io is not available", done.stderr)
        said = subprocess.run([copy, "doctor"], env=self.env, capture_output=True, text=True).stdout
        (line,) = [line for line in said.splitlines() if " tracing " in line]
        self.assertIn("io needs ", line)
        self.assertIn("libsonde_io.so", line)

    def test_library_below_a_folder_with_a_blank(self):
        """LD_PRELOAD cannot contain a path with a blank; the dynamic linker would print an error in
        each program. So the library is not loaded."""
        copy = self.root / "a b/sonde"
        (copy.parent / "src/trace").mkdir(parents=True)
        shutil.copy(SONDE, copy)
        shutil.copy(LIBRARY, copy.parent / "src/trace")
        command = [copy, "run", "--quiet", "--trace", "io", "--", "sh", "-c", "echo x$LD_PRELOAD"]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "x\n"), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("has a blank or a colon", done.stderr)

    def test_doctor(self):
        (line,) = [line for line in self.sonde("doctor").stdout.splitlines() if " tracing " in line]
        self.assertIn("io (files: calls, bytes, time)", line)

    def test_no_symbol_but_wrappers(self):
        """The library exports only wrappers, because other names could conflict with the
        program's."""
        names = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True).stdout.split()[2::3]
        self.assertIn("read", names)
        self.assertEqual([name for name in names if "sonde" in name or name.startswith("io_") or "timing" in name], [])


if __name__ == "__main__":
    main()
