"""GRCD as a model of PyPOTS: dictionaries with ``X`` (samples, steps, features) in, imputations out.

    model = grcd.pypots.GRCD(n_steps=24, n_features=10, graph=W)
    model.fit({"X": X})
    model.impute({"X": X})                  # (samples, steps, features)
    model.predict({"X": X})["imputation"]   # the same

The methods, their arguments and what they return are those of ``pypots.imputation``; PyPOTS itself is not needed. An
array by itself is taken for ``X``. A feature is a node, and a sample a window of its own: nothing is said from one
sample to the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import ArrayLike

from . import model as models
from .core.errors import InputError, some, whole_number
from .data.formats.refusals import damage_is_refused, existing, refuse_hdf5
from .data.graph_source import complete
from .data.series import Series

Set = Mapping[str, Any] | ArrayLike | str | Path


class GRCD:
    """An imputation model of windows.

    ``n_steps``, ``n_features``   of a sample, two steps at the least
    ``graph``     how features lie to each other, whatever ``grcd.GRCD`` takes; None: each is next to every other
    ``device``, ``seed``, ``settings``   as of ``grcd.GRCD`` (``minutes=10``, ``width=32``, ``max_updates=500``, ...)
    ``verbose``   whether it says how far it is

    Fitted, it has ``model``, the trained ``grcd.GRCD``.
    """

    def __init__(
        self,
        n_steps: int,
        n_features: int,
        graph: Any = None,
        device: str | None = None,
        seed: int = 0,
        verbose: bool = True,
        **settings: Any,
    ):
        self.n_steps, self.n_features = whole_number("n_steps", n_steps, 2), whole_number("n_features", n_features, 2)
        self.seed, self.verbose, self.device = seed, verbose, device or "auto"
        source = complete(self.n_features) if graph is None else graph
        self.model = models.GRCD(source, seed=seed, device=self.device, window=self.n_steps, **settings)
        if len(self.model.graph) != self.n_features:
            got = f"n_features = {n_features} and a graph of {len(self.model.graph)} nodes"
            raise InputError(got, "as many", "a feature is a node of the graph")

    def fit(self, train_set: Set, val_set: Set | None = None, file_type: str = "hdf5") -> None:
        """Train on ``X`` of ``train_set``, NaN where a reading is missing.

        ``val_set``   validates, by its ``X_ori`` if there is one, else by its ``X``; without, the last tenth does
        Each is a dictionary, or the path of an HDF5 file (``file_type``) with such entries, or ``X`` itself.
        """
        x = self._samples(train_set, file_type, ("X",), least=2)
        if val_set is None:
            cut = max(1, len(x) // 10)
            x, val = x[:-cut], x[-cut:]
        else:
            val = self._samples(val_set, file_type, ("X_ori", "X"))
        self.model.fit(self._rows(x), self._rows(val), verbose=self.verbose)

    def predict(
        self, test_set: Set, file_type: str = "hdf5", n_sampling_times: int | None = None, **options: Any
    ) -> dict[str, np.ndarray]:
        """``X`` with its gaps filled, as ``imputation`` (samples, steps, features): the median of 100 draws.

        ``n_sampling_times``   the draws themselves, so many: (samples, draws, steps, features), as of PyPOTS's CSDI
        ``options``            those of ``grcd.GRCD.impute``: ``nfe``, ``seed``, ``posterior``
        """
        x = self._samples(test_set, file_type, ("X",))
        levels = [0.5] if n_sampling_times is None else None
        options = {"seed": self.seed, "verbose": self.verbose} | options
        filled = self.model.impute(self._rows(x), n_sampling_times, quantiles=levels, **options)
        filled = filled.reshape(-1, *x.shape)
        return {"imputation": filled[0] if n_sampling_times is None else filled.swapaxes(0, 1)}

    def impute(
        self, test_set: Set, file_type: str = "hdf5", **options: Any
    ) -> np.ndarray:  # (samples, steps, features)
        """The ``imputation`` of ``predict``."""
        return self.predict(test_set, file_type, **options)["imputation"]

    def save(self, saving_path: str | Path, overwrite: bool = False) -> None:
        """Write the trained model to a run folder; ``overwrite`` replaces another one."""
        self.model.save(saving_path, overwrite)

    def load(self, path: str | Path) -> None:
        """The trained model from a run folder."""
        model = models.load(path, self.device)
        if (model.window, len(model.graph)) != (self.n_steps, self.n_features):
            got = f"{path} with windows of {model.window} steps on {len(model.graph)} nodes"
            raise InputError(got, f"{self.n_steps} steps and {self.n_features} features", "make a model of that size")
        self.model = model

    def _rows(self, x: np.ndarray) -> Series:
        """Samples one after the other, with a border before each."""
        rows = x.reshape(-1, self.n_features, 1)
        return Series(rows, borders=tuple(range(self.n_steps, len(rows), self.n_steps)))

    def _samples(self, source: Set, file_type: str, keys: tuple[str, ...], least: int = 1) -> np.ndarray:
        """The first entry of those that is there, checked: (samples, steps, features)."""
        if isinstance(source, str | Path):
            source = _read(source, file_type, keys)
        entries = source if isinstance(source, Mapping) else {"X": source}
        key = next((key for key in keys if key in entries), None)
        if key is None:
            raise InputError(f"a data set with {some(entries) or 'nothing'}", " or ".join(keys), "name it so")
        try:
            x = np.array(entries[key], dtype=np.float64)  # of a tensor, too
        except (TypeError, ValueError):
            raise InputError(f"{key} that is not all numbers", "an array", "remove text and ragged rows") from None
        if x.ndim != 3 or x.shape[1:] != (self.n_steps, self.n_features) or len(x) < least:
            expected = f"({least} or more samples, {self.n_steps} steps, {self.n_features} features)"
            raise InputError(f"{key} of shape {x.shape}", expected, "cut series into such windows")
        if np.isinf(x).any():
            raise InputError(f"infinite values in {key}", "finite numbers, or NaN where missing", "correct them")
        return x


def _read(path: str | Path, file_type: str, keys: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Entries of a file."""
    if file_type != "hdf5":
        raise InputError(f"file_type = {file_type!r}", '"hdf5"', "read the file, and pass a dictionary")
    path = existing(path)
    with damage_is_refused(path), h5py.File(path, "r") as file:
        refuse_hdf5(file)
        return {key: file[key][()] for key in keys if key in file}
