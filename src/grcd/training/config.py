"""One typed configuration: the paper's hyperparameters (table app_hparams) by name, with its values as defaults.

What a network is made with is a setting of its own, ``network``. From outside all settings lie side by side:
``Config(width=64)``, ``config.width``, ``to_dict()``, the configuration in a run folder, ``--set width=64``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from .. import networks
from ..core.errors import InputError, unknown
from ..core.settings import Settings, ranged, typed
from ..core.streams import SEED_MOST
from ..data.limits import Limits
from ..data.scales import SCALES
from ..networks.setting import NetworkSetting
from . import methods
from .stopping import RULES

OPTIMIZERS = ("adam", "adamw")  # weight decay in the gradient, or beside it


@dataclass(frozen=True, init=False)
class Config(Settings):
    """Everything that decides what is trained. Unknown keys and impossible values are refused on construction.

    ``method`` is a name from the table in ``training/methods.py``, ``seed`` decides all that is random,
    and ``settings`` are the fields below and those of the backbone.
    """

    method: str = "grcd"
    seed: int = ranged(0, 0, SEED_MOST)
    # forward process and reference
    kappa: float = 2.0
    sigma: float = 1.0
    delta: float = 0.05
    t_min: float = 0.02
    t_max: float = 1.0
    eps_ref: float = 1e-6
    # readings
    window: int = 1  # steps of a signal
    calendar: str = "auto"  # of signals in time: whether their mean goes by the clock; or "none"
    marginals: str = "z-score"  # the scale they are taken on (data/scales); "auto": what held-out readings say
    integers: str = "no"  # whether generated readings are whole numbers; "auto": if training readings are
    support: str = ""  # "LOW,HIGH": generated readings stay within; empty: anywhere; "auto": as training readings do
    # network: its name, and its own settings (width, blocks, ...)
    backbone: str = "gnn"
    network: NetworkSetting = field(default_factory=networks.find(backbone).setting)
    # training
    optimizer: str = "adam"
    lr: float = ranged(3e-4, 1e-30, 1e30)  # training that diverges says so
    weight_decay: float = ranged(1e-4, 0, 1e3)
    batch: int = ranged(256, most=1 << 24)
    clip: float = 1.0
    ema: float = ranged(0.999, 0, 1)  # 0: the weights themselves, no average
    validate_every: int = 250
    stopping: str = "gain"
    patience: int = 8
    tolerance: float = ranged(0.002, most=1)
    max_updates: int = 40_000
    minutes: float = ranged(0, 0, 1e5)  # that training may take: decides how large a network is; 0: no matter

    def __init__(self, method: str = "grcd", seed: int = 0, **settings: Any):
        """What is left out has its default."""
        flat = {"method": method, "seed": seed, **settings}
        if isinstance(settings.get("network"), NetworkSetting):  # from ``dataclasses.replace``
            flat = asdict(flat.pop("network")) | flat
        setting = networks.find(typed("backbone", "str", flat.get("backbone", self.backbone))).setting
        own = [entry.name for entry in fields(setting)]
        names = [name for entry in fields(self) for name in (own if entry.name == "network" else [entry.name])]
        for key in flat:
            if key not in names:
                raise unknown("setting", key, names)
        flat["network"] = setting(**{key: flat[key] for key in own if key in flat})
        for entry in fields(self):
            object.__setattr__(self, entry.name, flat.get(entry.name, entry.default))
        self.__post_init__()

    @classmethod
    def make(cls, **settings: Any) -> Config:
        """From keywords or a file: unknown keys are named, and the known ones listed."""
        return cls(**settings)

    def __post_init__(self) -> None:
        super().__post_init__()
        methods.find(self.method)
        if self.stopping not in RULES:
            raise unknown("stopping rule", self.stopping, RULES)
        if self.optimizer not in OPTIMIZERS:
            raise unknown("optimizer", self.optimizer, OPTIMIZERS)
        refuse_readings(self.marginals, self.integers)
        object.__setattr__(self, "support", support_of(self.support))
        refuse_calendar(self.calendar)
        if not self.t_min < self.t_max:
            raise InputError(f"t_min = {self.t_min}, t_max = {self.t_max}", "t_min < t_max", "swap or spread them")
        if not self.ema < 1:
            raise InputError(f"ema = {self.ema}", "ema below 1", "leave it at its default")

    def __getattr__(self, name: str) -> Any:
        """The network's settings by their names: ``config.width``."""
        if "network" not in vars(self):
            raise AttributeError(name)
        return getattr(self.network, name)

    def to_dict(self) -> dict[str, Any]:
        """All settings side by side, the network's in their place: ``Config(**config.to_dict()) == config``."""
        flat: dict[str, Any] = {}
        for entry in fields(self):
            value = getattr(self, entry.name)
            flat |= asdict(value) if entry.name == "network" else {entry.name: value}
        return flat

    def changed(self, settings: Mapping[str, Any]) -> Config:
        """The same but for these, those of the network included."""
        return Config(**self.to_dict() | dict(settings))

    @property
    def process(self) -> dict[str, float]:
        """What concerns the forward process, by name."""
        return {key: getattr(self, key) for key in ("kappa", "sigma", "delta", "t_min", "t_max")}

    def limits(self, channels: int = 1) -> Limits:
        """What generated readings keep to."""
        return limits_of(self.support, self.integers, channels)


AUTO = "auto"  # what the data decide, when there are some
CALENDARS = ("auto", "none")


def refuse_calendar(name: str) -> None:
    if name not in CALENDARS:
        raise unknown("calendar", name, CALENDARS)


def refuse_readings(marginals: str, integers: str) -> None:
    """Both are one word for all channels, or one for each, with commas."""
    for name in marginals.split(","):
        if name not in (*SCALES, AUTO):
            raise unknown("marginals", name, [*SCALES, AUTO])
    for name in integers.split(","):
        if name not in ("yes", "no", AUTO):
            raise unknown("integers", name, ["yes", "no", AUTO])


def limits_of(support: str, integers: str, channels: int) -> Limits:
    """What generated readings of so many channels keep to."""
    return Limits.of(_ends(support), [word == "yes" for word in integers.split(",")], channels)


def _ends(support: str) -> list[tuple[float, float]]:
    """One for all channels, or one for each."""
    if support in ("", AUTO):
        return [(-math.inf, math.inf)]
    pairs = [[float(end) for end in part.split(",")] for part in support.split(";")]
    return [(low, high) for low, high in pairs]


def support_of(support: str) -> str:
    """In one spelling: runs are compared by it. One for all channels, or one for each with semicolons."""
    if support in ("", AUTO):
        return support
    try:
        ends = _ends(support)
        if not all(low < high and low < math.inf and high > -math.inf for low, high in ends):
            raise ValueError
    except ValueError:
        do = "e.g. --support 0 70; --support 0 inf has no upper end"
        raise InputError(f"support = {support!r}", "two numbers, the lower one first", do) from None
    return "" if all(np.isinf(pair).all() for pair in ends) else ";".join(f"{low!r},{high!r}" for low, high in ends)
