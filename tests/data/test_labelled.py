"""Labelled arrays in and out, against xarray's own arithmetic of labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import examples

from grcd.core.errors import InputError, InputWarning
from grcd.data.labelled import Labelled

xarray = pytest.importorskip("xarray")
NODES, CHANNELS, ROWS = ("a", "b", "c"), ("temp", "wind"), 5
HOURS = np.datetime64("2024-03-30", "ns") + np.arange(ROWS) * np.timedelta64(1, "h")


def array(channels=True):
    values = np.random.RandomState(0).standard_normal((ROWS, 3, 2))
    coords = {"time": HOURS, "node": list(NODES), "channel": list(CHANNELS)}
    whole = xarray.DataArray(values, coords, ("time", "node", "channel"), "readings", {"units": "degC"})
    return whole if channels else whole.isel(channel=0, drop=True)


@given(
    dims=st.permutations(["time", "node", "channel"]),
    rows=st.permutations(range(ROWS)),
    nodes=st.permutations(NODES),
    channels=st.permutations(CHANNELS),
)
@examples(30)
def test_what_comes_out_is_what_went_in_and_inside_all_is_in_order(dims, rows, nodes, channels):
    ordered = array()
    mixed = ordered.isel(time=list(rows)).sel(node=list(nodes), channel=list(channels)).transpose(*dims)
    inside = Labelled.of(mixed, NODES, CHANNELS)
    np.testing.assert_array_equal(inside.values, ordered.to_numpy())
    np.testing.assert_array_equal(inside.times, HOURS)
    xarray.testing.assert_identical(inside.table(inside.values), mixed)
    draws = inside.draws(np.stack([inside.values, inside.values + 1]))
    assert draws.dims == ("draw", *dims)
    xarray.testing.assert_equal(draws.sel(draw=1, drop=True), mixed + 1)
    bands = inside.bands(np.stack([inside.values - 1, inside.values]), [0.1, 0.5])
    xarray.testing.assert_equal(bands.sel(quantile=0.1, drop=True), mixed - 1)


def test_rows_to_come_have_the_times_after_the_last():
    inside = Labelled.of(array(channels=False)[::-1], NODES)
    ahead = inside.table(np.zeros((2, 3, 1)), inside.ahead(2))
    np.testing.assert_array_equal(ahead.time, HOURS[-1] + np.arange(1, 3) * np.timedelta64(1, "h"))
    assert ahead.dims == ("time", "node")


def test_the_variables_of_a_dataset_are_channels():
    dataset = array().to_dataset("channel")
    inside = Labelled.of(dataset, NODES, CHANNELS)
    np.testing.assert_array_equal(inside.values, array().to_numpy())
    back = inside.table(inside.values)
    for name in CHANNELS:
        np.testing.assert_array_equal(back[name], dataset[name])


def test_dimensions_without_known_names_go_by_their_place_and_those_without_coordinates_by_order():
    plain = xarray.DataArray(array(channels=False).to_numpy(), dims=("when", "where"))
    inside = Labelled.of(plain, NODES)
    np.testing.assert_array_equal(inside.values[..., 0], plain)
    assert inside.times is None
    xarray.testing.assert_identical(inside.table(inside.values), plain)
    turned = xarray.DataArray(plain.to_numpy().T, dims=("station", "when"))
    np.testing.assert_array_equal(Labelled.of(turned, NODES).values[..., 0], plain)


def test_a_node_that_is_not_there_is_a_gap_and_comes_back_last():
    with pytest.warns(InputWarning, match="has no b"):
        inside = Labelled.of(array(channels=False).sel(node=["c", "a"]), NODES, absent=True)
    assert np.isnan(inside.values[:, 1]).all()
    filled = np.where(np.isnan(inside.values), 7.0, inside.values)
    assert inside.table(filled).node.to_numpy().tolist() == ["c", "a", "b"]
    assert (inside.table(filled).sel(node="b") == 7).all()


@pytest.mark.parametrize(
    ("readings", "words"),
    [
        (array(), "channels that the model does not know: temp, wind"),
        (array(channels=False).assign_coords(node=["a", "b", "d"]), "does not know: d"),
        (array(channels=False).assign_coords(node=["a", "b", "a"]), "come twice: a"),
        (array(channels=False).isel(node=[0, 1]), "without c"),
        (array(channels=False).isel(node=0), "dimensions time"),
        (array(channels=False).astype(str), "of type"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(readings, words):
    with pytest.raises(InputError, match=words):
        Labelled.of(readings, NODES)
