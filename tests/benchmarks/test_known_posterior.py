"""The recipe of known posteriors: its laws against brute force, its errors on draws of which they are known."""

import json
import sys

import known_posterior
import numpy as np
import pytest
from known_laws import LAWS, ROUGH, Posterior, of_mixture, smooth
from known_posterior import Case, masks_as_sparse, mean_errors
from known_posterior_page import compared, page, told
from laws import close
from scipy.special import logsumexp
from scipy.stats import invgamma, multivariate_normal

WEIGHTS, MEANS = np.array([0.5, 0.3, 0.2]), [np.array([0.0, 1.0]), np.array([1.0, -1.0]), np.array([0.5, 3.0])]
COVS = [np.array([[1.0, 0.6], [0.6, 0.5]]), np.array([[0.4, -0.3], [-0.3, 1.0]]), np.array([[2.0, 0.1], [0.1, 0.2]])]
TWO = Posterior(np.array([0.7, 0.3]), np.array([[0.0, 5.0], [4.0, -1.0]]), np.array(COVS[:2]))


# -- laws --------------------------------------------------------------------------------------------------------------


def test_the_posterior_of_the_mixture_is_the_joint_density_cut_at_what_is_observed():
    line = np.linspace(-15, 15, 20_001)
    joint = sum(
        weight * multivariate_normal(mean, cov).pdf(np.stack([np.full_like(line, 0.7), line], axis=1))
        for weight, mean, cov in zip(WEIGHTS, MEANS, COVS, strict=True)
    )
    joint /= joint.sum()
    found = of_mixture(np.array([0.7, np.nan]), np.array([False, True]), WEIGHTS, MEANS, COVS)
    assert (found.weights > 0.05).all()
    close(found.mean, [joint @ line], 1e-10)
    close(found.sd, [np.sqrt(joint @ (line - joint @ line) ** 2)], 1e-10)


def test_the_posterior_of_heavy_tails_is_that_of_a_naive_sum_over_other_scales():
    law, rng, K = LAWS["heavy"](), np.random.default_rng(0), smooth(3.0)
    (x,) = law.sample(1, rng)
    hidden = rng.random(len(x)).argsort() < law.hidden
    logs, means, seconds = [], [], []
    scales = np.exp(np.linspace(-5.05, 7.1, 73))
    for s in scales:
        for r in scales:
            cov = s * K + ROUGH**2 * r * np.eye(len(x))
            oo, ho = cov[np.ix_(~hidden, ~hidden)], cov[np.ix_(hidden, ~hidden)]
            # The density of a scale's logarithm is that of the scale times the scale.
            prior = sum(invgamma.logpdf(scale, 1.5, scale=1.5) + np.log(scale) for scale in (s, r))
            logs.append(prior + multivariate_normal.logpdf(x[~hidden], cov=oo))
            means.append(ho @ np.linalg.solve(oo, x[~hidden]))
            seconds.append(np.diag(cov)[hidden] - np.diag(ho @ np.linalg.solve(oo, ho.T)) + means[-1] ** 2)
    weights = np.exp(np.array(logs) - logsumexp(logs))
    mean, second = weights @ np.array(means), weights @ np.array(seconds)
    found = law.posterior(x, hidden)
    close(found.mean, mean, 1e-9)
    close(found.sd, np.sqrt(second - mean**2), 1e-9)


def test_draws_of_a_posterior_have_its_mean_spread_and_weights():
    n = 200_000
    draws = TWO.draws(n, np.random.default_rng(0))
    assert (np.abs(draws.mean(axis=0) - TWO.mean) < 5 * TWO.sd / n**0.5).all()
    second = (draws - TWO.mean) ** 2
    assert (np.abs(second.mean(axis=0) - TWO.sd**2) < 5 * second.std(axis=0) / n**0.5).all()
    assert np.mean(draws[:, 1] < 2) == pytest.approx(0.3, abs=5 * (0.21 / n) ** 0.5)  # the components are far apart


# -- scores ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [0.0, 0.4])
def test_the_error_of_the_mean_is_the_shift_whatever_the_number_of_draws(shift):
    rng, n, sets = np.random.default_rng(1), 8, 4000
    found = [mean_errors(TWO.draws(n, rng) + shift * TWO.sd, TWO.mean, TWO.sd) for _ in range(sets)]
    for values, expected in zip(zip(*found, strict=True), (shift**2, shift), strict=True):
        values = np.array(values)
        assert (np.abs(values.mean(axis=0) - expected) < 4 * values.std(axis=0) / sets**0.5).all()
    signed = np.array([each[1] for each in found])
    assert (np.mean(signed**2, axis=0) > shift**2 + 0.8 / n).all()  # what it would be had chance been left in


