"""What CONTRIBUTING's table promises: a part from outside goes into its table and is used. Here a solver and a task; a
reference is in ``references/test_table.py``, a network in ``networks/test_setting.py``, a file format in
``data/formats/test_writing.py``, a named dataset in ``data/catalog``."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from laws import close

import grcd
from grcd.data.marginals import ZScored
from grcd.diffusion import solvers
from grcd.diffusion.diffusion import Diffusion


def euler(eps_hat, grid, x_max):
    """``dx~/dq = eps_hat``, one evaluation a step."""
    x = x_max
    for q0, q1 in pairwise(grid):
        x = x + (q1 - q0) * eps_hat(x, float(q0))
    return x


def test_a_solver_from_outside_samples(fitted, monkeypatch):
    monkeypatch.setitem(solvers.SOLVERS, "euler", solvers.Solver(euler, order=1, evaluations=1))
    exact = fitted.sample(9, nfe=64, seed=5, solver="heun", rho=1)
    off = [np.abs(fitted.sample(9, nfe=n, seed=5, solver="euler", rho=1) - exact).max() for n in (16, 32)]
    assert off[0] / off[1] == pytest.approx(2, rel=0.3)  # of first order


def denoised(diffusion: Diffusion, z, q):
    """A task from outside: the signals that a network would make of noisy ones, in one evaluation."""
    with torch.inference_mode():
        return diffusion.process.to_graph(z - q * diffusion.prediction()(z, q), diffusion.process.q_min)


def test_a_task_from_outside_needs_no_more_than_a_diffusion_and_rows(fitted, tiny):
    z, q = ZScored(tiny.test, fitted.normalizer, fitted.device), 0.5
    x = denoised(fitted.diffusion, z[:], q)
    noise = fitted.reference.eps(z[:], q) + fitted.diffusion.prediction().residual(z[:], q, fitted.reference)
    close(x, fitted.process.to_graph(z[:] - q * noise, 0.04), 1e-9)
    assert (x - z[:]).abs().max() > 0.01


def test_a_diffusion_is_frozen_and_says_what_it_is_made_of(fitted):
    with pytest.raises(AttributeError):
        fitted.diffusion.network = None
    assert fitted.diffusion.space.graph is fitted.graph
    assert fitted.diffusion.method == "grcd-exponential"


def test_a_model_says_what_it_is_in_three_lines(fitted, tiny):
    fresh = repr(grcd.GRCD(tiny.graph, device="cpu"))
    assert "not fitted" in fresh
    assert "'grcd'" in fresh
    for text in (fresh, repr(fitted)):
        assert len(text.splitlines()) <= 3
        assert max(map(len, text.splitlines())) <= 120
    assert f"{len(tiny.train)} signals" in repr(fitted)


def test_fit_in_a_run_folder_still_works_and_says_what_takes_its_place(tiny, quick, tmp_path):
    model = grcd.GRCD(tiny.graph, "grcd-exponential", seed=3, device="cpu", **quick)
    with pytest.warns(DeprecationWarning, match=r"grcd\.train"):
        model.fit(tiny.train, tiny.val, run=tmp_path / "one", name=tiny.name)
    other = grcd.train(grcd.GRCD(tiny.graph, "grcd-exponential", seed=3, device="cpu", **quick), tiny, tmp_path / "two")
    assert np.array_equal(model.sample(5), other.sample(5))
    assert np.array_equal(grcd.load(tmp_path / "two", device="cpu").sample(5), other.sample(5))
    assert other.facts["data"]["name"] == tiny.name
    with pytest.raises(grcd.InputError, match=r"(?s)of type ndarray.*load_dataset"):
        grcd.train(model, tiny.train, tmp_path / "three")


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_a_device_that_is_not_there_is_no_damage_of_the_run(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    with pytest.raises(grcd.InputError, match="sees no GPU") as caught:
        grcd.load(tmp_path / "run", device="cuda")
    assert "do not fit together" not in str(caught.value)
