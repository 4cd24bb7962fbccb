#!/usr/bin/env python3
"""How much processor time sonde.integrations adds to a step of a training, in pairs: some steps
with watch() or a callback, as many without, in alternation, with a DataLoader. stdout gets one JSON
object per line. A framework that is not installed is left out, with a message.
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


def processor_us(train, steps):
    """Returns the processor time of a step in µs."""
    begun = time.process_time()
    train()
    return (time.process_time() - begun) / steps * 1e6


def plain(torch, model, shape, batch, steps):
    """Returns two trainings of `steps` steps: in a program's own loop, without watch() and with
    it. Each returns the processor time of a step in µs."""
    import sonde.integrations.torch
    from torch.utils.data import DataLoader, TensorDataset

    data = TensorDataset(torch.randn(steps * batch, *shape), torch.randint(10, (steps * batch,)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    loss = torch.nn.CrossEntropyLoss()
    loader = DataLoader(data, batch_size=batch)

    def steps_of_it():
        for x, y in loader:
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()

    def watched():
        with sonde.integrations.torch.watch(model, optimizer):
            return processor_us(steps_of_it, steps)

    return lambda: processor_us(steps_of_it, steps), watched


def lightning(torch, model, shape, batch, steps):
    """The same with Lightning's Trainer, without its callback and with it."""
    import logging

    import pytorch_lightning
    from sonde.integrations.lightning import SondeCallback
    from torch.utils.data import DataLoader, TensorDataset

    class Module(pytorch_lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layers = model

        def training_step(self, given, number):
            value = torch.nn.functional.cross_entropy(self.layers(given[0]), given[1])
            self.log("loss", value)
            return value

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=1e-4)

    logging.disable(logging.WARNING)  # what the Trainer says at each start
    data = TensorDataset(torch.randn(steps * batch, *shape), torch.randint(10, (steps * batch,)))
    loader, module = DataLoader(data, batch_size=batch), Module()

    def train(*callbacks):
        trainer = pytorch_lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                                            enable_model_summary=False, callbacks=list(callbacks))
        return processor_us(lambda: trainer.fit(module, loader), steps)

    return train, lambda: train(SondeCallback())


def transformers(torch, model, shape, batch, steps):
    """The same with the Trainer of Hugging Face, without its callback and with it."""
    import transformers
    from sonde.integrations.transformers import SondeCallback

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = model

        def forward(self, x, labels):
            out = self.layers(x)
            return {"loss": torch.nn.functional.cross_entropy(out, labels), "logits": out}

    data = [{"x": torch.randn(*shape), "labels": number % 10} for number in range(steps * batch)]
    model_with_loss = Model()
    arguments = transformers.TrainingArguments(output_dir=tempfile.mkdtemp(), max_steps=steps, per_device_train_batch_size=batch, save_strategy="no", report_to="none",
                                               use_cpu=True, disable_tqdm=True, logging_steps=10)

    def train(*callbacks):
        trainer = transformers.Trainer(model=model_with_loss, args=arguments, train_dataset=data, callbacks=list(callbacks))
        trainer.remove_callback(transformers.PrinterCallback)  # stdout is for the figures
        return processor_us(trainer.train, steps)

    return train, lambda: train(SondeCallback())


def pairs_of(bare, watched, seconds):
    """Runs both in alternation; each goes first in half of the pairs."""
    bare(), watched()
    end = time.monotonic() + seconds
    pairs = []
    while not pairs or time.monotonic() < end:
        pairs.append((bare(), watched()))
        pairs.append(tuple(reversed((watched(), bare()))))
    return pairs


def main():
    import torch

    torch.set_num_threads(1)
    small, large = ((16,), 16, 200), ((1, 28, 28), 64, 5)
    cases = {
        "torch_step_width_16": lambda: plain(torch, layers(torch, 16), *small),
        "torch_step_width_1024": lambda: plain(torch, layers(torch, 1024), (1024,), 16, 50),
        "torch_step_digits": lambda: plain(torch, digits(torch), *large),
        "lightning_step_width_16": lambda: lightning(torch, layers(torch, 16), *small),
        "lightning_step_digits": lambda: lightning(torch, digits(torch), *large),
        "transformers_step_width_16": lambda: transformers(torch, layers(torch, 16), *small),
        "transformers_step_digits": lambda: transformers(torch, digits(torch), *large),
    }
    for name, make in cases.items():
        try:
            bare, watched = make()
        except ImportError as error:
            print(f"bench: {name} is left out ({error})", file=sys.stderr)
            continue
        pairs = pairs_of(bare, watched, SECONDS / 3)
        bare_us = statistics.median(bare for bare, _ in pairs)
        added = statistics.median(watched - bare for bare, watched in pairs)
        print(json.dumps({"bench": "python", "name": name, "pairs": len(pairs), "step_us": round(bare_us, 1), "added_us": round(added, 2),
                          "added_percent": round(100 * added / bare_us, 2)}), flush=True)


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
