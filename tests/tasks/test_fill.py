"""Filled gaps: what was observed stays, what was not follows the posterior, and files hold what was drawn."""

import shutil
import subprocess
import sys
import time
import tracemalloc
import warnings
from copy import copy
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
import scipy.sparse
import torch
from conftest import Zeros, speaking
from laws import close
from trained import with_parts

import grcd
from grcd import cli
from grcd.core.errors import InputWarning
from grcd.core.streams import Stream
from grcd.data.formats.filled import Filled
from grcd.diffusion import solvers
from grcd.references.observations import Observations


@pytest.fixture(scope="module")
def model(tiny, quick):
    """Read-only: our default, a mixture as reference."""
    return speaking(grcd.GRCD(tiny.graph, seed=3, device="cpu", **quick).fit(tiny.train, tiny.val))


@pytest.fixture(scope="module")
def holes(tiny):
    """Test signals, a third of their readings gone; the first has none left, the second all."""
    x = np.where(np.random.RandomState(4).random_sample(tiny.test.shape) < 1 / 3, np.nan, tiny.test)
    x[0], x[1] = np.nan, tiny.test[1]
    return x


@pytest.fixture
def quietly():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        yield


pytestmark = pytest.mark.usefixtures("quietly")
both = pytest.mark.parametrize("kind", ["diffusion", "reference"])


@both
def test_what_was_observed_comes_out_as_it_went_in_and_every_gap_is_filled(model, holes, kind):
    found = model.impute(holes, n=5, nfe=3, posterior=kind)
    assert found.shape == (5, *holes.shape)
    seen = ~np.isnan(holes)
    assert (found[:, seen] == holes[seen]).all()
    assert np.isfinite(found).all()
    assert (found[:, 1] == holes[1]).all()
    gaps = found[:, ~seen]
    assert len(np.unique(gaps)) == gaps.size  # no two draws alike


@both
def test_neither_the_batch_nor_the_number_of_draws_nor_other_signals_change_a_draw(model, holes, kind):
    whole = model.impute(holes, n=6, nfe=3, seed=2, posterior=kind)
    for batch in (1, 7):
        assert model.impute(holes, n=6, nfe=3, seed=2, posterior=kind, batch=batch) == pytest.approx(whole, rel=1e-4)
    assert model.impute(holes, n=2, nfe=3, seed=2, posterior=kind) == pytest.approx(whole[:2], rel=1e-4)
    assert model.impute(holes[:9], n=6, nfe=3, seed=2, posterior=kind) == pytest.approx(whole[:, :9], rel=1e-4)
    assert np.array_equal(model.impute(holes, n=6, nfe=3, seed=2, posterior=kind), whole)
    gaps = np.isnan(holes)
    assert not np.isin(model.impute(holes, n=6, nfe=3, seed=1, posterior=kind)[:, gaps], whole[:, gaps]).any()


def moments(draws):
    return draws.mean(0), np.cov(draws.T)


@pytest.mark.parametrize("method", ["grcd", "grcd-full", "grcd-exponential"])
@both
def test_without_a_residual_draws_have_the_moments_of_the_exact_posterior(tiny, quick, holes, kind, method):
    """One signal, many draws, to five standard errors; sampling ends at level 0.04, whose noise is still in it."""
    model = grcd.GRCD(tiny.graph, method, 3, "cpu", **quick).fit(tiny.train, tiny.val)
    model, n = with_parts(model, network=Zeros(), plan={}), 4000
    x = holes[[5]]
    z = torch.from_numpy(model.normalizer.apply(x))
    exact, gaps = model.reference.condition(Observations(z)), np.isnan(x[0])
    drawn = model.normalizer.apply(model.impute(x, n=n, nfe=24, posterior=kind)[:, 0])[:, gaps]
    error = np.sqrt(exact.covariance()[0].diagonal().numpy()[gaps] / n)
    shrunk = 0.01 if kind == "diffusion" else 0.0  # the attenuation of graph coordinates at the last level
    expected = exact.mean[0].numpy()[gaps]
    assert (np.abs(drawn.mean(0) - expected) < 5 * error + shrunk * (1 + np.abs(expected))).all()
    assert drawn.var(0) == pytest.approx(
        exact.covariance()[0].diagonal().numpy()[gaps], rel=5 * np.sqrt(4 / n) + shrunk
    )


