"""Truth inference on annotations that do not fit into memory, or into one machine.

`source` reads them by parts and scatters them into runs, `shards` sorts the runs into shards of
whole tasks, `fit` names the methods and iterates; `local` and `dask` are the engines that map
functions over parts and shards. Needs pyarrow.
"""
