"""One typed configuration: the paper's hyperparameters (table app_hparams) by name, with its values as defaults."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

from ..core.errors import InputError, unknown, whole_number
from ..core.streams import SEED_MOST
from ..networks import NETWORKS
from . import methods
from .stopping import RULES

MARGINALS = ("z-score", "quantile")
LARGEST = {  # far beyond what anybody trains with; what is larger is a slip
    "width": 1 << 16,
    "blocks": 1000,
    "taps": 1000,
    "time_dim": 1 << 16,
    "batch": 1 << 24,
    "tolerance": 1.0,
    "lr": 1e30,  # training that diverges says so
    "weight_decay": 1e3,
}
LARGEST_NUMBER, LARGEST_COUNT = 1e6, 10**12
SMALLEST = {"lr": 1e-30}
SMALLEST_NUMBER = 1e-12


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
    # readings
    marginals: str = "z-score"
    support: str = ""  # "LOW,HIGH": generated readings stay within; empty: anywhere
    # backbone
    backbone: str = "gnn"
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
    stopping: str = "gain"
    patience: int = 8
    tolerance: float = 0.002
    max_updates: int = 40_000

    @classmethod
    def make(cls, **settings: Any) -> Config:
        """From keywords or a file: unknown keys are named, and the known ones listed."""
        known = [field.name for field in fields(cls)]
        for key in settings:
            if key not in known:
                raise unknown("setting", key, known)
        return cls(**settings)

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, _typed(field.name, str(field.type), getattr(self, field.name)))
        methods.find(self.method)
        if self.stopping not in RULES:
            raise unknown("stopping rule", self.stopping, RULES)
        if self.marginals not in MARGINALS:
            raise unknown("marginals", self.marginals, MARGINALS)
        object.__setattr__(self, "support", _range(self.support))
        if self.backbone not in NETWORKS:
            raise unknown("backbone", self.backbone, NETWORKS)
        for key, value in asdict(self).items():
            if isinstance(value, str) or key in ("seed", "weight_decay"):
                continue
            most = LARGEST.get(key, LARGEST_COUNT if isinstance(value, int) else LARGEST_NUMBER)
            least = 1 if isinstance(value, int) else SMALLEST.get(key, SMALLEST_NUMBER)
            if not least <= value <= most:
                do = f"leave {key} at its default, or choose one in that range"
                raise InputError(f"{key} = {value!r:.40}", f"a value above zero: from {least:g} to {most:g}", do)
        if not self.t_min < self.t_max:
            raise InputError(f"t_min = {self.t_min}, t_max = {self.t_max}", "t_min < t_max", "swap or spread them")
        whole_number("seed", self.seed, 0, SEED_MOST)
        if not 0 <= self.weight_decay <= LARGEST["weight_decay"]:
            raise InputError(f"weight_decay = {self.weight_decay:g}", "from 0 to 1,000", "leave it at its default")
        if not self.ema < 1 or self.time_dim % 2:
            raise InputError(
                f"ema = {self.ema}, time_dim = {self.time_dim}", "ema below 1 and an even time_dim", "adjust them"
            )

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """A network's: width, blocks, taps and the dimension of times."""
        return self.width, self.blocks, self.taps, self.time_dim

    @property
    def process(self) -> dict[str, float]:
        """What concerns the forward process, by name."""
        return {key: getattr(self, key) for key in ("kappa", "sigma", "delta", "t_min", "t_max")}

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The support as numbers; None if there is none."""
        if not self.support:
            return None
        low, high = map(float, self.support.split(","))
        return low, high


def _range(support: str) -> str:
    """In one spelling: runs are compared by it."""
    if not support:
        return ""
    try:
        low, high = (float(end) for end in support.split(","))
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError
    except ValueError:
        raise InputError(f"support = {support!r}", "two numbers, the lower one first", "e.g. --support 0 70") from None
    return f"{low!r},{high!r}"


def _typed(key: str, kind: str, value: Any) -> Any:
    """The value as its field's type, if that loses nothing: "128" and 128.0 are whole numbers, 1.5 and inf are not."""
    try:
        if kind == "str":
            return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
        if isinstance(value, bool):
            raise ValueError
        typed = {"int": int, "float": float}[kind](value)
        if not math.isfinite(typed) or (kind == "int" and not isinstance(value, str) and typed != value):
            raise ValueError
        return typed
    except (TypeError, ValueError, OverflowError):
        number = {"int": "a whole number", "float": "a finite number"}[kind]
        raise InputError(f"{key} = {value!r}", number, f"give {key} as {number}") from None
