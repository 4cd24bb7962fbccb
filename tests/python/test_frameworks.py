"""Integrations of frameworks other than PyTorch, with the real ones: spans and counts equal those
that the program knows."""

from integration import Integration, needs
from program import main


class Frameworks(Integration):
    def check_steps(self, steps, parent):
        self.assertEqual((self.total("train_steps"), len(self.spans("step")), len(self.values("train_step_seconds"))), (steps,) * 3)
        if parent:
            self.assert_within("step", parent)

    @needs("xgboost", "numpy")
    def test_xgboost(self):
        out = self.run_it("""
            import numpy, xgboost
            from sonde.integrations.xgboost import SondeCallback
            x = numpy.linspace(-3, 3, 200).reshape(-1, 1)
            data = xgboost.DMatrix(x, numpy.sin(x))
            found = {}
            xgboost.train({"max_depth": 3, "eta": 0.5}, data, 12, evals=[(data, "train")], evals_result=found, callbacks=[SondeCallback()], verbose_eval=False)
            print(*found["train"]["rmse"])
        """)
        self.check_steps(12, "fit")
        self.assertEqual([self.tag(span, "number") for span in self.spans("step")], [str(number) for number in range(12)])
        self.assertEqual(self.values("train.rmse"), [float(word) for word in out.split()])
        self.assertEqual(self.values("step"), list(range(12)))
        found = self.parameters()
        self.assertEqual((found["xgboost.max_depth"], float(found["xgboost.eta"])), ("3", 0.5))

    @needs("lightgbm", "numpy")
    def test_lightgbm(self):
        out = self.run_it("""
            import lightgbm, numpy
            from sonde.integrations.lightgbm import callbacks
            x = numpy.linspace(-3, 3, 200).reshape(-1, 1)
            data = lightgbm.Dataset(x, numpy.sin(x[:, 0]))
            found = {}
            stop = [lightgbm.early_stopping(2, verbose=False), lightgbm.record_evaluation(found)]
            lightgbm.train({"num_leaves": 7, "verbose": -1, "metric": "l2", "learning_rate": 0.9}, data, 15, valid_sets=[data], callbacks=callbacks() + stop)
            print(*found["training"]["l2"])
        """)
        values = [float(word) for word in out.split()]
        self.check_steps(len(values), None)
        self.assertEqual(self.values("training.l2"), values)
        self.assertEqual((self.parameters()["lightgbm.num_leaves"], self.parameters()["lightgbm.learning_rate"]), ("7", "0.9"))

    @needs("joblib")
    def test_tasks_of_joblib(self):
        (self.root / "tasks.py").write_text("def double(x): return 2 * x\ndef fails(): raise KeyError(1)\n")
        for backend in ("loky", "threading", "sequential"):
            out = self.run_it(f"""
                import joblib, sonde.integrations.joblib, tasks
                if __name__ == "__main__":
                    sonde.integrations.joblib.watch()
                    sonde.integrations.joblib.watch()
                    parallel = joblib.Parallel(n_jobs=2, backend={backend!r})
                    print(parallel(joblib.delayed(tasks.double)(i) for i in range(20)))
                    try: parallel([joblib.delayed(tasks.fails)()])
                    except KeyError: print("KeyError")
                    sonde.integrations.joblib.unwatch()
                    parallel(joblib.delayed(tasks.double)(i) for i in range(3))
            """)
            self.assertEqual(out, f"{list(range(0, 40, 2))}\nKeyError\n", backend)
            self.assertEqual((self.total("joblib_tasks", function="double"), self.total("joblib_tasks", function="fails")), (20, 1))
            self.assertEqual([(self.tag(span, "function"), self.tag(span, "error")) for span in sorted(self.spans("task"), key=lambda span: span.start)],
                             [("double", None)] * 20 + [("fails", "KeyError")])

    @needs("sklearn", "joblib")
    def test_grid_search_of_scikit_learn(self):
        self.run_it("""
            import sonde.integrations.joblib
            from sklearn.datasets import load_iris
            from sklearn.linear_model import LogisticRegression
            from sklearn.model_selection import GridSearchCV
            if __name__ == "__main__":
                sonde.integrations.joblib.watch()
                GridSearchCV(LogisticRegression(max_iter=500), {"C": [0.1, 1, 10]}, cv=4, n_jobs=2).fit(*load_iris(return_X_y=True))
        """)
        self.assertEqual((self.total("joblib_tasks", function="_fit_and_score"), self.count("task")), (12, [12]))

    @needs("jax")
    def test_jax(self):
        out = self.run_it("""
            import jax, jax.numpy as jnp, sonde.integrations.jax as sonde_jax
            sonde_jax.watch()
            sonde_jax.watch()
            @jax.jit
            def update(x, target): return x - 0.1 * jax.grad(lambda x: ((x - target) ** 2).sum())(x)
            x = jnp.zeros(4)
            for batch in sonde_jax.batches([jnp.full(4, float(i)) for i in range(5)]):
                with sonde_jax.step(number=1):
                    x = update(x, batch)
            try:
                with sonde_jax.step(): raise KeyError(1)
            except KeyError: pass
            print(update._cache_size())
        """)
        self.assertEqual(out, "1\n")
        self.check_steps(6, None)
        self.assert_within("data", "step")
        self.assertEqual([self.tag(span, "error") for span in self.spans("step")], [None] * 5 + ["KeyError"])
        compiles = [span for span in self.spans("compile") if self.tag(span, "event") == "compile"]
        self.assertEqual(self.total("jax_compiles", event="compile"), len(compiles))
        self.assertGreaterEqual(len(compiles), 1)
        self.assertAlmostEqual(self.total("jax_compile_seconds", event="compile"), sum(span.end - span.start for span in compiles) / 1e9, places=6)

    @needs("keras")
    def test_keras(self):
        self.env |= {"KERAS_BACKEND": "jax"}
        out = self.run_it("""
            import keras, numpy
            from sonde.integrations.keras import SondeCallback
            x = numpy.linspace(-3, 3, 96).reshape(-1, 1)
            model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(1)])
            model.compile(optimizer=keras.optimizers.Adam(0.01), loss="mse")
            history = model.fit(x, numpy.sin(x), batch_size=8, epochs=3, validation_split=0.5, verbose=0, callbacks=[SondeCallback()])
            print(*history.history["loss"], *history.history["val_loss"])
        """)
        self.check_steps(18, "epoch")
        self.assertEqual(self.count("fit", "epoch", "validation", "data"), [1, 3, 3, 18])
        self.assert_within("data", "step")
        self.assert_within("validation", "epoch")
        self.assertEqual(self.values("loss") + self.values("val_loss"), [float(word) for word in out.split()])
        found = self.parameters()
        self.assertEqual((found["optimizer.class"], found["model.parameters"], found["fit.epochs"]), ("Adam", "25", "3"))

    @needs("ray")
    def test_ray(self):
        out = self.run_it("""
            import ray, sonde.integrations.ray as sonde_ray
            sonde_ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": {"OTHER": "1"}})
            @ray.remote
            @sonde_ray.spans
            def double(x): return 2 * x
            @ray.remote
            @sonde_ray.spans
            class Sum:
                def __init__(self): self.value = 0
                def add(self, x): self.value += x; return self.value
                async def later(self): return self.value
            actor = Sum.remote()
            results = ray.get([double.remote(i) for i in range(6)])
            # An actor with a coroutine may take its calls in any order.
            print(results, max(ray.get([actor.add.remote(x) for x in results])), ray.get(actor.later.remote()))
        """)
        self.assertEqual(out, f"{list(range(0, 12, 2))} 30 30\n")
        self.assertEqual([self.total("ray_tasks", function=name) for name in ("double", "Sum.add", "Sum.later")], [6, 6, 1])
        self.assertEqual(self.count("task"), [13])


if __name__ == "__main__":
    main()
