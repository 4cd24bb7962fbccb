#!/usr/bin/env python3
"""A model in the loop with simulations, after the demonstration in the paper about the Dragon
Telemetry Service (docs/demo.md).

In each iteration, a small model predicts sin(x), and an MPI program in C computes the same by the
Taylor series. If the two differ too much, an MPI program in Fortran makes a training set around x,
and the model learns it. Then x moves on.
"""

import argparse
import math
import shlex
import subprocess
import sys
from pathlib import Path

import sonde

HERE = Path(__file__).resolve().parent
HIDDEN = 32  # neurons
RATE = 0.02  # of learning, by Adam


def torch_model():
    """(learn, predict) of a network in PyTorch."""
    import torch

    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(1, HIDDEN), torch.nn.Tanh(), torch.nn.Linear(HIDDEN, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=RATE)

    def learn(x, y):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(net(torch.tensor(x).reshape(-1, 1)), torch.tensor(y).reshape(-1, 1))
        loss.backward()
        optimizer.step()
        return loss.item()

    return learn, lambda x: net(torch.tensor([[x]])).item()


def numpy_model():
    """The same network in NumPy."""
    import numpy

    random = numpy.random.default_rng(1)
    w = [random.uniform(-1, 1, HIDDEN), random.uniform(-1, 1, HIDDEN), random.uniform(-1, 1, HIDDEN) / math.sqrt(HIDDEN), numpy.zeros(1)]
    mean, square = [numpy.zeros_like(one) for one in w], [numpy.zeros_like(one) for one in w]
    steps = 0

    def forward(x):
        hidden = numpy.tanh(numpy.outer(x, w[0]) + w[1])
        return hidden, hidden @ w[2] + w[3]

    def learn(x, y):
        nonlocal steps
        steps += 1
        x, y = numpy.asarray(x), numpy.asarray(y)
        hidden, output = forward(x)
        error = 2 * (output - y) / len(x)
        inner = numpy.outer(error, w[2]) * (1 - hidden**2)
        for i, slope in enumerate((x @ inner, inner.sum(0), error @ hidden, error.sum(keepdims=True))):
            mean[i] = 0.9 * mean[i] + 0.1 * slope
            square[i] = 0.999 * square[i] + 0.001 * slope**2
            w[i] -= RATE * (mean[i] / (1 - 0.9**steps)) / (numpy.sqrt(square[i] / (1 - 0.999**steps)) + 1e-8)
        return float(((output - y) ** 2).mean())

    return learn, lambda x: float(forward(numpy.array([x]))[1][0])


def make_model():
    try:
        return torch_model()
    except ImportError:
        return numpy_model()


def run(arguments, program, *words):
    """Runs an MPI program; returns the numbers of each line that it prints."""
    path = Path(arguments.programs) / program
    if not path.exists():
        sys.exit(f"{path} does not exist: build it with make -C {HERE}")
    command = [*shlex.split(arguments.mpirun), "-n", str(arguments.ranks), str(path), *map(str, words)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{shlex.join(command)} failed with exit code {done.returncode}")
    return [tuple(map(float, line.split())) for line in done.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=40)
    parser.add_argument("--step", type=float, default=0.3, help="how far x moves on in an iteration")
    parser.add_argument("--tolerance", type=float, default=0.05, help="the difference from which on the model learns")
    parser.add_argument("--epochs", type=int, default=400, help="of a training")
    parser.add_argument("--points", type=int, default=32, help="of a training set, for each rank")
    parser.add_argument("--ranks", type=int, default=2, help="of each MPI program")
    parser.add_argument("--mpirun", default="mpirun", help="the command that starts ranks, with its options")
    parser.add_argument("--programs", default=HERE, help="the folder of taylor and training_set; default: this one")
    arguments = parser.parse_args()

    actual, predicted, difference, loss = (sonde.gauge(name) for name in ("actual", "predicted", "difference", "loss"))
    learn, predict = make_model()
    trainings = 0
    for number in range(arguments.iterations):
        with sonde.span("iteration", number=number):
            x = number * arguments.step
            angle = math.remainder(x, 2 * math.pi)  # the model and the series know one period
            with sonde.span("taylor"):
                [(expected,)] = run(arguments, "taylor", angle)
            with sonde.span("inference"):
                guess = predict(angle)
            actual(math.sin(x))
            predicted(guess)
            difference(guess - expected)
            if abs(guess - expected) > arguments.tolerance:
                trainings += 1
                with sonde.span("training_set"):
                    xs, ys = zip(*run(arguments, "training_set", angle, arguments.points, number))
                with sonde.span("training"):
                    for _ in range(arguments.epochs):
                        loss(learn(xs, ys))
    print(f"{arguments.iterations} iterations, {trainings} trainings, last difference {guess - expected:.3f}")


if __name__ == "__main__":
    main()
