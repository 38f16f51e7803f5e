"""How probable a signal is: exactly under the reference, by the probability flow under the model.

**Reference.** ``log p`` of a Gaussian or mixture, in closed form; of a signal with gaps, that of what was observed.

**Model.** Along the flow ``dx~/dq = eps_hat`` densities change by its divergence, so with the reference at the end

    log p(x~ at q_min) = log p_ref(x~ at q_max) + int_q_min^q_max div eps_hat dq
    div eps_hat = -q div score_ref + div f,     div score_ref = sum_k r_k (|s_k|^2 - tr (Sigma_k + q^2 I)^-1) - |s|^2

The reference's part is exact; the residual's, ``div f``, is Hutchinson's estimate ``e^T (df/dx~) e`` over random signs
``e``. Heun steps in ``log q``. The error told beside it has two parts: the standard error over the signs, and what half
as many steps would have changed.

**Nodes.** How probable each reading is given all others of its signal, under the reference: ``log p(x_i | x_-i)``, with
``Lambda`` the precision of a component,

    x_i | x_-i, k ~ N(x_i - (Lambda (x - m))_i / Lambda_ii, 1 / Lambda_ii)
    p(k | x_-i) ~ w_k p_k(x) / p_k(x_i | x_-i)

and with gaps the same of what was observed. A reading that its neighbours do not expect stands out there, however
common it is by itself.

In nats, of z-scored signals: another unit adds the same to all. The density is of signals with the noise of the
smallest level, 0.04 of a standard deviation; without it, the reference's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from . import device as devices
from .errors import InputError
from .mixture import Mixture
from .observations import Observations, as_mixture, posterior
from .process import ConjugateProcess
from .progress import bar
from .reference import Gaussian
from .streams import Stream
from .systems import solve

if TYPE_CHECKING:
    from .model import GRCD

EpsHat = Callable[[Tensor, float], Tensor]
ENTRIES = 1 << 23  # of matrices held at a time


def of_signals(
    model: GRCD, x: np.ndarray, exact: bool, steps: int, probes: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:  # two of (signals,)
    """Log-likelihoods and their errors, some signals at a time."""
    if not exact and model.method.process != "conjugate":
        raise InputError(
            f"the method {model.config.method!r}", "one on the conjugate process", "take --posterior reference"
        )
    found, eps_hat, rows = np.zeros((2, len(x))), model.noise_prediction() if not exact else None, model.batch()
    with devices.arithmetic(), bar("scoring", len(x)) as advance:
        for start in range(0, len(x), rows):
            z = torch.from_numpy(model.normalizer.apply(x[start : start + rows])).double().to(model.device)
            here = slice(start, start + len(z))
            if exact:
                found[0, here] = under_reference(model.reference, z).cpu()
            else:
                signs = random_signs(seed, range(start, start + len(z)), z.shape[1], probes, z.device)
                told = under_model(eps_hat, model.reference, model.process, z, steps, signs)
                found[:, here] = torch.stack(told).cpu()
            advance(start + len(z), "")
    return found[0], found[1]


def under_reference(reference: Gaussian | Mixture, z: Tensor) -> Tensor:  # (signals, nodes) -> (signals,)
    """Of all readings, or of those that are there."""
    return posterior(reference, Observations(z)).log_evidence if z.isnan().any() else reference.log_prob(z)


def of_readings(model: GRCD, x: np.ndarray) -> np.ndarray:  # (signals, nodes) twice
    """``of_nodes``, some signals at a time: with gaps each has a matrix of its own."""
    found, rows = np.empty(x.shape), max(1, ENTRIES // x.shape[1] ** 2)
    with torch.inference_mode(), bar("scoring readings", len(x)) as advance:
        for start in range(0, len(x), rows):
            z = torch.from_numpy(model.normalizer.apply(x[start : start + rows])).double().to(model.device)
            found[start : start + rows] = of_nodes(model.reference, z).cpu()
            advance(start + len(z), "")
    return found


def of_nodes(reference: Gaussian | Mixture, z: Tensor) -> Tensor:  # (signals, nodes) twice
    """``log p(x_i | x_-i)`` of the readings that are there; NaN where there is none."""
    mixture, seen = as_mixture(reference), ~z.isnan()
    joint, given = [], []
    for weight, mean, part in zip(mixture.weights, mixture.means, mixture.parts, strict=True):
        log_prob, moved, own = (_whole if seen.all() else _observed)(part, z - mean, seen)
        joint.append(weight.log() + log_prob)
        given.append(-moved.square() / (2 * own) + (own / (2 * math.pi)).log() / 2)
    joint, given = torch.stack(joint, -1)[:, None], torch.stack(given, -1)  # (signals, nodes or 1, components)
    return torch.where(seen, joint.logsumexp(-1) - (joint - given).logsumexp(-1), torch.nan)


def _whole(part: Gaussian, off: Tensor, seen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Log-densities, ``Lambda off`` and the diagonal of ``Lambda``: one precision for all signals."""
    precision = part.precision()
    return part.log_prob(off), off @ precision, precision.diagonal().expand_as(off)


