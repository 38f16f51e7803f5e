"""References by name. A new one is a file with a subclass of ``Reference``, and a row here."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from ..graphs.space import SignalSpace
from . import mixture_fit, sparse_mixture
from .gaussian import LowRank, Spectral
from .kinds import Filler, Kind, TrainingSignals
from .mixture import Mixture
from .reference import Reference
from .separable import Separable
from .sparse import Sparse
from .stationary import Stationary

REFERENCES: dict[str, Kind] = {
    "spectral": Kind(lambda signals: signals.spectral, Spectral.from_tensors),
    "full": Kind(lambda signals: mixture_fit.fit(signals.complete_train(), 1), Mixture.from_tensors),
    "mixture": Kind(
        lambda signals: mixture_fit.select(signals.complete_train(), signals.complete_val()), Mixture.from_tensors
    ),
    "sparse": Kind(lambda signals: signals.sparse(), sparse_mixture.from_tensors),
}


def of_windows(tensors: Mapping[str, Tensor], space: SignalSpace) -> Reference:
    """A reference of windows of a space back from its tensors: which kind it is, they say themselves.

    Raises ``KeyError`` or ``ValueError`` where tensors are missing or do not fit together.
    """
    if "modes" in tensors:
        return Sparse.from_tensors(tensors)  # which needs no basis: a large graph has none
    kinds: dict[str, type[Reference]] = {"weights": Mixture, "C": Stationary, "time": Separable, "B": LowRank}
    kind = next((kind for key, kind in kinds.items() if key in tensors), Spectral)
    return kind.from_tensors(tensors, space.spectrum.basis)


__all__ = ["REFERENCES", "Filler", "Kind", "Reference", "TrainingSignals", "of_windows"]
