"""The contract of references: every law for every member, and nothing of the contract without a law."""

import importlib
import inspect
import pkgutil

import mixtures
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, each_close, examples
from members import BATCH, MEMBERS, MOST, READINGS, WINDOWED, conditioned
from scipy.stats import multivariate_normal

import grcd
from grcd.graphs.kronecker import Kronecker
from grcd.references.gaussian import Gaussian
from grcd.references.observations import Observations
from grcd.references.reference import Reference
from grcd.references.sparse import Sparse
from grcd.references.sparse_mixture import SparseMixture

ALL = MEMBERS | WINDOWED
U = torch.linspace(0.05, 0.95, BATCH).double()
FORCING = mixtures.normal(3, BATCH, MOST, seed=4)
levels, from_zero = st.floats(0.02, 40.0), st.just(0.0) | st.floats(0.02, 40.0)
LAWS: dict[str, set[str]] = {}  # the names of the contract, and the laws about each


def law(*names):
    """A law about these names of the contract, for every member."""

    def registered(test):
        for name in names:
            LAWS.setdefault(name, set()).add(test.__name__)
        return pytest.mark.parametrize("member", ALL.values(), ids=ALL)(test)

    return registered


def everything(reference, x, q, u):
    """What a reference says of signals, each (batch, nodes)."""
    seen = torch.where(x > 0.5, x, torch.nan)  # holes travel with the order of nodes
    joint, scores = reference.components(x, q)
    posterior = reference.condition(Observations(seen))
    of_signals = [reference.log_prob(x, q), joint.logsumexp(-1), posterior.log_evidence]
    of_nodes = [reference.draw(x, q, u), reference.score(x, q), reference.eps(x, q), sum(scores), posterior.mean]
    return *of_nodes, *(value[:, None].expand_as(x) for value in of_signals)


def flow(reference, x, q, u):
    return reference.propagate(x, 0.3, q), reference.carry(x, 0.3, q, [x, u[:, None] * x])


# -- the laws ----------------------------------------------------------------------------------------------------------


@law("weights", "means", "parts", "mean", "covariance")
@examples(10)
@given(q=from_zero)
def test_it_is_the_mixture_of_its_parts_with_noise_added(member, q):
    reference, truth = member.reference, member.truth
    noise = q**2 * np.eye(member.d)
    close(reference.weights, truth.w)
    close(reference.means, truth.m, size=1.0)
    close(reference.mean, truth.w @ truth.m, size=1.0)
    close(reference.covariance(q), truth.covariance() + noise)
    for part, C in zip(reference.parts, truth.C, strict=True):
        close(part.covariance(q), C + noise)


@law("variances", "scalar")
def test_variances_are_those_of_all_directions_and_their_mean_is_the_scalar_one(member):
    v, counts = member.reference.variances()
    spectra = np.linalg.eigvalsh(member.truth.C.numpy())
    for function in (np.ones_like, np.log, np.sqrt, np.square):
        each_close(counts @ function(v), member.truth.w.numpy() @ function(spectra).sum(1), 1e-10)
    close(np.unique(v.round(9)), np.unique(spectra.round(9)), 1e-8)
    scalar = member.reference.scalar()
    close(scalar.mean, member.reference.mean, size=1.0)
    close(scalar.covariance(), np.trace(member.truth.covariance()) / member.d * np.eye(member.d))


@law("components", "log_prob", "scored")
@examples(10)
@given(q=from_zero)
def test_densities_are_scipys(member, q):
    reference, truth = member.reference, member.truth
    terms = zip(truth.w.numpy(), truth.m.numpy(), truth.C.numpy() + q**2 * np.eye(member.d), strict=True)
    joint = np.array([np.log(w) + multivariate_normal(m, C).logpdf(member.x.numpy()) for w, m, C in terms]).T
    close(reference.components(member.x, q)[0], joint)
    close(reference.log_prob(member.x, q), np.logaddexp.reduce(joint, axis=1))
    assert torch.equal(reference.scored(member.x, q)[0], reference.log_prob(member.x, q))


@law("components", "score", "scored", "eps")
@examples(10)
@given(q=from_zero)
def test_the_score_is_the_gradient_of_the_log_density_and_the_noise_prediction_follows_from_it(member, q):
    reference, truth = member.reference, member.truth
    x = member.x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(reference.log_prob(x, q).sum(), x)
    close(reference.score(member.x, q), gradient, 1e-10)
    close(reference.eps(member.x, q), -q * gradient, 1e-10)
    close(reference.eps(member.x, q), truth.eps_hat(member.x, q), 1e-10)
    assert torch.equal(reference.scored(member.x, q)[1], reference.score(member.x, q))
    for score, m, C in zip(reference.components(member.x, q)[1], truth.m, truth.C, strict=True):
        close(score, torch.linalg.solve(C + q**2 * torch.eye(member.d).double(), (m - member.x).T).T)


