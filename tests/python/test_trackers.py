"""sonde.integrations.wandb and .mlflow: a script's calls are kept, with the real library and
without."""

from integration import Integration, needs
from program import main

WANDB = """
import argparse, sys
MISSING
import sonde.integrations.wandb as wandb
wandb.config.seed = 7
with wandb.init(project="sin", name="first", config=argparse.Namespace(lr=0.5, layers=2), dir="."):
    wandb.config.update({"batch": 16})
    wandb.config.depth = 3
    print(wandb.config.lr, wandb.config["batch"], wandb.config.depth, "layers" in wandb.config, wandb.run.config.batch)
    wandb.define_metric("loss", summary="min")
    for epoch in range(3):
        wandb.log({"loss": 1 / (epoch + 1), "inner": {"accuracy": epoch / 10}, "note": "text", "picture": wandb.Histogram([1, 2])})
    wandb.log({"late": 5}, step=10, commit=False)
    wandb.log({"late": 6})
    wandb.log({"late": 7})
    artifact = wandb.Artifact("model", type="model")
    artifact.add_file(sys.argv[0])
    wandb.log_artifact(artifact)
    print(wandb.summary["late"])
print(wandb.run)
wandb.finish()
"""

MLFLOW = """
import sys
MISSING
import sonde.integrations.mlflow as mlflow
mlflow.set_tracking_uri("sqlite:///kept.db")
mlflow.set_experiment("sin")
with mlflow.start_run(run_name="first") as run:
    print(mlflow.log_param("lr", 0.5))
    mlflow.log_params({"layers": 2, "activation": "tanh"})
    mlflow.set_tag("machine", "n1")
    for step in range(3):
        mlflow.log_metric("loss", 1 / (step + 1), step=step)
    mlflow.log_metrics({"accuracy": 0.5, "recall": 0.25}, step=3)
    print(mlflow.active_run() is not None, run.info.run_id is not None)
try:
    with mlflow.start_run(run_name="second"):
        raise KeyError("a fault of the script")
except KeyError:
    pass
"""


def without(module):
    return f"sys.modules[{module!r}] = None"  # its import then fails


class Trackers(Integration):
    def check_wandb(self, missing):
        out = self.run_it(WANDB.replace("MISSING", missing))
        self.assertEqual(out.strip().splitlines()[-3:], ["0.5 16 3 True 16", "7", "None"])
        self.assertEqual(self.values("loss"), [1, 1 / 2, 1 / 3])
        self.assertEqual(self.values("inner.accuracy"), [0, 0.1, 0.2])
        self.assertEqual((self.values("late"), self.values("step")), ([5, 6, 7], [0, 1, 2, 10, 10, 11]))
        self.assertEqual(self.series("note") | self.series("picture"), {})
        found = self.parameters()
        self.assertEqual({key: found[key] for key in ("seed", "lr", "layers", "batch", "depth")}, {"seed": "7", "lr": "0.5", "layers": "2", "batch": "16", "depth": "3"})
        [run] = self.spans("run")
        self.assertEqual((self.tag(run, "project"), self.tag(run, "name"), self.tag(run, "error")), ("sin", "first", None))

    def test_without_wandb(self):
        self.check_wandb(without("wandb"))
        self.assertEqual(list(self.root.glob("wandb")), [])

    @needs("wandb")
    def test_with_wandb(self):
        self.check_wandb("")
        [kept] = (self.root / "wandb").glob("offline-run-*/run-*.wandb")
        self.assertIn(b"inner", kept.read_bytes())

    def check_mlflow(self, missing):
        out = self.run_it(MLFLOW.replace("MISSING", missing))
        self.assertEqual(out.strip().splitlines()[-2:], ["0.5", "True True"])
        self.assertEqual((self.values("loss"), self.values("accuracy"), self.values("recall")), ([1, 1 / 2, 1 / 3], [0.5], [0.25]))
        self.assertEqual(self.values("step"), [0, 1, 2, 3])
        found = self.parameters()
        self.assertEqual({key: found[key] for key in ("lr", "layers", "activation", "tags.machine")}, {"lr": "0.5", "layers": "2", "activation": "tanh", "tags.machine": "n1"})
        self.assertEqual([(self.tag(span, "name"), self.tag(span, "error")) for span in self.spans("run")], [("first", None), ("second", "1")])

    def test_without_mlflow(self):
        self.check_mlflow(without("mlflow"))

    @needs("mlflow", "sqlalchemy", "alembic")
    def test_with_mlflow(self):
        self.check_mlflow("")
        out = self.run_it("""
            import mlflow
            mlflow.set_tracking_uri("sqlite:///kept.db")
            run = next(run for run in mlflow.search_runs(experiment_names=["sin"], output_format="list") if run.info.run_name == "first")
            print(run.data.metrics["loss"], run.data.params["layers"], run.data.tags["machine"])
        """)
        self.assertEqual(out.split(), [str(1 / 3), "2", "n1"])

    def test_results_of_a_script_without_a_job(self):
        for text, module in ((WANDB, "wandb"), (MLFLOW, "mlflow")):
            text = text.replace("MISSING", without(module))
            self.assertEqual(self.run_it(text, level=0), self.run_it(text, level=1))

    def test_names_that_the_missing_library_would_have(self):
        out = self.run_it(f"""
            import sys
            {without("wandb")}
            import sonde.integrations.wandb as wandb
            wandb.log({{"loss": 1}})
            for row in wandb.Api().runs("x"): print("never")
            with wandb.Table(columns=["a"]) as table: table.add_data(1)
            print(len(wandb.Image("x")), wandb.watch("model"), hasattr(wandb, "__path__"))
        """)
        self.assertEqual(out, "0 None False\n")
        self.assertEqual(self.values("loss"), [1])


if __name__ == "__main__":
    main()
