"""sonde.integrations.lightning, .transformers and .accelerate with real trainings: spans and counts
equal those that the program knows."""

from integration import Integration, needs
from program import main

DATA = """
import torch
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(1)
x = torch.linspace(-3, 3, 32).unsqueeze(1)
"""

LIGHTNING = DATA + """
import pytorch_lightning as lightning
from sonde.integrations.lightning import SondeCallback

class Module(lightning.LightningModule):
    def __init__(self, lr):
        super().__init__()
        self.save_hyperparameters()
        self.layers = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    def loss(self, batch, name):
        value = (self.layers(batch[0]) - batch[1]).square().mean()
        self.log(name, value)
        return value
    def training_step(self, batch, number):
        return self.loss(batch, "train_loss")
    def validation_step(self, batch, number):
        self.loss(batch, "val_loss")
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)

data = TensorDataset(x, torch.sin(x))
module = Module(lr=0.01)
trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                            log_every_n_steps=4, num_sanity_val_steps=0, callbacks=[SondeCallback(gradient_norm_every=4)])
trainer.fit(module, DataLoader(data, batch_size=4, num_workers=1), DataLoader(data, batch_size=16))
print(trainer.global_step, *(float(p.sum()) for p in module.parameters()))
"""

TRAINER = DATA + """
import transformers
from sonde.integrations.transformers import SondeCallback

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    def forward(self, x, labels=None):
        out = self.layers(x)
        return {"loss": (out - labels).square().mean(), "logits": out}

data = [{"x": a, "labels": torch.sin(a)} for a in x]
arguments = transformers.TrainingArguments(output_dir="kept", num_train_epochs=2, per_device_train_batch_size=4, gradient_accumulation_steps=2, logging_steps=2,
    eval_strategy="epoch", save_strategy="no", report_to="none", use_cpu=True, disable_tqdm=True, learning_rate=0.01, dataloader_num_workers=1)
trainer = transformers.Trainer(model=Model(), args=arguments, train_dataset=data, eval_dataset=data, callbacks=[SondeCallback()])
trainer.train()
print(trainer.state.global_step, *(entry["loss"] for entry in trainer.state.log_history if "loss" in entry))
"""


@needs("torch", "pytorch_lightning")
class Lightning(Integration):
    def test_training(self):
        out = self.run_it(LIGHTNING)
        self.assertEqual(out.split()[0], "16")
        self.assertEqual(self.count("fit", "epoch", "validation", "step", "forward", "backward", "optimizer"), [1, 2, 2, 16, 16, 16, 16])
        self.assertEqual((self.total("train_steps"), self.total("train_batches"), self.total("train_loaded")), (16, 20, 16))
        for phase in ("forward", "backward", "optimizer"):
            self.assert_within(phase, "step")
        self.assert_within("step", "epoch")
        self.assert_within("epoch", "fit")
        self.assertEqual(len(self.values("torch_gradient_norm")), 4)
        self.assertTrue(self.values("train_loss") and self.values("val_loss"))
        found = self.parameters()
        self.assertEqual([found[key] for key in ("lr", "trainer.max_epochs", "optimizer.class", "model.parameters")], ["0.01", "2", "Adam", "25"])
        self.assertEqual(self.run_it(LIGHTNING, level=0), out)


@needs("torch", "transformers", "accelerate")
class Transformers(Integration):
    def test_trainer(self):
        out = self.run_it(TRAINER)
        steps, *losses = [float(word) for word in out.strip().splitlines()[-1].split()]
        self.assertEqual(steps, 8)
        self.assertEqual(self.count("fit", "epoch", "evaluation", "step", "backward", "optimizer"), [1, 2, 2, 8, 16, 8])
        self.assertEqual((self.total("train_steps"), self.total("train_loaded")), (8, 16 + 8))
        for phase in ("backward", "optimizer"):
            self.assert_within(phase, "step")
        self.assert_within("step", "epoch")
        self.assertEqual(self.values("loss"), losses)
        self.assertEqual(len(self.values("eval_loss")), 2)
        found = self.parameters()
        self.assertEqual([found[key] for key in ("trainer.learning_rate", "trainer.gradient_accumulation_steps", "model.class")], ["0.01", "2", "Model"])
        self.assertEqual(self.run_it(TRAINER, level=0).splitlines()[-1], out.splitlines()[-1])

    def test_accelerate(self):
        self.run_it(DATA + """
from accelerate import Accelerator
import sonde.integrations.torch
from sonde.integrations.accelerate import SondeTracker
accelerator = Accelerator(log_with=SondeTracker(), cpu=True)
accelerator.init_trackers("sin", config={"lr": 0.1, "inner": {"layers": 1}})
model = torch.nn.Linear(1, 1)
model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1), DataLoader(TensorDataset(x, torch.sin(x)), batch_size=4))
sonde.integrations.torch.watch(model, optimizer)
for number, (a, b) in enumerate(loader):
    loss = (model(a) - b).square().mean()
    accelerator.backward(loss)
    optimizer.step()
    accelerator.log({"loss": number / 10, "text": "left out"}, step=number)
accelerator.end_training()
""")
        self.assertEqual((self.total("train_steps"), *self.count("step", "forward", "backward", "optimizer", "data")), (8,) * 6)
        self.assertEqual((self.values("loss"), self.values("step")), ([number / 10 for number in range(8)], list(range(8))))
        self.assertEqual((self.parameters()["lr"], self.parameters()["inner.layers"]), ("0.1", "1"))


if __name__ == "__main__":
    main()