@law("draw")
@examples(10)
@given(q=from_zero)
def test_uniform_numbers_choose_the_component_and_noise_is_multiplied_by_the_root_of_its_covariance(member, q):
    """The rows of ``draw(I)`` are the root ``R`` that noise is multiplied with: ``R^T R`` is the covariance."""
    reference, truth = member.reference, member.truth
    kicks = torch.cat([torch.zeros(1, member.d), torch.eye(member.d)]).double()
    ends = truth.w.cumsum(0)
    for m, C, middle in zip(truth.m, truth.C, ends - truth.w / 2, strict=True):
        drawn = reference.draw(kicks, q, middle.expand(len(kicks)))
        root = drawn[1:] - drawn[0]
        close(drawn[0], m, size=1.0)
        if q > 0 or not isinstance(reference, Sparse | SparseMixture):  # whose root without noise is that of its factor
            close(root, root.T, size=root)
        close(root.T @ root, C + q**2 * np.eye(member.d))
        close(reference.draw(member.x, q, middle.expand(BATCH)), m + member.x @ root)


@law("carry", "propagate")
@pytest.mark.parametrize(("q0", "q1", "count"), [(2.0, 0.05, 0), (0.3, 2.0, 2), (2.0, 0.05, 3)])
def test_carrying_solves_the_flow_with_a_polynomial_added(member, q0, q1, count):
    """Against eighth-order Runge-Kutta; a mixture's own steps are of order four, which a test of its own says.

    A signal that is pushed from one component to another needs the most steps: 200 leave 1.1e-8 of two sparse ones.
    """
    reference, forcing = member.reference, list(FORCING[:count, :, : member.d])
    carried = reference.carry(member.x, q1, q0, forcing, 320)
    close(carried, member.truth.solution(member.x, q0, q1, forcing), 1e-10 if member.exact else 1e-8)
    if not count:
        assert torch.equal(carried, reference.propagate(member.x, q1, q0, 320))


@law("carry", "propagate")
@examples(4)
@given(q0=st.floats(0.1, 3), q1=st.floats(0.1, 3), q2=st.floats(0.1, 3))
def test_carrying_composes_and_runs_backwards(member, q0, q1, q2):
    """A line about ``q0`` is the same line about ``q1``."""
    reference, (a, b, _) = member.reference, FORCING[..., : member.d]
    there = reference.carry(member.x, q1, q0, [a, b], 40)
    whole = reference.carry(member.x, q2, q0, [a, b], 40)
    rtol, size = 1e-12 if member.exact else 1e-4, 10 * member.x.abs().max()
    close(reference.carry(there, q2, q1, [a + (q1 - q0) * b, b], 40), whole, rtol, size=size)
    close(reference.carry(there, q0, q1, [a + (q1 - q0) * b, b], 40), member.x, rtol, size=size)
    if member.exact:  # and a draw is carried to the draw from the same noise
        close(reference.propagate(reference.draw(member.x, q0, U), q1, q0), reference.draw(member.x, q1, U))


@law("condition")
@pytest.mark.parametrize("name", READINGS)
def test_conditioning_is_bayes_rule_signal_by_signal(member, name):
    readings = member.readings(name)
    posterior, size = member.reference.condition(readings), member.truth.covariance()
    for b in range(BATCH):
        weights, means, covariances, evidence = conditioned(member.truth, readings, b)
        close(posterior.weights[b], weights, 1e-10)
        close(posterior.means[b], means, size=np.append(means.ravel(), 1.0))
        each_close(np.exp(posterior.log_evidence[b]), np.exp(evidence), 1e-10)
        close(posterior.mean[b], weights @ means, 1e-10, size=np.append(means.ravel(), 1.0))
        off = means - weights @ means
        left = covariances + off[:, :, None] * off[:, None, :]
        close(posterior.covariance()[b], np.einsum("k,kij->ij", weights, left), 1e-10, size=size)


