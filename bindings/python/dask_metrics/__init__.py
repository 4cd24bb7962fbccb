"""`sonde.dask` under the name that programs written for dask-metrics know: ``from dask_metrics
import Monitor``."""

import importlib
from typing import Any

from sonde.dask import Monitor, custom_metric

__all__ = ["Monitor", "custom_metric", "visualize"]


def __getattr__(name: str) -> Any:
    if name == "visualize":  # needs Matplotlib
        return importlib.import_module("dask_metrics.visualize")
    raise AttributeError(name)
