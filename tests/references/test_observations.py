"""Linear observations: posteriors against their dense formulas, guidance against the gradient of the joint density."""

import mixtures
import numpy as np
import pytest
import torch
from laws import close
from scipy.stats import multivariate_normal, norm

import grcd
from grcd.diffusion import solvers
from grcd.references.gaussian import full, low_rank, spectral
from grcd.references.mixture import Mixture
from grcd.references.observations import Observations, as_mixture, cleaned, guided, posterior

NODES, BATCH = 5, 4
SPECTRUM = mixtures.random_graph(NODES).spectrum
DENSE = mixtures.random_mixture(NODES)
PARTS = (
    spectral(DENSE.C[0].numpy(), SPECTRUM),
    full(DENSE.C[1].numpy()),
    low_rank(DENSE.C[2].numpy(), 2),
)
THREE = Mixture(DENSE.w, DENSE.m, PARTS)
SIGMAS = [part.covariance().numpy() for part in PARTS]
X = 2 * mixtures.normal(BATCH, NODES, seed=1)
H = mixtures.normal(3, NODES, seed=2)
HOLES = torch.tensor([[1, 1, 0, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1], [0, 1, 1, 0, 1]]).bool()
KINDS = {
    "entries": Observations(torch.where(HOLES, X, torch.nan)),
    "noisy entries": Observations(torch.where(HOLES, X, torch.nan), noise=torch.linspace(0.1, 0.5, NODES).double()),
    "sums": Observations(torch.where(HOLES[:, :3], X @ H.T, torch.nan), H, torch.tensor([0.0, 0.2, 0.7]).double()),
}
REFERENCES = {"gaussian": PARTS[1], "low rank": PARTS[2], "mixture": THREE}
cases = pytest.mark.parametrize("seen", KINDS.values(), ids=KINDS)
kinds = pytest.mark.parametrize("reference", REFERENCES.values(), ids=REFERENCES)


def rows(seen, b):
    """H, y and noise of one signal, its observed rows only."""
    kept = ~torch.isnan(seen.y[b]).numpy()
    A = np.eye(NODES) if seen.H is None else seen.H.numpy()
    r = np.zeros(len(A)) if seen.noise is None else seen.noise.numpy()
    return A[kept], seen.y[b].numpy()[kept], np.diag(r[kept])


def naive(reference, seen, b):
    """Weights, means, covariances of the components given one signal's observations, and the log-evidence."""
    mixture, (A, y, R) = as_mixture(reference), rows(seen, b)
    terms, means, covariances = [], [], []
    for w, m, part in zip(mixture.weights.numpy(), mixture.means.numpy(), mixture.parts, strict=True):
        C = part.covariance().numpy()
        S = A @ C @ A.T + R
        gain = C @ A.T @ np.linalg.inv(S)
        terms.append(w * (multivariate_normal(A @ m, S).pdf(y) if len(y) else 1.0))
        means.append(m + gain @ (y - A @ m))
        covariances.append(C - gain @ A @ C)
    return np.array(terms) / np.sum(terms), np.array(means), np.array(covariances), np.log(np.sum(terms))


@cases
@kinds
def test_the_posterior_is_its_formula_signal_by_signal(reference, seen):
    found = posterior(reference, seen)
    for b in range(BATCH):
        weights, means, covariances, evidence = naive(reference, seen, b)
        close(found.weights[b], weights)
        close(found.means[b], means)
        close(found.log_evidence[b], evidence)
        close(found.mean[b], weights @ means)
        off = means - weights @ means
        left = covariances + off[:, :, None] * off[:, None, :]
        close(found.covariance()[b], np.einsum("k,kij->ij", weights, left), size=THREE.covariance())


@cases
@kinds
def test_draws_have_the_mean_and_covariance_of_the_component_that_is_chosen(reference, seen):
    """A draw is affine in its normal numbers: unit ones, one at a time, give the root of its covariance."""
    found, m = posterior(reference, seen), seen.y.shape[1]
    kicks = 1 + NODES + m  # none, each of the prior's, each of the errors'

    def noise(purpose, shape):
        eye = torch.eye(kicks).double()
        part = eye[:, 1 : 1 + NODES] if purpose == "prior" else eye[:, 1 + NODES :]
        assert shape == (BATCH, kicks, part.shape[1])
        return part.expand(shape)

    edges = torch.cat([torch.zeros(BATCH, 1).double(), found.weights.cumsum(-1)], 1)
    for k in range(found.weights.shape[1]):
        u = ((edges[:, k] + edges[:, k + 1]) / 2)[:, None].expand(BATCH, kicks)
        drawn = found.draw(kicks, noise, u)
        for b in range(BATCH):
            _, means, covariances, _ = naive(reference, seen, b)
            root = (drawn[b, 1:] - drawn[b, 0]).numpy()
            close(drawn[b, 0], means[k])
            close(root.T @ root, covariances[k], size=THREE.covariance())


