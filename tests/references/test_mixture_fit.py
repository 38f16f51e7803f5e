"""Fitting mixtures: the fixed point in closed form, how many components, and many nodes."""

import math

import mixtures
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples
from members import NODES
from sklearn.cluster import KMeans
from sklearn.covariance import ledoit_wolf

from grcd.references import mixture_fit
from grcd.references.gaussian import full
from grcd.references.mixture import Mixture

DENSE = mixtures.random_mixture(NODES)
THREE = Mixture(DENSE.w, DENSE.m, tuple(full(C.numpy()) for C in DENSE.C))
X = 2 * mixtures.normal(6, NODES, seed=1)
law = examples(25)


def clusters(rows, nodes=4, apart=30.0, share=0.3, seed=0):
    """Two Gaussians, unlike in every respect; the first ``share`` of the rows are the first one's."""
    random = np.random.default_rng(seed)
    first = random.standard_normal((round(share * rows), nodes)) @ random.standard_normal((nodes, nodes))
    second = random.standard_normal((rows - len(first), nodes)) @ random.standard_normal((nodes, nodes)) + apart
    return torch.from_numpy(np.concatenate([first, second])), len(first)


def naive_maximised(z, responsible):
    """The docstring's formulas, a signal at a time."""
    (n, nodes), count = z.shape, responsible.sum(0)
    means = [sum(r * x for r, x in zip(column, z, strict=True)) / column.sum() for column in responsible.T]
    own = [
        sum(r * np.outer(x - m, x - m) for r, x in zip(column, z, strict=True)) / column.sum()
        for column, m in zip(responsible.T, means, strict=True)
    ]
    shared = naive_shared(z, responsible, means)
    mixed = [(c * S + nodes * shared) / (c + nodes) for c, S in zip(count, own, strict=True)]
    return count / n, np.array(means), np.array(mixed) + 1e-6 * np.eye(nodes)


def naive_shared(z, responsible, means):
    """Ledoit and Wolf's estimate from signals about the means of their components, each counted as it belongs there."""
    n, nodes = z.shape
    off = [(r, x - m) for row, x in zip(responsible, z, strict=True) for r, m in zip(row, means, strict=True)]
    S = sum(r * np.outer(x, x) for r, x in off) / n
    target = np.trace(S) / nodes * np.eye(nodes)
    scatter = sum(r * ((np.outer(x, x) - S) ** 2).sum() for r, x in off) / n  # of single signals about their mean
    b = min(1.0, scatter / n / ((S - target) ** 2).sum())
    return (1 - b) * S + b * target


def same(mixture, expected, rtol=1e-9):
    """A mixture, and (weights, means, covariances), in whichever order."""
    order = np.argsort(mixture.means[:, 0].numpy())
    expected = [np.asarray(part)[np.argsort(expected[1][:, 0])] for part in expected]
    close(mixture.weights[order], expected[0], rtol=rtol)
    close(mixture.means[order], expected[1], rtol=rtol)
    close(np.array([mixture.parts[k].covariance() for k in order]), expected[2], rtol=rtol)


@law
@given(rows=st.integers(2, 30), components=st.integers(1, 4), seed=st.integers(0, 2**32 - 1))
def test_the_m_step_is_its_formula(rows, components, seed):
    random = np.random.default_rng(seed)
    z, responsible = random.standard_normal((rows, 3)), random.dirichlet(np.ones(components), rows)
    mixture = mixture_fit.maximised(torch.from_numpy(z), torch.from_numpy(responsible))
    same(mixture, naive_maximised(z, responsible))


@pytest.mark.parametrize("warm_up", [40, 5000])
@pytest.mark.parametrize("chunk", [1, 1 << 22])
def test_two_gaussians_far_apart_are_found_to_rounding(warm_up, chunk, monkeypatch):
    """Every signal belongs to one of them, so the fixed point is known in closed form."""
    monkeypatch.setattr(mixture_fit, "WARM_UP", warm_up)  # on a part first; from there on all
    monkeypatch.setattr(mixture_fit, "CHUNK", chunk)
    z, first = clusters(400)
    belongs = np.repeat(np.eye(2), [first, 400 - first], axis=0)
    same(mixture_fit.fit(z, 2), naive_maximised(z.numpy(), belongs))


