"""The Monitor under the name that programs written for dask-metrics know: ``from
dask_metrics.monitor import Monitor``."""

from sonde.dask import Monitor, custom_metric

__all__ = ["Monitor", "custom_metric"]
