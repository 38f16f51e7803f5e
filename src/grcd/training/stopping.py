"""When training is done: a rule on what the network has learned, not on noise it can never remove.

The paper stops after eight validations without a relative improvement over 0.2 % of the *denoising error*. Most of that
error is irreducible: it is the noise that no network could predict from the noisy signal. On the SBM settings the
Gaussian reference alone is already within a few per cent of the best possible error, so 0.2 % of the error is a large
share of all there is to learn, and the rule stops while samples are still getting better.

Here (rule "gain") the 0.2 % are of the **gain**: the error of the Gaussian reference alone, on the very same validation
draws, minus the error of the network. That is all a network can add, the yardstick is known before training starts, and
it is the same for every parameterisation. While the network is no better than the reference, any improvement counts.

    improved   <=>   milestone - loss > tolerance * max(baseline - loss, 0)

The milestone moves only when the rule says "improved", so slow progress adds up over validations instead of being
rounded away. The weights kept are those of the lowest validation error, whatever the rule says of it.

A network that starts as its reference (see ``nodenet``) has the reference's error to ``begin`` with: that is the one to
beat. The first updates lead away from it before anything is learned (on METR-LA for some 2,000), so the first
``patience`` validations then set no milestone and count for nothing.

Rule "paper" is the paper's, for its tables: the 0.2 % are of the error itself, and the error is that of the denoised
signal, on every validation signal at eight levels with the same noise every time (docs/paper.md says why this reading).
Rule "none" never stops: training goes on to its last update, whose weights are kept.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

RULES = ("gain", "paper", "none")


@dataclass
class Plateau:
    """The state of the rule; ``to_dict`` holds all of it, so that a resumed run decides alike."""

    baseline: float  # the reference's own error on the validation draws
    rule: str = "gain"
    patience: int = 8
    tolerance: float = 0.002
    best_loss: float = math.inf
    best_update: int = 0
    milestone: float = math.inf
    stale: int = 0  # validations since the milestone last moved
    waiting: int = 0  # validations that do not count yet

    def begin(self, loss: float) -> None:
        """The error before the first update, of a network that is worth keeping as it is."""
        self.best_loss, self.waiting = loss, self.patience

    def observe(self, loss: float, update: int) -> bool:
        """Take a validation error into account; True if the weights it is of are the ones to keep: the best so far."""
        yardstick = max(self.baseline - loss, 0.0) if self.rule == "gain" else loss
        if self.waiting:
            self.waiting -= 1
        elif self.milestone - loss > self.tolerance * yardstick:
            self.milestone, self.stale = loss, 0
        else:
            self.stale += 1
        if loss < self.best_loss or self.rule == "none":
            self.best_loss, self.best_update = loss, update
            return True
        return False

    @property
    def reached(self) -> bool:
        """Whether training is done."""
        return self.stale >= self.patience and self.rule != "none"

    def to_dict(self) -> dict:
        """The whole state, as a checkpoint holds it."""
        return asdict(self)

    def restored(self, saved: dict) -> Plateau:
        """What ``to_dict`` saved of a rule like this one; a ValueError if it is of another, or of none."""
        current = asdict(self)
        if not isinstance(saved, dict) or set(saved) != set(current):
            raise ValueError("the state of no stopping rule")
        for key, value in saved.items():
            number = isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
            if (isinstance(current[key], str) or key in ("patience", "tolerance")) and value != current[key]:
                raise ValueError(f"another stopping rule: {key} is {value!r:.40}, not {current[key]!r}")
            if not isinstance(current[key], str) and not number:
                raise ValueError(f"{key} is {value!r:.40}")
        return Plateau(**saved)
