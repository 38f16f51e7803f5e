"""Linear observations: draws of posteriors against their dense formulas, and what observations may be."""

import mixtures
import numpy as np
import pytest
import torch
from laws import close
from members import BATCH, MEMBERS, NODES, READINGS, H, X, conditioned
from scipy.stats import norm

import grcd
from grcd.references.gaussian import full
from grcd.references.observations import Observations

THREE, DENSE = MEMBERS["mixture"].reference, MEMBERS["mixture"].truth
KINDS = {name: MEMBERS[name] for name in ("full", "low rank", "mixture")}


@pytest.mark.parametrize("readings", READINGS.values(), ids=READINGS)
@pytest.mark.parametrize("member", KINDS.values(), ids=KINDS)
def test_draws_have_the_mean_and_covariance_of_the_component_that_is_chosen(member, readings):
    """A draw is affine in its normal numbers: unit ones, one at a time, give the root of its covariance."""
    posterior, m = member.reference.condition(readings), readings.y.shape[1]
    kicks = 1 + NODES + m  # none, each of the prior's, each of the errors'

    def noise(purpose, shape):
        eye = torch.eye(kicks).double()
        part = eye[:, 1 : 1 + NODES] if purpose == "prior" else eye[:, 1 + NODES :]
        assert shape == (BATCH, kicks, part.shape[1])
        return part.expand(shape)

    edges = torch.cat([torch.zeros(BATCH, 1).double(), posterior.weights.cumsum(-1)], 1)
    for k in range(posterior.weights.shape[1]):
        u = ((edges[:, k] + edges[:, k + 1]) / 2)[:, None].expand(BATCH, kicks)
        drawn = posterior.draw(kicks, noise, u)
        for b in range(BATCH):
            weights, means, covariances, _ = conditioned(member.truth, readings, b)
            if weights[k] < 1e-12:  # no uniform number chooses it
                continue
            root = (drawn[b, 1:] - drawn[b, 0]).numpy()
            close(drawn[b, 0], means[k])
            close(root.T @ root, covariances[k], size=THREE.covariance())


def test_the_evidence_of_a_whole_signal_is_its_density_and_its_components_are_as_responsible():
    posterior = THREE.condition(Observations(X))
    close(posterior.log_evidence, THREE.log_prob(X))
    close(posterior.weights, THREE.components(X, 0.0)[0].softmax(-1))
    close(posterior.mean, X)
    close(posterior.covariance(), np.zeros((BATCH, NODES, NODES)), size=THREE.covariance())
    noisy = THREE.condition(Observations(X, noise=torch.full((NODES,), 0.25).double()))
    close(noisy.log_evidence, THREE.log_prob(X, 0.5))  # noise of a level is that level
    close(noisy.mean, X + 0.25 * THREE.score(X, 0.5))  # and Tweedie's formula the posterior mean


@pytest.mark.parametrize(
    "readings",
    [
        Observations(torch.full((BATCH, NODES), torch.nan).double()),
        Observations(X[:, :1], torch.zeros(1, NODES).double(), torch.full((1,), 4.0).double()),
    ],
    ids=["no readings", "readings of nothing"],
)
def test_observations_that_say_nothing_leave_the_mixture_as_it_was(readings):
    posterior = THREE.condition(readings)
    close(posterior.weights, DENSE.w.expand(BATCH, 3))
    close(posterior.mean, (DENSE.w @ DENSE.m).expand(BATCH, NODES))
    close(posterior.covariance(), THREE.covariance().expand(BATCH, NODES, NODES))
    expected = 0.0 if readings.H is None else norm.logpdf(X[:, 0], scale=2.0)
    close(posterior.log_evidence, np.broadcast_to(expected, BATCH))
    noise, u = mixtures.normal(BATCH, NODES, seed=7), torch.linspace(0, 0.99, BATCH).double()
    normal = {"prior": noise[:, None], "error": torch.zeros(BATCH, 1, readings.y.shape[1]).double()}
    close(
        posterior.draw(1, lambda purpose, shape: normal[purpose].view(shape), u[:, None])[:, 0],
        THREE.draw(noise, 0.0, u),
    )


@pytest.mark.parametrize("v", [np.ones(NODES), np.array([1e3, 1.0, 0.1, 1e-3, 1e-6])], ids=["even", "uneven"])
def test_what_was_observed_without_noise_is_drawn_as_it_was(v):
    B = np.linalg.qr(mixtures.normal(NODES, NODES, seed=5).numpy())[0]
    gaussian = full((B * v) @ B.T)
    for A in (torch.eye(NODES).double(), torch.from_numpy(B[:, :1].T.copy())):  # every node; the leading mode alone
        y = gaussian.draw(X) @ A.T
        posterior = gaussian.condition(Observations(y, A))
        drawn = posterior.draw(1, lambda _, shape: mixtures.normal(*shape, seed=6), torch.zeros(BATCH, 1).double())
        close(drawn[:, 0] @ A.T, y, 1e-9, size=np.sqrt(v.max()))


def test_exact_rows_that_say_the_same_are_refused():
    twice = torch.cat([H, H[:1] + H[1:2]])
    with pytest.raises(grcd.InputError, match="some follow from the others"):
        MEMBERS["full"].reference.condition(Observations(X @ twice.T, twice))
    noisy = Observations(X @ twice.T, twice, torch.full((4,), 0.1).double())
    assert torch.isfinite(MEMBERS["full"].reference.condition(noisy).mean).all()
