"""Masks, scores and baselines of filled gaps, by hand and against naive ones; and the suite that runs them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import close, examples
from scipy.stats import multivariate_normal

import grcd
from grcd.bench import fillings as table_of
from grcd.bench import runner, suites
from grcd.bench.cells import Cell, read, write
from grcd.evaluation import fillers, filling
from grcd.references.covariance import ledoit_wolf

law = examples(30)
POINT = ("fill-mean", "fill-iterative")


@pytest.mark.parametrize("kind", filling.MASKS)
def test_a_mask_hides_its_share_and_leaves_something_of_every_signal(kind):
    found = filling.hidden(kind, 960, 30)
    share = {"random-25": 0.25, "random-75": 0.75, "sensors": 0.1, "blocks": 0.25}[kind]
    runs = 24 if kind == "blocks" else 1
    assert found.mean() == pytest.approx(share, abs=5 * np.sqrt(share * (1 - share) * runs / found.size))
    assert not found.all(axis=1).any()
    assert np.array_equal(found, filling.hidden(kind, 960, 30))
    if kind != "sensors":
        assert not np.array_equal(found, filling.hidden(kind, 960, 30, seed=1))


def test_silent_sensors_are_silent_throughout_and_blocks_for_a_day():
    silent = filling.hidden("sensors", 50, 30)
    assert (silent == silent[0]).all()
    assert silent[0].sum() == 3
    blocks = filling.hidden("blocks", 480, 30)
    for node in blocks.T:
        ends = np.flatnonzero(np.diff(node.astype(int)))
        assert (np.diff(ends) % filling.RUN == 0).all()  # whole runs, one after the other
    assert len({tuple(np.flatnonzero(np.diff(node.astype(int))) % filling.RUN) for node in blocks.T if node.any()}) > 3


def test_an_unknown_mask_is_told_the_known_ones():
    for kind in ("random-50", "block"):
        with pytest.raises(grcd.InputError, match="random-25, random-75, sensors, blocks"):
            filling.hidden(kind, 5, 5)


def test_scores_of_three_draws_by_hand():
    """Draws 1, 2, 6 of a reading 3: median 2, mean 3; E|x - y| = 2, E|x - x'| over pairs = (1 + 5 + 4) / 3."""
    draws = np.array([6.0, 1.0, 2.0]).reshape(3, 1, 1)
    found = filling.score([(np.array([0]), draws)], np.array([[3.0]]), np.array([[True]]))
    assert found["mae"] == 1.0
    assert found["rmse"] == 0.0
    assert found["crps"] == pytest.approx(2 - 10 / 3 / 2)
    # Levels 1/4, 1/2, 3/4: quartiles 1 and 6, so 3 is inside.
    assert (found["cover_50"], found["cover_90"], found["readings"]) == (1.0, 1.0, 1)
    low = filling.score([(np.array([0]), draws)], np.array([[0.9]]), np.array([[True]]))
    assert (low["cover_50"], low["cover_90"]) == (0.0, 0.0)


@law
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 7))
def test_crps_is_its_naive_double_sum_and_adds_up_over_parts(seed, n):
    random = np.random.default_rng(seed)
    draws, truth = random.standard_normal((n, 6, 4)), random.standard_normal((6, 4))
    where = random.random((6, 4)) < 0.6
    where[0, 0] = True
    first = np.abs(draws - truth).mean(0)
    second = sum(np.abs(draws[i] - draws[j]) for i in range(n) for j in range(n) if i != j) / (n * (n - 1))
    whole = filling.score([(np.arange(6), draws)], truth, where)
    close(whole["crps"], (first - second / 2)[where].mean(), 1e-14, size=first)
    parts = [(rows, draws[:, rows]) for rows in (np.array([4, 0, 2]), np.array([1, 5, 3]))]
    again = filling.score(parts, truth, where)
    assert again == pytest.approx(whole, rel=0, abs=1e-14 * first.max())


