"""Large graphs, made small: what is trained on them, what is not, and that it says so."""

import json
import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from laws import close

import grcd
from grcd.core.errors import InputError, InputWarning
from grcd.data.formats.exported import write_dataset
from grcd.graphs import graph as graphs
from grcd.graphs.graph import Graph
from grcd.networks import nodenet
from grcd.networks.nothing import Nothing
from grcd.references import sparse_fit
from grcd.references.precision import Given
from grcd.references.sparse import Sparse
from grcd.training import large

NODES = 60
PLACES = np.random.default_rng(0).random((NODES, 2))
QUICK = {"width": 8, "max_updates": 6, "validate_every": 3, "batch": 16, "time_dim": 8}


@pytest.fixture
def network(monkeypatch):
    """A graph that counts as large, and signals on it in some unit."""
    monkeypatch.setattr(graphs, "LARGE", 50)
    monkeypatch.setattr(nodenet, "LARGE", 50)
    graph = Graph.from_coordinates(PLACES)
    K = 0.2 * sp.eye_array(NODES) + graph.normalized
    noise = torch.from_numpy(np.random.default_rng(1).standard_normal((400, NODES)))
    x = Sparse(Given(sp.csr_array(K @ K)), np.zeros((NODES, 0))).draw(noise).numpy()
    return graph, 20 + 3 * x[:340], 20 + 3 * x[340:]


def small_only(function):
    """The same, of matrices with fewer rows than the graph has nodes."""

    def checked(matrix, *args, **kwargs):
        assert matrix.shape[-1] < NODES
        return function(matrix, *args, **kwargs)

    return checked


@pytest.fixture
def alone(network, monkeypatch):
    """A model whose network there was no time for; nothing dense was made for it."""
    graph, train, val = network
    monkeypatch.setattr(large, "SPEED", {"cpu": 1.0, "cuda": 1.0})
    for name in ("eigh", "eigvalsh", "cholesky", "inv"):
        monkeypatch.setattr(np.linalg, name, small_only(getattr(np.linalg, name)))
    with pytest.warns(
        InputWarning, match="a network on 60 nodes cannot be trained in an hour here .*GPU.* reference alone"
    ):
        return grcd.GRCD(graph, device="cpu").fit(train, val)


def test_without_time_for_a_network_the_reference_is_the_model_and_its_draws_are_exact(alone, tmp_path):
    assert isinstance(alone.reference, Sparse)
    assert isinstance(alone.diffusion.network, Nothing)
    assert alone.result["updates"] == 0
    assert alone.result["stopped"].endswith("the reference alone")
    from grcd.core.streams import Stream

    noise = Stream(7, "terminal").normal(0, 5 * NODES).view(5, NODES)
    close(alone.sample(5, seed=7), alone.normalizer.undo(alone.reference.draw(noise).numpy()))
    alone.save(tmp_path / "run")
    again = grcd.load(tmp_path / "run", device="cpu")
    assert json.loads((tmp_path / "run/run.json").read_text())["result"]["updates"] == 0
    assert np.array_equal(again.sample(3), alone.sample(3))


def test_gaps_are_filled_and_signals_scored_by_the_reference(alone, network):
    x = network[2][:3].copy()
    x[:, ::3] = np.nan
    filled = alone.impute(x, n=50)
    assert np.array_equal(filled[:, ~np.isnan(x)], np.broadcast_to(x[~np.isnan(x)], (50, (~np.isnan(x)).sum())))
    z = torch.from_numpy(alone.normalizer.apply(x))
    mean = alone.normalizer.undo(alone.reference.posterior(z, ~z.isnan()).mean.numpy())
    spread = filled.std(0)[np.isnan(x)].mean()
    assert np.abs(filled.mean(0) - mean)[np.isnan(x)].mean() < 0.3 * spread
    value, error = alone.log_prob(x, posterior="reference")
    assert np.isfinite(value).all()
    assert not error.any()
    readings = alone.node_log_prob(x)
    assert np.array_equal(np.isnan(readings), np.isnan(x))
    assert abs(np.nanmean(readings)) < 2


@pytest.mark.filterwarnings("ignore:the network of this run adds nothing")
@pytest.mark.parametrize("method", ["grcd", "grcd-gnn"])
def test_with_time_a_network_is_trained_by_sparse_products(network, method, tmp_path):
    graph, train, val = network
    train = np.where(np.random.default_rng(2).random(train.shape) < 0.05, np.nan, train)
    model = grcd.GRCD(graph, method, device="cpu", **QUICK).fit(train, val, None)
    assert model.result["updates"] == 6
    assert isinstance(model.reference, Sparse)
    model.save(tmp_path / "run")
    again = grcd.load(tmp_path / "run", device="cpu")
    for one, other in (
        (model.sample(20, nfe=2, seed=1), again.sample(20, nfe=2, seed=1)),
        (model.impute(train[:2], n=3, nfe=4), again.impute(train[:2], n=3, nfe=4)),
    ):
        assert np.isfinite(one).all()
        assert np.array_equal(one, other)
    if method == "grcd":  # which starts from its reference
        assert np.abs(model.sample(200, nfe=8).std() / np.nanstd(train) - 1) < 0.1