def test_the_parameters_of_two_overlapping_gaussians_are_recovered():
    """To five standard errors of groups that are known; here they are not, and overlap by a few percent."""
    z, first = clusters(20_000, nodes=3, apart=2.5)
    mixture, labels = mixture_fit.fit(z, 2), (slice(None, first), slice(first, None))
    order = np.argsort(mixture.means[:, 0].numpy())
    for k, rows in zip(order, labels, strict=True):
        group = z[rows].numpy()
        error = 5 * group.std(0) / math.sqrt(len(group))
        assert (np.abs(mixture.means[k].numpy() - group.mean(0)) < error).all()
        assert abs(float(mixture.weights[k]) - len(group) / len(z)) < 5 * math.sqrt(0.3 * 0.7 / len(z))
        scale = np.sqrt(np.outer(*2 * [np.diag(np.cov(group.T))]))
        assert (np.abs(mixture.parts[k].covariance().numpy() - np.cov(group.T)) < 5 * math.sqrt(2 / 6000) * scale).all()


@pytest.mark.parametrize("apart", [0.5, 1.5, 3.0])
def test_the_likelihood_rises_from_iteration_to_iteration_and_never_falls_noticeably(apart):
    """Mixing covariances is not what maximises it, so that near the end it may lose what does not count as a gain."""
    z, _ = clusters(600, apart=apart)
    labels = KMeans(3, n_init=1, random_state=1).fit_predict(z.numpy())
    mixture = mixture_fit.maximised(z, torch.nn.functional.one_hot(torch.from_numpy(labels).long(), 3).double())
    likelihoods = []
    for _ in range(15):
        likelihoods.append(mixture_fit.mean_log_prob(mixture, z))
        mixture = mixture_fit.maximised(z, mixture.components(z, 0.0)[0].softmax(-1))
    gains = np.diff(likelihoods)
    assert gains.sum() > 10 * mixture_fit.GAIN  # there was something to gain
    assert (gains > -mixture_fit.GAIN).all()
    assert (np.diff(gains > 0.0).sum() <= 1) and gains[0] > 0  # noqa: PT018  rises, then at most fades


@pytest.mark.parametrize("alone", [0, 1, 2])
def test_a_component_of_few_signals_or_none_is_as_wide_as_the_shared_covariance_almost(alone):
    z = mixtures.normal(50, NODES)
    belongs = torch.nn.functional.one_hot((torch.arange(50) < alone).long(), 2).double()
    mixture = mixture_fit.maximised(z, belongs)
    shared = torch.from_numpy(naive_shared(z.numpy(), belongs.numpy(), mixture.means.numpy()))
    few = mixture.parts[1].covariance()
    assert float(torch.linalg.eigvalsh(few - NODES / (NODES + alone) * shared)[0]) > 0
    assert torch.isfinite(mixture.log_prob(z)).all()
    if alone < 2:  # one signal has no spread of its own
        close(few, NODES / (NODES + alone) * shared + 1e-6 * torch.eye(NODES), rtol=1e-9)


@pytest.mark.parametrize("rows", [3, 40, 4000])
def test_one_component_is_the_covariance_of_all_signals_shrunk_the_more_the_fewer_they_are(rows):
    z = mixtures.normal(rows, NODES) @ mixtures.normal(NODES, NODES, seed=5) + 3.0
    one, S = mixture_fit.fit(z, 1), np.cov(z.T, bias=True)
    shrunk = ledoit_wolf(z.numpy())[0]  # scikit-learn's, about the mean
    close(one.parts[0].covariance(), (rows * S + NODES * shrunk) / (rows + NODES) + 1e-6 * np.eye(NODES), rtol=1e-9)
    close(one.means[0], z.mean(0))
    assert torch.equal(one.weights, torch.ones(1).double())


def test_fewer_signals_than_nodes_leave_no_direction_without_a_variance():
    """Twenty signals on 300 nodes: the covariance has rank 19."""
    z = mixtures.normal(20, 300)
    assert float(mixture_fit.fit(z, 1).parts[0].v.min()) > 0.1


@pytest.mark.parametrize("components", [1, 2])
def test_signals_in_single_precision_are_fitted_in_double(components):
    z = clusters(100)[0].float()
    single, double = mixture_fit.fit(z, components), mixture_fit.fit(z.double(), components)
    for one, other in zip(state(single), state(double), strict=True):
        assert one.dtype == torch.float64
        assert torch.equal(one, other)
    assert mixture_fit.mean_log_prob(single, z) == mixture_fit.mean_log_prob(single, z.double())


def state(mixture):
    return [mixture.weights, mixture.means, *(t for part in mixture.parts for t in (part.v, part.B))]


