"""References by name. A new one is a file with a subclass of ``Reference``, and a row here."""

from __future__ import annotations

from . import mixture_fit
from .gaussian import Spectral
from .kinds import Kind, TrainingSignals
from .mixture import Mixture
from .reference import Reference

REFERENCES: dict[str, Kind] = {
    "spectral": Kind(lambda signals: signals.spectral, Spectral.from_tensors),
    "full": Kind(lambda signals: mixture_fit.fit(signals.complete_train(), 1), Mixture.from_tensors),
    "mixture": Kind(
        lambda signals: mixture_fit.select(signals.complete_train(), signals.complete_val()), Mixture.from_tensors
    ),
}

__all__ = ["REFERENCES", "Kind", "Reference", "TrainingSignals"]
