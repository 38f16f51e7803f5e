"""Datasets: signals, a graph, and the splits, under one contract."""

from .dataset import Dataset
from .loading import load_dataset

__all__ = ["Dataset", "load_dataset"]
