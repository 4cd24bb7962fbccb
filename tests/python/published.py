"""The path of the published recordings of the benchmark GPU-BDB, outside of the project. Without
them, a test generates data, or skips that part."""

import os
import pathlib

BENCHMARK = pathlib.Path(os.environ.get("SONDE_DATA") or os.environ["SOURCE"] + "/../shared/data") / "gpu-bdb"
