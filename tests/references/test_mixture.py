"""Mixtures as references: with one component a Gaussian, with several their formulas written out; and the fitting."""

import math

import mixtures
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples
from scipy.integrate import solve_ivp
from scipy.stats import multivariate_normal, norm
from sklearn.cluster import KMeans
from sklearn.covariance import ledoit_wolf

from grcd.references import mixture
from grcd.references.gaussian import Gaussian, full, low_rank, spectral
from grcd.references.mixture import Mixture

NODES = 5
SPECTRUM = mixtures.random_graph(NODES).spectrum
DENSE = mixtures.random_mixture(NODES)  # its covariances are what the parts are fitted to
levels = st.floats(0.02, 40.0)
law = examples(25)
X = 2 * mixtures.normal(6, NODES, seed=1)
Q = torch.tensor([[0.0], [0.1], [0.5], [1.0], [2.0], [30.0]], dtype=torch.float64)
FORCING = list(mixtures.normal(3, 6, NODES, seed=4))


def covariance(k):
    return DENSE.C[k].numpy()


KINDS = {
    "spectral": spectral(covariance(0), SPECTRUM),
    "full": full(covariance(1)),
    "low-rank": low_rank(covariance(2), 2),
}
PARTS = tuple(KINDS.values())
THREE = Mixture(DENSE.w, DENSE.m, PARTS)
SIGMAS = [part.covariance().numpy() for part in PARTS]  # dense: each kind's own tests say that these are right
NAIVE = mixtures.Mixture(DENSE.w, DENSE.m, torch.from_numpy(np.array(SIGMAS)))
LINE = Mixture(  # on one node
    torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64),
    torch.tensor([[-1.5], [0.2], [2.0]], dtype=torch.float64),
    tuple(Gaussian(torch.tensor([v], dtype=torch.float64), torch.ones(1, 1).double()) for v in (0.09, 1.0, 0.25)),
)


def each(q=0.0):
    """(weight, mean, covariance) of every component at a level."""
    for w, m, sigma in zip(DENSE.w.numpy(), DENSE.m.numpy(), SIGMAS, strict=True):
        yield w, m, sigma + q**2 * np.eye(NODES)


def density(x, q=0.0):
    return sum(w * multivariate_normal(m, C).pdf(x) for w, m, C in each(q))


# -- one component -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", KINDS.values(), ids=KINDS)
@law
@given(q=levels, q1=levels)
def test_with_one_component_everything_is_the_gaussians_about_its_mean(part, q, q1):
    m = DENSE.m[0]
    one = Mixture(torch.ones(1).double(), m[None], (part,))
    close(one.log_prob(X, q), part.log_prob(X - m, q))
    close(one.score(X, q), part.score(X - m, q))
    close(one.eps(X, q), part.eps(X - m, q))
    for u in (None, torch.full((6,), 0.7).double()):
        close(one.draw(X, q, u), m + part.draw(X, q))
    close(one.propagate(X, q1, q), m + part.propagate(X - m, q1, q))
    close(one.carry(X, q1, q, FORCING, 3), m + part.carry(X - m, q1, q, FORCING))


# -- density and score -------------------------------------------------------------------------------------------------


@law
@given(q=st.just(0.0) | levels)
def test_the_marginal_is_the_mixture_with_inflated_covariances(q):
    close(THREE.log_prob(X, q), np.log(density(X.numpy(), q)), rtol=1e-10)
    close(THREE.scored(X, q)[0], THREE.log_prob(X, q))
    terms = np.array([w * multivariate_normal(m, C).pdf(X.numpy()) for w, m, C in each(q)]).T
    close(THREE.responsible(X, q), terms / terms.sum(1, keepdims=True), rtol=1e-9)


@law
@given(q=st.just(0.0) | levels)
def test_the_score_is_the_gradient_of_the_log_density(q):
    x = X.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(THREE.log_prob(x, q).sum(), x)
    close(THREE.score(X, q), gradient, rtol=1e-10)
    close(THREE.eps(X, q), -q * gradient, rtol=1e-10)
    close(THREE.eps(X, q), NAIVE.eps_hat(X, q), rtol=1e-10)


