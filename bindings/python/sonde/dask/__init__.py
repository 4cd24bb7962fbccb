"""What a Dask cluster's workers and GPUs are doing, by job and dag."""
