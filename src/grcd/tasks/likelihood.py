"""How probable a signal is: exactly under the reference, by the probability flow under the model.

**Reference.** ``log p`` of a Gaussian or mixture, in closed form; of a signal with gaps, that of what was observed.

**Model.** With ``eps_hat = eps_ref + f`` densities change along the flow ``dx~/dq = eps_hat`` by its divergence, and
the reference's own density by that of ``eps_ref``; between the two is what the network adds:

    d log p / dq = -div eps_hat        d log p_ref / dq = -div eps_ref + score_ref . f        along the flow, so
    log p(x~, q) = log p_ref(x~, q) + int_q^q_max (div f + score_ref . f) dq

since at ``q_max`` the flow starts from the reference. Where ``f`` is zero the model's density is the reference's, to
the last digit; below ``q_min``, of which no network knows, it is zero, so the density is that of signals without noise.
The state moves by Runge-Kutta steps in ``log q``, the integral is Simpson's: both of order four. ``div f`` is exact for
few nodes, by a product with each unit vector; for more it is Hutchinson's ``e^T (df/dx~) e`` over random signs ``e``,
the same at all levels, so that each ``e`` gives a log-likelihood, and these are independent.

**Its error** is half of a 95 % interval over the signs (Student's, for they are few), plus what the last doubling of
the steps has changed. That is about sixteen times what is still to come, once steps are short; before, two results may
agree by chance, so a change is never taken to be less than a quarter of the one before it. Signals that are changed by
more than ``TOLERANCE`` get more steps, up to sixteen times as many as asked for; where that was not enough, the error
says so. **Cost**, for each step: four evaluations of the network, and as many gradients as signs or, with few nodes, as
nodes. With the quarter and the half of them for comparison a signal takes 1.75 times the steps asked for, at most 32.

**Nodes.** How probable each reading is given all others of its signal, under the reference: ``log p(x_i | x_-i)``, with
``Lambda`` the precision of a component,

    x_i | x_-i, k ~ N(x_i - (Lambda (x - m))_i / Lambda_ii, 1 / Lambda_ii)
    p(k | x_-i) ~ w_k p_k(x) / p_k(x_i | x_-i)

and with gaps the same of what was observed. A reading that its neighbours do not expect stands out there, however
common it is by itself.

In nats, of z-scored signals: another unit adds the same to all.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np
import torch
from scipy.special import stdtrit
from torch import Tensor

from ..core import device as devices
from ..core.errors import InputError, InputWarning
from ..core.progress import bar
from ..core.rows import Rows
from ..core.streams import Stream
from ..diffusion.diffusion import Diffusion
from ..diffusion.process import ConjugateProcess
from ..references.observations import Observations
from ..references.reference import Reference

Residual = Callable[[Tensor, float], Tensor]
ENTRIES = 1 << 23  # of matrices held at a time
FEW = 32  # nodes up to which divergences are exact
TOLERANCE, DOUBLINGS = 0.01, 4  # nats that steps may change, or else there are twice as many


def of_signals(
    diffusion: Diffusion, z: Rows, exact: bool, steps: int, probes: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:  # two of (signals,)
    """Log-likelihoods and their errors, some z-scored signals at a time."""
    d, value, error = diffusion.space.d, np.zeros(len(z)), np.zeros(len(z))
    if not exact:
        process = _refuse(diffusion, probes)
    if not exact and diffusion.adds_nothing:
        note = "the network of this run adds nothing to its reference, whose exact log-likelihoods these are"
        warnings.warn(note, InputWarning, stacklevel=3)
        exact = True
    added = residual(diffusion)
    with devices.arithmetic(), bar("scoring", len(z)) as advance:
        for start in range(0, len(z), diffusion.batch):
            batch = slice(start, min(start + diffusion.batch, len(z)))
            signals = z[batch]
            if exact:
                value[batch] = under_reference(diffusion.reference, signals).cpu()
            else:
                few = d <= max(FEW, probes)
                signs = None if few else random_signs(seed, range(start, batch.stop), d, probes, signals.device)
                log_prob, of_signs, of_steps = under_model(added, diffusion.reference, process, signals, steps, signs)
                value[batch], error[batch] = log_prob.cpu(), (of_signs + of_steps).cpu()
            advance(batch.stop, "")
    return value, error


def _refuse(diffusion: Diffusion, probes: int) -> ConjugateProcess:
    """The process, if it is one whose densities can be followed, and probes are enough."""
    if not isinstance(diffusion.process, ConjugateProcess):
        raise InputError(
            f"the method {diffusion.method!r}", "one on the conjugate process", "take --posterior reference"
        )
    if probes < 2 and diffusion.space.d > max(FEW, probes):
        raise InputError(f"probes = {probes}", "two or more: one has no spread to tell an error by", "take 4")
    return diffusion.process


def residual(diffusion: Diffusion) -> Residual:
    """``f``: what the network adds to the noise prediction of the reference."""
    prediction = diffusion.prediction()
    return lambda x, q: prediction.residual(x, q, diffusion.reference)


def under_reference(reference: Reference, z: Tensor) -> Tensor:  # (signals, d) -> (signals,)
    """Of all readings, or of those that are there."""
    return reference.condition(Observations(z)).log_evidence if z.isnan().any() else reference.log_prob(z)


def of_readings(diffusion: Diffusion, z: Rows) -> np.ndarray:  # (signals, d)
    """``of_nodes``, some signals at a time: with gaps each has a matrix of its own."""
    d = diffusion.space.d
    log_prob, size = np.empty((len(z), d)), max(1, ENTRIES // d**2)
    with torch.inference_mode(), bar("scoring readings", len(z)) as advance:
        for start in range(0, len(z), size):
            batch = slice(start, min(start + size, len(z)))
            log_prob[batch] = of_nodes(diffusion.reference, z[batch]).cpu()
            advance(batch.stop, "")
    return log_prob


def of_nodes(reference: Reference, z: Tensor) -> Tensor:  # (signals, d) twice
    """``log p(x_i | x_-i)`` of the readings that are there; NaN where there is none."""
    seen = ~z.isnan()
    joints, conditionals = [], []
    for weight, mean, part in zip(reference.weights, reference.means, reference.parts, strict=True):
        log_prob, weighted, precisions = part.leave_one_out(z - mean, seen)
        joints.append(weight.log() + log_prob)
        conditionals.append(-weighted.square() / (2 * precisions) + (precisions / (2 * math.pi)).log() / 2)
    joint, conditional = torch.stack(joints, -1)[:, None], torch.stack(conditionals, -1)  # (signals, 1 or d, K)
    return torch.where(seen, joint.logsumexp(-1) - (joint - conditional).logsumexp(-1), torch.nan)


def under_model(
    residual: Residual,
    reference: Reference,
    process: ConjugateProcess,
    z: Tensor,  # (signals, nodes), complete
    steps: int,
    signs: Tensor | None = None,  # (probes, signals, nodes); None: exact divergences
) -> tuple[Tensor, Tensor, Tensor]:  # three of (signals,)
    """Log-likelihoods; their error from the signs, and from the steps."""
    steps = 8 * math.ceil(steps / 8)  # a quarter of them is even, for Simpson's rule
    probes, rows = _unit_vectors(z) if signs is None else signs, torch.arange(len(z), device=z.device)
    gained, error = _gained(residual, reference, process, z, steps // 4, probes), torch.zeros_like(z[:, 0])
    for count in (steps // 2, *(steps << doubled for doubled in range(DOUBLINGS + 1))):
        finer = _gained(residual, reference, process, z[rows], count, probes[:, rows])
        change = (finer.mean(0) - gained[:, rows].mean(0)).abs()
        gained[:, rows], error[rows] = finer, change.maximum(error[rows] / 4)
        if count >= steps:
            rows = (~(error <= TOLERANCE)).nonzero()[:, 0]  # what is not a number either
        if not len(rows):
            break
    return reference.log_prob(z) + gained.mean(0), torch.zeros_like(error) if signs is None else _half(gained), error


def _half(values: Tensor) -> Tensor:  # (probes, signals) -> (signals,)
    """Half of a 95 % interval about the mean of a few numbers: Student's."""
    n = len(values)
    return float(stdtrit(n - 1, 0.975)) * values.std(0) / math.sqrt(n)


