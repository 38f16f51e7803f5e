"""Scores with the floor beside them, and the controls, against what their definitions say."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples
from sklearn.covariance import ledoit_wolf

import grcd
from grcd.core.streams import Stream
from grcd.evaluation import ammd, controls, floor
from grcd.evaluation.controls import draw
from grcd.metrics.mmd import mmd2
from grcd.metrics.statistics import STATISTICS
from grcd.references.gaussian import Gaussian
from grcd.references.mixture import Mixture
from grcd.references.mixture_fit import select

PARTS = ("quadratic_variation", "spectral_centroid", "degree_correlation")


def naive_scores(x, y, data):
    """z-score with the mean and the population std of the training split, three statistics, their MMD^2, the mean."""
    mean, std = data.train.mean(axis=0), np.sqrt(((data.train - data.train.mean(axis=0)) ** 2).mean(axis=0))
    x, y = (x - mean) / std, (y - mean) / std
    W = data.graph.weights.toarray()
    L = np.diag(W.sum(axis=1)) - W

    def statistics(signals):
        variation = np.array([s @ L @ s for s in signals])
        return {
            "quadratic_variation": variation,
            "spectral_centroid": variation / (signals**2).sum(axis=1),
            "degree_correlation": np.array([np.corrcoef(s, W.sum(axis=1))[0, 1] for s in signals]),
        }

    of_x, of_y = statistics(x), statistics(y)
    parts = {name: mmd2(torch.tensor(of_x[name]), torch.tensor(of_y[name])) for name in PARTS}
    return {"ammd": np.mean(list(parts.values())), **parts, "n": len(x)}


def generated(data, n=25, seed=5):
    return data.train.mean(axis=0) + data.train.std(axis=0) * np.random.RandomState(seed).standard_normal(
        (n, len(data.graph))
    )


def test_scores_and_floor_equal_the_naive_ones(tiny):
    x = generated(tiny)
    found = grcd.evaluate(x, tiny).to_dict()
    evenly = [0, 1, 3, 4, 6, 7, 9, 10, 12, 13, 15, 16, 18, 19, 21, 22, 24, 25, 27, 28]  # 59 k / 39, cut off
    evenly += [30, 31, 33, 34, 36, 37, 39, 40, 42, 43, 45, 46, 48, 49, 51, 52, 54, 55, 57, 59]
    assert found.pop("floor") == pytest.approx(naive_scores(tiny.train[evenly], tiny.test, tiny), rel=1e-9)
    assert found == pytest.approx(naive_scores(x, tiny.test, tiny), rel=1e-9)


def test_scores_are_against_the_split_that_was_asked_for(tiny):
    x = generated(tiny)
    assert grcd.evaluate(x, tiny, "val").ammd == pytest.approx(naive_scores(x, tiny.val, tiny)["ammd"], rel=1e-9)
    assert grcd.evaluate(x, tiny, "val").floor.n == 30
    assert grcd.evaluate(x, tiny).ammd != grcd.evaluate(x, tiny, "val").ammd
    with pytest.raises(grcd.InputError, match="one of train, val, test"):
        grcd.evaluate(x, tiny, "tset")


def test_the_names_of_the_scores_are_these_and_no_others(tiny):
    found = grcd.evaluate(generated(tiny), tiny).to_dict()
    assert list(found) == ["ammd", *PARTS, "n", "floor"]
    assert list(found["floor"]) == ["ammd", *PARTS, "n"]
    assert tuple(STATISTICS) == PARTS


def test_ammd_is_the_mean_of_its_three_parts(tiny):
    found = grcd.evaluate(generated(tiny), tiny)
    assert found.ammd == pytest.approx(np.mean([getattr(found, part) for part in PARTS]), rel=1e-14)


def test_training_signals_score_the_floor(tiny):
    fewer = grcd.Dataset("fewer", tiny.graph, tiny.train[:33], tiny.val, tiny.test)
    found = grcd.evaluate(fewer.train, fewer).to_dict()
    assert found.pop("floor") == found


def test_the_floor_uses_no_more_training_signals_than_the_split_has(tiny):
    chosen = tiny.train[np.linspace(0, 59, 40).astype(int)]
    assert grcd.evaluate(chosen, tiny).ammd == floor(tiny).ammd
    assert floor(tiny).n == 40
    assert floor(tiny).floor is None


def test_the_floor_does_not_depend_on_what_is_scored(tiny):
    one, other = (grcd.evaluate(generated(tiny, seed=seed), tiny) for seed in (1, 2))
    assert one.floor == other.floor
    assert one.ammd != other.ammd


def test_signals_that_do_not_vary_over_the_graph_score_far_above_the_floor(tiny):
    flat = tiny.train.mean(axis=0) + tiny.train.std(axis=0) * np.random.RandomState(0).standard_normal((25, 1))
    assert floor(tiny).ammd < 0.05 < 1.0 < grcd.evaluate(flat, tiny).ammd


KERNEL = 5.0  # of two equal values: scores are differences of means of such


@examples(5)
@given(st.integers(0, 10**6))
def test_units_do_not_change_scores(tiny, seed):
    random = np.random.RandomState(seed)
    shift, scale = 100 * random.standard_normal(6), 10.0 ** random.uniform(-3, 3, 6)
    other = grcd.Dataset(
        "other units", tiny.graph, *(part * scale + shift for part in (tiny.train, tiny.val, tiny.test))
    )
    x = generated(tiny)
    found, expected = grcd.evaluate(x * scale + shift, other).to_dict(), grcd.evaluate(x, tiny).to_dict()
    assert found.pop("floor") == pytest.approx(expected.pop("floor"), rel=0, abs=1e-9 * KERNEL)
    assert found == pytest.approx(expected, rel=0, abs=1e-9 * KERNEL)


def test_the_order_of_nodes_does_not_change_scores(tiny):
    order = [3, 0, 5, 1, 4, 2]
    parts = (part[:, order] for part in (tiny.train, tiny.val, tiny.test))
    moved = grcd.Dataset("moved", tiny.graph.permuted(order), *parts)
    x = generated(tiny)
    assert grcd.evaluate(x[:, order], moved).ammd == pytest.approx(grcd.evaluate(x, tiny).ammd, rel=1e-9)


def test_ammd_takes_signals_as_they_are_and_is_symmetric(tiny):
    x, y = tiny.normalizer.apply(generated(tiny)), tiny.normalizer.apply(tiny.test)
    assert ammd(x, y, tiny.graph).ammd == pytest.approx(grcd.evaluate(generated(tiny), tiny).ammd, rel=1e-12)
    assert ammd(x, y, tiny.graph).ammd == pytest.approx(ammd(y, x, tiny.graph).ammd, rel=1e-12)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda x: x[:, :5], r"generated signals of shape \(25, 5\)"),
        (lambda x: x[:6].T[:, :5], r"transpose"),
        (lambda x: np.where(np.arange(6) == 2, np.nan, x), "25 NaN or infinite values in generated signals.*station 2"),
        (lambda x: x[:1], "1 sample in generated signals"),
        (lambda x: [["a"] * 6] * 3, "not all numbers"),
    ],
)
def test_what_cannot_be_scored_is_refused(tiny, spoil, message):
    with pytest.raises(grcd.InputError, match=f"(?s){message}"):
        grcd.evaluate(spoil(generated(tiny)), tiny)


# -- gaps ----------------------------------------------------------------------------------------------------------


def patchy(data, seed=8, share=0.3):
    """The same data with gaps in every split; every node is observed."""
    random, parts = np.random.RandomState(seed), {}
    for split in ("train", "val", "test"):
        x = data.split(split)
        missing = random.random_sample(x.shape) < share
        missing[:2] = False
        parts[split] = np.where(missing, np.nan, x)
    return grcd.Dataset("patchy", data.graph, **parts)


def masked_scores(x, of_x, y, of_y, graph):
    """Each signal with its own mask and that of its partner, which is found by counting; statistics one by one."""

    def values(name, signals, own, other):
        n, m = len(own), len(other)
        masks = [own[k] & other[k * m // n] for k in range(n)]
        return torch.cat([torch.from_numpy(STATISTICS[name](signals[[k]], graph, masks[k][None])) for k in range(n)])

    return [mmd2(values(name, x, of_x, of_y), values(name, y, of_y, of_x)) for name in PARTS]


def parts_of(scores):
    return [getattr(scores, part) for part in PARTS]


@pytest.mark.parametrize("n", [13, 40, 55])
def test_gaps_of_the_split_are_left_out_on_both_sides(tiny, n):
    data, x = patchy(tiny), generated(tiny, n)
    mean, std = np.nanmean(data.train, axis=0), np.nanstd(data.train, axis=0)
    z, y = (x - mean) / std, (data.test - mean) / std
    expected = masked_scores(z, np.ones_like(z, dtype=bool), y, ~np.isnan(y), data.graph)
    assert parts_of(grcd.evaluate(x, data)) == pytest.approx(expected, rel=1e-9)
    # What is generated where nothing was observed does not matter.
    wild = np.where(np.isnan(data.test[np.arange(n) * 40 // n]), 1e6, x)
    assert grcd.evaluate(wild, data) == grcd.evaluate(x, data)


def test_the_floor_is_masked_by_the_gaps_of_both_splits(tiny):
    data = patchy(tiny)
    train, test = (part[~np.isnan(part).all(axis=1)] for part in (data.train, data.test))
    rows = np.linspace(0, len(train) - 1, len(test)).astype(int)
    z = [(part - np.nanmean(data.train, 0)) / np.nanstd(data.train, 0) for part in (train[rows], test)]
    expected = masked_scores(z[0], ~np.isnan(z[0]), z[1], ~np.isnan(z[1]), data.graph)
    assert parts_of(floor(data)) == pytest.approx(expected, rel=1e-9)
    assert parts_of(grcd.evaluate(generated(tiny), data).floor) == pytest.approx(expected, rel=1e-9)


def test_filled_readings_count_unless_only_observed_ones_are_asked_for(tiny):
    gaps = patchy(tiny)
    masks = {split: np.isnan(gaps.split(split)) for split in ("train", "val", "test")}
    filled = grcd.Dataset("filled", tiny.graph, tiny.train, tiny.val, tiny.test, filled=masks)
    x = generated(tiny)
    assert grcd.evaluate(x, filled) == grcd.evaluate(x, tiny)
    found = grcd.evaluate(x, filled, observed_only=True)
    z = [tiny.normalizer.apply(part) for part in (x, tiny.test)]
    assert parts_of(found) == pytest.approx(
        masked_scores(z[0], np.ones_like(z[0], dtype=bool), z[1], ~masks["test"], tiny.graph), rel=1e-9
    )
    assert found.floor == floor(filled, observed_only=True) != floor(filled)


def test_observed_only_changes_nothing_where_everything_was_observed(tiny):
    x = generated(tiny)
    assert grcd.evaluate(x, tiny, observed_only=True) == grcd.evaluate(x, tiny)


def test_the_order_of_nodes_does_not_change_scores_with_gaps(tiny):
    data, x, order = patchy(tiny), generated(tiny), [3, 0, 5, 1, 4, 2]
    parts = (part[:, order] for part in (data.train, data.val, data.test))
    moved = grcd.Dataset("moved", data.graph.permuted(order), *parts)
    assert grcd.evaluate(x[:, order], moved).ammd == pytest.approx(grcd.evaluate(x, data).ammd, rel=1e-9)


def test_float32_signals_score_as_float64_ones_do(tiny):
    low = grcd.Dataset("low", tiny.graph, *(part.astype(np.float32) for part in (tiny.train, tiny.val, tiny.test)))
    assert low.test.dtype == np.float32
    x = generated(tiny)
    assert parts_of(grcd.evaluate(x.astype(np.float32), low)) == pytest.approx(
        parts_of(grcd.evaluate(x, tiny)), rel=1e-4
    )


@pytest.mark.parametrize("size", [100, 300])
def test_with_gaps_signals_of_the_same_distribution_score_zero_within_the_spread(tiny, size):
    random, n = np.random.RandomState(0), 300
    masks = None, random.random_sample((n, 6)) < 0.7

    def score(scale=1.0):
        x, y = scale * random.standard_normal((size, 6)), random.standard_normal((n, 6))
        return ammd(x, y, tiny.graph, observed=masks).ammd

    alike = np.array([score() for _ in range(20)])
    assert abs(alike.mean()) < alike.std()
    assert score(scale=2.0) > 10 * alike.std()
    # Had one side only been masked, the same distribution would look like another.
    y = random.standard_normal((n, 6))
    apart = [torch.from_numpy(STATISTICS[PARTS[0]](y, tiny.graph, mask)) for mask in masks]
    assert mmd2(*apart) > 10 * alike.std()


# -- Gaussian controls ---------------------------------------------------------------------------------------------


def shrunk_covariance(data):
    return ledoit_wolf((data.train - data.train.mean(0)) / data.train.std(0), assume_centered=False)[0]


def test_covariances_of_the_four_controls_equal_the_naive_ones(tiny):
    S = shrunk_covariance(tiny)
    W = tiny.graph.weights.toarray()
    root = np.diag(W.sum(1) ** -0.5)
    lam, U = np.linalg.eigh(np.eye(6) - root @ W @ root)
    expected = {
        "control-diagonal": np.diag(np.diag(S)),
        "control-full": S,
        "control-gmrf": np.linalg.inv((np.eye(6) - root @ W @ root) / lam[-1] + 0.05 * np.eye(6)),
        "control-spectral": U @ np.diag(np.diag(U.T @ (S + 1e-6 * np.eye(6)) @ U)) @ U.T,
    }
    found = controls(tiny)
    assert list(found) == list(expected)
    for name, covariance in expected.items():
        close(found[name].covariance(), covariance)


@pytest.mark.parametrize("name", ["control-diagonal", "control-full", "control-gmrf", "control-spectral"])
def test_draws_of_a_control_are_in_the_units_of_the_data_and_have_its_covariance(tiny, name):
    control = controls(tiny)[name]
    x = draw(control, tiny, 20_000, seed=1)
    assert np.array_equal(x, draw(control, tiny, 20_000, seed=1))
    assert not np.array_equal(x, draw(control, tiny, 20_000, seed=2))
    z = (x - tiny.train.mean(0)) / tiny.train.std(0)
    covariance = control.covariance().numpy()
    variance = np.diag(covariance)
    assert np.all(np.abs(z.mean(0)) < 5 * np.sqrt(variance / len(z)))
    error = np.sqrt((covariance**2 + np.outer(variance, variance)) / len(z))
    assert np.all(np.abs(z.T @ z / len(z) - covariance) < 5 * error)


def test_controls_of_one_seed_share_their_noise(tiny):
    def noise(name):
        z = (draw(controls(tiny)[name], tiny, 4, seed=7) - tiny.train.mean(0)) / tiny.train.std(0)
        v, B = np.linalg.eigh(controls(tiny)[name].covariance().numpy())
        return z @ (B / np.sqrt(v)) @ B.T

    for name in ("control-full", "control-gmrf", "control-spectral"):
        close(noise(name), noise("control-diagonal"), 1e-9)


def test_with_gaps_the_controls_have_the_covariance_of_the_observed_pairs(tiny):
    data = patchy(tiny)
    z = (data.train - np.nanmean(data.train, axis=0)) / np.nanstd(data.train, axis=0)
    S = observed_pairs(z)
    found = controls(data)["control-full"].covariance().numpy()
    off = ~np.eye(6, dtype=bool)
    assert found[off] / found[0, 1] == pytest.approx(S[off] / S[0, 1], rel=1e-9)  # shrunk, all by one factor
    assert np.trace(found) == pytest.approx(np.trace(S), rel=1e-9)
    assert np.isfinite(draw(controls(data)["control-full"], data, 50, seed=0)).all()


def observed_pairs(z):
    S = np.array([[np.nanmean(z[:, i] * z[:, j]) for j in range(6)] for i in range(6)])
    assert np.linalg.eigvalsh(S)[0] > 0  # nothing to repair
    return S


# -- the mixture ---------------------------------------------------------------------------------------------------

WEIGHTS = np.array([0.3, 0.7])
CENTRES = np.array([[4.0, -4.0, 0.0, 4.0, 0.0, -4.0], [-2.0, 3.0, 1.0, -4.0, 0.0, 5.0]])
FACTORS = np.random.RandomState(3).standard_normal((2, 6, 6)) * 0.3 + 0.8 * np.eye(6)


def two_groups(n, seed):
    """Two Gaussians far apart."""
    random = np.random.RandomState(seed)
    group = (random.random_sample(n) < WEIGHTS[1]).astype(int)
    return CENTRES[group] + np.einsum("ni,nij->nj", random.standard_normal((n, 6)), FACTORS[group]), group


@pytest.fixture(scope="module")
def pair(tiny):
    """Two groups of signals, in units of their own."""
    parts = (20.0 + 3.0 * two_groups(n, seed)[0] for seed, n in enumerate((600, 50, 50)))
    return grcd.Dataset("pair", tiny.graph, *parts)


def components_of(mixture):
    """Weights, means and covariances, the smaller component first."""
    order = mixture.weights.numpy().argsort()
    covariances = np.array([part.covariance().numpy() for part in mixture.parts])
    return mixture.weights[order].numpy(), mixture.means[order].numpy(), covariances[order]


def test_two_groups_are_found_in_the_signals_of_a_dataset(pair):
    """Weights and means, in the data's units; how a mixture is fitted is tested with it."""
    weights, means, covariances = components_of(controls(pair, mixture=True)["control-mixture"])
    group = two_groups(600, 0)[1]
    assert weights == pytest.approx([(group == 0).mean(), (group == 1).mean()], abs=1e-3)
    for k in range(2):
        own = pair.train[group == k]
        assert pair.normalizer.undo(means[k][None])[0] == pytest.approx(own.mean(axis=0), abs=0.01)
        scale = pair.normalizer.std
        # With six signals of the covariance that both share, against a hundred and eighty or more of its own.
        assert covariances[k] * np.outer(scale, scale) == pytest.approx(np.cov(own.T, bias=True), abs=0.05 * 9)


