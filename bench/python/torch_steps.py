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
STEPS = 50  # of each half of a pair


def measure(width, batch):
    """Yields the processor time of a step in µs, without watch() and with it."""
    import sonde.integrations.torch
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    torch.set_num_threads(1)
    data = TensorDataset(torch.randn(STEPS * batch, width), torch.randn(STEPS * batch, 1))
    model = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    loader = DataLoader(data, batch_size=batch)

    def train():
        begun = time.process_time()
        for x, y in loader:
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
        return (time.process_time() - begun) / STEPS * 1e6

    def watched():
        with sonde.integrations.torch.watch(model, optimizer):
            return train()

    train()
    end = time.monotonic() + SECONDS / 3
    while time.monotonic() < end:  # each goes first in half of the pairs
        yield train(), watched()
        yield tuple(reversed((watched(), train())))


def main():
    for width, batch in ((16, 16), (1024, 16), (1024, 128)):
        pairs = list(measure(width, batch))
        bare = statistics.median(bare for bare, _ in pairs)
        added = statistics.median(watched - bare for bare, watched in pairs)
        print(json.dumps({"bench": "python", "name": f"torch_step_width_{width}_batch_{batch}", "pairs": len(pairs), "step_us": round(bare, 1),
                          "added_us": round(added, 2), "added_percent": round(100 * added / bare, 2)}), flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main()
    elif subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode:
        print("bench: PyTorch is not here, so the cost of a recorded step is not measured", file=sys.stderr)
    else:
        with tempfile.TemporaryDirectory(prefix="sb-") as folder:
            environment = os.environ | {"PYTHONPATH": f"{BUILD}/bindings/python", "TMPDIR": folder}
            command = [f"{BUILD}/sonde", "run", "--quiet", "--no-record", "-l", "1", "--", sys.executable, __file__, "measure"]
            sys.exit(subprocess.run(command, env=environment).returncode)
