"""How probable readings are in their context: rows of a table in the window about them, under the reference.

    a row        given all other rows of its window, before and after:    log p(window) - log p(window without it)
    a reading    given what all *other nodes* read in its window: its own past is left out, for a sensor that is stuck
                 agrees with its past better than any other

Windows overlap by half, and a row is looked at in the one in whose middle it is nearest. In a stretch that is shorter
than a window, the rest is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from ..core.progress import bar
from ..core.rows import Rows
from ..graphs.space import SignalSpace
from ..references import Reference

ENTRIES = {"cpu": 1 << 22, "cuda": 1 << 27}  # readings looked at together


@torch.inference_mode()
def of_rows(reference: Reference, space: SignalSpace, z: Rows, stretches: Sequence[slice]) -> Tensor:  # (rows,)
    """Log-densities of what was observed of each row, 0 where nothing was."""
    scores = torch.zeros(len(z), dtype=torch.float64)
    for window, start, rows in _windows(z, space.steps, stretches, "scoring rows"):
        seen = ~window.isnan()
        without = seen.repeat(len(rows), 1, 1)
        for k, row in enumerate(rows):
            without[k, row - start] = False
        masks = torch.cat([seen[None], without]).flatten(1)
        log_prob = _log_prob(reference, window.flatten().expand(len(masks), -1), masks)
        scores[rows.start : rows.stop] = (log_prob[0] - log_prob[1:]).cpu()
    return scores


@torch.inference_mode()
def of_readings(
    reference: Reference, space: SignalSpace, z: Rows, stretches: Sequence[slice]
) -> Tensor:  # (rows, columns)
    """Log-densities of readings; NaN where there is none. A mixture counts by its mean and its spread."""
    nodes, channels = len(space.graph), space.channels
    scores = torch.full((len(z), nodes * channels), math.nan, dtype=torch.float64)
    for window, start, rows in _windows(z, space.steps, stretches, "scoring readings"):
        x, own = window.flatten(), slice(rows.start - start, rows.stop - start)
        masks = (~window.isnan()).repeat(nodes, 1, 1).view(nodes, space.steps, nodes, channels)
        for node in range(nodes):
            masks[node, :, node] = False
        for some in torch.arange(nodes).split(max(1, ENTRIES[x.device.type] // space.d)):
            posterior = reference.posterior(x.expand(len(some), -1), masks[some].flatten(1))
            mean, sd = (each.view(len(some), space.steps, nodes, channels) for each in (posterior.mean, posterior.sd))
            for k, node in enumerate(some.tolist()):
                columns = slice(node * channels, (node + 1) * channels)
                away = (window[own, columns] - mean[k, own, node]) / sd[k, own, node]
                density = -0.5 * (away.double().square() + math.log(2 * math.pi)) - sd[k, own, node].double().log()
                scores[rows.start : rows.stop, columns] = density.cpu()
    return scores


def _log_prob(reference: Reference, z: Tensor, observed: Tensor) -> Tensor:  # (windows,)
    size = max(1, ENTRIES[z.device.type] // z.shape[1])
    parts = [reference.posterior(a, b).log_prob for a, b in zip(z.split(size), observed.split(size), strict=True)]
    return torch.cat(parts)


def _windows(
    z: Rows, steps: int, stretches: Sequence[slice], what: str
) -> Iterator[tuple[Tensor, int, range]]:  # each (steps, columns), its first row, the rows that are looked at in it
    """Windows half a window apart, and which rows are nearest to the middle of each."""
    total, done = sum(len(range(len(z))[rows]) for rows in stretches), 0
    with bar(what, total) as advance:
        for stretch in stretches:
            first, stop, _ = stretch.indices(len(z))
            looked, start = first, first
            while looked < stop:
                last = stop if start + steps >= stop else start + steps - max(steps // 4, 0)
                last = max(last, looked + 1)
                window = z[start : min(start + steps, stop)]
                missing = window.new_full((steps - len(window), window.shape[1]), math.nan)
                yield torch.cat([window, missing]), start, range(looked, last)
                done, looked = done + last - looked, last
                advance(done, "")
                start = max(first, min(start + max(steps // 2, 1), stop - steps))
