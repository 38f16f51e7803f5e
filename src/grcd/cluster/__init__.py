"""Many files, one by one in this process or by the workers of a Dask cluster: the same files come out."""
