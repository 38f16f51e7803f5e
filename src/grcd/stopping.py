"""When training is done: a rule on what the network has learned, not on noise it can never remove.

The paper stops after eight validations without a relative improvement over 0.2 % of the *denoising error*. Most of that
error is irreducible: it is the noise that no network could predict from the noisy signal. On the SBM settings the
Gaussian reference alone is already within 3 % of the best possible error, so 0.2 % of the error is a large share of all
there is to learn, and the rule stops while samples are still getting better (at 6,000 to 8,000 updates on c = 16, where
aMMD at NFE 16 keeps falling for 30,000 more).

Here the 0.2 % are of the **gain**: the error of the Gaussian reference alone, on the very same validation draws, minus
the error of the network. That is all a network can add, the yardstick is known before training starts, and it is the
same for every parameterisation. While the network is not yet better than the reference, any improvement counts.

    improved   <=>   milestone - loss > tolerance * max(baseline - loss, 0)

The milestone moves only when the rule says "improved", so slow progress adds up over validations instead of being
rounded away. The weights kept are those of the lowest validation error, whatever the rule says of it.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass


@dataclass
class Plateau:
    """The state of the rule; ``to_dict`` holds all of it, so that a resumed run decides alike."""

    baseline: float  # the reference's own error on the validation draws
    patience: int = 8
    tolerance: float = 0.002
    best_loss: float = math.inf
    best_update: int = 0
    milestone: float = math.inf
    stale: int = 0  # validations since the milestone last moved

    def observe(self, loss: float, update: int) -> bool:
        """Take a validation error into account; True if it is the lowest so far."""
        if self.milestone - loss > self.tolerance * max(self.baseline - loss, 0.0):
            self.milestone, self.stale = loss, 0
        else:
            self.stale += 1
        if loss < self.best_loss:
            self.best_loss, self.best_update = loss, update
            return True
        return False

    @property
    def reached(self) -> bool:
        return self.stale >= self.patience

    def to_dict(self) -> dict:
        return asdict(self)
