"""GRCD as an imputer of scikit-learn: rows are signals, columns nodes, and NaN is filled.

    imputer = grcd.sklearn.GraphImputer(graph).fit(X)
    imputer.transform(X)

It is a transformer like ``sklearn.impute.KNNImputer``: it goes into a ``Pipeline``, can be cloned, and gives back what
was observed as it was. For draws, quantiles and forecasts, ask ``imputer.model_``, which is a ``grcd.GRCD``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .data.frames import is_frame
from .data.graph_source import complete
from .model import GRCD

SMALL = {"width": 32, "max_updates": 500}
FEWEST = 4  # rows: two to train on and one to validate with, and one more


class GraphImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Fills gaps by the median of draws given what was observed.

    ``graph``         how columns lie to each other, whatever ``grcd.GRCD`` takes; None: each is next to every other
    ``method``, ``window``, ``device``   as of ``grcd.GRCD``; with a window rows are in time, and the past helps
    ``settings``      further keywords of ``grcd.GRCD``, as ``{"minutes": 10}``, or ``{}`` for its own; None: a small
                      network, shortly trained (``SMALL``), so that a fit takes seconds
    ``n_draws``       how many draws the median is taken of
    ``nfe``, ``posterior``   as of ``GRCD.impute``
    ``random_state``  a whole number, or what scikit-learn makes one of
    ``verbose``       whether it says how far it is

    Fitted, it has ``model_``, the trained ``grcd.GRCD``, ``n_features_in_`` and, of data frames, ``feature_names_in_``.
    """

    def __init__(
        self,
        graph: Any = None,
        *,
        method: str = "grcd",
        window: int = 1,
        settings: Mapping[str, Any] | None = None,
        n_draws: int = 100,
        nfe: int | None = None,
        posterior: str = "auto",
        device: str = "auto",
        random_state: Any = 0,
        verbose: bool = False,
    ):
        self.graph = graph
        self.method = method
        self.window = window
        self.settings = settings
        self.n_draws = n_draws
        self.nfe = nfe
        self.posterior = posterior
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> GraphImputer:
        """Train on ``X`` (samples, features), NaN where a reading is missing; ``y`` is ignored. Returns itself."""
        readings = self._validated(X, reset=True)
        graph = complete(self.n_features_in_) if self.graph is None else self.graph
        seed = self._seed()
        options: dict[str, Any] = {"method": self.method, "seed": seed, "device": self.device, "window": self.window}
        options |= SMALL if self.settings is None else self.settings
        model = GRCD(graph, **options)
        if is_frame(readings) and not model.graph.named and len(model.graph) == self.n_features_in_:
            names = tuple(map(str, readings.columns))  # in the order of the nodes
            model = GRCD(replace(model.graph, node_ids=names, named=True), **options)
        self.model_ = model.fit(readings, verbose=self.verbose)
        self.seed_ = seed
        return self

    def transform(self, X: Any) -> np.ndarray:  # (samples, features)
        """``X`` (samples, features) with its gaps filled."""
        check_is_fitted(self, "model_")
        readings = self._validated(X, reset=False)
        if is_frame(readings) and not self.model_.graph.named:
            readings = readings.to_numpy()
        filled = self.model_.impute(
            readings, self.n_draws, self.nfe, self.seed_, self.posterior, quantiles=[0.5], verbose=self.verbose
        )
        return filled.to_numpy() if is_frame(filled) else filled[0]

    def _validated(self, X: Any, reset: bool) -> Any:
        """Checked as scikit-learn checks; a data frame stays one, for its names and times."""
        least = {"ensure_min_samples": FEWEST, "ensure_min_features": 2} if reset else {}
        x = validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan", **least)
        if not is_frame(X):
            return x
        import pandas

        return pandas.DataFrame(x, X.index, X.columns)

    def _seed(self) -> int:
        state = self.random_state
        return int(state) if isinstance(state, Integral) else int(check_random_state(state).randint(2**31 - 1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