@pytest.mark.parametrize("rows", [2, 7, 8, 20])
def test_of_few_signals_a_mixture_is_made_that_has_a_density_everywhere(rows):
    z, other = mixtures.normal(rows, 7), mixtures.normal(10, 7, seed=1)
    for mixture in (mixture_fit.select(z, other), *(mixture_fit.fit(z, k) for k in (1, 2) if k <= rows)):
        assert torch.isfinite(mixture.log_prob(100 * other)).all()
        assert all((part.v > 0).all() for part in mixture.parts)


@pytest.mark.parametrize("chunk", [1, 50, 1 << 22])
def test_the_mean_likelihood_is_taken_over_all_signals(chunk, monkeypatch):
    monkeypatch.setattr(mixture_fit, "CHUNK", chunk)
    close(mixture_fit.mean_log_prob(THREE, X), DENSE.log_density(X, 0.0).mean(), rtol=1e-10)


# -- how many components -----------------------------------------------------------------------------------------------


@pytest.fixture
def tried(monkeypatch):
    """The numbers of components of the mixtures that were fitted, in order."""
    counts, fit = [], mixture_fit.fit
    monkeypatch.setattr(mixture_fit, "fit", lambda z, count: (counts.append(count), fit(z, count))[1])
    return counts


@pytest.mark.parametrize(("count", "apart"), [(1, 0.0), (2, 6.0)])
def test_validation_signals_choose_how_many_components(count, apart):
    random = np.random.default_rng(0)
    mix = random.standard_normal((NODES, NODES))

    def signals(rows):
        side = apart * (random.random((rows, 1)) < 0.4)
        return torch.from_numpy(random.standard_normal((rows, NODES)) @ mix + side)

    train, val = signals(1000), signals(500)
    mixture = mixture_fit.select(train, val)
    assert len(mixture.parts) == count
    for other in (mixture_fit.select(train, val), mixture_fit.fit(train, count)):  # and nothing else about them
        for one, another in zip(state(mixture), state(other), strict=True):
            assert torch.equal(one, another)


@pytest.mark.parametrize(
    ("likelihoods", "counts", "chosen"),
    [
        ([0.0, 0.1, 9.0], [1, 2], 1),  # nats a signal: a tenth is not noticeable,
        ([0.0, 0.11, 0.2, 9.0], [1, 2, 3], 2),  # more is
        ([0.0, 0.11, 0.22, 0.33, 0.5], [1, 2, 3, 4, 6], 4),  # 0.085 for each of two
        ([0.0, 5.0, 5.4], [1, 2, 3], 2),  # and less than a tenth of what the second brought
        ([0.0, 5.0, 5.6, 6.2, 7.1], [1, 2, 3, 4, 6], 4),
        ([0.0, 5.0, 5.6, 6.2, 7.3, 8.4], [1, 2, 3, 4, 6, 8], 8),
        ([-3.0, -4.0, 9.0], [1, 2], 1),
    ],
)
def test_each_component_has_to_bring_a_share_of_what_the_second_one_brought(
    monkeypatch, tried, likelihoods, counts, chosen
):
    train, val, left = clusters(100)[0], X[:, :4], iter(likelihoods)

    def mean_log_prob(mixture, z):
        assert z is val
        return next(left)

    monkeypatch.setattr(mixture_fit, "mean_log_prob", mean_log_prob)
    assert len(mixture_fit.select(train, val).parts) == chosen
    assert tried == counts


@pytest.mark.parametrize(("rows", "most"), [(2, 1), (7, 1), (8, 2), (11, 2), (12, 3), (31, 6), (32, 8), (100, 8)])
def test_there_are_at_most_a_quarter_as_many_components_as_signals(monkeypatch, tried, rows, most):
    monkeypatch.setattr(mixture_fit, "mean_log_prob", lambda mixture, z: float(len(mixture.parts)))  # more is better
    assert len(mixture_fit.select(clusters(rows)[0], X[:, :4]).parts) == most
    assert max(tried) == most


# -- one iteration -----------------------------------------------------------------------------------------------------


def test_an_iteration_that_makes_it_worse_is_taken_back(monkeypatch):
    z = torch.from_numpy(np.random.default_rng(5).standard_normal((60, NODES)))
    halves = torch.nn.functional.one_hot(torch.arange(60) % 2, 2).double()
    good = mixture_fit.maximised(z, halves)
    bad = Mixture(good.weights, good.means + 100, good.parts)
    monkeypatch.setattr(mixture_fit, "maximised", lambda z, responsible: bad)
    assert mixture_fit._improved(good, z, 5) is good
