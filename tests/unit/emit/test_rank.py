"""The rank of a process below launchers, all of them real processes: each sets the variables of the
launcher with its name, and starts the next.

The oracle is one sentence: the innermost launcher has started the process.
"""

import os
import random
import subprocess
import sys
import unittest

PRINT_RANK = os.environ["PRINT_RANK"]
SEED = int(os.environ.get("SONDE_TEST_SEED", "1"))
ROUNDS = float(os.environ.get("SONDE_TEST_ROUNDS", "1"))
SIZE = 64


def variables(launcher, rank):
    size = str(SIZE)
    return {
        "torchrun": {"RANK": rank, "LOCAL_RANK": "0", "WORLD_SIZE": size, "TORCHELASTIC_RUN_ID": "x"},
        "horovodrun": {"HOROVOD_RANK": rank, "HOROVOD_SIZE": size},
        "jax": {"JAX_PROCESS_ID": rank, "JAX_NUM_PROCESSES": size},
        "openmpi": {"PMIX_RANK": rank, "OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": size},
        "mpich": {"PMI_RANK": rank, "PMI_SIZE": size},
        "mvapich": {"MV2_COMM_WORLD_RANK": rank, "MV2_COMM_WORLD_SIZE": size},
        "mvapich3": {"MVP_COMM_WORLD_RANK": rank, "MVP_COMM_WORLD_SIZE": size},
        "mpt": {"MPT_MPI_RANK": rank},
        "jsrun": {"JSM_NAMESPACE_RANK": rank, "JSM_NAMESPACE_SIZE": size},
        "pals": {"PALS_RANKID": rank, "PALS_SIZE": size},
        "flux": {"FLUX_TASK_RANK": rank, "FLUX_JOB_SIZE": size},
        "srun": {"SLURM_PROCID": rank, "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": size},
        "sbatch": {"SLURM_PROCID": "0", "SLURM_JOB_ID": "7"},
    }[launcher]


KINDS = ["torchrun", "horovodrun", "jax", "openmpi", "mpich", "mvapich", "mvapich3", "mpt", "jsrun", "pals", "flux", "srun"]


def start(chain, arguments=()):
    """Runs in a process of its own: sets the first launcher's variables, and starts the rest of the
    chain."""
    if not chain:
        return subprocess.run([PRINT_RANK, *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    code = "import os, sys, test_rank; print(test_rank.run_link(eval(sys.argv[1]), sys.argv[2:]))"
    return subprocess.run([sys.executable, "-S", "-c", code, repr(chain), *arguments], stdout=subprocess.PIPE, text=True, check=True,
                          cwd=os.path.dirname(os.path.abspath(__file__))).stdout.strip()


def run_link(chain, arguments):
    """A launcher, which does not have the variables that it sets for its child. srun's daemon does
    not have the environment that it passes on."""
    (launcher, rank), rest = chain[0], chain[1:]
    env = dict(os.environ) | (variables(launcher, rank) if launcher != "nothing" else {})
    code = "import os, sys, test_rank; print(test_rank.start(eval(sys.argv[1]), sys.argv[2:]))"
    command = [sys.executable, "-S", "-c", code, repr(rest), *arguments]
    if launcher != "srun":
        return subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    # srun passes its arguments to the daemon through a connection; the daemon starts the task with
    # them.
    read, write = os.pipe()
    os.write(write, repr(env).encode())
    os.close(write)
    daemon = f"import os, sys; env = eval(os.read({read}, 1 << 20)); pid = os.fork()\n" \
             "if pid: sys.exit(os.waitpid(pid, 0)[1])\n" \
             "os.execve(sys.argv[1], sys.argv[1:], env | {'SLURM_TASK_PID': str(os.getpid())})"
    return subprocess.run([sys.executable, "-S", "-c", daemon, *command], env={}, pass_fds=[read], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


class Ranks(unittest.TestCase):
    def setUp(self):
        for name in list(os.environ):
            if any(name in variables(kind, "0") for kind in [*KINDS, "sbatch"]):
                del os.environ[name]

    def alone(self, env):
        return subprocess.run([PRINT_RANK], env=os.environ | env, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()

    def test_each_alone(self):
        for kind in KINDS:
            self.assertEqual(self.alone(variables(kind, "5")), "5", kind)
        self.assertEqual(self.alone({}), "none")

    def test_what_gives_none(self):
        self.assertEqual(self.alone(variables("sbatch", "0")), "none")
        # a batch script, with the number of newer versions
        self.assertEqual(self.alone(variables("srun", "0") | {"SLURM_STEP_ID": "4294967291"}), "none")
        self.assertEqual(self.alone({"RANK": "3"}), "none")  # a name that other programs use, too
        self.assertEqual(self.alone({"RANK": "8", "WORLD_SIZE": "8"}), "none")
        for bad in ("", "-1", "x", "1x", "123456789012345678901"):
            self.assertEqual(self.alone({"PMI_RANK": bad}), "none", bad)

    def test_inside_out(self):
        for chain, expected in (
            ([("srun", "1"), ("torchrun", "9")], "9"),
            ([("sbatch", "0"), ("openmpi", "3")], "3"),
            ([("srun", "1"), ("openmpi", "6")], "6"),
            ([("torchrun", "2"), ("srun", "7")], "7"),
            ([("openmpi", "2"), ("srun", "7")], "7"),
            ([("openmpi", "4"), ("nothing", ""), ("nothing", "")], "4"),
            ([("sbatch", "0"), ("srun", "3"), ("torchrun", "11"), ("openmpi", "1")], "1"),
        ):
            self.assertEqual(start(chain), expected, chain)

    def test_set_by_the_program_itself(self):
        """Like Ray's workers, and scripts that copy SLURM_PROCID."""
        self.assertEqual(start([("srun", "3"), ("openmpi", "4")], ["RANK=12", "WORLD_SIZE=16"]), "12")

    def test_random_chains(self):
        draw = random.Random(SEED)
        for _ in range(max(1, round(3 * ROUNDS))):
            chain = [(draw.choice([*KINDS, "nothing"]), str(draw.randrange(SIZE))) for _ in range(draw.randrange(1, 4))]
            real = [rank for kind, rank in chain if kind != "nothing"]
            self.assertEqual(start(chain), real[-1] if real else "none", f"seed {SEED}: {chain}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
