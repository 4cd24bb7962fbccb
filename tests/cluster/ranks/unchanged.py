"""unchanged SLOW LATE FILE: a program with mpi4py that does not know sonde. The rank SLOW reaches
each of 40 reductions LATE seconds after the others. Rank 0 writes 300 MiB into FILE."""

import array
import sys
import time

from mpi4py import MPI

slow, late, path = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
rank = MPI.COMM_WORLD.Get_rank()
values, sums = array.array("d", [rank] * 100), array.array("d", [0] * 100)
for _ in range(40):
    if rank == slow:
        time.sleep(late)
    MPI.COMM_WORLD.Allreduce(values, sums)
if rank == 0:
    with open(path, "wb", buffering=0) as file:
        for _ in range(300):
            file.seek(0)
            file.write(bytes(1 << 20))