def _observed(part: Gaussian, off: Tensor, seen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The same for signals with gaps: a precision for each, of what was observed of it."""
    eye = torch.eye(off.shape[1]).to(off)
    precision, size = solve(part.covariance(), seen, eye.expand(len(off), -1, -1))
    off = torch.where(seen, off, 0.0)
    moved = (precision @ off[..., None])[..., 0]
    count = seen.sum(1) * math.log(2 * math.pi)
    return -((moved * off).sum(-1) + size + count) / 2, moved, precision.diagonal(dim1=-2, dim2=-1)


def under_model(
    eps_hat: EpsHat, reference: Gaussian | Mixture, process: ConjugateProcess, z: Tensor, steps: int, signs: Tensor
) -> tuple[Tensor, Tensor]:  # signs (probes, signals, nodes) -> two of (signals,)
    """Log-likelihood of complete signals, and its error."""
    fine = _integrated(eps_hat, reference, process, z, steps, signs)
    coarse = _integrated(eps_hat, reference, process, z, max(1, steps // 2), signs)
    spread = fine.std(0) / math.sqrt(len(signs)) if len(signs) > 1 else torch.zeros_like(fine[0])
    return fine.mean(0), (spread.square() + (fine.mean(0) - coarse.mean(0)).square()).sqrt()


def random_signs(seed: int, rows: range, nodes: int, probes: int, device) -> Tensor:  # (probes, signals, nodes)
    u = Stream(seed, "signs", device).uniform(rows, probes * nodes).view(len(rows), probes, nodes)
    return torch.where(u < 0.5, -1.0, 1.0).double().transpose(0, 1).contiguous()


def _integrated(eps_hat, reference, process, z: Tensor, steps: int, signs: Tensor) -> Tensor:  # (probes, signals)
    """Heun from the smallest level to the largest; a log-likelihood for each probe."""
    mixture = as_mixture(reference)
    q = np.geomspace(process.q_min, process.q_max, steps + 1)
    x, total = z, torch.zeros_like(signs[..., 0])
    for q0, q1 in zip(q[:-1].tolist(), q[1:].tolist(), strict=True):
        h = math.log(q1 / q0)
        d0, div0 = _rates(eps_hat, mixture, x, q0, signs)
        d1, div1 = _rates(eps_hat, mixture, x + h * d0, q1, signs)
        x, total = x + h / 2 * (d0 + d1), total + h / 2 * (div0 + div1)
    return total + mixture.log_prob(x, process.q_max)


def _rates(eps_hat, mixture: Mixture, x: Tensor, q: float, signs: Tensor) -> tuple[Tensor, Tensor]:
    """``dx / d log q``, and ``d log p / d log q`` for each probe."""
    joint, scores = mixture._components(x, q)
    share = joint.softmax(-1)
    traces = torch.stack([(part.multiplicity / part.variance(q)).sum() for part in mixture.parts])
    squares = torch.stack([score.square().sum(-1) for score in scores], -1)
    score = sum(share[:, k, None] * each for k, each in enumerate(scores))
    known = -q * ((share * (squares - traces)).sum(-1) - score.square().sum(-1))
    with torch.enable_grad():
        there = x.detach().requires_grad_()
        residual = eps_hat(there, q) - mixture.eps(there, q)
        products = [torch.autograd.grad((residual * e).sum(), there, retain_graph=True)[0] for e in signs]
    learned = torch.stack([(product * e).sum(-1) for product, e in zip(products, signs, strict=True)])
    return q * (residual.detach() - q * score), q * (known + learned)
