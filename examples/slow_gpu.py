"""Computes eigenvalues of Wigner matrices on every GPU while one of the GPUs is disturbed. The
disturbed GPU is found, and the job continues without its node.

    salloc --nodes=3 --exclusive
    sonde run --telemetry-level=3 --nodes=2 --resilient --exhaust-resources \
        examples/slow_gpu.py --plot

The job begins on two nodes. A process multiplies large matrices on GPU 0 of the node that is not
the primary one. SlowGPUDetector finds that this GPU is slower than the others, and requests a
restart without its node; the third node replaces it. The same happens there, and the job ends on
the primary node alone.

Results are in a checkpoint on the primary node, which is never excluded, so the final result equals
that of an undisturbed run.

The program uses GPUs through PyTorch. On machines without GPUs, cores can replace them:
SONDE_PROBE_DEVICES=cpu:0 uses the first core as a GPU.
"""

import argparse
import hashlib
import multiprocessing
import os
import pathlib
import struct
import threading
import time

import numpy as np

from on_nodes import Place, Processes, nodes
from sonde import SlowGPUDetector, Telemetry
from sonde.slow_gpu import devices

DISTURBERS = 32  # processes
DISTURBING_SIZE = {"gpu": 4000, "cpu": 400}  # rows of the disturbing matrices


def get_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", action="store_true", help="save a histogram of the eigenvalues as eigvals.png")
    parser.add_argument("--matrices", type=int, default=400, help="number of matrices (default 400)")
    parser.add_argument("--size", type=int, help="rows of a matrix (default 8000 on GPUs, 400 on cores)")
    parser.add_argument("--pace", type=float, default=0.0, metavar="SECONDS", help="minimum time of a matrix while a node is disturbed, so that few and small matrices last until it is found")
    parser.add_argument("--rate", type=float, default=3.0, metavar="SECONDS", help="interval between two probes (default 3)")
    parser.add_argument("--checkpoint", type=pathlib.Path, help="file of the checkpoint (default slow_gpu-JOB.checkpoint)")
    args = parser.parse_args()
    if args.matrices < 1 or (args.size is not None and args.size < 1):
        parser.error("one matrix with one row at least")
    return args


# ---------------------------------------------------------------- in the process of a GPU


def place_of(host, device):
    """Returns the place of a process that sees only this device."""
    kind, _, number = device.partition(":")
    visible = {"CUDA_VISIBLE_DEVICES": number, "ROCR_VISIBLE_DEVICES": number} if kind == "gpu" else {}
    return Place(host, visible | {"SLOW_GPU_DEVICE": device, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})


def use_device():
    """Returns PyTorch's device, or None if NumPy computes without a GPU. In that case it pins the
    process to its core, if the device has a number."""
    kind, _, number = os.environ["SLOW_GPU_DEVICE"].partition(":")
    if kind == "gpu":
        import torch

        return torch.device("cuda")
    if number:
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[int(number)]})
    return None


_device = ()  # this process' device; () until it is chosen


def eigenvalues(work):
    global _device
    if _device == ():
        _device = use_device()
    number, size, least_s = work
    end = time.monotonic() + least_s
    upper = np.triu(np.random.default_rng(number).standard_normal((size, size)))
    matrix = (upper + np.triu(upper, 1).T) / size**0.5
    if _device is None:
        values = np.linalg.eigvalsh(matrix)
    else:
        import torch

        values = torch.linalg.eigvalsh(torch.from_numpy(matrix).to(_device)).cpu().numpy()
    time.sleep(max(end - time.monotonic(), 0))
    return values


def multiply(begun):
    """Multiplies matrices until the parent process ends."""
    parent = os.getppid()

    def watch():
        while os.getppid() == parent:
            time.sleep(0.1)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
    os.setsid()  # because the kernel divides a core among sessions
    try:
        device = use_device()
        size = DISTURBING_SIZE["cpu" if device is None else "gpu"]
        a = np.random.default_rng(0).standard_normal((size, size))
        if device is not None:
            import torch

            a = torch.from_numpy(a).to(device)
        a @ a
    finally:
        begun.release()  # even if the device has no memory for this process
    while True:
        a @ a


