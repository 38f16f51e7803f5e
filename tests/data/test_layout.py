"""How generated readings are laid out, kept as text and brought back."""

import json

import numpy as np
import pandas
import pytest

from grcd.data.frames import Frame
from grcd.data.layout import Layout

NODES, CHANNELS = ("7", "8", "9"), ("temp", "wind")
VALUES = np.arange(2 * 3 * 3 * 2.0).reshape(2, 3, 3, 2)  # (draws, steps, nodes, channels)
TIMES = np.datetime64("2024-03-30", "ns") + np.arange(6).reshape(2, 3) * np.timedelta64(1, "h")


def kept(frame, channels=("",), timed=True):
    """The layout of a frame, through JSON."""
    layout = Layout.of(Frame.of(frame, NODES, channels, timed=timed))
    again = Layout.from_dict(json.loads(json.dumps(layout.to_dict())))
    assert again == layout
    return again


def test_columns_keep_their_kind_their_names_and_their_order():
    columns = pandas.Index([9, 7, 8], name="station")
    layout = kept(pandas.DataFrame(0.0, range(4), columns), timed=False)
    drawn = layout.sampled(VALUES[:, :1, :, :1], None, NODES, ("",))
    expected = pandas.DataFrame(VALUES[:, 0, :, 0][:, [2, 0, 1]], pandas.RangeIndex(2, name="sample"), columns)
    pandas.testing.assert_frame_equal(drawn, expected)


@pytest.mark.parametrize("zone", [None, "Europe/Paris"])
def test_windows_of_several_channels_are_rows_by_sample_and_time(zone):
    columns = pandas.MultiIndex.from_product([["8", "9", "7"], ["wind", "temp"]], names=["node", "variable"])
    index = pandas.date_range("2024-01-01", periods=4, freq="h", tz=zone, name="when")
    drawn = kept(pandas.DataFrame(0.0, index, columns), CHANNELS).sampled(VALUES, TIMES, NODES, CHANNELS)
    assert drawn.columns.equals(columns)
    assert drawn.index.names == ["sample", "when"]
    stamps = drawn.index.get_level_values("when")
    assert stamps.tz == index.tz
    np.testing.assert_array_equal(stamps.tz_convert("UTC").tz_localize(None) if zone else stamps, TIMES.ravel())
    for i, node in enumerate(NODES):
        for k, channel in enumerate(CHANNELS):
            np.testing.assert_array_equal(drawn[node, channel], VALUES[:, :, i, k].ravel())


def test_times_are_written_as_they_were_and_steps_are_numbered_without_them():
    text = pandas.DataFrame(0.0, [f"2024-01-01T0{hour}:00Z" for hour in range(4)], list(NODES))
    drawn = kept(text).sampled(VALUES[..., :1], TIMES, NODES, ("",))
    assert list(drawn.index[:2]) == [(0, "2024-03-30T00:00Z"), (0, "2024-03-30T01:00Z")]
    drawn = kept(text.reset_index(drop=True)).sampled(VALUES[..., :1], None, NODES, ("",))
    assert drawn.index.names == ["sample", "step"]
    assert list(drawn.index) == [(draw, step) for draw in range(2) for step in range(3)]


def test_what_is_no_layout_is_refused():
    assert Layout.from_dict(None) is None
    with pytest.raises(ValueError, match="of kind 'cube'"):
        Layout.from_dict({"kind": "cube", "labels": [], "names": []})
    with pytest.raises(TypeError):
        Layout.from_dict({"kind": "frame"})
