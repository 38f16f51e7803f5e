"""What only a GPU can show: the fused kernel, the captured update and sampler, the same bits twice."""

import copy
import gc
import math
import re
import subprocess
import sys
import weakref

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import grcd
from grcd.core import device as devices
from grcd.core.streams import Stream
from grcd.diffusion import conditional as windows
from grcd.diffusion import solvers
from grcd.diffusion.conditional import Conditional
from grcd.diffusion.process import HeatProcess
from grcd.graphs.space import SignalSpace
from grcd.networks import block_kernels
from grcd.networks.kernels import silu_norm
from grcd.networks.spacetime import Block
from grcd.references import gaussian as reference
from grcd.references.conditioning import Dense
from grcd.references.mixture import Mixture
from grcd.references.stationary import Shrinkage, Stationary, lag_covariances
from grcd.tasks import sample as sampling
from grcd.training import conditional as training
from grcd.training.conditional import Setting, State, Update, fresh_network
from grcd.training.pool import Fold, Pool

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
SOLVERS = [name for name, row in solvers.SOLVERS.items() if row.process is not HeatProcess]
MIXED = [name for name in SOLVERS if not solvers.SOLVERS[name].gaussian and name != "heun-edm"]  # for a mixture
SETTINGS = {"seed": 3, "width": 16, "validate_every": 20, "max_updates": 60, "batch": 32, "lr": 3e-3}


def small_data():
    W = np.zeros((13, 13))
    W[np.arange(12), np.arange(1, 13)] = 1.0
    random = np.random.RandomState(0)
    return grcd.Graph.from_adjacency(W + W.T), 5 + random.standard_normal((90, 13)).cumsum(axis=1)


def fitted(device, method="grcd-exponential", **settings):
    """By default a spectral reference, which every solver serves."""
    graph, x = small_data()
    return grcd.GRCD(graph, method, device=device, **SETTINGS).fit(x[:60], x[60:], **settings)


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


@pytest.mark.parametrize(
    ("steps", "columns", "width", "heads"), [(24, 207, 128, 4), (12, 5, 64, 4), (40, 3, 32, 2), (1, 9, 32, 1)]
)
def test_the_kernels_of_a_block_are_as_near_to_it_as_its_plain_operations(monkeypatch, steps, columns, width, heads):
    torch.manual_seed(0)
    block = Block(width, heads, width).cuda()
    with torch.no_grad():
        for p in block.parameters():
            p.add_(0.1 * torch.randn_like(p))
    h, tau = torch.randn(3, steps, columns, width, device="cuda"), torch.randn(3, width, device="cuda")
    S = torch.rand(columns, columns, device="cuda") / columns
    with torch.no_grad():
        exact = copy.deepcopy(block).double()(h.double(), tau.double(), S.double())
        with windows.autocast(h.device):
            plain = block(h, tau, S)
            monkeypatch.setattr(block_kernels, "TRIED", True)
            assert block_kernels.serves(h, heads)
            quick = block(h, tau, S)
    error, allowed = (quick - exact).norm(), (plain - exact).norm()
    assert error <= 2 * allowed  # what lies between the parts is in half of the bits too
    assert allowed <= 0.05 * exact.norm()