@law("posterior", "d")
def test_entries_that_are_observed_leave_what_bayes_rule_leaves(member):
    readings, d = member.readings("entries"), member.reference.d
    assert d == member.d
    posterior = member.reference.posterior(member.x, readings.seen)
    for b, seen in enumerate(readings.seen):
        weights, means, covariances, evidence = conditioned(member.truth, readings, b)
        mean, size = weights @ means, member.truth.covariance().diagonal()
        close(posterior.mean[b], mean, 1e-10, size=np.append(means.ravel(), 1.0))
        variance = weights @ (covariances.diagonal(axis1=1, axis2=2) + (means - mean) ** 2)
        close(posterior.sd[b].square(), np.where(seen, 0.0, variance), 1e-10, size=size)
        assert torch.equal(posterior.sd[b] == 0, seen)
        assert torch.equal(posterior.mean[b][seen], member.x[b][seen])
        each_close(np.exp(posterior.log_prob[b]), np.exp(evidence), 1e-10)


@law("drawn")
def test_draws_alone_are_those_of_the_posterior(member):
    readings = member.readings("entries")
    xi = torch.from_numpy(np.random.default_rng(8).standard_normal((BATCH, 3, member.d)))
    own = member.reference.drawn(member.x, readings.seen, xi)
    assert torch.equal(own, member.reference.posterior(member.x, readings.seen, xi).draws)


@law("posterior")
def test_draws_given_entries_are_affine_in_their_noise_within_a_component(member):
    """One number of the noise chooses the component; all others have its mean and the root of its covariance.

    Between the ends of a component of weight ``w`` that number is known to ``rounding / w``, and no better.
    """
    readings, d = member.readings("entries"), member.d
    xi = torch.cat([torch.zeros(1, d), torch.eye(d)]).double().expand(BATCH, -1, -1).clone()
    size = member.truth.covariance()
    for b in range(2, BATCH):
        weights, means, covariances, _ = conditioned(member.truth, readings, b)
        for k, end in enumerate(np.cumsum(weights)):
            own = xi[[b]].clone()
            if not member.exact:  # normal numbers of which each stands for the same number within the component
                own[..., 0] = torch.special.ndtri(end - weights[k] + weights[k] * torch.special.ndtr(xi[b][:, 0]))
            known = max(1e-8, 4 * np.finfo(float).eps / weights[k])
            posterior = member.reference.posterior(member.x[[b]], readings.seen[[b]], own)
            spread = posterior.draws[0, 1:] - posterior.draws[0, 0]
            close(posterior.draws[0, 0], means[k], known, size=np.append(means.ravel(), 1.0))
            close(spread.T @ spread, covariances[k], known, size=size)
            assert torch.equal(posterior.draws[0][:, readings.seen[b]], member.x[b][readings.seen[b]].expand(d + 1, -1))


@law("tensors", "from_tensors", "gaussian")
def test_it_comes_back_from_its_tensors_to_the_bit(member):
    reference, kind = member.reference, type(member.reference)
    again = kind.from_tensors({name: t.clone() for name, t in reference.tensors().items()}, member.basis)
    assert type(again) is kind
    assert again.gaussian == reference.gaussian
    for q in (0.04, 1.0):
        for one, other in zip(everything(reference, member.x, q, U), everything(again, member.x, q, U), strict=True):
            assert torch.equal(one, other)
        for one, other in zip(flow(reference, member.x, q, U), flow(again, member.x, q, U), strict=True):
            assert torch.equal(one, other)
    for name, t in reference.tensors().items():
        with pytest.raises(KeyError):
            kind.from_tensors({key: t for key, t in reference.tensors().items() if key != name}, member.basis)
        with pytest.raises(ValueError, match="different sizes"):
            kind.from_tensors(reference.tensors() | {name: torch.cat([t, t[..., :1]], -1)}, member.basis)


@law("gaussian")
def test_what_calls_itself_gaussian_is_diagonal_in_a_whole_basis_about_zero(member):
    reference = member.reference
    if not reference.gaussian:
        return
    assert isinstance(reference, Gaussian)
    assert not reference.mean.any()
    close(reference.nodes(reference.modes(member.x)), member.x)
    close(reference.modes(reference.nodes(member.x)), member.x)
    close(reference.modes(reference.eps(member.x, 0.7)), 0.7 * reference.modes(member.x) / (reference.v + 0.49))


@law("to")
def test_another_device_gets_all_of_it(member):
    moved = member.reference.to("meta")
    assert type(moved) is type(member.reference)
    x, u = member.x.to("meta"), U.to("meta")
    tensors = [*moved.tensors().values(), moved.weights, moved.means, moved.mean, moved.draw(x, 0.5, u)]
    assert {t.device.type for t in (*tensors, *moved.components(x, 0.5)[1])} == {"meta"}
    same = member.reference.to("cpu").tensors()
    assert all(torch.equal(same[name], t) for name, t in member.reference.tensors().items())