def test_the_reverse_process_leads_from_the_references_posterior_to_graph_coordinates(model, holes, monkeypatch):
    """It gets a draw of that posterior and the noise of the largest level; what it ends with is attenuated as at the
    last level. Here it does nothing in between."""
    started, x = [], holes[np.isnan(holes).any(axis=1)]
    monkeypatch.setattr(solvers, "solve", lambda name, eps, x, *more, **choices: started.append(x) or x)
    found = model.impute(x, n=3, seed=2)
    exact = model.normalizer.apply(model.impute(x, n=3, seed=2, posterior="reference").reshape(-1, 6))
    exact = exact.reshape(3, len(x), 6).swapaxes(0, 1)
    noise = Stream(2, "impute noise").normal(range(len(x)), 3 * 6).view(exact.shape).numpy()
    start = exact + model.process.q_max * noise
    close(started[0].reshape(start.shape), start, 1e-10)
    U, mu = model.graph.spectrum.U, model.process.mu.numpy()
    expected = model.normalizer.undo(((start @ U) * (1 + mu * 0.04**2) ** -0.5 @ U.T).swapaxes(0, 1).reshape(-1, 6))
    gaps = np.isnan(x)
    close(found[:, gaps], expected.reshape(found.shape)[:, gaps], 1e-10)


def test_a_signal_of_which_nothing_is_known_is_drawn_as_if_unconditionally_and_that_is_said(model, holes):
    with pytest.warns(InputWarning, match="1 of 40 signals without any reading: drawn as if nothing"):
        model.impute(holes, n=1, posterior="reference")
    nothing = np.full((1, 6), np.nan)
    drawn = model.normalizer.apply(model.impute(nothing, n=3000, posterior="reference")[:, 0])
    C, mean = model.reference.covariance().numpy(), (model.reference.weights @ model.reference.means).numpy()
    assert (np.abs(drawn.mean(0) - mean) < 5 * np.sqrt(np.diag(C) / 3000)).all()
    assert np.cov(drawn.T) == pytest.approx(C, abs=5 * np.sqrt(3 / 3000) * C.max())


def test_readings_in_another_unit_are_noticed(model, holes):
    with pytest.warns(InputWarning, match=r"20 standard deviations.*station 2.*another unit"):
        model.impute(np.where(np.arange(6) == 2, holes * 1000, holes), n=1, posterior="reference")


def test_a_table_in_another_unit_altogether_is_noticed(model, tiny):
    moments = model.normalizer
    for signals in (moments.undo(moments.apply(tiny.test) + 6.0), moments.undo(12.0 - moments.apply(tiny.test))):
        with pytest.warns(
            InputWarning, match=r"half of all readings are more than \d+\.\d standard deviations from the training mean"
        ):
            model.impute(signals, n=1)
        with pytest.warns(InputWarning, match="another unit"):
            model.log_prob(signals, "reference")
        with pytest.warns(InputWarning, match="another unit"):
            model.augment(signals, 0.0)


def test_few_evaluations_are_said_to_be_few(model, holes):
    for nfe in (1, 3):
        with pytest.warns(InputWarning, match=rf"so few network evaluations \({nfe}\)"):
            model.impute(holes[1:], n=1, nfe=nfe)
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)
        model.impute(holes[1:], n=1, nfe=4)


def test_a_network_that_adds_nothing_leaves_the_exact_posterior_and_that_is_said(tiny, quick, holes):
    """To the bit: nothing is sampled that could be known."""
    model = grcd.GRCD(tiny.graph, seed=3, device="cpu", **quick).fit(tiny.train, tiny.val)
    model = with_parts(model, network=model.fresh_network())
    with pytest.warns(InputWarning, match="adds nothing to its reference"):
        found = model.impute(holes[1:], n=3)
    assert np.array_equal(found, model.impute(holes[1:], n=3, posterior="reference"))
    with torch.no_grad():
        model.network.offset[2] = 1e-3
    assert not np.array_equal(model.impute(holes[1:], n=3), found)