def test_the_network_of_large_graphs_has_no_matrix_of_nodes(network):
    setting = nodenet.Setting(width=8)
    net = nodenet.NodeNet(network[0].spectrum, setting)
    assert sum(p.numel() for p in net.parameters()) == setting.size(NODES)
    assert (NODES, NODES) not in {p.shape for p in net.parameters()}
    assert net.is_zero


def test_with_products_of_low_rank_it_is_the_function_of_small_graphs(network, monkeypatch):
    setting = nodenet.Setting(width=8, blocks=2, time_dim=8)
    by_products = nodenet.NodeNet(network[0].spectrum, setting)
    monkeypatch.setattr(graphs, "LARGE", 4096)
    whole = nodenet.NodeNet(Graph.from_coordinates(PLACES).spectrum, setting)
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in by_products.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        state = by_products.state_dict()
        for k in range(setting.blocks):
            far = (state.pop(f"blocks.{k}.{name}") for name in ("from_far", "to_far"))
            state[f"blocks.{k}.A"] = next(far) @ next(far).T
        whole.load_state_dict(state)
        x, t = torch.randn(5, NODES), torch.rand(5, 1)
        close(by_products(x, t).numpy(), whole(x, t).numpy(), 1e-5)


def test_other_methods_are_refused_with_their_name(network):
    graph, _, _ = network
    for method in ("grcd-rho3", "edm", "gad"):
        with pytest.raises(InputError, match=f"the method '{method}' on a graph of 60 nodes"):
            grcd.GRCD(graph, method, device="cpu", **QUICK)  # before there is anything to fit to, or to write


def test_the_reference_alone_can_be_asked_for_on_any_graph(tiny):
    model = grcd.GRCD(tiny.graph, device="cpu", backbone="none").fit(tiny.train, tiny.val)
    assert model.result["stopped"] == "no network was asked for, the reference alone"
    samples = model.sample(2000)
    z = model.normalizer.apply(samples)
    C = model.reference.covariance().numpy()
    assert np.abs(np.cov(z.T) - C).max() < 0.15


def test_arithmetic_says_first_whether_there_is_time_for_a_network(network):
    space, config = grcd.GRCD(network[0], device="cpu").space, grcd.Config(max_updates=5000)
    device = torch.device("cpu")
    seconds = 12.0 * 3 * NODES * 128**2 * large.batch(space, config, device) / large.SPEED["cpu"]
    assert large.updates(space, config, device, 100 * seconds) == 75
    narrow = seconds / 128**2 * large.NARROWEST**2
    assert large.hopeless(space, config, device, 2000 * narrow / 0.75 * 0.99)
    assert not large.hopeless(space, config, device, 2000 * narrow / 0.75 * 1.01)

    def never(settings):
        raise AssertionError("nothing is timed where there is no hope")

    assert large.decided(space, config, device, never, lambda: narrow) == {"backbone": "none"}


def test_where_there_is_hope_a_network_is_timed_and_made_narrower(network):
    space, config = grcd.GRCD(network[0], device="cpu").space, grcd.Config(max_updates=5000, batch=7)
    device, left = torch.device("cpu"), lambda: 4000.0
    asked = []

    def seconds(settings):  # as the square of the width, and of the batch of seven
        asked.append(settings)
        return (settings.get("width", 128) / 128) ** 2 * settings["batch"]

    found = large.decided(space, config, device, seconds, left)  # 3,000 planned with: 428 updates, 1,714, then enough
    assert found == {"width": 32, "max_updates": 5000, "validate_every": config.validate_every, "batch": 7}
    assert [each.get("width", 128) for each in asked] == [128, 64, 32]
    assert large.decided(space, config, device, lambda settings: 60.0, left) == {"backbone": "none"}
    assert large.decided(space, config, device, lambda settings: 0.7, lambda: math.inf) == {"batch": 7}
    assert large.decided(space, config, device, lambda settings: 0.73, lambda: math.inf) == {"backbone": "none"}


def test_what_was_decided_is_kept_with_the_run_and_not_decided_again(network, monkeypatch, tmp_path):
    graph, train, val = network
    first = grcd.GRCD(graph, device="cpu", **QUICK)
    monkeypatch.setattr(large, "batch", lambda *_: 3)
    first.fit(train, val, run=tmp_path / "run")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["settled"] == {"batch": 3}
    monkeypatch.setattr(large, "decided", lambda *_: pytest.fail("decided again"))
    again = grcd.GRCD(graph, device="cpu", **QUICK).fit(train, val, run=tmp_path / "run")
    assert np.array_equal(first.sample(5, nfe=2), again.sample(5, nfe=2))


