"""The benchmark on the tiny dataset."""

import pytest
from benches import Bench

from grcd.bench import runner, suites
from grcd.training import fit as training


@pytest.fixture
def on_tiny(monkeypatch, tiny):
    monkeypatch.setattr(runner, "load_dataset", lambda name, **options: tiny)
    monkeypatch.setattr(suites, "SETTINGS", (*suites.SETTINGS, "tiny"))


@pytest.fixture
def bench(tmp_path, on_tiny):
    return Bench(tmp_path)


@pytest.fixture
def trainings(monkeypatch):
    """The methods that were trained, in order. A run folder that has finished is not trained again."""
    begun, fit = [], training.fit

    def counted(space, config, *args, **hooks):
        begun.append(config.method)
        return fit(space, config, *args, **hooks)

    monkeypatch.setattr(training, "fit", counted)
    return begun
