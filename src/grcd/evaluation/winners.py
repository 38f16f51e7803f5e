"""Who wins a contest: for each family of gaps the candidate of ours that fills them from then on.

    columns
    the reference, where its error (mean absolute and CRPS added) is less by more than one standard error in that
    family, or over all of them together: else the smaller one is the safer one
    moments, where their error is less than that of columns by as much in that family, or less than that of the
    reference: neither of the two is the smaller one
    the network, if over all families together its gain is more than chance

What gains over all families is taken in each, but for those where it loses more than one standard error: what few
readings of one family say is less than what all say together.

**Rows to come** are a family of their own (see ``foretold``): half a window at the end of each stretch. There the model
is used unless its reference, or each node by itself, is nearer by more than a standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from ..metrics.chance import chance, standard_error
from .contest import COLUMNS, MOMENTS, NETWORK, REFERENCE, Family, Found
from .guesses import Guesses


def decided(found: Mapping[str, Found]) -> dict[str, Family]:
    """The families, from all methods but the network on all held-out rows, all methods on those of validation, and the
    processes of each."""
    held = {name: each[0] for name, each in found.items()}
    small = {
        name: REFERENCE if gain > own or (pooled and not gain < -own) else COLUMNS
        for name, gain, own, pooled in _gains(held, dict.fromkeys(held, COLUMNS), REFERENCE, standard_error)
    }
    of_moments = {name: each for name, each in held.items() if MOMENTS in each.draws}
    small |= {
        name: MOMENTS
        for name, gain, own, _ in _gains(of_moments, small, MOMENTS, standard_error)
        if gain > (own if small[name] == COLUMNS else 0)
    }
    validated = {name: each[1] for name, each in found.items() if NETWORK in each[1].draws}
    network = {
        name: pooled and not gain < -own for name, gain, own, pooled in _gains(validated, small, NETWORK, chance)
    }
    return {name: Family.of(each, small[name], network.get(name, False)) for name, each in found.items()}


def foretold(found: Found) -> Family:
    """Rows to come: by the model, which was trained for them too, unless its reference, or each node by itself, is
    nearer by more than a standard error."""
    held, validated, _ = found
    best, on = (NETWORK, validated) if NETWORK in validated.draws else (REFERENCE, held)
    for other in (REFERENCE, COLUMNS):
        gain = on.loss(best) - on.loss(other)
        if gain.mean() > standard_error(gain, on.group):
            best = other
    return Family.of(found, REFERENCE if best == NETWORK else best, best == NETWORK, by_channel=False)


def _gains(
    found: Mapping[str, Guesses],
    before: Mapping[str, str],
    after: str,
    noise: Callable[[np.ndarray, np.ndarray], float],
) -> Iterator[tuple[str, float, float, bool]]:
    """By family: what a method gains over another, the standard error of that, and whether it gains more than ``noise``
    over all. (Of a single group the standard error is NaN: it then contradicts nothing.)"""
    gains = {name: each.loss(before[name]) - each.loss(after) for name, each in found.items()}
    if not gains:
        return
    values, groups = (np.concatenate([*parts]) for parts in (gains.values(), (each.group for each in found.values())))
    pooled = bool(values.mean() > noise(values, groups))
    for name, each in found.items():
        yield name, float(gains[name].mean()), standard_error(gains[name], each.group), pooled