@law
@given(q=st.just(0.0) | levels)
def test_the_covariance_is_that_of_all_components_about_their_common_mean(q):
    close(THREE.covariance(q), NAIVE.covariance() + q**2 * np.eye(NODES))
    one = Mixture(torch.ones(1).double(), THREE.means[:1], PARTS[:1])
    close(one.covariance(q), SIGMAS[0] + q**2 * np.eye(NODES))  # a mean of its own adds nothing


def test_the_variances_are_those_of_all_parts_and_count_as_the_parts_weigh():
    v, counts = THREE.variances()
    expected = [(value, w) for w, _, C in each() for value in np.linalg.eigvalsh(C)]
    listed = sorted((value, count) for value, count in zip(v, counts, strict=True))
    # The low-rank part names the variance that three directions share once, and counts it three times.
    shared = [value for value, w in expected if w == float(DENSE.w[2])][:3]
    close(shared, shared[0])
    expected = [(value, w) for value, w in expected if value not in shared] + [(shared[0], 3 * float(DENSE.w[2]))]
    close(listed, sorted(expected))
    close(counts.sum(), NODES)


def test_far_from_all_components_the_nearest_one_decides():
    """Densities underflow there, their logarithms do not."""
    x = DENSE.m[:1] + 1e3
    energies = [part.log_prob(x - m) for m, part in zip(DENSE.m, PARTS, strict=True)]
    k = int(torch.stack(energies).argmax())
    close(THREE.log_prob(x), energies[k] + DENSE.w[k].log())
    close(THREE.score(x, 0.0), PARTS[k].score(x - DENSE.m[k], 0.0))


def test_a_level_for_every_signal_is_the_same_as_one_signal_at_a_time():
    u = torch.linspace(0, 0.99, 6).double()
    for function in (THREE.log_prob, THREE.score, THREE.eps, THREE.responsible):
        close(function(X, Q), torch.cat([function(X[[k]], float(Q[k])) for k in range(6)]))
    close(THREE.draw(X, Q, u), torch.cat([THREE.draw(X[[k]], float(Q[k]), u[[k]]) for k in range(6)]))


@law
@given(order=st.permutations(range(NODES)), q=levels)
def test_listing_the_nodes_in_another_order_lists_the_results_in_that_order(order, q):
    there = Mixture(THREE.weights, THREE.means[:, order], tuple(type(p)(p.v, p.B[order]) for p in PARTS))
    u = torch.linspace(0, 0.99, 6).double()
    x = X[:, order]
    close(there.log_prob(x, q), THREE.log_prob(X, q))
    close(there.score(x, q), THREE.score(X, q)[:, order])
    close(there.draw(x, q, u), THREE.draw(X, q, u)[:, order])
    close(there.propagate(x, 0.3, q), THREE.propagate(X, 0.3, q)[:, order], rtol=1e-10)


def test_another_device_gets_all_of_it():
    moved = THREE.to("meta")
    tensors = [moved.weights, moved.means, *(t for part in moved.parts for t in (part.v, part.B))]
    assert {t.device.type for t in tensors} == {"meta"}
    assert [type(part) for part in moved.parts] == [type(part) for part in PARTS]


# -- draws -------------------------------------------------------------------------------------------------------------

BELOW_ONE = 1 - 2.0**-53  # the largest number of Stream.uniform
UNIFORM = [0.0, math.nextafter(0.25, 0), 0.25, math.nextafter(0.75, 0), 0.75, BELOW_ONE]


@pytest.mark.parametrize("q", [0.0, 1.3])
def test_uniform_numbers_choose_the_component_and_noise_the_rest(q):
    quarters = Mixture(torch.tensor([0.25, 0.5, 0.25]).double(), THREE.means, PARTS)
    drawn = quarters.draw(X, q, torch.tensor(UNIFORM, dtype=torch.float64))
    for row, x, k in zip(drawn, X, (0, 0, 1, 1, 2, 2), strict=True):
        v, B = np.linalg.eigh(SIGMAS[k] + q**2 * np.eye(NODES))
        close(row, DENSE.m[k].numpy() + x.numpy() @ (B * np.sqrt(v)) @ B.T)


