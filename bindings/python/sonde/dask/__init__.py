"""What a Dask cluster's workers and GPUs are doing, by job and dag."""

from ._handles import custom_metric

__all__ = ["custom_metric"]