def test_a_batch_is_what_memory_has_room_for(network, monkeypatch):
    from grcd.core import device as devices

    space, config = grcd.GRCD(network[0], device="cpu").space, grcd.Config()
    monkeypatch.setattr(devices, "room", lambda device: 4 * 4.0 * config.network.kept(NODES) * 10)
    assert large.batch(space, config, torch.device("cpu")) == 10
    monkeypatch.setattr(devices, "room", lambda device: 1.0)
    assert large.batch(space, config, torch.device("cpu")) == 1


def test_reports_and_exported_datasets_are_refused(alone, network, here, tmp_path):
    alone.save(tmp_path / "run")
    np.savez(tmp_path / "x.npz", signals=network[1])
    ended = here("report", "run", "--data", "x.npz", cwd=tmp_path)
    assert ended.returncode == 2
    assert "a report on 60 nodes" in ended.stderr
    data = grcd.Dataset("large", network[0], network[1], network[2], network[2])
    with pytest.raises(InputError, match="a dataset of 60 nodes, whose file would hold a weight for every two"):
        write_dataset(tmp_path / "out.npz", data)
    assert not (tmp_path / "out.npz").exists()


@pytest.mark.parametrize("channels", [1, 2])
def test_windows_on_a_large_graph_have_a_sparse_reference_and_no_network(network, channels, tmp_path):
    graph, steps = network[0], 3
    random = np.random.default_rng(3)
    x = random.standard_normal((400, NODES, channels))
    for t in range(1, len(x)):
        x[t] = 0.9 * x[t - 1] + 0.44 * x[t]
    x = (5 + 2 * x)[:, :, 0] if channels == 1 else 5 + 2 * x
    with pytest.warns(InputWarning, match="no network of windows on 60 nodes: the model is its reference alone"):
        model = grcd.GRCD(graph, device="cpu", window=steps, channels=channels).fit(x[:380])
    assert isinstance(model.series.law.reference, Sparse)
    assert model.result["reference"]["kind"] == "sparse"
    assert model.result["reference"]["lags"] >= 1
    model.save(tmp_path / "run")
    again = grcd.load(tmp_path / "run", device="cpu")
    holes = x[380:].copy()
    holes[random.random(holes.shape) < 0.25] = np.nan
    filled = model.impute(holes, n=30)
    assert np.array_equal(filled, again.impute(holes, n=30))
    missing = np.isnan(holes)
    error, own = np.abs(np.median(filled, 0) - x[380:])[missing].mean(), np.abs(x[380:] - 5)[missing].mean()
    assert error < 0.6 * own  # by the rows before and after
    ahead = model.forecast(x[:380], horizon=steps, n=200)
    assert np.abs(ahead[:, 0].mean(0) - x[379]).mean() < 0.5 * np.abs(x[379] - 5).mean()
    assert np.array_equal(model.sample(2), again.sample(2))


def test_the_sparse_reference_of_windows_can_be_asked_for_on_any_graph(tiny, tmp_path):
    x = np.concatenate([tiny.train, tiny.val])[:300]
    model = grcd.GRCD(tiny.graph, "grcd-sparse", device="cpu", window=3, max_updates=0).fit(x)
    assert model.result["reference"]["kind"] == "sparse"
    model.save(tmp_path / "run")
    assert np.array_equal(grcd.load(tmp_path / "run", device="cpu").sample(2), model.sample(2))


@pytest.mark.filterwarnings("ignore:no network", "ignore:the graph falls into")
def test_a_large_graph_without_a_single_edge_is_filled_by_what_nodes_share(network, tmp_path):
    """One wide mode, that all nodes follow: an exact factor model is the oracle."""
    random, nodes = np.random.default_rng(4), 80
    f, e = random.standard_normal((440, 1)), random.standard_normal((440, nodes))
    x = 7 + 2 * (f + 0.5 * e)
    graph = Graph.from_adjacency(sp.csr_array((nodes, nodes)))
    model = grcd.GRCD(graph, backbone="none", device="cpu").fit(x[:340], x[340:400])
    model.save(tmp_path / "run")
    holes = x[400:].copy()
    holes[:, ::2] = np.nan
    filled = grcd.load(tmp_path / "run", device="cpu").impute(holes, n=200, posterior="reference")
    assert np.array_equal(filled, model.impute(holes, n=200, posterior="reference"))
    best = 7 + (x[400:, 1::2] - 7).sum(1, keepdims=True) / (nodes / 2 + 0.25)  # the mean given half of the nodes
    assert np.sqrt(np.square((filled.mean(0) - best)[:, ::2]).mean()) < 0.35  # of 1 that each has for itself


def test_a_dense_large_graph_is_refused_before_anything_is_written(network, monkeypatch, tmp_path):
    graph, train, val = network
    monkeypatch.setattr(sparse_fit, "NEIGHBOURS", 3)
    for window in (1, 2):
        with pytest.raises(
            InputError, match=r"got a graph of 60 nodes with \d+ pairs, \d+ neighbours a node\nexpected up to 3"
        ):
            grcd.GRCD(graph, window=window, device="cpu").fit(train, val, run=tmp_path / "run")
        assert not (tmp_path / "run").exists()
