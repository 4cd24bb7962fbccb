"""ranks LANGUAGE: the MPI program of test_programs.py in Python. LANGUAGE is a tag of all data."""

import sys

from mpi4py import MPI

import sonde

language = {"language": sys.argv[1]}
part, steps, total = sonde.gauge("part", tags=language), sonde.counter("steps", tags=language), sonde.gauge("total", tags=language)
rank = MPI.COMM_WORLD.Get_rank()
with sonde.span("solve", **language):
    for i in range(10):
        part(100 * rank + i)
        steps(1)
    with sonde.span("exchange", **language):
        summed = MPI.COMM_WORLD.allreduce(rank)
total(summed)
