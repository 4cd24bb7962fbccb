"""`sonde.dask.visualize` under the name that programs written for dask-metrics know. Needs
Matplotlib."""

from sonde.dask.visualize import boxes, heat, lines

__all__ = ["boxes", "heat", "lines"]
