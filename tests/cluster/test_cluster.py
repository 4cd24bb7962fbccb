"""Tests runs on several hosts of a lab: under its Slurm, over ssh, with Open MPI. A lab serves many
tests; each leaves it unchanged.

LAB_TRANSPORT chooses the transport of nodes' data: tcp (default), fabric:tcp, fabric:shm. With the
last two, tests that move no data of nodes are skipped, unless LAB_ALL is set. LAB_COUNT is the
number of parallel labs. Arguments select tests by name, as in Cluster.test_strict.

Without root, namespaces or libfabric, the suite is skipped with a message.
"""

import contextlib
import signal
import sys
import time
import unittest

from client_commands import ClientCommands
from cluster_job import EMITTER, HOSTS, LABS, PRINT_RANK, SKEW, SONDE, TRANSPORT, ClusterJob
from dump_failures import DumpFailures
from dumps import Dumps
from launchers import Launchers
from node_answers import NodeAnswers
from node_failures import NodeFailures
from slurm_steps import SlurmSteps
import parallel_labs
from lab import Lab, skip_if, why_not

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup, our child processes would ignore it
lab = None


@contextlib.contextmanager
def open_lab():
    global lab
    began = time.monotonic()
    # Only tests of trees of relays, and of runs with a reserve, use n4.
    with Lab([SONDE, EMITTER, SKEW, PRINT_RANK], names=(*HOSTS, "n4"), transport=TRANSPORT) as lab:
        print(f"# lab up in {time.monotonic() - began:.1f} s", flush=True)
        yield


class Cluster(
    ClientCommands, Dumps, DumpFailures, Launchers, NodeAnswers, NodeFailures, SlurmSteps, ClusterJob, unittest.TestCase
):
    lab = property(lambda self: lab)


if __name__ == "__main__":
    skip_if(why_not(TRANSPORT))
    sys.exit(parallel_labs.run("__main__", open_lab, LABS, sys.argv[1:]))