@law("components", "score", "eps", "draw", "condition", "propagate", "carry")
def test_signals_and_levels_of_a_batch_do_not_influence_each_other(member):
    reference = member.reference
    q = torch.tensor([[0.05], [0.1], [0.5], [1.0], [2.0], [30.0]], dtype=torch.float64)
    apart = [everything(reference, member.x[[k]], float(q[k]), U[[k]]) for k in range(BATCH)]
    for together, rows in zip(everything(reference, member.x, q, U), zip(*apart, strict=True), strict=True):
        close(together, torch.cat(rows))
    apart = [flow(reference, member.x[[k]], 0.7, U[[k]]) for k in range(BATCH)]
    for together, rows in zip(flow(reference, member.x, 0.7, U), zip(*apart, strict=True), strict=True):
        close(together, torch.cat(rows))
    log_prob, score = reference.scored(member.x.view(2, 3, member.d), 0.5)  # whatever comes before the last axis
    close(log_prob.flatten(), reference.log_prob(member.x, 0.5))
    close(score.flatten(0, 1), reference.score(member.x, 0.5))


@law("components", "score", "eps", "draw", "condition", "propagate", "carry")
@examples(4)
@given(order=st.permutations(range(MOST)), q=levels)
def test_listing_the_nodes_in_another_order_lists_the_results_in_that_order(member, order, q):
    nodes = [node for node in order if node < member.nodes]
    here, there, order = member.reference, member.permuted(nodes).reference, member.order(nodes)
    for what in (everything, flow):
        for one, other in zip(what(here, member.x, q, U), what(there, member.x[:, order], q, U), strict=True):
            close(one[:, order], other, 1e-10)


@law("components", "score", "eps", "draw", "condition", "propagate", "carry")
@examples(4)
@given(seed=st.integers(0, 2**32 - 1), q=levels)
def test_eigenvector_signs_do_not_matter(member, seed, q):
    reference, tensors = member.reference, dict(member.reference.tensors())
    signs, basis = torch.from_numpy(np.random.default_rng(seed).choice([-1.0, 1.0], member.d)), member.basis
    if "B" in tensors:
        tensors["B"] = tensors["B"] * signs[: tensors["B"].shape[-1]]
    factors = [factor * signs[: len(factor)] for factor in getattr(basis, "factors", (basis,))]
    flipped = type(reference).from_tensors(tensors, Kronecker(*factors) if len(factors) > 1 else factors[0])
    for what in (everything, flow):
        for one, other in zip(what(reference, member.x, q, U), what(flipped, member.x, q, U), strict=True):
            close(one, other, 1e-10)


# -- nobody and nothing is left out ------------------------------------------------------------------------------------


def concrete(kind):
    """All subclasses that can be made."""
    for below in kind.__subclasses__():
        yield from concrete(below)
        if not inspect.isabstract(below):
            yield below


def without_member(package):
    """Concrete references anywhere in a package that no member is of."""
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    return unheld(kind for kind in concrete(Reference) if kind.__module__.startswith(f"{package.__name__}."))


def unheld(kinds):
    return {kind.__name__ for kind in kinds} - {type(member.reference).__name__ for member in ALL.values()}


def without_law(contract, laws):
    """Public names of a contract that no law is about."""
    return {name for name in (*vars(contract), "weights", "means", "parts") if not name.startswith("_")} - set(laws)


def test_every_reference_is_a_member_and_every_name_of_the_contract_has_a_law():
    assert without_member(grcd) == set()
    assert without_law(Reference, LAWS) == set()
    assert set(LAWS) - {"weights", "means", "parts"} <= set(vars(Reference))  # and no law is about what is gone


def test_a_reference_that_is_no_member_and_a_name_without_a_law_are_noticed():
    class Stranger(Gaussian):
        def surprise(self):
            return None

    assert Stranger in set(concrete(Reference))
    assert unheld([Stranger, Gaussian]) == {"Stranger"}
    assert without_law(Stranger, LAWS) == {"surprise"}
    assert without_law(Reference, {name: () for name in LAWS if name != "eps"}) == {"eps"}


@pytest.mark.parametrize("name", sorted(Reference.__abstractmethods__))
def test_a_reference_that_lacks_a_part_of_the_contract_cannot_be_made(name):
    lacking = type("Lacking", (Reference,), {each: None for each in Reference.__abstractmethods__ if each != name})
    with pytest.raises(TypeError, match=name):
        lacking()
