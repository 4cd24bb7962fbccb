"""Image processing on all cores, which emits its own metrics in addition to those of the nodes.

    sonde run --telemetry-level=2 examples/scipy_scale_work.py
    salloc --nodes=2 --exclusive sonde run --telemetry-level=2 examples/scipy_scale_work.py --dragon

The time of each iteration is recorded at every level, the number of the iteration from level 3 on.
Without `sonde run`, nothing is recorded. The images are filtered by scipy.signal, or by NumPy if
SciPy is not installed.
"""

import argparse
import itertools
import multiprocessing
import time

import numpy as np

from on_nodes import Place, Processes, nodes
from sonde import Telemetry

try:
    from scipy.signal import convolve2d
except ImportError:

    def convolve2d(image, kernel):
        rows, columns = (a + b - 1 for a, b in zip(image.shape, kernel.shape))
        result = np.zeros((rows, columns))
        for (i, j), weight in np.ndenumerate(kernel):
            result[i : i + image.shape[0], j : j + image.shape[1]] += weight * image
        return result


def get_args(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--num_workers", type=int, default=4, help="processes (default 4)")
    parser.add_argument("--iterations", type=int, default=10, help="measured iterations (default 10)")
    parser.add_argument("--burns", type=int, default=2, help="additional iterations first, as a warm-up (default 2)")
    parser.add_argument("--dragon", action="store_true", help="spread the processes over the nodes of the job; else multiprocessing starts them on this one")
    parser.add_argument("--size", type=int, default=1000, help="an image has SIZE × SIZE values (default 1000)")
    parser.add_argument("--mem", type=int, default=512 << 20, help="values in all images together (default 512 Mi)")
    parser.add_argument("--runtime", "--work_time", type=float, default=0.0, metavar="SECONDS", help="time of the work on each image (default 0: the images are only sent)")
    args = parser.parse_args()
    if min(args.num_workers, args.iterations, args.size) < 1 or args.burns < 0:
        parser.error("one worker, one iteration and one value at least")
    return args


def process(work):
    image, kernel, seconds = work
    end, result = time.perf_counter() + seconds, None
    while time.perf_counter() < end:
        result = convolve2d(image, kernel)[::5, ::5]
    return result


def make_pool(args):
    if not args.dragon:
        print("using regular mp libs/calls")
        return multiprocessing.get_context("spawn").Pool(args.num_workers)
    hosts = nodes()
    print(f"using the job's nodes: {', '.join(hosts)}")
    return Processes([Place(host) for host in itertools.islice(itertools.cycle(hosts), args.num_workers)])


def main(description=__doc__.splitlines()[0], at_end=lambda: None):
    """`at_end` is called after the work, while telemetry still records."""
    args = get_args(description)
    telemetry = Telemetry()
    count = max(args.mem // args.size**2, 1)
    images = [np.zeros((args.size, args.size)) for _ in range(count)]
    kernels = [np.random.normal(size=(4, 4)) for _ in range(count)]
    print(f"Number of images: {count}", flush=True)
    print(f"Number of workers: {args.num_workers}", flush=True)

    start = time.perf_counter()
    with make_pool(args) as pool:
        telemetry.add_data("pool_start_time", time.perf_counter() - start)
        times = []
        for i in range(args.burns + args.iterations):
            start = time.perf_counter()
            pool.map(process, zip(images, kernels, itertools.repeat(args.runtime)))
            times.append(time.perf_counter() - start)
            telemetry.add_data("iteration", i, telemetry_level=3)
            telemetry.add_data("iteration_time", times[-1])
            print(f"Time for iteration {i} is {times[-1]} seconds", flush=True)
    print(f"Average time: {np.mean(times[args.burns :]):.2f} second(s)")
    print(f"Standard deviation: {np.std(times[args.burns :]):.2f} second(s)")
    at_end()
    telemetry.finalize()


if __name__ == "__main__":
    main()
