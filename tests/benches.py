"""A benchmark on the tiny dataset, in a folder of its own, and what tests of it share."""

import json
from types import SimpleNamespace

import grcd
from grcd.bench import measuring, runner, tables
from grcd.training.methods import METHODS

SETTINGS = {"width": 8, "batch": 16, "max_updates": 20, "validate_every": 10}
# What may differ between two runs of a cell; of the training its seconds.
CLOCKS = ("seconds", "seconds_per_1000", "date", "training")


class Bench:
    """A benchmark on the tiny dataset, in a folder of its own."""

    def __init__(self, folder):
        self.results, self.runs = folder / "results", folder / "runs"

    def run(self, cells, jobs=1, **settings):
        return runner.run(cells, self.results, self.runs, "cpu", jobs, SETTINGS | settings)

    def read(self, cell):
        return json.loads(cell.path(self.results).read_text())

    def scores(self, cells):
        """Everything measured, without what depends on the clock."""
        found = {cell: self.read(cell) for cell in cells}
        return {cell: {key: value for key, value in of.items() if key not in CLOCKS} for cell, of in found.items()}

    def times(self):
        return {path: path.stat().st_mtime_ns for path in self.results.rglob("*.json")}

    def table(self, suite, cells, kind):
        return tables.render(tables.collected(suite, cells, self.results), kind)


class Clock:
    """Time that passes only when told to."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        for module in (runner, measuring):
            clock = SimpleNamespace(perf_counter=lambda: self.now, monotonic=lambda: self.now)
            monkeypatch.setattr(module, "time", clock)

    def passes(self, seconds):
        self.now += seconds


def sampling(monkeypatch, instead):
    """``instead(model, nfe, x)`` takes the place of what is sampled."""
    sample = grcd.GRCD.sample

    def changed(self, n, nfe=4, *args, **choices):
        return instead(self, nfe, sample(self, n, nfe, *args, **choices))

    monkeypatch.setattr(grcd.GRCD, "sample", changed)


def by_hand(tiny, method, seed, **settings):
    """The network of a cell, without the benchmark: the paper's stopping rule is the benchmark's, but for methods
    that have one of their own."""
    chosen = {"stopping": "paper", **dict(METHODS[method].settings), **SETTINGS, **settings}
    return grcd.GRCD(tiny.graph, method, seed, "cpu", **chosen).fit(tiny.train, tiny.val)