def test_the_evidence_of_a_whole_signal_is_its_density_and_its_components_are_as_responsible():
    found = posterior(THREE, Observations(X))
    close(found.log_evidence, THREE.log_prob(X))
    close(found.weights, THREE.responsible(X))
    close(found.mean, X)
    close(found.covariance(), np.zeros((BATCH, NODES, NODES)), size=THREE.covariance())
    noisy = posterior(THREE, Observations(X, noise=torch.full((NODES,), 0.25).double()))
    close(noisy.log_evidence, THREE.log_prob(X, 0.5))  # noise of a level is that level
    close(noisy.mean, X + 0.25 * THREE.score(X, 0.5))  # and Tweedie's formula the posterior mean


@pytest.mark.parametrize(
    "seen",
    [
        Observations(torch.full((BATCH, NODES), torch.nan).double()),
        Observations(X[:, :1], torch.zeros(1, NODES).double(), torch.full((1,), 4.0).double()),
    ],
    ids=["no readings", "readings of nothing"],
)
def test_observations_that_say_nothing_leave_the_mixture_as_it_was(seen):
    found = posterior(THREE, seen)
    close(found.weights, DENSE.w.expand(BATCH, 3))
    close(found.mean, (DENSE.w @ DENSE.m).expand(BATCH, NODES))
    close(found.covariance(), THREE.covariance().expand(BATCH, NODES, NODES))
    expected = 0.0 if seen.H is None else norm.logpdf(X[:, 0], scale=2.0)
    close(found.log_evidence, np.broadcast_to(expected, BATCH))
    noise, u = mixtures.normal(BATCH, NODES, seed=7), torch.linspace(0, 0.99, BATCH).double()
    normal = {"prior": noise[:, None], "error": torch.zeros(BATCH, 1, seen.y.shape[1]).double()}
    close(
        found.draw(1, lambda purpose, shape: normal[purpose].view(shape), u[:, None])[:, 0], THREE.draw(noise, 0.0, u)
    )


@pytest.mark.parametrize("v", [np.ones(NODES), np.array([1e3, 1.0, 0.1, 1e-3, 1e-6])], ids=["even", "uneven"])
def test_what_was_observed_without_noise_is_drawn_as_it_was(v):
    B = np.linalg.qr(mixtures.normal(NODES, NODES, seed=5).numpy())[0]
    gaussian = full((B * v) @ B.T)
    for A in (torch.eye(NODES).double(), torch.from_numpy(B[:, :1].T.copy())):  # every node; the leading mode alone
        y = gaussian.draw(X) @ A.T
        given = posterior(gaussian, Observations(y, A))
        drawn = given.draw(1, lambda _, shape: mixtures.normal(*shape, seed=6), torch.zeros(BATCH, 1).double())
        close(drawn[:, 0] @ A.T, y, 1e-9, size=np.sqrt(v.max()))


@pytest.mark.parametrize("q", [0.04, 0.5, 2.0, 30.0])
@cases
@kinds
def test_without_a_residual_guidance_is_the_score_of_the_reference_given_the_observations(reference, seen, q):
    """The gradient of log p(x~, y) by automatic differentiation of the joint density, written out densely."""
    mixture = as_mixture(reference)
    x = (X + q * mixtures.normal(BATCH, NODES, seed=7)).requires_grad_()
    total = 0.0
    for b in range(BATCH):
        A, y, R = (torch.from_numpy(np.asarray(part)) for part in rows(seen, b))
        joint = []
        for w, m, part in zip(mixture.weights, mixture.means, mixture.parts, strict=True):
            C = part.covariance()
            both = torch.cat(
                [torch.cat([C + q**2 * torch.eye(NODES), C @ A.T], 1), torch.cat([A @ C, A @ C @ A.T + R], 1)]
            )
            off = torch.cat([x[b] - m, y - A @ m])
            joint.append(w.log() - (off @ torch.linalg.solve(both, off) + torch.linalg.slogdet(both)[1]) / 2)
        total = total + torch.stack(joint).logsumexp(0)
    (gradient,) = torch.autograd.grad(total, x)
    found = guided(reference.eps, reference, seen)(x.detach(), q)
    close(found, -q * gradient, 1e-7)


