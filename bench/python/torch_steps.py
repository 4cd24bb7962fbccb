#!/usr/bin/env python3
"""How much processor time sonde.integrations.torch adds to a step of a training, in pairs: some
steps with watch(), as many without, in alternation, with a DataLoader. stdout gets one JSON object
per line. Without PyTorch it reports that, and ends.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

BUILD = os.environ["SONDE_BUILD"]
SECONDS = float(os.environ.get("SONDE_BENCH_SECONDS", "10"))


def layers(torch, width):
    nn = torch.nn
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))


def digits(torch):
    """The network of PyTorch's own example for handwritten digits."""
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten(1),
                         nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10))


def measure(torch, model, shape, batch, steps):
    """Yields the processor time of a step in µs, without watch() and with it, of `steps` steps
    each."""
    import sonde.integrations.torch
    from torch.utils.data import DataLoader, TensorDataset

    data = TensorDataset(torch.randn(steps * batch, *shape), torch.randint(10, (steps * batch,)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    loss = torch.nn.CrossEntropyLoss()
    loader = DataLoader(data, batch_size=batch)

    def train():
        begun = time.process_time()
        for x, y in loader:
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
        return (time.process_time() - begun) / steps * 1e6

    def watched():
        with sonde.integrations.torch.watch(model, optimizer):
            return train()

    train()
    end = time.monotonic() + SECONDS / 3
    while time.monotonic() < end:  # each goes first in half of the pairs
        yield train(), watched()
        yield tuple(reversed((watched(), train())))


def main():
    import torch

    torch.set_num_threads(1)
    cases = {
        "width_16": (layers(torch, 16), (16,), 16, 50),
        "width_1024": (layers(torch, 1024), (1024,), 16, 50),
        "digits": (digits(torch), (1, 28, 28), 64, 5),
    }
    for name, case in cases.items():
        pairs = list(measure(torch, *case))
        bare = statistics.median(bare for bare, _ in pairs)
        added = statistics.median(watched - bare for bare, watched in pairs)
        print(json.dumps({"bench": "python", "name": f"torch_step_{name}", "pairs": len(pairs),
                          "step_us": round(bare, 1), "added_us": round(added, 2),
                          "added_percent": round(100 * added / bare, 2)}), flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main()
    elif subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode:
        print("bench: PyTorch is not here, so the cost of a recorded step is not measured", file=sys.stderr)
    else:
        with tempfile.TemporaryDirectory(prefix="sb-") as folder:
            path = os.pathsep.join([f"{BUILD}/bindings/python", *filter(None, [os.environ.get("PYTHONPATH")])])
            environment = os.environ | {"PYTHONPATH": path, "TMPDIR": folder}
            command = [f"{BUILD}/sonde", "run", "--quiet", "--no-record", "-l", "1", "--", sys.executable, __file__, "measure"]
            sys.exit(subprocess.run(command, env=environment).returncode)