@pytest.mark.parametrize("method", ["grcd-exponential", "grcd", "grcd-gnn"])
def test_the_captured_update_gives_the_same_bits_twice_and_after_an_interrupt(tmp_path, monkeypatch, method):
    first = fitted("cuda", method, run=tmp_path / "whole")
    whole, again = weights(first), fitted("cuda", method, run=tmp_path / "again")
    assert torch.equal(whole, weights(again))
    assert again.plan == first.plan

    from grcd.runs.folder import Run

    log = Run.log

    def stop_at_the_second(self, state, record):
        log(self, state, record)
        if state.update == 40:
            raise KeyboardInterrupt

    monkeypatch.setattr(Run, "log", stop_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        fitted("cuda", method, run=tmp_path / "stopped")
    monkeypatch.setattr(Run, "log", log)
    resumed = fitted("cuda", method, run=tmp_path / "stopped")
    assert torch.equal(whole, weights(resumed))
    assert resumed.plan == first.plan


def test_a_model_samples_right_after_training():
    model = fitted("cuda")
    for solver in SOLVERS:
        assert np.isfinite(model.sample(20, nfe=4, solver=solver)).all()


@pytest.mark.parametrize("precision", ["float32", "tf32", "bfloat16"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_captured_sampler_gives_the_bits_of_the_plain_one(model, solver, precision):
    stochastic = solvers.SOLVERS[solver].stochastic
    for batch, sizes in ((None, {50}), (20, {20, 10})):
        samples, captured = [], []
        model.sample(3, nfe=1)  # something else, so that the next is plain
        for seed in (0, 0, 0, 1):
            samples.append(model.sample(50, nfe=5, seed=seed, solver=solver, batch=batch, precision=precision))
            captured.append(set(model._memory.replays))
        assert captured == [set(), *[set() if stochastic else sizes] * 3]  # from the second time on
        assert np.array_equal(samples[0], samples[1])
        assert np.array_equal(samples[0], samples[2])
        model.sample(3, nfe=1)
        assert model._memory.replays == {}
        plain = model.sample(50, nfe=5, seed=1, solver=solver, batch=batch, precision=precision)
        assert np.array_equal(samples[3], plain)  # a captured sampler takes other noise
        assert not np.isin(plain, samples[0]).any()


@pytest.mark.parametrize("method", ["grcd", "grcd-gnn"])
def test_a_planned_method_samples_by_its_plan_captured_or_not(method):
    model = fitted("cuda", method)
    for nfe in (1, 2, 4, 9):
        choice = model.choice(nfe)
        told = {"solver": choice.solver, "grid": choice.grid, "start": choice.start}
        told |= {"rho": choice.rho} if choice.grid == "power" else {}
        samples = [model.sample(50, nfe=nfe, seed=2) for _ in range(3)]  # from the second on captured
        model.sample(3, nfe=1)  # something else
        samples.append(model.sample(50, nfe=nfe, seed=2, **told))
        assert all(np.array_equal(samples[0], other) for other in samples[1:])


def test_garbage_that_holds_a_graph_does_not_spoil_a_capture():
    """Freeing a graph is refused during a capture, and a cycle is freed whenever Python likes."""
    x, enabled = torch.zeros(4, device="cuda"), []
    gc.disable()
    try:
        cycle = [devices.captured(lambda: x.add_(1))]
        cycle.append(cycle)
        del cycle
    finally:
        gc.enable()

    def work():
        enabled.append(gc.isenabled())
        gc.collect()
        x.add_(2)

    gc.disable()  # else the garbage may be gone too early
    try:
        calls = devices.captured(lambda: work() if torch.cuda.is_current_stream_capturing() else None)
    finally:
        gc.enable()
    x.zero_()
    calls()
    assert torch.equal(x.cpu(), torch.full((4,), 2.0))
    devices.captured(work)
    assert enabled == [False, True, True, True, False]
    assert gc.isenabled()


def test_a_captured_graph_holds_what_it_reads_and_writes():
    """CUDA graphs know addresses only: were the tensors freed, a replay would touch whatever lies there by then."""

    class Buffers:
        def __init__(self):
            self.source, self.sink = torch.ones(4, device="cuda"), torch.zeros(4, device="cuda")

        def work(self):
            self.sink.copy_(2 * self.source)

    def captured():
        buffers = Buffers()
        return devices.captured(buffers.work), weakref.ref(buffers)

    replay, held = captured()
    gc.collect()
    assert held() is not None
    held().source.fill_(3.0)
    replay()
    torch.cuda.synchronize()
    assert held().sink.tolist() == [6.0] * 4
    del replay
    gc.collect()
    assert held() is None  # and nobody else does


def test_a_captured_sampler_is_forgotten_with_its_network():
    model, (graph, x) = fitted("cuda"), small_data()
    old = [model.sample(20) for _ in range(3)][-1]
    assert not np.isclose(model.as_method("grcd-rho1").sample(20), old).any()
    model.fit(x[30:], x[:30])
    fresh = grcd.GRCD(graph, "grcd-exponential", device="cuda", **SETTINGS).fit(x[30:], x[:30])
    for _ in range(2):
        assert np.array_equal(model.sample(20), fresh.sample(20))


def test_the_network_alone_runs_beside_a_captured_sampler(model):
    x = model.sample(20)
    alone = sampling.network_alone(model.diffusion, 20, evaluations=3)
    for _ in range(2):
        assert np.array_equal(x, model.sample(20))
        alone()


def test_training_there_is_training_here_to_rounding():
    here, there = weights(fitted("cpu")), weights(fitted("cuda"))
    assert (here - there).norm() <= 1e-3 * here.norm()  # TF32 products, 60 updates


@pytest.mark.parametrize("method", ["grcd-exponential", "grcd-gnn"])
def test_a_run_samples_alike_on_both_devices(tmp_path, method):
    here = fitted("cpu", method)
    here.save(tmp_path / "run")
    there = grcd.load(tmp_path / "run", device="cuda")
    assert there.plan == here.plan
    for solver in [None, *(name for name in SOLVERS if method == "grcd-exponential" or name in MIXED)]:
        x, y = here.sample(50, nfe=5, solver=solver), there.sample(50, nfe=5, solver=solver)
        assert np.abs(x - y).max() <= 1e-4 * np.abs(x).max(), solver
        assert np.abs(there.sample(50, nfe=5, solver=solver, batch=7) - y).max() <= 1e-5 * np.abs(y).max()
    coarse = there.sample(50, nfe=5, precision="bfloat16")
    assert np.abs(coarse - there.sample(50, nfe=5)).max() <= 0.05 * np.abs(coarse).max()


@pytest.mark.parametrize("shape", [(9,), (50, 9), (3, 4, 9)])
def test_a_mixture_has_the_density_and_the_score_that_it_has_on_a_processor(shape):
    random = np.random.default_rng(0)
    roots = random.standard_normal((5, 9, 12))
    full, low = reference.full, lambda C: reference.low_rank(C, 4)
    kinds = (full, full, low, low, full)  # some share their products
    parts = tuple(kind(root @ root.T / 9) for kind, root in zip(kinds, roots, strict=True))
    weights, means = torch.full((5,), 0.2).double(), torch.from_numpy(random.standard_normal((5, 9)))
    here = Mixture(weights, means, parts)
    x = torch.from_numpy(2 * random.standard_normal(shape))
    q = torch.from_numpy(0.1 + random.random((*shape[:-1], 1)))
    for level in (0.3, q):
        there = level.cuda() if isinstance(level, torch.Tensor) else level
        for got, want in zip(here.to("cuda").scored(x.cuda(), there), here.scored(x, level), strict=True):
            torch.testing.assert_close(got.cpu(), want, rtol=1e-9, atol=1e-10 * float(want.abs().max()))


def test_out_of_memory_on_a_gpu_is_an_error_in_three_parts_with_exit_status_2(tmp_path):
    """In a process that may have little of it: the estimate lets this training pass, the GPU does not."""
    graph, x = small_data()
    np.savez(tmp_path / "x.npz", signals=np.tile(x, (40, 1)), adjacency=graph.weights.toarray())
    code = """
import sys, torch
torch.cuda.set_per_process_memory_fraction(0.002)
sys.argv = ["grcd", *sys.argv[1:]]
from grcd.__main__ import main
main()
"""
    command = ["train", "--data", tmp_path / "x.npz", "--device", "cuda", "--out", tmp_path / "run"]
    command += ["--set", "batch=65536", "--max-updates", "2"]
    done = subprocess.run([sys.executable, "-c", code, *map(str, command)], capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    said = done.stderr[done.stderr.index("grcd: got too little memory") :].splitlines()
    assert re.fullmatch(r"grcd: got too little memory: [\d.]+ [MG]iB more were asked for", said[0])
    assert re.fullmatch(r"expected what fits into the [\d.]+ GiB of the GPU", said[1])
    assert "--set batch" in said[2]


# -- windows ---------------------------------------------------------------------------------------------------------

STEPS, NODES = 6, 5
WINDOWS = Setting(width=32, blocks=2, heads=4, pool=200, batch=16, max_updates=12, validate_every=4, lr=3e-3)


def window_space():
    return SignalSpace(grcd.Graph.from_adjacency(np.ones((NODES, NODES)) - np.eye(NODES)), STEPS)


def window_fold(device, seed=0, rows=400):
    """Readings that hang together in time and space, skewed, with gaps; what is kept of them is in full precision."""
    x = Stream(seed, "readings").normal(0, rows * NODES).view(rows, NODES)
    z = torch.stack([x[k : k + rows - 20].mul(0.8**k) for k in range(20)]).sum(0) * 0.6
    z = (z + z.roll(1, 1)).exp().sub(2).div(3)
    z[Stream(seed, "gaps").uniform(0, z.numel()).view_as(z) < 0.1] = math.nan
    stationary = Stationary.of(lag_covariances(z, STEPS), Shrinkage(), dtype=torch.float32)
    reference = stationary.to(device)
    reference.conditioning = Dense(*(matrix.to(device) for matrix in stationary.conditioning.matrices))
    calendar = torch.sin(torch.arange(len(z)) / 9)[:, None].float().to(device)
    starts = torch.arange(len(z) - STEPS, device=device)
    return Fold(z.float().to(device), calendar, starts, reference)


def window_weights(network):
    return torch.cat([p.detach().flatten().cpu() for p in network.parameters()])


def window_training(device="cuda", log=lambda state, record: None, resume=lambda state: None):
    """Trained, whatever it is worth."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "judged", lambda conditional, fold, seed, summary: (conditional, summary))
        return training.fit(window_space(), [window_fold(device)], window_fold(device, 1), WINDOWS, log, resume)[0]


def window_keyed(device):
    def noise(purpose, shape):
        return Stream(5, purpose, device).normal(range(shape[0]), shape[1] * shape[2]).view(shape)

    return noise


@pytest.mark.parametrize("compiled", [False, True])
def test_a_captured_update_of_windows_is_the_plain_one(monkeypatch, compiled):
    """Its gradient: one that is rounded elsewhere moves an optimizer's steps by more than itself, where it is small."""
    monkeypatch.setattr(training, "FUSED", 0 if compiled else math.inf)
    space, fold, gradients, weights = window_space(), window_fold("cuda"), [], []
    with devices.arithmetic("high"):
        pool = Pool.drawn(space, [fold], WINDOWS.pool, 0, "training")
        for plain in (True, False):
            network = fresh_network(space, 1, WINDOWS).cuda()
            with torch.no_grad():  # a fresh one gives nothing, so that most of its gradient is zero
                for place, each in enumerate(network.parameters()):
                    each += 0.1 * Stream(3, "weights", each.device).normal(place, each.numel()).view_as(each)
            update = Update(state := State(network, WINDOWS, 1.0), pool, WINDOWS, STEPS)
            if plain:
                update.network, update.replay = network, update._step
            else:
                assert not compiled or update.network.compiled
            for state.update in range(5):
                update()
                if state.update == 0:
                    gradients.append(torch.cat([each.grad.flatten().clone() for each in network.parameters()]))
            weights.append(torch.cat([window_weights(each) for each in (network, state.ema)]))
    plain, captured = gradients
    assert plain.norm() > 0
    assert (plain - captured).norm() <= (0.02 if compiled else 1e-5) * plain.norm()  # half of the bits, or all
    assert compiled or (weights[0] - weights[1]).norm() <= 1e-5 * weights[0].norm()


@pytest.mark.parametrize("compiled", [False, True])
def test_training_of_windows_that_was_interrupted_ends_with_the_same_bits(monkeypatch, compiled):
    monkeypatch.setattr(training, "FUSED", 0 if compiled else math.inf)
    kept, whole = {}, window_training()

    def stop(state, record):
        if record["update"] == 8:
            kept.update({name: tensor.clone() for name, tensor in state.tensors().items()})
            raise KeyboardInterrupt

    def resume(state):
        state.restore(kept)
        state.update = 8

    with pytest.raises(KeyboardInterrupt):
        window_training(log=stop)
    assert torch.equal(window_weights(whole.network), window_weights(window_training(resume=resume).network))


@pytest.mark.parametrize("net", [True, False])
def test_draws_of_windows_agree_on_both_devices(monkeypatch, net):
    drawn, spread = {}, None
    network = window_training().network.cpu() if net else None
    for device in ("cpu", "cuda", "compiled"):
        if device == "compiled":
            monkeypatch.setattr(windows, "FUSED", 0)
            monkeypatch.setitem(windows.ENTRIES, "cuda", 7 * STEPS * NODES * WINDOWS.width)
        at = "cpu" if device == "cpu" else "cuda"
        fold = window_fold(at)
        z = fold.z[fold.windows(fold.starts[::40], STEPS)].flatten(1)
        observed = ~z.isnan() & (Stream(3, "seen", at).uniform(0, z.numel()).view(z.shape) < 0.6)
        network = network.to(at) if net else None
        model = Conditional(window_space(), fold.reference, network)
        days = fold.calendar[fold.windows(fold.starts[::40], STEPS)]
        for name, x in (
            ("draw", model.draw(z, observed, days, 11, 4, window_keyed(at))),
            ("vary", model.vary(z, observed, days, z.nan_to_num(), 0.5, 11, 4, window_keyed(at))),
        ):
            assert torch.equal(x[:, 0][observed], z[observed])
            drawn[device, name] = x.cpu()
        assert not net or device != "compiled" or model._fused.compiled
        spread = model.reference.posterior(z, observed).sd.cpu() if device == "cpu" else spread
    tolerance = 0.05 if net else 1e-4  # the network works with half of the bits there
    for (device, name), x in drawn.items():
        off = (x - drawn["cpu", name]).square().mean().sqrt()
        assert off <= tolerance * spread.square().mean().sqrt(), (device, name)
