"""The configuration of the conditional model of windows, and which configuration a model has.

``grcd`` with a window, or with several channels, is the conditional model, and so is ``grcd-sparse``; any other method
with a window is the paper's on the product graph, and has the paper's settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import torch

from ..core.errors import unknown
from ..data.limits import Limits
from ..networks import NETWORKS
from . import methods
from .budget import refuse_timed
from .conditional import Setting
from .config import AUTO, Config, limits_of, refuse_calendar, refuse_readings, support_of

BACKBONE = "spacetime"  # of every conditional model, and of no other
OURS = {"marginals": AUTO, "integers": AUTO, "support": AUTO}  # of grcd, unless one is named
AS_THEY_ARE = {"marginals": "z-score", "integers": "no", "support": ""}  # of the paper, and of data that have a name
SPARSE = "grcd-sparse"  # the method whose reference is as on large graphs


@dataclass(frozen=True)
class WindowConfig(Setting):
    """Everything that decides what is trained, beside the data."""

    method: str = "grcd"
    window: int = 1
    calendar: str = "auto"  # whether the mean goes by the clock: what validation says, or "none"
    marginals: str = "z-score"  # these three as in ``Config``
    integers: str = "no"
    support: str = ""
    backbone: str = BACKBONE

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_calendar(self.calendar)
        refuse_readings(self.marginals, self.integers)
        object.__setattr__(self, "support", support_of(self.support))
        if self.backbone != BACKBONE:
            raise unknown("backbone of windows", self.backbone, [BACKBONE])

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def changed(self, settings: Mapping[str, Any]) -> WindowConfig:
        """The same but for these."""
        return replace(self, **settings)

    def limits(self, channels: int = 1) -> Limits:
        """What generated readings keep to."""
        return limits_of(self.support, self.integers, channels)

    @property
    def sparse(self) -> bool:
        """Whether its reference is sparse on any graph."""
        return self.method == SPARSE


def configured(
    method: str, seed: int, window: int, channels: int, device: torch.device, settings: Mapping[str, Any]
) -> Config | WindowConfig:
    """Of a model of so many steps and channels; unknown settings are named, and the known ones listed."""
    refuse_timed(settings)
    ours = OURS if method == "grcd" else {}
    chosen = {"method": method, "seed": seed, "window": window, **ours, **settings}
    if method not in ("grcd", SPARSE) or (chosen["window"] == channels == 1 and settings.get("backbone") != BACKBONE):
        return Config.make(**dict(methods.find(method).settings) | chosen)
    names = [entry.name for entry in fields(WindowConfig)]
    for key in chosen:
        if key not in names:
            raise unknown("setting of windows", key, names)
    config = WindowConfig.on(device, **chosen)
    assert isinstance(config, WindowConfig)
    return config


def read(settings: Mapping[str, Any]) -> Config | WindowConfig:
    """From what ``to_dict`` made."""
    return WindowConfig(**settings) if settings.get("backbone") == BACKBONE else Config.make(**settings)


def defaults(settings: Mapping[str, Any]) -> Config | WindowConfig:
    """What a setting that a run does not know was when it began."""
    if settings.get("backbone") == BACKBONE:
        return WindowConfig()
    return Config(backbone=settings["backbone"]) if settings.get("backbone") in [*NETWORKS] else Config()