def disturb():
    """Slows the device down until this process ends. Returns when the disturbing processes work."""
    context = multiprocessing.get_context("fork")
    begun = context.Semaphore(0)
    for _ in range(DISTURBERS):
        context.Process(target=multiply, args=(begun,)).start()
    for _ in range(DISTURBERS):
        begun.acquire()


# ---------------------------------------------------------------- on the primary node


class Checkpoint:
    """A file with one result after another: number, count, values. If a write was interrupted, the
    incomplete last result does not count."""

    HEAD = struct.Struct("<QQ")

    def __init__(self, path):
        self.path = path
        self.done = {}
        data, at = path.read_bytes() if path.exists() else b"", 0
        while at + self.HEAD.size <= len(data):
            number, count = self.HEAD.unpack_from(data, at)
            end = at + self.HEAD.size + 8 * count
            if end > len(data):
                break
            self.done[number] = np.frombuffer(data, "<f8", count, at + self.HEAD.size)
            at = end
        self._file = path.open("r+b" if path.exists() else "wb")
        self._file.seek(at)
        self._file.truncate()

    def add(self, number, values):
        self.done[number] = values
        self._file.write(self.HEAD.pack(number, len(values)) + values.astype("<f8").tobytes())
        self._file.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()


def plot(values):
    try:
        import matplotlib
    except ImportError:
        print("eigvals.png is not made: matplotlib is not installed", flush=True)
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.hist(values, bins=100)
    pyplot.title("Eigenvalues of Wigner matrices")
    pyplot.xlabel("value")
    pyplot.ylabel("frequency")
    pyplot.savefig("eigvals.png")


def find_devices(hosts):
    """Returns (host, device) of all GPUs of the job; without GPUs, half of this machine's cores."""
    with Processes([Place(host) for host in hosts]) as processes:
        found = [(host, device) for host, there in zip(hosts, processes.each(devices)) for device in there]
    return found or [(hosts[0], "cpu")] * max(len(os.sched_getaffinity(0)) // 2, 1)


def main():
    args = get_args()
    telemetry = Telemetry()
    hosts = nodes()
    print(f"Sacred node: {hosts[0]}", flush=True)
    found = find_devices(hosts)
    print(f"Attempt {os.environ.get('SONDE_RESTART', '0')}: {', '.join(f'{host} {device}' for host, device in found)}", flush=True)
    path = args.checkpoint or pathlib.Path(f"slow_gpu-{os.environ.get('SONDE_JOB', os.getpid())}.checkpoint")
    size = args.size or (8000 if found[0][1].startswith("gpu") else 400)

    victim = next(((host, device) for host, device in found if host != hosts[0]), None)
    disturbing = Processes([place_of(*victim)] if victim else [])
    disturbing.each(disturb)
    detector = SlowGPUDetector(collection_rate=args.rate)
    detector.start()

    with Checkpoint(path) as checkpoint, Processes([place_of(host, device) for host, device in found]) as processes, disturbing:
        work = [(number, size, args.pace if victim else 0) for number in range(args.matrices) if number not in checkpoint.done]
        processes.map(eigenvalues, work, lambda item, values: checkpoint.add(item[0], values))
    detector.stop()

    values = np.concatenate([checkpoint.done[number] for number in range(args.matrices)])
    print(f"Computed {len(values)} eigenvalues", flush=True)
    print(f"from {values.min():.3f} to {values.max():.3f}, {hashlib.sha256(np.round(values, 6).tobytes()).hexdigest()[:16]}", flush=True)
    if args.plot:
        plot(values)
    path.unlink()
    telemetry.finalize()


if __name__ == "__main__":
    main()