def random_signs(
    seed: int, rows: range, nodes: int, probes: int, device: torch.device
) -> Tensor:  # (probes, signals, nodes)
    u = Stream(seed, "signs", device).uniform(rows, probes * nodes).view(len(rows), probes, nodes)
    return torch.where(u < 0.5, -1.0, 1.0).double().transpose(0, 1).contiguous()


def _unit_vectors(z: Tensor) -> Tensor:  # (nodes, signals, nodes)
    """Probes whose mean is the divergence itself."""
    n, nodes = z.shape
    return math.sqrt(nodes) * torch.eye(nodes).to(z)[:, None].expand(-1, n, -1)


def _gained(
    residual: Residual, reference: Reference, process: ConjugateProcess, z: Tensor, steps: int, probes: Tensor
) -> Tensor:  # (probes, signals)
    """``int (div f + score_ref . f) dq`` for each probe: Simpson's rule along a Runge-Kutta flow, in ``log q``."""
    q = np.geomspace(process.q_min, process.q_max, 2 * steps + 1).tolist()  # steps, and their middles
    h = 2 * math.log(q[1] / q[0])
    x, total = _onset(reference, z, q[0], steps), torch.zeros_like(probes[..., 0])

    def slope(x: Tensor, q: float) -> Tensor:  # dx / d log q
        with torch.no_grad():
            return q * (reference.eps(x, q) + residual(x, q))

    for step in range(steps + 1):
        here = q[2 * step]
        k1, rate = _rates(residual, reference, x, here, probes)
        total = total + h / 3 * (1 if step in (0, steps) else 2 + 2 * (step % 2)) * rate
        if step < steps:
            middle, end = q[2 * step + 1 : 2 * step + 3]
            x = _stepped(slope, x, middle, end, h, k1)
    return total