def test_draws_from_the_truths_own_distribution_cover_as_they_should():
    random = np.random.default_rng(0)
    draws, truth = random.standard_normal((40, 4000, 5)), random.standard_normal((4000, 5))
    found = filling.score([(np.arange(4000), draws)], truth, np.ones_like(truth, dtype=bool))
    error = 5 * np.sqrt(0.25 / truth.size)
    assert found["cover_50"] == pytest.approx(0.5, abs=error)
    assert found["cover_90"] == pytest.approx(0.9, abs=error)
    assert found["crps"] == pytest.approx(1 / np.sqrt(np.pi), rel=0.02)


# -- baselines ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def holes(tiny):
    x = np.where(np.random.RandomState(3).random_sample(tiny.test.shape) < 0.3, np.nan, tiny.test)
    x[:2, 0] = np.nan  # nothing before it
    return x


@pytest.mark.parametrize("name", fillers.FILLERS)
def test_every_filler_fills_every_gap_and_touches_nothing_else(tiny, holes, name):
    rows, found = zip(*fillers.filler(name, tiny)(holes, 3, 0), strict=True)
    assert np.concatenate(rows).tolist() == list(range(len(holes)))
    found = np.concatenate(found, axis=1)
    seen = ~np.isnan(holes)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[:, seen], np.broadcast_to(holes[seen], (len(found), seen.sum())), rtol=1e-9)


def test_mean_and_last_by_hand(tiny):
    z = np.array([[np.nan, 1.0], [2.0, np.nan], [np.nan, np.nan], [3.0, 4.0]])
    assert (fillers.mean(tiny)(z) == [[0, 1], [2, 0], [0, 0], [3, 4]]).all()
    assert (fillers.last(tiny)(z) == [[0, 1], [2, 1], [2, 1], [3, 4]]).all()
    assert (fillers.linear(tiny)(z) == [[2, 1], [2, 2], [2.5, 3], [3, 4]]).all()
    assert (fillers.linear(tiny)(np.full((3, 2), np.nan)) == 0).all()


def test_neighbours_are_the_nearest_that_have_a_reading(tiny, monkeypatch):
    monkeypatch.setattr(fillers, "NEIGHBOURS", (2,))
    z = np.arange(6.0)[None] * 10
    z[0, [0, 1]] = np.nan
    # Node 0 hangs on 5 (weight 1.3) and 1 (1.0, a gap); two hops away are 2 and 4, whose weight to it is zero,
    # hence the first of them. The neighbours of node 1 are 2 (0.5) and 4 (0.4).
    found = fillers.neighbours(tiny)(z)
    assert found[0, 0] == pytest.approx((50 + 20) / 2)
    assert found[0, 1] == pytest.approx((20 + 40) / 2)


def test_tikhonov_solves_its_equations(tiny, monkeypatch):
    monkeypatch.setattr(fillers, "WEIGHTS", (0.7,))
    z = np.array([[1.0, np.nan, -2.0, np.nan, 0.5, np.nan]])
    L = tiny.graph.combinatorial.toarray() / tiny.graph.degree.mean()
    seen = np.diag((~np.isnan(z[0])).astype(float))
    expected = np.linalg.solve(seen + 0.7 * L + 0.7 * np.eye(6), seen @ np.nan_to_num(z[0]))
    found = fillers.tikhonov(tiny)(z)
    assert found[0, [1, 3, 5]] == pytest.approx(expected[[1, 3, 5]])


@pytest.mark.parametrize("name", fillers.FILLERS)
def test_no_filler_looks_at_test_signals(tiny, holes, name):
    found, expected = (
        [drawn for _, drawn in fillers.filler(name, data)(holes, 2, 0)]
        for data in (replace(tiny, test=np.full_like(tiny.test, 1e3)), tiny)
    )
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


def test_what_has_the_least_error_on_real_validation_readings_is_chosen(tiny):
    made_up = np.zeros(tiny.val.shape, dtype=bool)
    made_up[:, 3:] = True
    data = replace(tiny, filled={"val": made_up})
    truth = tiny.normalizer.apply(tiny.val)

    def off(left, right):
        """Off by so much at the first three nodes, and at the others."""
        return lambda z: np.where(np.isnan(z), truth + np.repeat([left, right], 3), z)

    fills = [off(0.3, 0.0), off(0.2, 9.0), off(-0.4, 0.0)]
    assert fillers._best(data, fills) is fills[1]
    assert fillers._best(tiny, fills) is fills[0]