def test_weights_that_add_up_to_less_than_one_by_rounding_leave_no_number_without_a_component():
    tenths = torch.full((10,), 0.1, dtype=torch.float64)
    assert tenths.cumsum(0)[-1] <= BELOW_ONE  # the case at hand
    means = torch.arange(10).double()[:, None].expand(10, NODES)
    ten = Mixture(tenths, means, (PARTS[0],) * 10)
    close(
        ten.draw(torch.zeros(1, NODES).double(), 0.0, torch.tensor([BELOW_ONE], dtype=torch.float64)),
        np.full((1, NODES), 9.0),
    )


def test_several_components_cannot_be_drawn_without_uniform_numbers():
    with pytest.raises(ValueError, match="uniform"):
        THREE.draw(X)


@pytest.mark.parametrize("q", [0.0, 0.7])
def test_draws_have_the_mean_and_covariance_of_the_mixture(q):
    """To five standard errors, estimated from the draws themselves."""
    random, n = np.random.default_rng(0), 100_000
    noise, u = random.standard_normal((n, NODES)), random.random(n)
    x = THREE.draw(torch.from_numpy(noise), q, torch.from_numpy(u)).numpy()
    mean = sum(w * m for w, m, _ in each())
    second = sum(w * (C + np.outer(m, m)) for w, m, C in each(q))
    assert (np.abs(x.mean(0) - mean) < 5 * x.std(0) / math.sqrt(n)).all()
    products = x[:, :, None] * x[:, None, :]
    assert (np.abs(products.mean(0) - second) < 5 * products.std(0) / math.sqrt(n)).all()
    assert 5 * products.std(0).max() / math.sqrt(n) < 0.1 * np.abs(second).max()  # narrow enough to tell


# -- the flow ----------------------------------------------------------------------------------------------------------


def flow(x, q0, q1, forcing=()):
    """``dx/dq = eps + sum_j c_j (q - q0)^j``: eighth-order Runge-Kutta."""

    def velocity(q, flat):
        eps = NAIVE.eps_hat(torch.from_numpy(flat.reshape(x.shape)), float(q))
        return (eps + sum(c * (q - q0) ** j for j, c in enumerate(forcing))).numpy().ravel()

    end = solve_ivp(velocity, (q0, q1), x.numpy().ravel(), method="DOP853", rtol=1e-13, atol=1e-13)
    return torch.from_numpy(end.y[:, -1].reshape(x.shape))


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize(("q0", "q1"), [(2.0, 0.04), (0.3, 2.0)])
def test_the_flow_is_integrated_with_order_four_with_and_without_forcing(q0, q1, count):
    exact, steps = flow(X, q0, q1, FORCING[:count]), (16, 32, 64, 128)
    errors = [float((THREE.carry(X, q1, q0, FORCING[:count], n) - exact).norm()) for n in steps]
    assert min(errors) > 1e-11  # above the error of the oracle
    assert abs(-np.polyfit(np.log(steps), np.log(errors), 1)[0] - 4) < 0.2
    if not count:
        assert torch.equal(THREE.propagate(X, q1, q0, 16), THREE.carry(X, q1, q0, [], 16))


@examples(8)
@given(q0=st.floats(0.05, 3), q1=st.floats(0.05, 3))
def test_there_and_back_is_where_it_was(q0, q1):
    close(THREE.propagate(THREE.propagate(X, q1, q0, 200), q0, q1, 200), X, 2e-6)


@examples(8)
@given(q0=st.floats(0.1, 3), q1=st.floats(0.1, 3))
def test_on_one_node_the_flow_keeps_the_distribution_function(q0, q1):
    """There it is monotone and carries one law to the other, hence ``F_q1(x(q1)) = F_q0(x(q0))`` for every signal."""

    def distribution(x, q):
        terms = zip(LINE.weights.numpy(), LINE.means.numpy(), LINE.parts, strict=True)
        return sum(w * norm.cdf(x.numpy(), m, math.sqrt(float(p.v) + q**2)) for w, m, p in terms)

    x = LINE.draw(mixtures.normal(40, 1), q0, torch.linspace(0, 0.99, 40).double())
    close(distribution(LINE.propagate(x, q1, q0, 400), q1), distribution(x, q0), rtol=1e-8)


# -- fitting -----------------------------------------------------------------------------------------------------------


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