def test_evaluations_are_spent_as_asked(model, holes):
    calls = []
    hook = model.network.register_forward_hook(lambda *_: calls.append(1))
    try:
        model.impute(holes, n=4, nfe=7, batch=100)
        assert len(calls) == 7
        calls.clear()
        model.impute(holes, n=4, posterior="reference")
        assert not calls
    finally:
        hook.remove()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"posterior": "exact"}, "posterior 'exact'\nexpected one of auto, diffusion, reference, columns, moments"),
        ({"n": 0}, "n = 0"),
        ({"n": 2.5}, "n = 2.5"),
        ({"n": 10**12}, "(?s)n = 1,000,000,000,000 draws of a single signal on 6 nodes.*take fewer"),
        ({"nfe": 0}, "nfe = 0"),
        ({"batch": 0}, "batch = 0"),
        ({"solver": "heum"}, "solver 'heum'"),
    ],
)
def test_requests_that_cannot_work_are_refused(model, holes, change, message):
    with pytest.raises(grcd.InputError, match=message):
        model.impute(holes, **change)


@pytest.mark.parametrize(
    ("method", "solver"), [("wsd-graph", None), ("grcd", "euler-maruyama"), ("edm", None), ("grcd-rho3", None)]
)
def test_every_solver_fills_and_one_that_draws_noise_draws_each_signals_own(tiny, quick, holes, method, solver):
    model = grcd.GRCD(tiny.graph, method, 3, "cpu", **quick).fit(tiny.train, tiny.val)
    whole = model.impute(holes, n=4, nfe=4, solver=solver)
    assert np.isfinite(whole).all()
    part = model.impute(holes[:9], n=2, nfe=4, solver=solver, batch=2)
    assert part == pytest.approx(whole[:2, :9], rel=1e-4)


def test_the_noise_of_a_stochastic_solver_makes_up_for_twice_the_drift(tiny, quick, holes):
    """Without a residual the variances are the exact posterior's, to a tenth for the steps; without noise far less."""
    model = grcd.GRCD(tiny.graph, "grcd-full", 3, "cpu", **quick).fit(tiny.train, tiny.val)
    model, x = with_parts(model, network=Zeros(), plan={}), holes[[5]]
    exact, gaps = model.reference.condition(Observations(torch.from_numpy(model.normalizer.apply(x)))), np.isnan(x[0])
    drawn = model.impute(x, n=4000, nfe=100, solver="euler-maruyama")[:, 0]
    found = model.normalizer.apply(drawn)[:, gaps].var(0)
    assert found == pytest.approx(exact.covariance()[0].diagonal().numpy()[gaps], rel=0.1 + 5 * np.sqrt(2 / 4000))


def test_a_solver_that_needs_one_gaussian_is_refused_for_a_mixture(tiny, quick, holes):
    model = grcd.GRCD(tiny.graph, "grcd", 3, "cpu", **quick).fit(tiny.train, tiny.val)
    with pytest.raises(grcd.InputError, match="for its forward process and reference"):
        model.impute(holes, n=1, solver="exponential")


def test_signals_that_do_not_fit_are_refused(model, holes):
    with pytest.raises(grcd.InputError, match="signals to fill of shape"):
        model.impute(holes[:, :4])
    with pytest.raises(grcd.InputError, match="infinite values"):
        model.impute(np.where(np.isnan(holes), np.inf, holes))


def test_a_model_on_the_heat_process_fills_by_its_reference_only(tiny, quick, holes):
    model = grcd.GRCD(tiny.graph, "gad", 3, "cpu", **quick).fit(tiny.train, tiny.val)
    assert np.isfinite(model.impute(holes, n=2, posterior="reference")).all()
    with pytest.raises(grcd.InputError, match="--posterior reference"):
        model.impute(holes, n=2)


SUMS = np.array([[1.0, 1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.25, 0.25, 0.25, 0.25]])


@both
@pytest.mark.parametrize("sparse", [False, True])
def test_sums_and_averages_that_were_read_exactly_hold_of_every_draw(model, tiny, kind, sparse):
    y = tiny.test[:4] @ SUMS.T
    y[1, 0] = np.nan
    found = model.infer(y, scipy.sparse.csr_array(SUMS) if sparse else SUMS, n=7, nfe=4, posterior=kind)
    there = ~np.isnan(y)
    close((found @ SUMS.T)[:, there], np.broadcast_to(y[there], (7, there.sum())), 1e-10)
    assert found[:, 1, :2].std() > 0.1


