"""Signals given some of their entries, by all ways there are: three matrices, products alone, conjugate gradients."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples

from grcd.graphs.kronecker import dense
from grcd.references import conditioning, probes
from grcd.references.conditioning import ByProducts, Dense
from grcd.references.gaussian import Gaussian
from grcd.references.lags import Shrinkage
from grcd.references.mixture import Mixture
from grcd.references.separable import Separable

STEPS, NODES, CHANNELS = 4, 3, 2
D = STEPS * NODES * CHANNELS


def separable(seed=0, noise=0.1):
    """An autoregression of coefficient .8 with random covariances in space and between channels."""
    g = torch.Generator().manual_seed(seed)
    A, B = (torch.randn(n, n, generator=g, dtype=torch.float64) for n in (NODES, CHANNELS))
    C0 = torch.kron(A @ A.T, B @ B.T)
    return Separable.of(C0, 0.8 ** torch.arange(STEPS).double(), Shrinkage(0, 1, 0, noise), CHANNELS), C0


def problem(seed, windows=5, draws=3):
    """Windows, masks from nothing to everything, and noise."""
    g = torch.Generator().manual_seed(seed)
    z = torch.randn(windows, D, generator=g, dtype=torch.float64)
    observed = torch.rand(windows, D, generator=g) < torch.linspace(0, 1, windows)[:, None]
    return z, observed, torch.randn(windows, draws, D, generator=g, dtype=torch.float64)


def naive(Sigma, z, o):
    """Mean and covariance of one window given what is observed, and the log-density of that."""
    gain = Sigma[:, o] @ torch.linalg.inv(Sigma[o][:, o])
    log_prob = torch.distributions.MultivariateNormal(torch.zeros(int(o.sum())).double(), Sigma[o][:, o])
    return gain @ z[o], Sigma - gain @ Sigma[o], log_prob.log_prob(z[o]) if o.any() else torch.zeros(()).double()


def test_a_separable_covariance_is_the_product_of_its_factors_and_noise():
    reference, C0 = separable()
    steps = torch.arange(STEPS)
    time = 0.8 ** (steps[:, None] - steps).abs().double()
    close(reference.covariance(), torch.kron(time, C0) + 0.1 * torch.eye(D, dtype=torch.float64), 1e-12)


@pytest.mark.parametrize("crossover", [0.0, 1.1])  # by what is hidden, by what is observed
@given(seed=st.integers(0, 10**6))
@examples(10)
def test_products_alone_say_what_the_matrices_say(crossover, seed):
    reference, _ = separable(seed)
    z, observed, xi = problem(seed)
    Sigma = reference.covariance()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conditioning, "CROSSOVER", crossover)
        posterior = ByProducts(reference, D).posterior(z, observed, xi)
        units = torch.cat([torch.zeros(1, D), torch.eye(D)]).double()[None]
        images = ByProducts(reference, D).posterior(z[2:3], observed[2:3], units).draws[0]
    for row, o in enumerate(observed):
        mean, P, log_prob = naive(Sigma, z[row], o)
        close(posterior.mean[row][~o], mean[~o], 1e-8, size=z)
        close(posterior.sd[row].square(), P.diagonal(), 1e-8, size=Sigma)
        close(posterior.log_prob[row], log_prob, 1e-8, size=D)
        assert torch.equal(posterior.draws[row][:, o], z[row][o].expand(3, -1))
    spread = images[1:] - images[0]
    close(spread.T @ spread, naive(Sigma, z[2], observed[2])[1], 1e-8, size=Sigma)


def test_the_way_is_chosen_by_memory(monkeypatch):
    reference, _ = separable()
    assert isinstance(reference.conditioning, Dense)
    monkeypatch.setattr(conditioning.devices, "room", lambda device: 8 * D**2)
    assert isinstance(separable()[0].conditioning, ByProducts)
    asked = list[int]()
    monkeypatch.setattr(probes, "posterior", lambda part, z, *rest: asked.append(len(z)) or (z, z, None, z[:, 0]))
    z, observed, _ = problem(0)
    ByProducts(reference, D).posterior(z, observed)
    assert asked == [5]
    ByProducts(reference, D).posterior(z, torch.ones_like(observed))  # nothing is hidden: there is nothing to factor
    assert asked == [5]


def test_conjugate_gradients_are_exact_and_probes_estimate_spread_and_likelihood(monkeypatch):
    monkeypatch.setattr(probes, "PROBES", 4000)
    monkeypatch.setattr(probes, "STARTS", 400)
    reference, _ = separable()
    z, observed, xi = problem(1)
    exact = Dense(*(reference.conditioning.matrices)).posterior(z, observed)
    mean, sd, draws, log_prob = probes.posterior(reference, z, observed, xi)
    close(mean, exact.mean, 1e-5, size=z)
    close(sd, exact.sd, 4 / 8000**0.5)
    close(log_prob, exact.log_prob, 0.01)
    whole = reference.draw(xi)
    for row, o in enumerate(observed):
        gain = naive(reference.covariance(), z[row], o)[0]
        moved = [draw + naive(reference.covariance(), z[row] - draw, o)[0] for draw in whole[row]]
        close(draws[row], torch.stack(moved), 1e-5, size=gain.abs().max() + whole)


def test_a_mixture_of_operators_is_the_mixture_of_their_matrices():
    """Separable components against Gaussians with the same covariances, means included."""
    parts = [separable(seed)[0] for seed in (0, 1)]
    weights, (z, observed, xi) = torch.tensor([0.3, 0.7]).double(), problem(3)
    means = torch.randn(2, D, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    by_matrices = [Gaussian(part.v, dense(part.B)) for part in parts]
    one, other = (Mixture(weights, means, tuple(each)).posterior(z, observed, xi) for each in (parts, by_matrices))
    for name in ("mean", "sd", "draws", "log_prob"):
        close(getattr(one, name), getattr(other, name), 1e-9)
