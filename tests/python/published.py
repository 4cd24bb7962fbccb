"""Where the published recordings of the benchmark GPU-BDB are: beside the project, not in it. A
test that does not find them makes its own data, or leaves that out."""

import os
import pathlib

BENCHMARK = pathlib.Path(os.environ.get("SONDE_DATA") or os.environ["SOURCE"] + "/../shared/data") / "gpu-bdb"