def _onset(reference: Reference, z: Tensor, q: float, steps: int) -> Tensor:
    """From no noise to level ``q`` along the reference's own flow: no network knows of less noise.

    In ``w = log(1 + q^2 / v)``, with ``v`` the smallest variance, no mode moves by more than ``x / 2`` in a unit.
    """
    if len(reference.parts) == 1:
        return reference.means[0] + reference.parts[0].propagate(z - reference.means[0], q, 0.0)
    v = float(reference.variances()[0].min())
    h = math.log1p(q**2 / v) / steps

    def slope(x: Tensor, w: float) -> Tensor:  # dx / dw
        return -v * math.exp(w) / 2 * reference.score(x, math.sqrt(v * math.expm1(w)))

    x = z
    for w in (step * h for step in range(steps)):
        x = _stepped(slope, x, w + h / 2, w + h, h, slope(x, w))
    return x


def _stepped(slope: Residual, x: Tensor, middle: float, end: float, h: float, k1: Tensor) -> Tensor:
    """One step of order four; ``k1`` is the slope at its start."""
    k2 = slope(x + h / 2 * k1, middle)
    k3 = slope(x + h / 2 * k2, middle)
    return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(x + h * k3, end))


def _rates(residual: Residual, reference: Reference, x: Tensor, q: float, probes: Tensor) -> tuple[Tensor, Tensor]:
    """``dx / d log q``, and ``q (div f + score_ref . f)`` for each probe."""
    score = reference.score(x, q)
    with torch.enable_grad():
        there = x.detach().requires_grad_()
        f = residual(there, q)
        products = [torch.autograd.grad((f * e).sum(), there, retain_graph=True)[0] for e in probes]
    divergence = torch.stack([(product * e).sum(-1) for product, e in zip(products, probes, strict=True)])
    f = f.detach()
    return q * (f - q * score), q * (divergence + (score * f).sum(-1))