def test_scores_of_a_case_are_those_of_exact_draws_shifted_and_widened():
    case = Case.drawn(LAWS["mixture"](), 3, 60, 100)
    sds = [each.sd for each in case.posteriors]
    right = case.scores(case.again)
    shifted = case.scores([draws + 0.5 * sd for draws, sd in zip(case.again, sds, strict=True)])
    wide = [3 * (draws - own.mean) + own.mean for draws, own in zip(case.again, case.posteriors, strict=True)]
    assert abs(right["squared mean error"]) < 0.25**2 / 10
    assert shifted["squared mean error"] ** 0.5 == pytest.approx(0.5, rel=0.03)
    assert shifted["signed mean error"] - right["signed mean error"] == pytest.approx(0.5, rel=1e-10)
    assert right["sliced Wasserstein"] < 0.5 * shifted["sliced Wasserstein"]
    assert abs(right["cover 90"] - 0.9) < 0.05
    assert case.scores(wide)["cover 50"] > 0.9


def test_masks_as_sparse_leaves_those_out_that_hide_everything():
    assert masks_as_sparse(24) == 0
    assert 0 < masks_as_sparse(20) < 0.01 < masks_as_sparse(12)


# -- what is measured --------------------------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The command with methods that take no time: it returns which were trained, and the file."""
    trained = []

    def exact(case, name, args):
        trained.append((case.law.name, case.seed, name))
        draws = np.full((args.draws, *case.signals.shape), np.nan)
        for k, where in enumerate(case.hidden):
            draws[:, k, where] = case.again[k]
        return {name: {"2": lambda: draws}}

    monkeypatch.setattr(known_posterior, "methods_of", lambda law, guided: {"conditional": exact, "other": exact})
    path = tmp_path / "known.json"

    def ran(*args):
        trained.clear()
        monkeypatch.setattr(sys, "argv", ["known_posterior.py", "--out", str(path), "--signals", "3", *args])
        known_posterior.main()
        return [*trained], path

    return ran


def test_the_same_command_goes_on_where_it_was_stopped(run):
    trained, path = run("--seeds", "0", "--laws", "heavy")
    assert trained == [("heavy", 0, "conditional"), ("heavy", 0, "other")]
    result = json.loads(path.read_text())
    found = result["heavy"]["seeds"]["0"]["methods"]
    close([*found["other"]["2"].values()], [*found["floor"][""].values()])  # the same draws
    del result["heavy"]["seeds"]["0"]["methods"]["other"]
    path.write_text(json.dumps(result))
    trained, _ = run("--seeds", "0,5", "--laws", "heavy")
    assert trained == [("heavy", 0, "other"), ("heavy", 5, "conditional"), ("heavy", 5, "other")]
    before = path.read_bytes()
    assert run("--seeds", "0,5", "--laws", "heavy") == ([], path)
    assert path.read_bytes() == before
    with pytest.raises(SystemExit, match="choose another --out"):
        run("--updates", "7")


# -- the page ----------------------------------------------------------------------------------------------------------


def known(distances):
    """A law of which these methods have distances seed by seed, at 64 evaluations."""
    others = {"squared mean error": -0.01, "signed mean error": 0.0, "cover 50": 0.5, "cover 90": 0.9}
    about = {"command": "c", "date": "d", "hardware": "h", "versions": {}, "seconds": {}}
    seeds = [
        about
        | {"methods": {name: {"64": {"sliced Wasserstein": each[k]} | others} for name, each in distances.items()}}
        for k in range(2)
    ]
    setting = {"signals": 4, "draws": 10, "updates": 100}
    seeds = {str(k): own for k, own in enumerate(seeds)}
    return {"setting": setting, "hidden": 20, "masks as sparse": 0.0004, "seeds": seeds}


def test_the_page_has_mean_and_sd_over_seeds_and_no_error_below_zero():
    text = page({"mixture": known({"conditional": (0.3, 0.34), "guidance, grcd-full": (0.28, 0.3)})})
    assert "| conditional | 64 | 0.320 +- 0.028 | 0.000 +- 0.000 | 0.000 +- 0.000 |" in text
    assert "NFE 64: -0.030 +- 0.014" in text
    assert told([0.25]) == "0.250"


@pytest.mark.parametrize(
    ("wide", "said"),
    [((0.29, 0.33), "explain 33% of"), ((0.2, 0.3), "masks explain the difference"), ((0.4, 0.4), "not the reason")],
)
def test_the_page_says_what_other_masks_are_worth(wide, said):
    law = known({"conditional": (0.3, 0.34), "guidance, grcd-full": (0.28, 0.3), "conditional, masks to 95 %": wide})
    assert said in compared(law)
    assert "0.04 %" in compared(law)