def same(found, expected, rtol=1e-9):
    """A mixture, and (weights, means, covariances), in whichever order."""
    order = np.argsort(found.means[:, 0].numpy())
    expected = [np.asarray(part)[np.argsort(expected[1][:, 0])] for part in expected]
    close(found.weights[order], expected[0], rtol=rtol)
    close(found.means[order], expected[1], rtol=rtol)
    close(np.array([found.parts[k].covariance() for k in order]), expected[2], rtol=rtol)


@law
@given(rows=st.integers(2, 30), components=st.integers(1, 4), seed=st.integers(0, 2**32 - 1))
def test_the_m_step_is_its_formula(rows, components, seed):
    random = np.random.default_rng(seed)
    z, responsible = random.standard_normal((rows, 3)), random.dirichlet(np.ones(components), rows)
    found = mixture.maximised(torch.from_numpy(z), torch.from_numpy(responsible))
    same(found, naive_maximised(z, responsible))


@pytest.mark.parametrize("warm_up", [40, 5000])
@pytest.mark.parametrize("chunk", [1, 1 << 22])
def test_two_gaussians_far_apart_are_found_to_rounding(warm_up, chunk, monkeypatch):
    """Every signal belongs to one of them, so the fixed point is known in closed form."""
    monkeypatch.setattr(mixture, "WARM_UP", warm_up)  # on a part first; from there on all
    monkeypatch.setattr(mixture, "CHUNK", chunk)
    z, first = clusters(400)
    belongs = np.repeat(np.eye(2), [first, 400 - first], axis=0)
    same(mixture.fit(z, 2), naive_maximised(z.numpy(), belongs))


def test_the_parameters_of_two_overlapping_gaussians_are_recovered():
    """To five standard errors of groups that are known; here they are not, and overlap by a few percent."""
    z, first = clusters(20_000, nodes=3, apart=2.5)
    found, labels = mixture.fit(z, 2), (slice(None, first), slice(first, None))
    order = np.argsort(found.means[:, 0].numpy())
    for k, rows in zip(order, labels, strict=True):
        group = z[rows].numpy()
        error = 5 * group.std(0) / math.sqrt(len(group))
        assert (np.abs(found.means[k].numpy() - group.mean(0)) < error).all()
        assert abs(float(found.weights[k]) - len(group) / len(z)) < 5 * math.sqrt(0.3 * 0.7 / len(z))
        scale = np.sqrt(np.outer(*2 * [np.diag(np.cov(group.T))]))
        assert (np.abs(found.parts[k].covariance().numpy() - np.cov(group.T)) < 5 * math.sqrt(2 / 6000) * scale).all()


@pytest.mark.parametrize("apart", [0.5, 1.5, 3.0])
def test_the_likelihood_rises_from_iteration_to_iteration_and_never_falls_noticeably(apart):
    """Mixing covariances is not what maximises it, so that near the end it may lose what does not count as a gain."""
    z, _ = clusters(600, apart=apart)
    labels = KMeans(3, n_init=1, random_state=1).fit_predict(z.numpy())
    found = mixture.maximised(z, torch.nn.functional.one_hot(torch.from_numpy(labels).long(), 3).double())
    likelihoods = []
    for _ in range(15):
        likelihoods.append(mixture.mean_log_prob(found, z))
        found = mixture.maximised(z, found.responsible(z))
    gains = np.diff(likelihoods)
    assert gains.sum() > 10 * mixture.GAIN  # there was something to gain
    assert (gains > -mixture.GAIN).all()
    assert (np.diff(gains > 0.0).sum() <= 1) and gains[0] > 0  # noqa: PT018  rises, then at most fades


@pytest.mark.parametrize("alone", [0, 1, 2])
def test_a_component_of_few_signals_or_none_is_as_wide_as_the_shared_covariance_almost(alone):
    z = mixtures.normal(50, NODES)
    belongs = torch.nn.functional.one_hot((torch.arange(50) < alone).long(), 2).double()
    found = mixture.maximised(z, belongs)
    shared = torch.from_numpy(naive_shared(z.numpy(), belongs.numpy(), found.means.numpy()))
    few = found.parts[1].covariance()
    assert float(torch.linalg.eigvalsh(few - NODES / (NODES + alone) * shared)[0]) > 0
    assert torch.isfinite(found.log_prob(z)).all()
    if alone < 2:  # one signal has no spread of its own
        close(few, NODES / (NODES + alone) * shared + 1e-6 * torch.eye(NODES), rtol=1e-9)


