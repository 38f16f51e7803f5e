"""One typed configuration: the paper's hyperparameters (table app_hparams) by name, with its values as defaults."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields

from . import methods
from .errors import InputError, unknown


@dataclass(frozen=True)
class Config:
    """Everything that decides what is trained. Unknown keys and impossible values are refused on construction."""

    method: str = "grcd"
    seed: int = 0
    # forward process and reference
    kappa: float = 2.0
    sigma: float = 1.0
    delta: float = 0.05
    t_min: float = 0.02
    t_max: float = 1.0
    eps_ref: float = 1e-6
    # backbone
    width: int = 128
    blocks: int = 3
    taps: int = 5
    time_dim: int = 64
    # training
    lr: float = 3e-4
    weight_decay: float = 1e-4
    batch: int = 256
    clip: float = 1.0
    ema: float = 0.999
    validate_every: int = 250
    patience: int = 8
    tolerance: float = 0.002
    max_updates: int = 40_000

    @classmethod
    def make(cls, **settings) -> Config:
        """From keywords or a file: values are converted to their type, unknown keys are named."""
        kinds = {field.name: field.type for field in fields(cls)}
        for key in settings:
            if key not in kinds:
                raise unknown("setting", key, kinds)
        return cls(**{key: _typed(key, kinds[key], value) for key, value in settings.items()})

    def __post_init__(self):
        methods.find(self.method)
        for key, value in asdict(self).items():
            if key in ("method", "seed", "weight_decay"):
                continue
            if not value > 0:
                raise InputError(f"{key} = {value}", "a value above zero", f"leave {key} at its default or raise it")
        if not self.t_min < self.t_max:
            raise InputError(f"t_min = {self.t_min}, t_max = {self.t_max}", "t_min < t_max", "swap or spread them")
        if self.seed < 0 or self.weight_decay < 0:
            raise InputError(
                f"seed = {self.seed}, weight_decay = {self.weight_decay}",
                "neither below zero",
                "raise the negative one",
            )
        if not self.ema < 1 or self.time_dim % 2:
            raise InputError(
                f"ema = {self.ema}, time_dim = {self.time_dim}", "ema below 1 and an even time_dim", "adjust them"
            )


def _typed(key: str, kind: str, value):
    convert = {"int": int, "float": float, "str": str}[kind]
    try:
        if isinstance(value, bool):
            raise ValueError
        typed = convert(value)
        exact = kind == "str" or (math.isfinite(float(value)) and (kind == "float" or typed == float(value)))
    except (TypeError, ValueError):
        exact = False
    if not exact:
        raise InputError(f"{key} = {value!r}", f"a finite {kind}", f"give {key} as {kind}")
    return typed