def test_tikhonov_and_neighbours_take_the_better_of_two(tiny, holes, monkeypatch):
    for name, key, values in (("tikhonov", "WEIGHTS", (0.1, 100.0)), ("neighbours", "NEIGHBOURS", (1, 5))):
        fits = []
        monkeypatch.setattr(fillers, "_best", lambda data, fills, fits=fits: fits.extend(fills) or fills[0])
        monkeypatch.setattr(fillers, key, values)
        getattr(fillers, name)(tiny)
        assert len(fits) == len(values) ** (2 if name == "tikhonov" else 1)
        assert len({fit(tiny.normalizer.apply(holes)).tobytes() for fit in fits}) == len(fits)  # no two are alike


def test_the_imputer_learns_how_nodes_hang_together(sides):
    train, test = sides
    data = grcd.Dataset("sides", grcd.Graph.from_adjacency(1 - np.eye(6)), train, test[:20], test[20:])
    x = data.test.copy()
    x[:, 2] = np.nan
    off = {name: np.abs(next(fillers.filler(name, data)(x, 1, 0))[1][0] - data.test)[:, 2].mean() for name in POINT}
    assert off["fill-iterative"] < 0.5 * off["fill-mean"]


def test_the_gaussian_draws_from_its_exact_posterior(tiny, holes):
    n, x = 3000, holes[[5]]
    ((_, found),) = fillers.filler("fill-gaussian", tiny)(x, n, 0)
    z, C = tiny.normalizer.apply(found[:, 0]), ledoit_wolf(tiny.normalizer.apply(tiny.train))
    o = ~np.isnan(x[0])
    gain = C[np.ix_(~o, o)] @ np.linalg.inv(C[np.ix_(o, o)])
    mean, left = gain @ tiny.normalizer.apply(x)[0, o], C[np.ix_(~o, ~o)] - gain @ C[np.ix_(o, ~o)]
    assert multivariate_normal(mean, left).logpdf(z[:, ~o]).mean() == pytest.approx(
        -(len(mean) * (1 + np.log(2 * np.pi)) + np.linalg.slogdet(left)[1]) / 2, abs=5 * np.sqrt(len(mean) / 2 / n)
    )


# -- the suite ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def known(tiny, monkeypatch):
    monkeypatch.setattr(suites, "SETTINGS", ("tiny",))
    monkeypatch.setattr(runner, "load_dataset", lambda name: tiny)
    monkeypatch.setattr(runner, "FILLINGS", 4)


def test_the_suite_fills_scores_and_prints(known, tiny, quick, tmp_path):
    cells = suites.cells("impute", ["tiny"], [0])
    settings = {key: value for key, value in quick.items() if key != "lr"}
    assert runner.run(cells, tmp_path, tmp_path / "runs", "cpu", 1, settings) == (len(cells), 0)
    assert len(cells) == 2 * 4 * (len(fillers.FILLERS) + 3)  # how good, and how fast
    cell = Cell("tiny", "fill-mean", mask="random-25")
    gone = filling.hidden("random-25", *tiny.test.shape)
    expected = np.abs(tiny.test - tiny.train.mean(axis=0))[gone].mean()
    assert read(cell, tmp_path)["filling"]["mae"] == pytest.approx(expected, rel=1e-9)
    text = table_of.table(["tiny"], [0], tmp_path, "md")
    assert all(f"### tiny, {mask}" in text for mask in filling.MASKS)
    assert text.count("| grcd, reference |") == text.count("| fill-gaussian |") == 4