@pytest.mark.parametrize("rows", [3, 40, 4000])
def test_one_component_is_the_covariance_of_all_signals_shrunk_the_more_the_fewer_they_are(rows):
    z = mixtures.normal(rows, NODES) @ mixtures.normal(NODES, NODES, seed=5) + 3.0
    one, S = mixture.fit(z, 1), np.cov(z.T, bias=True)
    shrunk = ledoit_wolf(z.numpy())[0]  # scikit-learn's, about the mean
    close(one.parts[0].covariance(), (rows * S + NODES * shrunk) / (rows + NODES) + 1e-6 * np.eye(NODES), rtol=1e-9)
    close(one.means[0], z.mean(0))
    assert torch.equal(one.weights, torch.ones(1).double())


def test_fewer_signals_than_nodes_leave_no_direction_without_a_variance():
    """Twenty signals on 300 nodes: the covariance has rank 19."""
    z = mixtures.normal(20, 300)
    assert float(mixture.fit(z, 1).parts[0].v.min()) > 0.1


@pytest.mark.parametrize("components", [1, 2])
def test_signals_in_single_precision_are_fitted_in_double(components):
    z = clusters(100)[0].float()
    single, double = mixture.fit(z, components), mixture.fit(z.double(), components)
    for one, other in zip(state(single), state(double), strict=True):
        assert one.dtype == torch.float64
        assert torch.equal(one, other)
    assert mixture.mean_log_prob(single, z) == mixture.mean_log_prob(single, z.double())


def state(found):
    return [found.weights, found.means, *(t for part in found.parts for t in (part.v, part.B))]


@pytest.mark.parametrize("rows", [2, 7, 8, 20])
def test_of_few_signals_a_mixture_is_made_that_has_a_density_everywhere(rows):
    z, other = mixtures.normal(rows, 7), mixtures.normal(10, 7, seed=1)
    chosen = mixture.select(z, other), mixture.select_by_bic(z)
    for found in (*chosen, *(mixture.fit(z, k) for k in (1, 2) if k <= rows)):
        assert torch.isfinite(found.log_prob(100 * other)).all()
        assert all((part.v > 0).all() for part in found.parts)


@pytest.mark.parametrize("chunk", [1, 50, 1 << 22])
def test_the_mean_likelihood_is_taken_over_all_signals(chunk, monkeypatch):
    monkeypatch.setattr(mixture, "CHUNK", chunk)
    close(mixture.mean_log_prob(THREE, X), np.log(density(X.numpy())).mean(), rtol=1e-10)


# -- how many components -----------------------------------------------------------------------------------------------


@pytest.fixture
def tried(monkeypatch):
    """The numbers of components of the mixtures that were fitted, in order."""
    counts, fit = [], mixture.fit
    monkeypatch.setattr(mixture, "fit", lambda z, count: (counts.append(count), fit(z, count))[1])
    return counts


@pytest.mark.parametrize(("count", "apart"), [(1, 0.0), (2, 6.0)])
def test_validation_signals_choose_how_many_components(count, apart):
    random = np.random.default_rng(0)
    mix = random.standard_normal((NODES, NODES))

    def signals(rows):
        side = apart * (random.random((rows, 1)) < 0.4)
        return torch.from_numpy(random.standard_normal((rows, NODES)) @ mix + side)

    train, val = signals(1000), signals(500)
    found = mixture.select(train, val)
    assert len(found.parts) == count
    for other in (mixture.select(train, val), mixture.fit(train, count)):  # and nothing else about them
        for one, another in zip(state(found), state(other), strict=True):
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

    def mean_log_prob(found, z):
        assert z is val
        return next(left)

    monkeypatch.setattr(mixture, "mean_log_prob", mean_log_prob)
    assert len(mixture.select(train, val).parts) == chosen
    assert tried == counts


