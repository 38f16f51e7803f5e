"""Functions of arrays: MMD, energy and other distances, statistics of signals, ensembles, permutations."""