def test_the_table_by_hand(known, tmp_path):
    def put(cell, crps, cover):
        scores = {"mae": 2.0, "rmse": 3.0, "crps": crps, "cover_50": cover / 2, "cover_90": cover, "readings": 7}
        write(cell, tmp_path, filling=scores)

    put(Cell("tiny", "fill-mean", mask="sensors"), 2.0, 0.0)
    write(Cell("tiny", "fill-mean", mask="sensors", timed=True), tmp_path, time={"filling": 0.5})
    put(Cell("tiny", "grcd", 0, 16, mask="sensors"), 1.0, 0.8)
    put(Cell("tiny", "grcd", 1, 16, mask="sensors"), 1.2, 0.9)
    text = table_of.table(["tiny"], [0, 1], tmp_path, "md")
    assert "| fill-mean | 2.000 | 3.000 | 2.000 | - | - | 0.500 |" in text
    assert "| 1.100 +- 0.141 | 0.425 +- 0.035 | 0.850 +- 0.071 | - |" in text  # not bold: others may be better
    assert "| fill-last | - | - | - | - | - | - |" in text
    for cell in suites.cells("impute", ["tiny"], [0, 1]):
        if cell.mask == "sensors" and not cell.timed and read(cell, tmp_path) is None:
            put(cell, 1.3, 0.9)
    text = table_of.table(["tiny"], [0, 1], tmp_path, "md")
    assert text.count("**") == 2
    assert "| **1.100 +- 0.141** | 0.425 +- 0.035 | 0.850 +- 0.071 | - |" in text
    lines = table_of.table(["tiny"], [0, 1], tmp_path, "csv").splitlines()
    assert 'tiny,sensors,"grcd, NFE 16",crps,1.100000,0.141421,2' in lines
    assert r"\textbf{1.100 $\pm$ 0.141}" in table_of.table(["tiny"], [0, 1], tmp_path, "tex")
    with pytest.raises(grcd.InputError, match="grcd bench run impute"):
        table_of.table(["tiny"], [5], tmp_path / "none", "md")


def test_readings_that_were_filled_in_do_not_count(tiny, tmp_path, monkeypatch):
    made_up = np.random.RandomState(2).random_sample(tiny.test.shape) < 0.4
    data = replace(tiny, filled={"test": made_up})
    monkeypatch.setattr(suites, "SETTINGS", ("tiny",))
    monkeypatch.setattr(runner, "load_dataset", lambda name: data)
    cell = Cell("tiny", "fill-mean", mask="random-25")
    assert runner.run([cell], tmp_path, tmp_path / "runs", "cpu", 1, {}) == (1, 0)
    gone = filling.hidden("random-25", *tiny.test.shape) & ~made_up
    found = read(cell, tmp_path)["filling"]
    assert found["readings"] == gone.sum()
    assert found["mae"] == pytest.approx(np.abs(tiny.test - tiny.train.mean(axis=0))[gone].mean(), rel=1e-9)


def test_cells_ask_for_what_they_say(known, tiny, quick, tmp_path, monkeypatch):
    """Draws, evaluations, seed and posterior; and a time is that of a thousand signals, drawn to the end."""
    asked, clock = [], [0.0]

    def fillings(self, x, n, nfe, seed, posterior):
        asked.append((n, nfe, seed, posterior))
        for row in range(len(x)):
            clock[0] += 0.5
            yield np.array([row]), x[None, [row]] * 0.0 + np.zeros((n, 1, 6))

    monkeypatch.setattr(grcd.GRCD, "fillings", fillings)
    monkeypatch.setattr(runner, "time", SimpleNamespace(perf_counter=lambda: clock[0], monotonic=lambda: clock[0]))
    monkeypatch.setattr(filling, "score", lambda found, *_: {"readings": len(list(found))})
    cells = [cell for cell in suites.cells("impute", ["tiny"], [1], ["grcd"]) if cell.mask == "sensors"]
    settings = {key: value for key, value in quick.items() if key != "lr"}
    assert runner.run(cells, tmp_path, tmp_path / "runs", "cpu", 1, settings) == (6, 0)
    assert {*asked} == {(4, 1, 1, "reference"), (4, 8, 1, "diffusion"), (4, 16, 1, "diffusion")}
    for cell in cells:
        assert not cell.timed or read(cell, tmp_path)["time"] == {"filling": pytest.approx(500.0)}


def test_silent_sensors_are_the_same_however_many_signals():
    assert (filling.hidden("sensors", 5, 30)[0] == filling.hidden("sensors", 5000, 30)[0]).all()