@kinds
def test_exact_observations_hold_of_every_prediction_whatever_the_network_says(reference):
    def wrong(x, q):
        return reference.eps(x, q) + torch.sin(3 * x)

    for seen in (KINDS["entries"], Observations(X @ H.T, H)):
        for q in (0.04, 1.0):
            x = mixtures.normal(2 * BATCH, NODES, seed=8)  # two in a row for each signal
            D = x - q * guided(wrong, reference, seen)(x, q)
            got, told = seen.of(D).view(BATCH, 2, -1), seen.y[:, None].expand(BATCH, 2, -1)
            kept = ~told.isnan()
            close(got[kept], told[kept], 1e-9)


def test_nothing_observed_changes_nothing():
    nothing = Observations(torch.full((BATCH, NODES), torch.nan).double())

    def predicted(x, q):
        return THREE.eps(x, q) + torch.cos(x)

    close(guided(predicted, THREE, nothing)(X, 0.7), predicted(X, 0.7))
    found = posterior(THREE, nothing)
    close(found.weights, DENSE.w.expand(BATCH, 3))
    close(found.log_evidence, np.zeros(BATCH))


def test_signals_do_not_influence_each_other():
    seen = KINDS["noisy entries"]
    together = guided(THREE.eps, THREE, seen)(X, 0.5)
    for b in range(BATCH):
        alone = Observations(seen.y[[b]], seen.H, seen.noise)
        close(guided(THREE.eps, THREE, alone)(X[[b]], 0.5), together[[b]])


def test_exact_rows_that_say_the_same_are_refused():
    twice = torch.cat([H, H[:1] + H[1:2]])
    with pytest.raises(grcd.InputError, match="some follow from the others"):
        posterior(PARTS[1], Observations(X @ twice.T, twice))
    noisy = Observations(X @ twice.T, twice, torch.full((4,), 0.1).double())
    assert torch.isfinite(posterior(PARTS[1], noisy).mean).all()


def exact_flow(reference, seen, x, q0, q1):
    """The probability flow given the observations of one Gaussian: linear, so a matrix root carries it."""
    carried = []
    for b in range(BATCH):
        _, (mean,), (C,), _ = naive(reference, seen, b)
        v, B = np.linalg.eigh(C)
        factor = np.sqrt((np.maximum(v, 0) + q1**2) / (np.maximum(v, 0) + q0**2))
        carried.append(mean + B @ (factor * (B.T @ (x[b].numpy() - mean))))
    return np.array(carried)


@cases
@pytest.mark.parametrize("solver", ["residual-2m", "dpm++2m", "heun"])
def test_guided_solvers_converge_to_the_flow_given_the_observations_at_second_order(solver, seen):
    reference, q0, q1 = PARTS[1], 2.0, 0.04
    x = X + q0 * mixtures.normal(BATCH, NODES, seed=9)
    expected, errors = exact_flow(reference, seen, x, q0, q1), []
    row = solvers.find(solver)
    for steps in (64, 128, 256):
        grid = (np.linspace(q0 ** (1 / 3), q1 ** (1 / 3), steps + 1)) ** 3
        settings = {"reference": reference} if row.needs else {}
        found = row.function(guided(reference.eps, reference, seen), grid, x, **settings)
        errors.append(np.abs(found.numpy() - expected).max())
    assert errors[-1] < 1e-3
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (slopes > 1.7).all(), errors


@kinds
def test_the_last_step_is_the_posterior_given_the_noisy_state_too(reference):
    """A state at level q is one more observation of every entry, with variance q^2; to six standard errors."""
    seen, q, n = KINDS["sums"], 0.8, 20_000
    state = X + q * mixtures.normal(BATCH, NODES, seed=3)
    drawn = cleaned(
        reference,
        seen,
        state[:, None].expand(BATCH, n, NODES),
        q,
        lambda purpose, shape: mixtures.normal(*shape, seed=len(purpose)),
        torch.rand(BATCH, n, generator=torch.Generator().manual_seed(0), dtype=torch.float64),
    )
    noise = torch.cat([torch.full((NODES,), q**2).double(), seen.noise])
    both = Observations(torch.cat([state, seen.y], 1), torch.cat([torch.eye(NODES).double(), seen.H]), noise)
    exact = posterior(reference, both)
    C = exact.covariance()
    scale = C.diagonal(dim1=1, dim2=2).clamp(min=1e-12)
    assert ((drawn.mean(1) - exact.mean).abs() < 6 * (scale / n).sqrt()).all()
    off = drawn - drawn.mean(1, keepdim=True)
    error = 6 * (4 * scale[:, :, None] * scale[:, None] / n).sqrt()  # a mixture's tails are heavier than a Gaussian's
    assert ((off.mT @ off / n - C).abs() < error).all()
    there = ~seen.y[:, 0].isnan()  # the first row is exact
    close((drawn @ seen.H[0])[there], seen.y[there, :1].expand(-1, n), 1e-9)
