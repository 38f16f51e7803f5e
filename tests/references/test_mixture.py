"""What is particular to mixtures: the choice of components, parts of unlike kinds, and a flow without closed form."""

import math

import mixtures
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples
from members import MEMBERS, NODES, several
from scipy.stats import multivariate_normal, norm

from grcd.references.gaussian import Gaussian
from grcd.references.mixture import Mixture

levels = st.floats(0.02, 40.0)
law = examples(25)
X = 2 * mixtures.normal(6, NODES, seed=1)
FORCING = list(mixtures.normal(3, 6, NODES, seed=4))
UNLIKE = several("spectral", "full", "low rank")(MEMBERS["mixture"].problem)
THREE, DENSE = UNLIKE.reference, UNLIKE.truth
LINE = Mixture(  # on one node
    torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64),
    torch.tensor([[-1.5], [0.2], [2.0]], dtype=torch.float64),
    tuple(Gaussian(torch.tensor([v], dtype=torch.float64), torch.ones(1, 1).double()) for v in (0.09, 1.0, 0.25)),
)


@pytest.mark.parametrize("part", THREE.parts, ids=["spectral", "full", "low rank"])
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


@law
@given(q=st.just(0.0) | levels)
def test_parts_may_be_of_unlike_kinds(q):
    noise = q**2 * np.eye(NODES)
    close(THREE.log_prob(X, q), DENSE.log_density(X, q), 1e-10)
    close(THREE.eps(X, q), DENSE.eps_hat(X, q), 1e-10)
    close(THREE.covariance(q), DENSE.covariance() + noise)
    terms = [w * multivariate_normal(m, C).pdf(X) for w, m, C in zip(DENSE.w, DENSE.m, DENSE.C + noise, strict=True)]
    close(THREE.components(X, q)[0].softmax(-1), (np.array(terms) / sum(terms)).T, 1e-9)


def test_far_from_all_components_the_nearest_one_decides():
    """Densities underflow there, their logarithms do not."""
    x = DENSE.m[:1] + 1e3
    energies = [part.log_prob(x - m) for m, part in zip(DENSE.m, THREE.parts, strict=True)]
    k = int(torch.stack(energies).argmax())
    close(THREE.log_prob(x), energies[k] + DENSE.w[k].log())
    close(THREE.score(x, 0.0), THREE.parts[k].score(x - DENSE.m[k], 0.0))


# -- draws -------------------------------------------------------------------------------------------------------------

BELOW_ONE = 1 - 2.0**-53  # the largest number of Stream.uniform
UNIFORM = [0.0, math.nextafter(0.25, 0), 0.25, math.nextafter(0.75, 0), 0.75, BELOW_ONE]


@pytest.mark.parametrize("q", [0.0, 1.3])
def test_uniform_numbers_choose_the_component_and_noise_the_rest(q):
    quarters = Mixture(torch.tensor([0.25, 0.5, 0.25]).double(), THREE.means, THREE.parts)
    drawn = quarters.draw(X, q, torch.tensor(UNIFORM, dtype=torch.float64))
    for row, x, k in zip(drawn, X, (0, 0, 1, 1, 2, 2), strict=True):
        v, B = np.linalg.eigh(DENSE.C[k].numpy() + q**2 * np.eye(NODES))
        close(row, DENSE.m[k].numpy() + x.numpy() @ (B * np.sqrt(v)) @ B.T)


def test_weights_that_add_up_to_less_than_one_by_rounding_leave_no_number_without_a_component():
    tenths = torch.full((10,), 0.1, dtype=torch.float64)
    assert tenths.cumsum(0)[-1] <= BELOW_ONE  # the case at hand
    means = torch.arange(10).double()[:, None].expand(10, NODES)
    ten = Mixture(tenths, means, (THREE.parts[0],) * 10)
    close(
        ten.draw(torch.zeros(1, NODES).double(), 0.0, torch.tensor([BELOW_ONE], dtype=torch.float64)),
        np.full((1, NODES), 9.0),
    )


def test_several_components_cannot_be_drawn_without_uniform_numbers():
    with pytest.raises(ValueError, match="uniform"):
        THREE.draw(X)


# -- the flow ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("q0", "q1", "count"), [(2.0, 0.04, 0), (0.3, 2.0, 1), (2.0, 0.04, 3)])
def test_the_flow_is_integrated_with_order_four_with_and_without_forcing(q0, q1, count):
    exact, steps = DENSE.solution(X, q0, q1, FORCING[:count]), (16, 32, 64, 128)
    errors = [float((THREE.carry(X, q1, q0, FORCING[:count], n) - exact).norm()) for n in steps]
    assert min(errors) > 1e-11  # above the error of the oracle
    assert abs(-np.polyfit(np.log(steps), np.log(errors), 1)[0] - 4) < 0.2


@examples(4)
@given(q0=st.floats(0.1, 3), q1=st.floats(0.1, 3))
def test_on_one_node_the_flow_keeps_the_distribution_function(q0, q1):
    """There it is monotone and carries one law to the other, hence ``F_q1(x(q1)) = F_q0(x(q0))`` for every signal."""

    def distribution(x, q):
        terms = zip(LINE.weights.numpy(), LINE.means.numpy(), LINE.parts, strict=True)
        return sum(w * norm.cdf(x.numpy(), m, math.sqrt(float(p.v) + q**2)) for w, m, p in terms)

    x = LINE.draw(mixtures.normal(40, 1), q0, torch.linspace(0, 0.99, 40).double())
    close(distribution(LINE.propagate(x, q1, q0, 200), q1), distribution(x, q0), rtol=1e-8)
