"""What only a GPU can show: the fused kernel, the captured update and sampler, the same bits twice."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import grcd
import grcd.solvers
from grcd.kernels import silu_norm

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
SOLVERS = [name for name, row in grcd.solvers.SOLVERS.items() if row.process != "heat"]
SETTINGS = {"seed": 3, "width": 16, "validate_every": 20, "max_updates": 60, "batch": 32, "lr": 3e-3}


def small_data():
    W = np.zeros((13, 13))
    W[np.arange(12), np.arange(1, 13)] = 1.0
    random = np.random.RandomState(0)
    return grcd.Graph.from_adjacency(W + W.T), 5 + random.standard_normal((90, 13)).cumsum(axis=1)


def fitted(device, **settings):
    graph, x = small_data()
    return grcd.GRCD(graph, device=device, **SETTINGS).fit(x[:60], x[60:], **settings)


@pytest.fixture(scope="module")
def model():
    return fitted("cuda")


def weights(model):
    return torch.cat([p.detach().flatten().cpu() for p in model.network.parameters()])


@pytest.mark.parametrize("rows", [1, 31, 5000])
def test_the_fused_kernel_and_its_gradients_are_those_of_the_plain_functions(rows):
    torch.manual_seed(0)
    fused = [torch.randn(*shape, device="cuda", requires_grad=True) for shape in ((rows, 64), (64,), (64,))]
    plain = [t.detach().double().requires_grad_() for t in fused]
    g = torch.randn(rows, 64, device="cuda")
    out, expected = silu_norm(*fused), F.layer_norm(F.silu(plain[0]), (64,), plain[1], plain[2])
    out.backward(g)
    expected.backward(g.double())
    pairs = [(out, expected), *((a.grad, b.grad) for a, b in zip(fused, plain, strict=True))]
    for got, want in pairs:
        assert (got - want).norm() <= 1e-6 * want.norm()


def test_the_captured_update_gives_the_same_bits_twice_and_after_an_interrupt(tmp_path, monkeypatch):
    whole = weights(fitted("cuda", run=tmp_path / "whole"))
    assert torch.equal(whole, weights(fitted("cuda", run=tmp_path / "again")))

    from grcd.run import Run

    log = Run.log

    def stop_at_the_second(self, state, record):
        log(self, state, record)
        if state.update == 40:
            raise KeyboardInterrupt

    monkeypatch.setattr(Run, "log", stop_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        fitted("cuda", run=tmp_path / "stopped")
    monkeypatch.setattr(Run, "log", log)
    assert torch.equal(whole, weights(fitted("cuda", run=tmp_path / "stopped")))


def test_a_model_samples_right_after_training():
    model = fitted("cuda")
    for solver in SOLVERS:
        assert np.isfinite(model.sample(20, nfe=4, solver=solver)).all()


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_captured_sampler_gives_the_bits_of_the_plain_one(model, solver, precision):
    stochastic = grcd.solvers.SOLVERS[solver].stochastic
    for batch, sizes in ((None, {50}), (20, {20, 10})):
        samples, captured = [], []
        model.sample(3, nfe=1)  # something else, so that the next is plain
        for seed in (0, 0, 0, 1):
            samples.append(model.sample(50, nfe=5, seed=seed, solver=solver, batch=batch, precision=precision))
            captured.append(set(model._replays))
        assert captured == [set(), *[set() if stochastic else sizes] * 3]  # from the second time on
        assert np.array_equal(samples[0], samples[1])
        assert np.array_equal(samples[0], samples[2])
        model.sample(3, nfe=1)
        assert model._replays == {}
        plain = model.sample(50, nfe=5, seed=1, solver=solver, batch=batch, precision=precision)
        assert np.array_equal(samples[3], plain)  # a captured sampler takes other noise
        assert not np.isin(plain, samples[0]).any()


def test_a_captured_sampler_is_forgotten_with_its_network():
    model, (graph, x) = fitted("cuda"), small_data()
    old = [model.sample(20) for _ in range(3)][-1]
    assert not np.isclose(model.as_method("grcd-rho1").sample(20), old).any()
    model.fit(x[30:], x[:30])
    fresh = grcd.GRCD(graph, device="cuda", **SETTINGS).fit(x[30:], x[:30])
    for _ in range(2):
        assert np.array_equal(model.sample(20), fresh.sample(20))


def test_the_network_alone_runs_beside_a_captured_sampler(model):
    x = model.sample(20)
    alone = model.network_alone(20, evaluations=3)
    for _ in range(2):
        assert np.array_equal(x, model.sample(20))
        alone()


def test_training_there_is_training_here_to_rounding():
    here, there = weights(fitted("cpu")), weights(fitted("cuda"))
    assert (here - there).norm() <= 1e-3 * here.norm()  # TF32 products, 60 updates


def test_a_run_samples_alike_on_both_devices(tmp_path):
    here = fitted("cpu")
    here.save(tmp_path / "run")
    there = grcd.load(tmp_path / "run", device="cuda")
    for solver in SOLVERS:
        x, y = here.sample(50, nfe=5, solver=solver), there.sample(50, nfe=5, solver=solver)
        assert np.abs(x - y).max() <= 1e-4 * np.abs(x).max(), solver
        assert np.abs(there.sample(50, nfe=5, solver=solver, batch=7) - y).max() <= 1e-5 * np.abs(y).max()
    coarse = there.sample(50, nfe=5, precision="bfloat16")
    assert np.abs(coarse - there.sample(50, nfe=5)).max() <= 0.05 * np.abs(coarse).max()