@pytest.mark.parametrize(("rows", "most"), [(2, 1), (7, 1), (8, 2), (11, 2), (12, 3), (31, 6), (32, 8), (100, 8)])
def test_there_are_at_most_a_quarter_as_many_components_as_signals(monkeypatch, tried, rows, most):
    z = clusters(rows)[0]
    with monkeypatch.context() as patch:  # one more is always better
        patch.setattr(mixture, "mean_log_prob", lambda found, z: float(len(found.parts)))
        assert len(mixture.select(z, X[:, :4]).parts) == most
        assert max(tried) == most
    monkeypatch.setattr(mixture, "bic", lambda found, z: -float(len(found.parts)))
    assert len(mixture.select_by_bic(z).parts) == most
    assert max(tried) == most


# -- the information criterion -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("found", [THREE, LINE], ids=["five nodes", "one node"])
@pytest.mark.parametrize("chunk", [1, 1 << 22])
def test_the_criterion_counts_free_parameters_and_takes_the_likelihood_of_all_signals(found, chunk, monkeypatch):
    monkeypatch.setattr(mixture, "CHUNK", chunk)
    found = Mixture(found.weights, found.means, tuple(full(part.covariance().numpy()) for part in found.parts))
    nodes = found.means.shape[1]
    z = 2 * mixtures.normal(11, nodes, seed=6)
    free = ["weight"] * (3 - 1)  # the last one is what the others leave
    for _ in range(3):
        free += [("mean", i) for i in range(nodes)]
        free += [("covariance", i, j) for i in range(nodes) for j in range(i + 1)]
    likelihood = 0.0
    for x in z.numpy():
        terms = zip(found.weights.numpy(), found.means.numpy(), found.parts, strict=True)
        likelihood += np.log(sum(w * multivariate_normal(m, part.covariance()).pdf(x) for w, m, part in terms))
    assert mixture.bic(found, z) == pytest.approx(len(free) * math.log(11) - 2 * float(likelihood), rel=1e-10)


def test_by_the_criterion_two_gaussians_far_apart_need_two_components():
    z, first = clusters(600)
    found = mixture.select_by_bic(z)
    same(found, naive_maximised(z.numpy(), np.repeat(np.eye(2), [first, 600 - first], axis=0)))
    assert mixture.bic(found, z) < min(mixture.bic(mixture.fit(z, k), z) for k in (1, 3))


def test_by_the_criterion_one_gaussian_needs_one_component():
    z = mixtures.normal(1500, NODES, seed=7) @ mixtures.normal(NODES, NODES, seed=8) + 3.0
    for one, other in zip(state(mixture.select_by_bic(z)), state(mixture.fit(z, 1)), strict=True):
        assert torch.equal(one, other)
    assert mixture.bic(mixture.fit(z, 1), z) < mixture.bic(mixture.fit(z, 2), z)


@pytest.mark.parametrize(
    ("criteria", "counts", "chosen"),
    [
        ({1: 5, 2: 3, 3: 4, 4: 1}, [1, 2, 3], 2),
        ({1: 5, 2: 6, 3: 1}, [1, 2], 1),
        ({1: 5, 2: 4, 3: 4, 4: 1}, [1, 2, 3], 2),  # equal is no better
        ({1: 6, 2: 5, 3: 4, 4: 3, 6: 2, 8: 1}, [1, 2, 3, 4, 6, 8], 8),
        ({1: -1, 2: -2, 3: -3, 4: -2}, [1, 2, 3, 4], 3),  # a density may be above one
    ],
)
def test_components_are_added_until_the_criterion_rises(monkeypatch, tried, criteria, counts, chosen):
    z = clusters(100)[0]

    def bic(found, signals):
        assert signals is z  # of the signals that it was fitted to
        return criteria[len(found.parts)]

    monkeypatch.setattr(mixture, "bic", bic)
    assert len(mixture.select_by_bic(z).parts) == chosen
    assert tried == counts


# -- one iteration -----------------------------------------------------------------------------------------------------


def test_an_iteration_that_makes_it_worse_is_taken_back(monkeypatch):
    z = torch.from_numpy(np.random.default_rng(5).standard_normal((60, NODES)))
    halves = torch.nn.functional.one_hot(torch.arange(60) % 2, 2).double()
    good = mixture.maximised(z, halves)
    bad = mixture.Mixture(good.weights, good.means + 100, good.parts)
    monkeypatch.setattr(mixture, "maximised", lambda z, responsible: bad)
    assert mixture._improved(good, z, 5) is good
