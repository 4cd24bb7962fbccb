"""`sonde probe`: lines for every device that answers, messages for the others.
tests/fake/gpu_driver.c simulates the GPUs; with NVIDIA's driver installed, the real ones are
tested, too."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from place import Place, main

FAKE = os.path.dirname(os.environ["FAKE_CUDA"])
FAKE_HIP = os.path.dirname(os.environ["FAKE_HIP"])
PTXAS = shutil.which("ptxas") or next((str(path) for folder in sys.path for path in pathlib.Path(folder).glob("nvidia/*/bin/ptxas")), None)


def lines(text):
    """Returns (metric, tags) → seconds."""
    found = {}
    for line in text.splitlines():
        metric, value, *tags = line.split()
        found[metric, tuple(tags)] = float(value)
    return found


class Cores(Place):
    def test_all_that_may_be_used(self):
        cores = len(os.sched_getaffinity(0))
        result = self.sonde("probe", "cpu")
        self.assertEqual(result.returncode, 0, result.stderr)
        found = lines(result.stdout)
        self.assertEqual({key for key in found}, {(f"probe_{what}_seconds", (f"core={i}",)) for what in ("compute", "memory") for i in range(cores)})
        self.assertTrue(all(1e-5 < seconds < 60 for seconds in found.values()), found)

    def test_without_gpus_the_cores(self):
        result = self.sonde("probe", env={"LD_LIBRARY_PATH": f"{FAKE}:{FAKE_HIP}", "FAKE_GPU_DEVICES": "0"})
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("core=0", result.stdout)

    def test_what_is_not_there(self):
        result = self.sonde("probe", "cpu:0", "cpu:1000")
        self.assertEqual(result.returncode, 1)
        self.assertIn("there is no core 1000", result.stderr)
        self.assertEqual(len(lines(result.stdout)), 2)
        self.one_line(self.sonde("probe", "disk"), 2, "'disk'", "gpu:0")
        self.one_line(self.sonde("probe", "cpu:x"), 2, "'cpu:x'")
        self.one_line(self.sonde("probe", "gpu:5000"), 2, "'gpu:5000'")


class Gpus(Place):
    def setUp(self):
        super().setUp()
        self.env |= {"LD_LIBRARY_PATH": FAKE}

    def test_lines(self):
        result = self.sonde("probe", env={"FAKE_GPU_MS": "2.5,3"})
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        uuids = [f"uuid=GPU-{''.join(f'{i * 16 + d:02x}' for i in range(16))}" for d in (0, 1)]
        uuids = [u[:17] + "-" + u[17:21] + "-" + u[21:25] + "-" + u[25:29] + "-" + u[29:] for u in uuids]
        self.assertEqual(lines(result.stdout), {(f"probe_{what}_seconds", (f"gpu={i}", uuids[i])): (0.0025, 0.003)[i]
                                                for i in (0, 1) for what in ("compute", "memory")})

    @unittest.skipUnless(PTXAS, "there is no ptxas here")
    def test_the_work_assembles(self):
        """For every GPU that this ptxas supports, from the oldest to the newest."""
        work = self.root / "work.ptx"
        self.sonde("probe", "gpu:0", env={"FAKE_GPU_WORK": str(work)})
        known = re.findall(r"'(sm_[0-9]+)'", subprocess.run([PTXAS, "--help"], capture_output=True, text=True, check=True).stdout)
        known = sorted(set(known), key=lambda name: int(name[3:]))
        self.assertIn("sm_90", known)
        for name in known:
            done = subprocess.run([PTXAS, f"--gpu-name={name}", "--warning-as-error", "--output-file=/dev/null", work], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""), name)
        print("# assembled for", *known, flush=True)

    def test_one_of_them(self):
        self.assertEqual({tags[0] for _, tags in lines(self.sonde("probe", "gpu:1").stdout)}, {"gpu=1"})
        result = self.sonde("probe", "gpu:2")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("there is no GPU 2", result.stderr)

    def test_full_memory(self):
        # room for the work, but not for the memory test
        result = self.sonde("probe", env={"FAKE_GPU_FREE_MIB": "100"})
        self.assertEqual((result.returncode, {metric for metric, _ in lines(result.stdout)}), (0, {"probe_compute_seconds"}), result.stderr)
        result = self.sonde("probe", env={"FAKE_GPU_FREE_MIB": "130"})
        self.assertEqual({metric for metric, _ in lines(result.stdout)}, {"probe_compute_seconds", "probe_memory_seconds"})
        result = self.sonde("probe", env={"FAKE_GPU_FREE_MIB": "0"})
        self.assertEqual((result.returncode, result.stdout, result.stderr.count("its memory is full")), (1, "", 2), result.stderr)

    def test_what_comes_and_goes_is_not_in_the_time(self):
        """The time is the median of five stretches, measured again if they differ: for instance
        while a clock rises, or another program runs in between. It includes lasting changes."""
        for times, ms in (("9,5,3,2,1.5", 2), ("1,1,4,1,1", 2), ("1,1,1,1,4", 2), ("3,3,1,1,1,1,3,1,1,3", 2), (",".join(["1.5"] * 40), 3)):
            result = self.sonde("probe", "gpu:0", env={"FAKE_GPU_TIMES": times})
            self.assertEqual((result.returncode, result.stderr), (0, ""), times)
            found = {metric: seconds for (metric, _), seconds in lines(result.stdout).items()}
            self.assertAlmostEqual(found["probe_compute_seconds"], ms / 1e3, places=6, msg=times)

    def test_what_differs_again_and_again_has_an_end(self):
        result = self.sonde("probe", "gpu:0", env={"FAKE_GPU_TIMES": ",".join(["1,2,3,4,5"] * 20)})
        self.assertEqual({seconds for seconds in lines(result.stdout).values()}, {0.006}, result.stderr)

    def test_a_gpu_that_cannot_be_had_now(self):
        for error, words in (("46", "another program has it to itself"), ("808", "its MPS server takes no more programs"), ("2", "its memory is full")):
            result = self.sonde("probe", "gpu:1", env={"FAKE_GPU_FAILS": f"cuCtxCreate_v2={error}"})
            self.one_line(result, 1, words, "without a probe")
        self.assertIn("without a probe", self.sonde("probe", "gpu:1", env={"FAKE_GPU_FAILS": "cuInit=807"}).stderr)

    def test_whatever_fails_is_said(self):
        """A message for each of the driver's functions, with the error; no memory is left
        allocated."""
        words = {"cuInit": "the driver does not start", "cuDeviceGetCount": "the driver does not count its devices", "cuCtxCreate_v2": "the GPU cannot be used",
                 "cuModuleLoadData": "the work cannot be loaded", "cuDeviceGetAttribute": "the work cannot begin", "cuMemAlloc_v2": "the work cannot begin"}
        words |= dict.fromkeys(["cuModuleGetFunction", "cuEventCreate", "cuEventRecord", "cuLaunchKernel", "cuEventSynchronize", "cuEventElapsedTime", "cuMemsetD32_v2",
                                "cuMemFree_v2"], "the work failed")
        for function, said in words.items():
            result = self.sonde("probe", "gpu:0", env={"FAKE_GPU_FAILS": f"{function}=719"})
            self.one_line(result, 1, f"gpu 0: {said}", "(719)")
            self.assertNotIn("without a probe", result.stderr)
        # not required
        for function in ("cuDeviceGetName", "cuDeviceGetUuid", "cuCtxDestroy_v2"):
            self.assertEqual(len(lines(self.sonde("probe", "gpu:0", env={"FAKE_GPU_FAILS": f"{function}=719"}).stdout)), 2)
        self.one_line(self.sonde("probe", "gpu", env={"FAKE_GPU_FAILS": "cuInit=719"}), 1, "the driver does not start", "(719)")

    def test_one_hangs_and_one_dies(self):
        result = self.sonde("probe", "--timeout", "0.5", env={"FAKE_GPU_DEVICES": "4", "FAKE_GPU_HANGS": "1", "FAKE_GPU_DIES": "2"})
        self.assertEqual(result.returncode, 1)
        self.assertEqual({tags[0] for _, tags in lines(result.stdout)}, {"gpu=0", "gpu=3"})
        self.assertIn("gpu 1 does not answer in time", result.stderr)
        self.assertIn("gpu 2 has ended its probe without a result", result.stderr)
        self.nothing_left()

    def test_a_driver_without_what_is_needed(self):
        old = self.root / "old"
        old.mkdir()
        source = old / "none.c"
        source.write_text("int cuInit(unsigned f) { return (int)f; }\n")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(old / "libcuda.so.1"), str(source)], check=True)
        result = self.sonde("probe", "gpu", env={"LD_LIBRARY_PATH": str(old)})
        self.one_line(result, 1, "libcuda.so.1 has no cu")

    def test_amd(self):
        """HIP has the same calls under other names, and compiles its work when needed."""
        hip = {"LD_LIBRARY_PATH": FAKE_HIP}
        result = self.sonde("probe", env=hip | {"FAKE_GPU_MS": "2.5,3", "FAKE_GPU_FREE_MIB": "2000"})
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(lines(result.stdout), {(f"probe_{what}_seconds", (f"gpu={i}", f"uuid=GPU-{'ab'[i] * 16}")): (0.0025, 0.003)[i]
                                                for i in (0, 1) for what in ("compute", "memory")})
        for free, kinds in (("1000", {"probe_compute_seconds", "probe_memory_seconds"}), ("500", {"probe_compute_seconds"})):
            result = self.sonde("probe", "gpu:0", env=hip | {"FAKE_GPU_FREE_MIB": free})
            self.assertEqual(({metric for metric, _ in lines(result.stdout)}, result.stderr), (kinds, ""))
        result = self.sonde("probe", "gpu:0", env=hip | {"FAKE_GPU_FREE_MIB": "0"})
        self.assertIn("its memory is full", result.stderr)
        result = self.sonde("probe", "gpu:0", env=hip | {"FAKE_GPU_COMPILES": "0"})
        self.one_line(result, 1, "the work cannot be compiled")
        # No compiler is installed.
        alone = self.root / "alone"
        alone.mkdir()
        (alone / "libamdhip64.so.6").symlink_to(os.environ["FAKE_HIP"])
        self.one_line(self.sonde("probe", "gpu:0", env={"LD_LIBRARY_PATH": str(alone)}), 1, "there is no libhiprtc")

    def test_the_maker_that_has_gpus(self):
        """A machine with NVIDIA's driver, but AMD GPUs."""
        none = self.root / "none"
        none.mkdir()
        (none / "none.c").write_text("int cuInit(unsigned f) { return (int)f; }\n")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(none / "libcuda.so.1"), str(none / "none.c")], check=True)
        result = self.sonde("probe", "gpu:1", env={"LD_LIBRARY_PATH": f"{none}:{FAKE_HIP}"})
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("uuid=GPU-bbbb", result.stdout)

    def test_no_gpus(self):
        if subprocess.run(["sh", "-c", "nvidia-smi -L"], capture_output=True).returncode == 0:
            self.skipTest("there is an NVIDIA GPU here")
        self.one_line(self.sonde("probe", "gpu", env={"LD_LIBRARY_PATH": ""}), 1, "neither libcuda.so.1 (NVIDIA's driver) nor libamdhip64")

    def test_into_a_job(self):
        result = self.sonde("run", "-q", "-l", 1, "--record", self.root / "rec", "--", "sh", "-c", "sonde probe gpu | sonde put")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.names(self.root / "rec"), {"probe_compute_seconds": 2, "probe_memory_seconds": 2})

    def test_a_real_one_repeats(self):
        if subprocess.run(["sh", "-c", "nvidia-smi -L"], capture_output=True).returncode:
            self.skipTest("there is no NVIDIA GPU here")
        env = self.env | {"LD_LIBRARY_PATH": ""}

        def used():
            text = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], capture_output=True, text=True, check=True).stdout
            return [int(line) for line in text.split()]

        before = used()
        times = [lines(self.sonde("probe", "gpu:0", env=env).stdout) for _ in range(7)]
        for key in times[0]:
            values = sorted(t[key] for t in times)
            print(f"real GPU: {key[0]} {values}")
            self.assertLess((values[5] - values[1]) / values[3], 0.03, key)
        self.assertTrue(all(b - a <= 1 for a, b in zip(before, used())))


if __name__ == "__main__":
    main()