@both
def test_noisy_sums_move_a_gaussian_as_its_closed_form_says(tiny, quick, kind):
    """And so they do a model without a residual, to the error of its steps."""
    model = grcd.GRCD(tiny.graph, "grcd-full", 3, "cpu", **quick).fit(tiny.train, tiny.val)
    model = with_parts(model, network=Zeros(), plan={})
    r, y = np.array([0.5, 2.0]), np.array([[30.0, 9.0]])
    std, C = model.normalizer.std, model.reference.covariance().numpy()
    C = std[:, None] * C * std  # in the signals' units
    gain = C @ SUMS.T @ np.linalg.inv(SUMS @ C @ SUMS.T + np.diag(r**2))
    mean = model.normalizer.mean + gain @ (y[0] - SUMS @ model.normalizer.mean)
    left = C - gain @ SUMS @ C
    found = model.infer(y, SUMS, r, n=4000, nfe=32, posterior=kind)[:, 0]
    error = np.sqrt(np.diag(left) / 4000)
    assert np.abs((found.mean(axis=0) - mean) / error).max() < 5
    assert np.cov(found.T) == pytest.approx(left, abs=6 * np.diag(left).max() * np.sqrt(2 / 4000))
    assert (found @ SUMS.T).var(axis=0) == pytest.approx(np.diag(SUMS @ left @ SUMS.T), rel=6 * np.sqrt(2 / 4000))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"H": SUMS[:, :5]}, "H of shape"),
        ({"H": np.vstack([SUMS[0], 0 * SUMS[1]])}, "none of them zero"),
        ({"y": np.zeros((3, 4))}, "y of shape"),
        ({"noise": -1.0}, "noise -1.0"),
        ({"noise": [1.0, 1.0, 1.0]}, "noise"),
        ({"n": 0}, "n = 0"),
        ({"n": 10**12}, "draws of a single signal on 6 nodes, which takes .* GB"),
        ({"H": SUMS[:0], "y": np.zeros((3, 0))}, "H of shape"),
        ({"H": np.vstack([SUMS[0], SUMS[0]])}, "some follow from the others"),  # read twice, and not alike
    ],
)
def test_readings_that_cannot_be_are_refused(model, change, message):
    given = {"y": np.array([[20.0, 12.0]]), "H": SUMS, "n": 2} | change
    with pytest.raises(grcd.InputError, match=message):
        model.infer(**given)


@pytest.mark.parametrize("settings", [{"support": "-5,35"}, {"marginals": "quantile"}])
def test_filled_readings_stay_where_readings_may_be(tiny, quick, holes, settings):
    model = grcd.GRCD(tiny.graph, "grcd", 3, "cpu", **settings, **quick).fit(tiny.train, tiny.val)
    gaps = np.isnan(holes)
    found = model.impute(holes, n=20, nfe=2)[:, gaps]
    low, high = (-5, 35) if "support" in settings else (tiny.train.min(), tiny.train.max())
    assert (found >= low).all()
    assert (found <= high).all()


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(model, holes, tmp_path):
    """A run, and a table with times whose columns are in another order than the model's nodes."""
    model.save(tmp_path / "run")
    order = [3, 0, 5, 1, 4, 2]
    frame = pandas.DataFrame(holes[:, order], columns=[model.graph.node_ids[i] for i in order])
    frame.insert(0, "time", pandas.date_range("2024-01-01", periods=len(frame), freq="h"))
    frame.to_csv(tmp_path / "given.csv", index=False)
    return tmp_path, frame


