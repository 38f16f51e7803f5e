"""Sampling given observations: guidance against the gradient of the joint density, and the flow in closed form."""

import mixtures
import numpy as np
import pytest
import torch
from laws import close
from members import BATCH, MEMBERS, NODES, READINGS, H, X, conditioned

from grcd.diffusion import solvers
from grcd.diffusion.parameterisation import Prediction
from grcd.references.guidance import cleaned, guided
from grcd.references.observations import Observations

KINDS = {name: MEMBERS[name] for name in ("full", "low rank", "mixture")}
cases = pytest.mark.parametrize("readings", READINGS.values(), ids=READINGS)
kinds = pytest.mark.parametrize("member", KINDS.values(), ids=KINDS)


def nothing(x, q):
    """What a network adds that adds nothing."""
    return torch.zeros_like(x)


@pytest.mark.parametrize("q", [0.04, 0.5, 2.0, 30.0])
@cases
@kinds
def test_without_a_residual_guidance_is_the_score_of_the_reference_given_the_observations(member, readings, q):
    """The gradient of log p(x~, y) by automatic differentiation of the joint density, written out densely."""
    truth, x = member.truth, (X + q * mixtures.normal(BATCH, NODES, seed=7)).requires_grad_()
    total = 0.0
    for b in range(BATCH):
        kept = readings.seen[b]
        A = (torch.eye(NODES).double() if readings.H is None else readings.H)[kept]
        R = torch.diag((torch.zeros(len(kept)).double() if readings.noise is None else readings.noise)[kept])
        joint = []
        for w, m, C in zip(truth.w, truth.m, truth.C, strict=True):
            both = torch.cat(
                [torch.cat([C + q**2 * torch.eye(NODES).double(), C @ A.T], 1), torch.cat([A @ C, A @ C @ A.T + R], 1)]
            )
            off = torch.cat([x[b] - m, readings.y[b, kept] - A @ m])
            joint.append(w.log() - (off @ torch.linalg.solve(both, off) + torch.linalg.slogdet(both)[1]) / 2)
        total = total + torch.stack(joint).logsumexp(0)
    (gradient,) = torch.autograd.grad(total, x)
    close(guided(nothing, member.reference, readings)(x.detach(), q), -q * gradient, 1e-7)


@kinds
def test_exact_observations_hold_of_every_prediction_whatever_the_network_says(member):
    for readings in (READINGS["entries"], Observations(X @ H.T, H)):
        for q in (0.04, 1.0):
            x = mixtures.normal(2 * BATCH, NODES, seed=8)  # two in a row for each signal
            D = x - q * guided(lambda x, q: torch.sin(3 * x), member.reference, readings)(x, q)
            predicted, observed = readings.of(D).view(BATCH, 2, -1), readings.y[:, None].expand(BATCH, 2, -1)
            kept = ~observed.isnan()
            close(predicted[kept], observed[kept], 1e-9)


@kinds
def test_nothing_observed_changes_nothing(member):
    unseen = Observations(torch.full((BATCH, NODES), torch.nan).double())
    predicted = member.reference.eps(X, 0.7) + torch.cos(X)
    close(guided(lambda x, q: torch.cos(x), member.reference, unseen)(X, 0.7), predicted)


@kinds
def test_signals_do_not_influence_each_other(member):
    readings = READINGS["noisy entries"]
    together = guided(lambda x, q: torch.cos(x), member.reference, readings)(X, 0.5)
    for b in range(BATCH):
        alone = Observations(readings.y[[b]], readings.H, readings.noise)
        close(guided(lambda x, q: torch.cos(x), member.reference, alone)(X[[b]], 0.5), together[[b]])


def exact_flow(truth, readings, x, q0, q1):
    """The probability flow given the observations of one Gaussian: linear, so a matrix root carries it."""
    carried = []
    for b in range(BATCH):
        _, (mean,), (C,), _ = conditioned(truth, readings, b)
        v, B = np.linalg.eigh(C)
        factor = np.sqrt((np.maximum(v, 0) + q1**2) / (np.maximum(v, 0) + q0**2))
        carried.append(mean + B @ (factor * (B.T @ (x[b].numpy() - mean))))
    return np.array(carried)


@cases
@pytest.mark.parametrize("solver", ["residual-2m", "dpm++2m", "heun"])
def test_guided_solvers_converge_to_the_flow_given_the_observations_at_second_order(solver, readings):
    reference, q0, q1 = MEMBERS["full"].reference, 2.0, 0.04
    x = X + q0 * mixtures.normal(BATCH, NODES, seed=9)
    expected, errors = exact_flow(MEMBERS["full"].truth, readings, x, q0, q1), []
    row = solvers.find(solver)
    for steps in (32, 64, 128):
        grid = (np.linspace(q0 ** (1 / 3), q1 ** (1 / 3), steps + 1)) ** 3
        settings = {"reference": reference} if row.needs else {}
        end = row.function(Prediction(guided(nothing, reference, readings)), grid, x, **settings)
        errors.append(np.abs(end.numpy() - expected).max())
    assert errors[-1] < 1e-3
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (slopes > 1.7).all(), errors


@kinds
def test_the_last_step_is_the_posterior_given_the_noisy_state_too(member):
    """A state at level q is one more observation of every entry, with variance q^2; to six standard errors."""
    readings, q, n = READINGS["sums"], 0.8, 20_000
    state = X + q * mixtures.normal(BATCH, NODES, seed=3)
    drawn = cleaned(
        member.reference,
        readings,
        state[:, None].expand(BATCH, n, NODES),
        q,
        lambda purpose, shape: mixtures.normal(*shape, seed=len(purpose)),
        torch.rand(BATCH, n, generator=torch.Generator().manual_seed(0), dtype=torch.float64),
    )
    noise = torch.cat([torch.full((NODES,), q**2).double(), readings.noise])
    both = Observations(torch.cat([state, readings.y], 1), torch.cat([torch.eye(NODES).double(), readings.H]), noise)
    exact = member.reference.condition(both)
    C = exact.covariance()
    scale = C.diagonal(dim1=1, dim2=2).clamp(min=1e-12)
    assert ((drawn.mean(1) - exact.mean).abs() < 6 * (scale / n).sqrt()).all()
    off = drawn - drawn.mean(1, keepdim=True)
    error = 6 * (4 * scale[:, :, None] * scale[:, None] / n).sqrt()  # a mixture's tails are heavier than a Gaussian's
    assert ((off.mT @ off / n - C).abs() < error).all()
    there = ~readings.y[:, 0].isnan()  # the first row is exact
    close((drawn @ readings.H[0])[there], readings.y[there, :1].expand(-1, n), 1e-9)