def test_a_mixture_is_drawn_from_the_noise_it_is_given():
    """By hand: below a quarter ``N((1, 2), diag(4, 9))``, above it ``N((10, 20), 25 I)``."""
    eye = torch.eye(2, dtype=torch.float64)
    parts = tuple(Gaussian(torch.tensor(v, dtype=torch.float64), eye) for v in ([4.0, 9.0], [25.0, 25.0]))
    means = torch.tensor([[1.0, 2.0], [10.0, 20.0]], dtype=torch.float64)
    mixture = Mixture(torch.tensor([0.25, 0.7499], dtype=torch.float64), means, parts)  # rounded: they add up to less
    u = torch.tensor([0.26, 0.0, 0.99999, 0.24, 0.75], dtype=torch.float64)
    noise = torch.tensor([[1.0, -1.0], [0.5, 1.0], [0.0, 0.2], [-2.0, 0.0], [0.1, 0.1]], dtype=torch.float64)
    expected = [[15.0, 15.0], [2.0, 5.0], [10.0, 21.0], [-3.0, 2.0], [10.5, 20.5]]
    assert mixture.draw(noise, 0.0, u).numpy() == pytest.approx(np.array(expected), rel=1e-12)


def test_draws_of_the_mixture_have_its_mean_and_covariance_and_share_the_noise_of_the_controls(pair):
    mixture, n = controls(pair, mixture=True)["control-mixture"], 20_000
    weights, means, covariances = components_of(mixture)
    assert len(weights) == 2
    x = draw(mixture, pair, n, seed=1)
    z = (x - pair.train.mean(0)) / pair.train.std(0)
    mean = weights @ means
    second = np.einsum("k,kij->ij", weights, covariances + means[:, :, None] * means[:, None, :])
    products = (z - mean)[:, :, None] * (z - mean)[:, None, :]
    assert np.all(np.abs(z.mean(0) - mean) < 5 * z.std(0) / np.sqrt(n))
    error = products.std(0) / np.sqrt(n)
    assert np.all(np.abs(products.mean(0) - second + np.outer(mean, mean)) < 5 * error)

    assert np.array_equal(x, draw(mixture, pair, n, seed=1))
    assert not np.isin(x, draw(mixture, pair, n, seed=2)).any()
    # The noise is that of every control; which component it becomes is another stream's.
    noise, u = Stream(1, "control").normal(0, n * 6).view(n, 6), Stream(1, "control component").uniform(0, n)
    close(z, mixture.draw(noise, 0.0, u), 1e-10)


