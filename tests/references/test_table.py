"""The table of references: every row fits, saves and comes back; and so does one that is added from outside."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from laws import close

import grcd
from grcd.core.streams import Stream
from grcd.references import REFERENCES, Kind, TrainingSignals, mixture_fit
from grcd.references.covariance import ledoit_wolf
from grcd.references.gaussian import Gaussian, spectral
from grcd.references.mixture import Mixture
from grcd.training import methods

EPS_REF, SEED = 1e-3, 5


def training_signals(graph, gaps):
    """Two clusters on six nodes, z-scored; and the basis of a forward process."""
    random = np.random.RandomState(2)
    side = 2.0 * random.randint(0, 2, size=(60, 1)) - 1.0
    z = side + random.standard_normal((60, 6)) @ random.standard_normal((6, 6)) / 3
    z[random.random_sample(z.shape) < gaps] = np.nan
    basis = torch.from_numpy(graph.spectrum.U)
    return z, basis, TrainingSignals.of(z[:40], z[40:], graph.spectrum, basis, EPS_REF, SEED, graph)


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_references_are_fitted_to_signals_whose_gaps_the_papers_gaussian_fills(tiny, gaps):
    z, basis, signals = training_signals(tiny.graph, gaps)
    paper = spectral(ledoit_wolf(z[:40], EPS_REF), tiny.graph.spectrum)
    assert signals.spectral.B is basis  # the very tensor: processes and solvers rely on it
    assert torch.equal(signals.spectral.v, paper.v)
    train, val = (torch.from_numpy(part) for part in (z[:40], z[40:]))
    if gaps:
        train = paper.completed(train, Stream(SEED, "reference gaps").normal(0, train.numel()).view_as(train))
        val = paper.completed(val, Stream(SEED, "reference validation gaps").normal(0, val.numel()).view_as(val))
    expected = {"spectral": paper, "full": mixture_fit.fit(train, 1), "mixture": mixture_fit.select(train, val)}
    for name, reference in expected.items():
        fitted = REFERENCES[name].fit(signals)
        for key, tensor in reference.tensors().items():
            assert torch.equal(fitted.tensors()[key], tensor), (name, key)


@pytest.mark.parametrize("name", REFERENCES)
def test_every_row_comes_back_from_its_tensors_to_the_bit(tiny, name):
    _, basis, signals = training_signals(tiny.graph, 0.1)
    kind, x, u = REFERENCES[name], torch.ones(3, 6).double(), torch.tensor([0.1, 0.5, 0.9]).double()
    reference = kind.fit(signals)
    again = kind.from_tensors(reference.tensors(), basis)
    assert type(again) is type(reference)
    for q in (0.04, 1.0):
        assert torch.equal(again.eps(x, q), reference.eps(x, q))
        assert torch.equal(again.draw(x, q, u), reference.draw(x, q, u))


# -- one from outside --------------------------------------------------------------------------------------------------


class Sides(Mixture):
    """Two Gaussians of one variance on opposite sides of zero: saved as a mean and a number."""

    @classmethod
    def of(cls, mean, v):
        eye = torch.eye(len(mean), dtype=torch.float64, device=mean.device)
        parts = (Gaussian(v.expand(len(mean)), eye),) * 2
        return cls(torch.full_like(mean[:2], 0.5), torch.stack([mean, -mean]), parts)

    @classmethod
    def fit(cls, signals):
        z = signals.complete_train().double()
        mean = (z * torch.sign(z[:, :1])).mean(0)
        return cls.of(mean, (z.square().mean() - mean.square().mean()).clamp(min=0.1))

    def tensors(self):
        return {"mean": self.means[0], "variance": self.parts[0].v[0]}

    @classmethod
    def from_tensors(cls, tensors, basis):
        return cls.of(tensors["mean"], tensors["variance"])


@pytest.fixture
def sides_method(monkeypatch):
    monkeypatch.setitem(REFERENCES, "sides", Kind(Sides.fit, Sides.from_tensors))
    method = replace(methods.METHODS["grcd"], reference="sides", planned=False)
    monkeypatch.setitem(methods.METHODS, "grcd-sides", method)
    return "grcd-sides"


def test_a_reference_from_outside_is_fitted_sampled_conditioned_saved_and_loaded(
    sides_method, sides, tiny, quick, tmp_path
):
    model = grcd.GRCD(tiny.graph, sides_method, device="cpu", **quick).fit(*sides)
    assert isinstance(model.reference, Sides)
    model.save(tmp_path / "run")
    again = grcd.load(tmp_path / "run", device="cpu")
    assert isinstance(again.reference, Sides)
    holes = np.where(np.arange(6) % 2, np.nan, sides[1][:4])
    for one, other in (
        (model.sample(20, seed=1), again.sample(20, seed=1)),
        (model.impute(holes, n=3), again.impute(holes, n=3)),
        (model.impute(holes, n=3, posterior="reference"), again.impute(holes, n=3, posterior="reference")),
        (model.log_prob(sides[1][:2])[0], again.log_prob(sides[1][:2])[0]),
    ):
        assert np.isfinite(one).all()
        assert np.array_equal(one, other)
    x = model.sample(400, seed=2)
    towards = (x - x.mean(0)) @ np.linspace(0.5, 1.0, 6)
    assert 100 < (towards > 0).sum() < 300  # on either side
    close(np.sort(np.sign(model.reference.means[:, 0])), [-1.0, 1.0])
