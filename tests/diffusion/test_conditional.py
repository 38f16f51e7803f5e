"""The conditional model of windows, against vector autoregressions whose posterior is known."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples

import grcd
from grcd.core.streams import Stream
from grcd.diffusion import conditional as module
from grcd.diffusion.conditional import FEATURES, LEVELS, Conditional, features
from grcd.graphs.space import SignalSpace
from grcd.networks.spacetime import SpaceTimeNet
from grcd.references.stationary import Shrinkage, Stationary

STEPS, NODES, D = 4, 3, 12
SPACE = SignalSpace(grcd.Graph.from_adjacency(np.ones((NODES, NODES)) - np.eye(NODES)), STEPS)
WINDOWS = 5


def autoregression() -> Stationary:
    """Of ``z_(t+1) = A z_t + noise``: lag covariances ``A^l C_0`` with ``C_0 = A C_0 A' + I``."""
    A = torch.randn(NODES, NODES, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    powers = [torch.linalg.matrix_power(0.8 * A / torch.linalg.matrix_norm(A, 2), k) for k in range(150)]
    C0 = sum(power @ power.T for power in powers)
    return Stationary.of(torch.stack([power @ C0 for power in powers[:STEPS]]), Shrinkage(0.0, 0.0, 0.0, 0.0))


REFERENCE = autoregression()


def windows(dtype=torch.float64):
    """Windows with more and more observed, from nothing to everything, NaN elsewhere; and a calendar."""
    g = torch.Generator().manual_seed(0)
    observed = torch.rand(WINDOWS, D, generator=g) < torch.linspace(0, 1, WINDOWS)[:, None]
    observed[-1] = True
    z = torch.where(observed, torch.randn(WINDOWS, D, generator=g, dtype=dtype), torch.nan)
    return z, observed, torch.randn(WINDOWS, STEPS, 2, generator=g)


def network(trained: bool = False) -> SpaceTimeNet:
    """As it is before training, or with any answer."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = SpaceTimeNet(
            STEPS,
            torch.ones(NODES, NODES),
            torch.arange(NODES),
            torch.zeros(NODES, dtype=torch.long),
            FEATURES,
            2,
            8,
            2,
            2,
        )
        if trained:
            torch.nn.init.normal_(net.output.weight)
    return net


def keyed(first=0, draws=None):
    """Noise of windows from number ``first`` on; ``draws`` are the numbers of the draws."""

    def noise(purpose, shape):
        chosen = range(shape[1]) if draws is None else draws
        whole = Stream(0, purpose).normal(range(first, first + shape[0]), (max(chosen) + 1) * D)
        return whole.unflatten(1, (-1, D))[:, list(chosen)]

    return noise


def affine(conditional, nfe):
    """Draws that are affine in their noise: mean and variance (windows, d) each."""
    z, observed, calendar = windows()
    return responses(lambda noise: conditional.draw(z, observed, calendar, D + 1, nfe, noise))


def responses(drawn):
    """Of what ``drawn`` makes (windows, D + 1, d) of noise, by one unit of noise at a time: mean and variance."""
    purposes, unit = [], torch.cat([torch.zeros(1, D), torch.eye(D)]).double().expand(WINDOWS, -1, -1)

    def none(purpose, shape):
        purposes.append(purpose)
        return torch.zeros(shape, dtype=torch.float64)

    mean = drawn(none)[:, 0]
    assert len(set(purposes)) == len(purposes)
    variance = torch.zeros_like(mean)
    for impulse in list(purposes):
        x = drawn(lambda purpose, shape, impulse=impulse: unit if purpose == impulse else torch.zeros(shape).double())
        variance += (x - mean[:, None]).square().sum(1)
    return mean, variance


@given(levels=st.lists(st.floats(0.01, 50), min_size=1, max_size=6, unique=True))
@examples(20)
def test_a_fresh_network_gives_the_exact_marginals_at_any_levels(levels):
    levels = {len(levels): tuple(sorted(levels, reverse=True))}
    mean, variance = affine(Conditional(SPACE, REFERENCE, network(), levels), max(levels))
    posterior = REFERENCE.posterior(*windows()[:2])
    close(mean, posterior.mean, 1e-5)
    close(variance, posterior.sd.square(), 1e-4)


class Gaussian(torch.nn.Module):
    """The network that knows that ``u`` is ``N(shift, variance)``."""

    shift, variance = 0.7, 0.4
    input = SimpleNamespace(out_features=1)

    def forward(self, u, q, features, calendar):
        q = q[:, None, None].double()
        mean = (self.variance * u + self.shift * q**2) / (self.variance + q**2)
        variance = self.variance * q**2 / (self.variance + q**2)
        raw = (mean - u / (1 + q**2)) * (1 + q**2).sqrt() / q
        return raw.float(), (variance * (1 + q**2) / q**2).log().expand_as(raw).float()


@pytest.mark.parametrize("levels", [(300.0,), (300.0, 1.0), (300.0, 20.0, 3.0, 0.5, 0.1)])
def test_a_network_that_knows_better_is_followed_to_its_own_law(levels):
    mean, variance = affine(Conditional(SPACE, REFERENCE, Gaussian(), {len(levels): levels}), 9)
    posterior = REFERENCE.posterior(*windows()[:2])
    close(mean, posterior.mean + 0.7 * posterior.sd, 1e-3)
    close(variance, 0.4 * posterior.sd.square(), 1e-3)


def test_the_reference_alone_gives_the_whole_covariance_of_the_posterior():
    z, observed, calendar = windows()
    unit = torch.cat([torch.zeros(1, D), torch.eye(D)]).double().expand(WINDOWS, -1, -1)
    images = Conditional(SPACE, REFERENCE).draw(z, observed, calendar, D + 1, 1, lambda purpose, shape: unit)
    S = REFERENCE.Sigma
    for x, o, seen in zip(images, observed, z, strict=True):
        gain = S[~o][:, o] @ torch.linalg.inv(S[o][:, o])
        spread = (x[1:] - x[0])[:, ~o]
        close(x[0, ~o], gain @ seen[o], 1e-9, size=S)
        close(spread.T @ spread, S[~o][:, ~o] - gain @ S[o][:, ~o], 1e-9, size=S)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("net", [None, network(trained=True)])
def test_draws_are_finite_at_every_budget_and_what_is_observed_stays_to_the_bit(dtype, net):
    z, observed, calendar = windows(dtype)
    for nfe in (1, 2, 3, 4, 5, 8, 20):
        x = Conditional(SPACE, REFERENCE, net).draw(z, observed, calendar, 3, nfe, keyed())
        assert x.dtype == dtype
        assert x.isfinite().all()
        assert torch.equal(x[observed[:, None].expand_as(x)], z[:, None].expand_as(x)[observed[:, None].expand_as(x)])
        assert (x[:, 0] != x[:, 1])[~observed].all()


@pytest.mark.parametrize("net", [None, network(trained=True)])
def test_draws_are_the_same_in_chunks_of_any_size(monkeypatch, net):
    z, observed, calendar = windows()
    conditional = Conditional(SPACE, REFERENCE, net)
    whole = conditional.draw(z, observed, calendar, 4, 4, keyed())
    for first, last in ((0, 2), (2, 5), (4, 5)):
        part = slice(first, last)
        some = conditional.draw(z[part], observed[part], calendar[part], 4, 4, keyed(first))
        close(some, whole[part], 1e-5)
    close(conditional.draw(z, observed, calendar, 2, 4, keyed(draws=(1, 3))), whole[:, [1, 3]], 1e-5)
    for entries in (1, 3 * D * 8, 7 * D * 8):
        monkeypatch.setitem(module.ENTRIES, "cpu", entries)
        close(conditional.draw(z, observed, calendar, 4, 4, keyed()), whole, 1e-5)


def test_a_budget_between_takes_the_largest_below():
    net, (z, observed, calendar) = network(trained=True), windows()
    conditional = Conditional(SPACE, REFERENCE, net)
    for nfe, count in ((3, 2), (5, 4), (1000, 8)):
        x = conditional.draw(z, observed, calendar, 1, nfe, keyed())
        assert torch.equal(x, conditional.draw(z, observed, calendar, 1, count, keyed()))
        alone = replace(conditional, levels={count: LEVELS[count]})
        assert torch.equal(x, alone.draw(z, observed, calendar, 1, nfe, keyed()))
        with pytest.raises(grcd.InputError, match=f"at least {count}"):
            alone.draw(z, observed, calendar, 1, count - 1, keyed())
    for wrong in (0, 1.5, -1):
        with pytest.raises(grcd.InputError, match="nfe"):
            conditional.draw(z, observed, calendar, 1, wrong, keyed())


def test_the_network_is_not_told_what_is_not_observed():
    """Readings that may not be seen can be anything."""
    z, observed, calendar = windows()
    for net in (None, network(trained=True)):
        conditional = Conditional(SPACE, REFERENCE, net)
        x = conditional.draw(z, observed, calendar, 2, 2, keyed())
        assert torch.equal(conditional.draw(torch.where(observed, z, 1e3), observed, calendar, 2, 2, keyed()), x)


def test_features_tell_hidden_observed_and_unrecorded_apart():
    mean, sd = torch.tensor([0.5, -1.0, 2.0]), torch.tensor([0.0, 0.3, 0.6])
    told = features(mean, sd, torch.tensor([False, True, False]))
    assert told[:, :2].T.tolist() == torch.stack([mean, sd]).tolist()
    assert told[:, 2:].tolist() == [[0, 1, 0.5], [1, 0, 0], [0, 0, 0]]
    assert told.shape == (3, FEATURES)


# -- variations ------------------------------------------------------------------------------------------------------


def shares(conditional, strength, nfe, law):
    """Of variations of readings that ``law`` (mean, sd) describes: what they are about, and their variance."""
    z, observed, calendar = windows()
    mean, sd = law

    def varied(x, noise):
        return conditional.vary(z, observed, calendar, x, strength, D + 1, nfe, noise)

    about, variance = responses(lambda noise: varied(mean, noise))
    moved = varied(mean + sd, lambda purpose, shape: torch.zeros(shape, dtype=torch.float64))[:, 0] - about
    return about, variance + moved.square()


@pytest.mark.parametrize("net", [None, network(trained=True)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_variations_are_the_readings_at_no_strength_and_draws_at_full_strength(net, dtype):
    (z, observed, calendar), conditional = windows(dtype), Conditional(SPACE, REFERENCE, net)
    x = torch.randn(WINDOWS, D, generator=torch.Generator().manual_seed(5), dtype=dtype)
    for nfe in (1, 4):
        same = conditional.vary(z, observed, calendar, x, 0, 3, nfe, keyed())
        assert torch.equal(same, torch.where(observed, z, x)[:, None].expand(-1, 3, -1))
        new = conditional.vary(z, observed, calendar, x, 1, 3, nfe, keyed())
        close(new, conditional.draw(z, observed, calendar, 3, nfe, keyed()), 1e-6)
        some = [conditional.vary(z, observed, calendar, x, s, 3, nfe, keyed()) for s in (0.05, 0.5, 0.95)]
        away = [float((each - same).square().mean()) for each in some]
        assert 0 < away[0] < away[1] < away[2]
        assert all(torch.equal(each[:, 0][observed], z[observed]) for each in some)
    for wrong in (-0.1, 1.1, float("nan")):
        with pytest.raises(grcd.InputError, match="strength"):
            conditional.vary(z, observed, calendar, x, wrong, 3, 4, keyed())
    with pytest.raises(grcd.InputError, match="nfe"):
        conditional.vary(z, observed, calendar, x, 0, 3, 0, keyed())


@pytest.mark.parametrize("strength", [0.1, 0.6, 0.95])
def test_without_a_network_variations_of_draws_have_the_whole_covariance_of_the_posterior(strength):
    z, observed, calendar = windows()
    conditional = Conditional(SPACE, REFERENCE)
    unit = torch.cat([torch.zeros(1, D), torch.eye(D)]).double().expand(WINDOWS, -1, -1)

    def varied(x):
        return conditional.vary(z, observed, calendar, x, strength, D + 1, 1, lambda purpose, shape: unit)

    draws = conditional.draw(z, observed, calendar, D + 1, 1, lambda purpose, shape: unit)
    mean = draws[:, 0]
    images = [varied(draws[:, k]) for k in range(D + 1)]
    close(images[0][:, 0], mean, 1e-9)
    moved = torch.stack([image[:, 0] - mean for image in images[1:]], dim=1)  # by the readings
    fresh = images[0][:, 1:] - mean[:, None]  # by the noise
    P = (draws[:, 1:] - mean[:, None]).mT @ (draws[:, 1:] - mean[:, None])
    close(moved.mT @ moved + fresh.mT @ fresh, P, 1e-9)


@pytest.mark.parametrize("strength", [0.05, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("nfe", [1, 4])
def test_variations_by_a_fresh_network_leave_the_marginals_as_they_were(strength, nfe):
    posterior = REFERENCE.posterior(*windows()[:2])
    law = posterior.mean, posterior.sd
    mean, variance = shares(Conditional(SPACE, REFERENCE, network()), strength, nfe, law)
    close(mean, law[0], 1e-5)
    close(variance, law[1].square(), 1e-4)


@pytest.mark.parametrize("strength", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("nfe", [1, 4])
def test_variations_by_a_network_that_knows_better_leave_its_law_as_it_was(strength, nfe):
    posterior = REFERENCE.posterior(*windows()[:2])
    law = posterior.mean + 0.7 * posterior.sd, 0.4**0.5 * posterior.sd
    mean, variance = shares(Conditional(SPACE, REFERENCE, Gaussian()), strength, nfe, law)
    close(mean, law[0], 1e-4)
    close(variance, law[1].square(), 1e-4)
