"""A six-node graph, signals on it that are neither Gaussian nor in natural units, and a model fitted to them."""

import math

import benches
import commands
import laws
import numpy as np
import pytest
import torch
from hypothesis import settings

import grcd
from grcd import contests
from grcd.bench import runner, suites
from grcd.training import budget
from grcd.training import fit as training

settings.load_profile(laws.TEST)  # derandomize: the same examples every time, unless laws.FUZZ is asked for
torch.set_num_threads(1)  # the tensors are tiny: on a busy machine threads spend their time waiting for each other

EDGES = [(0, 1, 1.0), (1, 2, 0.5), (2, 3, 2.0), (3, 4, 1.0), (4, 5, 0.7), (5, 0, 1.3), (1, 4, 0.4)]
SETTINGS = {"width": 8, "batch": 16, "max_updates": 60, "validate_every": 20, "lr": 3e-3, "ema": 0.9}  # read-only
CONTESTS = {"of_series": contests.of_series, "of_signals": contests.of_signals}

# What takes longest comes first: of two workers, neither waits for the other at the end.
LONG = [
    "test_docs",
    "test_many",
    "test_two_processes",
    "test_runner",
    "test_measuring",
    "test_cli",
    "test_likelihood",
    "test_folder",
    "test_report",
]


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: LONG.index(item.path.stem) if item.path.stem in LONG else len(LONG))


@pytest.fixture(autouse=True)
def nothing_is_long(monkeypatch):
    """How long a training would take depends on what else the machine does: no warning of it fails a test."""
    monkeypatch.setattr(budget, "LONG", math.inf)


@pytest.fixture(scope="session", autouse=True)
def no_contests():
    """Trainings end without the contest of candidates and competitors, which takes longer than most of them do here;
    ``contested`` brings it back."""
    with pytest.MonkeyPatch.context() as patch:
        for name in CONTESTS:
            patch.setattr(contests, name, lambda *args: None)
        yield


@pytest.fixture
def contested(monkeypatch):
    """Trainings end as they do for users."""
    for name, contest in CONTESTS.items():
        monkeypatch.setattr(contests, name, contest)


class Zeros(torch.nn.Module):
    """A network that adds nothing to its reference."""

    def forward(self, x, t):
        return torch.zeros_like(x)


def speaking(model):
    """The model, with a network that adds something: the first of few updates may not be better than none."""
    with torch.no_grad():
        model.network.output.copy_(
            torch.linspace(-0.05, 0.05, model.network.output.numel()).view_as(model.network.output)
        )
    return model


def six_nodes():
    W = np.zeros((6, 6))
    for i, j, w in EDGES:
        W[i, j] = W[j, i] = w
    return grcd.Graph.from_adjacency(W, node_ids=[f"station {i}" for i in range(6)])


def signals(graph, n, seed):
    """Two clusters with correlated noise; every node has its own mean and scale."""
    random = np.random.RandomState(seed)
    mix = np.random.RandomState(99).standard_normal((len(graph), len(graph)))
    side = 2.0 * random.randint(0, 2, size=(n, 1)) - 1.0
    z = random.standard_normal((n, len(graph))) @ mix + 2.0 * side * np.linspace(-1, 1, len(graph))
    return 10.0 + np.arange(len(graph)) + z * np.linspace(0.5, 3.0, len(graph))


@pytest.fixture
def here(monkeypatch, capsys):
    """A `grcd` command in this process: `here("train", "--data", ..., cwd=folder)`, with what came of it."""
    return commands.inside(monkeypatch, capsys)


@pytest.fixture(scope="session")
def tiny():
    graph = six_nodes()
    parts = {
        split: signals(graph, n, seed) for seed, (split, n) in enumerate({"train": 60, "val": 30, "test": 40}.items())
    }
    return grcd.Dataset("tiny", graph, **parts)


@pytest.fixture(scope="session")
def sides():
    """Signals on two sides, far enough apart that one Gaussian will not do: 80 for training, 40 for validation."""
    random = np.random.RandomState(0)
    side = 5.0 * (2 * random.randint(0, 2, size=(120, 1)) - 1) * np.linspace(0.5, 1.0, 6)
    x = 10.0 + random.standard_normal((120, 6)) * np.linspace(0.5, 2.0, 6) + side
    return x[:80], x[80:]


@pytest.fixture(scope="session")
def quick():
    """Keywords of a training that takes half a second: sixty updates, three validations."""
    return SETTINGS


@pytest.fixture(scope="session")
def fitted(tiny, quick):
    """A spectral reference and its network after sixty updates. Read-only: a test that changes one makes its own."""
    return grcd.GRCD(tiny.graph, "grcd-exponential", seed=3, device="cpu", **quick).fit(tiny.train, tiny.val)


# -- the benchmark, see benches.py -------------------------------------------------------------------------------------


@pytest.fixture
def on_tiny(monkeypatch, tiny):
    """The benchmark, with the tiny dataset for any."""
    monkeypatch.setattr(runner, "load_dataset", lambda name, **options: tiny)
    monkeypatch.setattr(suites, "SETTINGS", (*suites.SETTINGS, "tiny"))


@pytest.fixture
def bench(tmp_path, on_tiny):
    return benches.Bench(tmp_path)


@pytest.fixture
def trainings(monkeypatch):
    """The methods that were trained, in order. A run folder that has finished is not trained again."""
    begun, fit = [], training.fit

    def counted(space, config, *args, **hooks):
        begun.append(config.method)
        return fit(space, config, *args, **hooks)

    monkeypatch.setattr(training, "fit", counted)
    return begun
