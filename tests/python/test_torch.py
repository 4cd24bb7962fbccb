"""sonde.integrations.torch, with real trainings: spans and counts equal those that the program
knows, and its results are those without sonde."""

import importlib
import importlib.metadata
import re
import subprocess
import sys

from integration import PHASES, Integration, needs
from program import main

# Prints its losses; counts what it does.
TRAINING = """
import copy, sys
import torch
from torch.utils.data import DataLoader, TensorDataset
import sonde
import sonde.integrations.torch

torch.manual_seed(1)
x = torch.linspace(-3, 3, 40).unsqueeze(1)
model = torch.nn.Sequential(torch.nn.Linear(1, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
training = DataLoader(TensorDataset(x, torch.sin(x)), batch_size=4, num_workers={workers})
validation = DataLoader(TensorDataset(x, torch.sin(x)), batch_size=16)
watch = sonde.integrations.torch.watch(model, optimizer, {options})
for epoch in range(2):
    with sonde.span("epoch", number=epoch):
        model.train()
        for number, (a, b) in enumerate(training):
            loss = (model(a) - b).square().mean()
            loss.backward()
            if number % {accumulate} == {accumulate} - 1:
                optimizer.step()
                optimizer.zero_grad()
            print(loss.item())
        model.eval()
        with torch.no_grad():
            for a, b in validation:
                model(a)
{end}
"""


RANK = """
import torch, sonde.integrations.torch
from torch.utils.data import DataLoader, TensorDataset
torch.distributed.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
sonde.integrations.torch.watch(model, optimizer)
for (batch,) in DataLoader(TensorDataset(torch.ones(10, 1)), batch_size=2, num_workers=1):
    model(batch).sum().backward()
    optimizer.step()
torch.distributed.destroy_process_group()
"""


def training(workers=0, accumulate=1, options="", end=""):
    return TRAINING.format(workers=workers, accumulate=accumulate, options=options, end=end)