@pytest.fixture
def run(monkeypatch):
    """The command line: its exit status."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["grcd", *(str(argument) for argument in arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        return stopped.value.code or 0

    return run


def test_a_csv_is_the_table_with_its_gaps_filled_by_the_median(model, files, run):
    folder, frame = files
    out = folder / "filled.csv"
    assert run("impute", folder / "run", "--observed", folder / "given.csv", "--out", out, "-n", 5, "--nfe", 2) == 0
    found = pandas.read_csv(out, parse_dates=["time"])
    assert list(found) == list(frame)
    assert (found["time"] == frame["time"]).all()
    nodes = list(frame)[1:]
    seen = frame[nodes].notna().to_numpy()
    assert (found[nodes].to_numpy()[seen] == frame[nodes].to_numpy()[seen]).all()
    values = frame[list(model.graph.node_ids)].to_numpy()
    expected = pandas.DataFrame(np.median(model.impute(values, n=5, nfe=2), axis=0), columns=model.graph.node_ids)
    np.testing.assert_allclose(found[nodes], expected[nodes], rtol=1e-6)


@pytest.mark.parametrize("ending", ["npz", "parquet", "nc"])
def test_quantiles_and_ensembles_are_those_of_the_draws(model, files, run, ending):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    xarray = pytest.importorskip("xarray") if ending == "nc" else None
    folder, frame = files
    out = folder / f"filled.{ending}"
    given = ["impute", folder / "run", "--observed", folder / "given.csv", "--out", out, "-n", 5, "--nfe", 2]
    assert run(*given, "--quantiles", "0.1,0.9", "--ensemble") == 0
    nodes = list(frame)[1:]
    place = [model.graph.node_ids.index(name) for name in nodes]
    expected = model.impute(frame[list(model.graph.node_ids)].to_numpy(), n=5, nfe=2)[:, :, place]
    if ending == "parquet":
        table = pandas.read_parquet(out)
        assert list(table["draw"]) == np.repeat(range(5), len(frame)).tolist()
        np.testing.assert_allclose(table[nodes].to_numpy().reshape(expected.shape), expected, rtol=1e-6)
        return
    with np.load(out) if ending == "npz" else xarray.open_dataset(out) as held:
        np.testing.assert_allclose(held["ensemble"], expected, rtol=1e-6)
        np.testing.assert_allclose(held["signals"], np.median(expected, 0), rtol=1e-6)
        np.testing.assert_allclose(
            held["quantiles"], np.quantile(expected, [0.1, 0.9], axis=0, method="weibull"), rtol=1e-6
        )
        names = held["node_ids"] if ending == "npz" else held["node"]
        assert [str(name) for name in np.asarray(names)] == nodes
        times = held["times"] if ending == "npz" else held["time"]
        assert (np.asarray(times) == frame["time"].to_numpy()).all()


def test_quantiles_of_a_csv_are_columns_beside_the_median(model, files, run):
    folder, frame = files
    out = folder / "filled.csv"
    given = ["impute", folder / "run", "--observed", folder / "given.csv", "--out", out, "-n", 9]
    assert run(*given, "--posterior", "reference", "--quantiles", "0.05,0.95") == 0
    found = pandas.read_csv(out)
    low, middle, high = (found[f"station 3{suffix}"] for suffix in (" 5%", "", " 95%"))
    gap = frame["station 3"].isna()
    assert (low[gap] < middle[gap]).all()
    assert (middle[gap] < high[gap]).all()
    assert (low[~gap] == high[~gap]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--quantiles", "0.05,1.5"], "shares between 0 and 1"),
        (["--quantiles", "a"], "shares between 0 and 1"),
        (["--ensemble"], "an ensemble as .csv"),
        (["-n", "0"], "n = 0"),
        (["--posterior", "prior"], "posterior 'prior'"),
    ],
)
def test_wrong_options_exit_with_2_and_leave_nothing(files, run, capsys, options, message):
    folder, _ = files
    out = folder / "filled.csv"
    before = sorted(folder.rglob("*"))
    assert run("impute", folder / "run", "--observed", folder / "given.csv", "--out", out, *options) == 2
    assert message in capsys.readouterr().err
    assert sorted(folder.rglob("*")) == before


def test_unknown_nodes_are_refused_by_name_and_dropped_on_request(files, run, capsys):
    folder, frame = files
    frame.assign(elsewhere=1.0).to_csv(folder / "given.csv", index=False)
    given = ["impute", folder / "run", "--observed", folder / "given.csv", "--out", folder / "f.csv", "-n", 3]
    assert run(*given, "--posterior", "reference") == 2
    assert "1 unknown (elsewhere)" in capsys.readouterr().err
    assert run(*given, "--posterior", "reference", "--common") == 0
    assert list(pandas.read_csv(folder / "f.csv")) == list(frame)


def test_a_value_may_mark_a_gap(files, run):
    folder, frame = files
    nodes = list(frame)[1:]
    frame.fillna(-99.0).to_csv(folder / "given.csv", index=False)
    given = ["impute", folder / "run", "--observed", folder / "given.csv", "--out", folder / "f.csv", "-n", 3]
    assert run(*given, "--posterior", "reference", "--missing", "-99") == 0
    found = pandas.read_csv(folder / "f.csv")[nodes].to_numpy()
    gap = frame[nodes].isna().to_numpy()
    assert (found[gap] != -99.0).all()
    assert (found[~gap] == frame[nodes].to_numpy()[~gap]).all()


def test_an_interrupt_leaves_nothing(files, run, monkeypatch, capsys):
    folder, _ = files
    before = sorted(folder.rglob("*"))

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "median", interrupted)
    given = ["impute", folder / "run", "--observed", folder / "given.csv", "--out", folder / "f.npz", "-n", 3]
    assert run(*given, "--ensemble") == 130
    assert sorted(folder.rglob("*")) == before


def test_a_node_without_a_column_is_a_gap_everywhere_and_gets_one(model, tiny, tmp_path, monkeypatch, capsys):
    model.save(tmp_path / "run")
    hours = pandas.date_range("2024-03-01", periods=3, freq="h")
    names = list(model.graph.node_ids)
    frame = pandas.DataFrame(tiny.test[:3, 1:], columns=names[1:])
    frame.insert(0, "time", hours.strftime("%Y-%m-%d %H:%M"))
    frame.to_csv(tmp_path / "x.csv", index=False)
    given = ["grcd", "impute", str(tmp_path / "run"), "--observed", str(tmp_path / "x.csv"), "-n", "9"]
    monkeypatch.setattr(sys, "argv", [*given, "--out", str(tmp_path / "y.csv")])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert not stopped.value.code
    found = pandas.read_csv(tmp_path / "y.csv")
    assert list(found) == ["time", *names[1:], names[0]]
    assert list(found["time"]) == list(frame["time"])  # as it was written
    assert found[names[1:]].to_numpy() == pytest.approx(tiny.test[:3, 1:])
    holes = np.where(np.arange(6) == 0, np.nan, tiny.test[:3])
    assert found[names[0]].to_numpy() == pytest.approx(np.median(model.impute(holes, n=9)[:, :, 0], axis=0), rel=1e-5)


def test_a_file_with_none_of_the_nodes_is_refused(model, tiny, tmp_path, monkeypatch, capsys):
    model.save(tmp_path / "run")
    pandas.DataFrame(tiny.test[:3], columns=list("abcdef")).to_csv(tmp_path / "x.csv", index=False)
    given = ["grcd", "impute", str(tmp_path / "run"), "--observed", str(tmp_path / "x.csv")]
    monkeypatch.setattr(sys, "argv", [*given, "--out", str(tmp_path / "y.csv")])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert "do not match the graph" in said
    assert "--common" not in said  # it could not help


def test_quantiles_beyond_the_outermost_draws_are_noted(files, run, capsys):
    folder, _ = files
    given = ["impute", folder / "run", "--observed", folder / "given.csv", "--posterior", "reference", "--force"]
    with warnings.catch_warnings():
        warnings.simplefilter("always", InputWarning)
        for n, levels, noted in ((18, "0.05,0.95", True), (19, "0.05,0.95", False), (2, "0,0.5,1", False)):
            assert run(*given, "-n", n, "--quantiles", levels, "--out", folder / "f.csv") == 0
            assert ("take 19 or more" in capsys.readouterr().err) == noted


def test_an_ensemble_that_the_disk_has_no_room_for_is_refused_at_once(files, run, capsys, monkeypatch):
    folder, frame = files
    size = 3 * len(frame) * 6 * 8
    monkeypatch.setattr(shutil, "disk_usage", lambda where: SimpleNamespace(free=2 * size - 1))
    given = ["impute", folder / "run", "--observed", folder / "given.csv", "-n", 3, "--ensemble"]
    assert run(*given, "--out", folder / "f.npz") == 2
    assert "fewer draws" in capsys.readouterr().err
    assert not [*folder.glob("*f.npz*")]
    monkeypatch.setattr(shutil, "disk_usage", lambda where: SimpleNamespace(free=2 * size))
    assert run(*given, "--out", folder / "f.npz") == 0


@pytest.mark.parametrize("ending", ["npz", "nc"])
def test_without_levels_there_are_no_quantiles(files, run, ending):
    xarray = pytest.importorskip("xarray") if ending == "nc" else None
    folder, _ = files
    out = folder / f"f.{ending}"
    given = ["impute", folder / "run", "--observed", folder / "given.csv", "-n", 3, "--posterior", "reference"]
    assert run(*given, "--out", out) == 0
    with np.load(out) if ending == "npz" else xarray.open_dataset(out) as held:
        assert not {"quantiles", "levels", "level"} & {*held}


def test_the_command_passes_on_the_seed_and_the_unit(model, files, run):
    folder, frame = files
    other = copy(model)
    facts = model.facts | {"data": model.facts["data"] | {"made": {"unit": "mph"}}}
    other._trained = replace(model.trained, facts=facts)
    other.save(folder / "named")
    given = ["impute", folder / "named", "--observed", folder / "given.csv", "-n", 3, "--nfe", 4, "--seed", 9]
    assert run(*given, "--out", folder / "f.npz") == 0
    values = frame[list(model.graph.node_ids)].to_numpy()
    place = [model.graph.node_ids.index(name) for name in list(frame)[1:]]
    with np.load(folder / "f.npz") as held:
        expected = np.median(model.impute(values, n=3, nfe=4, seed=9), axis=0)
        np.testing.assert_allclose(held["signals"], expected[:, place], rtol=1e-6)
        assert str(held["unit"]) == "mph"


def test_the_ancestral_solver_is_the_default(model, holes):
    found = model.impute(holes[1:], n=2, nfe=4)
    assert np.array_equal(found, model.impute(holes[1:], n=2, nfe=4, solver="ancestral-2m"))
    assert not np.array_equal(found, model.impute(holes[1:], n=2, nfe=4, solver="residual-2m"))


@pytest.mark.parametrize("ending", ["npz", "nc", "parquet"])
def test_an_ensemble_is_never_in_memory_as_a_whole(tmp_path, ending):
    """Draws come five signals at a time; what is allocated at once is a fraction of all of them."""
    xarray = pytest.importorskip("xarray") if ending == "nc" else None
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    n, signals, nodes, random = 400, 50, 41, np.random.default_rng(0)
    draws = random.standard_normal((n, signals, nodes)).astype(np.float32)  # half the size of what is written
    parts = ((np.arange(k, k + 5), draws[:, k : k + 5].astype(np.float64)) for k in range(0, signals, 5))
    times = np.arange("2024-01-01", "2024-02-20", dtype="datetime64[D]").astype("datetime64[ns]")
    Filled([f"n{i}" for i in range(nodes)], times, ()).write(tmp_path / f"warm.{ending}", [], (1, 50, nodes))
    tracemalloc.start()
    try:
        Filled([f"n{i}" for i in range(nodes)], times, ()).write(
            tmp_path / f"f.{ending}", parts, (n, signals, nodes), ensemble=True
        )
        assert tracemalloc.get_traced_memory()[1] < 0.4 * 8 * draws.size
    finally:
        tracemalloc.stop()
    if ending == "parquet":
        held = pandas.read_parquet(tmp_path / "f.parquet").iloc[:, 2:].to_numpy().reshape(draws.shape)
        assert np.array_equal(held, draws)
        return
    with np.load(tmp_path / "f.npz") if ending == "npz" else xarray.open_dataset(tmp_path / "f.nc") as file:
        assert np.array_equal(file["ensemble"], draws)


def test_a_stopped_command_cleans_up_as_an_interrupted_one(files):
    """SIGTERM, in the middle of drawing."""
    folder, _ = files
    command = ["impute", folder / "run", "--observed", folder / "given.csv", "-n", 20000, "--ensemble"]
    process = subprocess.Popen(
        [sys.executable, "-m", "grcd", *map(str, command), "--out", str(folder / "e.npz")],
        stderr=subprocess.PIPE,
        text=True,
    )
    while not [*folder.glob(".ensemble.npy.*")]:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)
    process.terminate()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert {path.name for path in folder.iterdir()} == {"run", "given.csv"}