def test_gaps_are_drawn_given_the_rest_before_a_mixture_is_fitted(pair):
    data = patchy(pair)
    mean, std = np.nanmean(data.train, axis=0), np.nanstd(data.train, axis=0)
    S = controls(data)["control-spectral"].covariance().numpy()
    v, B = np.linalg.eigh(S)

    def completed(signals, purpose):
        z = (signals - mean) / std
        plain = Stream(0, purpose).normal(0, z.size).view(*z.shape).numpy() @ (B * np.sqrt(v)) @ B.T
        for row, drawn in zip(z, plain, strict=True):
            m, o = np.isnan(row), ~np.isnan(row)
            row[m] = drawn[m] + S[np.ix_(m, o)] @ np.linalg.solve(S[np.ix_(o, o)], row[o] - drawn[o])
        return torch.from_numpy(z)

    naive = select(completed(data.train, "control gaps"), completed(data.val, "control validation gaps"))
    found = controls(data, mixture=True)["control-mixture"]
    for one, other in zip(components_of(found), components_of(naive), strict=True):
        close(one, other, 1e-8)
    assert np.isfinite(draw(found, data, 50, seed=0)).all()


def test_a_mixture_is_fitted_on_request_only_and_comes_out_the_same_twice(pair):
    plain, whole = controls(pair), controls(pair, mixture=True)
    assert list(whole) == [*plain, "control-mixture"]
    assert "control-mixture" not in plain
    np.random.seed(1)  # what is random outside does not matter
    again = controls(pair, mixture=True)["control-mixture"]
    for one, other in zip(components_of(whole["control-mixture"]), components_of(again), strict=True):
        assert np.array_equal(one, other)