@needs("torch")
class Torch(Integration):
    def test_counts_and_spans(self):
        out = self.run_it(training(workers=2))
        self.assertEqual(len(out.split()), 20)
        self.assertEqual(self.count("step", "data", "forward", "backward", "optimizer"), [20, 26, 26, 20, 20])
        self.assertEqual((self.total("train_steps"), self.total("train_batches")), (20, 26))
        self.assertEqual(len(self.values("train_step_seconds")), 20)
        steps = {span.id: span for span in self.spans("step")}
        self.assert_within("step", "epoch")
        for phase, within in zip(PHASES, (20, 20, 20, 20)):
            inside = [span for span in self.spans(phase) if span.parent in steps]
            self.assertEqual(len(inside), within, phase)
            for span in inside:
                self.assertTrue(steps[span.parent].start <= span.start <= span.end <= steps[span.parent].end, phase)
            seconds = sum(span.end - span.start for span in self.spans(phase)) / 1e9
            self.assertAlmostEqual(self.total("train_phase_seconds", phase=phase), seconds, delta=0.2 * seconds + 0.01)
        # The others belong to the validation, which the program has not named.
        self.assertEqual({span.parent for span in self.spans("forward") if span.parent not in steps}, {span.id for span in self.spans("epoch")})
        total = sum(self.values("train_step_seconds"))
        self.assertAlmostEqual(total, sum(span.end - span.start for span in steps.values()) / 1e9, delta=0.2 * total)

    def test_workers(self):
        self.run_it(training(workers=2))
        self.assertEqual({self.tag(span, "worker") for span in self.spans("load")}, {"0", "1"})
        self.assertEqual([len(self.spans("load")), self.total("train_loaded")], [20, 20])
        self.assertEqual([self.total("train_loaded", worker=worker) for worker in "01"], [10, 10])
        self.assertGreater(self.total("train_load_seconds"), 0)

    def test_results_are_those_without_sonde(self):
        recorded = self.run_it(training(workers=2, options="gradient_norm_every=3"))
        self.assertEqual(self.run_it(training(), level=0), recorded)

    def test_accumulated_gradients(self):
        """The last two batches of an epoch are in a step that is never completed."""
        self.run_it(training(accumulate=4))
        steps = self.spans("step")
        self.assertEqual((self.total("train_steps"), len(steps)), (4, 6))
        self.assertEqual([self.tag(span, "incomplete") for span in steps], [None, None, "1"] * 2)
        self.assertEqual([sum(span.parent == step.id for span in self.spans("backward")) for step in steps], [4, 4, 2] * 2)
        self.assert_within("step", "epoch")

    def test_without_spans(self):
        self.run_it(training(workers=1, options="spans=False"))
        self.assertEqual(self.count("step", "load", *PHASES), [0] * 6)
        self.assertEqual((self.total("train_steps"), self.total("train_batches"), self.total("train_loaded")), (20, 26, 20))

    def test_parameters(self):
        self.run_it(training())
        found = self.parameters()
        self.assertEqual({key: found[key] for key in ("model.class", "model.parameters", "optimizer.class", "optimizer.lr", "optimizer.momentum")},
                         {"model.class": "Sequential", "model.parameters": "49", "optimizer.class": "SGD", "optimizer.lr": "0.05", "optimizer.momentum": "0.9"})

    def test_gradient_norm(self):
        out = self.run_it(training(options="gradient_norm_every=5", end="""
loss = (model(a) - b).square().mean()
loss.backward()
print("norm", watch.gradient_norm(), float(torch.nn.utils.clip_grad_norm_(model.parameters(), 1e9)))
"""))
        own, reference = map(float, re.search(r"norm (\S+) (\S+)", out).groups())
        self.assertAlmostEqual(own, reference, places=5)
        self.assertEqual((len(self.values("torch_gradient_norm")), self.values("torch_gradient_norm")[-1]), (5, own))

    def test_copies_and_files_of_the_model(self):
        """A copy of the model is not watched, and its file needs no sonde."""
        out = self.run_it(training(end="""
import io, pickle
model.train()
other = copy.deepcopy(model)
other(a)
file = pickle.dumps(model)
print(b"sonde" in file)
pickle.loads(file)(a)
"""))
        self.assertEqual(out.split()[-1], "False")
        self.assertEqual(self.count("forward"), [26])

    def test_the_end_of_a_watch(self):
        """close() puts PyTorch back; the next watch ends the earlier one."""
        out = self.run_it(training(end="""
from torch.utils.data import dataloader
replaced = torch.autograd.backward
watch.close()
watch.close()
print(torch.autograd.backward is replaced, len(model._forward_hooks), len(model._forward_pre_hooks))
model(a).sum().backward()
with sonde.integrations.torch.watch(model, optimizer), sonde.integrations.torch.watch(model, optimizer) as watch:
    model.train()
    model(a).sum().backward()
    optimizer.step()
print(watch.steps.count)
"""))
        self.assertEqual(out.split()[-4:], ["False", "0", "0", "1"])
        self.assertEqual((self.total("train_steps"), *self.count("forward", "backward", "step")), (21, 27, 21, 21))

    def test_level_0_installs_nothing(self):
        out = self.run_it(training(end="print(watch._patches, len(model._forward_hooks), len(list(watch.batches([1, 2]))))"), level=0)
        self.assertEqual(out.split()[-3:], ["None", "0", "2"])

    def test_a_compiled_model(self):
        """It stays one graph, is compiled once, and gives the same results."""
        if not hasattr(importlib.import_module("torch"), "compile"):
            self.skipTest("PyTorch before 2.0 does not compile")
        text = """
            import torch, sonde.integrations.torch
            compiled = []
            def backend(graph, inputs):
                compiled.append(graph)
                return graph
            torch.manual_seed(1)
            model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
            fast = torch.compile(model, backend=backend, fullgraph=True)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            sonde.integrations.torch.watch(fast, optimizer)
            for _ in range(6):
                loss = fast(torch.ones(4, 3)).square().mean()
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                print(loss.item())
            print(len(compiled))
        """
        out = self.run_it(text)
        self.assertEqual(out.split()[-1], "1")
        self.assertEqual((self.total("train_steps"), *self.count("step", *PHASES)), (6, 6, 0, 6, 6, 6))
        self.assertEqual(self.parameters()["model.class"], "Sequential")
        self.assertEqual(self.run_it(text, level=0), out)

    def test_an_exception_within_a_phase(self):
        self.run_it("""
            import torch, sonde.integrations.torch
            class Fails(torch.nn.Linear):
                def forward(self, x):
                    if x.sum() > 0: raise ValueError("too large")
                    return super().forward(x)
            model = Fails(1, 1)
            optimizer = torch.optim.Adam(model.parameters())
            watch = sonde.integrations.torch.watch(model, optimizer)
            for value in (-1.0, 1.0, -1.0):
                try:
                    model(torch.full((1, 1), value)).sum().backward()
                except ValueError:
                    continue
                optimizer.step()
        """)
        self.assertEqual((self.total("train_steps"), *self.count("step", "forward", "backward")), (2, 2, 3, 2))

    def test_two_optimizers_and_other_batches(self):
        self.run_it("""
            import torch, sonde.integrations.torch
            models = [torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)]
            optimizers = [torch.optim.Adam(model.parameters()) for model in models]
            watch = sonde.integrations.torch.watch(models, optimizers)
            for batch in watch.batches(torch.ones(7, 1)):
                for model, optimizer in zip(models, optimizers):
                    model(batch).sum().backward()
                    optimizer.step()
            scheduler = torch.optim.lr_scheduler.StepLR(optimizers[0], 1)
            optimizers[0].step(); scheduler.step(); watch.close()
        """)
        self.assertEqual((self.total("train_steps"), self.total("train_batches"), *self.count("data", "forward", "backward", "optimizer")), (7, 7, 7, 14, 14, 15))
        self.assertEqual([self.tag(span, "incomplete") for span in self.spans("step")], [None] * 7 + ["1"])

    def test_memory_of_gpus(self):
        """PyTorch's allocator reports it; here its numbers are the test's."""
        self.run_it(training(end="""
from types import SimpleNamespace
stats = {"allocated_bytes.all.current": 100, "reserved_bytes.all.current": 300, "reserved_bytes.all.peak": 400, "allocated_bytes.all.peak": 200, "num_alloc_retries": 3, "num_ooms": 1}
watch._memory._torch = SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: True, device_count=lambda: 3, memory_stats=lambda gpu: stats if gpu else {},
    get_device_properties=lambda gpu: SimpleNamespace(uuid="9958139a-862c") if gpu == 1 else SimpleNamespace()))
watch._memory._next_s = 0
for _ in range(3): watch.emit_memory()
"""))
        names = ("torch_memory_allocated_bytes", "torch_memory_reserved_bytes", "torch_memory_allocated_peak_bytes", "torch_allocation_retries", "torch_out_of_memory")
        self.assertEqual([self.values(name, gpu="1") for name in names], [[100], [300], [200], [3], [1]])
        self.assertEqual(self.series("torch_memory_reserved_bytes", gpu="0"), {})
        self.assertEqual(self.values(names[0], gpu="1", uuid="GPU-9958139a-862c"), [100])
        self.assertEqual([dict(labels).get("uuid") for labels in self.series(names[0], gpu="2")], [None])

    def test_a_real_gpu(self):
        """The memory is what PyTorch says at the end of a step, and nothing waits for the GPU."""
        probe = "import sys, torch; sys.exit(not torch.cuda.is_available())"
        if subprocess.run([sys.executable, "-c", probe]).returncode:
            self.skipTest("no GPU")
        out = self.run_it("""
            import torch, sonde.integrations.torch
            model = torch.nn.Linear(1024, 1024).cuda()
            optimizer = torch.optim.AdamW(model.parameters(), fused=True)
            x = torch.randn(512, 1024, device="cuda")
            def step():
                model(x).square().mean().backward()
                optimizer.step()
            step()
            optimizer.zero_grad()
            torch.cuda.synchronize()
            torch.cuda.set_sync_debug_mode("error")
            watch = sonde.integrations.torch.watch(model, optimizer)
            step()
            print(torch.cuda.memory_stats()["allocated_bytes.all.current"])
        """, level=3)
        names = ("torch_memory_allocated_bytes", "train_steps")
        self.assertEqual([self.values(name)[-1] for name in names], [int(out), 1])
        uuids = {dict(labels)["uuid"] for labels in self.series("gpu_up")}
        self.assertEqual({dict(labels)["uuid"] for labels in self.series(names[0])} - uuids, set())

    def test_ranks_of_torchrun(self):
        if importlib.metadata.version("torch").startswith("1."):
            self.skipTest("torchrun of PyTorch 1 does not run with Python 3.11")
        (self.root / "rank.py").write_text(RANK)
        self.run_it("""
            import subprocess, sys
            command = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "rank.py"]
            sys.exit(subprocess.run([sys.executable, *command]).returncode)
        """)
        self.assertEqual([self.total("train_steps", rank=rank) for rank in "01"], [5, 5])
        for name in ("step", "forward", "backward", "optimizer", "data"):
            self.assertEqual([sum(self.tag(span, "rank") == rank for span in self.spans(name)) for rank in "01"], [5, 5], name)


if __name__ == "__main__":
    main()