def test_float32_signals_have_the_mixture_of_float64_ones(pair):
    low = grcd.Dataset("low", pair.graph, *(part.astype(np.float32) for part in (pair.train, pair.val, pair.test)))
    found, expected = (controls(data, mixture=True)["control-mixture"] for data in (low, pair))
    for one, other in zip(components_of(found), components_of(expected), strict=True):
        close(one, other, 1e-5)
    assert draw(found, low, 9, seed=0) == pytest.approx(draw(expected, pair, 9, seed=0), rel=1e-4)


# -- what counts, and what stands beside ---------------------------------------------------------------------------


def test_signals_of_which_nothing_counts_do_not_count(tiny):
    """Half of the test signals are wholly missing: the score is that of the other half."""
    test = tiny.test.copy()
    test[::2] = np.nan
    gaps = grcd.Dataset("gaps", tiny.graph, tiny.train, tiny.val, test)
    half = grcd.Dataset("half", tiny.graph, tiny.train, tiny.val, tiny.test[1::2])
    x = tiny.train[:20] * 1.5
    assert grcd.evaluate(x, gaps).ammd == pytest.approx(grcd.evaluate(x, half).ammd, rel=1e-9)
    nothing = grcd.Dataset("nothing", tiny.graph, tiny.train, tiny.val, np.full_like(test, np.nan))
    with pytest.raises(grcd.InputError, match="0 test signals with a reading"):
        grcd.evaluate(x, nothing)


def test_controls_are_scored_beside_on_request(tiny):
    x = tiny.train[:30]
    plain, beside = grcd.evaluate(x, tiny), grcd.evaluate(x, tiny, controls=True)
    assert plain.ammd == beside.ammd
    assert "controls" not in plain.to_dict()
    fitted = controls(tiny, mixture=True)
    assert set(beside.controls) == set(fitted)
    for name, control in fitted.items():
        expected = grcd.evaluate(draw(control, tiny, 30, 0), tiny).ammd
        assert beside.controls[name].ammd == pytest.approx(expected, rel=1e-12)
        assert f"{expected:.4f}" in str(beside)


@pytest.mark.parametrize("wrong", [np.ones((3, 6)), "sbm-c16", None])
def test_only_a_dataset_can_be_evaluated_against(tiny, wrong):
    with pytest.raises(grcd.InputError, match="a Dataset"):
        grcd.evaluate(tiny.train, wrong)
